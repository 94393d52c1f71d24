"""One message that a test sends: its bytes, and what they are meant to be."""

from __future__ import annotations

from typing import Any, Final, Literal, TypeAlias

import msgspec

from mcptest.core.message import ABSENT

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
