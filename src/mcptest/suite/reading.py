"""From nodes to plain values, as a declaration says; whatever does not fit becomes a problem."""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, TypeVar

import msgspec

from mcptest.core.errors import UsageError
from mcptest.core.limits import parse_duration
from mcptest.core.redaction import redaction
from mcptest.core.safe_text import show
from mcptest.core.secrets import secrets_of_line
from mcptest.core.spelling import close_matches
from mcptest.suite.fields import (
    CLASS_OF,
    DECLARED,
    Choice,
    Declaration,
    Duration,
    Elsewhere,
    Expectations,
    Field,
    Flag,
    JsonSchema,
    JsonTable,
    Kind,
    ListOf,
    MatcherField,
    ObjectOf,
    Reserved,
    Text,
    Texts,
    TextTable,
    Whole,
    is_asking,
)
from mcptest.suite.model import Place
from mcptest.suite.yaml_nodes import (
    LARGEST_FILE,
    ListNode,
    MappingNode,
    Node,
    ScalarError,
    ScalarNode,
    YamlError,
    decode,
    is_nothing,
    json_value,
    lines_of,
    read_nodes,
    text_value,
    truth_value,
)
from mcptest.transport.files import read_bounded

PROBLEMS_PER_FILE = 100
PROBLEMS_SHOWN = 200
_LINE_SHOWN = 160
_LONGEST_NAME = 60
"""A longer key is no misspelling of ours, and comparing it would only cost time."""

_TEMPLATE = r"\{\{\s*([^{}\s]+)\s*\}\}"

Severity = Literal["error", "warning"]


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
        found = SuiteProblem(
            self.place(line, column), message, hint, self.line(line), max(1, width), severity
        )
        self.problems.append(found)

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
    number = str(place.line)
    gutter = " " * len(number)
    text, caret = _underlined(source, place.column, problem.width)
    return "\n".join(
        (
            f"{where}:{place.line}:{place.column}: {kind}{problem.message}",
            f"  {number} | {text}".rstrip(),
            f"  {gutter} | {caret}",
            *([f"  {gutter} = {problem.hint}"] if problem.hint else []),
        )
    )


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
    return text, " " * _cells(before) + "^" * max(1, _cells(meant))


def _cells(text: str) -> int:
    """How many cells of a terminal a text takes."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )


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


class _Invalid:
    """In the place of a value that could not be read; the problem is reported already."""


INVALID: Final = _Invalid()
EXTENSION = "x-"
"""How the names of keys begin that nobody here reads."""


_T = TypeVar("_T")


class Reading:
    """An object that was read: the values that were given, and where they stand."""

    __slots__ = ("declaration", "faulty", "node", "source", "values")

    def __init__(
        self, declaration: Declaration, node: MappingNode | ScalarNode, source: SuiteSource
    ) -> None:
        self.declaration = declaration
        self.node = node
        self.source = source
        self.values: dict[str, Any] = {}
        self.faulty: set[str] = set()
        """Fields with something, at any depth, that had to be reported; "" for the object."""

    @property
    def sound(self) -> bool:
        return not self.faulty

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def get(self, name: str, default: Any = None) -> Any:
        return self.values.get(name, default)

    @property
    def place(self) -> Place:
        return self.source.place(self.node.line, self.node.column)

    @property
    def node_entries(self) -> dict[str, tuple[ScalarNode, Node]]:
        """What was written, also where it could not be understood."""
        return self.node.entries if isinstance(self.node, MappingNode) else {}

    def node_of(self, name: str) -> Node:
        """The value's node, for a place inside of it."""
        return self.node.entries[name][1] if isinstance(self.node, MappingNode) else self.node

    def complain(
        self, message: str, name: str | None = None, *, hint: str = "", warning: bool = False
    ) -> None:
        """Report a problem at the key of that name, or at the object's start."""
        where: Node = self.node
        if name is not None and isinstance(self.node, MappingNode) and name in self.node.entries:
            where = self.node.entries[name][0]
        self.source.report(
            message,
            where.line,
            where.column,
            hint=hint,
            width=where.width if isinstance(where, ScalarNode) else 1,
            severity="warning" if warning else "error",
        )
        if not warning:
            self.faulty.add(name if name and name in self.declaration.by_name else "")


Checks: TypeAlias = dict[type, Callable[[Reading], None]]
"""What fields can't say: for a class, a function that reports what does not fit together."""


def read_object(declaration: Declaration, node: MappingNode, source: SuiteSource) -> Reading:
    """Read every key of a mapping; unknown, missing and ill-typed ones are reported."""
    reading = Reading(declaration, node, source)
    known = declaration.by_name
    for name, (_, value) in node.entries.items():
        field = known.get(name)
        if field is None and declaration.has_extensions and name.startswith(EXTENSION):
            continue
        if field is None:
            reading.complain(
                f"unknown key {show(name, 60)} in {declaration.name}",
                name,
                hint="" if source.full else did_you_mean(name, _offered(declaration)),
            )
        elif not _read_field(field, value, reading):
            reading.faulty.add(name)
    for name in declaration.required:
        if name not in node.entries:
            reading.complain(f"{name} is missing from {declaration.name}")
    if declaration.must_ask and reading.sound:
        given = reading.values.items()
        if not any(is_asking(known[name].kind, value) for name, value in given):
            complain_of_nothing_asked(reading)
    return reading


def value_of(of: type[_T], read: Reading, checks: Checks | None = None) -> _T:
    """The value of a declared class that was read; `checks` are made of every object in it."""
    if checks and of in checks:
        checks[of](read)
    fields = DECLARED[of].by_name
    given = {name: _value(fields[name].kind, one, checks) for name, one in read.values.items()}
    if "place" in of.__annotations__:
        given["place"] = read.place
    return of(**given)


def _value(kind: Kind, value: Any, checks: Checks | None) -> Any:
    """`expect` may be a list of rows instead of an object."""
    if isinstance(kind, ObjectOf):
        return value_of(CLASS_OF[kind.declaration], value, checks)
    if isinstance(kind, ListOf):
        return tuple(value_of(CLASS_OF[kind.declaration], one, checks) for one in value)
    if not isinstance(kind, Expectations):
        return value
    if isinstance(value, Reading):
        return value_of(CLASS_OF[kind.declaration], value, checks)
    rows = tuple(value_of(CLASS_OF[kind.row], one, checks) for one in value)
    return CLASS_OF[kind.declaration](checks=rows, place=value[0].place)


def _offered(declaration: Declaration) -> tuple[str, ...]:
    return tuple(one.name for one in declaration.fields if not isinstance(one.kind, Reserved))


def complain_of_nothing_asked(reading: Reading) -> None:
    """An error of the protocol or a crash would still fail the test, but no answer would."""
    what = f"{reading.declaration.name} asks for nothing, so any answer would pass"
    least = (
        "not_error: true asks for the least; " if "not_error" in reading.declaration.names else ""
    )
    reading.complain(what, hint=f"{least}known here: {', '.join(reading.declaration.names)}")


def _read_field(field: Field, node: Node, reading: Reading) -> bool:
    """Put the value of a field into the reading; False when it did not fit."""
    kind = field.kind
    if type(node) is ScalarNode and is_nothing(node):
        if isinstance(kind, ObjectOf) and kind.nothing_is_empty:
            reading.values[field.name] = Reading(kind.declaration, node, reading.source)
            return True
        if field.nothing_allowed and not field.required:
            return True
    if type(node) is ScalarNode and not node.text and field.empty_is_nothing:
        return True
    value = _READERS[type(kind)](kind, node, field.name, reading.source)
    if value is INVALID:
        return False
    reading.values[field.name] = value
    parts = value if type(value) is tuple else (value,)
    return all(one.sound for one in parts if isinstance(one, Reading))


def _misfit(name: str, expected: str, node: Node, source: SuiteSource, hint: str = "") -> _Invalid:
    width = node.width if isinstance(node, ScalarNode) else 1
    message = f"{name} must be {expected}, not {describe(node)}"
    source.report(message, node.line, node.column, hint=hint, width=width)
    return INVALID


def describe(node: Node) -> str:
    """What stands there, in a few words."""
    if isinstance(node, ListNode):
        return "a list"
    if isinstance(node, MappingNode):
        return "a mapping"
    if is_nothing(node):
        return "nothing"
    if not node.text:
        return "an empty text"
    quote = "" if node.plain else '"'
    return f"{quote}{show(node.text, 40)}{quote}"


def _text(kind: Text, node: Node, name: str, source: SuiteSource) -> str | _Invalid:
    if not isinstance(node, ScalarNode) or is_nothing(node):
        return _misfit(name, "a text", node, source)
    try:
        text = text_value(node)
    except ScalarError as error:
        source.report(f"{name}: {error}", node.line, node.column, width=node.width)
        return INVALID
    if not text and not kind.may_be_empty:
        return _misfit(name, "a text", node, source)
    return text


def _flag(_kind: Flag, node: Node, name: str, source: SuiteSource) -> bool | _Invalid:
    value = truth_value(node) if isinstance(node, ScalarNode) else None
    if value is not None:
        return value
    quoted = isinstance(node, ScalarNode) and not node.plain and node.text in {"true", "false"}
    return _misfit(name, "true or false", node, source, "write it without quotes" if quoted else "")


def _whole(kind: Whole, node: Node, name: str, source: SuiteSource) -> int | _Invalid:
    value = _scalar_or_none(node)
    if type(value) is not int:
        return _misfit(name, "a whole number", node, source)
    if kind.minimum is not None and value < kind.minimum:
        return _misfit(name, f"at least {kind.minimum}", node, source)
    return value


def _scalar_or_none(node: Node) -> Any:
    try:
        return json_value(node) if isinstance(node, ScalarNode) else None
    except ScalarError:
        return None


def _duration(_kind: Duration, node: Node, name: str, source: SuiteSource) -> float | _Invalid:
    if isinstance(node, ScalarNode) and not is_nothing(node):
        try:
            return parse_duration(text_value(node))
        except (UsageError, ScalarError):
            pass
    return _misfit(name, "a duration", node, source, "write it like 500ms, 30s or 1m30s")


def _choice(kind: Choice, node: Node, name: str, source: SuiteSource) -> str | _Invalid:
    text = node.text if isinstance(node, ScalarNode) and not is_nothing(node) else None
    if text is not None and kind.any_case:
        text = text.lower()
    if text in kind.values:
        return text
    expected = f"one of {', '.join(kind.values)}"
    near = did_you_mean(text, kind.values) if text else ""
    return _misfit(name, expected, node, source, near if near.startswith("did") else "")


def _texts(kind: Texts, node: Node, name: str, source: SuiteSource) -> tuple[str, ...] | _Invalid:
    if not isinstance(node, ListNode):
        alone = isinstance(node, ScalarNode) and not is_nothing(node)
        hint = f"write {name}: [{describe(node)}]" if alone else ""
        return _misfit(name, "a list of texts", node, source, hint)
    item = Text(kind.may_be_empty)
    values = [_text(item, one, f"an item of {name}", source) for one in node.items]
    if any(value is INVALID for value in values):
        return INVALID
    return tuple(values)  # type: ignore[arg-type]  # no INVALID is left in it


def _text_table(
    _kind: TextTable, node: Node, name: str, source: SuiteSource
) -> dict[str, str] | _Invalid:
    if not isinstance(node, MappingNode):
        return _misfit(name, "a mapping of names to texts", node, source)
    item = Text(may_be_empty=True)
    table: dict[str, Any] = {}
    for key, (_, value) in node.entries.items():
        if isinstance(value, ScalarNode) and is_nothing(value):
            table[key] = ""
        else:
            table[key] = _text(item, value, f"{name}.{show(key, 60)}", source)
    return INVALID if any(value is INVALID for value in table.values()) else table


def _json_table(
    _kind: JsonTable, node: Node, name: str, source: SuiteSource
) -> dict[str, Any] | _Invalid:
    if not isinstance(node, MappingNode):
        return _misfit(name, "a mapping", node, source)
    before = source.errors
    table = read_json(node, name, source)
    return table if before == source.errors else INVALID


def read_json(node: Node, name: str, source: SuiteSource) -> Any:
    """Any value. Depth was bounded when the nodes were made."""
    if isinstance(node, ScalarNode):
        try:
            return json_value(node)
        except ScalarError as error:
            source.report(f"{name}: {error}", node.line, node.column, width=node.width)
            return None
    if isinstance(node, ListNode):
        return [read_json(one, name, source) for one in node.items]
    return {key: read_json(value, name, source) for key, (_, value) in node.entries.items()}


def _json_schema(_kind: JsonSchema, node: Node, name: str, source: SuiteSource) -> Any:
    if isinstance(node, MappingNode):
        return _json_table(JsonTable(), node, name, source)
    value = _scalar_or_none(node)
    if type(value) is bool:
        return value
    return _misfit(name, "a JSON Schema, which is a mapping", node, source)


def _matcher(
    _kind: MatcherField, node: Node, name: str, source: SuiteSource
) -> dict[str, Any] | _Invalid:
    from mcptest.suite.matching import MATCHERS, matcher_problem

    known = tuple(MATCHERS)
    if not isinstance(node, MappingNode) or not node.entries:
        expected = "a mapping of one matcher to its argument"
        return _misfit(name, expected, node, source, f"matchers: {', '.join(known)}")
    if len(node.entries) > 1:
        (first, _), (second, _) = list(node.entries.values())[:2]
        message = f"{show(first.text, 60)} and {show(second.text, 60)} in one row"
        hint = "write a row for each, with the same target"
        source.report(message, second.line, second.column, width=second.width, hint=hint)
        return INVALID
    chosen, (key, _) = next(iter(node.entries.items()))
    if chosen not in known:
        hint = did_you_mean(chosen, known)
        message = f"unknown matcher {show(chosen, 60)}"
        source.report(message, key.line, key.column, width=key.width, hint=hint)
        return INVALID
    table = _json_table(JsonTable(), node, name, source)
    if isinstance(table, dict) and (problem := matcher_problem(table)):
        source.report(problem, key.line, key.column, width=key.width)
        return INVALID
    return table


def _object(kind: ObjectOf, node: Node, name: str, source: SuiteSource) -> Reading | _Invalid:
    if not isinstance(node, MappingNode):
        return _misfit(name, "a mapping", node, source, _keys_of(kind.declaration))
    return read_object(kind.declaration, node, source)


def _keys_of(declaration: Declaration) -> str:
    return f"its keys: {', '.join(_offered(declaration))}"


def _list(
    kind: ListOf, node: Node, name: str, source: SuiteSource
) -> tuple[Reading, ...] | _Invalid:
    if not isinstance(node, ListNode):
        return _misfit(name, "a list", node, source)
    if not node.items and not kind.may_be_empty:
        message = f"{name} must be a list with at least one item, not an empty one"
        source.report(message, node.line, node.column)
        return INVALID
    readings = []
    for item in node.items:
        if isinstance(item, MappingNode):
            readings.append(read_object(kind.declaration, item, source))
        else:
            _misfit(f"an item of {name}", "a mapping", item, source, _keys_of(kind.declaration))
    return tuple(readings) if len(readings) == len(node.items) else INVALID


def _expectations(
    kind: Expectations, node: Node, name: str, source: SuiteSource
) -> Reading | tuple[Reading, ...] | _Invalid:
    if isinstance(node, ListNode):
        return _list(ListOf(kind.row), node, name, source)
    if not isinstance(node, MappingNode):
        expected = "a mapping, or a list of checks"
        return _misfit(name, expected, node, source, _keys_of(kind.declaration))
    if kind.may_be_empty and not node.entries:
        return Reading(kind.declaration, node, source)
    return read_object(kind.declaration, node, source)


def _reserved(_kind: Reserved, node: Node, name: str, source: SuiteSource) -> _Invalid:
    message = f"{name} is not available in this version"
    source.report(message, node.line, node.column)
    return INVALID


_READERS: dict[type[Kind], Callable[[Any, Node, str, SuiteSource], Any]] = {
    Text: _text,
    Flag: _flag,
    Whole: _whole,
    Duration: _duration,
    Choice: _choice,
    Texts: _texts,
    TextTable: _text_table,
    JsonTable: _json_table,
    JsonSchema: _json_schema,
    MatcherField: _matcher,
    ObjectOf: _object,
    ListOf: _list,
    Expectations: _expectations,
    Elsewhere: lambda _kind, node, _name, _source: node,  # whoever asks for it understands it
    Reserved: _reserved,
}


# -- One YAML file as nodes with places; what is wrong with it becomes a problem, not a ----------


def read_yaml(path: Path, shown_as: str = "") -> tuple[Node | None, SuiteSource]:
    """The document of a file, or None for one that is empty or can't be read: see the source."""
    name = shown_as or str(path)
    try:
        data = read_bounded(path, LARGEST_FILE, pipes=False, cut=True)
    except OSError as error:
        source = SuiteSource(name)
        source.report(f"can't be read: {error.strerror or error}", 1, 1)
        return None, source
    return read_yaml_bytes(data, name)


def read_yaml_bytes(data: bytes, name: str) -> tuple[Node | None, SuiteSource]:
    """The document of these bytes, and the source that problems are reported to."""
    root, source = parse_yaml(data, name)
    is_none = isinstance(root, ScalarNode) and is_nothing(root)
    return None if is_none else root, source


def parse_yaml(data: bytes, name: str) -> tuple[Node | None, SuiteSource]:
    """The same, where `null` is a document of its own."""
    source = SuiteSource(name)
    try:
        source = SuiteSource(name, decode(data))
        return read_nodes(source.text), source
    except YamlError as error:
        if not source.text and not error.whole_file:
            source = SuiteSource(name, data.decode("utf-8", "replace"))
        source.report(error.message, error.line, error.column, hint=error.hint, width=error.width)
        return None, source
