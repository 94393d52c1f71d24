"""Texts that a JSON Schema asks for: by pattern, by format, by length.

A pattern is parsed by the standard library and walked; what can't be walked (lookaround) is passed
over, so whoever asks validates the text. A run of one class of characters is one choice, not one
for each character: that is what makes it fast.
"""

from __future__ import annotations

import datetime
import functools
import ipaddress
import re
import string
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from mcptest.schema.choices import Choices, Make, Plainest
from mcptest.schema.combinations import Plain, count

_parser: Any = re._parser  # type: ignore[attr-defined]  # noqa: SLF001 - the parsed form has no public home

_PRINTABLE: Final = "".join(map(chr, range(0x20, 0x7F)))
_ORDINARY: Final = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-. "
_REPEATS: Final = 4
"""How far beyond its least number a repetition goes."""
_LONGEST: Final = 10_000
_LONGEST_PATTERN: Final = 20_000
_MOST_STEPS: Final = 50_000
_REPEATING: Final = frozenset({"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"})
_PASSED_OVER: Final = frozenset({"AT", "ASSERT", "ASSERT_NOT"})
_CATEGORIES: Final = {
    "CATEGORY_DIGIT": "0123456789",
    "CATEGORY_SPACE": " \t",
    "CATEGORY_WORD": "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_",
}


class PatternError(ValueError):
    """The expression is not one that can be walked."""


class _Run(NamedTuple):
    """Characters of one class, so many of them."""

    letters: str
    least: int = 1
    most: int | None = 1


class _Branch(NamedTuple):
    options: tuple[_Parts, ...]


class _Repeat(NamedTuple):
    least: int
    most: int
    parts: _Parts


class _Group(NamedTuple):
    number: int
    parts: _Parts


class _GroupText(NamedTuple):
    """What a group before it has matched."""

    number: int


_Part = str | _Run | _Branch | _Repeat | _Group | _GroupText
_Parts = tuple[_Part, ...]


def text_matching(pattern: str, choices: Choices, least: int = 0, most: int = _LONGEST) -> str:
    """A text in which the expression is found, of a fitting length as far as that can be told.
    Raises PatternError."""
    found: list[str] = []
    _write(_parts_within(pattern, least, most), choices, found, {})
    text = "".join(found)
    # What ends in `+`, `*` or not at all goes on with its last character.
    return text + (text[-1:] or "x") * (least - len(text))


def _write(parts: _Parts, choices: Choices, found: list[str], groups: dict[int, str]) -> None:
    for part in parts:
        if isinstance(part, str):
            found.append(part)
        elif isinstance(part, _Run):
            top = part.least + _REPEATS
            most = top if part.most is None else min(part.most, top)
            found.append(choices.text(part.letters, part.least, most))
        elif isinstance(part, _Branch):
            _write(part.options[choices.index(len(part.options))], choices, found, groups)
        elif isinstance(part, _Repeat):
            for _ in range(choices.integer(part.least, part.most)):
                _write(part.parts, choices, found, groups)
        elif isinstance(part, _Group):
            start = len(found)
            _write(part.parts, choices, found, groups)
            groups[part.number] = "".join(found[start:])
        else:
            found.append(groups.get(part.number, ""))
        if len(found) > _MOST_STEPS:
            raise PatternError("needs a string that is too long")


@functools.lru_cache(maxsize=256)
def _parts_within(pattern: str, least: int, most: int) -> _Parts:
    """The parts, where what may be of any length is stretched or bounded to those lengths."""
    nodes = _parsed(pattern)
    parts = _parts_of(nodes)
    if _least_steps(parts) > _MOST_STEPS:
        raise PatternError("repeats itself too often")
    needed = 0
    for part in parts:
        if not isinstance(part, str | _Run):
            return parts
        needed += len(part) if isinstance(part, str) else part.least
    if needed < least and (not nodes or str(nodes[-1][0]) != "AT"):
        parts = (*parts, _Run(_ORDINARY, 0, None))
    free = [part for part in parts if isinstance(part, _Run) and part.most != part.least]
    if not free:
        return parts
    run = free[-1]
    others = needed - run.least
    shortest = max(run.least, min(least - others, run.most or least))
    longest = most - others - _REPEATS * (len(free) - 1)
    fitting = _Run(run.letters, shortest, max(shortest, min(run.most or longest, longest)))
    return tuple(fitting if part is run else part for part in parts)


def _parsed(pattern: str) -> Any:
    if len(pattern) > _LONGEST_PATTERN:
        raise PatternError("is too long")
    # ECMA writes `(?<name>` for groups and `\\p{L}` for letters.
    ours = re.sub(r"\(\?<(?=[A-Za-z_])", "(?P<", pattern)
    ours = re.sub(r"\\[pP]\{\^?L[a-z&]?\}|\\[pP]\{(?:Alphabetic|Letter)\}", "a-zA-Z", ours)
    try:
        return _parser.parse(ours.replace(r"\/", "/"))
    except (re.error, RecursionError, OverflowError) as error:
        raise PatternError(str(error)) from None


def _parts_of(nodes: Any) -> _Parts:
    found: list[_Part] = []
    for operation, argument in nodes:
        for part in _translated(str(operation), argument):
            if isinstance(part, str) and found and isinstance(found[-1], str):
                found[-1] += part
            else:
                found.append(part)
    return tuple(found)


def _translated(operation: str, argument: Any) -> Iterator[_Part]:
    if operation == "LITERAL":
        yield chr(argument)
    elif operation == "NOT_LITERAL":
        yield _Run(_ORDINARY.replace(chr(argument), ""))
    elif operation == "ANY":
        yield _Run(_ORDINARY)
    elif operation == "IN":
        yield _Run(_letters_of(argument))
    elif operation == "BRANCH":
        yield _Branch(tuple(map(_parts_of, argument[1])))
    elif operation == "SUBPATTERN":
        inner = _parts_of(argument[-1])
        yield from inner if argument[0] is None else (_Group(argument[0], inner),)
    elif operation == "ATOMIC_GROUP":
        yield from _parts_of(argument)
    elif operation in _REPEATING:
        yield _repeated(*argument)
    elif operation == "GROUPREF":
        yield _GroupText(argument)
    elif operation not in _PASSED_OVER:
        raise PatternError(f"{operation} is not supported")


def _repeated(least: int, most: Any, nodes: Any) -> _Part:
    if least > _LONGEST:
        raise PatternError("needs a string that is too long")
    highest = None if str(most) == "MAXREPEAT" else int(most)
    inner = _parts_of(nodes)
    if len(inner) == 1 and isinstance(inner[0], _Run) and inner[0].least == inner[0].most == 1:
        return _Run(inner[0].letters, least, highest)
    top = least + _REPEATS
    return _Repeat(least, top if highest is None else min(highest, top), inner)


def _least_steps(parts: _Parts) -> int:
    """How many steps a walk takes at least; a character is one, too."""
    steps = 1
    for part in parts:
        if isinstance(part, _Repeat):
            steps += part.least * _least_steps(part.parts)
        elif isinstance(part, _Branch):
            steps += min(map(_least_steps, part.options))
        elif isinstance(part, _Group):
            steps += _least_steps(part.parts)
        else:
            steps += part.least if isinstance(part, _Run) else 1
    return steps


def _letters_of(items: Any) -> str:
    """The characters of a class, ordinary ones first."""
    negated = bool(items) and str(items[0][0]) == "NEGATE"
    found: dict[str, None] = {}
    for operation, argument in items[1:] if negated else items:
        found.update(dict.fromkeys(_members_of(str(operation), argument)))
    if negated:
        found = dict.fromkeys(one for one in _ORDINARY + _PRINTABLE if one not in found)
    if not found:
        raise PatternError("has an empty character class")
    return "".join(found)


def _members_of(operation: str, argument: Any) -> Sequence[str]:
    if operation == "LITERAL":
        return chr(argument)
    if operation == "RANGE":
        low, high = argument
        return [chr(code) for code in range(low, min(high, low + 256) + 1)]
    name = str(argument)
    if name in _CATEGORIES:
        return _CATEGORIES[name]
    positive = name.replace("_NOT_", "_")
    if positive in _CATEGORIES:
        return [one for one in _PRINTABLE if one not in _CATEGORIES[positive]]
    raise PatternError(f"{name} is not supported")


# -- formats and lengths ------------------------------------------------------------------------

_LONGEST_TEXT: Final = 100_000
_FORMATS: Final[Mapping[str, tuple[str, ...]]] = {
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
"""What is plausible or at an edge, by format."""
_ENCODED: Final = {"base64": "bWNwdGVzdA==", "base64url": "bWNwdGVzdA", "base16": "6D63"}
_EPOCH: Final = datetime.datetime(2000, 1, 1, tzinfo=datetime.UTC)
_CENTURY: Final = 36_524
_DAY: Final = 86_400
_HOSTS: Final = ("example.com", "example.org", "a.b-c.example.net")


def _moment(choices: Choices, seconds: int) -> datetime.datetime:
    return _EPOCH + datetime.timedelta(seconds=choices.integer(0, seconds))


def _word(choices: Choices) -> str:
    return choices.text(string.ascii_lowercase + string.digits, 1, 8)


def _host(choices: Choices) -> str:
    return _HOSTS[choices.index(len(_HOSTS))]


_BY_FORMAT: Final[Mapping[str, Callable[[Choices], str]]] = {
    "date": lambda choices: _moment(choices, _CENTURY * _DAY).date().isoformat(),
    "date-time": lambda choices: _moment(choices, _CENTURY * _DAY).isoformat()[:19] + "Z",
    "time": lambda choices: _moment(choices, _DAY - 1).time().isoformat() + "Z",
    "duration": lambda choices: f"PT{choices.integer(0, 10**6)}S",
    "email": lambda choices: f"{_word(choices)}@{_host(choices)}",
    "uuid": lambda choices: str(uuid.UUID(int=choices.integer(0, 2**122 - 1), version=4)),
    "ipv4": lambda choices: str(ipaddress.IPv4Address(choices.integer(0, 2**32 - 1))),
    "ipv6": lambda choices: str(ipaddress.IPv6Address(choices.integer(0, 2**128 - 1))),
    "hostname": lambda choices: f"{_word(choices)}.{_host(choices)}",
    "uri": lambda choices: f"https://{_host(choices)}/{_word(choices)}",
    "json-pointer": lambda choices: "".join(
        f"/{_word(choices)}" for _ in range(choices.integer(0, 2))
    ),
}


def text_maker(plain: Plain) -> Make | None:
    """What pattern, format and lengths ask for. A guess where these get in each other's way."""
    least = count(plain.get("minLength"), 0)
    most = min(count(plain.get("maxLength"), _LONGEST_TEXT), _LONGEST_TEXT)
    if least > most:
        return None
    pattern = plain.get("pattern")
    if isinstance(pattern, str):
        try:
            text_matching(pattern, Plainest(), least, most)
        except PatternError:
            pass
        else:
            return lambda choices, name: text_matching(pattern, choices, least, most)
    format_name = str(plain.get("format"))
    if format_name in _FORMATS:
        examples = _FORMATS[format_name]
        made = _BY_FORMAT.get(format_name)
        options = len(examples) * (1 if made is None else 2)

        def make(choices: Choices, name: str) -> str:
            place = choices.index(options)
            if made is not None and place >= len(examples):
                return made(choices)
            return examples[place]

        return make
    encoded = _ENCODED.get(str(plain.get("contentEncoding")))
    if encoded is not None:
        return lambda choices, name: encoded
    return lambda choices, name: choices.text("", least, most, name)
