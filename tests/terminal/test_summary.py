"""The end of a report: what one would paste into an issue, also when all else has scrolled away."""

from __future__ import annotations

import msgspec

from mcptest.core.results import RunReport, Status
from mcptest.report.run_results import FAILURES_SHOWN, SCREEN, in_short, render
from mcptest.report.terminal import Style
from tests.report.test_progress import CONTROL
from tests.support.sample_run import CRASH, HOSTILE, READ, RUN, SUM, hostile_result

PLAIN = Style()
PASSES = tuple(
    msgspec.structs.replace(READ, name=f"test {number}", line=number, duration_ms=number)
    for number in range(1, SCREEN + 1)
)
LONG = RunReport(results=(SUM, *PASSES, CRASH), duration_ms=1_500)


def test_a_long_report_ends_in_what_was_slow_and_what_failed() -> None:
    end = render(LONG, PLAIN).rpartition("slowest:\n")[2]
    assert end == (
        f"      1.2s  {SUM.name}\n"
        f"     212ms  {CRASH.name}\n"
        f"      30ms  test 30\n"
        "\n"
        "failed:\n"
        f"  {SUM.name}  evals/math.yaml:14\n"
        "    expected exact match:\n"
        "    repeat: mcptest run evals/math.yaml -k 'get-sum adds two numbers'\n"
        f"  {CRASH.name}  evals/echo.yaml:3\n"
        f"    {CRASH.detail}\n"
        "    repeat: mcptest run evals/echo.yaml\n"
        "\n"
        "32 tests, 30 passed, 2 failed in 1.5s\n"
    )


def test_a_report_that_fits_on_a_screen_says_nothing_twice() -> None:
    short = render(RunReport(results=(READ, CRASH), duration_ms=9_000), PLAIN)
    assert "failed:\n" not in short
    assert "slowest" not in short


def test_a_long_run_that_was_quick_and_went_well_needs_no_end() -> None:
    text = render(RunReport(results=PASSES * 2, duration_ms=900), PLAIN)
    assert "slowest" not in text
    assert "failed" not in text


def test_quiet_says_what_failed_and_the_counts() -> None:
    text = in_short(RunReport(results=(READ, CRASH), duration_ms=9_000), PLAIN)
    assert text == (
        "failed:\n"
        f"  {CRASH.name}  evals/echo.yaml:3\n"
        f"    {CRASH.detail}\n"
        "    repeat: mcptest run evals/echo.yaml\n"
        "\n"
        "2 tests, 1 passed, 1 failed in 9.0s\n"
    )
    assert in_short(RunReport(results=(READ,)), PLAIN) == "1 test, 1 passed in 0ms\n"


def test_a_test_with_trials_is_told_once() -> None:
    trials = tuple(msgspec.structs.replace(CRASH, trial=number) for number in range(1, 6))
    text = in_short(RunReport(results=trials, trials=5), PLAIN)
    assert text.count(CRASH.name) == 1


def test_only_so_many_failures_are_told_at_the_end() -> None:
    many = tuple(
        msgspec.structs.replace(CRASH, name=f"crash {number}", line=number)
        for number in range(1, 101)
    )
    text = in_short(RunReport(results=many), PLAIN)
    assert text.count("  evals/echo.yaml:") == FAILURES_SHOWN
    assert f"  and {100 - FAILURES_SHOWN} more\n" in text
    assert all(result.status is Status.FAIL for result in many)


def test_on_a_narrow_terminal_the_place_has_a_line_of_its_own() -> None:
    lines = in_short(RUN, PLAIN).splitlines()
    assert any(line.endswith("evals/math.yaml:14") for line in lines)
    text = render(LONG, Style(colour=True, width=40))
    assert "\n    \x1b[2mevals/math.yaml:14\x1b[0m\n" in text


def test_nothing_of_a_peer_steers_the_terminal() -> None:
    results = tuple(hostile_result(name) for name in HOSTILE)
    for line in in_short(RunReport(results=results), PLAIN).splitlines():
        assert not CONTROL.search(line)
