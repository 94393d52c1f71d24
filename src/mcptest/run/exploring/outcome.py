"""What became of one request to a server that is explored, by the error model of the tool."""

from __future__ import annotations

import enum

import msgspec

from mcptest.model.errors import ErrorKind, PeerError
from mcptest.model.message import Kind as MessageKind
from mcptest.model.show import show
from mcptest.peer.client import Reply

INTERNAL_ERROR = -32603
_CLIENT_FAULT, _SERVER_FAULT = 400, 500
_NO_MESSAGE = frozenset({ErrorKind.PROTOCOL, ErrorKind.NOT_A_MESSAGE})
"""With a status that says no, a body that is no message changes nothing."""
_GONE = frozenset(
    {
        ErrorKind.SPAWN_FAILED,
        ErrorKind.EXITED,
        ErrorKind.CLOSED,
        ErrorKind.CONNECTION_REFUSED,
        ErrorKind.CONNECTION_LOST,
        ErrorKind.TRUNCATED,
    }
)


class Kind(enum.Enum):
    """How a server took a request."""

    HEALTHY = "healthy"
    TOOL_ERROR = "tool error"
    """A result with `isError`: the tool reports a failure, as it should."""
    REFUSED = "refused"
    """A JSON-RPC error that is not an internal one."""
    CRASHED = "crashed"
    """An internal error, a dead process, a connection that was closed."""
    HUNG = "hung"
    """No answer in time."""
    PROTOCOL = "protocol"
    """An answer that is none."""

    @property
    def is_healthy(self) -> bool:
        """By the seed's model a failure that the tool reports itself is a healthy answer."""
        return self in (Kind.HEALTHY, Kind.TOOL_ERROR)


class Outcome(msgspec.Struct, frozen=True):
    """One request and its end, with the bytes that prove it."""

    kind: Kind
    reply: Reply | None = None
    detail: str = ""
    """Why, in a sentence; empty for a plain result."""
    sent: bytes = b""
    received: bytes = b""
    """The answer, or the last that came in its place; cut to a length."""
    stderr: tuple[str, ...] = ()
    """What the server wrote there meanwhile: the last lines."""
    duration_ms: float = 0.0
    asked_back: bool = False
    """Whether the server asked the client for something before it answered."""


def judged_reply(reply: Reply) -> tuple[Kind, str]:
    """The kind of an answer that came, and why."""
    message = reply.message
    refused = reply.faults.refused
    if refused:
        return Kind.PROTOCOL, f"the answer is malformed: {refused}"
    if message.kind is MessageKind.RESULT:
        if message.result.get("isError") is True:
            return Kind.TOOL_ERROR, _text_of(reply)
        return Kind.HEALTHY, ""
    words = message.error.get("message")
    detail = f"error {reply.error_code}: {show(str(words), 200)}"
    return (Kind.CRASHED if reply.error_code == INTERNAL_ERROR else Kind.REFUSED), detail


def judged_error(error: PeerError, status: int | None) -> Kind:
    """The kind of an end without an answer."""
    if error.kind in _GONE:
        return Kind.CRASHED
    if error.kind is ErrorKind.TIMEOUT:
        return Kind.PROTOCOL if error.unusable else Kind.HUNG
    refused = status is not None and status >= _CLIENT_FAULT
    if error.kind is ErrorKind.HTTP_STATUS or (error.kind in _NO_MESSAGE and refused):
        return Kind.CRASHED if status is not None and status >= _SERVER_FAULT else Kind.REFUSED
    return Kind.PROTOCOL


def _text_of(reply: Reply) -> str:
    """The words in which a tool reports its failure."""
    content = reply.result.get("content")
    for block in content if isinstance(content, list) else ():
        text = block.get("text") if isinstance(block, dict) else None
        if isinstance(text, str) and text.strip():
            return show(text.strip(), 200)
    return ""
