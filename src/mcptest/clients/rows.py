"""Short ways for a check to say what it found."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from mcptest.clients.scenario import Judge, Row
from mcptest.clients.seen import Said, Seen, Visited
from mcptest.model.conformance import Reference, Status
from mcptest.model.message import json_type
from mcptest.model.show import show

_EXCERPT = 400
_WORST_FIRST = (
    Status.FAILURE,
    Status.WARNING,
    Status.SUCCESS,
    Status.SKIPPED,
    Status.INFO,
)
SPECIFICATION = "https://modelcontextprotocol.io/specification"


def good(where: Said | Visited | None = None, name: str = "", **details: Any) -> Row:
    return Row(Status.SUCCESS, "", name, _place(where), "", details)


def bad(message: str, where: Said | Visited | None = None, name: str = "", **details: Any) -> Row:
    return Row(Status.FAILURE, message, name, _place(where), excerpt_of(where), details)


def warned(message: str, where: Said | Visited | None = None, name: str = "") -> Row:
    """What the specification only recommends was not done."""
    return Row(Status.WARNING, message, name, _place(where), excerpt_of(where))


def missing(message: str, where: Said | Visited | None = None, name: str = "") -> Row:
    """The client did not get to what the check is about."""
    return Row(Status.FAILURE, message, name, _place(where), excerpt_of(where), unseen=True)


def skipped(message: str, name: str = "") -> Row:
    return Row(Status.SKIPPED, message, name)


def untestable(message: str, name: str = "") -> Row:
    """It can't be seen on this client; the message says what would unlock it."""
    return Row(Status.UNTESTABLE, message, name)


def verdict(
    problems: Iterable[str], where: Said | Visited | None = None, name: str = "", **details: Any
) -> Row:
    """Good without problems, bad with them."""
    found = list(problems)
    return bad("; ".join(found), where, name, **details) if found else good(where, name, **details)


def shown(value: Any) -> str:
    """A value of the client's in a message: as JSON, safe and short."""
    return show(json.dumps(value, ensure_ascii=False, default=repr), 120)


def excerpt_of(where: Said | Visited | None) -> str:
    if isinstance(where, Said):
        return show(where.message.raw, _EXCERPT)
    if isinstance(where, Visited):
        return show(f"{where.method} {where.url}", _EXCERPT)
    return ""


def _place(where: Said | Visited | None) -> int | None:
    return None if where is None else where.place


def reference(name: str, page: str) -> tuple[Reference, ...]:
    """`page` is below the specification's address, with the revision: `2025-11-25/basic`."""
    return (Reference(name, f"{SPECIFICATION}/{page}"),)


def called_well(
    tool: str, expected: Mapping[str, Callable[[Any], bool]] | None = None, *, why: str = ""
) -> Judge:
    """The tool was called at least once, each time with arguments of the right kinds."""

    def judge(seen: Seen) -> Iterator[Row]:
        calls = seen.calls(tool)
        if not calls:
            yield missing(why or f"the client did not call {tool}")
        for call in calls:
            arguments = call.params.get("arguments", {})
            if not isinstance(arguments, dict):
                yield bad(f"the arguments are {json_type(arguments)}, not an object", call)
                continue
            yield verdict(
                [
                    f"argument {key} is {shown(arguments.get(key))}"
                    for key, fits in (expected or {}).items()
                    if not fits(arguments.get(key))
                ],
                call,
            )

    return judge


def worst_first(rows: Iterable[Row]) -> Iterator[Row]:
    """Of many rows about the same, the worst one alone."""
    found = list(rows)
    for status in _WORST_FIRST:
        for row in found:
            if row.status is status:
                yield row
                return
