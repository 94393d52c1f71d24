"""Which job runs which test."""

from __future__ import annotations

from typing import Any

import pytest

from mcptest.probe.suites.settings import Numbered, RunOptions, ServerChoice, Settings
from mcptest.probe.suites.suite_run import FreshJob, Job, JobPlan, LocalJob, SerialJob, SharedJob
from mcptest.suite.model import (
    Block,
    Expect,
    LoggingBlock,
    LoggingExpect,
    NotificationExpect,
    NotificationsBlock,
    ResourcesBlock,
    SamplingBlock,
    ServerSpec,
    SetupStep,
    ToolBlock,
    TrajectoryBlock,
)
from mcptest.suite.model import Test as SuiteTest
from mcptest.suite.reading import Place

CALL = ToolBlock("echo", {}, expect=Expect(not_error=True))
URL = ServerSpec(transport="http", url="http://127.0.0.1:1/mcp")
COMMAND = ServerSpec(command="server")


def items(*tests: SuiteTest, **more: Any) -> list[Numbered]:
    return [Numbered(number, test, **more) for number, test in enumerate(tests)]


def a_test(block: Block = CALL, server: ServerSpec | None = COMMAND, **more: Any) -> SuiteTest:
    return SuiteTest(name="t", block=block, place=Place("s.yaml"), server=server, **more)


def whole_plan(
    tests: list[Numbered],
    *,
    server: str | None = None,
    docker: str = "",
    fixture: str | None = None,
    **options: Any,
) -> JobPlan:
    settings = Settings(choice=ServerChoice(server, docker=docker), fixture=fixture)
    return JobPlan(tests, settings, RunOptions(**options))


def planned(tests: list[Numbered], **how: Any) -> list[tuple[str, int]]:
    """The name of each job with how many tests it has, or jobs when they are in one line."""
    return [(type(job).__name__, _size(job)) for job in whole_plan(tests, **how).jobs]


def _size(job: Job) -> int:
    if isinstance(job, SerialJob):
        return len(job.jobs)
    assert isinstance(job, FreshJob | SharedJob | LocalJob)
    return len(job.items)


def test_a_command_is_started_afresh_for_each_test() -> None:
    assert planned(items(a_test(), a_test())) == [("FreshJob", 1), ("FreshJob", 1)]


def test_tests_of_one_url_are_one_job_unless_many_are_allowed() -> None:
    tests = items(a_test(server=URL), a_test(), a_test(server=URL))
    assert planned(tests) == [("SerialJob", 2), ("FreshJob", 1)]
    assert planned(tests, jobs=2) == [("FreshJob", 1)] * 3
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
    blocks = [SamplingBlock("t", {}, text, expect=Expect(not_error=True)) for text in "ab"]
    tests = items(*(a_test(block) for block in blocks))
    assert planned(tests, shared=True) == [("SharedJob", 1)] * 2


def test_what_needs_no_server_gets_none() -> None:
    trace = a_test(TrajectoryBlock(()), server=None)
    tests = items(a_test(skip=True), trace, a_test(skip=True), trace)
    assert planned(tests, shared=True) == [("LocalJob", 4)]


# -- one at a time -------------------------------------------------------------------------------


DEMO = ServerSpec(command="mcptest", args=("serve", "demo"))
DEMO_OF_INIT = ServerSpec(command="/usr/bin/python3", args=("-P", "-m", "mcptest.servers.demo"))


def test_tests_that_are_a_file_each_run_one_at_a_time_unless_jobs_are_asked_for() -> None:
    tests = items(a_test(single=True), a_test(), a_test(single=True, server=URL))
    by_default = whole_plan(tests, single_file_order=True)
    assert planned(tests, single_file_order=True) == [("SerialJob", 2), ("FreshJob", 1)]
    assert len(by_default.notes) == 1
    assert "--jobs auto runs the tests in parallel" in by_default.notes[0]
    assert planned(tests[:2], jobs=2) == [("FreshJob", 1)] * 2
    assert whole_plan(tests).notes == ()


def test_one_test_that_is_a_file_is_not_worth_a_note() -> None:
    assert whole_plan(items(a_test(single=True), a_test()), single_file_order=True).notes == ()


def test_servers_that_keep_nothing_are_not_waited_for() -> None:
    tests = items(a_test(single=True, server=DEMO), a_test(single=True, server=DEMO_OF_INIT))
    assert planned(tests, single_file_order=True) == [("FreshJob", 1)] * 2
    others = items(a_test(single=True), a_test(single=True))
    assert planned(others, single_file_order=True, server="demo") == [("FreshJob", 1)] * 2
    assert planned(tests, single_file_order=True, server="other") == [("SerialJob", 2)]


def test_shared_servers_of_single_files_take_turns_too() -> None:
    other = ServerSpec(command="other")
    tests = items(*(a_test(single=True, server=one) for one in (COMMAND, other, COMMAND)))
    found = whole_plan(tests, single_file_order=True, shared=True)
    (line,) = found.jobs
    assert isinstance(line, SerialJob)
    assert [(type(job).__name__, _size(job)) for job in line.jobs] == [
        ("SharedJob", 2),
        ("SharedJob", 1),
    ]


def test_the_fixture_that_docker_mounts_is_one_for_all_whatever_is_asked_for() -> None:
    tests = items(a_test(), a_test(), a_test(server=URL))
    found = whole_plan(tests, docker="image", fixture="data", jobs=8)
    assert planned(tests, docker="image", fixture="data", jobs=8) == [
        ("SerialJob", 2),
        ("FreshJob", 1),
    ]
    assert "use the fixture itself" in found.notes[0]
    assert planned(tests[:2], docker="image", jobs=8) == [("FreshJob", 1)] * 2


def test_one_job_at_a_time_is_one_server_at_a_time() -> None:
    assert planned(items(a_test(), a_test()), jobs=1) == [("SerialJob", 2)]


# -- sharing that the command line asks for ------------------------------------------------------


@pytest.mark.parametrize(
    "tool",
    ["apply_edit", "rename_symbol", "restart_lsp_server", "activate_skill", "deactivate_skill"],
)
def test_tools_that_mcp_assert_keeps_apart_get_a_server_of_their_own(tool: str) -> None:
    called = a_test(ToolBlock(tool, {}, expect=Expect(not_error=True)))
    before = a_test(setup=(SetupStep(tool),))
    tests = items(a_test(), called, before, a_test())
    assert planned(tests, shared=True) == [("SharedJob", 2), ("FreshJob", 1), ("FreshJob", 1)]


@pytest.mark.parametrize(
    "block",
    [
        LoggingBlock("debug", "t", {}, LoggingExpect(min_messages=1)),
        NotificationsBlock("t", {}, NotificationExpect(max_count=0)),
        ResourcesBlock(subscribe="x://y", expect_notification=True),
    ],
)
def test_tests_that_leave_something_in_the_session_do_not_share_it_unasked(block: Block) -> None:
    tests = items(a_test(), a_test(block), a_test())
    assert planned(tests, shared=True) == [("SharedJob", 2), ("FreshJob", 1)]
    told = items(a_test(), a_test(block, isolation="shared"), a_test())
    assert planned(told, shared=True) == [("SharedJob", 3)]
