"""What a terminal can show: colour and symbols. Everything degrades to plain ASCII."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Mapping
from typing import TextIO

import msgspec

_CODES = {"red": "31", "green": "32", "yellow": "33", "cyan": "36", "dim": "2", "bold": "1"}


def columns(otherwise: int = 80) -> int:
    """How wide the terminal is. `shutil` would tell too, and bring every kind of archive along."""
    with contextlib.suppress(ValueError):
        told = int(os.environ.get("COLUMNS", ""))
        if told > 0:
            return told
    try:
        return os.get_terminal_size(sys.__stdout__.fileno()).columns or otherwise  # type: ignore[union-attr]  # None is an AttributeError
    except (AttributeError, ValueError, OSError):  # closed, or no terminal
        return otherwise


class Style(msgspec.Struct, frozen=True):
    """How to write for one stream. The symbols come painted in the colour of their meaning."""

    colour: bool = False
    unicode: bool = True

    @classmethod
    def of(
        cls,
        stream: TextIO,
        *,
        no_color: bool = False,
        environment: Mapping[str, str] = os.environ,
    ) -> Style:
        """Colour on a terminal unless NO_COLOR or TERM=dumb says otherwise; FORCE_COLOR insists."""
        dumb = environment.get("TERM") == "dumb"
        if no_color or environment.get("NO_COLOR"):
            colour = False
        elif environment.get("FORCE_COLOR", "") not in {"", "0"}:
            colour = True
        else:
            colour = stream.isatty() and not dumb
        encoding = (getattr(stream, "encoding", None) or "ascii").lower().replace("-", "")
        return cls(colour=colour, unicode=encoding == "utf8" and not dumb)

    def paint(self, text: str, *styles: str) -> str:
        if not self.colour or not styles:
            return text
        codes = ";".join(_CODES[style] for style in styles)
        return f"\x1b[{codes}m{text}\x1b[0m"

    @property
    def tick(self) -> str:
        return self.paint("✓" if self.unicode else "+", "green")

    @property
    def cross(self) -> str:
        return self.paint("✗" if self.unicode else "x", "red")

    @property
    def warning(self) -> str:
        return self.paint("!", "yellow")

    @property
    def unsure(self) -> str:
        return self.paint("?", "yellow")

    @property
    def dash(self) -> str:
        return self.paint("–" if self.unicode else "-", "dim")  # noqa: RUF001 - a dash is meant

    @property
    def dot(self) -> str:
        return "·" if self.unicode else "|"


def say(stream: TextIO, text: str) -> None:
    """Write text that may hold characters which the stream's encoding lacks."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    stream.write(text.encode(encoding, "backslashreplace").decode(encoding))


def say_json(stream: TextIO, text: bytes) -> None:
    """JSON is UTF-8 whatever the terminal's encoding is."""
    buffer = getattr(stream, "buffer", None)
    if buffer is None:
        stream.write(text.decode("utf-8"))
        return
    stream.flush()
    buffer.write(text)
    buffer.flush()
