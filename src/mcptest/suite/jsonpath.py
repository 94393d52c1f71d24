"""JSONPath over decoded JSON: RFC 9535, with the plain paths and the messages of mcp-assert."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable
from typing import Any, Literal, NoReturn, TypeAlias, TypeVar

import msgspec

from mcptest.core.message import ABSENT, json_type
from mcptest.core.safe_text import show
from mcptest.suite.go_format import quote
from mcptest.suite.matching import is_number, json_equal
from mcptest.suite.regex import RegexError, found_in, matches_whole

# -- What a JSONPath says ------------------------------------------------------------------------


class PathError(ValueError):
    """A path that can't be read, or that leads to nothing. The text says why."""


class PathSyntaxError(PathError):
    """The path itself is wrong, whatever the document; `position` counts from zero."""

    def __init__(self, reason: str, position: int = 0) -> None:
        super().__init__(reason)
        self.position = position


class Name(msgspec.Struct, frozen=True):
    name: str


class Index(msgspec.Struct, frozen=True):
    index: int


class Slice(msgspec.Struct, frozen=True):
    start: int | None
    stop: int | None
    step: int


class Wildcard(msgspec.Struct, frozen=True):
    pass


class Filter(msgspec.Struct, frozen=True):
    test: Test


Selector: TypeAlias = Name | Index | Slice | Wildcard | Filter


class Segment(msgspec.Struct, frozen=True):
    selectors: tuple[Selector, ...]
    descendant: bool = False


class Constant(msgspec.Struct, frozen=True):
    value: Any


class Query(msgspec.Struct, frozen=True):
    """`@…` or `$…` inside a filter."""

    segments: tuple[Segment, ...]
    relative: bool


class FunctionCall(msgspec.Struct, frozen=True):
    function: str
    arguments: tuple[Operand, ...]


Operand: TypeAlias = Constant | Query | FunctionCall


class PathComparison(msgspec.Struct, frozen=True):
    operator: str
    left: Operand
    right: Operand


class Not(msgspec.Struct, frozen=True):
    test: Test


class AllOf(msgspec.Struct, frozen=True):
    tests: tuple[Test, ...]


class AnyOf(msgspec.Struct, frozen=True):
    tests: tuple[Test, ...]


Test: TypeAlias = PathComparison | Not | AllOf | AnyOf | Query | FunctionCall


def is_singular(segments: tuple[Segment, ...]) -> bool:
    """Whether the path can lead to one value at most, by its form alone."""
    return all(
        not segment.descendant
        and len(segment.selectors) == 1
        and isinstance(segment.selectors[0], Name | Index)
        for segment in segments
    )


# -- Selecting nodes of a document with the segments of a JSONPath, filters included -------------

_CHARACTERS_PER_STEP = 64


class Walk:
    """One evaluation of one path over one document."""

    __slots__ = ("left", "most", "root")

    def __init__(self, root: Any, most: int) -> None:
        self.root = root
        self.most = most
        self.left = most

    def spend(self, steps: int) -> None:
        self.left -= steps
        if self.left < 0:
            raise PathError(f"the path visits more than {self.most} nodes")

    def select(self, start: Any, segments: Iterable[Segment]) -> list[Any]:
        nodes = [start]
        for segment in segments:
            if segment.descendant:
                nodes = [below for node in nodes for below in self.descendants(node)]
            found: list[Any] = []
            for node in nodes:
                for selector in segment.selectors:
                    chosen = self.choose(node, selector)
                    self.spend(len(chosen) + 1)
                    found.extend(chosen)
            nodes = found
        return nodes

    def descendants(self, node: Any) -> list[Any]:
        """The node and everything below it, parents first."""
        found: list[Any] = []
        waiting = [node]
        while waiting:
            current = waiting.pop()
            found.append(current)
            self.spend(1)
            if isinstance(current, list):
                waiting.extend(reversed(current))
            elif isinstance(current, dict):
                waiting.extend(reversed(current.values()))
        return found

    def choose(self, node: Any, selector: Selector) -> list[Any]:
        match selector:
            case Name(name):
                return [node[name]] if isinstance(node, dict) and name in node else []
            case Index(index):
                return at_index(node, index)
            case Slice(start, stop, step):
                if not isinstance(node, list) or step == 0:
                    return []
                return node[start:stop:step]
            case Wildcard():
                return children_of(node)
            case Filter(test):
                self.spend(1)
                return [child for child in children_of(node) if self.holds(test, child)]

    def holds(self, test: Test, current: Any) -> bool:
        self.spend(1)
        match test:
            case PathComparison(operator, left, right):
                return self.compare(operator, self.value(left, current), self.value(right, current))
            case Not(inner):
                return not self.holds(inner, current)
            case AllOf(tests):
                return all(self.holds(part, current) for part in tests)
            case AnyOf(tests):
                return any(self.holds(part, current) for part in tests)
            case Query():
                return bool(self.nodes(test, current))
            case FunctionCall(function, (subject, pattern)):
                return self.text_matches(
                    function, self.value(subject, current), self.value(pattern, current)
                )
            case _:
                raise PathError("a test that the reader lets through has no meaning")

    def nodes(self, query: Query, current: Any) -> list[Any]:
        return self.select(current if query.relative else self.root, query.segments)

    def value(self, operand: Operand, current: Any) -> Any:
        """The value of an operand; ABSENT is the RFC's Nothing."""
        match operand:
            case Constant(value):
                return value
            case Query():
                nodes = self.nodes(operand, current)
                return nodes[0] if nodes else ABSENT
            case FunctionCall("length", (argument,)):
                value = self.value(argument, current)
                return len(value) if isinstance(value, str | list | dict) else ABSENT
            case FunctionCall(function, (Query() as query,)):
                nodes = self.nodes(query, current)
                if function == "count":
                    return len(nodes)
                return nodes[0] if len(nodes) == 1 else ABSENT
            case _:
                raise PathError("an operand that the reader lets through has no value")

    def compare(self, operator: str, left: Any, right: Any) -> bool:
        if operator == "!=":
            return not self.equal(left, right)
        if "=" in operator and self.equal(left, right):
            return True
        lesser, greater = (left, right) if operator[0] == "<" else (right, left)
        return operator != "==" and is_less(lesser, greater)

    def equal(self, left: Any, right: Any) -> bool:
        if left is ABSENT or right is ABSENT:
            return left is right
        return json_equal(left, right, self.spend)

    def text_matches(self, function: str, subject: Any, pattern: Any) -> bool:
        if not isinstance(subject, str) or not isinstance(pattern, str):
            return False
        self.spend(len(subject) // _CHARACTERS_PER_STEP + 1)
        try:
            return (matches_whole if function == "match" else found_in)(pattern, subject)
        except RegexError:
            return False  # RFC 9535, 2.4.6: a pattern that is none does not match


def children_of(node: Any) -> list[Any]:
    if isinstance(node, list):
        return node
    return list(node.values()) if isinstance(node, dict) else []


def at_index(node: Any, index: int) -> list[Any]:
    if not isinstance(node, list) or not -len(node) <= index < len(node):
        return []
    return [node[index]]


def is_less(left: Any, right: Any) -> bool:
    """Only two numbers or two strings have an order."""
    comparable = (is_number(left) and is_number(right)) or (
        isinstance(left, str) and isinstance(right, str)
    )
    return comparable and bool(left < right)


# -- JSONPath as text, read into segments --------------------------------------------------------

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
        return PathComparison(operator.group(), self.comparable(left), self.comparable(right))

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

    def call(self, name: str) -> FunctionCall:
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
        return FunctionCall(name, tuple(arguments))

    def comparable(self, operand: Operand) -> Operand:
        if isinstance(operand, Query) and not is_singular(operand.segments):
            self.refuse("a path that may lead to several values can't be compared")
        if isinstance(operand, FunctionCall) and _FUNCTIONS[operand.function][1] != "value":
            self.refuse(f"{operand.function}() says yes or no; it can't be compared")
        return operand

    def test_of(self, operand: Operand) -> Test:
        if isinstance(operand, Constant):
            self.refuse("a value alone is no test")
        if isinstance(operand, FunctionCall) and _FUNCTIONS[operand.function][1] != "logical":
            self.refuse(f"{operand.function}() gives a value; compare it with something")
        return operand


# -- JSONPath over decoded JSON ------------------------------------------------------------------

__all__ = [
    "MOST_STEPS",
    "Path",
    "PathError",
    "PathSyntaxError",
    "compile_path",
    "lookup",
    "path_problem",
    "query",
]

MOST_STEPS = 1_000_000
"""How many nodes one evaluation may visit: about a second of work."""


class Path(msgspec.Struct, frozen=True):
    """A path that was read. A singular one leads to one value at most, by its form alone."""

    text: str
    segments: tuple[Segment, ...]
    singular: bool


@functools.lru_cache(maxsize=1024)
def compile_path(text: str) -> Path:
    """Read a path. Raises PathSyntaxError, which knows the position."""
    segments = parse(text)
    return Path(text, segments, is_singular(segments))


def path_problem(text: str) -> str | None:
    """Why the path can't be used, or None: for the moment when a suite is loaded."""
    try:
        compile_path(text)
    except PathSyntaxError as error:
        return str(error)
    return None


def query(document: Any, path: str | Path, *, most_steps: int = MOST_STEPS) -> list[Any]:
    """Every value that the path leads to, in document order. Raises PathError."""
    compiled = compile_path(path) if isinstance(path, str) else path
    return Walk(document, most_steps).select(document, compiled.segments)


def lookup(document: Any, path: str | Path, *, most_steps: int = MOST_STEPS) -> Any:
    """The one value that the path leads to. Raises PathError that says where the way ended."""
    compiled = compile_path(path) if isinstance(path, str) else path
    if compiled.singular:
        return _follow(document, compiled.segments)
    found = query(document, compiled, most_steps=most_steps)
    if len(found) != 1:
        many = f"{len(found)} values match" if found else "no value matches"
        raise PathError(f"{many} where one is wanted")
    return found[0]


def _follow(document: Any, segments: tuple[Segment, ...]) -> Any:
    value, name = document, "$"
    for segment in segments:
        match segment.selectors[0]:
            case Name(name):
                value = _field(value, name)
            case Index(index):
                value = _item(value, index, name)
            case _:
                raise PathError("the path may lead to several values")
    return value


def _field(value: Any, name: str) -> Any:
    if not isinstance(value, dict):
        raise PathError(f"expected object at {quote(name)}, got {json_type(value)}")
    if name not in value:
        raise PathError(f"field {quote(name)} not found")
    return value[name]


def _item(value: Any, index: int, name: str) -> Any:
    if not isinstance(value, list):
        raise PathError(f"expected array at {quote(name)}, got {json_type(value)}")
    if not -len(value) <= index < len(value):
        raise PathError(f"index {index} out of range (len={len(value)})")
    return value[index]
