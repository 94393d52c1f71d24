"""Values one step beyond what the schema of a member allows, each named by what it breaks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

from mcptest.explore.fuzz.values import EXAMPLES, Named
from mcptest.explore.scalars import count, finite

_LONGEST: Final = 100_000
"""A text or array that would have to be longer is not made."""
_STRANGE_TEXTS: Final = ("\x7f", "~", "0", "mcptest", "\n", " ", "zz zz", "")


def beyond(plain: Mapping[str, Any], valid: Any) -> Iterator[Named]:
    """What would break one keyword. Whoever asks validates: a schema may say things twice."""
    if isinstance(valid, str):
        yield from _texts(plain, valid)
    elif isinstance(valid, bool):
        pass
    elif isinstance(valid, int | float):
        yield from _numbers(plain, valid)
    elif isinstance(valid, list):
        yield from _lists(plain, valid)
    elif isinstance(valid, dict):
        yield from _tables(plain, valid)
    if "enum" in plain or "const" in plain:
        yield "not one of the allowed values", _other_than(valid)


def wrong_types(kinds: tuple[str, ...]) -> Iterator[Named]:
    """A plain value of each type that is not wanted."""
    for kind, value in EXAMPLES.items():
        if kind not in kinds and not (kind == "integer" and "number" in kinds):
            yield kind, value


def _other_than(valid: Any) -> Any:
    if isinstance(valid, str):
        return f"{valid}x"
    if isinstance(valid, int | float) and not isinstance(valid, bool):
        return valid + 987_654
    return [valid]


def _texts(plain: Mapping[str, Any], valid: str) -> Iterator[Named]:
    least, most = count(plain.get("minLength"), 0), count(plain.get("maxLength"), _LONGEST)
    if 0 < least < _LONGEST:
        yield "one character too short", (valid or "x").ljust(least, "x")[: least - 1]
    if most < _LONGEST:
        yield "one character too long", (valid or "x").ljust(most + 1, "x")[: most + 1]
    if "pattern" in plain:
        for text in (*_STRANGE_TEXTS, f"{valid}\n", f"\x7f{valid}"):
            yield "a text that the pattern does not match", text
    if "format" in plain:
        yield "not of the format", f"\x7fno {plain['format']}"


def _numbers(plain: Mapping[str, Any], valid: int | float) -> Iterator[Named]:
    for keyword, step in (("minimum", -1), ("maximum", 1)):
        edge = finite(plain.get(keyword))
        if edge is not None:
            yield f"beyond the {keyword}", edge + step
    for keyword in ("exclusiveMinimum", "exclusiveMaximum"):
        edge = finite(plain.get(keyword))
        if edge is not None:
            yield f"at the {keyword}", edge
    grid = finite(plain.get("multipleOf"))
    if grid:
        yield "off the grid", valid + grid / 2
    if isinstance(valid, int) and abs(valid) < 2**50:
        yield "with a fraction", math.floor(valid) + 0.5


def _lists(plain: Mapping[str, Any], valid: list[Any]) -> Iterator[Named]:
    least, most = count(plain.get("minItems"), 0), count(plain.get("maxItems"), _LONGEST)
    if 0 < least <= len(valid):
        yield "one item too few", valid[: least - 1]
    item = valid[0] if valid else "item"
    if most < 1_000:
        yield "one item too many", [*valid, *([item] * (most + 1 - len(valid)))]
    if plain.get("uniqueItems") is True:
        yield "the same item twice", [*valid, item] if valid else [item, item]


def _tables(plain: Mapping[str, Any], valid: dict[str, Any]) -> Iterator[Named]:
    required = plain.get("required")
    for name in required if isinstance(required, list) else ():
        if isinstance(name, str) and name in valid:
            yield (
                f"without its {name}",
                {key: value for key, value in valid.items() if key != name},
            )
    if plain.get("additionalProperties") is False:
        yield "with an unknown member", {**valid, "mcptest_unknown": 1}
