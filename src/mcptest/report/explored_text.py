"""How the texts about a server begin and end: who it is, what it speaks, and what to do next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from mcptest.model.show import show
from mcptest.report.terminal import Style

_REASON = 240
_REVISION = 40


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
    def revision_reason(self) -> str: ...
    @property
    def notes(self) -> Sequence[str]: ...


def heading(report: OfAServer) -> str:
    name = show(report.server_name or report.server, 80)
    version = f" {show(report.server_version, 40)}" if report.server_version else ""
    return f"{name}{version} over {report.transport}, {report.revision}"


def why_revision(revision: object, reason: str) -> str:
    """The revision with its reason; the revision alone where none is known."""
    spoken = show(str(revision), _REVISION)
    return f"{spoken}: {show(reason, _REASON)}" if reason else spoken


def why_lines(report: OfAServer, style: Style) -> Iterator[str]:
    """Why the server was spoken to in that revision, where that is known."""
    if report.revision_reason:
        yield style.paint(why_revision(report.revision, report.revision_reason), "dim")


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
