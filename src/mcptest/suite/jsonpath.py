"""JSONPath over decoded JSON: RFC 9535, with the plain paths and the messages of mcp-assert."""

from __future__ import annotations

import functools
from typing import Any

import msgspec

from mcptest.model.message import json_type
from mcptest.suite.go_format import quote
from mcptest.suite.jsonpath_filter import Walk
from mcptest.suite.jsonpath_model import (
    Index,
    Name,
    PathError,
    PathSyntaxError,
    Segment,
    is_singular,
)
from mcptest.suite.jsonpath_syntax import parse

__all__ = [
    "MOST_STEPS",
    "Path",
    "PathError",
    "PathSyntaxError",
    "compile_path",
    "lookup",
    "path_problem",
    "query",
]

MOST_STEPS = 1_000_000
"""How many nodes one evaluation may visit: about a second of work."""


class Path(msgspec.Struct, frozen=True):
    """A path that was read. A singular one leads to one value at most, by its form alone."""

    text: str
    segments: tuple[Segment, ...]
    singular: bool


@functools.lru_cache(maxsize=1024)
def compile_path(text: str) -> Path:
    """Read a path. Raises PathSyntaxError, which knows the position."""
    segments = parse(text)
    return Path(text, segments, is_singular(segments))


def path_problem(text: str) -> str | None:
    """Why the path can't be used, or None: for the moment when a suite is loaded."""
    try:
        compile_path(text)
    except PathSyntaxError as error:
        return str(error)
    return None


def query(document: Any, path: str | Path, *, most_steps: int = MOST_STEPS) -> list[Any]:
    """Every value that the path leads to, in document order. Raises PathError."""
    compiled = compile_path(path) if isinstance(path, str) else path
    return Walk(document, most_steps).select(document, compiled.segments)


def lookup(document: Any, path: str | Path, *, most_steps: int = MOST_STEPS) -> Any:
    """The one value that the path leads to. Raises PathError that says where the way ended."""
    compiled = compile_path(path) if isinstance(path, str) else path
    if compiled.singular:
        return _follow(document, compiled.segments)
    found = query(document, compiled, most_steps=most_steps)
    if len(found) != 1:
        many = f"{len(found)} values match" if found else "no value matches"
        raise PathError(f"{many} where one is wanted")
    return found[0]


def _follow(document: Any, segments: tuple[Segment, ...]) -> Any:
    value, name = document, "$"
    for segment in segments:
        match segment.selectors[0]:
            case Name(name):
                value = _field(value, name)
            case Index(index):
                value = _item(value, index, name)
            case _:
                raise PathError("the path may lead to several values")
    return value


def _field(value: Any, name: str) -> Any:
    if not isinstance(value, dict):
        raise PathError(f"expected object at {quote(name)}, got {json_type(value)}")
    if name not in value:
        raise PathError(f"field {quote(name)} not found")
    return value[name]


def _item(value: Any, index: int, name: str) -> Any:
    if not isinstance(value, list):
        raise PathError(f"expected array at {quote(name)}, got {json_type(value)}")
    if not -len(value) <= index < len(value):
        raise PathError(f"index {index} out of range (len={len(value)})")
    return value[index]
