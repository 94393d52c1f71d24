"""One suite over several servers as a table: a row for each test, a column for each server.

Under the table stands why a cell failed, with the proof.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class _Table:
    languages: Sequence[str]
    rows: dict[Identity, dict[str, list[TestResult]]]
    style: Style
    width: int

    @property
    def titles(self) -> list[str]:
        return list(titles_of(self.rows).values())

    def widths(self) -> list[int]:
        return [max(terminal.cells(show(name, 20)), 5) for name in self.languages]


def render(
    report: RunReport,
    languages: Sequence[str],
    style: Style,
    *,
    verbose: bool = False,
    width: int = 80,
) -> str:
    table = _Table(languages, _rows(report), style, max(width, 40))
    lines = [
        *_table_lines(table),
        "",
        *_failures(report, style, verbose),
        *regression_lines(report, style),
        *note_lines(report, style),
        summary(report, style),
    ]
    return "".join(f"{line}\n" for line in lines)


def _rows(report: RunReport) -> dict[Identity, dict[str, list[TestResult]]]:
    """By test, then by server: the trials."""
    rows: dict[Identity, dict[str, list[TestResult]]] = {}
    for result in report.results:
        test = identity_of(result)._replace(language="")
        rows.setdefault(test, {}).setdefault(result.language, []).append(result)
    return rows


def _table_lines(table: _Table) -> Iterator[str]:
    widths = table.widths()
    room = max(12, table.width - sum(widths) - 2 * len(widths))
    longest = max((terminal.cells(show(title, NAME)) for title in table.titles), default=0)
    room = min(room, max(longest, 6))
    header = [_centred(show(name, 20), w) for name, w in zip(table.languages, widths, strict=True)]
    yield table.style.paint("  ".join([terminal.pad("", room), *header]).rstrip(), "bold")
    for title, cells in zip(table.titles, table.rows.values(), strict=True):
        name = terminal.pad(terminal.cut(show(title, NAME), room), room)
        found = [_cell(cells.get(language), table.style) for language in table.languages]
        shown = [
            _centred(text, width, table.style, colour)
            for (text, colour), width in zip(found, widths, strict=True)
        ]
        yield "  ".join([name, *shown]).rstrip()
    totals = [_centred(text, w) for text, w in zip(_totals(table), widths, strict=True)]
    yield table.style.paint("  ".join([terminal.pad("passed", room), *totals]).rstrip(), "dim")


def _cell(trials: Sequence[TestResult] | None, style: Style) -> tuple[str, str]:
    if not trials:
        return "", "dim"  # it was interrupted before it came to this one
    status = overall(trials)
    return (_SYMBOLS if style.unicode else _WORDS)[status], _COLOURS[status]


def _totals(table: _Table) -> Iterator[str]:
    for language in table.languages:
        cells = [row[language] for row in table.rows.values() if language in row]
        ran = [trials for trials in cells if overall(trials) is not Status.SKIP]
        passed = sum(overall(trials) is Status.PASS for trials in ran)
        yield f"{passed}/{len(ran)}"


def _centred(text: str, width: int, style: Style | None = None, colour: str = "") -> str:
    left = (width - terminal.cells(text)) // 2
    right = width - terminal.cells(text) - left
    painted = style.paint(text, colour) if style is not None and text else text
    return " " * left + painted + " " * max(0, right)


def _failures(report: RunReport, style: Style, verbose: bool) -> Iterator[str]:
    bounds = FULL if verbose else BRIEF
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
