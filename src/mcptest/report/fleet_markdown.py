"""A fleet as markdown, for a step summary or a comment."""

from __future__ import annotations

from collections.abc import Iterator

from mcptest.model.fleet import FleetReport, FleetServer
from mcptest.report.fleet_facts import HEADINGS, cells_of, summary_in_words, wrong_with
from mcptest.report.markdown import code

_SHOWN = 50
_ROWS = 1_000


def fleet_as_markdown(report: FleetReport) -> str:
    return "\n".join(_lines(report)) + "\n"


def _lines(report: FleetReport) -> Iterator[str]:
    yield f"### Servers of {code(report.config)}"
    yield ""
    yield f"**{code(summary_in_words(report))}**"
    yield ""
    yield "| " + " | ".join(HEADINGS) + " |"
    yield "|---" * len(HEADINGS) + "|"
    for server in report.servers[:_ROWS]:
        yield "| " + " | ".join(code(cell) if cell else "" for cell in cells_of(server)) + " |"
    if len(report.servers) > _ROWS:
        yield ""
        yield f"And {len(report.servers) - _ROWS} more."
    for server in report.servers[:_ROWS]:
        yield from _details(server, strict=report.strict)
    if report.hazards:
        yield ""
        yield "#### Between the servers"
        yield ""
        yield from (f"- {one.id}: {code(one.message, 600)}" for one in report.hazards[:_SHOWN])
        if len(report.hazards) > _SHOWN:
            yield f"- and {len(report.hazards) - _SHOWN} more"
    if report.notes:
        yield ""
        yield from (f"- {code(note, 300)}" for note in report.notes)


def _details(server: FleetServer, *, strict: bool) -> Iterator[str]:
    wrong = list(wrong_with(server, strict=strict))
    if not wrong:
        return
    yield ""
    yield f"#### {code(server.name)}"
    yield ""
    for one in wrong[:_SHOWN]:
        again = f"<br>again: {code(one.repeat, 4_000)}" if one.repeat else ""
        yield f"- {code(one.what, 1_000)}{again}"
    if len(wrong) > _SHOWN:
        yield f"- and {len(wrong) - _SHOWN} more"
