"""JSONPath as text, read into segments: RFC 9535, and the plain paths that mcp-assert takes.

Outside of filters a name after a dot may hold anything but a dot or a bracket (`$.foo-bar`,
`$.@type`), because mcp-assert reads it so; the leading `$.` may be left out for the same reason.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal, NoReturn, TypeAlias, TypeVar

from mcptest.model.show import show
from mcptest.suite.jsonpath_model import (
    AllOf,
    AnyOf,
    Call,
    Comparison,
    Constant,
    Filter,
    Index,
    Name,
    Not,
    Operand,
    PathSyntaxError,
    Query,
    Segment,
    Selector,
    Slice,
    Test,
    Wildcard,
    is_singular,
)

_T = TypeVar("_T")

LONGEST_PATH = 10_000
_DEEPEST = 32
_BIGGEST_INTEGER = 2**53 - 1


_Kind: TypeAlias = Literal["value", "nodes", "logical"]
# Each function: what it takes and what it gives (RFC 9535, 2.4).
_FUNCTIONS: dict[str, tuple[tuple[_Kind, ...], _Kind]] = {
    "length": (("value",), "value"),
    "count": (("nodes",), "value"),
    "value": (("nodes",), "value"),
    "match": (("value", "value"), "logical"),
    "search": (("value", "value"), "logical"),
}

_BLANK = re.compile(r"[ \t\n\r]*")
_LOOSE_NAME = re.compile(r"[^.\[\]]+")
_STRICT_NAME = re.compile(r"[A-Za-z_\x80-\U0010ffff][0-9A-Za-z_\x80-\U0010ffff]*")
_INTEGER = re.compile(r"0|-?[1-9][0-9]*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_COMPARISON = re.compile(r"==|!=|<=|>=|<|>")
_FUNCTION = re.compile(r"([a-z][a-z0-9_]*)\(")
_WORD = re.compile(r"(?:true|false|null)(?![0-9A-Za-z_])")
_WORDS = {"true": True, "false": False, "null": None}
_HEX = re.compile(r"[0-9A-Fa-f]{4}")
_STRING_PART = {quote: re.compile(rf"[^{quote}\\\x00-\x1f]+") for quote in "'\""}
_STRING_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "/": "/", "\\": "\\"}


def parse(text: str) -> tuple[Segment, ...]:
    """The segments of a path; none for the root. Raises PathSyntaxError."""
    if len(text) > LONGEST_PATH:
        raise PathSyntaxError(f"the path is longer than {LONGEST_PATH} characters")
    if text in ("", "$", "$."):
        return ()  # the whole document, as mcp-assert's captures have it
    if text[0] in ".[" or (text[0] == "$" and not _STRICT_NAME.match(text, 1)):
        return _Reader(text, int(text[0] == "$")).segments_to_the_end()
    reader = _Reader(text, 0)  # `x.y[0]`, but also `$schema`
    return (reader.loose_name(descendant=False), *reader.segments_to_the_end())


class _Reader:
    """A recursive-descent reader over one path."""

    def __init__(self, text: str, position: int) -> None:
        self.text = text
        self.at = position
        self.depth = 0

    # -- small steps -------------------------------------------------------------------------

    def refuse(self, reason: str) -> NoReturn:
        near = self.text[self.at : self.at + 10]
        where = f"near {show(near, 20)!r}" if near else "at the end"
        raise PathSyntaxError(f"{reason} at position {self.at + 1}, {where}", self.at)

    def skip_blanks(self) -> None:
        found = _BLANK.match(self.text, self.at)
        if found:
            self.at = found.end()

    def sees(self, word: str) -> bool:
        return self.text.startswith(word, self.at)

    def take(self, word: str) -> bool:
        if not self.sees(word):
            return False
        self.at += len(word)
        return True

    def need(self, word: str) -> None:
        if not self.take(word):
            self.refuse(f"expected {word!r}")

    def take_match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        found = pattern.match(self.text, self.at)
        if found:
            self.at = found.end()
        return found

    def one_level_down(self, read: Callable[[], _T]) -> _T:
        """`read`, counted: brackets, parentheses and calls may not nest without end."""
        self.depth += 1
        if self.depth > _DEEPEST:
            self.refuse(f"nested deeper than {_DEEPEST} levels")
        result = read()
        self.depth -= 1
        return result

    # -- segments ----------------------------------------------------------------------------

    def segments_to_the_end(self) -> tuple[Segment, ...]:
        segments: list[Segment] = []
        while self.at < len(self.text):
            segment = self.segment(self.loose_name)
            if segment is None:
                self.refuse("expected '.' or '['")
            segments.append(segment)
        return tuple(segments)

    def segments_in_a_filter(self) -> tuple[Segment, ...]:
        segments: list[Segment] = []
        while (segment := self.segment(self.strict_name)) is not None:
            segments.append(segment)
        return tuple(segments)

    def segment(self, name: Callable[..., Segment]) -> Segment | None:
        before = self.at
        self.skip_blanks()
        if self.take(".."):
            if self.sees("["):
                return Segment(self.one_level_down(self.bracketed), descendant=True)
            return name(descendant=True)
        if self.take("."):
            return name(descendant=False)
        if self.sees("["):
            return Segment(self.one_level_down(self.bracketed))
        self.at = before
        return None

    def loose_name(self, *, descendant: bool) -> Segment:
        start = self.at
        found = self.take_match(_LOOSE_NAME)
        name = found.group().rstrip(" \t\n\r") if found else ""
        if not name or name[0] in " \t\n\r'\"":
            self.at = start
            self.refuse("expected a name")
        return Segment((Wildcard() if name == "*" else Name(name),), descendant)

    def strict_name(self, *, descendant: bool) -> Segment:
        if self.take("*"):
            return Segment((Wildcard(),), descendant)
        found = self.take_match(_STRICT_NAME)
        if not found:
            self.refuse("expected a name")
        return Segment((Name(found.group()),), descendant)

    def bracketed(self) -> tuple[Selector, ...]:
        self.need("[")
        selectors: list[Selector] = []
        while True:
            self.skip_blanks()
            selectors.append(self.selector())
            self.skip_blanks()
            if self.take("]"):
                return tuple(selectors)
            if not self.take(","):
                self.refuse("expected ',' or ']'")

    def selector(self) -> Selector:
        if self.take("*"):
            return Wildcard()
        if self.sees("'") or self.sees('"'):
            return Name(self.string())
        if self.take("?"):
            return Filter(self.one_level_down(self.any_of))
        return self.index_or_slice()

    def index_or_slice(self) -> Selector:
        start = self.integer()
        self.skip_blanks()
        if not self.take(":"):
            if start is None:
                self.refuse("expected an index, a slice, a quoted name, '*' or '?'")
            return Index(start)
        self.skip_blanks()
        stop = self.integer()
        self.skip_blanks()
        step = None
        if self.take(":"):
            self.skip_blanks()
            step = self.integer()
        return Slice(start, stop, 1 if step is None else step)

    def integer(self) -> int | None:
        found = self.take_match(_INTEGER)
        if found is None:
            return None
        if len(found.group()) > 17 or abs(int(found.group())) > _BIGGEST_INTEGER:
            self.refuse("an index beyond 2^53 - 1")
        return int(found.group())

    # -- strings and numbers -----------------------------------------------------------------

    def string(self) -> str:
        quote = self.text[self.at]
        self.at += 1
        parts: list[str] = []
        while True:
            plain = self.take_match(_STRING_PART[quote])
            if plain:
                parts.append(plain.group())
            if self.take(quote):
                return "".join(parts)
            if not self.take("\\"):
                self.refuse(f"expected the closing {quote}")
            parts.append(self.escaped(quote))

    def escaped(self, quote: str) -> str:
        character = self.text[self.at : self.at + 1]
        self.at += 1
        if character == quote:
            return quote
        if character == "u":
            return self.escaped_code()
        if character not in _STRING_ESCAPES:
            self.at -= 1
            self.refuse("unknown escape")
        return _STRING_ESCAPES[character]

    def escaped_code(self) -> str:
        code = self.four_hex_digits()
        if 0xDC00 <= code < 0xE000:
            self.refuse("a surrogate without its partner")
        if not 0xD800 <= code < 0xDC00:
            return chr(code)
        if not self.take("\\u"):
            self.refuse("a surrogate without its partner")
        low = self.four_hex_digits()
        if not 0xDC00 <= low < 0xE000:
            self.refuse("a surrogate without its partner")
        return chr(0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00))

    def four_hex_digits(self) -> int:
        found = self.take_match(_HEX)
        if not found:
            self.refuse("expected four hexadecimal digits")
        return int(found.group(), 16)

    # -- filters -----------------------------------------------------------------------------

    def any_of(self) -> Test:
        tests = [self.all_of()]
        while self.take_after_blanks("||"):
            tests.append(self.all_of())
        return tests[0] if len(tests) == 1 else AnyOf(tuple(tests))

    def all_of(self) -> Test:
        tests = [self.basic()]
        while self.take_after_blanks("&&"):
            tests.append(self.basic())
        return tests[0] if len(tests) == 1 else AllOf(tuple(tests))

    def take_after_blanks(self, word: str) -> bool:
        before = self.at
        self.skip_blanks()
        if self.take(word):
            return True
        self.at = before
        return False

    def basic(self) -> Test:
        self.skip_blanks()
        if self.take("!"):
            self.skip_blanks()
            return Not(self.parenthesised() if self.sees("(") else self.test_of(self.operand()))
        if self.sees("("):
            return self.parenthesised()
        left = self.operand()
        before = self.at
        self.skip_blanks()
        operator = self.take_match(_COMPARISON)
        if operator is None:
            self.at = before
            return self.test_of(left)
        self.skip_blanks()
        right = self.operand()
        return Comparison(operator.group(), self.comparable(left), self.comparable(right))

    def parenthesised(self) -> Test:
        self.need("(")
        test = self.one_level_down(self.any_of)
        self.skip_blanks()
        self.need(")")
        return test

    def operand(self) -> Operand:
        if self.take("@"):
            return Query(self.segments_in_a_filter(), relative=True)
        if self.take("$"):
            return Query(self.segments_in_a_filter(), relative=False)
        if self.sees("'") or self.sees('"'):
            return Constant(self.string())
        word = self.take_match(_WORD)
        if word:
            return Constant(_WORDS[word.group()])
        function = self.take_match(_FUNCTION)
        if function:
            return self.one_level_down(lambda: self.call(function.group(1)))
        number = self.take_match(_NUMBER)
        if not number:
            self.refuse("expected '@', '$', a value or a function")
        return Constant(self.number(number))

    def number(self, found: re.Match[str]) -> int | float:
        if len(found.group()) > 400:
            self.refuse("a number of more than 400 characters")
        return float(found.group()) if found.group(1) or found.group(2) else int(found.group())

    def call(self, name: str) -> Call:
        if name not in _FUNCTIONS:
            self.refuse(f"unknown function {name}(); there are {', '.join(_FUNCTIONS)}")
        takes, _ = _FUNCTIONS[name]
        arguments: list[Operand] = []
        for place, kind in enumerate(takes):
            if place:
                self.skip_blanks()
                self.need(",")
            self.skip_blanks()
            argument = self.operand()
            arguments.append(self.comparable(argument) if kind == "value" else argument)
            if kind == "nodes" and not isinstance(argument, Query):
                self.refuse(f"{name}() takes a path")
        self.skip_blanks()
        self.need(")")
        return Call(name, tuple(arguments))

    def comparable(self, operand: Operand) -> Operand:
        if isinstance(operand, Query) and not is_singular(operand.segments):
            self.refuse("a path that may lead to several values can't be compared")
        if isinstance(operand, Call) and _FUNCTIONS[operand.function][1] != "value":
            self.refuse(f"{operand.function}() says yes or no; it can't be compared")
        return operand

    def test_of(self, operand: Operand) -> Test:
        if isinstance(operand, Constant):
            self.refuse("a value alone is no test")
        if isinstance(operand, Call) and _FUNCTIONS[operand.function][1] != "logical":
            self.refuse(f"{operand.function}() gives a value; compare it with something")
        return operand
