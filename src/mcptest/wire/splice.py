"""Replacing one value inside JSON text while every other byte stays as it was."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

_decoder = json.JSONDecoder()
_SPACE = re.compile(r"[ \t\n\r]*")


def replace_members(text: str, replace: dict[tuple[str, ...], Any]) -> str:
    """The object in `text` with the values at these paths replaced, where they are present.

    Raises ValueError when the text is not an object that can be read.
    """
    edits: list[tuple[int, int, str]] = []
    for path, value in replace.items():
        span = _span_of(text, path)
        if span is not None:
            edits.append((*span, json.dumps(value)))
    for start, end, written in sorted(edits, reverse=True):
        text = text[:start] + written + text[end:]
    return text


def array_items(text: str) -> Iterator[tuple[int, int]]:
    """Where each item of the array in `text` starts and ends."""
    at = _skip(text, _expect(text, _skip(text, 0), "["))
    while text[at : at + 1] != "]":
        _, end = _decoder.raw_decode(text, at)
        yield at, end
        at = _next_item(text, end, "]")


def _span_of(text: str, path: tuple[str, ...]) -> tuple[int, int] | None:
    at, found = 0, None
    for name in path:
        found = None
        if text[_skip(text, at) : _skip(text, at) + 1] != "{":
            return None
        for key, start, end in _members(text, at):
            if key == name:
                found = (start, end)  # of two members with one name the last one counts
        if found is None:
            return None
        at = found[0]
    return found


def _members(text: str, at: int) -> Iterator[tuple[str, int, int]]:
    at = _skip(text, _expect(text, _skip(text, at), "{"))
    while text[at : at + 1] != "}":
        key, at = _decoder.raw_decode(text, at)
        start = _skip(text, _expect(text, _skip(text, at), ":"))
        _, end = _decoder.raw_decode(text, start)
        yield key, start, end
        at = _next_item(text, end, "}")


def _next_item(text: str, at: int, closing: str) -> int:
    at = _skip(text, at)
    return at if text[at : at + 1] == closing else _skip(text, _expect(text, at, ","))


def _expect(text: str, at: int, letter: str) -> int:
    if text[at : at + 1] != letter:
        raise ValueError(f"{letter!r} expected at offset {at}")
    return at + 1


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    assert match is not None
    return match.end()
