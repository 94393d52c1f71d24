"""One suite over several servers as a table: a row for each test, a column for each server.

Under the table stands why a cell failed, with the proof.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from mcptest.core import safe_text
from mcptest.core.results import RunReport, Status, TestResult
from mcptest.core.safe_text import show
from mcptest.report import terminal
from mcptest.report.evidence import BRIEF, FULL, detail_lines, proof_lines
from mcptest.report.reliability import Identity, failed_tests, identity_of, overall, titles_of
from mcptest.report.run_results import note_lines, regression_lines, summary
from mcptest.report.terminal import Style

NAME = 60
FAILURES_SHOWN = 100
_SYMBOLS = {Status.PASS: "✓", Status.FAIL: "✗", Status.SKIP: "○"}
_WORDS = {Status.PASS: "ok", Status.FAIL: "FAIL", Status.SKIP: "skip"}
_COLOURS = {Status.PASS: "green", Status.FAIL: "red", Status.SKIP: "yellow"}


_Rows: TypeAlias = dict[Identity, dict[str, list[TestResult]]]
"""By test, then by server: the trials."""


def render(report: RunReport, style: Style, *, languages: Sequence[str]) -> str:
    lines = [
        *_table_lines(_rows(report), languages, style),
        "",
        *_failures(report, style),
        *regression_lines(report, style),
        *note_lines(report, style),
        summary(report, style),
    ]
    return "".join(f"{line}\n" for line in lines)


def _rows(report: RunReport) -> _Rows:
    rows: _Rows = {}
    for result in report.results:
        test = identity_of(result)._replace(language="")
        rows.setdefault(test, {}).setdefault(result.language, []).append(result)
    return rows


def _table_lines(rows: _Rows, languages: Sequence[str], style: Style) -> Iterator[str]:
    titles = titles_of(rows).values()
    widths = [max(safe_text.cells(show(name, 20)), 5) for name in languages]
    room = max(12, max(style.width, 40) - sum(widths) - 2 * len(widths))
    longest = max((safe_text.cells(show(title, NAME)) for title in titles), default=0)
    room = min(room, max(longest, 6))
    header = [_centred(show(name, 20), w) for name, w in zip(languages, widths, strict=True)]
    yield style.paint("  ".join([terminal.pad("", room), *header]).rstrip(), "bold")
    for title, cells in zip(titles, rows.values(), strict=True):
        name = terminal.pad(terminal.cut(show(title, NAME), room), room)
        shown = []
        for language, across in zip(languages, widths, strict=True):
            trials = cells.get(language)
            if trials:
                status = overall(trials)
                text = (_SYMBOLS if style.unicode else _WORDS)[status]
                shown.append(_centred(text, across, style, _COLOURS[status]))
            else:  # it was interrupted before it came to this one
                shown.append(" " * across)
        yield "  ".join([name, *shown]).rstrip()
    totals = [_centred(_total(rows, one), w) for one, w in zip(languages, widths, strict=True)]
    yield style.paint("  ".join([terminal.pad("passed", room), *totals]).rstrip(), "dim")


def _total(rows: _Rows, language: str) -> str:
    found = [overall(row[language]) for row in rows.values() if language in row]
    ran = [status for status in found if status is not Status.SKIP]
    return f"{ran.count(Status.PASS)}/{len(ran)}"


def _centred(text: str, width: int, style: Style | None = None, colour: str = "") -> str:
    left = (width - safe_text.cells(text)) // 2
    right = width - safe_text.cells(text) - left
    painted = style.paint(text, colour) if style is not None and text else text
    return " " * left + painted + " " * max(0, right)


def _failures(report: RunReport, style: Style) -> Iterator[str]:
    bounds = FULL if style.verbose else BRIEF
    failed = failed_tests(report)
    for test in failed[:FAILURES_SHOWN]:
        yield f"{style.cross} {style.paint(show(test.title, 300), 'bold')}"
        for line in detail_lines(test.first, bounds):
            yield f"    {style.paint(line, 'red')}"
        for label, text in proof_lines(test.first, bounds):
            yield f"    {style.paint(f'{label}:'.ljust(10), 'dim')}{text}"
        yield ""
    if len(failed) > FAILURES_SHOWN:
        yield f"and {len(failed) - FAILURES_SHOWN} more"
        yield ""
