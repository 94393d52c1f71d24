"""How far judging has come, for the live display: each rule, and what breaks a MUST at once."""

from __future__ import annotations

from mcptest.model.compliance_events import Event, JudgingBegan
from mcptest.report.progress import Progress


class JudgingProgress:
    """Give it to whoever judges as the listener of events."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._revision = ""

    def __call__(self, event: Event) -> None:
        if isinstance(event, JudgingBegan):
            self._revision = str(event.revision)
            self._progress.reach(0, event.rules, f"{event.server} {self._revision}")
            return
        self._progress.reach(event.done, event.total, f"{event.id} {self._revision}")
        if event.failed:
            self._progress.fail(f"{event.id} {self._revision}", event.title)
