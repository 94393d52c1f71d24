"""Who decides where a schema leaves room: nobody, chance with a seed, or Hypothesis.

The generator asks one of these, so the plainest input, a random one and one that can be shrunk all
come out of the same code. Hypothesis decides in `hypothesis_strategies`, which alone imports it.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Final, Protocol, TypeAlias

_FAR: Final = 10**6
"""How far numbers go where a schema sets no bound."""
_WIDE: Final = 2**31
_ALPHABETS: Final = (
    "abcdefghijklmnopqrstuvwxyz",
    "ABCxyz019 _-.,:;!?()[]{}<>/\\'\"@#$%&*+=~^|`",
    "äßéñçøžŁĞ漢字かなкирعربية😀\u00a0",
)
_TEXT_ROOM: Final = 12
"""So much longer than it must be does a text become."""
_MOST_DECISIONS: Final = 2_000


class Choices(Protocol):
    """Decides. The first option, and the number nearest to zero, are the plainest."""

    hints: bool
    """Whether the defaults and examples of a schema are taken for values."""
    checks: bool
    """Whether each part is validated where it stands, or only the whole."""
    tries: int
    """How often a part that does not fit is decided on before chance decides."""

    def index(self, count: int) -> int:
        """One of `count` options."""

    def integer(self, low: int | None, high: int | None) -> int:
        """A whole number, both ends included."""

    def number(self, low: float | None, high: float | None, *, above: bool, below: bool) -> float:
        """A number between the bounds; `above` and `below`: they are excluded."""

    def text(self, letters: str, least: int, most: int, name: str = "") -> str:
        """A text of these letters, or of any when there are none, for the member of that name."""

    def more(self) -> bool:
        """Whether something that is optional is wanted."""


Make: TypeAlias = Callable[[Choices, str], Any]
"""Makes a value of a part of a schema for the member of that name."""


class Plainest:
    """Always the simplest: the first option, nothing that is optional."""

    tries = 1

    def __init__(self, *, hints: bool = False, checks: bool = True) -> None:
        self.hints = hints
        self.checks = checks

    def index(self, count: int) -> int:
        return 0

    def integer(self, low: int | None, high: int | None) -> int:
        nearest = 0 if low is None or low < 0 else low
        return nearest if high is None or high > nearest else high

    def number(self, low: float | None, high: float | None, *, above: bool, below: bool) -> float:
        low, high = bounds(low, high)
        return low + (high - low) / 2

    def text(self, letters: str, least: int, most: int, name: str = "") -> str:
        if letters:
            return letters[0] * least
        return (name or "mcptest")[:most].ljust(least, "x")

    def more(self) -> bool:
        return False


class Seeded:
    """Chance, the same for the same seed on every machine."""

    hints = False
    checks = True
    tries = 8

    def __init__(self, seed: int | str) -> None:
        self._random = random.Random(seed)  # noqa: S311 - inputs for tests, no secrets
        self._left = _MOST_DECISIONS

    def index(self, count: int) -> int:
        return self._random.randrange(count)

    def integer(self, low: int | None, high: int | None) -> int:
        if low is None:
            low = -_FAR if high is None else high - _FAR
        if high is None:
            high = low + 2 * _FAR
        if high - low > _WIDE and low <= 0 <= high and self._random.random() < 0.5:
            # Without this nearly every number of a wide range would be huge.
            return self._random.randint(max(low, -100), min(high, 100))
        return self._random.randint(low, high)

    def number(self, low: float | None, high: float | None, *, above: bool, below: bool) -> float:
        low, high = bounds(low, high)
        return low + (high - low) * (self._random.random() or 0.5)

    def text(self, letters: str, least: int, most: int, name: str = "") -> str:
        letters = letters or _ALPHABETS[self.index(len(_ALPHABETS))]
        length = self.integer(least, min(most, least + _TEXT_ROOM))
        return "".join(self._random.choices(letters, k=length))

    def more(self) -> bool:
        """A schema that holds itself many times would never end otherwise."""
        self._left -= 1
        return self._left > 0 and self._random.random() < 0.5


def bounds(low: float | None, high: float | None) -> tuple[float, float]:
    """The same with an end far away where there is none."""
    start = float(low if low is not None else -_FAR if high is None else high - _FAR)
    return start, float(high if high is not None else start + 2 * _FAR)
