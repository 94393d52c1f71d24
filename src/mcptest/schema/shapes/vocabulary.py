"""What a message shape is made of: values, not code. Every object is open.

`checker` turns a shape into functions, `hypothesis_strategies` and the tests turn it into messages.
"""

from __future__ import annotations

import enum
from typing import TypeAlias

import msgspec

from mcptest.core.revision import EVERY_REVISION, Window


class Plain(enum.Enum):
    """A type without inner structure; the value is how a person is told what was expected."""

    STRING = "a string"
    INTEGER = "an integer"
    """As JSON Schema counts: 1.0 is one."""
    NUMBER = "a number"
    BOOLEAN = "a boolean"
    OBJECT = "an object"
    TOKEN = "a string or an integer"
    INTEGER_OR_NULL = "an integer or null"
    PRIMITIVE = "a string, a number or a boolean"
    ANY = "any JSON value"


class Between(msgspec.Struct, frozen=True):
    """A number within bounds, both included."""

    least: float
    most: float | None = None
    integer: bool = False


class Words(msgspec.Struct, frozen=True):
    """One of these strings."""

    words: tuple[str, ...]


class ArrayOf(msgspec.Struct, frozen=True):
    item: Shape
    most: int | None = None


class OneOrMany(msgspec.Struct, frozen=True):
    """A value or an array of such values."""

    item: Shape


class MapOf(msgspec.Struct, frozen=True):
    """An object whose keys its sender chooses."""

    value: Shape


class ShapeField(msgspec.Struct, frozen=True):
    """One member of an object, in the revisions where it means something.

    Outside of its window it is a member like any other that nobody knows. A member whose type
    changed has a row for each type. null is a value, and not the same as leaving a member out.
    """

    name: str
    shape: Shape
    required: bool = True
    window: Window = EVERY_REVISION


class Obj(msgspec.Struct, frozen=True):
    """An object with known members; `name` is what the specification calls it, if it does."""

    name: str
    fields: tuple[ShapeField, ...]


class Case(msgspec.Struct, frozen=True):
    """What is chosen by a tag, or where a member is there and another is not."""

    sign: str
    shape: Shape
    window: Window = EVERY_REVISION
    lacking: str = ""


class Tagged(msgspec.Struct, frozen=True):
    """An object whose shape is told by the value of one of its members.

    Without `untagged` the tag must be there, without `other` it must be one of the known ones.
    """

    member: str
    cases: tuple[Case, ...]
    untagged: Shape | None = None
    other: Shape | None = None


class ByMember(msgspec.Struct, frozen=True):
    """An object whose shape is told by which members it has; the first case that fits counts."""

    cases: tuple[Case, ...]
    otherwise: Shape


class AnyShape(msgspec.Struct, frozen=True):
    """At least one shape fits. Where none does, the one whose `sign` is a member is explained."""

    alternatives: tuple[Case, ...]


Shape: TypeAlias = (
    Plain | Between | Words | ArrayOf | MapOf | Obj | Tagged | ByMember | AnyShape | OneOrMany
)
