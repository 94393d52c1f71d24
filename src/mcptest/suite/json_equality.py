"""When two JSON values are equal: by type and value, never by Python's own idea of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from mcptest.suite.go_format import value_text

_SCALARS = (str, bool, int, float, type(None))


def json_equal(left: Any, right: Any, spend: Callable[[int], None] | None = None) -> bool:
    """Typed equality: 1 is 1.0, but neither true nor "1". `spend` is told of every step."""
    return _same(left, right, _typed_scalars_equal, spend)


def loosely_equal(expected: Any, actual: Any) -> bool:
    """Typed equality, or the same text where one side is a string: 42 and "42", true and "true".

    Suites written for mcp-assert depend on it, because it compares what Go prints.
    """
    return _same(expected, actual, _loose_scalars_equal, None)


def _same(
    left: Any,
    right: Any,
    scalars_equal: Callable[[Any, Any], bool],
    spend: Callable[[int], None] | None,
) -> bool:
    pairs = [(left, right)]
    while pairs:
        one, other = pairs.pop()
        if spend is not None:
            spend(1)
        if isinstance(one, list | tuple) and isinstance(other, list | tuple):
            if len(one) != len(other):
                return False
            pairs.extend(zip(one, other, strict=True))
        elif isinstance(one, Mapping) and isinstance(other, Mapping):
            if one.keys() != other.keys():
                return False
            pairs.extend((one[key], other[key]) for key in one)
        elif not scalars_equal(one, other):
            return False
    return True


def _typed_scalars_equal(one: Any, other: Any) -> bool:
    if type(one) is type(other):
        # NaN can only come from a peer that broke JSON; it equals itself here so that equality
        # stays an equivalence.
        return bool(one == other) or (
            isinstance(one, float) and math.isnan(one) and math.isnan(other)
        )
    return is_number(one) and is_number(other) and bool(one == other)


def _loose_scalars_equal(expected: Any, actual: Any) -> bool:
    if _typed_scalars_equal(expected, actual):
        return True
    if isinstance(expected, str) and not isinstance(actual, str):
        return expected in (value_text(actual), value_text(actual, numbers_as_doubles=True))
    if isinstance(actual, str) and isinstance(expected, _SCALARS):
        return actual == value_text(expected)
    return False


def is_number(value: Any) -> bool:
    """Whether it is a JSON number."""
    return isinstance(value, int | float) and not isinstance(value, bool)
