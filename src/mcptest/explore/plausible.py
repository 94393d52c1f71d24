"""A plausible input for a JSON Schema, made without chance.

It is a guess: whoever uses it validates it against the schema first and goes without when it does
not fit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

_FORMATS = {
    "date": "2026-01-01",
    "date-time": "2026-01-01T00:00:00Z",
    "time": "00:00:00Z",
    "email": "mcptest@example.com",
    "hostname": "example.com",
    "ipv4": "127.0.0.1",
    "ipv6": "::1",
    "uri": "https://example.com/",
    "uuid": "00000000-0000-4000-8000-000000000000",
}
_DEEPEST = 20
_LONGEST_TEXT = 10_000
_MOST_VALUES = 1_000


class _TooLargeError(Exception):
    """The schema asks for more than a plausible input holds."""


def plausible_arguments(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Values for the required members of a tool's input schema."""
    try:
        value = _Guess(schema).members(schema, 0)
    except _TooLargeError:
        return {}
    return value if isinstance(value, dict) else {}


class _Guess:
    """One walk through a schema; whatever it says, the walk has an end."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._made = 0

    def value(self, schema: Any, name: str, depth: int) -> Any:
        self._made += 1
        if self._made > _MOST_VALUES:
            raise _TooLargeError
        schema = _resolved(schema, self._root)
        if not isinstance(schema, Mapping) or depth > _DEEPEST:
            return name
        for keyword in ("const", "default"):
            if keyword in schema:
                return schema[keyword]
        for keyword in ("enum", "examples"):
            if isinstance(schema.get(keyword), list) and schema[keyword]:
                return schema[keyword][0]
        for keyword in ("anyOf", "oneOf", "allOf"):
            options = schema.get(keyword)
            if isinstance(options, list) and options and "type" not in schema:
                return self.value(options[0], name, depth + 1)
        return self._of_type(schema, name, depth)

    def _of_type(self, schema: Mapping[str, Any], name: str, depth: int) -> Any:
        kind = schema.get("type")
        if isinstance(kind, list):
            kind = next((each for each in kind if each != "null"), "null")
        if kind == "object" or (kind is None and "properties" in schema):
            return self.members(schema, depth)
        if kind == "array":
            items = schema.get("items", {})
            least = range(_count(schema.get("minItems"), 0))
            return [self.value(items, name, depth + 1) for _ in least]
        if kind in ("integer", "number"):  # no set: a hostile type may be unhashable
            return _number(schema, integer=kind == "integer")
        if kind == "boolean":
            return False
        return None if kind == "null" else _text(schema, name)

    def members(self, schema: Mapping[str, Any], depth: int) -> Any:
        properties = schema.get("properties")
        required = schema.get("required")
        if not isinstance(properties, Mapping) or not isinstance(required, list):
            return {}
        return {
            key: self.value(properties.get(key, {}), key, depth + 1)
            for key in required
            if isinstance(key, str)
        }


def _text(schema: Mapping[str, Any], name: str) -> str:
    text = _FORMATS.get(str(schema.get("format")), name or "mcptest")
    text = text.ljust(min(_count(schema.get("minLength"), 0), _LONGEST_TEXT), "x")
    return text[: _count(schema.get("maxLength"), len(text))]


def _number(schema: Mapping[str, Any], *, integer: bool) -> int | float:
    low = _finite(schema.get("minimum", schema.get("exclusiveMinimum")))
    high = _finite(schema.get("maximum", schema.get("exclusiveMaximum")))
    step = _finite(schema.get("multipleOf")) or 1
    value: int | float = 0
    if low is not None and low >= 0:
        value = low if "minimum" in schema else low + step
    elif high is not None and high <= 0:
        value = high if "maximum" in schema else high - step
    if integer and isinstance(value, float):
        value = int(value) + (value > int(value))
    return value


def _finite(value: Any) -> int | float | None:
    """A bound as a schema names it, when it is a number."""
    if type(value) is int or (type(value) is float and math.isfinite(value)):
        return value
    return None


def _count(value: Any, otherwise: int) -> int:
    """A length as a schema names it, when it is one."""
    return value if type(value) is int and value >= 0 else otherwise


def _resolved(schema: Any, root: Mapping[str, Any]) -> Any:
    """Follow references within the schema; one to elsewhere is left as it is."""
    for _ in range(_DEEPEST):
        reference = schema.get("$ref") if isinstance(schema, Mapping) else None
        if not isinstance(reference, str) or not reference.startswith("#/"):
            return schema
        schema = root
        for part in reference[2:].split("/"):
            key = part.replace("~1", "/").replace("~0", "~")
            schema = schema.get(key) if isinstance(schema, Mapping) else None
    return schema
