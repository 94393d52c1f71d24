"""The one interface behind which the two eras live.

An era is a value chosen per connection. Everything that differs between the handshake era and the
stateless era is a method of both classes here, told of at the first of them; nothing else in the
code asks which era it is in.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from functools import cached_property
from itertools import islice
from typing import Any, TypeAlias

import msgspec

from mcptest import __version__
from mcptest.core.errors import ErrorKind, PeerError
from mcptest.core.limits import Deadline
from mcptest.core.message import Kind, Message, id_key
from mcptest.core.revision import (
    HANDSHAKE_REVISIONS,
    STATELESS_REVISIONS,
    Revision,
    revision_of_wire,
)
from mcptest.core.safe_text import show
from mcptest.session.answers import Answers, why_invalid
from mcptest.session.connection import Connection, Params, Pending
from mcptest.transport.base import NO_HEADERS, http_streams, is_clogged
from mcptest.wire.envelope import faults_of_answer
from mcptest.wire.mcp_headers import handshake_headers, hint_for_status, stateless_headers


class ServerFacts(msgspec.Struct, frozen=True):
    """What the server said about itself when the session began."""

    capabilities: Mapping[str, Any] = {}
    info: Mapping[str, Any] = {}
    instructions: str | None = None
    versions: tuple[str, ...] = ()


def not_begun(pending: Pending, answer: Message, why: str) -> PeerError:
    """The session did not begin: the answer is malformed, or else a refusal that says `why`."""
    method, hint = pending.method, hint_for_status(pending.status)
    refused = faults_of_answer(answer, None).refused
    if refused:
        words = f"the response to {method} is malformed: {refused}"
        return PeerError(ErrorKind.PROTOCOL, words, unusable=True)
    return PeerError(ErrorKind.PROTOCOL, f"the server rejected {method}: {why}", hint=hint)


CLIENT_INFO = {"name": "mcptest", "version": __version__}
"""Who we say that we are."""
_CAPABILITIES_KEPT = 100
"""No revision has as many; a hostile server may declare any number."""


class _BothEras(msgspec.Struct, eq=False, dict=True):
    """What either lifecycle keeps of its session."""

    connection: Connection
    revision: Revision
    """The one that is offered; once the session has begun, the one that was agreed on."""
    answers: Answers
    listens: bool = True
    """Whether the stream is opened on which a server may talk unasked, over HTTP."""
    server: ServerFacts = ServerFacts()
    first_answer: Message | None = None
    """The answer that began the session, as it came."""

    def forget(self) -> None:
        """What the server said about itself, but for the beginning of what it declares."""
        declared = self.server.capabilities
        kept = {name: declared[name] for name in islice(declared, _CAPABILITIES_KEPT)}
        self.first_answer, self.server = None, ServerFacts(kept)


# -- The handshake era, 2024-11-05 to 2025-11-25 -------------------------------------------------

_SHARE_OF_LEAVING = 2.0


class HandshakeLifecycle(_BothEras):
    """Offers one revision, accepts any of the era that the server counters with."""

    _session_id: str | None = None
    _headers: Mapping[str, str] = NO_HEADERS

    # -- beginning -------------------------------------------------------------------------

    def begin(self, deadline: Deadline) -> Pending:
        """Send `initialize` without waiting."""
        self.connection.on_request = self._serve  # a ping may come before the answer
        params = {
            "protocolVersion": self.revision.wire_version,
            "capabilities": self.answers.capabilities(self.revision),
            "clientInfo": CLIENT_INFO,
        }
        return self.connection.request("initialize", params, deadline)

    def finish(self, pending: Pending, deadline: Deadline) -> None:
        """Take the answer to `initialize` and complete the handshake."""
        answer = self.connection.settle(pending, deadline)
        result = answer.result
        if answer.kind is not Kind.RESULT or not isinstance(result, dict):
            why, error = show(answer.raw or str(answer.value), 200), answer.error
            if isinstance(error, dict):
                code = show(str(error.get("code")), 20)
                why = f"{show(str(error.get('message')), 200)} (code {code})"
            raise not_begun(pending, answer, why)
        agreed = revision_of_wire(result.get("protocolVersion"))
        if agreed not in HANDSHAKE_REVISIONS:
            version = show(repr(result.get("protocolVersion")), 60)
            raise PeerError(
                ErrorKind.VERSION_REFUSED,
                f"the server answered {self.revision} with the unknown protocol version {version}",
                hint="supported: " + ", ".join(map(str, HANDSHAKE_REVISIONS)),
            )
        self.revision = agreed
        self._session_id = pending.header("mcp-session-id")
        if self.connection.transport.name in {"http", "sse"}:
            self._headers = handshake_headers(agreed, self._session_id)
        versions = (str(result.get("protocolVersion")),)
        self.server = _facts(result, result.get("serverInfo"), versions)
        self.first_answer = answer
        self.connection.resume = self._resume
        stream = self.connection.notify("notifications/initialized", None, deadline, self._headers)
        # Over HTTP another request could overtake it on a second connection.
        self.connection.await_status(stream, "notifications/initialized", deadline)
        if self.listens:
            streams = http_streams(self.connection.transport)
            if streams is not None and not streams.is_without_stream:
                streams.request("GET", deadline, self._headers)

    # -- during ----------------------------------------------------------------------------

    def prepare(self, params: Params) -> Params:
        """The params as this era sends them."""
        return params

    def headers(
        self, method: str, params: Params, input_schema: Mapping[str, Any] | None = None
    ) -> Mapping[str, str]:
        """The HTTP headers that go with a message."""
        return self._headers

    def wants_input(self, method: str, answer: Message) -> Mapping[str, Any] | None:
        """What to add to the params of a retry when the answer asks for input, else None."""
        return None

    def cancel(self, pending: Pending, reason: str, deadline: Deadline) -> None:
        params = {"requestId": pending.id, "reason": reason}
        pending.cancelled = True
        self.connection.forget(pending)
        self.connection.notify("notifications/cancelled", params, deadline, self._headers)

    def subscribe(self, uri: str, deadline: Deadline) -> Pending:
        """Ask for updates of one resource. The pending request is what carries the subscription."""
        pending = self._request("resources/subscribe", {"uri": uri}, deadline)
        self.connection.settle(pending, deadline)
        return pending

    def unsubscribe(self, subscription: Pending, deadline: Deadline) -> Message:
        """End a subscription; the answer, where the era asks for one."""
        pending = self._request("resources/unsubscribe", subscription.params, deadline)
        return self.connection.settle(pending, deadline)

    def log_level(self, level: str, deadline: Deadline) -> Message:
        """From now on ask for log messages of at least this level; the answer, if one is due."""
        pending = self._request("logging/setLevel", {"level": level}, deadline)
        return self.connection.settle(pending, deadline)

    def _request(self, method: str, params: Params, deadline: Deadline) -> Pending:
        return self.connection.request(method, params, deadline, self._headers)

    def _serve(self, message: Message) -> None:
        """Answer a request of the server's at once."""
        outcome = self.answers.reply_to(message, self.revision)
        self.connection.answer(message.id, outcome, self._headers)

    def _resume(self, pending: Pending, deadline: Deadline) -> int:
        """Take up a broken response stream where it stopped, by `Last-Event-ID`."""
        streams = http_streams(self.connection.transport)
        assert streams is not None  # only streamable HTTP numbers its streams and gives event ids
        last = {"Last-Event-ID": str(pending.last_event_id)}
        return streams.request("GET", deadline, {**self._headers, **last})

    # -- ending ----------------------------------------------------------------------------

    def leave(self, deadline: Deadline) -> None:
        """Say goodbye where the era has a way to. Never raises for what the peer does."""
        streams = http_streams(self.connection.transport)
        if not self._session_id or streams is None or is_clogged(self.connection.transport):
            return
        with contextlib.suppress(PeerError):
            limit = deadline.within(_SHARE_OF_LEAVING)
            stream = streams.request("DELETE", limit, self._headers)
            self.connection.await_status(stream, "DELETE", limit)


def _facts(result: Mapping[str, Any], info: Any, versions: Any) -> ServerFacts:
    capabilities, instructions = result.get("capabilities"), result.get("instructions")
    return ServerFacts(
        capabilities=capabilities if isinstance(capabilities, dict) else {},
        info=info if isinstance(info, dict) else {},
        instructions=instructions if isinstance(instructions, str) else None,
        versions=tuple(map(str, versions)) if isinstance(versions, list | tuple) else (),
    )


# -- The stateless era, 2026-07-28 and the draft -------------------------------------------------

PREFIX = "io.modelcontextprotocol/"
UNSUPPORTED_VERSION = -32022
_MAY_ASK_FOR_INPUT = frozenset({"tools/call", "prompts/get", "resources/read"})
MODERN_ERRORS = frozenset({-32020, -32021, UNSUPPORTED_VERSION})
"""Codes that only a server of this era sends: enough to know that it is one."""


class StatelessLifecycle(_BothEras):
    """Stamps every request with version, capabilities and client; retries when input is asked."""

    @cached_property
    def _meta(self) -> Mapping[str, Any]:
        """What every request carries."""
        return {
            PREFIX + "protocolVersion": self.revision.wire_version,
            PREFIX + "clientInfo": CLIENT_INFO,
            PREFIX + "clientCapabilities": self.answers.capabilities(self.revision),
        }

    def answer_with(self, answers: Answers) -> None:
        """From now on declare other capabilities, which each request does for itself."""
        self.answers = answers
        self.__dict__.pop("_meta", None)

    # -- beginning -------------------------------------------------------------------------

    def begin(self, deadline: Deadline) -> Pending:
        """Send `server/discover` without waiting."""
        return self._request("server/discover", None, deadline)

    def finish(self, pending: Pending, deadline: Deadline) -> None:
        """Take the answer to `server/discover`."""
        self.connection.on_request = None  # this era has no requests of servers, so no answers
        answer = self.connection.settle(pending, deadline)
        if _code(answer) == UNSUPPORTED_VERSION:
            raise self._unsupported(answer)
        if not is_discovery(answer):
            raise not_begun(pending, answer, show(answer.raw, 200))
        meta = answer.result.get("_meta")
        info = meta.get(PREFIX + "serverInfo") if isinstance(meta, dict) else None
        self.server = _facts(answer.result, info, answer.result.get("supportedVersions"))
        self.first_answer = answer
        known = [revision_of_wire(version) for version in self.server.versions]
        if known and not any(revision in STATELESS_REVISIONS for revision in known):
            raise self._unsupported(answer)

    def _unsupported(self, answer: Message) -> PeerError:
        named = ", ".join(versions_named(answer) or ()) or "no other"
        return PeerError(
            ErrorKind.VERSION_REFUSED,
            f"the server does not support {self.revision}; it names {show(named, 120)}",
            hint="choose another revision with --spec-version",
        )

    # -- during ----------------------------------------------------------------------------

    def prepare(self, params: Params) -> Mapping[str, Any]:
        given = dict(params) if params else {}
        own = given.get("_meta")
        given["_meta"] = {**self._meta, **own} if isinstance(own, Mapping) else self._meta
        return given

    def headers(
        self, method: str, params: Params, input_schema: Mapping[str, Any] | None = None
    ) -> Mapping[str, str]:
        if http_streams(self.connection.transport) is None:
            return {}
        return stateless_headers(
            self.revision, {"method": method, "params": params or {}}, input_schema
        )

    def wants_input(self, method: str, answer: Message) -> Mapping[str, Any] | None:
        result = answer.result
        if not isinstance(result, dict) or result.get("resultType") != "input_required":
            return None
        if method not in _MAY_ASK_FOR_INPUT:
            return None  # nothing is given where nothing may be asked for: that is its answer
        asked = result.get("inputRequests")
        more: dict[str, Any] = {}
        if isinstance(asked, dict):
            more["inputResponses"] = {key: self._input(each) for key, each in asked.items()}
            why = why_invalid(answer, self.revision)
            if why:
                raise PeerError(
                    ErrorKind.PROTOCOL, f"the server sent an invalid request for input: {why}"
                )
        if "requestState" in result:
            more["requestState"] = result["requestState"]
        if not more:
            raise PeerError(
                ErrorKind.PROTOCOL,
                "the server asks for input without inputRequests or requestState",
            )
        return more

    def _input(self, asked: Any) -> Any:
        method = asked.get("method") if isinstance(asked, dict) else None
        params = asked.get("params") if isinstance(asked, dict) else None
        outcome = self.answers.answer(str(method), params if isinstance(params, dict) else {})
        if "result" not in outcome:
            raise PeerError(
                ErrorKind.PROTOCOL,
                f"the server asks for {show(str(method), 60)}, which the client did not declare",
            )
        return outcome["result"]

    def cancel(self, pending: Pending, reason: str, deadline: Deadline) -> None:
        pending.cancelled = True
        self.connection.forget(pending)
        streams = http_streams(self.connection.transport)
        if streams is not None:
            if pending.stream is not None:
                streams.abandon(pending.stream)
            return
        params = {"requestId": pending.id, "reason": reason}
        self.connection.notify("notifications/cancelled", params, deadline)

    def subscribe(self, uri: str, deadline: Deadline) -> Pending:
        return self.listen({"resourceSubscriptions": [uri]}, deadline)

    def listen(self, notifications: Mapping[str, Any], deadline: Deadline) -> Pending:
        """Open a subscription and wait for the server's acknowledgement."""
        pending = self._request("subscriptions/listen", {"notifications": notifications}, deadline)

        def is_acknowledged(message: Message) -> bool:
            meta = message.params.get("_meta")
            named = meta.get(PREFIX + "subscriptionId") if isinstance(meta, dict) else None
            told = message.method == "notifications/subscriptions/acknowledged"
            return told and id_key(named) == id_key(pending.id)

        while not pending.done and not any(map(is_acknowledged, self.connection.notifications)):
            if not self.connection.pump(deadline):
                self.connection.forget(pending)
                came = self.connection.what_came_instead(pending.sent_after)
                words = "the server did not acknowledge subscriptions/listen within"
                raise PeerError(ErrorKind.TIMEOUT, f"{words} {deadline.limit:g}s; {came}")
        if pending.failure is not None:
            raise pending.failure
        return pending

    def _request(self, method: str, params: Params, deadline: Deadline) -> Pending:
        sent = self.prepare(params)
        return self.connection.request(method, sent, deadline, self.headers(method, sent))

    def unsubscribe(self, subscription: Pending, deadline: Deadline) -> None:
        if not subscription.done:  # only what is under way can be cancelled
            self.cancel(subscription, "unsubscribed", deadline)

    def log_level(self, level: str, deadline: Deadline) -> None:
        self._meta = {**self._meta, PREFIX + "logLevel": level}

    def leave(self, deadline: Deadline) -> None:
        """There is nothing to take leave of."""


def is_discovery(answer: Message) -> bool:
    """Whether this is what only a server of the stateless era answers to `server/discover`."""
    result = answer.result
    return answer.kind is Kind.RESULT and isinstance(result, dict) and "supportedVersions" in result


def is_modern(answer: Message) -> bool:
    """A discovery, or an error by a code that only this era knows."""
    return is_discovery(answer) or _code(answer) in MODERN_ERRORS


def versions_named(answer: Message) -> tuple[str, ...] | None:
    """What a discovery lists, or the refusal of a version names; None where there is no such."""
    error, listed = answer.error, None
    if is_discovery(answer):
        listed = answer.result["supportedVersions"]
    elif _code(answer) == UNSUPPORTED_VERSION:
        data = error.get("data") if isinstance(error, dict) else None
        listed = data.get("supported") if isinstance(data, dict) else []
    else:
        return None
    return tuple(map(str, listed)) if isinstance(listed, list) else ()


def _code(answer: Message) -> Any:
    code = answer.error.get("code") if isinstance(answer.error, dict) else None
    return code if type(code) is int else None


Lifecycle: TypeAlias = HandshakeLifecycle | StatelessLifecycle
"""Of a connection, chosen when the server is met: there are these two eras and no third."""
