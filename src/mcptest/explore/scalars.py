"""Numbers and texts as a plain schema wants them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Final

from mcptest.explore.choices import Choices, Plainest
from mcptest.explore.from_pattern import PatternError, text_matching

FORMATS: Final[Mapping[str, tuple[str, ...]]] = {
    "date": ("2026-01-01", "2024-02-29", "1999-12-31"),
    "date-time": ("2026-01-01T00:00:00Z", "2024-02-29T23:59:59.999+02:00"),
    "time": ("00:00:00Z", "23:59:59.5+01:00"),
    "duration": ("PT1S", "P1Y2M3DT4H5M6S"),
    "email": ("mcptest@example.com", "first.last+tag@sub.example.org"),
    "idn-email": ("mcptest@example.com",),
    "hostname": ("example.com", "a.b-c.example.org"),
    "idn-hostname": ("example.com",),
    "ipv4": ("127.0.0.1", "192.0.2.1"),
    "ipv6": ("::1", "2001:db8::1"),
    "uri": ("https://example.com/", "urn:example:mcptest", "http://example.com/a?b=c#d"),
    "uri-reference": ("https://example.com/", "/a/b"),
    "uri-template": ("https://example.com/{id}",),
    "iri": ("https://example.com/",),
    "iri-reference": ("https://example.com/",),
    "url": ("https://example.com/",),
    "uuid": ("00000000-0000-4000-8000-000000000000", "f47ac10b-58cc-4372-a567-0e02b2c3d479"),
    "json-pointer": ("/a", ""),
    "relative-json-pointer": ("0", "1/a"),
    "regex": ("^a+$",),
    "byte": ("bWNwdGVzdA==",),
    "binary": ("mcptest",),
    "path": ("mcptest.txt",),
}
_ENCODED: Final = {"base64": "bWNwdGVzdA==", "base64url": "bWNwdGVzdA", "base16": "6D63"}
_ALPHABETS: Final = (
    "abcdefghijklmnopqrstuvwxyz",
    "ABCxyz019 _-.,:;!?()[]{}<>/\\'\"@#$%&*+=~^|`",
    "äßéñçøžŁĞ漢字かなкирعربية😀\u00a0",
)
_LONGEST_TEXT: Final = 10_000
_USUAL_LENGTH: Final = 12
_FAR: Final = 10**6
_LARGEST_BITS: Final = 1_000
"""A larger number is none that a float could stand for."""
_ATTEMPTS: Final = 12


def text_for(schema: Mapping[str, Any], name: str, choices: Choices) -> str:
    """A text that keeps to pattern, format and length. It is a guess where these get in each
    other's way."""
    least = min(count(schema.get("minLength"), 0), _LONGEST_TEXT)
    most = min(count(schema.get("maxLength"), _LONGEST_TEXT), _LONGEST_TEXT)
    pattern = schema.get("pattern")
    if isinstance(pattern, str):
        found = _matching(pattern, least, most, choices)
        if found is not None:
            return found
    named = FORMATS.get(str(schema.get("format")))
    if named is not None:
        return named[choices.index(len(named))]
    encoded = _ENCODED.get(str(schema.get("contentEncoding")))
    if encoded is not None:
        return encoded
    if isinstance(choices, Plainest):
        return (name or "mcptest")[:most].ljust(least, "x")
    length = choices.integer(least, max(least, min(most, least + _USUAL_LENGTH)))
    alphabet = _ALPHABETS[choices.index(len(_ALPHABETS))]
    return "".join(alphabet[choices.index(len(alphabet))] for _ in range(length))


def _matching(pattern: str, least: int, most: int, choices: Choices) -> str | None:
    """A match of a fitting length; short ones may be padded where the pattern has no end."""
    found = None
    for _ in range(_ATTEMPTS):
        try:
            found = text_matching(pattern, choices)
        except PatternError:
            return None
        if least <= len(found) <= most:
            return found
    if found is not None and len(found) < least:
        return _stretched(pattern, found, least)
    return found


def _stretched(pattern: str, found: str, least: int) -> str:
    """Repeat the last character: fits what ends in `+`, `*` or not at all."""
    return found + (found[-1:] or "x") * (least - len(found))


def number_for(schema: Mapping[str, Any], choices: Choices, *, integer: bool) -> int | float:
    """A number within its bounds and on its grid."""
    low, above = edge(schema, "minimum", "exclusiveMinimum")
    high, below = edge(schema, "maximum", "exclusiveMaximum")
    step = finite(schema.get("multipleOf"))
    if step is not None and step > 0:
        grid = Fraction(str(step))
        if integer and grid.denominator != 1:
            grid = Fraction(grid.numerator)
        return _on_grid(grid, low, above, high, below, choices, integer=integer)
    if integer or choices.index(2) == 0:
        whole = _whole(low, above, high, below, choices)
        if whole is not None:
            return whole
    return _between(low, high, below, choices)


def _whole(
    low: int | float | None,
    above: bool,
    high: int | float | None,
    below: bool,
    choices: Choices,
) -> int | None:
    first = None if low is None else math.floor(low) + 1 if above else math.ceil(low)
    last = None if high is None else math.ceil(high) - 1 if below else math.floor(high)
    if first is None:
        first = -_FAR if last is None else last - _FAR
    if last is None:
        last = first + 2 * _FAR
    return choices.integer(first, last) if first <= last else None


def _on_grid(
    grid: Fraction,
    low: int | float | None,
    above: bool,
    high: int | float | None,
    below: bool,
    choices: Choices,
    *,
    integer: bool,
) -> int | float:
    first = -_FAR if low is None else math.ceil(Fraction(str(low)) / grid)
    if low is not None and above and first * grid == Fraction(str(low)):
        first += 1
    last = max(first, 0) + _FAR if high is None else math.floor(Fraction(str(high)) / grid)
    if high is not None and below and last * grid == Fraction(str(high)):
        last -= 1
    value = choices.integer(min(first, last), last) * grid
    return int(value) if integer or value.denominator == 1 else float(value)


def _between(
    low: int | float | None, high: int | float | None, below: bool, choices: Choices
) -> float:
    start = float(low if low is not None else high - _FAR if high is not None else -_FAR)
    end = float(high if high is not None else start + 2 * _FAR)
    share = choices.fraction()
    value = start + (end - start) * (share if not below or share else 0.5)
    return value if value != start or share else start + (end - start) / 2


def edge(schema: Mapping[str, Any], within: str, beyond: str) -> tuple[int | float | None, bool]:
    """The bound, and whether it does not belong. Draft 4 says the latter with a boolean."""
    inner, outer = finite(schema.get(within)), finite(schema.get(beyond))
    if outer is None:
        return inner, inner is not None and schema.get(beyond) is True
    if inner is None:
        return outer, True
    stricter = max(inner, outer) if within == "minimum" else min(inner, outer)
    return stricter, stricter == outer


def finite(value: Any) -> int | float | None:
    """A bound as a schema names it, when it is a number."""
    if type(value) is int:
        return value if value.bit_length() < _LARGEST_BITS else None
    return value if type(value) is float and math.isfinite(value) else None


def count(value: Any, otherwise: int) -> int:
    """A length as a schema names it, when it is one."""
    if type(value) is float and value.is_integer():
        value = int(value)
    return value if type(value) is int and value >= 0 else otherwise
