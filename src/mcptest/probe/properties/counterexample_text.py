"""A counterexample as people read it: what was said, line by line, and where the fault is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from mcptest.core.capture import AnyRecord, Exited, Frame, HttpResponse, Trouble
from mcptest.core.masking import Masker
from mcptest.core.safe_text import show
from mcptest.probe.properties.example_judge import Violation
from mcptest.probe.properties.example_player import Steps
from mcptest.probe.properties.example_server import ExampleServer
from mcptest.report.property import Line, Way
from mcptest.wire.envelope import decode

_SHOWN = 400
_MOST_LINES = 60
_REFUSED = 400


def steps_as_data(steps: Steps) -> tuple[dict[str, Any], ...]:
    return tuple(msgspec.to_builtins(list(steps)))


def lines_of(stage: ExampleServer, found: Violation, masker: Masker) -> tuple[Line, ...]:
    """The session that shows it. Its beginning is left out where the fault is not in it."""
    tape = found.tape or stage.tape
    first = tape.marked
    if found.record is not None and found.record < first:
        first = 0
    placed = list(enumerate(tape.records))[first:]
    records = _without_fences(placed, stage, found)
    lines = list(_lines(records, found.record, masker))
    if first:
        lines.insert(0, Line("", "(the session begins as usual)"))
    if len(lines) > _MOST_LINES:
        left = len(lines) - _MOST_LINES
        lines = [*lines[:10], Line("", f"({left} more)"), *lines[10 - _MOST_LINES :]]
    return tuple(lines)


def _without_fences(
    placed: list[tuple[int, AnyRecord]], stage: ExampleServer, found: Violation
) -> list[tuple[int, AnyRecord]]:
    """Fences are ours, and say something only where they are not answered."""
    if found.way is Way.HANG:
        return placed
    fences = set()
    for _, record in placed:
        if isinstance(record, Frame) and record.sender == "client":
            message = decode(record.raw)
            if message.method == stage.alive_method and stage.is_fence(message.id):
                fences.add(message.id)
    return [
        (place, record)
        for place, record in placed
        if place == found.record or not isinstance(record, Frame) or not _has_id(record, fences)
    ]


def _has_id(record: Frame, ids: set[int]) -> bool:
    identifier = decode(record.raw).id
    return type(identifier) is int and identifier in ids


def _lines(
    records: Sequence[tuple[int, AnyRecord]], fault: int | None, masker: Masker
) -> Iterator[Line]:
    for place, record in records:
        if isinstance(record, Frame):
            text = show(masker.message(record.raw), _SHOWN)
            yield Line(record.sender, text, at_fault=place == fault)
        elif isinstance(record, HttpResponse) and record.status >= _REFUSED:
            yield Line("server", f"(HTTP status {record.status})", at_fault=place == fault)
        elif isinstance(record, Exited):
            how = f"code {record.code}" if record.code is not None else f"signal {record.signal}"
            if not record.after:
                yield Line("server", f"(the process ended with {how})", at_fault=True)
        elif isinstance(record, Trouble):
            text = show(masker.text(record.detail), _SHOWN)
            yield Line("", f"({text})", at_fault=place == fault)
