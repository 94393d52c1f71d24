"""YAML with places: the nodes of a file, what a scalar means, and the problems of the file.

Scalars follow the YAML library that mcp-assert is built on. That is YAML 1.2 with some of 1.1:
`yes` and `on` are texts unless a truth value is asked for, `017` is octal, `1_000` a thousand,
`1:30` a text. Numbers become what JSON can hold.
"""

from __future__ import annotations

import base64
import functools
import math
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final, Literal, TypeAlias

import msgspec

from mcptest.core.errors import UsageError, close_matches
from mcptest.core.limits import MEBIBYTE
from mcptest.core.redaction import redaction, secrets_of_line
from mcptest.core.safe_text import cells, show
from mcptest.transport.files import read_bounded

DEEPEST = 100
MOST_NODES = 100_000
"""What the aliases of a file may stand for."""
MOST_WRITTEN = 1_000_000
"""Values that are written out: some 50,000 tests."""
LARGEST_FILE = 16 * MEBIBYTE
TAGS = "tag:yaml.org,2002:"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class ScalarNode(msgspec.Struct, frozen=True, gc=False):
    """A text as written, without its quotes."""

    text: str
    plain: bool
    """Written without quotes, so it may mean a number, a truth value or nothing."""
    tag: str | None
    line: int
    column: int
    width: int

    @property
    def is_nothing(self) -> bool:
        """`null`, `~`, or nothing after the colon."""
        return (self.plain and self.text in _NOTHING) or self.tag == TAGS + "null"

    @property
    def described(self) -> str:
        """What stands there, in a few words."""
        if self.is_nothing or not self.text:
            return "nothing" if self.is_nothing else "an empty string"
        quote = "" if self.plain else '"'
        return f"{quote}{show(self.text, 40)}{quote}"


class ListNode(msgspec.Struct, frozen=True):
    """A sequence."""

    items: tuple[Node, ...]
    line: int
    column: int
    width: ClassVar[int] = 1
    is_nothing: ClassVar[bool] = False
    described: ClassVar[str] = "a list"


class MappingNode(msgspec.Struct, frozen=True):
    """Entries by the text of their key, in the order in which they were written."""

    entries: dict[str, tuple[ScalarNode, Node]]
    line: int
    column: int
    width: ClassVar[int] = 1
    is_nothing: ClassVar[bool] = False
    described: ClassVar[str] = "a mapping"


Node: TypeAlias = ScalarNode | ListNode | MappingNode


class YamlError(Exception):
    """Why a text can't become nodes."""

    def __init__(
        self, message: str, line: int = 0, column: int = 0, *, hint: str = "", width: int = 1
    ) -> None:
        super().__init__(message)
        self.message, self.hint, self.width = message, hint, width
        self.whole_file = line == 0
        self.line, self.column = max(1, line), max(1, column)


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
        message = f"the file is not UTF-8: byte 0x{error.object[error.start]:02x}"
        place = _place_at(good, len(good))
        raise YamlError(message, *place, hint="save it as UTF-8") from None


def read_nodes(text: str) -> Node | None:
    """The one document of a text, or None when it holds nothing."""
    from yaml._yaml import CParser
    from yaml.error import MarkedYAMLError
    from yaml.reader import ReaderError

    try:
        return _Builder().build(CParser(text))
    except MarkedYAMLError as error:
        raise _of_the_parser(error) from None
    except ReaderError as error:
        at = len(text.encode()[: max(0, int(error.position))].decode("utf-8", "ignore"))
        message = f"YAML does not allow the character {show(text[at : at + 1], 20)}"
        hint = "write it as an escape inside double quotes"
        raise YamlError(message, *_place_at(text, at), hint=hint) from None


def _of_the_parser(error: Any) -> YamlError:
    mark = error.problem_mark or error.context_mark
    line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
    hint = ""
    if error.context and error.context_mark and error.context_mark.line + 1 != line:
        hint = f"{error.context}, which starts on line {error.context_mark.line + 1}"
    problem = str(error.problem or error.context)
    if "cannot start any token" in problem:
        hint = "indent YAML with spaces, and quote a value that starts with @ or `"
    return YamlError(f"not valid YAML: {problem}", line, column, hint=hint)


def _place_at(text: str, offset: int) -> tuple[int, int]:
    lines = lines_of(text[:offset])
    return len(lines), len(lines[-1]) + 1


def lines_of(text: str) -> list[str]:
    """The lines as the parser counts them."""
    # compiled when something is wrong: that takes longer than reading a file in which nothing is
    return re.split("\r\n|[\n\r\x85\u2028\u2029]", text)


_Event: TypeAlias = Any
"""One of the parser's events; each kind has its own attributes."""


class _Open(msgspec.Struct):
    """A collection whose end has not come yet."""

    is_mapping: bool
    anchor: str | None
    line: int
    column: int
    before: int
    height: int = 1
    children: list[Node] = []


class _Builder(msgspec.Struct):
    open: list[_Open] = []
    anchors: dict[str, tuple[Node, int, int] | None] = {}
    """A node with how many values it holds and how deep; None while it is still open."""
    count: int = 0
    """Values, with those that aliases stand for."""
    from_aliases: int = 0
    root: Node | None = None

    def build(self, parser: Any) -> Node | None:
        from yaml import events

        scalar, document = events.ScalarEvent, events.DocumentStartEvent
        steps: dict[type, Callable[[_Event], None]] = {
            events.SequenceStartEvent: lambda event: self._start(event, False, "seq"),
            events.MappingStartEvent: lambda event: self._start(event, True, "map"),
            events.SequenceEndEvent: self._end,
            events.MappingEndEvent: self._end,
            events.AliasEvent: self._alias,
        }
        next_event = parser.get_event
        while (event := next_event()) is not None:
            kind = type(event)
            if kind is scalar:
                self._scalar(event)
            elif kind in steps:
                steps[kind](event)
            elif kind is document and self.root is not None:
                raise _at(event, "a second document", hint="a file has one document")
        return self.root

    def _counted(self, event: _Event) -> None:
        self.count += 1
        if self.count - self.from_aliases > MOST_WRITTEN:
            hint = "split it into several files"
            raise _at(event, f"the file has more than {MOST_WRITTEN:,} values", hint=hint)

    def _scalar(self, event: _Event) -> None:
        self._counted(event)
        start, end = event.start_mark, event.end_mark
        line, column = start.line, start.column
        plain, quoted = event.implicit
        tag = None if plain or quoted else event.tag
        width = end.column - column if end.line == line else 1
        node = ScalarNode(event.value, plain, tag, line + 1, column + 1, width)
        if event.anchor is not None:
            self.anchors[event.anchor] = (node, 1, 0)
        if self.open:
            self.open[-1].children.append(node)
        else:
            self.root = node

    def _start(self, event: _Event, is_mapping: bool, tag: str) -> None:
        self._counted(event)
        if len(self.open) >= DEEPEST:
            raise _at(event, f"nested more than {DEEPEST} deep")
        if event.tag is not None and event.tag not in {"!", TAGS + tag}:
            raise _at(event, f"unknown tag {_short(event.tag)}")
        if event.anchor is not None:
            self.anchors[event.anchor] = None
        mark = event.start_mark
        place = mark.line + 1, mark.column + 1
        self.open.append(_Open(is_mapping, event.anchor, *place, self.count - 1))

    def _end(self, _event: _Event) -> None:
        done = self.open.pop()
        node: Node
        if done.is_mapping:
            node = MappingNode(_entries(done.children), done.line, done.column)
        else:
            node = ListNode(tuple(done.children), done.line, done.column)
        if done.anchor is not None:
            self.anchors[done.anchor] = (node, self.count - done.before, done.height)
        self._place(node, done.height)

    def _alias(self, event: _Event) -> None:
        name = event.anchor
        if name not in self.anchors:
            hint = "quote it if it is a string"
            raise _at(event, f"unknown anchor &{show(name, 60)}", hint=hint)
        anchored = self.anchors[name]
        if anchored is None:
            raise _at(event, f"*{show(name, 60)} is inside its own anchor")
        node, size, height = anchored
        if len(self.open) + height > DEEPEST:
            raise _at(event, f"nested more than {DEEPEST} deep")
        self.count += size
        self.from_aliases += size
        if self.from_aliases > MOST_NODES:
            raise _at(event, f"the aliases of the file stand for more than {MOST_NODES:,} values")
        self._place(node, height)

    def _place(self, node: Node, height: int) -> None:
        if not self.open:
            self.root = node
            return
        parent = self.open[-1]
        parent.children.append(node)
        parent.height = max(parent.height, height + 1)


def _entries(flat: list[Node]) -> dict[str, tuple[ScalarNode, Node]]:
    entries: dict[str, tuple[ScalarNode, Node]] = {}
    merged: list[Node] = []
    pairs = iter(flat)
    for key, value in zip(pairs, pairs, strict=True):
        if type(key) is not ScalarNode:
            hint = "a string that starts with {{ needs quotes" if type(key) is MappingNode else ""
            raise YamlError("a key must be a string", key.line, key.column, hint=hint)
        if key.plain and key.text == "<<":
            merged.extend(value.items if type(value) is ListNode else (value,))
            continue
        earlier, _ = entries.setdefault(key.text, (key, value))
        if earlier is not key:
            message = f"the key {show(key.text, 60)} appears twice"
            hint = f"first in line {earlier.line}, column {earlier.column}"
            raise YamlError(message, key.line, key.column, hint=hint, width=key.width)
    # The mapping's own keys win, and of several merged mappings the first. What is merged was
    # counted when its alias was met.
    for source in merged:
        if type(source) is not MappingNode:
            raise YamlError("<< takes a mapping or a list of them", source.line, source.column)
        for text, entry in source.entries.items():
            entries.setdefault(text, entry)
    return entries


def _at(event: _Event, message: str, *, hint: str = "") -> YamlError:
    mark = event.start_mark
    return YamlError(message, mark.line + 1, mark.column + 1, hint=hint)


def _short(tag: str) -> str:
    return show("!!" + tag.removeprefix(TAGS) if tag.startswith(TAGS) else tag, 60)


# -- What a scalar means -------------------------------------------------------------------------

_TRUE = frozenset({"true", "True", "TRUE"})
_FALSE = frozenset({"false", "False", "FALSE"})
_YES = _TRUE | {"y", "Y", "yes", "Yes", "YES", "on", "On", "ON"}
_NO = _FALSE | {"n", "N", "no", "No", "NO", "off", "Off", "OFF"}
_NOTHING = frozenset({"", "~", "null", "Null", "NULL"})
# Compiled when they are needed: for most suites that is never, and it takes its time.
_NOT_JSON = r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"
_BASED = r"[-+]?0(?:[xX][0-9a-fA-F]+|[oO]?[0-7]+|[bB][01]+)"
_DECIMAL = r"[-+]?(?:0|[1-9][0-9]*)"
_FLOAT = r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
_LOOSE = r"(?<![0-9])_|_(?![0-9])"
"""An underscore that is not between digits; only a number that starts with a point minds."""
_DIGITS = frozenset("0123456789")
_LONGEST_NUMBER = 1_000
_LARGEST_WHOLE = 1e21
"""From here on a float keeps its exponent on the wire, below it is written as a whole number."""


class ScalarError(ValueError):
    """Why a scalar can't be the value that it looks like."""


def json_value(scalar: ScalarNode) -> Any:
    """The value in a place where anything may stand."""
    if scalar.plain:
        return _plain(scalar.text)
    if scalar.tag is None or scalar.tag == "!":
        return scalar.text
    return _tagged(scalar)


def truth_value(scalar: ScalarNode) -> bool | None:
    """The value where a truth value is asked for; None when it is none."""
    if scalar.plain or scalar.tag == TAGS + "bool":
        if scalar.text in _YES:
            return True
        if scalar.text in _NO:
            return False
    return None


def text_value(scalar: ScalarNode) -> str:
    """The value where a text is asked for: any scalar, as it is written."""
    if scalar.tag is None or scalar.tag in {"!", TAGS + "str"}:
        return scalar.text
    _tagged(scalar)
    return _binary(scalar.text) if scalar.tag == TAGS + "binary" else scalar.text


def _plain(text: str) -> Any:
    if text in _NOTHING:
        return None
    first = text[0]
    if first in "tTfF":
        return True if text in _TRUE else False if text in _FALSE else text
    if first in "+-.0123456789":
        if "." in text and re.fullmatch(_NOT_JSON, text):
            raise ScalarError(f"{text} is not valid in JSON; quote it if it is a string")
        number = _number(text)
        return text if number is None else number
    return text


def _number(text: str) -> int | float | None:
    if text[0] == "." and re.search(_LOOSE, text):
        return None
    digits = text.replace("_", "")
    if len(digits) > _LONGEST_NUMBER:
        if re.fullmatch(_FLOAT, digits):
            raise ScalarError(f"a number of {len(digits)} characters; quote it if it is a string")
        return None
    is_a_count = _DIGITS.issuperset(digits) and (digits[0] != "0" or digits == "0")
    if is_a_count or re.fullmatch(_DECIMAL, digits):
        return int(digits)
    if re.fullmatch(_BASED, digits):
        unsigned = digits.lstrip("+-").lower()
        whole = int(unsigned, 0) if unsigned[1] in "xob" else int(unsigned, 8)
        return -whole if digits[0] == "-" else whole
    if not re.fullmatch(_FLOAT, digits):
        return None
    value = float(digits)
    if math.isinf(value):
        raise ScalarError(f"{show(digits, 40)} is too large; quote it if it is a string")
    is_negative_zero = value == 0 and math.copysign(1, value) < 0
    becomes_whole = value.is_integer() and abs(value) < _LARGEST_WHOLE and not is_negative_zero
    return int(value) if becomes_whole else value


def _tagged(scalar: ScalarNode) -> Any:
    tag = str(scalar.tag).removeprefix(TAGS)
    if not str(scalar.tag).startswith(TAGS) or tag not in _BY_TAG:
        raise ScalarError(f"unknown tag {_short(str(scalar.tag))}")
    value = _BY_TAG[tag](scalar.text)
    if value is _MISMATCH:
        raise ScalarError(f"{show(scalar.text, 40)!r} is not what !!{tag} says")
    return value


def _binary(text: str) -> str:
    try:
        raw = base64.b64decode("".join(text.split()), validate=True)
    except ValueError:
        raise ScalarError("!!binary is not base64") from None
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        raise ScalarError("!!binary is not UTF-8 text") from None


_MISMATCH = object()


def _number_as(text: str, *types: type) -> Any:
    value = _plain(text)
    return value if type(value) in types else _MISMATCH


_BY_TAG: dict[str, Callable[[str], Any]] = {
    "str": str,
    "int": lambda text: _number_as(text, int),
    "float": lambda text: _number_as(text, int, float),
    "bool": lambda text: text in _YES if text in _YES | _NO else _MISMATCH,
    "null": lambda text: None if text in _NOTHING else _MISMATCH,
    "binary": _binary,
    "timestamp": str,
}

# -- Problems, and the file they are in ----------------------------------------------------------

PROBLEMS_PER_FILE = 100
PROBLEMS_SHOWN = 200
_LINE_SHOWN = 160
_LONGEST_NAME = 60
"""A longer key is no misspelling of ours, and comparing it would only cost time."""

_TEMPLATE = r"\{\{\s*([^{}\s]+)\s*\}\}"

Severity = Literal["error", "warning"]


class Place(msgspec.Struct, frozen=True):
    """Where something stands: lines and columns count from one."""

    file: str
    line: int = 1
    column: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class _Invalid:
    """In the place of a value that could not be read; the problem is reported already."""


INVALID: Final = _Invalid()


class SuiteProblem(msgspec.Struct, frozen=True):
    """One thing that is wrong, where it stands, and what was expected there."""

    place: Place
    message: str
    hint: str = ""
    source: str | None = None
    """The line of the file as it stands there; None when there is no line to show."""
    width: int = 1
    """How many characters of it are meant."""
    severity: Severity = "error"


class SuiteError(UsageError):
    """The suites that were named can't be run as they stand. Carries every problem."""

    def __init__(self, problems: Sequence[SuiteProblem]) -> None:
        self.problems = tuple(problems)
        super().__init__(describe_problems(self.problems))


class SuiteSource:
    """A file's text, and the problems that were found in it, up to a limit."""

    def __init__(self, file: str, text: str = "") -> None:
        self.file = file
        self.problems: list[SuiteProblem] = []
        self.left_out = 0
        self.errors = 0
        self.tidy = "{{ " not in text and " }}" not in text
        self.templates = frozenset(re.findall(_TEMPLATE, text) if "{{" in text else ())
        """The names between double braces anywhere in the text."""
        self.text = text
        self._lines: list[str] | None = None
        self._reported: set[tuple[int, int, str]] = set()

    @property
    def full(self) -> bool:
        """No further problem will be kept, so there is no use in describing it well."""
        return len(self.problems) >= PROBLEMS_PER_FILE

    def place(self, line: int, column: int) -> Place:
        return Place(self.file, line, column)

    def line(self, number: int) -> str | None:
        if not self.text:
            return None
        if self._lines is None:
            self._lines = lines_of(self.text)
        return self._lines[number - 1] if 0 < number <= len(self._lines) else None

    def report(
        self,
        message: str,
        line: int,
        column: int,
        *,
        hint: str = "",
        width: int = 1,
        severity: Severity = "error",
    ) -> None:
        self.errors += severity == "error"
        if (line, column, message) in self._reported:
            return  # what several tests share is looked at for each
        self._reported.add((line, column, message))
        if self.full:
            self.left_out += 1
            return
        place, shown = self.place(line, column), self.line(line)
        self.problems.append(SuiteProblem(place, message, hint, shown, max(1, width), severity))

    def report_at(
        self, node: Node, message: str, hint: str = "", severity: Severity = "error"
    ) -> _Invalid:
        """A problem with what stands there; gives what takes the place of its value."""
        self.report(message, node.line, node.column, hint=hint, width=node.width, severity=severity)
        return INVALID

    def misfit(
        self, name: str, expected: str, node: Node, hint: str = "", got: str = ""
    ) -> _Invalid:
        message = f"{name} must be {expected}, not {got or node.described}"
        return self.report_at(node, message, hint)

    def finish(self) -> list[SuiteProblem]:
        """All problems in the order of the file; the last says how many were left out."""
        self.problems.sort(key=lambda problem: (problem.place.line, problem.place.column))
        if self.left_out:
            end = SuiteProblem(Place(self.file), f"{self.left_out} more problems in this file")
            return [*self.problems, end]
        return self.problems


def render(problem: SuiteProblem) -> str:
    """The place, what is wrong, the line with a caret below, and what was expected."""
    place = problem.place
    where = show(place.file, 400)
    kind = "warning: " if problem.severity == "warning" else ""
    if problem.source is None:
        hint = f"\n  {problem.hint}" if problem.hint else ""
        return f"{where}: {kind}{problem.message}{hint}"
    source = problem.source
    redaction.learn(lambda: secrets_of_line(source))
    gutter = " " * len(str(place.line))
    text, caret = _underlined(source, place.column, problem.width)
    lines = [
        f"{where}:{place.line}:{place.column}: {kind}{problem.message}",
        f"  {place.line} | {text}".rstrip(),
        f"  {gutter} | {caret}",
    ]
    if problem.hint:
        lines.append(f"  {gutter} = {problem.hint}")
    return "\n".join(lines)


def _underlined(source: str, column: int, width: int) -> tuple[str, str]:
    """The line as it may be shown and the carets below, for a line of any length."""
    start = max(0, column - 1)
    first = max(0, start - _LINE_SHOWN // 2) if start > _LINE_SHOWN - 40 else 0
    mark = "…" if first else ""
    before = mark + show(source[first:start], 10 * _LINE_SHOWN)
    meant = show(source[start : start + width], 10 * _LINE_SHOWN)
    room = max(1, _LINE_SHOWN - len(before))
    after = show(source[start + width : start + width + _LINE_SHOWN], max(1, room))
    meant = meant if len(meant) <= room else meant[: room - 1] + "…"
    text = before + meant + after if room > len(meant) else before + meant
    return text, " " * cells(before) + "^" * max(1, cells(meant))


def describe_problems(problems: Sequence[SuiteProblem]) -> str:
    """All problems below one line that counts them."""
    errors = sum(problem.severity == "error" for problem in problems)
    files = len({problem.place.file for problem in problems if problem.severity == "error"})
    head = f"{_counted(errors, 'problem')} in {_counted(files, 'file')}; nothing was run"
    shown = [render(problem) for problem in problems[:PROBLEMS_SHOWN]]
    if len(problems) > PROBLEMS_SHOWN:
        shown.append(f"… and {_counted(len(problems) - PROBLEMS_SHOWN, 'more problem')}")
    return "\n\n".join((head, *shown))


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


@functools.lru_cache(maxsize=1024)
def nearest(word: str, known: tuple[str, ...]) -> str | None:
    """The known name that was probably meant."""
    if len(word) > _LONGEST_NAME:
        return None
    plain = word.lower().replace("-", "_").replace(" ", "_")
    if plain in known:
        return plain
    near = close_matches(plain, known, n=1, cutoff=0.7)
    return near[0] if near else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A hint for a name that is not known: the nearest one, or all that are."""
    names = tuple(known)
    near = nearest(word, names)
    if near is not None:
        return f"did you mean {near}?"
    return f"known here: {', '.join(names)}" if names else ""


def read_yaml(path: Path) -> tuple[Node | None, SuiteSource]:
    """The document of a file, or None for one that is empty or can't be read: see the source."""
    try:
        data = read_bounded(path, LARGEST_FILE, pipes=False, cut=True)
    except OSError as error:
        source = SuiteSource(str(path))
        source.report(f"can't be read: {error.strerror or error}", 1, 1)
        return None, source
    root, source = parse_yaml(data, str(path))
    return None if root is None or root.is_nothing else root, source


def parse_yaml(data: bytes, name: str) -> tuple[Node | None, SuiteSource]:
    """The document of these bytes, where `null` is one too, and the source of its problems."""
    source = SuiteSource(name)
    try:
        source = SuiteSource(name, decode(data))
        return read_nodes(source.text), source
    except YamlError as error:
        if not source.text and not error.whole_file:
            source = SuiteSource(name, data.decode("utf-8", "replace"))
        source.report(error.message, error.line, error.column, hint=error.hint, width=error.width)
        return None, source
