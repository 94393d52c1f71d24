"""Trying examples on a server: many in one session, and on a fresh one as soon as one fails.

Whatever fails is tried again on a server that nothing was done to before. So a failure is about
the example; and where it is not, it is about what earlier examples left behind.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec
from msgspec.structs import replace

from mcptest.probe.properties.example_judge import Violation
from mcptest.probe.properties.example_player import Steps
from mcptest.probe.properties.search import Broken, Enough

_MOST_IN_A_SESSION = 2_000
"""Then a fresh one begins: what is remembered of a session is bounded."""
_encode = msgspec.json.Encoder().encode


class Bench(Protocol):
    """Where examples are tried."""

    def judged(self, steps: Steps) -> Sequence[Violation]:
        """What the server breaks when it is treated so, the gravest first."""

    def skips(self, steps: Steps) -> bool:
        """Whether trying it would only cost time."""

    def learn(self, steps: Steps, found: Violation) -> None:
        """This is told: it need not be found again."""

    def renew(self, *, patient: bool = False) -> None:
        """A server that nothing was done to before, for whatever is tried next.

        `patient`: it may take longer to answer, so that only silence is taken for silence.
        """

    @property
    def is_fresh(self) -> bool:
        """Whether nothing was done to the server that is there: it is new, or there is none."""

    @property
    def began_anew(self) -> bool:
        """Whether the last example left its session for another: nothing before it counts."""


class Trial:
    """The examples of one property on one server."""

    def __init__(
        self, bench: Bench, *, until: float, about: Callable[[Steps], str] = lambda steps: ""
    ) -> None:
        """`about` tells two failures apart that break the same rule: by the tool that is called.

        `until` is when it has to end, on the monotonic clock.
        """
        self.bench = bench
        self.known: set[tuple[str, ...]] = set()
        """What was found already."""
        self.examples = 0
        self.seconds = 0.0
        """Spent on playing and judging."""
        self.until = until
        self._about = about
        self.before: list[Steps] = []
        """What was played in this session before."""
        self.begin_search()

    def begin_search(self) -> None:
        """Look for one more that is not known yet."""
        self.wanted: tuple[str, ...] | None = None
        """What every smaller example has to break as well, once there is one."""
        self.smallest: tuple[Steps, Violation] | None = None
        self.suspected: Violation | None = None
        """What was seen and is not confirmed."""
        self.first: Steps = ()
        self.shrinking = 0
        self._seen: dict[bytes, Violation | None] = {}

    # -- what Hypothesis calls -------------------------------------------------------------

    def __call__(self, steps: Steps) -> None:
        begun = time.monotonic()
        if begun >= self.until:
            raise Enough
        try:
            found = self._larger(steps) if self.wanted is None else self._smaller(steps)
        finally:
            self.seconds += time.monotonic() - begun
        if found is not None:
            raise Broken

    def _larger(self, steps: Steps) -> Violation | None:
        """One more example, in the session that is there."""
        self.examples += 1
        if self.bench.skips(steps):
            return None
        if len(self.before) >= _MOST_IN_A_SESSION:
            self.renew()
        before = self.before
        found = self.tried(steps)
        if found is None:
            self.before.append(steps)
            return None
        self.first, self.suspected = steps, found
        again = self.tried_alone(steps, self.key(found, steps), patient=found.is_silence)
        if again is None:
            raise CarriedOver(before, steps, found)
        self.suspected = None
        self.wanted = self.key(again, steps)
        self.smallest = (steps, again)
        return again

    def _smaller(self, steps: Steps) -> Violation | None:
        mark = _encode(steps)
        if mark not in self._seen:
            self.shrinking += 1
            assert self.wanted is not None  # whoever calls has looked
            found = self.tried_alone(steps, self.wanted)
            smallest = self.smallest
            if found is not None and (smallest is None or _size(steps) <= _size(smallest[0])):
                self.smallest = (steps, found)
            # Of the others the session is let go: of a server that floods, each is large.
            self._seen[mark] = replace(found, tape=None) if found is not None else None
        return self._seen[mark]

    # -- trying ----------------------------------------------------------------------------

    def key(self, found: Violation, steps: Steps) -> tuple[str, ...]:
        return (*found.key, self._about(steps))

    def tried(self, steps: Steps, wanted: tuple[str, ...] | None = None) -> Violation | None:
        """None when it holds, or breaks what is known already or not wanted."""
        found = self.bench.judged(steps)
        if self.bench.is_fresh or self.bench.began_anew:
            self.before = []
        for one in found:
            key = self.key(one, steps)
            if key == wanted if wanted is not None else key not in self.known:
                return one
        return None

    def tried_alone(
        self, steps: Steps, wanted: tuple[str, ...], *, patient: bool = False
    ) -> Violation | None:
        """The same on a server that nothing was done to before."""
        self.renew(patient=patient)
        found = self.tried(steps, wanted)
        if patient:
            self.renew()
        return None if found is None or found.carried_over else found

    def renew(self, *, patient: bool = False) -> None:
        self.before = []
        self.bench.renew(patient=patient)


class CarriedOver(BaseException):
    """It fails after earlier examples, and not alone."""

    def __init__(self, before: list[Steps], steps: Steps, found: Violation) -> None:
        super().__init__()
        self.before = before
        self.steps = steps
        self.found = found


def _size(steps: Steps) -> tuple[int, int]:
    return len(steps), len(_encode(steps))
