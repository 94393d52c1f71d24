"""What a JSONPath says: segments of selectors, and the tests of its filters (RFC 9535)."""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec


class PathError(ValueError):
    """A path that can't be read, or that leads to nothing. The text says why."""


class PathSyntaxError(PathError):
    """The path itself is wrong, whatever the document; `position` counts from zero."""

    def __init__(self, reason: str, position: int = 0) -> None:
        super().__init__(reason)
        self.position = position


class Name(msgspec.Struct, frozen=True):
    name: str


class Index(msgspec.Struct, frozen=True):
    index: int


class Slice(msgspec.Struct, frozen=True):
    start: int | None
    stop: int | None
    step: int


class Wildcard(msgspec.Struct, frozen=True):
    pass


class Filter(msgspec.Struct, frozen=True):
    test: Test


Selector: TypeAlias = Name | Index | Slice | Wildcard | Filter


class Segment(msgspec.Struct, frozen=True):
    selectors: tuple[Selector, ...]
    descendant: bool = False


class Constant(msgspec.Struct, frozen=True):
    value: Any


class Query(msgspec.Struct, frozen=True):
    """`@…` or `$…` inside a filter."""

    segments: tuple[Segment, ...]
    relative: bool


class Call(msgspec.Struct, frozen=True):
    function: str
    arguments: tuple[Operand, ...]


Operand: TypeAlias = Constant | Query | Call


class Comparison(msgspec.Struct, frozen=True):
    operator: str
    left: Operand
    right: Operand


class Not(msgspec.Struct, frozen=True):
    test: Test


class AllOf(msgspec.Struct, frozen=True):
    tests: tuple[Test, ...]


class AnyOf(msgspec.Struct, frozen=True):
    tests: tuple[Test, ...]


Test: TypeAlias = Comparison | Not | AllOf | AnyOf | Query | Call


def is_singular(segments: tuple[Segment, ...]) -> bool:
    """Whether the path can lead to one value at most, by its form alone."""
    return all(
        not segment.descendant
        and len(segment.selectors) == 1
        and isinstance(segment.selectors[0], Name | Index)
        for segment in segments
    )
