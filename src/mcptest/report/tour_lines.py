"""What a drive through a server tells while it happens. Reporters only read these."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TextIO, TypeAlias

from mcptest.core.revision import Revision
from mcptest.core.safe_text import show
from mcptest.report.terminal import Style, why_revision

StepOutcome: TypeAlias = Literal["done", "refused", "skipped", "doubtful", "malformed", "failed"]


@dataclass(frozen=True, slots=True)
class SessionBegan:
    """The handshake or discovery went well."""

    revision: Revision
    server: str
    capabilities: tuple[str, ...]
    reason: str = ""
    """Why this revision is spoken."""


@dataclass(frozen=True, slots=True)
class StepTaken:
    """One thing was asked of the server.

    `refused` is an error answer, which a server may well give; `malformed` is one whose form no
    client should accept, `doubtful` one that clients may read in different ways; `failed` means
    that there was no usable answer, or no way to ask.
    """

    what: str
    outcome: StepOutcome
    detail: str = ""


Event: TypeAlias = SessionBegan | StepTaken


@dataclass(frozen=True, slots=True)
class RecordingSummary:
    """What became of a recording."""

    path: Path
    messages: int
    written: bool
    problem: str = ""
    older_kept: bool = False
    """An earlier capture of that name was left as it was."""


# -- What a person sees while a server is toured and recorded ------------------------------------


class RecordingReport:
    """Progress goes to `progress` line by line, the result to `out`."""

    def __init__(
        self,
        progress: TextIO,
        out: TextIO,
        *,
        quiet: bool,
        no_color: bool,
        mask: Callable[[str], str] = str,
    ) -> None:
        """`mask` is put between everything that a server said and the reader."""
        self.failed = 0
        self._progress = progress
        self._out = out
        self._quiet = quiet
        self._mask = mask
        self._style = Style.of(progress, no_color=no_color)

    def take(self, event: Event) -> None:
        if isinstance(event, SessionBegan):
            declared = self._mask(", ".join(event.capabilities)) or "no capabilities"
            title = self._style.paint(self._mask(event.server), "bold")
            self._line(f"{title}  MCP {event.revision}  {self._style.paint(declared, 'dim')}")
            if event.reason:
                why = why_revision(event.revision, self._mask(event.reason))
                self._line(f"  {self._style.paint(why, 'dim')}")
            return
        style = self._style
        is_bad = event.outcome in {"malformed", "failed"}
        symbol = style.cross if is_bad else style.warning
        symbol = {"done": style.tick, "skipped": style.dash}.get(event.outcome, symbol)
        self.failed += is_bad
        what = self._mask(event.what)
        detail = style.paint(show(self._mask(event.detail), 300), "dim") if event.detail else ""
        is_odd = is_bad or event.outcome == "doubtful"
        self._line(f"  {symbol} {what:<40} {detail}".rstrip(), always=is_odd)

    def finish(self, summary: RecordingSummary) -> None:
        if summary.problem:
            self._line(f"mcptest: {summary.path} is not complete: {summary.problem}", always=True)
        elif summary.older_kept:
            self._line(f"the session never began; {summary.path} was left as it was", always=True)
        elif not summary.written:
            self._line("nothing was recorded; no file was written", always=True)
        elif not self._quiet:
            path = shlex.quote(str(summary.path))
            self._out.write(
                f"recorded {summary.messages} messages to {summary.path}\n"
                f"judge it: mcptest compliance invariants --capture {path}\n"
            )

    def _line(self, text: str, *, always: bool = False) -> None:
        if always or not self._quiet:
            self._progress.write(text + "\n")
            self._progress.flush()
