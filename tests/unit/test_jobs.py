"""Which job runs which test."""

from __future__ import annotations

from typing import Any

from mcptest.run.jobs import FreshJob, SerialJob, SkipJob, TraceJob
from mcptest.run.planning import plan
from mcptest.run.server_session import Numbered, Settings
from mcptest.run.serving import ServerChoice
from mcptest.run.sharing import SharedJob
from mcptest.suite.model import (
    Block,
    Expect,
    Place,
    SamplingBlock,
    SamplingMock,
    ServerSpec,
    ToolBlock,
    TrajectoryBlock,
)
from mcptest.suite.model import Test as SuiteTest

CALL = ToolBlock("echo", {}, Expect(not_error=True))
URL = ServerSpec(transport="http", url="http://127.0.0.1:1/mcp")
COMMAND = ServerSpec(command="server")


def items(*tests: SuiteTest, **more: Any) -> list[Numbered]:
    return [Numbered(number, test, **more) for number, test in enumerate(tests)]


def a_test(block: Block = CALL, server: ServerSpec | None = COMMAND, **more: Any) -> SuiteTest:
    return SuiteTest(name="t", block=block, place=Place("s.yaml"), server=server, **more)


def planned(
    tests: list[Numbered], *, shared: bool = False, serial: bool = True, server: str | None = None
) -> list[tuple[str, int]]:
    settings = Settings(choice=ServerChoice(server))
    jobs = plan(tests, settings, shared=shared, in_flight=1, serial_urls=serial)
    known = (FreshJob, SerialJob, SharedJob, SkipJob, TraceJob)
    assert all(isinstance(job, known) for job in jobs)
    return [(type(job).__name__, len(job.items)) for job in jobs]  # type: ignore[attr-defined]  # checked above


def test_a_command_is_started_afresh_for_each_test() -> None:
    assert planned(items(a_test(), a_test())) == [("FreshJob", 1), ("FreshJob", 1)]


def test_tests_of_one_url_are_one_job_unless_many_are_allowed() -> None:
    tests = items(a_test(server=URL), a_test(), a_test(server=URL))
    assert planned(tests) == [("SerialJob", 2), ("FreshJob", 1)]
    assert planned(tests, serial=False) == [("FreshJob", 1)] * 3
    assert planned(items(a_test(), a_test()), server="http://127.0.0.1:1/mcp") == [("SerialJob", 2)]
    assert planned(items(a_test()), server="run --url http://127.0.0.1:1") == [("FreshJob", 1)]


def test_a_server_is_shared_by_those_that_start_it_in_the_same_way() -> None:
    other = ServerSpec(command="server", env={"A": "1"})
    tests = items(a_test(), a_test(server=other), a_test())
    assert planned(tests, shared=True) == [("SharedJob", 2), ("SharedJob", 1)]
    trials = [Numbered(0, a_test(), 1), Numbered(1, a_test(), 2)]
    assert planned(trials, shared=True) == [("SharedJob", 1)] * 2
    languages = [
        Numbered(0, a_test(), language="a", choice=ServerChoice("x")),
        Numbered(1, a_test(), language="b", choice=ServerChoice("y")),
    ]
    assert planned(languages, shared=True) == [("SharedJob", 1)] * 2


def test_what_a_test_says_of_its_isolation_wins() -> None:
    tests = items(a_test(isolation="fresh"), a_test(isolation="shared"), a_test())
    assert planned(tests, shared=True) == [("FreshJob", 1), ("SharedJob", 2)]
    assert planned(tests) == [("FreshJob", 1), ("SharedJob", 1), ("FreshJob", 1)]


def test_tests_with_different_mocks_do_not_share_a_session() -> None:
    blocks = [SamplingBlock("t", {}, SamplingMock(text), Expect(not_error=True)) for text in "ab"]
    tests = items(*(a_test(block) for block in blocks))
    assert planned(tests, shared=True) == [("SharedJob", 1)] * 2


def test_what_needs_no_server_gets_none() -> None:
    trace = a_test(TrajectoryBlock(()), server=None)
    tests = items(a_test(skip=True), trace, a_test(skip=True), trace)
    assert planned(tests, shared=True) == [("SkipJob", 2), ("TraceJob", 2)]
