"""The words in which message shapes are written down: one table, a revision window per member.

A shape is a value, not code: `shape_checks` turns it into functions, and the tests turn it into
messages. Every object is open: members that the table does not name are allowed, as in all five
revisions of the official schema.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TypeAlias

from mcptest.core.revision import EVERY_REVISION, Revision, Window

SINCE_MARCH_2025 = Window(since=Revision.V2025_03_26)
SINCE_JUNE_2025 = Window(since=Revision.V2025_06_18)
SINCE_NOVEMBER_2025 = Window(since=Revision.V2025_11_25)
UNTIL_NOVEMBER_2025 = Window(until=Revision.V2025_11_25)
IN_NOVEMBER_2025 = Window(since=Revision.V2025_11_25, until=Revision.V2026_07_28)


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


STRING = Plain.STRING
INTEGER = Plain.INTEGER
NUMBER = Plain.NUMBER
BOOLEAN = Plain.BOOLEAN
OBJECT = Plain.OBJECT
TOKEN = Plain.TOKEN
ANY = Plain.ANY


@dataclass(frozen=True, slots=True)
class Between:
    """A number within bounds, both included."""

    least: float
    most: float | None = None
    integer: bool = False


@dataclass(frozen=True, slots=True)
class Words:
    """One of these strings."""

    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ArrayOf:
    item: Shape
    most: int | None = None


@dataclass(frozen=True, slots=True)
class MapOf:
    """An object whose keys its sender chooses."""

    value: Shape


@dataclass(frozen=True, slots=True)
class ShapeField:
    """One member of an object, in the revisions where it means something.

    Outside of its window it is a member like any other that nobody knows. A member whose type
    changed has a row for each type.
    """

    name: str
    shape: Shape
    required: bool
    window: Window


@dataclass(frozen=True, slots=True)
class Obj:
    """An object with known members; `name` is what the specification calls it, if it does."""

    name: str
    fields: tuple[ShapeField, ...]


@dataclass(frozen=True, slots=True)
class TaggedCase:
    """What `Tagged` chooses when the tag says `tag`, in the revisions that know it."""

    tag: str
    shape: Shape
    window: Window = EVERY_REVISION


@dataclass(frozen=True, slots=True)
class Tagged:
    """An object whose shape is told by one of its members.

    Without `untagged` the tag must be there, without `other` it must be one of the known ones.
    """

    member: str
    cases: tuple[TaggedCase, ...]
    untagged: Shape | None = None
    other: Shape | None = None


@dataclass(frozen=True, slots=True)
class Holding:
    """What `ByMember` chooses when one member is there and another is not."""

    member: str
    shape: Shape
    lacking: str = ""
    window: Window = EVERY_REVISION


@dataclass(frozen=True, slots=True)
class ByMember:
    """An object whose shape is told by which members it has; the first case that fits counts."""

    cases: tuple[Holding, ...]
    otherwise: Shape


@dataclass(frozen=True, slots=True)
class AnyShape:
    """At least one shape fits. Where none does, the one whose `sign` is a member is explained."""

    alternatives: tuple[tuple[str, Shape], ...]


@dataclass(frozen=True, slots=True)
class OneOrMany:
    """A value or an array of such values."""

    item: Shape


Shape: TypeAlias = (
    Plain | Between | Words | ArrayOf | MapOf | Obj | Tagged | ByMember | AnyShape | OneOrMany
)


def need(name: str, shape: Shape, window: Window = EVERY_REVISION) -> ShapeField:
    """A member that must be there."""
    return ShapeField(name, shape, True, window)


def may(name: str, shape: Shape, window: Window = EVERY_REVISION) -> ShapeField:
    """A member that may be left out. null is a value, and not the same as leaving it out."""
    return ShapeField(name, shape, False, window)


def obj(name: str, *fields: ShapeField) -> Obj:
    return Obj(name, fields)
