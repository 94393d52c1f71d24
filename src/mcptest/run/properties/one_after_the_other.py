"""Properties on one server, one after the other, and the time that each of them may take."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Mapping, Sequence

import msgspec

from mcptest.model.errors import PeerError
from mcptest.model.property import PropertyResult
from mcptest.model.redaction import redaction
from mcptest.model.show import show
from mcptest.peer.connection import Stopped
from mcptest.run.properties.catalogue import PROPERTIES, Ground
from mcptest.run.properties.examples import Example, Examples
from mcptest.run.properties.order import PropertyOrder
from mcptest.run.properties.property_run import PropertyRun
from mcptest.run.properties.stage import Stage

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


class OneAfterTheOther:
    """One server that serves one property after the other."""

    def __init__(self, order: PropertyOrder, stage: Stage, ground: Ground) -> None:
        self.order = order
        self.stage = stage
        self.ground = ground
        self.examples = Examples(order.database, order.target)
        self.interrupted = False
        self._tried = 0
        self.lost = ""
        """Why the server did not come back, if it did not."""

    @property
    def has_met_the_server(self) -> bool:
        """Whether it was there at all, for this one."""
        return self._tried > 0

    def done(self, results: Sequence[PropertyResult]) -> Done:
        stage = self.stage
        troubles = tuple(self.examples.troubles)
        return Done(
            tuple(results), dict(stage.slow_tools), troubles, stage.starts, self.interrupted
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

    def replayed(self, example: Example) -> Done:
        run = self._run_of(example.of_property)
        try:
            return self.done([run.replayed(example)])
        except Stopped:
            return self.done([self._cut_short(run)])

    def one(self, name: str, *, is_last: bool) -> PropertyResult:
        """A property has half of the time that is left: most of them need far less."""
        if self.order.is_out_of_time:
            about, why = PROPERTIES[name].about, self.order.out_of_time
            return PropertyResult(name=name, about=about, ended_early=f"not tried: {why}")
        left = self.order.limit.remaining() if self.order.limit is not None else math.inf
        share = left if is_last else left / 2
        seed = zlib.crc32(name.encode()) * _LARGEST_SEED // 2**32 ^ self.order.seed
        run = self._run_of(name)
        try:
            result = run.result(seed % _LARGEST_SEED, share)
            self._tried += 1
            return result
        except PeerError as error:
            mask = redaction.text
            self.lost = show(mask(error.message.partition("\n")[0]), 300)
            why = f"the server did not come back: {mask(error.message)}"
            return msgspec.structs.replace(run.so_far(), ended_early=show(why, 300))
        except Stopped:
            return self._cut_short(run)

    def _cut_short(self, run: PropertyRun) -> PropertyResult:
        self.interrupted = self.order.is_interrupted
        why = _INTERRUPTED if self.interrupted else self.order.out_of_time
        return msgspec.structs.replace(run.so_far(), ended_early=why)

    def _run_of(self, name: str) -> PropertyRun:
        return PropertyRun(PROPERTIES[name], self.ground, self.stage, self.examples, self.order)
