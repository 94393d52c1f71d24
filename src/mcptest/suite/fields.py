"""The vocabulary of declarations: kinds of values, fields and objects.

One declaration is read by the loader, by the JSON Schema and by the reference page, so the three
can't disagree. A class of the model is its own declaration (`declared`).
"""

from __future__ import annotations

import enum
import types
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias, TypeVar, Union, get_args, get_origin

import msgspec


class Text(msgspec.Struct, frozen=True):
    """Any scalar, as it is written."""

    may_be_empty: bool = False


class Flag(msgspec.Struct, frozen=True):
    """true or false."""


class Whole(msgspec.Struct, frozen=True):
    """A whole number. One that is equal to `idle` asks for nothing."""

    minimum: int | None = 0
    idle: int | None = None


class Duration(msgspec.Struct, frozen=True):
    """A length of time, such as 30s or 1m30s; a bare number counts seconds."""


class Choice(msgspec.Struct, frozen=True):
    values: tuple[str, ...]
    any_case: bool = False


class Texts(msgspec.Struct, frozen=True):
    """A list of texts."""

    may_be_empty: bool = False
    """Whether an item may be the empty text."""


class TextTable(msgspec.Struct, frozen=True):
    """Texts by name."""


class JsonTable(msgspec.Struct, frozen=True):
    """JSON values by name."""


class JsonSchema(msgspec.Struct, frozen=True):
    """A JSON Schema: a mapping, or true or false."""


class MatcherField(msgspec.Struct, frozen=True):
    """A mapping of exactly one matcher's name to its argument."""


class ObjectOf(msgspec.Struct, frozen=True):
    declaration: Declaration
    nothing_is_empty: bool = False
    """`list:` with nothing after it is the empty object."""
    short_for: str = ""
    """The field that a bare text in place of the object stands for."""


class ListOf(msgspec.Struct, frozen=True):
    """A list of objects, at least one unless it `may_be_empty`."""

    declaration: Declaration
    may_be_empty: bool = False


class Expectations(msgspec.Struct, frozen=True):
    """One object, or a list of rows."""

    declaration: Declaration
    row: Declaration
    may_be_empty: bool = False
    """`expect: {}` is allowed, because something else of the block may ask for enough."""


class Elsewhere(msgspec.Struct, frozen=True):
    """A block with a module of its own, which is imported for a suite that has the block."""

    module: str
    name: str
    """Of its declaration in the module."""
    list_of: str = ""
    """The field of it that a bare list in place of the object stands for."""
    nothing_is_empty: bool = False

    @property
    def declaration(self) -> Declaration:
        import importlib

        declared: Declaration = getattr(importlib.import_module(self.module), self.name)
        return declared


class Reserved(msgspec.Struct, frozen=True):
    """A name that a later version will understand."""


Kind: TypeAlias = (
    Text
    | Flag
    | Whole
    | Duration
    | Choice
    | Texts
    | TextTable
    | JsonTable
    | JsonSchema
    | MatcherField
    | ObjectOf
    | ListOf
    | Expectations
    | Elsewhere
    | Reserved
)


Templates: TypeAlias = Literal["none", "values", "keys"]
"""Where `{{name}}` is replaced: nowhere, in every text, or in the keys of a table."""


class Field(msgspec.Struct, frozen=True):
    name: str
    kind: Kind
    doc: str
    required: bool = False
    ours: bool = False
    """mcp-assert does not have it."""
    nothing_allowed: bool = True
    """Whether an optional field may be written with nothing after it, which is as if it weren't."""

    templates: Templates = "none"

    @property
    def empty_is_nothing(self) -> bool:
        """`transport: ""` is as if it weren't there, where the empty text can't be meant."""
        optional = self.nothing_allowed and not self.required
        if isinstance(self.kind, Text):
            return optional and not self.kind.may_be_empty
        return optional and isinstance(self.kind, Choice | Duration)


class Declaration(msgspec.Struct, frozen=True, eq=False):
    """One object of the format: what it is called, what it is for, and its fields."""

    name: str
    doc: str
    fields: tuple[Field, ...]
    must_ask: bool = False
    """An object that asks for nothing would make a test that every answer passes."""
    has_extensions: bool = False
    """Keys that begin with `x-` are left alone: they hold anchors, or are for other tools."""
    rules: Mapping[str, Any] = {}
    """JSON Schema keywords for what single fields can't say."""
    by_name: Mapping[str, Field] = {}
    """The fields again; and below, the names of those that must be there."""
    required: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        set_once = msgspec.structs.force_setattr
        set_once(self, "by_name", {one.name: one for one in self.fields})
        set_once(self, "required", tuple(one.name for one in self.fields if one.required))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.by_name)


def is_asking(kind: Kind, value: Any) -> bool:
    """Whether a value of an expectation asks for anything at all."""
    if isinstance(kind, Flag):
        return value is True
    if isinstance(kind, Whole):
        return bool(value != kind.idle)
    if isinstance(kind, Texts | TextTable | JsonTable):
        return bool(value)
    return True


# -- A class of the model as its own declaration -------------------------------------------------

_T = TypeVar("_T")
_KIND_OF_TYPE: dict[Any, Kind] = {
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

    REQUIRED = 1
    OURS = 2
    """mcp-assert does not have it."""
    WRITTEN = 3
    """It may not be written with nothing after it."""
    EMPTY = 4
    """Written with nothing after it, it is the empty object; or the list may be empty."""
    VALUES = 5
    """`{{name}}` is replaced in every text of it."""
    KEYS = 6
    """`{{name}}` is replaced in the keys of the table."""


def declared(name: str, **more: Any) -> Callable[[type[_T]], type[_T]]:
    """The class is a declaration of that name: its docstring, and its annotated fields."""

    def declare(of: type[_T]) -> type[_T]:
        doc = " ".join((of.__doc__ or "").split())
        declaration = Declaration(name, doc, fields_of(of), **more)
        DECLARED[of] = declaration
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
    marks = {one for one in said if isinstance(one, Mark)}
    kind = next((one for one in said if not isinstance(one, Mark | str)), None)
    return Field(
        name,
        kind or _kind(of, empty=Mark.EMPTY in marks),
        next(one for one in said if isinstance(one, str)),
        required=Mark.REQUIRED in marks,
        ours=Mark.OURS in marks,
        nothing_allowed=Mark.WRITTEN not in marks,
        templates="values" if Mark.VALUES in marks else "keys" if Mark.KEYS in marks else "none",
    )


def _kind(of: Any, *, empty: bool) -> Kind:
    if get_origin(of) in {Union, types.UnionType}:
        of = next(one for one in get_args(of) if one is not types.NoneType)
    if of in _KIND_OF_TYPE:
        return _KIND_OF_TYPE[of]
    if get_origin(of) is Literal:
        return Choice(get_args(of))
    if of in DECLARED:
        return ObjectOf(DECLARED[of], nothing_is_empty=empty)
    return ListOf(DECLARED[get_args(of)[0]], may_be_empty=empty)
