"""The handshake era, 2024-11-05 to 2025-11-25: initialize, then a session."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

from mcptest.model.deadline import Deadline
from mcptest.model.errors import ErrorKind, PeerError
from mcptest.model.message import Kind, Message
from mcptest.model.revision import HANDSHAKE_REVISIONS, Revision, revision_of_wire
from mcptest.model.show import show
from mcptest.peer.answers import Answers
from mcptest.peer.connection import Connection
from mcptest.peer.lifecycle import ServerFacts, not_begun
from mcptest.peer.pending import Pending
from mcptest.transport.base import http_streams

_SHARE_OF_LEAVING = 2.0


class HandshakeLifecycle:
    """Offers one revision, accepts any of the era that the server counters with."""

    def __init__(
        self,
        connection: Connection,
        offer: Revision,
        answers: Answers,
        client_info: Mapping[str, Any],
        listen: bool = True,
    ) -> None:
        self._connection = connection
        self._offer = offer
        self._answers = answers
        self._client_info = client_info
        self._listen = listen
        self._agreed: Revision | None = None
        self._session_id: str | None = None
        self._headers: Mapping[str, str] = {}
        self.server = ServerFacts()
        self.first_answer: Message | None = None

    @property
    def revision(self) -> Revision:
        return self._agreed or self._offer

    # -- beginning -------------------------------------------------------------------------

    def begin(self, deadline: Deadline) -> Pending:
        """Send `initialize` without waiting."""
        self._connection.on_request = self._serve  # a ping may come before the answer
        params = {
            "protocolVersion": self._offer.wire_version,
            "capabilities": self._answers.capabilities(self._offer),
            "clientInfo": self._client_info,
        }
        return self._connection.request("initialize", params, deadline)

    def finish(self, pending: Pending, deadline: Deadline) -> None:
        """Take the answer to `initialize` and complete the handshake."""
        answer = self._connection.settle(pending, deadline)
        result = answer.result
        if answer.kind is not Kind.RESULT or not isinstance(result, dict):
            raise not_begun("initialize", answer, _why(answer))
        agreed = revision_of_wire(result.get("protocolVersion"))
        if agreed not in HANDSHAKE_REVISIONS:
            version = show(repr(result.get("protocolVersion")), 60)
            raise PeerError(
                ErrorKind.VERSION_REFUSED,
                f"the server answered our offer of {self._offer} with protocol version {version}",
                hint="accepted here: " + ", ".join(map(str, HANDSHAKE_REVISIONS)),
            )
        self._agreed = agreed
        self._session_id = pending.header("mcp-session-id")
        if self._connection.transport.name in {"http", "sse"}:
            from mcptest.wire.http_rules import handshake_headers

            self._headers = handshake_headers(self._agreed, self._session_id)
        self.server = _facts(result)
        self.first_answer = answer
        self._connection.resume = self._resume
        stream = self._connection.notify(
            "notifications/initialized", None, deadline, self.headers("", None)
        )
        # Over HTTP another request could overtake it on a second connection.
        self._connection.await_status(stream, "notifications/initialized", deadline)
        if self._listen:
            self._open_listening_stream(deadline)

    def _open_listening_stream(self, deadline: Deadline) -> None:
        streams = http_streams(self._connection.transport)
        if streams is not None:
            streams.open_stream(deadline, self.headers("", None))

    # -- during ----------------------------------------------------------------------------

    def prepare(self, params: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
        return params

    def headers(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        input_schema: Mapping[str, Any] | None = None,
    ) -> Mapping[str, str]:
        return self._headers

    def wants_input(self, method: str, answer: Message) -> Mapping[str, Any] | None:
        return None

    def cancel(self, pending: Pending, reason: str, deadline: Deadline) -> None:
        params = {"requestId": pending.id, "reason": reason}
        pending.cancelled = True
        self._connection.forget(pending)
        self._connection.notify("notifications/cancelled", params, deadline, self.headers("", None))

    def subscribe(self, uri: str, deadline: Deadline) -> Pending:
        params = {"uri": uri}
        pending = self._connection.request(
            "resources/subscribe", params, deadline, self.headers("resources/subscribe", params)
        )
        self._connection.settle(pending, deadline)
        return pending

    def unsubscribe(self, subscription: Pending, deadline: Deadline) -> Message:
        pending = self._connection.request(
            "resources/unsubscribe",
            subscription.params,
            deadline,
            self.headers("resources/unsubscribe", subscription.params),
        )
        return self._connection.settle(pending, deadline)

    def log_level(self, level: str, deadline: Deadline) -> Message:
        params = {"level": level}
        pending = self._connection.request(
            "logging/setLevel", params, deadline, self.headers("logging/setLevel", params)
        )
        return self._connection.settle(pending, deadline)

    def _serve(self, message: Message) -> None:
        """Answer a request of the server's at once."""
        outcome = self._answers.reply_to(message, self.revision)
        self._connection.answer(message.id, outcome, self.headers("", None))

    def _resume(self, pending: Pending, deadline: Deadline) -> int:
        """Take up a broken response stream where it stopped, by `Last-Event-ID`."""
        streams = http_streams(self._connection.transport)
        assert streams is not None  # only streamable HTTP numbers its streams and gives event ids
        return streams.open_stream(deadline, self.headers("", None), pending.last_event_id)

    # -- ending ----------------------------------------------------------------------------

    def leave(self, deadline: Deadline) -> None:
        streams = http_streams(self._connection.transport)
        if not self._session_id or streams is None:
            return
        with contextlib.suppress(PeerError):
            limit = deadline.within(_SHARE_OF_LEAVING)
            stream = streams.delete_session(limit, self.headers("", None))
            self._connection.await_status(stream, "DELETE", limit)


def _why(answer: Message) -> str:
    error = answer.error
    if isinstance(error, dict):
        return f"{show(str(error.get('message')), 200)} (code {show(str(error.get('code')), 20)})"
    return show(answer.raw or str(answer.value), 200)


def _facts(result: Mapping[str, Any]) -> ServerFacts:
    capabilities = result.get("capabilities")
    info = result.get("serverInfo")
    instructions = result.get("instructions")
    return ServerFacts(
        capabilities=capabilities if isinstance(capabilities, dict) else {},
        info=info if isinstance(info, dict) else {},
        instructions=instructions if isinstance(instructions, str) else None,
        versions=(str(result.get("protocolVersion")),),
    )
