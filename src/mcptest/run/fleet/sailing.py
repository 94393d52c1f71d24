"""One fleet from its configuration to its report."""

from __future__ import annotations

import datetime
import shlex
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import msgspec
from msgspec.structs import replace

from mcptest import __version__
from mcptest.model.fleet import FleetReport, FleetServer, Found, OfferedNames
from mcptest.run.fleet.concluding import (
    disabled_row,
    exit_code_of,
    hazards_among,
    notes_on,
    row_of,
)
from mcptest.run.fleet.config import ConfiguredServer, servers_of
from mcptest.run.fleet.order import ServerOrder
from mcptest.run.interrupt import Stop
from mcptest.suite.written_names import FileNames

Results = Iterator[tuple[int, Found]]
"""What was found, each with the number of its order, as they come."""
Judges = Callable[[Sequence[ServerOrder], Stop], AbstractContextManager[Results]]
"""Whoever carries orders out: processes here, or a cluster."""


class FleetOrder(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be judged and how."""

    config: Path
    wanted: tuple[str, ...] = ()
    revision: str = ""
    timeout: float = 30.0
    audit_timeout: float = 15.0
    startup: float = 30.0
    limit: float = 300.0
    strict: bool = False
    min_grade: str = ""
    min_score: int | None = None
    prefixed: bool = False
    """The client puts the server's name before the names of tools and prompts."""
    captures: Path | None = None
    clean_env: bool = False
    again: tuple[str, ...] = ()
    """Options that belong to the commands that repeat."""


class Fleet:
    """The servers of one configuration. UsageError when it can't be used; nothing is run yet."""

    def __init__(self, order: FleetOrder) -> None:
        self._order = order
        self._servers = servers_of(order.config, order.wanted, clean_env=order.clean_env)
        self.orders = [*self._orders()]

    def _orders(self) -> Iterator[ServerOrder]:
        names = FileNames()
        order = self._order
        for server in self._servers:
            if server.target is None:
                continue
            folder = ""
            if order.captures is not None:
                name = names.name_for(server.name).removesuffix(".yaml")
                folder = str(order.captures.absolute() / name)
            yield ServerOrder(
                name=server.name,
                target=server.target,
                revision=order.revision,
                timeout=order.timeout,
                audit_timeout=order.audit_timeout,
                startup=order.startup,
                limit=order.limit,
                strict=order.strict,
                min_grade=order.min_grade,
                min_score=order.min_score,
                captures=folder,
                repeat_compliance=self._repeat("compliance run", server),
                repeat_audit=self._repeat("audit", server),
            )

    def _repeat(self, command: str, server: ConfiguredServer) -> str:
        """A command that holds no secret: they stay in the file."""
        named = ("--mcp-config", str(self._order.config), "--server", server.name)
        return f"mcptest {command} {shlex.join((*named, *self._order.again))}"

    def judged(
        self, judges: Judges, stop: Stop, tell: Callable[[FleetServer], None]
    ) -> FleetReport:
        """Every server, in the order of the configuration, whatever came first."""
        begun = time.monotonic()
        started = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        rows: dict[str, FleetServer] = {}
        offers: dict[str, OfferedNames | None] = {}
        if self.orders:
            with judges(self.orders, stop) as results:
                for number, found in results:
                    order = self.orders[number]
                    rows[order.name] = row_of(found, order.repeat_compliance)
                    offers[order.name] = found.offered
                    tell(rows[order.name])
        in_order = tuple(rows.get(one.name) or _row_without(one) for one in self._servers)
        offers = {row.name: offers[row.name] for row in in_order if row.name in offers}
        hazards = hazards_among(offers, prefixed=self._order.prefixed)
        report = FleetReport(
            config=str(self._order.config),
            servers=in_order,
            hazards=hazards,
            tool=f"mcptest {__version__}",
            started=started,
            duration_ms=round((time.monotonic() - begun) * 1000),
            interrupted=stop.is_set(),
            strict=self._order.strict,
            notes=tuple(notes_on(offers)),
        )
        return replace(report, exit_code=exit_code_of(in_order, hazards, interrupted=stop.is_set()))


def _row_without(server: ConfiguredServer) -> FleetServer:
    """Of a server that nobody told anything about."""
    if server.target is None:
        return disabled_row(server.name)
    return row_of(Found(server.name))
