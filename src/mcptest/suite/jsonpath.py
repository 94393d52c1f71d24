"""JSONPath over decoded JSON: RFC 9535, with the plain paths and the messages of mcp-assert.

A path is read into what it selects: a name is a `str`, an index an `int`, a slice a `slice`, and
everything else a function. The parts of a filter become functions of the walk and of the node that
is looked at. A walk counts its steps: paths may come from anyone, and documents from anywhere.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterable
from typing import Any, Literal, NoReturn, TypeAlias, TypeVar

import msgspec

from mcptest.core.message import ABSENT, json_type
from mcptest.core.safe_text import show
from mcptest.suite.matching import is_number, json_equal, quote
from mcptest.suite.regex import RegexError, found_in, matches_whole

MOST_STEPS = 1_000_000
"""How many nodes one evaluation may visit: about a second of work."""
_CHARACTERS_PER_STEP = 64
_T = TypeVar("_T")


class PathError(ValueError):
    """A path that can't be read, or that leads to nothing. The text says why."""


class PathSyntaxError(PathError):
    """The path itself is wrong, whatever the document; `position` counts from zero."""

    def __init__(self, reason: str, position: int = 0) -> None:
        super().__init__(reason)
        self.position = position


# -- Selecting nodes of a document ---------------------------------------------------------------


class Walk(msgspec.Struct):
    """One evaluation of one path over one document."""

    root: Any
    most: int
    spent: int = 0

    def spend(self, steps: int) -> None:
        self.spent += steps
        if self.spent > self.most:
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
            waiting.extend(reversed(children_of(self, current)))
        return found

    def choose(self, node: Any, selector: Selector) -> list[Any]:
        if isinstance(selector, str):
            return [node[selector]] if isinstance(node, dict) and selector in node else []
        if isinstance(selector, int):
            inside = isinstance(node, list) and -len(node) <= selector < len(node)
            return [node[selector]] if inside else []
        if isinstance(selector, slice):
            return node[selector] if isinstance(node, list) and selector.step != 0 else []
        return selector(self, node)


Part: TypeAlias = Callable[[Walk, Any], Any]
"""A part of a filter: its value for a node, or whether it holds. ABSENT is the RFC's Nothing."""
Selector: TypeAlias = str | int | slice | Callable[[Walk, Any], list[Any]]


class Segment(msgspec.Struct, frozen=True):
    selectors: tuple[Selector, ...]
    descendant: bool = False

    @property
    def singular(self) -> bool:
        """Whether it can lead to one value at most, by its form alone."""
        alone = len(self.selectors) == 1 and not self.descendant
        return alone and isinstance(self.selectors[0], str | int)


def children_of(_walk: Walk, node: Any) -> list[Any]:
    """What `*` selects."""
    if isinstance(node, list):
        return node
    return list(node.values()) if isinstance(node, dict) else []


def comparison(sign: str, left: Part, right: Part) -> Part:
    def holds(walk: Walk, node: Any) -> bool:
        walk.spend(1)
        one, other = left(walk, node), right(walk, node)
        if sign == "!=":
            return not _equal(walk, one, other)
        if "=" in sign and _equal(walk, one, other):
            return True
        if sign[0] == ">":
            one, other = other, one
        # Only two numbers or two strings have an order.
        ordered = isinstance(one, str) and isinstance(other, str)
        ordered = ordered or (is_number(one) and is_number(other))
        return sign != "==" and ordered and bool(one < other)

    return holds


def _equal(walk: Walk, left: Any, right: Any) -> bool:
    if left is ABSENT or right is ABSENT:
        return left is right
    return json_equal(left, right, walk.spend)


def _text_matches(matches: Callable[[str, str], bool], walk: Walk, text: Any, pattern: Any) -> bool:
    if not isinstance(text, str) or not isinstance(pattern, str):
        return False
    walk.spend(len(text) // _CHARACTERS_PER_STEP + 1)
    try:
        return matches(pattern, text)
    except RegexError:
        return False  # RFC 9535, 2.4.6: a pattern that is none does not match


_LONG = (str, list, dict)
_Kind: TypeAlias = Literal["constant", "value", "nodes", "logical"]
# Each function: what it takes, what it gives (RFC 9535, 2.4) and how.
_FUNCTIONS: dict[str, tuple[tuple[_Kind, ...], _Kind, Callable[..., Any]]] = {
    "length": (("value",), "value", lambda _, of: len(of) if isinstance(of, _LONG) else ABSENT),
    "count": (("nodes",), "value", lambda _, nodes: len(nodes)),
    "value": (("nodes",), "value", lambda _, nodes: nodes[0] if len(nodes) == 1 else ABSENT),
    "match": (("value", "value"), "logical", functools.partial(_text_matches, matches_whole)),
    "search": (("value", "value"), "logical", functools.partial(_text_matches, found_in)),
}


class Operand(msgspec.Struct, frozen=True):
    """One side of a comparison, a test or an argument, before it is known which."""

    kind: _Kind
    part: Part
    function: str = ""
    singular: bool = False
    """Of a path, which gives nodes."""


# -- JSONPath as text, read into segments --------------------------------------------------------

LONGEST_PATH = 10_000
_DEEPEST = 32
_BIGGEST_INTEGER = 2**53 - 1
_BLANKS = " \t\n\r"
_BLANK = re.compile(f"[{_BLANKS}]*")
_LOOSE_NAME = re.compile(r"[^.\[\]]+")
_STRICT_NAME = re.compile(r"[A-Za-z_\x80-\U0010ffff][0-9A-Za-z_\x80-\U0010ffff]*")
_INTEGER = re.compile(r"0|-?[1-9][0-9]*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_COMPARISON = re.compile(r"==|!=|<=|>=|<|>")
_FUNCTION = re.compile(r"([a-z][a-z0-9_]*)\(")
_WORD = re.compile(r"(?:true|false|null)(?![0-9A-Za-z_])")
_STRING_PART = {quote: re.compile(rf"[^{quote}\\\x00-\x1f]+") for quote in "'\""}
_HEX = "[0-9A-Fa-f]"
_CODE = re.compile(rf"\\u{_HEX}{{4}}")
_PAIR = rf"u[Dd][89ABab]{_HEX}{{2}}\\u[Dd][C-Fc-f]{_HEX}{{2}}"
"""Two surrogates that are one character."""
_ESCAPE = re.compile(rf"\\(?:[bfnrt/\\]|u(?![Dd][89A-Fa-f]){_HEX}{{4}}|{_PAIR})")


class _Reader(msgspec.Struct):
    """A recursive-descent reader over one path."""

    text: str
    at: int = 0
    depth: int = 0

    def refuse(self, reason: str) -> NoReturn:
        near = self.text[self.at : self.at + 10]
        where = f"near {show(near, 20)!r}" if near else "at the end"
        raise PathSyntaxError(f"{reason} at position {self.at + 1}, {where}", self.at)

    def skip_blanks(self) -> None:
        self.take_match(_BLANK)

    def sees(self, *words: str) -> bool:
        return self.text.startswith(words, self.at)

    def take(self, word: str, *, after_blanks: bool = False) -> bool:
        before = self.at
        if after_blanks:
            self.skip_blanks()
        if self.sees(word):
            self.at += len(word)
            return True
        self.at = before
        return False

    def need(self, word: str) -> None:
        self.skip_blanks()
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
        segments = self.segments(self.loose_name)
        if self.at < len(self.text):
            self.refuse("expected '.' or '['")
        return segments

    def segments(self, name: Callable[[], Selector]) -> tuple[Segment, ...]:
        """As many as there are. Between them, blanks may stand."""
        segments: list[Segment] = []
        while True:
            before = self.at
            self.skip_blanks()
            descendant = self.take("..")
            if self.sees("["):
                segments.append(Segment(self.one_level_down(self.bracketed), descendant))
            elif descendant or self.take("."):
                segments.append(Segment((name(),), descendant))
            else:
                self.at = before
                return tuple(segments)

    def loose_name(self) -> Selector:
        start = self.at
        found = self.take_match(_LOOSE_NAME)
        name = found.group().rstrip(_BLANKS) if found else ""
        if not name or name[0] in _BLANKS + "'\"":
            self.at = start
            self.refuse("expected a name")
        return children_of if name == "*" else name

    def strict_name(self) -> Selector:
        if self.take("*"):
            return children_of
        found = self.take_match(_STRICT_NAME)
        if not found:
            self.refuse("expected a name")
        return found.group()

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
            return children_of
        if self.sees("'", '"'):
            return self.string()
        if self.take("?"):
            test = self.one_level_down(self.any_of)

            def choose(walk: Walk, node: Any) -> list[Any]:
                walk.spend(1)
                return [child for child in children_of(walk, node) if test(walk, child)]

            return choose
        numbers = [self.integer()]
        while len(numbers) < 3 and self.take(":", after_blanks=True):
            self.skip_blanks()
            numbers.append(self.integer())
        if len(numbers) > 1:
            return slice(*numbers)
        if numbers[0] is None:
            self.refuse("expected an index, a slice, a quoted name, '*' or '?'")
        return numbers[0]

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
        while not self.take(quote):
            if plain := self.take_match(_STRING_PART[quote]):
                parts.append(plain.group())
            elif self.take("\\" + quote):
                parts.append(quote)
            elif escape := self.take_match(_ESCAPE):
                parts.append(json.loads(f'"{escape.group()}"'))
            else:
                self.refuse_string(quote)
        return "".join(parts)

    def refuse_string(self, quote: str) -> NoReturn:
        if not self.sees("\\"):
            self.refuse(f"expected the closing {quote}")
        if self.take_match(_CODE):
            self.refuse("a surrogate without its partner")
        self.at += 1
        self.refuse("expected four hexadecimal digits" if self.take("u") else "unknown escape")

    def any_of(self) -> Part:
        return self.joined("||", any, lambda: self.joined("&&", all, self.basic))

    def joined(
        self, sign: str, holds: Callable[[Iterable[bool]], bool], read: Callable[[], Part]
    ) -> Part:
        tests = [read()]
        while self.take(sign, after_blanks=True):
            tests.append(read())
        if len(tests) == 1:
            return tests[0]
        return lambda walk, node: holds(test(walk, node) for test in tests)

    def basic(self) -> Part:
        self.skip_blanks()
        if self.take("!"):
            self.skip_blanks()
            test = self.parenthesised() if self.sees("(") else self.test_of(self.operand())
            return lambda walk, node: not test(walk, node)
        if self.sees("("):
            return self.parenthesised()
        left = self.operand()
        before = self.at
        self.skip_blanks()
        sign = self.take_match(_COMPARISON)
        if sign is None:
            self.at = before
            return self.test_of(left)
        self.skip_blanks()
        right = self.operand()
        return comparison(sign.group(), self.comparable(left), self.comparable(right))

    def parenthesised(self) -> Part:
        self.need("(")
        test = self.one_level_down(self.any_of)
        self.need(")")
        return test

    def operand(self) -> Operand:
        if self.sees("@", "$"):
            return self.path()
        if self.sees("'", '"'):
            return _constant(self.string())
        if word := self.take_match(_WORD):
            return _constant(json.loads(word.group()))
        if function := self.take_match(_FUNCTION):
            return self.one_level_down(lambda: self.call(function.group(1)))
        number = self.take_match(_NUMBER)
        if not number:
            self.refuse("expected '@', '$', a value or a function")
        if len(number.group()) > 400:
            self.refuse("a number of more than 400 characters")
        whole = not number.group(1) and not number.group(2)
        return _constant((int if whole else float)(number.group()))

    def path(self) -> Operand:
        relative = self.take("@") or not self.take("$")
        segments = self.segments(self.strict_name)

        def nodes(walk: Walk, node: Any) -> list[Any]:
            return walk.select(node if relative else walk.root, segments)

        return Operand("nodes", nodes, singular=all(one.singular for one in segments))

    def call(self, name: str) -> Operand:
        if name not in _FUNCTIONS:
            self.refuse(f"unknown function {name}(); there are {', '.join(_FUNCTIONS)}")
        takes, gives, work = _FUNCTIONS[name]
        arguments: list[Part] = []
        for place, kind in enumerate(takes):
            if place:
                self.need(",")
            self.skip_blanks()
            argument = self.operand()
            if kind == "nodes" and argument.kind != "nodes":
                self.refuse(f"{name}() takes a path")
            arguments.append(self.comparable(argument) if kind == "value" else argument.part)
        self.need(")")

        def result(walk: Walk, node: Any) -> Any:
            return work(walk, *(one(walk, node) for one in arguments))

        return Operand(gives, result, name)

    def comparable(self, operand: Operand) -> Part:
        if operand.kind == "logical":
            self.refuse(f"{operand.function}() returns true or false and can't be compared")
        if operand.kind != "nodes":
            return operand.part
        if not operand.singular:
            self.refuse("a path that may lead to several values can't be compared")
        return lambda walk, node: next(iter(operand.part(walk, node)), ABSENT)

    def test_of(self, operand: Operand) -> Part:
        if operand.kind == "constant":
            self.refuse("a value alone is not a test")
        if operand.kind == "value":
            self.refuse(f"{operand.function}() returns a value; compare it with something")

        def holds(walk: Walk, node: Any) -> bool:
            walk.spend(1)
            return bool(operand.part(walk, node))

        return holds


def _constant(value: Any) -> Operand:
    return Operand("constant", lambda _walk, _node: value)


# -- JSONPath over decoded JSON ------------------------------------------------------------------


class Path(msgspec.Struct, frozen=True):
    """A path that was read. A singular one leads to one value at most, by its form alone."""

    segments: tuple[Segment, ...]
    singular: bool


@functools.lru_cache(maxsize=1024)
def compile_path(text: str) -> Path:
    """Read a path. Raises PathSyntaxError, which knows the position."""
    if len(text) > LONGEST_PATH:
        raise PathSyntaxError(f"the path is longer than {LONGEST_PATH} characters")
    segments: tuple[Segment, ...] = ()
    if text in ("", "$", "$."):
        pass  # the whole document, as mcp-assert's captures have it
    elif text[0] in ".[" or (text[0] == "$" and not _STRICT_NAME.match(text, 1)):
        segments = _Reader(text, int(text[0] == "$")).segments_to_the_end()
    else:  # `x.y[0]`, but also `$schema`
        reader = _Reader(text)
        segments = (Segment((reader.loose_name(),)), *reader.segments_to_the_end())
    return Path(segments, all(one.singular for one in segments))


def path_problem(text: str) -> str | None:
    """Why the path can't be used, or None: for the moment when a suite is loaded."""
    try:
        compile_path(text)
    except PathSyntaxError as error:
        return str(error)
    return None


def query(document: Any, path: str, *, most_steps: int = MOST_STEPS) -> list[Any]:
    """Every value that the path leads to, in document order. Raises PathError."""
    return Walk(document, most_steps).select(document, compile_path(path).segments)


def lookup(document: Any, path: str) -> Any:
    """The one value that the path leads to. Raises PathError that says where the way ended."""
    compiled = compile_path(path)
    if compiled.singular:
        return _follow(document, compiled.segments)
    found = query(document, path)
    if len(found) != 1:
        many = f"{len(found)} values match" if found else "no value matches"
        raise PathError(f"{many}, expected one")
    return found[0]


def value_at(document: Any, path: str) -> Any:
    """The value of a path that leads to one at most, else the list of all. Raises PathError."""
    return (lookup if compile_path(path).singular else query)(document, path)


def _follow(value: Any, segments: tuple[Segment, ...]) -> Any:
    name = "$"
    for segment in segments:
        step = segment.selectors[0]
        if isinstance(step, str):
            name = step
            if not isinstance(value, dict):
                raise PathError(f"expected object at {quote(name)}, got {json_type(value)}")
            if name not in value:
                raise PathError(f"field {quote(name)} not found")
        elif not isinstance(value, list):
            raise PathError(f"expected array at {quote(name)}, got {json_type(value)}")
        elif isinstance(step, int) and not -len(value) <= step < len(value):
            raise PathError(f"index {step} out of range (len={len(value)})")
        value = value[step]
    return value
