"""How the texts about an explored server begin and end: who it is, and what to do next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from mcptest.model.show import show
from mcptest.report.terminal import Style


class OfAServer(Protocol):
    """What the reports of `audit`, `fuzz` and `property` have in common."""

    @property
    def server(self) -> str: ...
    @property
    def server_name(self) -> str: ...
    @property
    def server_version(self) -> str: ...
    @property
    def transport(self) -> str: ...
    @property
    def revision(self) -> object: ...
    @property
    def notes(self) -> Sequence[str]: ...


def heading(report: OfAServer) -> str:
    name = show(report.server_name or report.server, 80)
    version = f" {show(report.server_version, 40)}" if report.server_version else ""
    return f"{name}{version} over {report.transport}, {report.revision}"


def closing_lines(
    report: OfAServer, summary: str, steps: Sequence[str], style: Style
) -> Iterator[str]:
    """The notes, the summary, and what to do next."""
    for note in report.notes:
        yield f"{style.warning} {show(note, 300)}"
    yield style.paint(summary, "bold")
    if steps:
        yield ""
        yield "Next steps:"
        yield from (f"  {number}. {step}" for number, step in enumerate(steps, 1))
