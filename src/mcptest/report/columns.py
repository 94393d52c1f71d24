"""Text in columns: how many cells a terminal gives it, padding, cutting and wrapping by that."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

from mcptest.model.show import show

_WIDE = frozenset("WF")
_NO_CELL = frozenset({"Mn", "Me", "Cf"})


def cells(text: str) -> int:
    """The width of a text that `show` has made safe."""
    return len(text) if text.isascii() else sum(map(_cells_of, text))


def _cells_of(character: str) -> int:
    if unicodedata.category(character) in _NO_CELL:
        return 0
    return 2 if unicodedata.east_asian_width(character) in _WIDE else 1


def cut(text: str, room: int) -> str:
    """The text in at most `room` cells, with an ellipsis where something was left out."""
    if cells(text) <= room:
        return text
    return next(_pieces(text, max(room - 1, 1))) + "…"


def pad(text: str, room: int) -> str:
    return text + " " * (room - cells(text))


def wrap(text: str, room: int) -> list[str]:
    """The text in lines of at most `room` cells, none of which a CI system takes for a command."""
    if cells(text) <= room:
        return [text]
    return [show(piece, 2 * len(piece) + 2) for piece in _pieces(text, room)]


def _pieces(text: str, room: int) -> Iterator[str]:
    start = used = 0
    for position, character in enumerate(text):
        width = _cells_of(character)
        if used + width > room and position > start:
            yield text[start:position]
            start, used = position, 0
        used += width
    yield text[start:]


def duration(milliseconds: int) -> str:
    """`39ms`, `1.2s`, `2m03s`."""
    milliseconds = max(0, milliseconds)
    if milliseconds < 1_000:
        return f"{milliseconds}ms"
    if milliseconds < 59_950:
        return f"{milliseconds / 1000:.1f}s"
    minutes, seconds = divmod(round(milliseconds / 1000), 60)
    return f"{minutes}m{seconds:02d}s"
