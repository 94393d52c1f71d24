"""The end of a report on a run, as one would paste it into an issue: what was slow, what failed.

Each failure with its place, its reason and the command that repeats it, in three lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mcptest.model.results import RunReport, Status, TestResult
from mcptest.model.show import show
from mcptest.report import columns
from mcptest.report.evidence import first_line
from mcptest.report.reliability import Identity, identity_of
from mcptest.report.terminal import Style

SCREEN = 30
"""Lines of a report after which its beginning may have scrolled away."""
SLOWEST_SHOWN = 3
FAILURES_SHOWN = 20
_NAME = 300
_REASON = 200
_COMMAND = 4_000


def slowest_lines(report: RunReport, titles: Mapping[Identity, str], style: Style) -> Iterator[str]:
    ran = [result for result in report.results if result.status is not Status.SKIP]
    slowest = sorted(ran, key=lambda result: -result.duration_ms)[:SLOWEST_SHOWN]
    if not slowest:
        return
    yield style.paint("slowest:", "dim")
    for result in slowest:
        name = show(titles[identity_of(result)], _NAME)
        yield f"  {columns.duration(result.duration_ms):>8}  {name}"
    yield ""


def failed_lines(
    report: RunReport, titles: Mapping[Identity, str], style: Style, width: int | None = None
) -> Iterator[str]:
    """Of a test with trials, the first that failed. Only a terminal has a width."""
    failed: dict[Identity, TestResult] = {}
    for result in report.results:
        if result.status is Status.FAIL:
            failed.setdefault(identity_of(result), result)
    if not failed:
        return
    yield style.paint("failed:", "red")
    for identity, result in list(failed.items())[:FAILURES_SHOWN]:
        yield from _failure(show(titles[identity], _NAME), result, style, width)
    if len(failed) > FAILURES_SHOWN:
        yield f"  and {len(failed) - FAILURES_SHOWN} more"
    yield ""


def _failure(name: str, result: TestResult, style: Style, width: int | None) -> Iterator[str]:
    line = f":{result.line}" if result.line else ""
    place = show(f"{result.file}{line}", 500) if result.file else ""
    beside = width is None or columns.cells(name) + columns.cells(place) + 4 <= width
    first = _fitted(name, width, 2)
    yield from (f"  {style.paint(piece, 'bold')}" for piece in first[:-1])
    tail = f"  {style.paint(place, 'dim')}" if place and beside else ""
    yield f"  {style.paint(first[-1], 'bold')}{tail}"
    if place and not beside:
        yield from (f"    {style.paint(piece, 'dim')}" for piece in _fitted(place, width, 4))
    if result.detail:
        yield from (f"    {p}" for p in _fitted(first_line(result.detail, _REASON), width, 4))
    if result.proof is not None and result.proof.repeat:  # for copying, so it stays in one piece
        yield f"    {show(result.proof.repeat, _COMMAND)}"


def _fitted(text: str, width: int | None, taken: int) -> list[str]:
    return [text] if width is None else columns.wrap(text, max(10, width - taken))
