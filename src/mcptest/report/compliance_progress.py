"""`[37/168] TOOLS-004` while a server is judged: on stderr, only for a person who is looking."""

from __future__ import annotations

from typing import TextIO

from mcptest.model.compliance_events import Event, JudgingBegan
from mcptest.report.progress import StatusLine
from mcptest.report.terminal import Style


class JudgingProgress:
    """Give it to whoever judges as the listener of events; close it before the report."""

    def __init__(self, stream: TextIO, style: Style, width: int = 80) -> None:
        self._line = StatusLine(stream, style, width)
        self._revision = ""

    def __call__(self, event: Event) -> None:
        if isinstance(event, JudgingBegan):
            self._revision = f" {event.revision}"
            self._line.draw(f"[0/{event.rules}]", f"{event.server}{self._revision}")
        else:
            self._line.draw(f"[{event.done}/{event.total}]", f"{event.id}{self._revision}")

    def close(self) -> None:
        self._line.clear()
