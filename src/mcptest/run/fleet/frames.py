"""What a process that judges one server and the one that started it say to each other.

In: one order. Out: how far it is, as often as it likes, and what was found, once.
Both are JSON, one a line.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from mcptest.model.fleet import Found

LARGEST = 64 * 1024 * 1024
"""Bytes of a line. What was found is bounded by the limits of judging; this is for the rest."""


class Progress(msgspec.Struct, frozen=True, tag="progress"):
    text: str


class Finished(msgspec.Struct, frozen=True, tag="finished"):
    found: Found


Frame: TypeAlias = Progress | Finished
_decoder = msgspec.json.Decoder(Frame)


def encoded(value: msgspec.Struct) -> bytes:
    """One line. Half a character, which a server can say and UTF-8 can't, is made visible."""
    try:
        raw = msgspec.json.encode(value)
    except UnicodeEncodeError:
        raw = msgspec.json.encode(_visible(msgspec.to_builtins(value)))
    return raw + b"\n"


def decoded(line: bytes) -> Frame:
    """Raises ValueError for what is no frame."""
    frame: Frame = _decoder.decode(line)
    return frame


def _visible(value: object) -> object:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, dict):
        return {_visible(key): _visible(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_visible(one) for one in value]
    return value


class Lines:
    """Bytes in, frames out."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[Frame]:
        """Raises ValueError for a line that is too long or no frame."""
        *whole, rest = chunk.split(b"\n")
        frames = []
        for line in whole:
            frames.append(decoded(b"".join((*self._parts, line))))
            self._parts, self._size = [], 0
        if rest:
            self._parts.append(rest)
            self._size += len(rest)
            if self._size > LARGEST:
                raise ValueError(f"a line of more than {LARGEST} bytes")
        return frames
