"""The numbers behind the charts: how reliable, and how long."""

from __future__ import annotations

import pytest

from mcptest.core.capture import Frame
from mcptest.core.results import RunReport, Status
from mcptest.core.results import TestResult as Result
from mcptest.report.html.embedded import Chunks
from mcptest.report.html.sources import at_least_one, every_one, reliability_of, trials_of
from mcptest.report.html.wire_rows import (
    NAMES_KEPT,
    OTHERS,
    Latencies,
    Latency,
    WireSession,
    percentile,
)

PASS, FAIL, SKIP = Status.PASS, Status.FAIL, Status.SKIP


def run_of(**tests: list[Status]) -> RunReport:
    results = [
        Result(name, status, duration_ms=10 * trial, trial=trial)
        for name, statuses in tests.items()
        for trial, status in enumerate(statuses, 1)
    ]
    return RunReport(results=tuple(results), trials=max(map(len, tests.values())))


@pytest.mark.parametrize(
    ("passed", "k", "one", "every"),
    [(0, 1, 0, 0), (4, 4, 1, 1), (2, 1, 0.5, 0.5), (2, 2, 5 / 6, 1 / 6), (2, 3, 1, 0)],
)
def test_pass_at_k_and_pass_to_the_k_count_every_choice_of_trials(
    passed: int, k: int, one: float, every: float
) -> None:
    assert at_least_one(4, passed, k) == pytest.approx(one)
    assert every_one(4, passed, k) == pytest.approx(every)


def test_what_is_flaky_is_named_and_stands_first() -> None:
    run = run_of(steady=[PASS] * 3, flaky=[PASS, FAIL, PASS], skipped=[SKIP] * 3)
    measured = reliability_of(run)
    assert measured is not None
    assert (measured.tests, measured.capable, measured.reliable) == (2, 2, 1)
    assert measured.flaky == ("flaky",)
    assert measured.at_least_one == (0.8333, 1.0, 1.0)
    assert measured.every_one == (0.8333, 0.6667, 0.5)
    assert trials_of(run)[0].name == "flaky"


def test_one_trial_says_nothing_about_reliability() -> None:
    run = run_of(once=[PASS])
    assert reliability_of(run) is None
    assert trials_of(run) == ()


def test_a_percentile_is_a_time_that_was_measured() -> None:
    assert percentile([1.0, 2.0, 3.0, 4.0], 50) == 2.0
    assert percentile([1.0, 2.0, 3.0, 4.0], 95) == 4.0
    assert percentile([7.0], 50) == 7.0


CALL = b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"add"}}'
PING = b'{"jsonrpc":"2.0","id":%d,"method":"ping"}'
RESULT = b'{"jsonrpc":"2.0","id":%d,"result":{}}'


def timed(*frames: tuple[str, bytes, float]) -> tuple[Latency, ...]:
    """What is measured in a session that begins with a slow ping."""
    found = Latencies()
    session = WireSession("x", "x.jsonl", "stdio", "full", Chunks("wire"), found)
    started = (("client", PING % 0, 0.0), ("server", RESULT % 0, 5.0))
    for place, (sender, raw, t) in enumerate((*started, *frames)):
        session.note(place, Frame(t=t, sender=sender, raw=raw))  # type: ignore[arg-type]  # one of two
    return found.measured()


def test_results_are_timed_by_tool_and_by_method() -> None:
    add, ping = timed(
        *(("client", CALL % 1, 5.0), ("client", CALL % 2, 5.1), ("server", RESULT % 2, 5.2)),
        *(("server", RESULT % 1, 5.4), ("client", PING % 3, 5.5), ("server", RESULT % 3, 5.51)),
    )
    assert (add.name, add.count, add.p50, add.p95) == ("tools/call add", 2, 100, 400)
    assert (ping.name, ping.count, ping.longest) == ("ping", 1, pytest.approx(10))


@pytest.mark.parametrize(
    "answer",
    [
        b'{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no"}}',
        b'{"jsonrpc":"2.0","id":1,"result":{"isError":true}}',
    ],
)
def test_errors_are_not_timed(answer: bytes) -> None:
    assert timed(("client", CALL % 1, 5.0), ("server", answer, 5.2)) == ()


def test_the_start_of_the_server_is_not_timed() -> None:
    """The first response waits for it, and so does each `initialize`."""
    initialize = b'{"jsonrpc":"2.0","id":1,"method":"initialize"}'
    assert timed(("client", initialize, 5.0), ("server", RESULT % 1, 9.0)) == ()


def test_the_public_form_has_no_times() -> None:
    found = Latencies()
    session = WireSession("x", "x.json", None, "exchanges", Chunks("wire"), found)
    session.note(0, Frame(sender="client", raw=b'{"jsonrpc":"2.0","id":1,"method":"ping"}'))
    session.note(0, Frame(sender="server", raw=b'{"jsonrpc":"2.0","id":1,"result":{}}'))
    assert found.measured() == ()


def test_names_without_end_go_into_one_line() -> None:
    found = Latencies()
    for number in range(NAMES_KEPT + 50):
        found.note("x", f"tools/call {number}", 1.0)
    measured = {one.name: one.count for one in found.measured()}
    assert len(measured) == NAMES_KEPT + 1
    assert measured[OTHERS] == 50
