"""The steps of a conversation, as data: what a client does, whatever comes back.

Every step means something wherever it stands, so a conversation stays one when steps are taken
out. Requests are numbered over the whole conversation, from 0 on.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

import msgspec

from mcptest.core.message import ABSENT
from mcptest.core.safe_text import show

_SHOWN = 80
_LONG = 160


# -- One message that a test sends: its bytes, and what they are meant to be ----------------------

ALIVE: Final = "PROTO-008"
"""The rule that judges every answer: whatever a server is sent, it is still there afterwards."""
Intent: TypeAlias = Literal["request", "notification", "response", "batch"]

encoded_message = msgspec.json.Encoder().encode


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


# -- Steps ---------------------------------------------------------------------------------------


class _AnyStep(msgspec.Struct, frozen=True, tag_field="step"):
    @property
    def words(self) -> str:
        """The step as people read it."""
        return str(self.__struct_config__.tag)


class Connect(_AnyStep, frozen=True, tag="connect"):
    """Open a connection and begin as the era does; over stdio a new process."""


class Disconnect(_AnyStep, frozen=True, tag="disconnect"):
    """Close the connection, with whatever is still under way."""


class AskStep(_AnyStep, frozen=True, tag="ask"):
    """Send a request and wait for its answer."""

    method: str
    params: Mapping[str, Any] = {}
    """Without `_meta`, which the connection adds."""
    progress: bool = False
    """With a progress token of its own."""

    @property
    def words(self) -> str:
        told = f" {_text(self.params)}" if self.params else ""
        return f"{self.method}{told}{' with a progress token' if self.progress else ''}"


class AskAtOnce(_AnyStep, frozen=True, tag="ask-at-once"):
    """Send many requests before reading, cancel some of them, then wait for the others."""

    many: tuple[AskStep, ...]
    cancelled: tuple[int, ...] = ()
    """Places in `many`."""

    @property
    def words(self) -> str:
        asked = "; ".join(
            f"{ask.words} (cancelled)" if place in self.cancelled else ask.words
            for place, ask in enumerate(self.many)
        )
        return f"{len(self.many)} in parallel: {asked}"


class Cancel(_AnyStep, frozen=True, tag="cancel"):
    """Cancel the request of that number, which was answered before."""

    index: int

    @property
    def words(self) -> str:
        return f"cancel request {self.index}, too late"


class Notify(_AnyStep, frozen=True, tag="notify"):
    """Send a notification."""

    method: str
    params: Mapping[str, Any] = {}

    @property
    def words(self) -> str:
        return f"{self.method}{f' {_text(self.params)}' if self.params else ''}"


class PageStep(_AnyStep, frozen=True, tag="page"):
    """Walk a list by its cursors, so many pages at most."""

    method: str
    pages: int = 2

    @property
    def words(self) -> str:
        return f"{self.method}, {self.pages} pages"


class Subscribe(_AnyStep, frozen=True, tag="subscribe"):
    """Ask to be told of changes: of a resource, or of the lists where the URI is empty.

    `resources/subscribe` in the handshake era, `subscriptions/listen` in the stateless one.
    """

    uri: str = ""

    @property
    def words(self) -> str:
        return f"subscribe to {show(self.uri, _SHOWN) or 'changes of lists'}"


class Unsubscribe(_AnyStep, frozen=True, tag="unsubscribe"):
    """Want to be told no more."""

    uri: str = ""

    @property
    def words(self) -> str:
        return f"unsubscribe from {show(self.uri, _SHOWN) or 'changes of lists'}"


Step: TypeAlias = (
    Connect
    | Disconnect
    | AskStep
    | AskAtOnce
    | Cancel
    | Notify
    | PageStep
    | Subscribe
    | Unsubscribe
)
Conversation: TypeAlias = tuple[Step, ...]


class Send(_AnyStep, frozen=True, omit_defaults=True, tag="send"):
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


class Relate(_AnyStep, frozen=True, omit_defaults=True, tag="relate"):
    """Something that a server claims to be the same twice."""

    relation: str
    tool: str = ""
    arguments: dict[str, Any] = {}

    @property
    def words(self) -> str:
        if not self.tool:
            return "read every list on two connections"
        given = encoded_message(self.arguments).decode()
        return f"call {show(self.tool, 60)} with {show(given, _LONG)} for {self.relation}"


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


AnyStep: TypeAlias = Step | Send | Relate
Steps: TypeAlias = tuple[AnyStep, ...]


def settled(steps: Sequence[Step]) -> Conversation:
    """The same steps as one conversation: connected before anything is sent, never twice.

    A cancellation is of a request that was sent before, and left out where there is none. The
    shortest conversation only connects.
    """
    found: list[Step] = []
    connected, asked = False, 0
    for step in steps:
        if isinstance(step, Cancel):
            if not asked:
                continue
            step = Cancel(step.index % asked)  # noqa: PLW2901 - the one that it can mean
        if isinstance(step, Connect | Disconnect):
            if connected is isinstance(step, Connect):
                continue
        elif not connected:
            found.append(Connect())
        connected = not isinstance(step, Disconnect)
        asked += requests_of(step)
        found.append(step)
    return tuple(found) or (Connect(),)


def requests_of(step: Step) -> int:
    """How many requests are numbered in a step. Pages and subscriptions are not."""
    if isinstance(step, AskAtOnce):
        return len(step.many)
    return 1 if isinstance(step, AskStep) else 0


def _text(params: Mapping[str, Any]) -> str:
    return show(encoded_message(params).decode(), _SHOWN)
