"""YAML text as a tree of nodes that know their places. Nothing is interpreted here.

The tree is built from the parser's events and never by recursion, because deep input ends the
interpreter in PyYAML's own composer. Aliases share nodes; what they would take when written out
is counted, so that a small file can't stand for an enormous one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeAlias

import msgspec

from mcptest.model.limits import MEBIBYTE
from mcptest.model.show import show

DEEPEST = 100
MOST_NODES = 100_000
"""What the aliases of a file may stand for."""
MOST_WRITTEN = 1_000_000
"""Values that are written out: some 50,000 tests."""
LARGEST_FILE = 16 * MEBIBYTE
TAGS = "tag:yaml.org,2002:"
_QUOTE_BRACES = "a text that starts with {{ needs quotes"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Scalar(msgspec.Struct, frozen=True, gc=False):
    """A text as written, without its quotes."""

    text: str
    plain: bool
    """Written without quotes, so it may mean a number, a truth value or nothing."""
    tag: str | None
    line: int
    column: int
    width: int


class Listing(msgspec.Struct, frozen=True):
    """A sequence."""

    items: tuple[Node, ...]
    line: int
    column: int


class Mapping(msgspec.Struct, frozen=True):
    """Entries by the text of their key, in the order in which they were written."""

    entries: dict[str, tuple[Scalar, Node]]
    line: int
    column: int


Node: TypeAlias = Scalar | Listing | Mapping


class YamlError(Exception):
    """Why a text can't become nodes."""

    def __init__(
        self, message: str, line: int = 0, column: int = 0, *, hint: str = "", width: int = 1
    ) -> None:
        super().__init__(message)
        self.message = message
        self.whole_file = line == 0
        self.line = max(1, line)
        self.column = max(1, column)
        self.hint = hint
        self.width = width


def decode(data: bytes) -> str:
    """The text of a file, or where its bytes stop being one."""
    if len(data) > LARGEST_FILE:
        raise YamlError(f"the file is larger than {LARGEST_FILE // MEBIBYTE} MiB")
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise YamlError("the file is not UTF-8 but UTF-16", hint="save it as UTF-8")
    try:
        return data.removeprefix(_BYTE_ORDER_MARK).decode()
    except UnicodeDecodeError as error:
        good = error.object[: error.start].decode("utf-8", "replace")
        line, column = _place_at(good, len(good))
        message = f"the file is not UTF-8: byte 0x{error.object[error.start]:02x}"
        raise YamlError(message, line, column, hint="save it as UTF-8") from None


def read_nodes(text: str) -> Node | None:
    """The one document of a text, or None when it holds nothing."""
    from yaml._yaml import CParser
    from yaml.error import MarkedYAMLError
    from yaml.reader import ReaderError

    try:
        parser = CParser(text)
        return _Builder().build(parser)
    except MarkedYAMLError as error:
        raise _of_the_parser(error) from None
    except ReaderError as error:
        raise _of_the_reader(error, text) from None


def _of_the_parser(error: Any) -> YamlError:
    mark = error.problem_mark or error.context_mark
    line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
    hint = ""
    if error.context and error.context_mark and error.context_mark.line + 1 != line:
        hint = f"{error.context}, which starts on line {error.context_mark.line + 1}"
    problem = str(error.problem or error.context)
    if "cannot start any token" in problem:
        hint = "YAML is indented with spaces, and a value that starts with @ or ` needs quotes"
    return YamlError(f"this is not YAML: {problem}", line, column, hint=hint)


def _of_the_reader(error: Any, text: str) -> YamlError:
    raw = text.encode("utf-8")
    at = len(raw[: max(0, int(error.position))].decode("utf-8", "ignore"))
    line, column = _place_at(text, at)
    character = show(text[at : at + 1], 20)
    return YamlError(
        f"YAML does not allow the character {character}",
        line,
        column,
        hint="write it as an escape inside double quotes",
    )


def _place_at(text: str, offset: int) -> tuple[int, int]:
    lines = lines_of(text[:offset])
    return len(lines), len(lines[-1]) + 1


def lines_of(text: str) -> list[str]:
    """The lines as the parser counts them."""
    # compiled when something is wrong: that takes longer than reading a file in which nothing is
    return re.split("\r\n|[\n\r\x85\u2028\u2029]", text)


_Event: TypeAlias = Any
"""One of the parser's events; each kind has its own attributes."""


class _Open:
    """A collection whose end has not come yet."""

    __slots__ = ("anchor", "before", "children", "column", "height", "is_mapping", "line")

    def __init__(
        self, is_mapping: bool, anchor: str | None, line: int, column: int, before: int
    ) -> None:
        self.is_mapping = is_mapping
        self.anchor = anchor
        self.line = line
        self.column = column
        self.before = before
        self.height = 1
        self.children: list[Node] = []


class _Anchored(msgspec.Struct, frozen=True):
    node: Node
    size: int
    height: int


class _Builder:
    def __init__(self) -> None:
        self.open: list[_Open] = []
        self.anchors: dict[str, _Anchored | None] = {}
        """None while the anchored collection is still open."""
        self.count = 0
        """Values, with those that aliases stand for."""
        self.from_aliases = 0
        self.root: Node | None = None

    def build(self, parser: Any) -> Node | None:
        from yaml import events

        scalar = events.ScalarEvent
        steps: dict[type, Callable[[_Event], None]] = {
            events.SequenceStartEvent: self._start_listing,
            events.MappingStartEvent: self._start_mapping,
            events.SequenceEndEvent: self._end,
            events.MappingEndEvent: self._end,
            events.AliasEvent: self._alias,
            events.DocumentStartEvent: self._document,
        }
        next_event = parser.get_event
        while (event := next_event()) is not None:
            kind = type(event)
            if kind is scalar:
                self._scalar(event)
            elif kind in steps:
                steps[kind](event)
        return self.root

    def _document(self, event: _Event) -> None:
        if self.root is not None:
            raise _at(event, "a second document", hint="one file holds one document")

    def _counted(self, event: _Event) -> None:
        self.count += 1
        if self.count - self.from_aliases > MOST_WRITTEN:
            hint = "split it into several files"
            raise _at(event, f"the file holds more than {MOST_WRITTEN:,} values", hint=hint)

    def _scalar(self, event: _Event) -> None:
        self._counted(event)
        start, end = event.start_mark, event.end_mark
        line, column = start.line, start.column
        plain, quoted = event.implicit
        node = Scalar(
            event.value,
            plain,
            None if plain or quoted else event.tag,
            line + 1,
            column + 1,
            end.column - column if end.line == line else 1,
        )
        if event.anchor is not None:
            self.anchors[event.anchor] = _Anchored(node, 1, 0)
        if self.open:
            self.open[-1].children.append(node)
        else:
            self.root = node

    def _start_mapping(self, event: _Event) -> None:
        self._start(event, True, "map")

    def _start_listing(self, event: _Event) -> None:
        self._start(event, False, "seq")

    def _start(self, event: _Event, is_mapping: bool, tag: str) -> None:
        self._counted(event)
        if len(self.open) >= DEEPEST:
            raise _at(event, f"nested more than {DEEPEST} deep")
        if event.tag is not None and event.tag not in {"!", TAGS + tag}:
            raise _at(event, f"unknown tag {_short(event.tag)}")
        mark = event.start_mark
        if event.anchor is not None:
            self.anchors[event.anchor] = None
        self.open.append(
            _Open(is_mapping, event.anchor, mark.line + 1, mark.column + 1, self.count - 1)
        )

    def _end(self, _event: _Event) -> None:
        done = self.open.pop()
        node: Node
        if done.is_mapping:
            node = Mapping(_entries(done.children), done.line, done.column)
        else:
            node = Listing(tuple(done.children), done.line, done.column)
        if done.anchor is not None:
            self.anchors[done.anchor] = _Anchored(node, self.count - done.before, done.height)
        self._place(node, done.height)

    def _alias(self, event: _Event) -> None:
        name = event.anchor
        if name not in self.anchors:
            hint = "quote it if it is a text"
            raise _at(event, f"nothing is anchored as &{show(name, 60)}", hint=hint)
        anchored = self.anchors[name]
        if anchored is None:
            raise _at(event, f"*{show(name, 60)} stands inside of what it names")
        if len(self.open) + anchored.height > DEEPEST:
            raise _at(event, f"nested more than {DEEPEST} deep")
        self.count += anchored.size
        self.from_aliases += anchored.size
        if self.from_aliases > MOST_NODES:
            raise _at(event, f"the aliases of the file stand for more than {MOST_NODES:,} values")
        self._place(anchored.node, anchored.height)

    def _place(self, node: Node, height: int) -> None:
        if not self.open:
            self.root = node
            return
        parent = self.open[-1]
        parent.children.append(node)
        if height >= parent.height:
            parent.height = height + 1


def _entries(flat: list[Node]) -> dict[str, tuple[Scalar, Node]]:
    entries: dict[str, tuple[Scalar, Node]] = {}
    merged: list[Node] = []
    pairs = iter(flat)
    for key, value in zip(pairs, pairs, strict=True):
        if type(key) is not Scalar:
            hint = _QUOTE_BRACES if type(key) is Mapping else ""
            raise YamlError("a key must be a text", key.line, key.column, hint=hint)
        if key.plain and key.text == "<<":
            merged.append(value)
            continue
        earlier = entries.setdefault(key.text, (key, value))
        if earlier[0] is not key:
            raise _defined_twice(key, earlier[0])
    for value in merged:
        _merge(entries, value)
    return entries


def _merge(into: dict[str, tuple[Scalar, Node]], value: Node) -> None:
    """`<<`: the mapping's own keys win, and of several merged mappings the first.

    What is merged was counted when its alias was met.
    """
    for source in value.items if type(value) is Listing else (value,):
        if type(source) is not Mapping:
            raise YamlError("<< takes a mapping or a list of them", source.line, source.column)
        for text, entry in source.entries.items():
            into.setdefault(text, entry)


def _defined_twice(key: Scalar, earlier: Scalar) -> YamlError:
    return YamlError(
        f"the key {show(key.text, 60)} stands twice",
        key.line,
        key.column,
        hint=f"it is first given in line {earlier.line}, column {earlier.column}",
        width=key.width,
    )


def _at(event: _Event, message: str, *, hint: str = "") -> YamlError:
    mark = event.start_mark
    return YamlError(message, mark.line + 1, mark.column + 1, hint=hint)


def _short(tag: str) -> str:
    return show("!!" + tag.removeprefix(TAGS) if tag.startswith(TAGS) else tag, 60)
