"""Matching one value: pure functions of (value, argument) that say why it does not match.

The first lines of these functions are what the documentation says about each matcher. None of
them is asked about a value that is ABSENT, but `exists`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from mcptest.model.message import ABSENT, json_type
from mcptest.model.show import show
from mcptest.suite.go_format import first_runes, quote, trim_space
from mcptest.suite.json_equality import is_number, json_equal
from mcptest.suite.regex import RegexError, found_in
from mcptest.suite.text_under_test import compact_json

_EMPTY_TEXTS = ("", "null", "[]", "{}")


class Mismatch(msgspec.Struct, frozen=True):
    """Why a value does not match: a clause for people, and both sides."""

    reason: str
    expected: Any
    actual: Any
    pointer: str = ""
    """Where in the value, as a JSON pointer, when it is known."""


def shown(value: Any) -> str:
    """A value in a message: short, on one line, and as JSON."""
    if value is ABSENT:
        return "nothing"
    if isinstance(value, str):
        return show(quote(first_runes(value)), 220)
    return show(compact_json(value), 200)


def _several(argument: Any) -> Iterable[Any]:
    return argument if isinstance(argument, list | tuple) else (argument,)


# -- equality ----------------------------------------------------------------------------------


def exact(value: Any, argument: Any) -> Mismatch | None:
    """The same JSON value, typed: 1 is 1.0, but neither true nor "1"."""
    if json_equal(value, argument):
        return None
    return Mismatch(f"expected {shown(argument)}, got {shown(value)}", argument, value)


def not_exact(value: Any, argument: Any) -> Mismatch | None:
    """Any other JSON value."""
    if not json_equal(value, argument):
        return None
    return Mismatch(f"expected anything but {shown(argument)}", argument, value)


def one_of(value: Any, argument: Any) -> Mismatch | None:
    """Exactly one of the listed values."""
    if any(json_equal(value, choice) for choice in argument):
        return None
    return Mismatch(f"expected one of {shown(list(argument))}, got {shown(value)}", argument, value)


def equals_trimmed(value: Any, argument: str) -> Mismatch | None:
    """The same text, white space at both ends aside."""
    if not isinstance(value, str):
        return _wrong_type(value, argument, "a string")
    if trim_space(value) == trim_space(argument):
        return None
    return Mismatch(f"expected {shown(argument)}, got {shown(value)}", argument, value)


# -- containment -------------------------------------------------------------------------------


def holds(value: Any, wanted: Any) -> bool:
    """Text holds a substring, an array an equal element, an object equal members."""
    if isinstance(value, str):
        return isinstance(wanted, str) and wanted in value
    if isinstance(value, list):
        return any(json_equal(item, wanted) for item in value)
    if isinstance(value, dict) and isinstance(wanted, Mapping):
        return all(name in value and json_equal(value[name], wanted[name]) for name in wanted)
    return False


def contains(value: Any, argument: Any) -> Mismatch | None:
    """Text: the substring; array: an equal element; object: equal members.

    A list asks for all of its entries.
    """
    if not isinstance(value, str | list | dict):
        return _wrong_type(value, argument, "a string, an array or an object")
    for wanted in _several(argument):
        if not holds(value, wanted):
            reason = f"expected it to contain {shown(wanted)}, got {shown(value)}"
            return Mismatch(reason, wanted, value)
    return None


def contains_any(value: Any, argument: Any) -> Mismatch | None:
    """At least one of the listed, as in `contains`."""
    if not isinstance(value, str | list | dict):
        return _wrong_type(value, argument, "a string, an array or an object")
    choices = list(_several(argument))
    if any(holds(value, wanted) for wanted in choices):
        return None
    reason = f"expected it to contain at least one of {shown(choices)}, got {shown(value)}"
    return Mismatch(reason, choices, value)


def not_contains(value: Any, argument: Any) -> Mismatch | None:
    """None of them, as in `contains`."""
    if not isinstance(value, str | list | dict):
        return _wrong_type(value, argument, "a string, an array or an object")
    for unwanted in _several(argument):
        if holds(value, unwanted):
            return Mismatch(f"expected it NOT to contain {shown(unwanted)}", unwanted, value)
    return None


def icontains(value: Any, argument: Any) -> Mismatch | None:
    """Text: the substring in any case. A list asks for all of its entries."""
    if not isinstance(value, str):
        return _wrong_type(value, argument, "a string")
    folded = value.casefold()
    for wanted in _several(argument):
        if wanted.casefold() not in folded:
            reason = f"expected it to contain {shown(wanted)} in any case, got {shown(value)}"
            return Mismatch(reason, wanted, value)
    return None


def first_out_of_order(value: str, wanted: Iterable[str]) -> tuple[str, int] | None:
    """The first text that is not found after the one before it, and where the search began."""
    position = 0
    for text in wanted:
        found = value.find(text, position)
        if found < 0:
            return text, position
        position = found + len(text)
    return None


def _first_element_out_of_order(value: list[Any], wanted: Iterable[Any]) -> str | None:
    items = iter(value)
    for element in wanted:
        if not any(json_equal(item, element) for item in items):
            return shown(element)
    return None


def in_order(value: Any, argument: Any) -> Mismatch | None:
    """Text: the substrings, each after the one before; array: likewise, its elements."""
    if isinstance(value, str):
        out_of_order = first_out_of_order(value, _several(argument))
        missing = None if out_of_order is None else shown(out_of_order[0])
    elif isinstance(value, list):
        items = iter(value)
        lost = next(
            (w for w in _several(argument) if not any(json_equal(i, w) for i in items)), ABSENT
        )
        missing = None if lost is ABSENT else shown(lost)
    else:
        return _wrong_type(value, argument, "a string or an array")
    if missing is None:
        return None
    return Mismatch(f"{missing} is not there in this order", argument, value)


# -- patterns ----------------------------------------------------------------------------------


def regex(value: Any, argument: Any) -> Mismatch | None:
    """Text: RE2 finds the pattern anywhere. A list asks for all of its entries."""
    return _by_pattern(value, argument, wanted=True)


def not_regex(value: Any, argument: Any) -> Mismatch | None:
    """Text: RE2 finds none of the patterns."""
    return _by_pattern(value, argument, wanted=False)


def _by_pattern(value: Any, argument: Any, *, wanted: bool) -> Mismatch | None:
    if not isinstance(value, str):
        return _wrong_type(value, argument, "a string")
    for pattern in _several(argument):
        try:
            found = found_in(pattern, value)
        except RegexError as error:
            return Mismatch(f"invalid pattern {quote(pattern)}: {error}", pattern, value)
        if found is not wanted:
            negation = "" if wanted else "NOT "
            reason = f"expected it {negation}to match regex {quote(pattern)}, got {shown(value)}"
            return Mismatch(reason, pattern, value)
    return None


# -- shape -------------------------------------------------------------------------------------


def schema(value: Any, argument: Any) -> Mismatch | None:
    """Fits the JSON Schema (2020-12 unless `$schema` says otherwise)."""
    from mcptest.schema.json_schema import CompiledSchema, SchemaError, SchemaLimitError

    try:
        misfit = CompiledSchema(argument).misfit(value)
    except SchemaLimitError as error:
        return Mismatch(f"can't be checked against the schema: {error}", argument, value)
    except SchemaError as error:
        return Mismatch(f"can't be held against the schema: {error}", argument, value)
    except (ValueError, OverflowError, RecursionError) as error:
        # a value that is no JSON (a lone surrogate, an endless number) can't fit any schema
        return Mismatch(f"it can't be validated: {show(str(error))}", argument, value)
    if misfit is None:
        return None
    where = f" at {misfit.pointer}" if misfit.pointer else ""
    return Mismatch(
        f"does not fit the schema{where}: {misfit.reason}", argument, value, misfit.pointer
    )


def type_(value: Any, argument: Any) -> Mismatch | None:
    """Has the JSON type, or one of a list of types; `integer` is a whole number."""
    names = list(_several(argument))
    actual = json_type(value)
    whole = is_number(value) and (isinstance(value, int) or value.is_integer())
    if actual in names or ("integer" in names and whole):
        return None
    return Mismatch(f"expected type {' or '.join(names)}, got {actual}", argument, actual)


def exists(value: Any, argument: bool) -> Mismatch | None:
    """true: there is a value, null included; false: there is none."""
    if (value is not ABSENT) is argument:
        return None
    if argument:
        return Mismatch("expected a value, there is none", True, False)
    return Mismatch(f"expected no value, got {shown(value)}", False, True)


def is_empty(value: Any) -> bool:
    """Null, an empty array or object, and text that says no more than one of these."""
    if isinstance(value, str):
        return trim_space(value) in _EMPTY_TEXTS
    return value is None or (isinstance(value, list | dict) and not value)


def not_empty(value: Any, argument: bool) -> Mismatch | None:
    """Not null, [] or {}, nor text that says no more than one of these."""
    if not is_empty(value):
        return None
    return Mismatch(f"expected something that is not empty, got {shown(value)}", argument, value)


def minimum(value: Any, argument: float) -> Mismatch | None:
    """A number of at least this."""
    if not is_number(value):
        return _wrong_type(value, argument, "a number")
    if value >= argument:
        return None
    return Mismatch(f"expected at least {argument}, got {shown(value)}", argument, value)


def maximum(value: Any, argument: float) -> Mismatch | None:
    """A number of at most this."""
    if not is_number(value):
        return _wrong_type(value, argument, "a number")
    if value <= argument:
        return None
    return Mismatch(f"expected at most {argument}, got {shown(value)}", argument, value)


def min_length(value: Any, argument: int) -> Mismatch | None:
    """At least so many characters, elements or members."""
    if not isinstance(value, str | list | dict):
        return _wrong_type(value, argument, "a string, an array or an object")
    if len(value) >= argument:
        return None
    return Mismatch(f"expected a length of at least {argument}, got {len(value)}", argument, value)


def max_length(value: Any, argument: int) -> Mismatch | None:
    """At most so many characters, elements or members."""
    if not isinstance(value, str | list | dict):
        return _wrong_type(value, argument, "a string, an array or an object")
    if len(value) <= argument:
        return None
    return Mismatch(f"expected a length of at most {argument}, got {len(value)}", argument, value)


def _wrong_type(value: Any, argument: Any, wanted: str) -> Mismatch:
    return Mismatch(f"expected {wanted}, got {json_type(value)} {shown(value)}", argument, value)
