"""Strategies for numbers: within their bounds, on their grid."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from mcptest.explore.property.shaped import SAFEST_INTEGER
from mcptest.explore.scalars import edge, finite

_FAR: Final = 10**6


def numbers(plain: Mapping[str, Any], *, integer: bool) -> SearchStrategy[int | float]:
    """Numbers that every JSON reader reads alike, where the bounds leave that room."""
    low, above = edge(plain, "minimum", "exclusiveMinimum")
    high, below = edge(plain, "maximum", "exclusiveMaximum")
    step = finite(plain.get("multipleOf"))
    if step is not None and step > 0:
        return _on_grid(Fraction(str(step)), (low, above), (high, below), integer=integer)
    whole = _whole((low, above), (high, below))
    return whole if integer else whole | _fractions((low, above), (high, below))


def _whole(
    least: tuple[int | float | None, bool], most: tuple[int | float | None, bool]
) -> SearchStrategy[int | float]:
    (low, above), (high, below) = least, most
    first = None if low is None else math.floor(low) + 1 if above else math.ceil(low)
    last = None if high is None else math.ceil(high) - 1 if below else math.floor(high)
    return _integers(first, last)


def _integers(first: int | None, last: int | None) -> SearchStrategy[Any]:
    if first is None:
        first = -SAFEST_INTEGER if last is None or last > -SAFEST_INTEGER else last - _FAR
    if last is None:
        last = max(SAFEST_INTEGER, first + _FAR)
    return st.integers(first, last) if first <= last else st.nothing()


def _fractions(
    least: tuple[int | float | None, bool], most: tuple[int | float | None, bool]
) -> SearchStrategy[float]:
    (low, above), (high, below) = least, most
    start, end = (None if one is None else float(one) for one in (low, high))
    if (
        start is not None
        and end is not None
        and (start > end or (start == end and (above or below)))
    ):
        return st.nothing()
    return st.floats(
        start,
        end,
        allow_nan=False,
        allow_infinity=False,
        exclude_min=above and start is not None,
        exclude_max=below and end is not None,
    )


def _on_grid(
    grid: Fraction,
    least: tuple[int | float | None, bool],
    most: tuple[int | float | None, bool],
    *,
    integer: bool,
) -> SearchStrategy[int | float]:
    if integer and grid.denominator != 1:
        grid = Fraction(grid.numerator)
    (low, above), (high, below) = least, most
    first = None if low is None else math.ceil(Fraction(str(low)) / grid)
    if first is not None and above and first * grid == Fraction(str(low)):
        first += 1
    last = None if high is None else math.floor(Fraction(str(high)) / grid)
    if last is not None and below and last * grid == Fraction(str(high)):
        last -= 1
    if first is None:
        first = -_FAR if last is None or last > -_FAR else last - _FAR
    if last is None:
        last = max(first, 0) + _FAR
    if first > last:
        return st.nothing()
    return st.integers(first, last).map(lambda place: _number(place * grid))


def _number(value: Fraction) -> int | float:
    return int(value) if value.denominator == 1 else float(value)
