"""A fleet for a terminal: a row for each server, then what is wrong with each, and the summary."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mcptest.model.fleet import FleetReport, FleetServer, ServerOutcome
from mcptest.model.show import show
from mcptest.report import columns
from mcptest.report.compliance_facts import counted
from mcptest.report.fleet_facts import (
    HEADINGS,
    advice_in,
    cells_of,
    repeat_of_hazard,
    summary_in_words,
    wrong_with,
)
from mcptest.report.terminal import Style

_SHOWN = 10
_SHOWN_VERBOSE = 1_000
_HAZARDS_SHOWN = 20
_COLOURS = {
    ServerOutcome.PASSED: "green",
    ServerOutcome.DISABLED: "dim",
}
_RIGHT = frozenset({"audit", "tools", "MUST", "time"})


def fleet_lines(
    report: FleetReport, style: Style, *, verbose: bool = False, quiet: bool = False
) -> Iterator[str]:
    """The whole report, line by line; `quiet` leaves out the servers that passed."""
    rows = [one for one in report.servers if one.outcome.is_bad or not quiet]
    if rows:
        yield from _table(rows, style)
        yield ""
    for server in rows:
        yield from _details(server, style, strict=report.strict, verbose=verbose)
    yield from _hazards(report, style, verbose=verbose)
    for note in report.notes:
        yield f"{style.warning} {show(note, 300)}"
    yield style.paint(summary_in_words(report), "bold")


def _table(rows: Sequence[FleetServer], style: Style) -> Iterator[str]:
    cells = [cells_of(one) for one in rows]
    widths = [
        max(columns.cells(row[place]) for row in (HEADINGS, *cells))
        for place in range(len(HEADINGS))
    ]
    yield style.paint(f"  {_joined(HEADINGS, widths)}", "bold")
    for server, row in zip(rows, cells, strict=True):
        *first, outcome = row
        colour = _COLOURS.get(server.outcome, "red")
        line = _joined((*first, ""), widths)
        yield f"{_sign(server, style)} {line}  {style.paint(outcome, colour)}"


def _joined(row: Sequence[str], widths: Sequence[int]) -> str:
    padded = [
        " " * (width - columns.cells(text)) + text
        if heading in _RIGHT
        else columns.pad(text, width)
        for heading, text, width in zip(HEADINGS, row, widths, strict=True)
    ]
    return "  ".join([*padded[:-1], row[-1]]).rstrip() if row[-1] else "  ".join(padded[:-1])


def _sign(server: FleetServer, style: Style) -> str:
    if server.outcome is ServerOutcome.PASSED:
        return style.tick
    return style.dash if server.outcome is ServerOutcome.DISABLED else style.cross


def _details(server: FleetServer, style: Style, *, strict: bool, verbose: bool) -> Iterator[str]:
    wrong = list(wrong_with(server, strict=strict, advice=verbose))
    left = 0 if verbose else advice_in(server, strict=strict)
    if not wrong and not (left and server.outcome.is_bad):
        return
    sign = style.cross if server.outcome.is_bad else style.warning
    yield f"{sign} {style.paint(show(server.name, 120), 'bold')}"
    shown = _SHOWN_VERBOSE if verbose else _SHOWN
    for one in wrong[:shown]:
        mark = style.cross if one.counts else style.warning
        yield f"    {mark} {one.what}"
        if one.repeat:
            yield f"        {style.paint('again', 'dim')}  {one.repeat}"
    if len(wrong) > shown:
        yield f"    and {len(wrong) - shown} more: --verbose shows them"
    if left:
        yield f"    {style.warning} {counted(left, 'recommendation')} not followed: --verbose shows"
    yield ""


def _hazards(report: FleetReport, style: Style, *, verbose: bool) -> Iterator[str]:
    if not report.hazards:
        return
    yield style.paint("Between the servers", "bold")
    shown = _SHOWN_VERBOSE if verbose else _HAZARDS_SHOWN
    for hazard in report.hazards[:shown]:
        yield f"    {style.cross} {hazard.id} {show(hazard.message, 1_000)}"
        again = show(repeat_of_hazard(report, hazard), 4_000)
        yield f"        {style.paint('again', 'dim')}  {again}"
        if verbose and len(hazard.names) > 1:
            yield from (f"        {show(name, 300)}" for name in hazard.names[:_SHOWN_VERBOSE])
    if len(report.hazards) > shown:
        yield f"    and {len(report.hazards) - shown} more: --verbose shows them"
    rules = dict.fromkeys(hazard.id for hazard in report.hazards)
    for rule in rules:
        yield f"        {style.paint('why', 'dim')}  mcptest explain {show(rule, 60)}"
    yield ""
