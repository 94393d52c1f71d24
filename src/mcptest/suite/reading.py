"""From nodes to plain values, as a declaration says; whatever does not fit becomes a problem."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from mcptest.model.deadline import parse_duration
from mcptest.model.errors import UsageError
from mcptest.model.show import show
from mcptest.suite.fields import (
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
    Matcher,
    ObjectOf,
    Reserved,
    Text,
    Texts,
    TextTable,
    Whole,
    is_asking,
)
from mcptest.suite.model import Place
from mcptest.suite.problems import Source, did_you_mean
from mcptest.suite.scalars import ScalarError, is_nothing, json_value, text_value, truth_value
from mcptest.suite.yaml_nodes import Listing, Mapping, Node, Scalar


class _Invalid:
    """In the place of a value that could not be read; the problem is reported already."""


INVALID: Final = _Invalid()
EXTENSION = "x-"
"""How the names of keys begin that nobody here reads."""


class Reading:
    """An object that was read: the values that were given, and where they stand."""

    __slots__ = ("declaration", "faulty", "node", "source", "values")

    def __init__(self, declaration: Declaration, node: Mapping | Scalar, source: Source) -> None:
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
    def node_entries(self) -> dict[str, tuple[Scalar, Node]]:
        """What was written, also where it could not be understood."""
        return self.node.entries if isinstance(self.node, Mapping) else {}

    def node_of(self, name: str) -> Node:
        """The value's node, for a place inside of it."""
        return self.node.entries[name][1] if isinstance(self.node, Mapping) else self.node

    def complain(
        self, message: str, name: str | None = None, *, hint: str = "", warning: bool = False
    ) -> None:
        """Report a problem at the key of that name, or at the object's start."""
        where: Node = self.node
        if name is not None and isinstance(self.node, Mapping) and name in self.node.entries:
            where = self.node.entries[name][0]
        self.source.report(
            message,
            where.line,
            where.column,
            hint=hint,
            width=where.width if isinstance(where, Scalar) else 1,
            severity="warning" if warning else "error",
        )
        if not warning:
            self.faulty.add(name if name and name in self.declaration.by_name else "")


def read_object(declaration: Declaration, node: Mapping, source: Source) -> Reading:
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
        _check_that_it_asks(reading)
    return reading


def _offered(declaration: Declaration) -> tuple[str, ...]:
    return tuple(one.name for one in declaration.fields if not isinstance(one.kind, Reserved))


def _check_that_it_asks(reading: Reading) -> None:
    known = reading.declaration.by_name
    if any(is_asking(known[name].kind, value) for name, value in reading.values.items()):
        return
    complain_of_nothing_asked(reading)


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
    if type(node) is Scalar and is_nothing(node):
        if isinstance(kind, ObjectOf) and kind.nothing_is_empty:
            reading.values[field.name] = Reading(kind.declaration, node, reading.source)
            return True
        if field.nothing_allowed and not field.required:
            return True
    if type(node) is Scalar and not node.text and field.empty_is_nothing:
        return True
    value = _READERS[type(kind)](kind, node, field.name, reading.source)
    if value is INVALID:
        return False
    reading.values[field.name] = value
    return _is_sound(value)


def _is_sound(value: Any) -> bool:
    if isinstance(value, Reading):
        return value.sound
    if type(value) is tuple and value and isinstance(value[0], Reading):
        return all(one.sound for one in value)
    return True


def _misfit(name: str, expected: str, node: Node, source: Source, hint: str = "") -> _Invalid:
    width = node.width if isinstance(node, Scalar) else 1
    message = f"{name} must be {expected}, not {describe(node)}"
    source.report(message, node.line, node.column, hint=hint, width=width)
    return INVALID


def describe(node: Node) -> str:
    """What stands there, in a few words."""
    if isinstance(node, Listing):
        return "a list"
    if isinstance(node, Mapping):
        return "a mapping"
    if is_nothing(node):
        return "nothing"
    if not node.text:
        return "an empty text"
    quote = "" if node.plain else '"'
    return f"{quote}{show(node.text, 40)}{quote}"


def _text(kind: Text, node: Node, name: str, source: Source) -> str | _Invalid:
    if not isinstance(node, Scalar) or is_nothing(node):
        return _misfit(name, "a text", node, source)
    try:
        text = text_value(node)
    except ScalarError as error:
        source.report(f"{name}: {error}", node.line, node.column, width=node.width)
        return INVALID
    if not text and not kind.may_be_empty:
        return _misfit(name, "a text", node, source)
    return text


def _flag(_kind: Flag, node: Node, name: str, source: Source) -> bool | _Invalid:
    value = truth_value(node) if isinstance(node, Scalar) else None
    if value is not None:
        return value
    quoted = isinstance(node, Scalar) and not node.plain and node.text in {"true", "false"}
    return _misfit(name, "true or false", node, source, "write it without quotes" if quoted else "")


def _whole(kind: Whole, node: Node, name: str, source: Source) -> int | _Invalid:
    value = _scalar_or_none(node)
    if type(value) is not int:
        return _misfit(name, "a whole number", node, source)
    if kind.minimum is not None and value < kind.minimum:
        return _misfit(name, f"at least {kind.minimum}", node, source)
    return value


def _scalar_or_none(node: Node) -> Any:
    try:
        return json_value(node) if isinstance(node, Scalar) else None
    except ScalarError:
        return None


def _duration(_kind: Duration, node: Node, name: str, source: Source) -> float | _Invalid:
    if isinstance(node, Scalar) and not is_nothing(node):
        try:
            return parse_duration(text_value(node))
        except (UsageError, ScalarError):
            pass
    return _misfit(name, "a duration", node, source, "write it like 500ms, 30s or 1m30s")


def _choice(kind: Choice, node: Node, name: str, source: Source) -> str | _Invalid:
    text = node.text if isinstance(node, Scalar) and not is_nothing(node) else None
    if text is not None and kind.any_case:
        text = text.lower()
    if text in kind.values:
        return text
    expected = f"one of {', '.join(kind.values)}"
    near = did_you_mean(text, kind.values) if text else ""
    return _misfit(name, expected, node, source, near if near.startswith("did") else "")


def _texts(kind: Texts, node: Node, name: str, source: Source) -> tuple[str, ...] | _Invalid:
    if not isinstance(node, Listing):
        alone = isinstance(node, Scalar) and not is_nothing(node)
        hint = f"write {name}: [{describe(node)}]" if alone else ""
        return _misfit(name, "a list of texts", node, source, hint)
    item = Text(kind.may_be_empty)
    values = [_text(item, one, f"an item of {name}", source) for one in node.items]
    if any(value is INVALID for value in values):
        return INVALID
    return tuple(values)  # type: ignore[arg-type]  # no INVALID is left in it


def _text_table(
    _kind: TextTable, node: Node, name: str, source: Source
) -> dict[str, str] | _Invalid:
    if not isinstance(node, Mapping):
        return _misfit(name, "a mapping of names to texts", node, source)
    item = Text(may_be_empty=True)
    table: dict[str, Any] = {}
    for key, (_, value) in node.entries.items():
        if isinstance(value, Scalar) and is_nothing(value):
            table[key] = ""
        else:
            table[key] = _text(item, value, f"{name}.{show(key, 60)}", source)
    return INVALID if any(value is INVALID for value in table.values()) else table


def _json_table(
    _kind: JsonTable, node: Node, name: str, source: Source
) -> dict[str, Any] | _Invalid:
    if not isinstance(node, Mapping):
        return _misfit(name, "a mapping", node, source)
    before = source.errors
    table = read_json(node, name, source)
    return table if before == source.errors else INVALID


def read_json(node: Node, name: str, source: Source) -> Any:
    """Any value. Depth was bounded when the nodes were made."""
    if isinstance(node, Scalar):
        try:
            return json_value(node)
        except ScalarError as error:
            source.report(f"{name}: {error}", node.line, node.column, width=node.width)
            return None
    if isinstance(node, Listing):
        return [read_json(one, name, source) for one in node.items]
    return {key: read_json(value, name, source) for key, (_, value) in node.entries.items()}


def _json_schema(_kind: JsonSchema, node: Node, name: str, source: Source) -> Any:
    if isinstance(node, Mapping):
        return _json_table(JsonTable(), node, name, source)
    value = _scalar_or_none(node)
    if type(value) is bool:
        return value
    return _misfit(name, "a JSON Schema, which is a mapping", node, source)


def _matcher(_kind: Matcher, node: Node, name: str, source: Source) -> dict[str, Any] | _Invalid:
    from mcptest.suite.matchers import MATCHERS, matcher_problem

    known = tuple(MATCHERS)
    if not isinstance(node, Mapping) or not node.entries:
        expected = "a mapping of one matcher to its argument"
        return _misfit(name, expected, node, source, f"matchers: {', '.join(known)}")
    if len(node.entries) > 1:
        return _several_matchers(node, source)
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


def _several_matchers(node: Mapping, source: Source) -> _Invalid:
    first, second = list(node.entries.values())[:2]
    names = f"{show(first[0].text, 60)} and {show(second[0].text, 60)}"
    key, hint = second[0], "write a row for each, with the same target"
    source.report(f"{names} in one row", key.line, key.column, width=key.width, hint=hint)
    return INVALID


def _object(kind: ObjectOf, node: Node, name: str, source: Source) -> Reading | _Invalid:
    if not isinstance(node, Mapping):
        return _misfit(name, "a mapping", node, source, _keys_of(kind.declaration))
    return read_object(kind.declaration, node, source)


def _keys_of(declaration: Declaration) -> str:
    return f"its keys: {', '.join(_offered(declaration))}"


def _list(kind: ListOf, node: Node, name: str, source: Source) -> tuple[Reading, ...] | _Invalid:
    if not isinstance(node, Listing):
        return _misfit(name, "a list", node, source)
    if not node.items and not kind.may_be_empty:
        message = f"{name} must be a list with at least one item, not an empty one"
        source.report(message, node.line, node.column)
        return INVALID
    readings = []
    for item in node.items:
        if isinstance(item, Mapping):
            readings.append(read_object(kind.declaration, item, source))
        else:
            _misfit(f"an item of {name}", "a mapping", item, source, _keys_of(kind.declaration))
    return tuple(readings) if len(readings) == len(node.items) else INVALID


def _expectations(
    kind: Expectations, node: Node, name: str, source: Source
) -> Reading | tuple[Reading, ...] | _Invalid:
    if isinstance(node, Listing):
        return _list(ListOf(kind.row), node, name, source)
    if not isinstance(node, Mapping):
        expected = "a mapping, or a list of checks"
        return _misfit(name, expected, node, source, _keys_of(kind.declaration))
    if kind.may_be_empty and not node.entries:
        return Reading(kind.declaration, node, source)
    return read_object(kind.declaration, node, source)


def _elsewhere(_kind: Elsewhere, node: Node, _name: str, _source: Source) -> Node:
    """As it stands: whoever asks for the block understands it."""
    return node


def _reserved(_kind: Reserved, node: Node, name: str, source: Source) -> _Invalid:
    message = f"{name} is not available in this version"
    source.report(message, node.line, node.column)
    return INVALID


_READERS: dict[type[Kind], Callable[[Any, Node, str, Source], Any]] = {
    Text: _text,
    Flag: _flag,
    Whole: _whole,
    Duration: _duration,
    Choice: _choice,
    Texts: _texts,
    TextTable: _text_table,
    JsonTable: _json_table,
    JsonSchema: _json_schema,
    Matcher: _matcher,
    ObjectOf: _object,
    ListOf: _list,
    Expectations: _expectations,
    Elsewhere: _elsewhere,
    Reserved: _reserved,
}
