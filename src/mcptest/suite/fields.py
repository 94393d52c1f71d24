"""The vocabulary of declarations: kinds of values, fields and objects.

One declaration is read by the loader, by the JSON Schema and by the reference page, so the three
can't disagree.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

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


class Matcher(msgspec.Struct, frozen=True):
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
    """Where its declaration stands, under the name BLOCK."""
    list_of: str = ""
    """The field of it that a bare list in place of the object stands for."""
    nothing_is_empty: bool = False

    @property
    def declaration(self) -> Declaration:
        import importlib

        declared: Declaration = importlib.import_module(self.module).BLOCK
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
    | Matcher
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
