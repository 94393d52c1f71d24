"""One server to be judged, as it is told to whoever does it. It holds secrets."""

from __future__ import annotations

import msgspec

from mcptest.transport.target import Target


class ServerOrder(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a process on another machine needs to know."""

    name: str
    target: Target
    revision: str = ""
    """Empty: the newest that the server speaks."""
    timeout: float = 30.0
    """For each request of judging."""
    audit_timeout: float = 15.0
    """For each call of the audit."""
    startup: float = 30.0
    limit: float = 300.0
    """For everything that is asked of this server."""
    strict: bool = False
    min_grade: str = ""
    min_score: int | None = None
    captures: str = ""
    """A folder, if what goes over the wire is to be kept."""
    repeat_compliance: str = ""
    repeat_audit: str = ""

    def __repr__(self) -> str:
        """Without secrets: others may write our arguments into their logs."""
        return f"ServerOrder({self.name!r})"
