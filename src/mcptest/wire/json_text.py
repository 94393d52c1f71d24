"""JSON text as a tester reads it: the bytes are kept, and what is wrong is reported, not raised.

The fast path is one call into msgspec. Only text that it refuses, or that could hide a fault it
does not see (nesting, duplicate keys), is read again with the standard library and explained.
"""

from __future__ import annotations

import codecs
import enum
import json
import math
import re
from collections.abc import Callable
from typing import Any

import msgspec

from mcptest.core.limits import DEFAULT_LIMITS, MEBIBYTE
from mcptest.core.message import ABSENT, Flaw, Problem
from mcptest.core.safe_text import show

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode
_encode_in_order = msgspec.json.Encoder(order="deterministic").encode

# Where msgspec stopped reading. Text that only ends too early has no such place, or its end.
_MALFORMED_AT = r"\(byte (\d+)\)"

# What stands before a bracket is consumed with it, strings whole and possessively, so that only
# structural brackets are counted and whatever text takes one pass. Compiled when there is text with
# enough of them.
_STRUCTURE = rb'(?s:[^"\[\]{}]++|"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z))*+(?:([\[{])|([\]}])|\Z)'


def read_json(raw: bytes, depth: int = DEFAULT_LIMITS.depth) -> tuple[Any, tuple[Problem, ...]]:
    """The value and what is wrong with its text; ABSENT when no value could be read at all.

    Duplicate keys are not looked for here, see `duplicate_keys`: the search costs more than the
    parse and only a verdict needs it.
    """
    # First: to look how deep all of them are nested takes longer.
    if has_too_many_values(raw) and not is_deeper(raw[:_HARMLESS], depth):
        return _unread(raw, Problem(Flaw.TOO_MANY_VALUES, UNREAD))
    if is_deeper(raw, depth):
        return _unread(raw, Problem(Flaw.TOO_DEEP, f"nested deeper than {depth} levels"))
    try:
        return _decode(raw), ()
    except (ValueError, RecursionError):
        problems: list[Problem] = []
        value = _parse(_text_of(raw, problems), problems)
        return value, tuple(problems)


class Beginning(enum.Enum):
    """What bytes are that may have been cut off somewhere."""

    WHOLE = "a whole object or array"
    OF_A_MESSAGE = "the beginning of one"
    OF_NOTHING = "neither, however they would go on"


def beginning_of(raw: bytes) -> Beginning:
    """Whether `raw` is JSON of a message, could have become that, or never could."""
    if raw.lstrip()[:1] not in (b"{", b"["):
        return Beginning.OF_NOTHING
    if costs_too_much(raw):
        return Beginning.OF_A_MESSAGE  # nobody parses it
    try:
        _decode(raw)
    except UnicodeDecodeError:
        return Beginning.OF_NOTHING
    except ValueError as error:
        at = re.search(_MALFORMED_AT, str(error))
        ends_there = at is None or int(at[1]) >= len(raw)
        return Beginning.OF_A_MESSAGE if ends_there else Beginning.OF_NOTHING
    return Beginning.WHOLE


def json_value(text: str) -> Any:
    """A value that a person wrote as JSON. ValueError says what is wrong with it."""

    def refuse(name: str) -> Any:
        raise ValueError(f"{name} is not a JSON value")

    return json.loads(text, parse_constant=refuse)


def write_json(value: Any) -> bytes:
    """A value as JSON. Half a surrogate pair that a peer gave us goes back as it came."""
    try:
        return _encode(value)
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode("ascii")


def spelled(value: Any) -> bytes:
    """The same for the same value, in whatever order its members came; for any value at all."""
    try:
        return _encode_in_order(value)
    except UnicodeEncodeError:  # half a surrogate pair can only be written escaped
        return json.dumps(value, sort_keys=True).encode()
    except (TypeError, ValueError, RecursionError):
        return repr(value).encode("utf-8", "backslashreplace")


def mark_of(written: bytes) -> bytes:
    """What stands for a text in a table, which so holds no second copy of a long one."""
    if len(written) <= _FEW:
        return written
    import hashlib

    return hashlib.sha256(written).digest()


def duplicate_keys(raw: bytes, value: Any) -> tuple[str, ...]:
    """Keys that occur twice in one object of `raw`, whose decoded form is `value`."""
    try:
        quotes = _quotes_of(value) if len(raw) > _LARGE else _encode(value).count(b'"')
        if quotes == raw.count(b'"') and b"\\u0022" not in raw:
            return ()  # written again with as many quotes: a lost member would have lost its own
    except (ValueError, TypeError, RecursionError):
        pass  # a value msgspec can't write is looked at the slow way
    found: dict[str, None] = {}

    def pairs(members: list[tuple[str, Any]]) -> dict[str, Any]:
        table = dict(members)
        if len(table) != len(members):
            seen: set[str] = set()
            for key, _ in members:
                if key in seen:
                    found[key] = None
                seen.add(key)
        return table

    try:
        json.loads(raw, object_pairs_hook=pairs)
    except (ValueError, RecursionError):
        return ()
    return tuple(found)


_LARGE = 1_000_000
_FEW = 1_000


def _quotes_of(value: Any) -> int:
    """The quotes in its JSON. A few long texts are not copied for it, they may be megabytes."""
    quotes, parts = 0, [value]
    for _ in range(_FEW):
        if not parts:
            return quotes
        part = parts.pop()
        if type(part) is str:
            quotes += 2 + part.count('"')
        elif type(part) is dict:
            parts += [*part, *part.values()]
        elif type(part) is list:
            parts += part
    return _encode(value).count(b'"')


def costs_too_much(raw: bytes) -> bool:
    """Whether nobody may parse the text, however well-formed it is."""
    return has_too_many_values(raw) or is_deeper(raw, DEFAULT_LIMITS.depth)


def is_deeper(raw: bytes, depth: int) -> bool:
    """Whether the text nests deeper than `depth`; for most text that is seen by its length."""
    if len(raw) < 2 * depth or not _opens_more_often(raw, depth):
        return False
    if len(raw) <= _HARMLESS:
        return nesting_depth(raw, depth) > depth
    return _remembered(("depth", depth, hash(raw)), lambda: nesting_depth(raw, depth) > depth)


_REMEMBERED = 64
_answers: dict[tuple[str, int, int], bool] = {}


def _remembered(question: tuple[str, int, int], answer: Callable[[], bool]) -> bool:
    """What was found out about a long text: it is read, kept and judged, and asked each time."""
    found = _answers.get(question)
    if found is None:
        while len(_answers) >= _REMEMBERED:
            _answers.pop(next(iter(_answers), question), None)
        found = _answers[question] = answer()
    return found


def _opens_more_often(raw: bytes, times: int) -> bool:
    """Hops from bracket to bracket: of long text with few of them ten times as fast as counting."""
    for bracket in (b"[", b"{"):
        place = raw.find(bracket)
        while place >= 0:
            times -= 1
            if times < 0:
                return True
            place = raw.find(bracket, place + 1)
    return False


def nesting_depth(raw: bytes, stop_after: int) -> int:
    """How deep the text nests, counted without parsing; stops once it is past `stop_after`."""
    depth = deepest = 0
    for match in re.finditer(_STRUCTURE, raw):
        if match.lastindex == 1:
            depth += 1
            if depth > deepest:
                deepest = depth
                if deepest > stop_after:
                    break
        elif match.lastindex == 2:
            depth -= 1
    return deepest


# -- How much memory the values of a text take ---------------------------------------------------

_HARMLESS = 256 * 1024
"""Text as short as this takes little, whatever is in it."""
_OBJECT_COST = 184
_ARRAY_COST = 56
_TEXT_COST = 50
_NUMBER_COST = 28
_PLACE_COST = 8
"""What values of Python take beside the text in them, in bytes. Keys are shared."""
_FEW_MEMBERS = 8
_MEMBER_COST = 90
"""Of each member beyond a few in every object: such an object has keys that no other has."""
_TEXT = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?'
_STRETCH = rb"(?s:" + _TEXT + rb'|[^"]{1,256}+){1,1000}+'
"""As much as is looked at in one go: texts of any length, and not much between them."""
_BETWEEN_TEXTS = rb"(?s:" + _TEXT + rb')|([^"]{1,256}+)'


def has_too_many_values(raw: bytes, most: int = DEFAULT_LIMITS.values_bytes) -> bool:
    """Whether reading the text would take more memory than that: `[{},{},…` takes 24 times its own.

    What could be structure is counted first, which is quick; only where that is too much, texts
    and keys are told apart from it.
    """
    if len(raw) <= _HARMLESS:
        return False
    if values_cost(raw) <= most:
        return False
    return _remembered(("values", most, hash(raw)), lambda: _takes_more(raw, most))


def _takes_more(raw: bytes, most: int) -> bool:
    """The same, with texts and keys told apart: by the stretch, as there may be a million texts."""
    texts = objects = arrays = commas = colons = 0
    find_between = re.compile(_BETWEEN_TEXTS).findall
    for stretch in re.finditer(_STRETCH, raw):
        pieces = find_between(raw, *stretch.span())
        texts += pieces.count(b"")  # of a text nothing is kept
        between = b"".join(pieces)
        objects += between.count(b"{")
        arrays += between.count(b"[")
        commas += between.count(b",")
        colons += between.count(b":")
        if _values_cost(2 * texts, objects, arrays, commas, colons) > most:
            return True
    cost = _values_cost(2 * texts, objects, arrays, commas, colons)
    return cost + _members_cost(objects, colons) > most


def values_cost(raw: bytes) -> int:
    """At most so many bytes the values of the text take, beside the text in them."""
    quotes, objects, arrays, commas, colons = map(raw.count, (b'"', b"{", b"[", b",", b":"))
    return _values_cost(quotes, objects, arrays, commas) + _members_cost(objects, colons)


def _values_cost(quotes: int, objects: int, arrays: int, commas: int, colons: int = 0) -> int:
    texts = max(0, quotes // 2 - colons)
    numbers = max(0, commas - texts - objects - arrays)
    cost = objects * _OBJECT_COST + arrays * _ARRAY_COST + texts * _TEXT_COST
    return cost + numbers * _NUMBER_COST + commas * _PLACE_COST


def _members_cost(objects: int, colons: int) -> int:
    return max(0, colons - _FEW_MEMBERS * objects) * _MEMBER_COST


UNREAD = (
    "it has too many values: reading them would take more than "
    f"{DEFAULT_LIMITS.values_bytes // MEBIBYTE} MB"
)
"""What is said of such a text."""


def _unread(raw: bytes, why: Problem) -> tuple[Any, tuple[Problem, ...]]:
    """What else is wrong with a text whose values nobody reads."""
    problems: list[Problem] = []
    _text_of(raw, problems)
    return ABSENT, (*problems, why)


def _text_of(raw: bytes, problems: list[Problem]) -> str:
    if raw.startswith(codecs.BOM_UTF8):
        problems.append(Problem(Flaw.BYTE_ORDER_MARK, "starts with a byte order mark"))
        raw = raw[len(codecs.BOM_UTF8) :]
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        bad = raw[error.start]
        problems.append(
            Problem(Flaw.INVALID_UTF8, f"byte 0x{bad:02x} at offset {error.start} is not UTF-8")
        )
        return raw.decode("utf-8", "replace")


def _parse(text: str, problems: list[Problem]) -> Any:
    def constant(name: str) -> float:
        problems.append(Problem(Flaw.NOT_FINITE, f"{name} is not JSON"))
        return float(name.replace("Infinity", "inf"))

    def number(literal: str) -> float:
        value = float(literal)
        if math.isinf(value):
            problems.append(
                Problem(Flaw.HUGE_NUMBER, f"{show(literal, 40)} is too large for a double")
            )
        return value

    def integer(literal: str) -> int | float:
        try:
            return int(literal)
        except ValueError:
            digits = len(literal.lstrip("-"))
            problems.append(Problem(Flaw.HUGE_NUMBER, f"an integer of {digits} digits"))
            return math.inf

    try:
        value = json.loads(text, parse_constant=constant, parse_float=number, parse_int=integer)
    except (json.JSONDecodeError, RecursionError) as error:
        problems.append(Problem(Flaw.NOT_JSON, _why_not_json(text, error)))
        return ABSENT
    if "\\u" in text:
        try:
            json.dumps(value, ensure_ascii=False).encode("utf-8")
        except UnicodeEncodeError:
            reason = "an escaped surrogate without its partner"
            problems.append(Problem(Flaw.LONE_SURROGATE, reason))
    return value


def _why_not_json(text: str, error: json.JSONDecodeError | RecursionError) -> str:
    if isinstance(error, RecursionError):
        return "nested too deeply to be read"
    if not text.strip():
        return "empty" if not text else "only white space"
    near = text[max(0, error.pos - 10) : error.pos + 20]
    return f"{error.msg.removesuffix(' at')} at offset {error.pos}, near {show(near, 40)!r}"
