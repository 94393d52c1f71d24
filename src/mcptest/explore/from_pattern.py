"""A text that a regular expression of a JSON Schema matches.

The expression is parsed by the standard library and walked; what can't be walked (lookaround,
back-references across alternatives) is passed over, so whoever asks validates the text.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from typing import Any, Final

from mcptest.explore.choices import Choices

_parser: Any = re._parser  # type: ignore[attr-defined]  # noqa: SLF001 - the parsed form has no public home
_codes: Any = re._constants  # type: ignore[attr-defined]  # noqa: SLF001

_PRINTABLE: Final = "".join(map(chr, range(0x20, 0x7F)))
_ORDINARY: Final = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-. "
_REPEATS: Final = 4
"""How far beyond its least number a repetition goes."""
_LONGEST: Final = 10_000
_LONGEST_PATTERN: Final = 20_000
_MOST_STEPS: Final = 50_000
_REPEATING: Final = frozenset({"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"})
_CATEGORIES: Final = {
    "CATEGORY_DIGIT": "0123456789",
    "CATEGORY_SPACE": " \t",
    "CATEGORY_WORD": "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_",
}


class PatternError(ValueError):
    """The expression is not one that can be walked."""


class _TooLong(Exception):  # noqa: N818 - not an error: the text is given up
    pass


def text_matching(pattern: str, choices: Choices) -> str:
    """A text in which the expression is found. Raises PatternError."""
    if _least_steps(pattern) > _MOST_STEPS:
        raise PatternError("repeats itself too often")
    walk = _Walk(choices)
    try:
        walk.sequence(parsed(pattern))
    except _TooLong:
        raise PatternError("asks for a text that is too long") from None
    return "".join(walk.text)


@functools.lru_cache(maxsize=256)
def parsed(pattern: str) -> Any:
    """The expression as the standard library reads it. Raises PatternError."""
    if len(pattern) > _LONGEST_PATTERN:
        raise PatternError("is too long")
    try:
        return _parser.parse(_in_our_dialect(pattern))
    except (re.error, RecursionError, OverflowError) as error:
        raise PatternError(str(error)) from None


@functools.lru_cache(maxsize=256)
def _least_steps(pattern: str) -> int:
    """How many steps a walk takes at least. Raises PatternError."""
    return _steps_of(parsed(pattern))


def _steps_of(nodes: Any) -> int:
    steps = 1
    for operation, argument in nodes:
        name = str(operation)
        if name in _REPEATING:
            steps += argument[0] * _steps_of(argument[2])
        elif name == "BRANCH":
            steps += min(map(_steps_of, argument[1]))
        elif name in {"SUBPATTERN", "ATOMIC_GROUP"}:
            steps += _steps_of(argument[-1] if name == "SUBPATTERN" else argument)
        else:
            steps += 1
    return steps


def _in_our_dialect(pattern: str) -> str:
    r"""ECMA writes `\d` for ASCII digits, `(?<name>` for groups and `\p{L}` for letters."""
    pattern = re.sub(r"\(\?<(?=[A-Za-z_])", "(?P<", pattern)
    pattern = re.sub(r"\\[pP]\{\^?L[a-z&]?\}|\\[pP]\{(?:Alphabetic|Letter)\}", "a-zA-Z", pattern)
    pattern = re.sub(r"\\u([0-9a-fA-F]{4})", r"\\u\1", pattern)
    return pattern.replace(r"\/", "/")


class _Walk:
    """One walk through a parsed expression."""

    def __init__(self, choices: Choices) -> None:
        self._choices = choices
        self.text: list[str] = []
        self._groups: dict[int, str] = {}
        self._steps = 0

    def sequence(self, nodes: Any) -> None:
        self._steps += 1  # what is repeated may be empty
        if self._steps > _MOST_STEPS:
            raise _TooLong
        for operation, argument in nodes:
            self._steps += 1
            self._node(str(operation), argument)
            if len(self.text) > _LONGEST:
                raise _TooLong

    def _node(self, operation: str, argument: Any) -> None:
        if operation == "LITERAL":
            self.text.append(chr(argument))
        elif operation == "NOT_LITERAL":
            self._one_of([one for one in _ORDINARY if one != chr(argument)])
        elif operation == "ANY":
            self._one_of(_ORDINARY)
        elif operation == "IN":
            self._one_of(characters_of(argument))
        elif operation == "BRANCH":
            options = argument[1]
            self.sequence(options[self._choices.index(len(options))])
        elif operation == "SUBPATTERN":
            self._group(argument[0], argument[-1])
        elif operation in _REPEATING:
            self._repeat(*argument)
        elif operation == "ATOMIC_GROUP":
            self.sequence(argument)
        elif operation == "GROUPREF":
            self.text.append(self._groups.get(argument, ""))
        elif operation not in {"AT", "ASSERT", "ASSERT_NOT"}:
            raise PatternError(f"{operation} is not understood")

    def _one_of(self, characters: Sequence[str]) -> None:
        if not characters:
            raise PatternError("a class of characters is empty")
        self.text.append(characters[self._choices.index(len(characters))])

    def _group(self, number: int | None, nodes: Any) -> None:
        start = len(self.text)
        self.sequence(nodes)
        if number is not None:
            self._groups[number] = "".join(self.text[start:])

    def _repeat(self, least: int, most: Any, nodes: Any) -> None:
        if least > _LONGEST:
            raise _TooLong
        highest = least + _REPEATS if most is _codes.MAXREPEAT else min(most, least + _REPEATS)
        # An expression such as .* that may be empty is plainer with something in it.
        for _ in range(self._choices.integer(least, max(least, highest))):
            self.sequence(nodes)


def characters_of(items: Any) -> list[str]:
    """The characters of a class, ordinary ones first."""
    negated = bool(items) and str(items[0][0]) == "NEGATE"
    found: dict[str, None] = {}
    for operation, argument in items[1:] if negated else items:
        found.update(dict.fromkeys(_members_of(str(operation), argument)))
    if negated:
        return [one for one in (*_ORDINARY, *_PRINTABLE) if one not in found]
    return list(found)


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
    raise PatternError(f"{name} is not understood")
