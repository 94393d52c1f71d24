"""What a live display says: from the state of a run to a few lines. No terminal is touched here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from mcptest.model.show import show
from mcptest.report import columns
from mcptest.report.terminal import Style

RUNNING_SHOWN = 3
WORTH_NAMING = 0.5
"""Seconds after which something that runs is named: whatever is quicker would only flicker by."""
_NAME = 300
_BAR_AT_MOST = 40
_BAR_AT_LEAST = 8
_SECONDS = 7
_SURE_OF_THE_RATE = 1.0


class Running(msgspec.Struct, frozen=True):
    name: str
    seconds: float


class LiveState(msgspec.Struct, frozen=True):
    """How far a run has come."""

    done: int
    total: int
    failed: int = 0
    seconds: float = 0.0
    running: tuple[Running, ...] = ()
    doing: str = ""
    """What was heard of last, where nobody says what has begun."""


def live_lines(state: LiveState, style: Style, width: int, height: int = 24) -> list[str]:
    """At most a handful of lines, none wider than the terminal, fewer than it is high."""
    room = max(1, width - 1)  # in the last column some terminals begin a new line
    lines = [_first_line(state, style, room), *_below(state, style, room)]
    return lines[: max(1, height - 1)]


def told_failure(name: str, reason: str, style: Style, width: int) -> list[str]:
    """One line that stays; where the reason doesn't fit beside the name, two."""
    room = max(4, width - 1)
    shown, why = show(name, _NAME), show(reason, _NAME)
    whole = f"{shown}: {why}" if why else shown
    if columns.cells(whole) + 2 <= room or not why:
        return [f"{style.cross} {columns.cut(whole, room - 2)}"]
    below = style.paint(columns.cut(why, room - 4), "dim")
    return [f"{style.cross} {columns.cut(shown, room - 2)}", f"    {below}"]


def _first_line(state: LiveState, style: Style, room: int) -> str:
    """The counter always; then what is left of the room, by how much it matters."""
    counter = columns.cut(f"[{state.done}/{state.total}]" if state.total else "starting", room)
    facts = list(_facts(state))
    separator = f" {style.dot} "
    kept: list[str] = []
    left = room - len(counter)
    for text, colour in facts:
        gap = len(separator) if kept else 1
        if len(text) + gap > left:
            break
        left -= len(text) + gap
        kept.append(style.paint(text, colour))
    bar = _bar(state, style, min(_BAR_AT_MOST, left - 1)) if len(kept) == len(facts) else ""
    told = f"{counter} {separator.join(kept)}" if kept else counter
    return f"{bar} {told}" if bar else told


def _facts(state: LiveState) -> Iterator[tuple[str, str]]:
    if state.failed:
        yield f"{state.failed} failed", "red"
    yield _clock(state.seconds), "dim"
    if state.done and state.seconds >= _SURE_OF_THE_RATE:
        yield _rate(state.done / state.seconds), "dim"


def _bar(state: LiveState, style: Style, room: int) -> str:
    if room < _BAR_AT_LEAST or not state.total:
        return ""
    whole, rest = ("━", "─") if style.unicode else ("#", "-")
    full = room * min(state.done, state.total) // state.total
    colour = "red" if state.failed else "green"
    return style.paint(whole * full, colour) + style.paint(rest * (room - full), "dim")


def _below(state: LiveState, style: Style, room: int) -> Iterator[str]:
    """What has been running for longest comes first."""
    slow = sorted(
        (one for one in state.running if one.seconds >= WORTH_NAMING), key=lambda one: -one.seconds
    )
    for one in slow[:RUNNING_SHOWN]:
        taken = f"{_clock(one.seconds):>{min(_SECONDS, room // 3)}}"
        name = columns.cut(show(one.name, _NAME), max(1, room - len(taken) - 2))
        yield f"{style.paint(taken, 'dim')}  {name}"
    if len(slow) > RUNNING_SHOWN:
        more = f"and {len(slow) - RUNNING_SHOWN} more"
        yield style.paint(columns.cut(" " * min(_SECONDS + 2, room // 3) + more, room), "dim")
    if state.doing and not state.running:
        yield f"  {columns.cut(show(state.doing, _NAME), max(1, room - 2))}"


def _clock(seconds: float) -> str:
    """Whole seconds: a tenth would make it move ten times as often, and says no more."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h{minutes:02d}m"
    return f"{minutes}m{rest:02d}s" if minutes else f"{rest}s"


def _rate(rate: float) -> str:
    return f"{rate:.0f}/s" if rate >= 10 else f"{rate:.1f}/s"


def rows_of(names: Sequence[tuple[str, float]], now: float) -> tuple[Running, ...]:
    """From names and the times at which they began."""
    return tuple(Running(name, max(0.0, now - since)) for name, since in names)
