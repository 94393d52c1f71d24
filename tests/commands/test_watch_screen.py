"""What `watch` shows: one line that changes, and above it only what flipped."""

from __future__ import annotations

import io

import pytest
from msgspec.structs import replace

from mcptest.commands.watch.view import (
    KEYS,
    LINES_SHOWN,
    Flip,
    WatchScreen,
    WatchTotals,
    flip_lines,
)
from mcptest.core.results import FailedCheck, Proof, RunReport, Status
from mcptest.core.results import TestResult as Result
from mcptest.report.terminal import Style
from mcptest.suite.reading import Place, SuiteProblem
from tests.e2e.screens import shown_by

PLAIN = Style()
COLOUR = Style(colour=True)


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def failing(name: str = "adds", detail: str = "expected 5, got 6", response: str = "") -> Result:
    proof = Proof(request='{"id":1}', response=response, repeat=f"mcptest run a.yaml -k {name}")
    check = FailedCheck("equals", detail, expected="5", actual="6")
    return Result(
        name, Status.FAIL, detail=detail, file="a.yaml", line=3, failures=(check,), proof=proof
    )


def passing(name: str = "adds", response: str = "") -> Result:
    return Result(name, Status.PASS, file="a.yaml", proof=Proof(response=response))


def screen(stream: io.StringIO, width: int = 80, *, keys: bool = True) -> WatchScreen:
    style = COLOUR if stream.isatty() else PLAIN
    return WatchScreen(stream, style, keys=keys, clock=lambda: "10:00:00", width=lambda: width)


def lines(*flips: Flip, style: Style = PLAIN) -> list[str]:
    return list(flip_lines(flips, replace(style, width=80)))


def test_a_pass_that_fails_shows_why_and_what_the_server_says_now() -> None:
    before = passing(response='{"content":[{"type":"text","text":"5"}]}')
    now = failing(response='{"content":[{"type":"text","text":"6"}]}')
    text = "\n".join(lines(Flip(now, before)))
    assert text.startswith("✗ adds: PASS -> FAIL\n    expected 5, got 6\n")
    assert '      - "text": "5"\n      + "text": "6"\n' in text
    assert "where:    a.yaml:3" in text
    assert "repeat:   mcptest run a.yaml -k adds" in text
    assert '"type"' not in text, "what did not change is not shown"


@pytest.mark.parametrize("response", ["", '{"text":"6"}'])
def test_without_an_earlier_answer_the_answer_is_shown_as_it_is(response: str) -> None:
    text = "\n".join(lines(Flip(failing(response=response), passing())))
    assert f"response: {response or '(no response)'}" in text
    assert "when it passed" not in text


def test_a_failure_that_passes_is_one_line() -> None:
    assert lines(Flip(passing(), failing())) == ["✓ adds: FAIL -> PASS"]


def test_other_outcomes_have_their_words() -> None:
    skipped = Result("adds", Status.SKIP)
    assert lines(Flip(skipped, passing()))[0].endswith("adds: PASS -> SKIP")
    assert lines(Flip(failing()))[0] == "✗ adds: FAIL"
    assert lines(Flip(failing(), failing()))[0] == "✗ adds: still FAIL, for another reason"


def test_many_flips_are_a_screenful() -> None:
    worse = [Flip(failing(f"t{n}"), passing(f"t{n}")) for n in range(1_000)]
    better = [Flip(passing(f"u{n}"), failing(f"u{n}")) for n in range(1_000)]
    shown = lines(*better, *worse)
    assert len(shown) < 100
    assert shown[0] == "✗ t0: PASS -> FAIL"
    assert sum("more" in line for line in shown) == 2
    assert f"and {1_000 - LINES_SHOWN} more failures" in "\n".join(shown)


def test_a_difference_of_any_size_stays_small_and_in_its_lines() -> None:
    before = passing(response="{" + ",".join(f'"a{n}":1' for n in range(5_000)))
    now = failing(response="{" + ",".join(f'"a{n}":2' for n in range(5_000)))
    shown = lines(Flip(now, before), style=COLOUR)
    assert len(shown) < 40
    assert any("more lines differ" in line for line in shown)


def test_nothing_that_a_peer_says_steers_the_terminal() -> None:
    evil = "\x1b[2J\x07\r\n::error::x\u202e"
    stream = Terminal()
    shown = screen(stream)
    shown.begins(evil, 1)
    shown.result(passing(evil))
    flip = Flip(failing(evil, evil, evil), passing(evil, "{}"))
    shown.ended(RunReport(results=(flip.now,), notes=(evil,)), [flip], WatchTotals(failed=1))
    shown.problems([SuiteProblem(Place(evil), "wrong")])
    shown.note(evil)
    text = stream.getvalue()
    assert "\x1b[2J" not in text
    assert "\x07" not in text
    assert "\u202e" not in text
    assert not any(line.startswith("::") for line in shown_by(text))


def test_a_run_without_a_flip_only_changes_the_line_at_the_bottom() -> None:
    stream = Terminal()
    shown = screen(stream)
    shown.starts(["evals"])
    for number in range(3):
        shown.begins("a.yaml changed", 1)
        shown.result(passing(f"test {number}"))
        shown.ended(RunReport(results=(passing(),), duration_ms=40), [], WatchTotals(passed=1))
    assert stream.getvalue().count("\n") == 1
    assert shown_by(stream.getvalue()) == [
        "watching evals",
        f"1 passed · 10:00:00 a.yaml changed, 1 test in 40ms · {KEYS}",
    ]


def test_what_flipped_stands_above_the_line_at_the_bottom() -> None:
    stream = Terminal()
    shown = screen(stream)
    shown.waiting(WatchTotals(failed=1))
    shown.begins("a.yaml changed", 1)
    flip = Flip(passing(), failing())
    shown.ended(RunReport(results=(flip.now,), duration_ms=40), [flip], WatchTotals(passed=1))
    assert shown_by(stream.getvalue()) == [
        "10:00:00 a.yaml changed: 1 test, 1 passed in 40ms",
        "✓ adds: FAIL -> PASS",
        f"1 passed · 10:00:00 a.yaml changed, 1 test in 40ms · {KEYS}",
    ]
    shown.closes(WatchTotals(passed=1))
    assert shown_by(stream.getvalue())[-1] == "1 passed"


@pytest.mark.parametrize("width", [1, 20, 40, 60, 200])
def test_the_line_at_the_bottom_fits_and_keeps_its_keys(width: int) -> None:
    stream = Terminal()
    shown = screen(stream, width)
    shown.begins("a-rather-long-name-of-a-file.yaml and 17 more changed", 1)
    shown.ended(RunReport(), [], WatchTotals(1, 2, 3, 4, 5))
    shown.waiting(WatchTotals(passed=12))
    line = shown_by(stream.getvalue())[-1]
    assert len(line) <= max(10, width - 1)
    if width >= 40:
        assert line.endswith(KEYS)


def test_without_a_terminal_every_run_is_a_line_and_nothing_is_drawn() -> None:
    stream = io.StringIO()
    shown = screen(stream, keys=False)
    shown.starts(["evals"])
    shown.begins("", 1)
    shown.result(passing())
    shown.ended(RunReport(results=(passing(),), duration_ms=40), [], WatchTotals(passed=1))
    shown.stopping()
    shown.ended(RunReport(results=(), interrupted=True), [], WatchTotals(passed=1))
    shown.closes(WatchTotals(passed=1, skipped=1))
    assert stream.getvalue().splitlines() == [
        "watching evals",
        "10:00:00 1 test, 1 passed in 40ms",
        "1 passed · 1 skipped",
    ]


def test_problems_are_shown_with_their_place_and_so_is_their_end() -> None:
    stream = io.StringIO()
    shown = screen(stream)
    problem = SuiteProblem(Place("a.yaml", 2, 3), "unknown key", "did you mean x?", source="  y: 1")
    shown.problems([problem] * 9)
    assert stream.getvalue().startswith("✗ a.yaml:2:3: unknown key\n")
    assert "did you mean x?" in stream.getvalue()
    assert stream.getvalue().endswith("  and 4 more problems\n")
    shown.problems([])
    assert stream.getvalue().endswith("✓ the suites are valid again\n")


def test_quiet_tells_only_what_goes_wrong() -> None:
    stream = io.StringIO()
    shown = WatchScreen(stream, replace(PLAIN, quiet=True), clock=lambda: "10:00:00")
    better, worse = Flip(passing(), failing()), Flip(failing(), passing())
    shown.ended(RunReport(results=(passing(),)), [], WatchTotals(passed=1))
    shown.ended(RunReport(results=(passing(),)), [better], WatchTotals(passed=1))
    assert stream.getvalue() == ""
    shown.ended(RunReport(results=(failing(),)), [worse, better], WatchTotals(failed=1))
    assert "PASS -> FAIL" in stream.getvalue()
    assert "FAIL -> PASS" not in stream.getvalue()


def test_every_failing_expectation_is_told_when_all_are_asked_for() -> None:
    checks = (FailedCheck("equals", "first"), FailedCheck("contains", "second"))
    flip = Flip(Result("adds", Status.FAIL, detail="first\nsecond", failures=checks))
    brief = "\n".join(flip_lines([flip], PLAIN))
    assert "1 more check failed" in brief
    full = "\n".join(flip_lines([flip], PLAIN, all_failures=True))
    assert "1. first" in full
    assert "2. second" in full
