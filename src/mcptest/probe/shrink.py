"""The one shrinker: what fails is made small step by step, as long as it still fails.

It knows nothing of what it shrinks. `fuzz` gives it the inputs of tools, which are JSON
(`simpler_json`), `property` conversations, whose steps it leaves out or makes plainer. Hypothesis
has its own for what it draws: single messages.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

Example = TypeVar("Example")
Part = TypeVar("Part")
Proof = TypeVar("Proof")
_MOST_MEMBERS = 50
_MOST_ITEMS = 20


class Shrinker(Generic[Example, Proof]):
    """Tries smaller examples; each only once, and no more than so many."""

    def __init__(
        self,
        check: Callable[[Example], Proof | None],
        *,
        most: int,
        until: float = math.inf,
        spell: Callable[[Example], object] = repr,
    ) -> None:
        """`check` gives the proof that an example fails, `spell` the same for the same example.

        `most` tries are made at the most, and none after `until` on the monotonic clock.
        """
        self._check = check
        self._most = most
        self._until = until
        self._spell = spell
        self._seen: dict[object, Proof | None] = {}
        self.tries = 0

    @property
    def is_over(self) -> bool:
        return self.tries >= self._most or time.monotonic() >= self._until

    def proof(self, example: Example) -> Proof | None:
        """How it fails; None when it does not, or when it can't be tried any more."""
        spelled = self._spell(example)
        if spelled not in self._seen:
            if self.is_over:
                return None
            self.tries += 1
            self._seen[spelled] = self._check(example)
        return self._seen[spelled]

    def smallest(
        self,
        example: Example,
        simpler: Callable[[Example], Iterable[Example]],
        then: Callable[[Example], Example] = lambda example: example,
    ) -> Example:
        """Take the first simpler one that still fails, until there is none.

        `simpler` yields the boldest step first, `then` is done to each that was taken.
        """
        seen = {self._spell(example)}
        found = True
        while found:
            found = False
            for candidate in simpler(example):
                spelled = self._spell(candidate)
                if spelled in seen:
                    continue
                seen.add(spelled)
                if self.proof(candidate) is not None:
                    example, found = then(candidate), True
                    break
                if self.is_over:
                    return example
        return example

    def without_needless(
        self, parts: list[Part], whole: Callable[[list[Part]], Example]
    ) -> list[Part]:
        """Leave out ever smaller runs of parts, as long as the whole still fails."""
        size = max(1, len(parts) // 2)
        while True:
            place, before = 0, len(parts)
            while place < len(parts):
                less = parts[:place] + parts[place + size :]
                if self.proof(whole(less)) is not None:
                    parts = less
                else:
                    place += size
            if size == 1 and len(parts) == before:  # each alone is needed
                return parts
            size = max(1, size // 2)


# -- JSON ----------------------------------------------------------------------------------------


def simpler_json(value: Any) -> Iterator[Any]:
    """What is a step simpler, the boldest step first."""
    if isinstance(value, dict):
        yield from _simpler_object(value)
    elif isinstance(value, list):
        yield from _simpler_array(value)
    elif isinstance(value, str):
        half = len(value) // 2
        yield from ("", value[:half], value[half:], value[:1], value[:-1], value[1:])
        yield "a" * len(value)
    elif isinstance(value, bool):
        yield False
    elif isinstance(value, int | float) and value:
        yield from _simpler_number(value)


def _simpler_object(value: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield {}
    names = list(value)
    half = len(names) // 2 if len(names) > 3 else 0
    for some in (names[:half], names[half:]):
        yield {name: value[name] for name in some}
    for name in names[:_MOST_MEMBERS]:
        yield {key: one for key, one in value.items() if key != name}
    for name in names[:_MOST_MEMBERS]:
        yield from ({**value, name: one} for one in simpler_json(value[name]))


def _simpler_array(value: list[Any]) -> Iterator[list[Any]]:
    yield []
    half = len(value) // 2 if len(value) > 2 else 0
    yield from (value[:half], value[half:])
    places = range(min(len(value), _MOST_ITEMS))
    yield from (value[:place] + value[place + 1 :] for place in places)
    for place in places:
        for one in simpler_json(value[place]):
            yield [*value[:place], one, *value[place + 1 :]]


def _simpler_number(value: int | float) -> Iterator[int | float]:
    yield from (0, 1)
    if value < 0:
        yield -value
    if isinstance(value, float):
        if abs(value) < 2**53:
            yield int(value)
    elif abs(value) > 1:
        yield value // 2 if value > 0 else -(-value // 2)
