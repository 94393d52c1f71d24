"""One server to be judged: as it is told to whoever does it, and what comes back."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from mcptest.core.errors import UsageError
from mcptest.report.fleet import FleetServer, ServerOutcome
from mcptest.session.server_spec import ServerWords, configured_target, no_such_server, servers_in
from mcptest.transport.target import Target


class FleetServerOrder(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a process on another machine needs to know. It holds secrets."""

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
    until: float = 0.0
    """When that is over, on the monotonic clock of the machine that judges it."""
    strict: bool = False
    min_grade: str = ""
    min_score: int | None = None
    captures: str = ""
    """A folder, if what goes over the wire is to be kept."""
    repeat_compliance: str = ""
    repeat_audit: str = ""

    def __repr__(self) -> str:
        """Without secrets: others may write our arguments into their logs."""
        return f"FleetServerOrder({self.name!r})"


class OfferedNames(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a server lists, by name: where two list the same, a client can't tell them apart."""

    tools: tuple[str, ...] = ()
    prompts: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    left_out: int = 0
    """Names that are too long or too many to be compared."""


class Found(msgspec.Struct, frozen=True):
    """What came of one server: as it comes back from wherever it was judged, without secrets."""

    server: FleetServer
    offered: OfferedNames | None = None

    @classmethod
    def nothing(cls, name: str, outcome: ServerOutcome, reason: str) -> Found:
        return cls(FleetServer(name, outcome, reason))


# -- The servers of a client configuration -------------------------------------------------------

_TOLD = 20


class ConfiguredServer(msgspec.Struct, frozen=True):
    """One entry. Without a target it is not to be judged, since it is disabled."""

    name: str
    target: Target | None = None


def servers_of(
    path: Path, wanted: Sequence[str] = (), *, clean_env: bool = False
) -> list[ConfiguredServer]:
    """The servers in the order of the file; of those, the wanted. UsageError with the place."""
    entries = servers_in(path)
    for name in wanted:
        if name not in entries:
            raise no_such_server(name, entries, path)
    chosen = {name: entry for name, entry in entries.items() if not wanted or name in wanted}
    servers: list[ConfiguredServer] = []
    wrong: list[str] = []
    words = ServerWords(clean_env=clean_env)
    for name, entry in chosen.items():
        switches = entry if isinstance(entry, dict) else {}
        is_off = switches.get("disabled") is True or switches.get("enabled") is False
        if is_off and name not in wanted:
            servers.append(ConfiguredServer(name))
            continue
        try:
            servers.append(ConfiguredServer(name, configured_target(name, entry, path, words)))
        except UsageError as error:
            wrong.append(error.message)
    if wrong:
        more = f"\n  and {len(wrong) - _TOLD} more" if len(wrong) > _TOLD else ""
        raise UsageError(
            "\n  ".join(wrong[:_TOLD]) + more,
            hint="fix it, or name the servers to judge with --server NAME",
        )
    return servers
