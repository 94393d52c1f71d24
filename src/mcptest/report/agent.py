"""A run for a program that reads text, and that acts on it: a verdict, then a line per failure.

Each line begins with the command that repeats the failure, and everything else is a comment of the
shell. What a server says can so never stand where a command is expected.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping

import msgspec

from mcptest.core.errors import ExitCode
from mcptest.core.results import RunReport, Status, TestResult
from mcptest.core.safe_text import show
from mcptest.report.evidence import BRIEF, detail_lines
from mcptest.report.reliability import failed_tests, hidden_regressions
from mcptest.report.terminal import duration

LINES = 100
"""Whoever reads this pays by the word."""
_COMMAND = 4_000
_DETAIL = 400
_VERDICTS: Mapping[int, str] = {
    ExitCode.OK: "PASS",
    ExitCode.NOTHING_MATCHED: "NOTHING RAN",
    ExitCode.INTERRUPTED: "INTERRUPTED",
}


def render(
    report: RunReport,
    code: int,
    *,
    excused: Mapping[str, str] = {},
    headline: str = "",
    repeat: str = "",
) -> bytes:
    """`code` is the exit code. `headline`: more for the first line, such as a grade. `repeat`: for
    failures that have no command of their own."""
    verdict, counts = _VERDICTS.get(code, "FAIL"), _counts(report, excused)
    lines = [f"{verdict}: " + ", ".join(filter(None, (headline, counts)))]
    told = [test for test in failed_tests(report) if test.first.name not in excused]
    for test in told[:LINES]:
        often = f" ({test.failed} of {test.trials} trials)" if test.trials > 1 else ""
        lines.append(_failure(test.first, show(test.title, 300) + often, repeat))
    if len(told) > LINES:
        lines.append(f"# and {len(told) - LINES} more: --json-file FILE keeps all")
    for one in hidden_regressions(report)[:LINES]:
        said = f"was {show(one.was, 20)}, now {show(one.now, 20)}"
        lines.append(f"# regression: {show(one.name, 300)}: {said}")
    lines += (f"# note: {show(note, 300)}" for note in report.notes[:10])
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "backslashreplace")


def _counts(report: RunReport, excused: Mapping[str, str]) -> str:
    known = sum(
        result.status is Status.FAIL and result.name in excused for result in report.results
    )
    parts = (
        (report.failed - known, "failed"),
        (known, "failed as expected"),
        (report.passed, "passed"),
        (report.skipped, "skipped"),
    )
    told = ", ".join(f"{number} {word}" for number, word in parts if number)
    return f"{told or 'no results'} in {duration(report.duration_ms)}"


def _failure(result: TestResult, title: str, repeat: str) -> str:
    own = result.proof.repeat if result.proof is not None else ""
    command = _whole(own or repeat)
    place = f"{show(result.file, 300)}:{result.line}: " if result.file and result.line else ""
    first = msgspec.structs.replace(result, failures=result.failures[:1])
    said = " / ".join(line.strip() for line in detail_lines(first, BRIEF))
    more = len(result.failures) - 1
    also = f" (and {more} more)" if more > 0 else ""
    comment = f"# {place}{title}: {show(said, _DETAIL)}{also}"
    return f"{command}  {comment}" if command else comment


def _whole(command: str) -> str:
    """Nothing, where it was cut: a quote that stays open would take in the comment behind it."""
    shown = show(command, _COMMAND)
    if len(command) > _COMMAND or not shown.startswith("mcptest "):
        return ""
    try:
        shlex.split(shown)
    except ValueError:
        return ""
    return shown
