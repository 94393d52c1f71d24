"""How a compliance report is laid out on a terminal: margins, labels, wrapping, bars, colours."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from mcptest.model.compliance import RuleResult
from mcptest.model.show import show
from mcptest.model.verdict import Outcome
from mcptest.report import columns
from mcptest.report.compliance_facts import BRIEF, FULL, Bounds, is_broken
from mcptest.report.terminal import Style

NARROWEST = 40
_LABEL = 10
_GRADES = {"A": "green", "B": "green", "C": "yellow", "D": "red", "F": "red"}
# Words of ours are wrapped. Bytes and commands of a pipe stay whole, so that they can be searched.
_BYTES = frozenset({"sent", "received", "message", "actual", "expected", "at"})
_FOR_COPYING = frozenset({"repeat", "spec"})


@dataclass(frozen=True, slots=True)
class Page:
    """For whom it is written, and how much room there is."""

    style: Style
    verbose: bool = False
    width: int = 100

    @property
    def bounds(self) -> Bounds:
        return FULL if self.verbose else BRIEF

    @property
    def room(self) -> int:
        return max(self.width, NARROWEST)

    @property
    def ellipsis(self) -> str:
        return "…" if self.style.unicode else "..."

    def heading(self, text: str, note: str = "") -> Iterator[str]:
        """A note that does not fit beside it stands below."""
        yield ""
        beside = note and len(text) + 2 + len(note) <= self.room
        painted = self.style.paint(text, "bold")
        yield f"{painted}  {self.style.paint(note, 'dim')}" if beside else painted
        yield from [] if beside or not note else self.prose(note, 2, "dim")

    def flow(self, start: str, parts: Iterable[tuple[str, str]]) -> Iterator[str]:
        """Parts after a start, with commas; the next line begins where there is no more room.

        A part is a text of ours with its colour, or with none.
        """
        line, used, comma = start, columns.cells(start), ""
        for text, colour in parts:
            # A comma may follow.
            if used + len(comma) + len(text) >= self.room and used > 4:
                yield (line + comma).rstrip()
                line, used, comma = "    ", 4, ""
            line += comma + self.style.paint(text, *filter(None, [colour]))
            used += len(comma) + len(text)
            comma = ", "
        yield line.rstrip()

    def prose(self, text: str, margin: int, *paints: str) -> Iterator[str]:
        """Words in lines that fit, none of which a CI system takes for a command."""
        for line in self.wrapped(text, margin):
            yield " " * margin + self.style.paint(line, *paints)

    def wrapped(self, text: str, taken: int) -> list[str]:
        room = max(self.room - taken, 16)
        lines = textwrap.wrap(text, room, break_on_hyphens=False) or [""]
        pieces = [piece for line in lines for piece in columns.wrap(line, room)]
        return [show(piece, 2 * len(piece) + 2) for piece in pieces]

    def labelled(
        self, pairs: Iterable[tuple[str, str]], margin: int, why: str = "red"
    ) -> Iterator[str]:
        """`requires  The server …`; a label that repeats is not written again."""
        previous = ""
        for label, text in pairs:
            shown = label if label != previous or label in {"sent", "why"} else ""
            previous = label
            for piece in self._pieces(label, text, margin + _LABEL):
                painted = self.style.paint(f"{shown:<{_LABEL}}", "dim")
                yield " " * margin + painted + self.style.paint(piece, *_paints(label, why))
                shown = ""

    def _pieces(self, label: str, text: str, taken: int) -> list[str]:
        if label in _FOR_COPYING:
            return [text]
        if label in _BYTES:
            room = max(self.room - taken, 16)
            return columns.wrap(text, room) if self.style.colour else [text]
        return self.wrapped(text, taken)

    def bar(self, share: float, cells: int, colour: str) -> str:
        """How full it is, rounded down: only a full mark fills it."""
        full = min(cells, max(0, int(share * cells)))
        on, off = ("█", "░") if self.style.unicode else ("=", ".")
        parts = ((on * full, colour), (off * (cells - full), "dim"))
        return "".join(self.style.paint(part, paint) for part, paint in parts if part)

    def symbol(self, result: RuleResult) -> str:
        if result.outcome is Outcome.PASS:
            return self.style.tick
        if result.failed:
            return self.style.cross if is_broken(result) else self.style.warning
        unsure = result.outcome is Outcome.INCONCLUSIVE
        return self.style.unsure if unsure else self.style.dash


def _paints(label: str, why: str) -> tuple[str, ...]:
    return {"repeat": ("bold",), "spec": ("cyan",), "why": (why,), "": ("dim",)}.get(label, ())


def grade_colour(letter: str) -> str:
    return _GRADES.get(letter[:1], "yellow")


def score_colour(value: float, failed: int = 0) -> str:
    if not failed:
        return "green"
    return "yellow" if value >= 70 else "red"
