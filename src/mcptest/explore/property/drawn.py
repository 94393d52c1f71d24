"""Choices that Hypothesis makes: what chooses can be drawn from, and is shrunk."""

from __future__ import annotations

from typing import Final

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

LETTERS: Final = st.characters(exclude_categories=["Cs"])
"""What can be written as UTF-8. Hypothesis has the same as its default, by trying all of Unicode:
two seconds where it must not keep what it has found out."""


class Drawn:
    """`Choices` by drawing."""

    def __init__(self, draw: DrawFn) -> None:
        self._draw = draw

    def index(self, count: int) -> int:
        return self._draw(st.integers(0, count - 1))

    def integer(self, low: int, high: int) -> int:
        return self._draw(st.integers(low, high))

    def fraction(self) -> float:
        return self._draw(st.floats(0, 1, exclude_max=True))

    def more(self, so_far: int, least: int) -> bool:
        return self._draw(st.booleans())
