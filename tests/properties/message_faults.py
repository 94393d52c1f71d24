"""Why bytes are no message that a client may send."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mcptest.core.message import ABSENT, Flaw, Kind, json_type
from mcptest.core.revision import STATELESS_REVISIONS, Era, Revision
from mcptest.rules.protocol import META_PREFIX
from mcptest.schema.message_shapes import shape_problems
from mcptest.wire.envelope import decode, envelope_problems
from mcptest.wire.json_text import duplicate_keys


def faults(raw: bytes, revision: Revision) -> tuple[str, ...]:
    """Everything wrong with what a client sends; nothing for a valid message."""
    message = decode(raw)
    found = [problem.reason for problem in message.problems]
    if message.value is ABSENT:
        return tuple(found)
    found += (f"the key {key!r} occurs twice" for key in duplicate_keys(raw, message.value))
    found += _of_value(message.value, revision)
    return tuple(found)


def _of_value(value: Any, revision: Revision) -> Iterator[str]:
    if not isinstance(value, list):
        yield from _of_message(value, revision)
        return
    if not value:
        yield "an empty batch"
    if revision is not Revision.V2025_03_26:
        yield "an array of messages, which only 2025-03-26 has"
    for item in value:
        if isinstance(item, dict) and item.get("method") == "initialize":
            yield "initialize inside a batch"
        yield from _of_message(item, revision)


def _of_message(value: Any, revision: Revision) -> Iterator[str]:
    problems = envelope_problems(value)
    yield from (problem.reason for problem in problems)
    if any(problem.flaw is not Flaw.PARAMS_TYPE for problem in problems):
        return  # what it would be is not clear
    if "method" in value:
        yield from _of_call(value, revision)
    elif "error" in value:
        shape = shape_problems(value, Kind.ERROR, "client", revision)
        yield from (f"{one.pointer}: {one.expected}, not {one.actual}" for one in shape or ())
    elif not isinstance(value["result"], dict):
        yield f"the result is {json_type(value['result'])}, not an object"


def _of_call(value: dict[str, Any], revision: Revision) -> Iterator[str]:
    kind = Kind.REQUEST if "id" in value else Kind.NOTIFICATION
    shape = shape_problems(value, kind, "client", revision)
    if shape is None:
        yield f"a client of {revision} sends no {kind.value} {value['method']!r}"
        return
    yield from (f"{one.pointer}: {one.expected}, not {one.actual}" for one in shape)
    params = value.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    if kind is Kind.REQUEST and revision.era is Era.STATELESS and isinstance(meta, dict):
        version = meta.get(META_PREFIX + "protocolVersion")
        if version not in [one.wire_version for one in STATELESS_REVISIONS]:
            yield f"the version {version!r} is none of this era"
