"""What a matcher may be given: as JSON Schema for editors, and as a check for the loader."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from mcptest.model.message import json_type
from mcptest.suite.json_equality import is_number
from mcptest.suite.regex import pattern_problem

TYPES = ("null", "boolean", "integer", "number", "string", "array", "object")


class ArgumentKind(msgspec.Struct, frozen=True):
    """`schema` describes the argument; `problem` says what is wrong with one, or None."""

    schema: dict[str, Any]
    problem: Callable[[Any], str | None]


def _anything(argument: Any) -> str | None:
    return None


def _some(argument: Any) -> str | None:
    if isinstance(argument, list | tuple | dict) and not argument:
        return "an empty list or object checks nothing"
    return None


def _several(argument: Any) -> str | None:
    if not isinstance(argument, list | tuple):
        return f"expected a list, got {json_type(argument)}"
    return _some(argument)


def _text(argument: Any) -> str | None:
    return None if isinstance(argument, str) else f"expected a string, got {json_type(argument)}"


def _texts(argument: Any) -> str | None:
    texts = argument if isinstance(argument, list | tuple) else [argument]
    return _some(argument) or next(filter(None, map(_text, texts)), None)


def _number(argument: Any) -> str | None:
    return None if is_number(argument) else f"expected a number, got {json_type(argument)}"


def _count(argument: Any) -> str | None:
    if isinstance(argument, int) and not isinstance(argument, bool) and argument >= 0:
        return None
    return "expected a whole number of zero or more"


def _flag(argument: Any) -> str | None:
    return None if isinstance(argument, bool) else f"expected a boolean, got {json_type(argument)}"


def _yes(argument: Any) -> str | None:
    return None if argument is True else "only true checks anything"


def _pattern(argument: Any) -> str | None:
    patterns = argument if isinstance(argument, list | tuple) else [argument]
    return _texts(argument) or next(filter(None, map(pattern_problem, patterns)), None)


def _schema(argument: Any) -> str | None:
    from mcptest.schema.json_schema import schema_problem

    problem = schema_problem(argument)
    return f"the schema {problem}" if problem else None


def _type(argument: Any) -> str | None:
    named = argument if isinstance(argument, list | tuple) else [argument]
    unknown = [name for name in named if name not in TYPES]
    if unknown or not named:
        return f"expected one of {', '.join(TYPES)}"
    return None


_STRINGS = {"type": "array", "items": {"type": "string"}, "minItems": 1}
_ONE_OR_MORE_STRINGS = {"anyOf": [{"type": "string"}, _STRINGS]}

ANYTHING = ArgumentKind({}, _anything)
SOME = ArgumentKind({"not": {"enum": [[], {}]}}, _some)
SEVERAL = ArgumentKind({"type": "array", "minItems": 1}, _several)
TEXT = ArgumentKind({"type": "string"}, _text)
TEXTS = ArgumentKind(_ONE_OR_MORE_STRINGS, _texts)
NUMBER = ArgumentKind({"type": "number"}, _number)
COUNT = ArgumentKind({"type": "integer", "minimum": 0}, _count)
FLAG = ArgumentKind({"type": "boolean"}, _flag)
YES = ArgumentKind({"const": True}, _yes)
PATTERN = ArgumentKind(_ONE_OR_MORE_STRINGS, _pattern)
SCHEMA = ArgumentKind({"type": ["object", "boolean"]}, _schema)
TYPE = ArgumentKind(
    {
        "anyOf": [
            {"enum": list(TYPES)},
            {"type": "array", "items": {"enum": list(TYPES)}, "minItems": 1},
        ]
    },
    _type,
)
