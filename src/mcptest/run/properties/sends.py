"""Steps that only property tests take: bytes that go over the wire as they are, and a relation.

They are data like the steps of conversations, so that one can be kept, read and played again.
"""

from __future__ import annotations

import base64
from typing import Any

import msgspec

from mcptest.explore.property.crafted import Crafted, encode
from mcptest.model.message import ABSENT, Message
from mcptest.model.show import show

_LONG = 160


class Send(msgspec.Struct, frozen=True, omit_defaults=True, tag="send", tag_field="step"):
    """One message, byte for byte."""

    text: str = ""
    base64: str = ""
    """In place of the text, where the bytes are none."""
    kind: str = "request"
    """What was meant: a request is owed an answer, whatever is wrong with it."""
    mutation: str = ""
    """What is wrong with it; empty for a valid message."""
    rules: tuple[str, ...] = ()
    """The rules that say what a server does with it."""
    offered: bool = False
    """It asks for something that the server offers, so refusing it as a message is wrong."""

    @property
    def raw(self) -> bytes:
        return base64.b64decode(self.base64) if self.base64 else self.text.encode()

    @property
    def valid(self) -> bool:
        return not self.mutation

    @property
    def words(self) -> str:
        what = f" ({self.mutation})" if self.mutation else ""
        return f"send {show(self.raw, _LONG)}{what}"


class Relate(msgspec.Struct, frozen=True, omit_defaults=True, tag="relate", tag_field="step"):
    """Something that a server claims to be the same twice."""

    relation: str
    tool: str = ""
    arguments: dict[str, Any] = {}

    @property
    def words(self) -> str:
        if not self.tool:
            return "read every list on two connections"
        given = encode(self.arguments).decode()
        return f"call {show(self.tool, 60)} with {show(given, _LONG)}, as {self.relation} wants it"


def send_of(crafted: Crafted, *, offered: bool = False) -> Send:
    """The step that sends what a strategy has drawn."""
    text, packed = "", ""
    try:
        text = crafted.raw.decode()
    except UnicodeDecodeError:
        packed = base64.b64encode(crafted.raw).decode()
    return Send(
        text=text,
        base64=packed,
        kind=crafted.kind,
        mutation=crafted.mutation,
        rules=crafted.rules,
        offered=offered,
    )


def asked_ids(message: Message) -> list[Any]:
    """The ids under which answers may come."""
    items = message.items or (message,)
    return [one.id for one in items if type(one.id) in (int, str)]


def with_unused_ids(message: Message, used: set[Any], unused: int) -> bytes:
    """A valid message whose requests have ids that the session has not seen yet.

    Within one session a client uses each id once, and examples know nothing of each other.
    """
    mine = asked_ids(message)
    if not mine or used.isdisjoint(mine):
        used.update(mine)
        return message.raw
    value = message.value
    items = value if isinstance(value, list) else [value]
    items = [_with_unused_id(one, used, unused + place) for place, one in enumerate(items)]
    used.update(one["id"] for one in items if isinstance(one, dict) and "id" in one)
    return encode(items if isinstance(value, list) else items[0])


def _with_unused_id(item: Any, used: set[Any], unused: int) -> Any:
    if isinstance(item, dict) and item.get("id", ABSENT) in used:
        return {**item, "id": unused}
    return item
