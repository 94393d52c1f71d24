"""When JSON values are equal, how they are said, and the matchers that hold one against another.

Equality is by type and value, never by Python's own idea of it. Values are printed as Go's `fmt`
does it: the failure texts that people know from mcp-assert use it.
"""

from __future__ import annotations

import functools
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

import msgspec

from mcptest.core.errors import close_matches
from mcptest.core.message import ABSENT, json_type
from mcptest.core.safe_text import show
from mcptest.suite.regex import RegexError, found_in, pattern_problem

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


# -- Values as text -----------------------------------------------------------------------------

_SHOWN = 200
_DEEPEST = 100
_ESCAPES = {
    "\a": r"\a",
    "\b": r"\b",
    "\f": r"\f",
    "\n": r"\n",
    "\r": r"\r",
    "\t": r"\t",
    "\v": r"\v",
    "\\": r"\\",
    '"': r"\"",
}
# What `unicode.IsSpace` says. Python's own `strip` also takes U+001C..U+001F.
WHITE_SPACE = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
_PLAIN = re.compile(r"[ !#-\[\]-~]*")


def quote(text: str) -> str:
    """`%q` of a string."""
    if _PLAIN.fullmatch(text):
        return f'"{text}"'
    return '"' + "".join(map(_quoted_character, text)) + '"'


def _quoted_character(character: str) -> str:
    named = _ESCAPES.get(character)
    if named is not None:
        return named
    if character.isprintable():
        return character
    code = ord(character)
    if code < 0x20 or code == 0x7F:
        return f"\\x{code:02x}"
    if 0xD800 <= code < 0xE000:
        return r"\ufffd"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def quote_all(texts: Iterable[str]) -> str:
    """`%q` of a list of strings: no commas."""
    return "[" + " ".join(map(quote, texts)) + "]"


def first_runes(text: str, limit: int = _SHOWN) -> str:
    """`%.200s`."""
    return text[:limit]


def trim_space(text: str) -> str:
    """`strings.TrimSpace`."""
    return text.strip(WHITE_SPACE)


def value_text(value: Any, *, numbers_as_doubles: bool = False) -> str:
    """`%v` of a JSON value.

    mcp-assert reads every JSON number as a double and so prints 1000000 as `1e+06`; that is
    only done where asked for. Whole numbers are otherwise printed in full.
    """
    return _value_text(value, numbers_as_doubles, 0)


def _value_text(value: Any, as_doubles: bool, depth: int) -> str:
    if isinstance(value, str):
        return value
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        if as_doubles:
            try:
                return double_text(float(value))
            except OverflowError:
                return "+Inf" if value > 0 else "-Inf"
        # Python refuses to print integers of more than 4,300 digits.
        bits = value.bit_length()
        return str(value) if bits < 10_000 else f"a number of {bits} bits"
    if isinstance(value, float):
        return double_text(value)
    if depth >= _DEEPEST:
        return "…"
    parts: list[str] = []
    if isinstance(value, Mapping):
        for key in sorted(value):
            parts.append(f"{key}:{_value_text(value[key], as_doubles, depth + 1)}")  # noqa: PERF401  # a comprehension would be one more frame for each level
        return "map[" + " ".join(parts) + "]"
    for item in value:
        parts.append(_value_text(item, as_doubles, depth + 1))  # noqa: PERF401  # as above
    return "[" + " ".join(parts) + "]"


def double_text(value: float) -> str:
    """`%v` of a float64: the shortest digits that read back, an exponent below -4 and from 6 on."""
    from decimal import Decimal

    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if value == 0:
        return "-0" if math.copysign(1, value) < 0 else "0"
    number = Decimal(repr(value)).normalize()
    exponent = number.adjusted()
    if -4 <= exponent < 6:
        return f"{number:f}"
    return f"{number.scaleb(-exponent):f}e{exponent:+03d}"


def compact_json(value: Any, *, sort_keys: bool = False) -> str:
    """JSON without white space, members as they came, every character as itself."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=sort_keys)


# -- A JSON-RPC error in words -------------------------------------------------------------------

_MEANINGS = {
    -32700: "parse error",
    -32600: "invalid request",
    -32601: "method not found",
    -32602: "invalid params",
    -32603: "internal error",
    -32002: "resource not found",
    -32800: "request interrupted",
    -32042: "URL elicitation required",
}


def error_code(error: Any) -> int | None:
    """The code of an error, when it has one that is a whole number."""
    code = error.get("code") if isinstance(error, Mapping) else None
    return code if isinstance(code, int) and not isinstance(code, bool) else None


def error_text(error: Any) -> str:
    """`internal error: kaput (JSON-RPC error -32603)`."""
    if not isinstance(error, Mapping):
        return f"an error that is {json_type(error)}, not an object"
    code, message = error_code(error), error.get("message")
    meaning = "" if code is None else _MEANINGS.get(code, "")
    said = message if isinstance(message, str) and message != meaning else ""
    words = ": ".join(part for part in (meaning, said) if part)
    named = "without a code" if code is None else str(code)
    return f"{words} (JSON-RPC error {named})" if words else f"JSON-RPC error {named}"


# -- What a matcher may be given -----------------------------------------------------------------

TYPES = ("null", "boolean", "integer", "number", "string", "array", "object")


class ArgumentKind(msgspec.Struct, frozen=True):
    """`schema` describes the argument; `problem` says what is wrong with one, or None."""

    schema: dict[str, Any]
    problem: Callable[[Any], str | None]


def _expects(wanted: str, fits: Callable[[Any], bool]) -> Callable[[Any], str | None]:
    return lambda one: None if fits(one) else f"expected {wanted}, got {json_type(one)}"


def _each(argument: Any) -> Iterable[Any]:
    return argument if isinstance(argument, list | tuple) else (argument,)


def _some(argument: Any) -> str | None:
    if isinstance(argument, list | tuple | dict) and not argument:
        return "an empty list or object checks nothing"
    return None


def _texts(argument: Any) -> str | None:
    return _some(argument) or next(filter(None, map(_text, _each(argument))), None)


def _count(argument: Any) -> str | None:
    if isinstance(argument, int) and not isinstance(argument, bool) and argument >= 0:
        return None
    return "expected a whole number of zero or more"


def _schema(argument: Any) -> str | None:
    from mcptest.schema.validation import schema_problem

    problem = schema_problem(argument)
    return f"the schema {problem}" if problem else None


def _type(argument: Any) -> str | None:
    if argument in ([], ()) or any(name not in TYPES for name in _each(argument)):
        return f"expected one of {', '.join(TYPES)}"
    return None


_text = _expects("a string", lambda one: isinstance(one, str))
_list = _expects("a list", lambda one: isinstance(one, list | tuple))
_STRINGS = {"type": "array", "items": {"type": "string"}, "minItems": 1}
_ONE_OR_MORE_STRINGS = {"anyOf": [{"type": "string"}, _STRINGS]}
_TYPE = {"enum": list(TYPES)}

ANYTHING = ArgumentKind({}, lambda one: None)
SOME = ArgumentKind({"not": {"enum": [[], {}]}}, _some)
SEVERAL = ArgumentKind({"type": "array", "minItems": 1}, lambda one: _list(one) or _some(one))
TEXT = ArgumentKind({"type": "string"}, _text)
TEXTS = ArgumentKind(_ONE_OR_MORE_STRINGS, _texts)
NUMBER = ArgumentKind({"type": "number"}, _expects("a number", is_number))
COUNT = ArgumentKind({"type": "integer", "minimum": 0}, _count)
FLAG = ArgumentKind({"type": "boolean"}, _expects("a boolean", lambda one: isinstance(one, bool)))
YES = ArgumentKind(
    {"const": True}, lambda one: None if one is True else "only true checks anything"
)
PATTERN = ArgumentKind(
    _ONE_OR_MORE_STRINGS,
    lambda one: _texts(one) or next(filter(None, map(pattern_problem, _each(one))), None),
)
SCHEMA = ArgumentKind({"type": ["object", "boolean"]}, _schema)
TYPE = ArgumentKind({"anyOf": [_TYPE, {"type": "array", "items": _TYPE, "minItems": 1}]}, _type)


# -- Matching one value --------------------------------------------------------------------------

_EMPTY_TEXTS = ("", "null", "[]", "{}")


class Failure(msgspec.Struct, frozen=True):
    """One expectation that does not hold. The message holds a peer's text as it came."""

    check: str
    """The name of the expectation or of the matcher, as a suite writes it."""
    message: str
    expected: Any = None
    actual: Any = None
    pointer: str = ""
    """Where: in the value or the result, a file, a target."""


def shown(value: Any) -> str:
    """A value in a message: short, on one line, and as JSON."""
    if value is ABSENT:
        return "nothing"
    if isinstance(value, str):
        return show(quote(first_runes(value)), 220)
    return show(compact_json(value), 200)


_Judge: TypeAlias = Callable[[Any, Any], Failure | None]
_Check: TypeAlias = Callable[[Any, Any], Failure | str | None]
"""A bare reason stands for the failure of the whole value against the whole argument."""


class Matcher(msgspec.Struct, frozen=True):
    """One matcher: `check` judges a value by an argument, `argument` says what may be asked."""

    name: str
    check: _Judge
    argument: ArgumentKind
    about: str
    """What it does, in a sentence or two."""


MATCHERS: dict[str, Matcher] = {}


def _matcher(
    argument: ArgumentKind,
    can_judge: Callable[[Any], bool] = lambda value: True,
    what: str = "",
    *,
    each: bool = False,
) -> Callable[[_Check], _Judge]:
    """Name a function as a matcher, and say of which values it can judge: `what` they are.

    `each`: a list as argument asks for all of its entries.
    """

    def add(check: _Check) -> _Judge:
        name = check.__name__.removesuffix("_")

        def judge(value: Any, wanted: Any) -> Failure | None:
            if not can_judge(value):
                reason = f"expected {what}, got {json_type(value)} {shown(value)}"
                return Failure(name, reason, wanted, value)
            for one in _each(wanted) if each else (wanted,):
                found = check(value, one)
                if found is not None:
                    return Failure(name, found, one, value) if isinstance(found, str) else found
            return None

        MATCHERS[name] = Matcher(name, judge, argument, " ".join((check.__doc__ or "").split()))
        return judge

    return add


_of_text = functools.partial(
    _matcher, can_judge=lambda value: isinstance(value, str), what="a string"
)
_of_container = functools.partial(
    _matcher,
    can_judge=lambda value: isinstance(value, str | list | dict),
    what="a string, an array or an object",
)


@_matcher(ANYTHING)
def exact(value: Any, argument: Any) -> str | None:
    """The same JSON value, typed: 1 is 1.0, but neither true nor "1"."""
    same = json_equal(value, argument)
    return None if same else f"expected {shown(argument)}, got {shown(value)}"


@_matcher(ANYTHING)
def not_exact(value: Any, argument: Any) -> str | None:
    """Any other JSON value."""
    return f"expected anything but {shown(argument)}" if json_equal(value, argument) else None


@_matcher(SEVERAL)
def one_of(value: Any, argument: Any) -> str | None:
    """Exactly one of the listed values."""
    if any(json_equal(value, choice) for choice in argument):
        return None
    return f"expected one of {shown(list(argument))}, got {shown(value)}"


@_of_text(TEXT)
def equals_trimmed(value: Any, argument: str) -> str | None:
    """The same text, white space at both ends aside."""
    same = trim_space(value) == trim_space(argument)
    return None if same else f"expected {shown(argument)}, got {shown(value)}"


def holds(value: Any, wanted: Any) -> bool:
    """Text holds a substring, an array an equal element, an object equal members."""
    if isinstance(value, str):
        return isinstance(wanted, str) and wanted in value
    if isinstance(value, list):
        return any(json_equal(item, wanted) for item in value)
    if isinstance(value, dict) and isinstance(wanted, Mapping):
        return all(name in value and json_equal(value[name], wanted[name]) for name in wanted)
    return False


@_of_container(SOME, each=True)
def contains(value: Any, wanted: Any) -> str | None:
    """Text: the substring; array: an equal element; object: equal members.

    A list asks for all of its entries.
    """
    if holds(value, wanted):
        return None
    return f"expected it to contain {shown(wanted)}, got {shown(value)}"


@_of_container(SEVERAL)
def contains_any(value: Any, choices: Any) -> str | None:
    """At least one of the listed, as in `contains`."""
    if any(holds(value, wanted) for wanted in choices):
        return None
    return f"expected it to contain at least one of {shown(list(choices))}, got {shown(value)}"


@_of_container(SOME, each=True)
def not_contains(value: Any, unwanted: Any) -> str | None:
    """None of them, as in `contains`."""
    return f"expected it NOT to contain {shown(unwanted)}" if holds(value, unwanted) else None


@_of_text(TEXTS, each=True)
def icontains(value: Any, wanted: str) -> str | None:
    """Text: the substring in any case. A list asks for all of its entries."""
    if wanted.casefold() in value.casefold():
        return None
    return f"expected it to contain {shown(wanted)} in any case, got {shown(value)}"


def first_out_of_order(value: str, wanted: Iterable[str]) -> tuple[str, int] | None:
    """The first text that is not found after the one before it, and where the search began."""
    position = 0
    for text in wanted:
        found = value.find(text, position)
        if found < 0:
            return text, position
        position = found + len(text)
    return None


@_matcher(SEVERAL, lambda value: isinstance(value, str | list), "a string or an array")
def in_order(value: Any, argument: Any) -> str | None:
    """Text: the substrings, each after the one before; array: likewise, its elements."""
    if isinstance(value, str):
        lost, _ = first_out_of_order(value, _each(argument)) or (ABSENT, 0)
    else:
        items = iter(value)
        missing = (w for w in _each(argument) if not any(json_equal(i, w) for i in items))
        lost = next(missing, ABSENT)
    return None if lost is ABSENT else f"{shown(lost)} is missing in this order"


@_of_text(PATTERN, each=True)
def regex(value: Any, pattern: str) -> str | None:
    """Text: RE2 finds the pattern anywhere. A list asks for all of its entries."""
    return _by_pattern(value, pattern, wanted=True)


@_of_text(PATTERN, each=True)
def not_regex(value: Any, pattern: str) -> str | None:
    """Text: RE2 finds none of the patterns."""
    return _by_pattern(value, pattern, wanted=False)


def _by_pattern(value: str, pattern: str, *, wanted: bool) -> str | None:
    try:
        found = found_in(pattern, value)
    except RegexError as error:
        return f"invalid pattern {quote(pattern)}: {error}"
    negation = "" if wanted else "NOT "
    reason = f"expected it {negation}to match regex {quote(pattern)}, got {shown(value)}"
    return None if found is wanted else reason


@_matcher(SCHEMA)
def schema(value: Any, argument: Any) -> Failure | str | None:
    """Fits the JSON Schema (2020-12 unless `$schema` says otherwise)."""
    from mcptest.schema.validation import CompiledSchema, SchemaError

    try:
        misfit = CompiledSchema(argument).misfit(value)
    except SchemaError as error:
        return f"can't be checked against the schema: {error}"
    except (ValueError, OverflowError, RecursionError) as error:
        # a value that is no JSON (a lone surrogate, an endless number) can't fit any schema
        return f"it can't be validated: {show(str(error))}"
    if misfit is None:
        return None
    where = f" at {misfit.pointer}" if misfit.pointer else ""
    reason = f"does not match the schema{where}: {misfit.reason}"
    return Failure("schema", reason, argument, value, misfit.pointer)


@_matcher(TYPE)
def type_(value: Any, argument: Any) -> Failure | None:
    """Has the JSON type, or one of a list of types; `integer` is a whole number."""
    names = list(_each(argument))
    actual = json_type(value)
    whole = is_number(value) and (isinstance(value, int) or value.is_integer())
    if actual in names or ("integer" in names and whole):
        return None
    reason = f"expected type {' or '.join(names)}, got {actual}"
    return Failure("type", reason, argument, actual)


@_matcher(FLAG)
def exists(value: Any, argument: bool) -> Failure | None:
    """true: there is a value, null included; false: there is none."""
    if (value is not ABSENT) is argument:
        return None
    if argument:
        return Failure("exists", "expected a value, got none", True, False)
    return Failure("exists", f"expected no value, got {shown(value)}", False, True)


def is_empty(value: Any) -> bool:
    """Null, an empty array or object, and text that says no more than one of these."""
    if isinstance(value, str):
        return trim_space(value) in _EMPTY_TEXTS
    return value is None or (isinstance(value, list | dict) and not value)


@_matcher(YES)
def not_empty(value: Any, argument: bool) -> str | None:
    """Not null, [] or {}, and not a text with only one of these."""
    empty = is_empty(value)
    return f"expected a non-empty value, got {shown(value)}" if empty else None


@_matcher(NUMBER, is_number, "a number")
def minimum(value: Any, argument: float) -> str | None:
    """A number of at least this."""
    return None if value >= argument else f"expected at least {argument}, got {shown(value)}"


@_matcher(NUMBER, is_number, "a number")
def maximum(value: Any, argument: float) -> str | None:
    """A number of at most this."""
    return None if value <= argument else f"expected at most {argument}, got {shown(value)}"


@_of_container(COUNT)
def min_length(value: Any, argument: int) -> str | None:
    """At least this many characters, elements or members."""
    reason = f"expected a length of at least {argument}, got {len(value)}"
    return None if len(value) >= argument else reason


@_of_container(COUNT)
def max_length(value: Any, argument: int) -> str | None:
    """At most this many characters, elements or members."""
    reason = f"expected a length of at most {argument}, got {len(value)}"
    return None if len(value) <= argument else reason


def match(matcher: Mapping[str, Any], value: Any, missing: str = "") -> Failure | None:
    """The first reason why `value` does not match; every key of `matcher` has to hold.

    `missing` says why the value is ABSENT, when it is.
    """
    for name, argument in matcher.items():
        if value is ABSENT and name != "exists":
            return Failure(name, missing or "there is no value", argument)
        if (failure := MATCHERS[name].check(value, argument)) is not None:
            return failure
    return None


def matcher_problem(matcher: Mapping[str, Any]) -> str | None:
    """Why the matcher can't be used, or None: for the moment when a suite is loaded."""
    if not matcher:
        return "a matcher without a name checks nothing"
    for name, argument in matcher.items():
        known = MATCHERS.get(name)
        if known is None:
            near = close_matches(name, MATCHERS, 1)
            hint = f", did you mean {near[0]}?" if near else f"; there are {', '.join(MATCHERS)}"
            return f"unknown matcher {quote(name)}{hint}"
        if (problem := known.argument.problem(argument)) is not None:
            return f"{name}: {problem}"
    return None
