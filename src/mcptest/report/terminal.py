"""What a terminal can show: colour and symbols. Everything degrades to plain ASCII."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Self, TextIO

import msgspec

from mcptest.core.safe_text import cells, cells_of, show

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
    verbose: bool = False
    quiet: bool = False
    """Without what is in order."""
    width: int = 100

    @classmethod
    def of(
        cls,
        stream: TextIO,
        *,
        no_color: bool = False,
        environment: Mapping[str, str] = os.environ,
        **more: Any,
    ) -> Self:
        """Colour on a terminal unless NO_COLOR or TERM=dumb says otherwise; FORCE_COLOR insists."""
        dumb = environment.get("TERM") == "dumb"
        if no_color or environment.get("NO_COLOR"):
            colour = False
        elif environment.get("FORCE_COLOR", "") not in {"", "0"}:
            colour = True
        else:
            colour = stream.isatty() and not dumb
        encoding = (getattr(stream, "encoding", None) or "ascii").lower().replace("-", "")
        return cls(colour=colour, unicode=encoding == "utf8" and not dumb, **more)

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


# -- Text in columns -----------------------------------------------------------------------------


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
        width = cells_of(character)
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


# -- What texts about a server say alike ---------------------------------------------------------


def counted(number: int, word: str) -> str:
    """`1 rule`, `2 rules`."""
    return f"{number} {word}{'s' * (number != 1)}"


def why_revision(revision: object, reason: str) -> str:
    """The revision with its reason; the revision alone where none is known."""
    spoken = show(str(revision), 40)
    return f"{spoken}: {show(reason, 240)}" if reason else spoken


class TextRow(msgspec.Struct, frozen=True):
    """One thing that was looked at: a sign, its name in a column, what to say of it."""

    sign: str
    name: str
    said: str
    below: Iterable[str] = ()


def row_lines(rows: Sequence[TextRow], width: int = 0) -> Iterator[str]:
    """Rows whose names stand in one column, as wide as the longest of them unless `width` says."""
    longest = (cells(show(row.name, 200)) for row in rows)
    width = width or min(60, max(longest, default=0))
    for row in rows:
        yield f"  {row.sign} {pad(cut(show(row.name, 200), width), width)}  {row.said}".rstrip()
        yield from row.below


def remark_lines(sign: str, remarks: Iterable[str], margin: str = " " * 6) -> Iterator[str]:
    """What there is to say below a row, or below all: a line for each that is not empty."""
    yield from (f"{margin}{sign} {show(remark, 300)}" for remark in remarks if remark)


def fact_lines(
    facts: Iterable[tuple[str, str]], margin: str, style: Style, longest: int = 1_000
) -> Iterator[str]:
    """What was sent, what came, how to repeat it: a dim line for each that is not empty."""
    for label, text in facts:
        if text:
            yield style.paint(f"{margin}{label + ':':<10}{show(text, longest)}", "dim")
