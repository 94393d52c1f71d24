"""A run of property tests: every property that was asked for, and one report of them all."""

from __future__ import annotations

import math
import os
import time
import zlib
from collections.abc import Callable, Mapping, Sequence

import msgspec

from mcptest.core.errors import ErrorKind, PeerError, UsageError
from mcptest.core.limits import Deadline, cancellation
from mcptest.core.redaction import redaction
from mcptest.core.revision import revision_of_wire
from mcptest.core.safe_text import show
from mcptest.probe.counterexamples import Examples, SavedExample
from mcptest.probe.live_server import head_of
from mcptest.probe.properties.player import ExampleServer
from mcptest.probe.properties.property_catalogue import PROPERTIES, PropertyOrder
from mcptest.probe.properties.property_run import PropertyRun
from mcptest.probe.properties.steps import Relate
from mcptest.report.property import PropertyReport, PropertyResult
from mcptest.schema.tool_inputs import unchecked_schemas
from mcptest.session.connection import Stopped

# -- Properties on one server, one after the other, and the time that each of them may take ------

Tell = Callable[[str], None]
_LARGEST_SEED = 2**63
_INTERRUPTED = "interrupted"


class Done(msgspec.Struct, frozen=True):
    """What came of several properties, and what else is to be said."""

    results: tuple[PropertyResult, ...] = ()
    slow_tools: Mapping[str, str] = {}
    troubles: tuple[str, ...] = ()
    starts: int = 0
    """How often a server was started."""
    interrupted: bool = False
    no_server: str = ""
    """Of a worker: why it can't work at all: a server that can't be there twice, perhaps."""
    defect: str = ""
    """Of a worker: what it failed over, as a traceback."""


class OneAfterTheOther:
    """One server that serves one property after the other."""

    def __init__(self, stage: ExampleServer) -> None:
        self.order = stage.order
        self.stage = stage
        self.examples = Examples(stage.order.database, stage.order.target)
        self.interrupted = False
        self.tried = 0
        """How many properties the server was there for."""
        self.lost = ""
        """Why the server did not come back, if it did not."""

    def done(self, results: Sequence[PropertyResult]) -> Done:
        stage = self.stage
        troubles = tuple(self.examples.troubles)
        return Done(
            tuple(results), dict(stage.slow_tools), troubles, stage.live.sessions, self.interrupted
        )

    def all_of(self, names: Sequence[str], begins: Tell, ends: Tell) -> Done:
        """Try them all; being interrupted ends it early, with what was found until then."""
        results = []
        for place, name in enumerate(names):
            begins(name)
            results.append(self.one(name, is_last=place == len(names) - 1))
            ends(name)
            if self.interrupted:
                break
        return self.done(results)

    def replayed(self, example: SavedExample) -> Done:
        run = self._run_of(example.of_property)
        try:
            return self.done([run.replayed(example)])
        except Stopped:
            return self.done([self._cut_short(run)])

    def one(self, name: str, *, is_last: bool) -> PropertyResult:
        """A property has half of the time that is left: most of them need far less."""
        if self.order.is_out_of_time:
            about, why = PROPERTIES[name].about, self.order.out_of_time
            return PropertyResult(name=name, about=about, ended_early=f"not run: {why}")
        left = self.order.limit.remaining() if self.order.limit is not None else math.inf
        share = left if is_last else left / 2
        seed = zlib.crc32(name.encode()) * _LARGEST_SEED // 2**32 ^ self.order.seed
        run = self._run_of(name)
        try:
            result = run.result(seed % _LARGEST_SEED, share)
            self.tried += 1
            return result
        except PeerError as error:
            mask = redaction.text
            self.lost = show(mask(error.message.partition("\n")[0]), 300)
            why = f"the server did not restart: {mask(error.message)}"
            return msgspec.structs.replace(run.so_far(), ended_early=show(why, 300))
        except Stopped:
            return self._cut_short(run)

    def _cut_short(self, run: PropertyRun) -> PropertyResult:
        self.interrupted = self.order.is_interrupted
        why = _INTERRUPTED if self.interrupted else self.order.out_of_time
        return msgspec.structs.replace(run.so_far(), ended_early=why)

    def _run_of(self, name: str) -> PropertyRun:
        return PropertyRun(PROPERTIES[name], self.stage, self.examples)


# -- A run of property tests ---------------------------------------------------------------------


def run_properties(
    order: PropertyOrder, begins: Tell = lambda name: None, ends: Tell = lambda name: None
) -> PropertyReport:
    """Try every property that was asked for. Raises PeerError when the server can't be reached.

    `begins` hears the name of each property before it is tried, `ends` afterwards.
    """

    def try_all(alone: OneAfterTheOther) -> Done:
        names = order.properties or tuple(PROPERTIES)
        workers = min(order.jobs, len(names)) if order.target.way == "stdio" else 1
        if workers > 1 and hasattr(os, "fork"):
            from mcptest.probe.properties.parallel import Team

            return Team(alone, names, begins, ends).done(workers)
        return alone.all_of(names, begins, ends)

    return _report(order, try_all)


def replay_example(order: PropertyOrder, example: SavedExample) -> PropertyReport:
    """Try one counterexample again. Raises PeerError when the server can't be reached."""
    if example.of_property not in PROPERTIES:
        raise UsageError(f"unknown property {show(example.of_property, 60)}")
    relates = [isinstance(step, Relate) for step in example.steps]
    if relates != [True] if PROPERTIES[example.of_property].relation else any(relates):
        raise UsageError(f"its steps do not belong to {example.of_property!r}")
    asked = order.revision or revision_of_wire(example.revision)
    order = msgspec.structs.replace(order, revision=asked)
    return _report(order, lambda alone: alone.replayed(example))


def _report(order: PropertyOrder, carry_out: Callable[[OneAfterTheOther], Done]) -> PropertyReport:
    limit = order.limit or Deadline.after(order.max_time)
    order = msgspec.structs.replace(order, limit=limit)
    begun = time.monotonic()
    stage = ExampleServer(order)
    try:
        try:
            stage.open()
        except Stopped:
            if order.is_interrupted:
                raise
            message = f"{order.out_of_time}: the server was not ready by then"
            raise PeerError(
                ErrorKind.TIMEOUT, message, hint="allow more time with --max-time"
            ) from None
        with cancellation.heeding(order.is_over):
            done = carry_out(OneAfterTheOther(stage))
    finally:
        stage.close()
    mask = redaction.text
    listed = stage.offer.tools if stage.offer is not None else ()
    problems = (*stage.endless.values(), *unchecked_schemas(listed))
    head = head_of(order.target, stage.info, stage.met, begun)
    return PropertyReport(
        **{**head, "revision": stage.revision.value},
        seed=order.seed,
        wanted=order.examples,
        properties=done.results,
        notes=(
            *(
                f"{show(tool, 80)} {how} and was not called again; allow more time with --timeout"
                for tool, how in done.slow_tools.items()
            ),
            *done.troubles,
        ),
        problems=tuple(map(mask, problems)),
        restarts=max(0, done.starts - 1),
        strict=order.strict,
        interrupted=done.interrupted,
    )
