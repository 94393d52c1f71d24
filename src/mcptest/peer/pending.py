"""A request on its way: what was sent, and what is known of its answer so far."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcptest.model.errors import PeerError
from mcptest.model.message import Message
from mcptest.wire.jsontext import write_json

encode = write_json
"""JSON as we send it."""


class Pending:
    """A request on its way: filled in as its answer, or the reason why there is none, arrives."""

    __slots__ = (
        "answer",
        "cancelled",
        "failure",
        "headers",
        "id",
        "last_event_id",
        "method",
        "params",
        "resumed",
        "retry_ms",
        "sent_after",
        "spoiled",
        "status",
        "stream",
    )

    def __init__(self, identifier: Any, method: str, params: Mapping[str, Any] | None) -> None:
        self.id = identifier
        self.method = method
        self.params = params
        self.answer: Message | None = None
        self.failure: PeerError | None = None
        self.stream: int | None = None
        self.status: int | None = None
        self.headers: tuple[tuple[str, str], ...] = ()
        self.last_event_id: str | None = None
        self.retry_ms: int | None = None
        self.resumed = 0
        self.spoiled = ""
        """What came on its stream in place of a message."""
        self.sent_after = 0
        """How many messages that nobody had asked for had come when it was sent."""
        self.cancelled = False

    @property
    def done(self) -> bool:
        return self.answer is not None or self.failure is not None

    def header(self, name: str) -> str | None:
        """A header of the HTTP response that carried the answer."""
        wanted = name.lower()
        return next((value for key, value in self.headers if key.lower() == wanted), None)


def request_of(pending: Pending) -> dict[str, Any]:
    """The message that asks for it."""
    message: dict[str, Any] = {"jsonrpc": "2.0", "id": pending.id, "method": pending.method}
    if pending.params is not None:
        message["params"] = pending.params
    return message
