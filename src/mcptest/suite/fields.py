"""The vocabulary of declarations, and how an object is read as its declaration says.

A kind says what a field takes: how it is read, when it asks for something, and its JSON Schema for
editors. One declaration is read by the loader, by that schema and by the reference page, so the
three can't disagree. A class of the model is its own declaration (`declared`).
"""

from __future__ import annotations

import enum
import types
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeAlias, TypeVar, Union, get_args, get_origin

import msgspec

from mcptest.core.errors import UsageError
from mcptest.core.limits import parse_duration
from mcptest.core.loading import loaded_once
from mcptest.core.safe_text import show
from mcptest.suite.reading import (
    INVALID,
    ListNode,
    MappingNode,
    Node,
    Place,
    ScalarError,
    ScalarNode,
    SuiteSource,
    did_you_mean,
    json_value,
    text_value,
    truth_value,
)

_T = TypeVar("_T")
Schema: TypeAlias = dict[str, Any]
Definitions: TypeAlias = dict[str, Schema]
"""JSON Schema; and the objects that are referred to, by name."""


# -- What a field takes --------------------------------------------------------------------------

_SCALAR = ["string", "number", "boolean"]
"""A text may be written as any scalar."""
_NUMBER = r"([0-9]+\.?[0-9]*|\.[0-9]+)"
_LENGTH_OF_TIME = rf"^({_NUMBER}(ms|us|µs|ns|s|m|h))+$|^{_NUMBER}$"


class FieldKind(msgspec.Struct, frozen=True):
    """What a field takes; each kind reads its own nodes."""

    plain_schema: ClassVar[Schema] = {}

    def read(self, node: Node, name: str, source: SuiteSource) -> Any:
        """The value, or INVALID when it does not fit, which is reported."""
        raise NotImplementedError

    def value(self, read: Any, checks: Checks) -> Any:
        """What was read, as the model has it; for objects, `checks` are made."""
        return read

    def schema(self, definitions: Definitions) -> Schema:
        """The JSON Schema of a value; those of objects within it are added to the definitions."""
        return dict(self.plain_schema)


class Text(FieldKind, frozen=True):
    """Any scalar, as it is written."""

    may_be_empty: bool = False

    def read(self, node: Node, name: str, source: SuiteSource) -> Any:
        if not isinstance(node, ScalarNode) or node.is_nothing:
            return source.misfit(name, "a string", node)
        try:
            text = text_value(node)
        except ScalarError as error:
            return source.report_at(node, f"{name}: {error}")
        return text if text or self.may_be_empty else source.misfit(name, "a string", node)

    def schema(self, definitions: Definitions) -> Schema:
        return {"type": _SCALAR} if self.may_be_empty else {"type": _SCALAR, "minLength": 1}


class Flag(FieldKind, frozen=True):
    """true or false."""

    plain_schema: ClassVar[Schema] = {"type": "boolean"}

    def read(self, node: Node, name: str, source: SuiteSource) -> Any:
        value = truth_value(node) if isinstance(node, ScalarNode) else None
        if value is not None:
            return value
        quoted = isinstance(node, ScalarNode) and not node.plain and node.text in {"true", "false"}
        hint = "remove the quotes" if quoted else ""
        return source.misfit(name, "true or false", node, hint)


class Whole(FieldKind, frozen=True):
    """A whole number. One that is equal to `idle` asks for nothing."""

    minimum: int | None = 0
    idle: int | None = None

    def read(self, node: Node, name: str, source: SuiteSource) -> Any:
        value = _scalar_or_none(node)
        if type(value) is not int:
            return source.misfit(name, "a whole number", node)
        if self.minimum is not None and value < self.minimum:
            return source.misfit(name, f"at least {self.minimum}", node)
        return value

    def schema(self, definitions: Definitions) -> Schema:
        least = {} if self.minimum is None else {"minimum": self.minimum}
        return {"type": "integer", **least}


def _scalar_or_none(node: Node) -> Any:
    try:
        return json_value(node) if isinstance(node, ScalarNode) else None
    except ScalarError:
        return None


class Duration(FieldKind, frozen=True):
    """A length of time, such as 30s or 1m30s; a bare number counts seconds."""

    plain_schema: ClassVar[Schema] = {
        "type": ["string", "number"],
        "pattern": _LENGTH_OF_TIME,
        "exclusiveMinimum": 0,
    }

    def read(self, node: Node, name: str, source: SuiteSource) -> Any:
        if isinstance(node, ScalarNode) and not node.is_nothing:
            try:
                return parse_duration(text_value(node))
            except (UsageError, ScalarError):
                pass
        return source.misfit(name, "a duration", node, "use a duration such as 500ms, 30s or 1m30s")


class Choice(FieldKind, frozen=True):
    values: tuple[str, ...]
    any_case: bool = False

    def read(self, node: Node, name: str, source: SuiteSource) -> Any:
        text = node.text if isinstance(node, ScalarNode) and not node.is_nothing else None
        if text is not None and self.any_case:
            text = text.lower()
        if text in self.values:
            return text
        near = did_you_mean(text, self.values) if text else ""
        hint = near if near.startswith("did") else ""
        return source.misfit(name, f"one of {', '.join(self.values)}", node, hint)

    def schema(self, definitions: Definitions) -> Schema:
        words: Schema = {"enum": list(self.values)}
        if not self.any_case:
            return words
        in_any_case = ("".join(f"[{c}{c.upper()}]" for c in word) for word in self.values)
        return {"anyOf": [words, {"type": "string", "pattern": f"^({'|'.join(in_any_case)})$"}]}


class Texts(FieldKind, frozen=True):
    """A list of texts."""

    may_be_empty: bool = False
    """Whether an item may be the empty text."""

    def read(self, node: Node, name: str, source: SuiteSource) -> Any:
        if not isinstance(node, ListNode):
            alone = isinstance(node, ScalarNode) and not node.is_nothing
            hint = f"write {name}: [{node.described}]" if alone else ""
            return source.misfit(name, "a list of strings", node, hint)
        item = Text(self.may_be_empty)
        values = tuple(item.read(one, f"an item of {name}", source) for one in node.items)
        return INVALID if INVALID in values else values

    def schema(self, definitions: Definitions) -> Schema:
        return {"type": "array", "items": Text(self.may_be_empty).schema(definitions)}


class TextTable(FieldKind, frozen=True):
    """Texts by name."""

    plain_schema: ClassVar[Schema] = {
        "type": "object",
        "additionalProperties": {"type": [*_SCALAR, "null"]},
    }

    def read(self, node: Node, name: str, source: SuiteSource) -> Any:
        if not isinstance(node, MappingNode):
            return source.misfit(name, "a mapping of names to strings", node)
        item = Text(may_be_empty=True)
        table = {
            key: "" if value.is_nothing else item.read(value, f"{name}.{show(key, 60)}", source)
            for key, (_, value) in node.entries.items()
        }
        return INVALID if INVALID in table.values() else table


class JsonTable(TextTable, frozen=True):
    """JSON values by name."""

    plain_schema: ClassVar[Schema] = {"type": "object"}

    def read(self, node: Node, name: str, source: SuiteSource) -> Any:
        if not isinstance(node, MappingNode):
            return source.misfit(name, "a mapping", node)
        before, table = source.errors, read_json(node, name, source)
        return table if before == source.errors else INVALID


def read_json(node: Node, name: str, source: SuiteSource) -> Any:
    """Any value. Depth was bounded when the nodes were made."""
    if isinstance(node, ScalarNode):
        try:
            return json_value(node)
        except ScalarError as error:
            source.report_at(node, f"{name}: {error}")
            return None
    if isinstance(node, ListNode):
        return [read_json(one, name, source) for one in node.items]
    return {key: read_json(value, name, source) for key, (_, value) in node.entries.items()}


class JsonSchema(FieldKind, frozen=True):
    """A JSON Schema: a mapping, or true or false."""

    plain_schema: ClassVar[Schema] = {"type": ["object", "boolean"]}

    def read(self, node: Node, name: str, source: SuiteSource) -> Any:
        if isinstance(node, MappingNode):
            return JsonTable().read(node, name, source)
        value = _scalar_or_none(node)
        if type(value) is bool:
            return value
        return source.misfit(name, "a JSON Schema, which is a mapping", node)


class MatcherField(FieldKind, frozen=True):
    """A mapping of exactly one matcher's name to its argument."""

    def read(self, node: Node, name: str, source: SuiteSource) -> Any:
        from mcptest.suite.matching import MATCHERS, matcher_problem

        known = tuple(MATCHERS)
        if not isinstance(node, MappingNode) or not node.entries:
            expected = "a mapping of one matcher to its argument"
            return source.misfit(name, expected, node, f"matchers: {', '.join(known)}")
        keys = [key for key, _ in node.entries.values()]
        if len(keys) > 1:
            message = f"{show(keys[0].text, 60)} and {show(keys[1].text, 60)} in one row"
            return source.report_at(
                keys[1], message, "write one row for each, with the same target"
            )
        chosen = keys[0].text
        if chosen not in known:
            message = f"unknown matcher {show(chosen, 60)}"
            return source.report_at(keys[0], message, did_you_mean(chosen, known))
        table = JsonTable().read(node, name, source)
        if isinstance(table, dict) and (problem := matcher_problem(table)):
            return source.report_at(keys[0], problem)
        return table

    def schema(self, definitions: Definitions) -> Schema:
        from mcptest.suite.matching import MATCHERS

        rows = {
            name: {"description": matcher.about, **matcher.argument.schema}
            for name, matcher in MATCHERS.items()
        }
        one: Schema = {"additionalProperties": False, "minProperties": 1, "maxProperties": 1}
        return {"type": "object", "properties": rows, **one}


class ObjectOf(FieldKind, frozen=True):
    declaration: Declaration
    nothing_is_empty: bool = False
    """`list:` with nothing after it is the empty object."""
    short_for: str = ""
    """The field that a bare text in place of the object stands for."""

    def read(self, node: Node, name: str, source: SuiteSource) -> Any:
        if self.short_for and isinstance(node, ScalarNode) and not node.is_nothing:
            node = MappingNode({self.short_for: (node, node)}, node.line, node.column)
        if not isinstance(node, MappingNode):
            return source.misfit(name, "a mapping", node, self.declaration.offer)
        return read_object(self.declaration, node, source)

    def value(self, read: Any, checks: Checks) -> Any:
        return value_of(CLASS_OF[self.declaration], read, checks)

    def schema(self, definitions: Definitions) -> Schema:
        whole = self.declaration.reference(definitions)
        return {"anyOf": [whole, Text().schema(definitions)]} if self.short_for else whole


class ListOf(FieldKind, frozen=True):
    """A list of objects, at least one unless it `may_be_empty`."""

    declaration: Declaration
    may_be_empty: bool = False

    def read(self, node: Node, name: str, source: SuiteSource) -> Any:
        if not isinstance(node, ListNode):
            return source.misfit(name, "a list", node)
        if not node.items and not self.may_be_empty:
            return source.misfit(name, "a list with at least one item", node, got="an empty one")
        item = ObjectOf(self.declaration)
        readings = tuple(item.read(one, f"an item of {name}", source) for one in node.items)
        return INVALID if INVALID in readings else readings

    def value(self, read: Any, checks: Checks) -> Any:
        return tuple(value_of(CLASS_OF[self.declaration], one, checks) for one in read)

    def schema(self, definitions: Definitions) -> Schema:
        items = self.declaration.reference(definitions)
        return {"type": "array", "items": items, "minItems": 0 if self.may_be_empty else 1}


class Expectations(FieldKind, frozen=True):
    """One object, or a list of rows."""

    declaration: Declaration
    row: Declaration
    may_be_empty: bool = False
    """`expect: {}` is allowed, because something else of the block may ask for enough."""

    def read(self, node: Node, name: str, source: SuiteSource) -> Any:
        if isinstance(node, ListNode):
            return ListOf(self.row).read(node, name, source)
        if not isinstance(node, MappingNode):
            expected = "a mapping, or a list of checks"
            return source.misfit(name, expected, node, self.declaration.offer)
        if self.may_be_empty and not node.entries:
            return Reading(self.declaration, node, source)
        return read_object(self.declaration, node, source)

    def value(self, read: Any, checks: Checks) -> Any:
        of = CLASS_OF[self.declaration]
        if isinstance(read, Reading):
            return value_of(of, read, checks)
        return of(checks=ListOf(self.row).value(read, checks))

    def schema(self, definitions: Definitions) -> Schema:
        rows = ListOf(self.row).schema(definitions)
        empty = [{"type": "object", "maxProperties": 0}] if self.may_be_empty else []
        return {"anyOf": [self.declaration.reference(definitions), rows, *empty]}


class LaneBlock(FieldKind, frozen=True):
    """One of `lane_blocks`, which are imported for a suite that has such a block."""

    name: str
    list_of: str = ""
    """The field of it that a bare list in place of the object stands for."""
    nothing_is_empty: bool = False

    @property
    def declaration(self) -> Declaration:

        return next(one for one in DECLARED.values() if one.name == self.name)

    def read(self, node: Node, name: str, source: SuiteSource) -> Any:
        return node  # whoever asks for it understands it

    def schema(self, definitions: Definitions) -> Schema:
        whole = self.declaration.reference(definitions)
        if not self.list_of:
            return whole
        return {"anyOf": [whole, self.declaration.by_name[self.list_of].kind.schema(definitions)]}


class Reserved(FieldKind, frozen=True):
    """A name that a later version will understand."""

    plain_schema: ClassVar[Schema] = {"not": {}}

    def read(self, node: Node, name: str, source: SuiteSource) -> Any:
        source.report(f"{name} is not available in this version", node.line, node.column)
        return INVALID


# -- Declarations --------------------------------------------------------------------------------

EXTENSION = "x-"
"""How the names of keys begin that nobody here reads."""


class Field(msgspec.Struct, frozen=True):
    name: str
    kind: FieldKind
    doc: str
    required: bool = False
    ours: bool = False
    """mcp-assert does not have it."""
    nothing_allowed: bool = True
    """Whether an optional field may be written with nothing after it, which is as if it weren't."""
    templates: Literal["none", "values", "keys"] = "none"
    """Where `{{name}}` is replaced: nowhere, in every text, or in the keys of a table."""

    @property
    def empty_is_nothing(self) -> bool:
        """`transport: ""` is as if it weren't there, where the empty text can't be meant."""
        optional = self.nothing_allowed and not self.required
        if isinstance(self.kind, Text):
            return optional and not self.kind.may_be_empty
        return optional and isinstance(self.kind, Choice | Duration)

    def schema(self, definitions: Definitions) -> Schema:
        schema = {"description": self.doc, **self.kind.schema(definitions)}
        if isinstance(self.kind, Reserved):
            return schema
        if self.empty_is_nothing:
            return _or(schema, {"enum": [None, ""]})
        empty = isinstance(self.kind, ObjectOf | LaneBlock) and self.kind.nothing_is_empty
        if not empty and (self.required or not self.nothing_allowed):
            return schema
        if (kind := schema.get("type")) is None:
            return _or(schema, {"type": "null"})
        return {**schema, "type": [*([kind] if isinstance(kind, str) else kind), "null"]}


def _or(schema: Schema, other: Schema) -> Schema:
    inner = {name: part for name, part in schema.items() if name != "description"}
    return {"description": schema["description"], "anyOf": [inner, other]}


class Declaration(msgspec.Struct, frozen=True, eq=False):
    """One object of the format: what it is called, what it is for, and its fields."""

    name: str
    doc: str
    fields: tuple[Field, ...]
    must_ask: bool = False
    """An object that asks for nothing would make a test that every answer passes."""
    has_extensions: bool = False
    """Keys that begin with `x-` are left alone: they hold anchors, or are for other tools."""
    by_name: Mapping[str, Field] = {}
    """The fields again; and below, the names of those that must be there."""
    required: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        set_once = msgspec.structs.force_setattr
        set_once(self, "by_name", {one.name: one for one in self.fields})
        set_once(self, "required", tuple(one.name for one in self.fields if one.required))

    @property
    def offered(self) -> tuple[str, ...]:
        return tuple(one.name for one in self.fields if not isinstance(one.kind, Reserved))

    @property
    def offer(self) -> str:
        return f"its keys: {', '.join(self.offered)}"

    def reference(self, definitions: Definitions) -> Schema:
        """Its JSON Schema by name, which is added to the definitions."""
        name = self.name.replace(" ", "-")
        if name not in definitions:
            definitions[name] = {}
            definitions[name] = self.schema(definitions)
        return {"$ref": f"#/$defs/{name}"}

    def schema(self, definitions: Definitions) -> Schema:
        """Its JSON Schema; those of the objects within it are added to the definitions."""
        schema: Schema = {
            "description": self.doc,
            "type": "object",
            "properties": {one.name: one.schema(definitions) for one in self.fields},
            "additionalProperties": False,
        }
        if self.required:
            schema["required"] = list(self.required)
        if self.has_extensions:
            schema["patternProperties"] = {f"^{EXTENSION}": True}
        schema.update(_rules().get(self.name, {}))
        if self.must_ask:
            schema["anyOf"] = [
                {"required": [one.name], "properties": {one.name: _asking(self.idle(one.name))}}
                for one in self.fields
            ]
        return schema

    def idle(self, name: str) -> Any:
        """The value of a field that asks for nothing: as if it weren't there."""
        unlike: int | None = getattr(self.by_name[name].kind, "idle", None)
        return getattr(CLASS_OF[self](), name) if unlike is None else unlike


def _asking(idle: Any) -> Schema:
    """What a value is that asks for something, as JSON Schema."""
    match idle:
        case False:
            return {"const": True}
        case int():
            return {"type": "integer", "not": {"const": idle}}
        case ():
            return {"type": "array", "minItems": 1}
        case {}:
            return {"type": "object", "minProperties": 1}
    return {"not": {"type": "null"}}


@loaded_once
def _rules() -> dict[str, Schema]:
    raw = Path(__file__).with_name("editor_schema.yml").read_bytes()
    return msgspec.yaml.decode(raw, type=dict[str, Schema])


_KIND_OF_TYPE: dict[Any, FieldKind] = {
    str: Text(),
    bool: Flag(),
    int: Whole(),
    float: Duration(),
    tuple[str, ...]: Texts(),
    Mapping[str, str]: TextTable(),
    Mapping[str, Any]: JsonTable(),
}
DECLARED: dict[type, Declaration] = {}
CLASS_OF: dict[Declaration, Any] = {}
"""What `declared` was told, by class; and the class of each declaration."""


class Mark(enum.Enum):
    """What an annotation says of a field beside its type, its kind and what it is for."""

    REQUIRED = ("required", True)
    OURS = ("ours", True)
    WRITTEN = ("nothing_allowed", False)
    EMPTY = ("nothing_is_empty", True)
    """Written with nothing after it, it is the empty object; or the list may be empty."""
    VALUES = ("templates", "values")
    KEYS = ("templates", "keys")


def declared(name: str, **more: Any) -> Callable[[type[_T]], type[_T]]:
    """The class is a declaration of that name: its docstring, and its annotated fields."""

    def declare(of: type[_T]) -> type[_T]:
        doc = " ".join((of.__doc__ or "").split())
        DECLARED[of] = declaration = Declaration(name, doc, fields_of(of), **more)
        CLASS_OF[declaration] = of
        return of

    return declare


def fields_of(of: type) -> tuple[Field, ...]:
    """The fields of a class whose annotations say what they are for."""
    return tuple(
        _field(name, *get_args(annotation))
        for base in reversed(of.__mro__)
        for name, annotation in vars(base).get("__annotations__", {}).items()
        if hasattr(annotation, "__metadata__")
    )


def _field(name: str, of: Any, *said: Any) -> Field:
    marks: dict[str, Any] = {}
    kind, doc = None, ""
    for one in said:
        if isinstance(one, Mark):
            marks[one.value[0]] = one.value[1]
        elif isinstance(one, str):
            doc = one
        else:
            kind = one
    empty = marks.pop("nothing_is_empty", False)
    return Field(name, kind or _kind(of, empty=empty), doc, **marks)


def _kind(of: Any, *, empty: bool) -> FieldKind:
    if get_origin(of) in {Union, types.UnionType}:
        of = next(one for one in get_args(of) if one is not types.NoneType)
    if get_origin(of) is Literal:
        return Choice(get_args(of))
    if of in DECLARED:
        return ObjectOf(DECLARED[of], nothing_is_empty=empty)
    return _KIND_OF_TYPE.get(of) or ListOf(DECLARED[get_args(of)[0]], may_be_empty=empty)


# -- Reading an object --------------------------------------------------------------------------


class Reading(msgspec.Struct, eq=False):
    """An object that was read: the values that were given, and where they stand."""

    declaration: Declaration
    node: MappingNode
    source: SuiteSource
    values: dict[str, Any] = {}
    faulty: set[str] = set()
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

    def node_of(self, name: str) -> Node:
        """The value's node, for a place inside of it."""
        return self.node.entries[name][1]

    def complain(
        self, message: str, name: str | None = None, *, hint: str = "", warning: bool = False
    ) -> None:
        """Report a problem at the key of that name, or at the object's start."""
        where = self.node.entries[name][0] if name in self.node.entries else self.node
        self.source.report_at(where, message, hint, "warning" if warning else "error")
        if not warning:
            self.faulty.add(name if name and name in self.declaration.by_name else "")

    def complain_at(self, node: Node, message: str, *, hint: str = "") -> None:
        """Report a problem with a part of a value."""
        self.source.report_at(node, message, hint)
        self.faulty.add("")


Checks: TypeAlias = Mapping[str, Callable[[Reading], None]]
"""What fields can't say: for a declaration, a function that reports what does not fit together."""


def read_object(declaration: Declaration, node: MappingNode, source: SuiteSource) -> Reading:
    """Read every key of a mapping; unknown, missing and ill-typed ones are reported."""
    reading = Reading(declaration, node, source)
    known = declaration.by_name
    for name, (_, value) in node.entries.items():
        field = known.get(name)
        if field is not None:
            if not _read_field(field, value, reading):
                reading.faulty.add(name)
        elif not (declaration.has_extensions and name.startswith(EXTENSION)):
            hint = "" if source.full else did_you_mean(name, declaration.offered)
            message = f"unknown key {show(name, 60)} in {declaration.name}"
            reading.complain(message, name, hint=hint)
    for name in declaration.required:
        if name not in node.entries:
            reading.complain(f"{name} is missing from {declaration.name}")
    asks = (value != declaration.idle(name) for name, value in reading.values.items())
    if declaration.must_ask and reading.sound and not any(asks):
        complain_of_nothing_asked(reading)
    return reading


def _read_field(field: Field, node: Node, reading: Reading) -> bool:
    """Put the value of a field into the reading; False when it did not fit."""
    kind = field.kind
    if node.is_nothing:
        if isinstance(kind, ObjectOf) and kind.nothing_is_empty:
            empty = MappingNode({}, node.line, node.column)
            reading.values[field.name] = Reading(kind.declaration, empty, reading.source)
            return True
        if field.nothing_allowed and not field.required:
            return True
    if type(node) is ScalarNode and not node.text and field.empty_is_nothing:
        return True
    value = kind.read(node, field.name, reading.source)
    if value is INVALID:
        return False
    reading.values[field.name] = value
    parts = value if type(value) is tuple else (value,)
    return all(one.sound for one in parts if isinstance(one, Reading))


def complain_of_nothing_asked(reading: Reading) -> None:
    """An error of the protocol or a crash would still fail the test, but no answer would."""
    names = reading.declaration.by_name
    what = f"{reading.declaration.name} checks nothing, so any response would pass"
    least = "not_error: true is the weakest check; " if "not_error" in names else ""
    reading.complain(what, hint=f"{least}known here: {', '.join(names)}")


NO_CHECKS: Checks = {}


def value_of(of: type[_T], read: Reading, checks: Checks = NO_CHECKS) -> _T:
    """The value of a declared class that was read; `checks` are made of every object in it."""
    declaration = DECLARED[of]
    if declaration.name in checks:
        checks[declaration.name](read)
    fields = declaration.by_name
    given = {name: fields[name].kind.value(one, checks) for name, one in read.values.items()}
    if "place" in of.__annotations__:
        given["place"] = read.place
    return of(**given)
