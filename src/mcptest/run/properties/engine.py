"""A run of property tests: one property after the other, each counterexample made small."""

from __future__ import annotations

import datetime
import time
import zlib
from collections.abc import Callable, Iterator

import msgspec

from mcptest import __version__
from mcptest.model.errors import PeerError, UsageError
from mcptest.model.masking import Masker
from mcptest.model.property import PropertyReport, PropertyResult
from mcptest.model.revision import revision_of_wire
from mcptest.model.show import show
from mcptest.peer.connection import Stopped
from mcptest.run.properties.catalogue import PROPERTIES, Ground, Property, ground_of
from mcptest.run.properties.examples import Example, Examples
from mcptest.run.properties.order import PropertyOrder
from mcptest.run.properties.property_run import PropertyRun
from mcptest.run.properties.stage import Stage, Whom

Tell = Callable[[str], None]
_LARGEST_SEED = 2**63


def run_properties(order: PropertyOrder, tell: Tell = lambda name: None) -> PropertyReport:
    """Try every property that was asked for. Raises PeerError when the server can't be reached.

    `tell` hears the name of each property before it is tried.
    """
    return _Run(order, tell).report()


def replay_example(order: PropertyOrder, example: Example) -> PropertyReport:
    """Try one counterexample again. Raises PeerError when the server can't be reached."""
    if example.of_property not in PROPERTIES:
        raise UsageError(f"there is no property {example.of_property!r}")
    asked = order.revision or revision_of_wire(example.revision)
    return _Run(msgspec.structs.replace(order, revision=asked), lambda name: None, example).report()


class _Run:
    def __init__(self, order: PropertyOrder, tell: Tell, only: Example | None = None) -> None:
        self.order = order
        self.only = only
        self.tell = tell
        self.begun = time.monotonic()
        self.left = order.max_time
        """Seconds for the properties that are still to be tried."""
        self.started = datetime.datetime.now(datetime.UTC)
        self.stage = Stage(
            Whom(
                target=order.target,
                revision=order.revision,
                timeout=order.timeout,
                startup=order.startup,
                should_stop=order.should_stop,
            )
        )
        self.examples = Examples(order.database, order.target)
        self.results: list[PropertyResult] = []
        self.interrupted = False

    def report(self) -> PropertyReport:
        try:
            self.stage.open()
            self._run_all()
        finally:
            self.stage.close()
        facts = self.stage.facts
        assert facts is not None  # the server was met
        order, mask = self.order, Masker(self.order.target.secrets).text
        return PropertyReport(
            server=mask(order.target.label),
            server_name=show(str(facts.info.get("name") or ""), 120),
            server_version=show(str(facts.info.get("version") or ""), 60),
            transport=facts.transport,
            revision=self.stage.revision.value,
            seed=order.seed,
            wanted=order.examples,
            properties=tuple(self.results),
            notes=(*self._slow_tools(), *self.examples.troubles),
            restarts=max(0, self.stage.starts - 1),
            strict=order.strict,
            started=self.started.isoformat(timespec="seconds"),
            duration_ms=round((time.monotonic() - self.begun) * 1000),
            interrupted=self.interrupted,
            tool=f"mcptest {__version__}",
        )

    def _slow_tools(self) -> Iterator[str]:
        for tool, how in self.stage.slow_tools.items():
            yield f"{show(tool, 80)} {how}, and was called no more: --timeout gives it longer"

    def _run_all(self) -> None:
        facts = self.stage.facts
        assert facts is not None  # the server was met
        ground = ground_of(
            self.stage.revision, facts.transport, facts.offer, self.order.allow_tools
        )
        if self.only is not None:
            one = PROPERTIES[self.only.of_property]
            run = PropertyRun(one, ground, self.stage, self.examples, self.order)
            self.results.append(run.replayed(self.only))
            return
        names = self.order.properties or tuple(PROPERTIES)
        for place, name in enumerate(names):
            self.tell(name)
            left = len(names) - place
            try:
                self.results.append(self._run_one(PROPERTIES[name], ground, left))
            except Stopped:
                self.interrupted = True
                return

    def _run_one(self, one: Property, ground: Ground, left: int) -> PropertyResult:
        """A property has half of the time that is left: most of them need far less.

        What it takes beyond, to make finds small, is not taken from the others.
        """
        begun, share = time.monotonic(), self.left / 2 if left > 1 else self.left
        seed = zlib.crc32(one.name.encode()) * _LARGEST_SEED // 2**32 ^ self.order.seed
        run = PropertyRun(one, ground, self.stage, self.examples, self.order)
        try:
            return run.result(seed % _LARGEST_SEED, share)
        except PeerError as error:
            mask = Masker(self.order.target.secrets).text
            why = f"the server did not come back: {mask(error.message)}"
            return msgspec.structs.replace(run.so_far(), ended_early=show(why, 300))
        finally:
            self.left -= min(share, time.monotonic() - begun)
