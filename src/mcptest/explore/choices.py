"""Who decides where a schema leaves room: nobody, chance with a seed, or whoever draws.

Everything that makes values asks one of these, so the plainest input, a random one and one that
can be shrunk all come out of the same code.
"""

from __future__ import annotations

import random
from typing import Final, Protocol

WIDEST: Final = 2**31


class Choices(Protocol):
    """Decides. The first option, and the number nearest to zero, are the plainest."""

    def index(self, count: int) -> int:
        """One of `count` options."""

    def integer(self, low: int, high: int) -> int:
        """A whole number, both ends included."""

    def fraction(self) -> float:
        """At least 0 and less than 1."""

    def more(self, so_far: int, least: int) -> bool:
        """Whether another item or optional member is wanted beyond the least number."""


class Plainest:
    """Always the simplest: the first option, nothing that is optional."""

    def index(self, count: int) -> int:
        return 0

    def integer(self, low: int, high: int) -> int:
        return min(max(low, 0), high)

    def fraction(self) -> float:
        return 0.0

    def more(self, so_far: int, least: int) -> bool:
        return False


class Seeded:
    """Chance, the same for the same seed on every machine."""

    def __init__(self, seed: int | str) -> None:
        self._random = random.Random(seed)  # noqa: S311 - inputs for tests, no secrets

    def index(self, count: int) -> int:
        return self._random.randrange(count)

    def integer(self, low: int, high: int) -> int:
        if high - low > WIDEST and low <= 0 <= high and self._random.random() < 0.5:
            # Without this nearly every number of a wide range would be huge.
            return self._random.randint(max(low, -100), min(high, 100))
        return self._random.randint(low, high)

    def fraction(self) -> float:
        return self._random.random()

    def more(self, so_far: int, least: int) -> bool:
        return self._random.random() < 0.5
