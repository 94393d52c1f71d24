"""Choices that Hypothesis makes: what chooses can be drawn from, and is shrunk."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn


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
