"""A run of property tests: every property that was asked for, and one report of them all."""

from __future__ import annotations

import datetime
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from mcptest import __version__
from mcptest.explore.audit import unchecked_schemas
from mcptest.model.deadline import Deadline, cancellation
from mcptest.model.errors import ErrorKind, PeerError, UsageError
from mcptest.model.property import PropertyReport
from mcptest.model.redaction import redaction
from mcptest.model.revision import revision_of_wire
from mcptest.model.show import show
from mcptest.peer.connection import Stopped
from mcptest.run.properties.catalogue import PROPERTIES, ground_of
from mcptest.run.properties.examples import Example
from mcptest.run.properties.one_after_the_other import Done, OneAfterTheOther, Tell
from mcptest.run.properties.order import PropertyOrder
from mcptest.run.properties.stage import Stage, Whom


def run_properties(
    order: PropertyOrder, begins: Tell = lambda name: None, ends: Tell = lambda name: None
) -> PropertyReport:
    """Try every property that was asked for. Raises PeerError when the server can't be reached.

    `begins` hears the name of each property before it is tried, `ends` afterwards.
    """
    return _Run(order, begins, ends).report()


def replay_example(order: PropertyOrder, example: Example) -> PropertyReport:
    """Try one counterexample again. Raises PeerError when the server can't be reached."""
    if example.of_property not in PROPERTIES:
        raise UsageError(f"there is no property {example.of_property!r}")
    asked = order.revision or revision_of_wire(example.revision)
    return _Run(msgspec.structs.replace(order, revision=asked), only=example).report()


class _Run:
    def __init__(
        self,
        order: PropertyOrder,
        begins: Tell = lambda name: None,
        ends: Tell = lambda name: None,
        only: Example | None = None,
    ) -> None:
        limit = order.limit or Deadline.after(order.max_time)
        self.order = order = msgspec.structs.replace(order, limit=limit)
        self.only = only
        self.begins = begins
        self.ends = ends
        self.begun = time.monotonic()
        self.started = datetime.datetime.now(datetime.UTC)
        self.stage = Stage(
            Whom(
                target=order.target,
                revision=order.revision,
                timeout=order.timeout,
                startup=order.startup,
                should_stop=order.is_over,
                limit=limit,
            )
        )
        self.done = Done()

    def report(self) -> PropertyReport:
        try:
            self._meet()
            with cancellation.heeding(self.order.is_over):
                self.done = self._run_all()
        finally:
            self.stage.close()
        facts = self.stage.facts
        assert facts is not None  # the server was met
        order, done = self.order, self.done
        mask = redaction.text
        return PropertyReport(
            server=mask(order.target.label),
            server_name=show(str(facts.info.get("name") or ""), 120),
            server_version=show(str(facts.info.get("version") or ""), 60),
            transport=facts.met.transport,
            revision=self.stage.revision.value,
            revision_reason=mask(facts.met.reason),
            seed=order.seed,
            wanted=order.examples,
            properties=done.results,
            notes=(*_slow_tools(done.slow_tools), *done.troubles),
            problems=tuple(map(mask, self._problems(facts.offer.tools))),
            restarts=max(0, done.starts - 1),
            strict=order.strict,
            started=self.started.isoformat(timespec="seconds"),
            duration_ms=round((time.monotonic() - self.begun) * 1000),
            interrupted=done.interrupted,
            tool=f"mcptest {__version__}",
        )

    def _problems(self, tools: Iterable[Any]) -> Iterator[str]:
        yield from self.stage.endless.values()
        yield from unchecked_schemas(tools)

    def _meet(self) -> None:
        try:
            self.stage.open()
        except Stopped:
            if self.order.is_interrupted:
                raise
            message = f"{self.order.out_of_time}: the server was not met by then"
            raise PeerError(ErrorKind.TIMEOUT, message, hint="--max-time gives it longer") from None

    def _run_all(self) -> Done:
        facts = self.stage.facts
        assert facts is not None  # the server was met
        order = self.order
        ground = ground_of(self.stage.revision, facts.met.transport, facts.offer, order.allow_tools)
        if self.only is not None:
            return OneAfterTheOther(order, self.stage, ground).replayed(self.only)
        names = order.properties or tuple(PROPERTIES)
        workers = min(order.jobs, len(names)) if order.target.way == "stdio" else 1
        if workers > 1 and hasattr(os, "fork"):
            from mcptest.run.properties.side_by_side import Team

            team = Team(order, self.stage, ground, names, self.begins, self.ends)
            return team.done(workers)
        return OneAfterTheOther(order, self.stage, ground).all_of(names, self.begins, self.ends)


def _slow_tools(slow: Mapping[str, str]) -> Iterator[str]:
    for tool, how in slow.items():
        yield f"{show(tool, 80)} {how}, and was called no more: --timeout gives it longer"
