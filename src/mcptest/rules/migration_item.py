"""One thing that may break a server on its way from revision to revision."""

from __future__ import annotations

from dataclasses import dataclass

from mcptest.model.revision import Revision


@dataclass(frozen=True, slots=True)
class MigrationItem:
    """One thing that a revision changed."""

    id: str
    since: Revision
    title: str
    change: str
    """What was, and what is now."""
    looks_for: str
    """What the probe sends and which answer means what."""
    rules: tuple[str, ...]
    fix: str
    until: Revision | None = None
    """The revision that took it back."""
    standing: bool = False
    """Looked at on every way to a revision that has it: deployments lag behind their revision."""

    def is_on_the_way(self, older: Revision, newer: Revision) -> bool:
        if newer < self.since or (self.until is not None and newer >= self.until):
            return False
        return self.standing or older < self.since
