"""One message that a test sends: its bytes, and what they are meant to be."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, Literal, TypeAlias

import msgspec

from mcptest.core.message import ABSENT, Flaw, Kind, json_type
from mcptest.core.revision import STATELESS_REVISIONS, Era, Revision
from mcptest.rules.protocol import META_PREFIX
from mcptest.schema.shapes.checker import problems_if_known
from mcptest.wire.envelope import decode, envelope_problems
from mcptest.wire.json_text import duplicate_keys

ALIVE: Final = "PROTO-008"
"""The rule that judges every answer: whatever a server is sent, it is still there afterwards."""
Intent: TypeAlias = Literal["request", "notification", "response", "batch"]

encoded_message = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


class Crafted(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes that go over the wire as they are. They hold no line break, so one is one line."""

    raw: bytes
    valid: bool
    kind: Intent
    """What was meant. A request is owed an answer, whatever is wrong with it."""
    mutation: str = ""
    """The name of what was done to it; empty for a valid message."""
    method: str = ""
    identifier: Any = ABSENT
    """The id that an answer would carry, or a tuple of them for an array; ABSENT for none."""
    about: str = ""
    """What is wrong with it, in words."""
    rules: tuple[str, ...] = ()
    """The rules that say what a server does with it."""


def request(method: str, params: Any = ABSENT, identifier: Any = 1) -> dict[str, Any]:
    """The envelope of a request; without an id (ABSENT) that of a notification."""
    made: dict[str, Any] = {"jsonrpc": "2.0"}
    if identifier is not ABSENT:
        made["id"] = identifier
    made["method"] = method
    if params is not ABSENT:
        made["params"] = params
    return made


def valid_message(value: dict[str, Any], kind: Intent) -> Crafted:
    return Crafted(
        raw=encoded_message(value),
        valid=True,
        kind=kind,
        method=value.get("method", ""),
        identifier=value.get("id", ABSENT),
    )


def renumbered(crafted: Crafted, identifier: int | str) -> Crafted:
    """The same valid request under another id: within one session each id is used once."""
    value = _decode(crafted.raw)
    value["id"] = identifier
    return msgspec.structs.replace(crafted, raw=encoded_message(value), identifier=identifier)


# -- Why bytes are no message that a client may send ---------------------------------------------


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
        shape = problems_if_known(value, Kind.ERROR, "client", revision)
        yield from (f"{one.pointer}: {one.expected}, not {one.actual}" for one in shape or ())
    elif not isinstance(value["result"], dict):
        yield f"the result is {json_type(value['result'])}, not an object"


def _of_call(value: dict[str, Any], revision: Revision) -> Iterator[str]:
    kind = Kind.REQUEST if "id" in value else Kind.NOTIFICATION
    shape = problems_if_known(value, kind, "client", revision)
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
