"""The stateless era, 2026-07-28 and the draft: every request stands on its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcptest.model.deadline import Deadline
from mcptest.model.errors import ErrorKind, PeerError
from mcptest.model.message import Kind, Message, id_key
from mcptest.model.revision import STATELESS_REVISIONS, Revision, revision_of_wire
from mcptest.model.show import show
from mcptest.peer.answers import Answers, why_invalid
from mcptest.peer.connection import Connection
from mcptest.peer.lifecycle import ServerFacts, not_begun
from mcptest.peer.pending import Pending
from mcptest.transport.base import http_streams

PREFIX = "io.modelcontextprotocol/"
UNSUPPORTED_VERSION = -32022
_MAY_ASK_FOR_INPUT = frozenset({"tools/call", "prompts/get", "resources/read"})
MODERN_ERRORS = frozenset({-32020, -32021, UNSUPPORTED_VERSION})
"""Codes that only a server of this era sends: enough to know that it is one."""


class StatelessLifecycle:
    """Stamps every request with version, capabilities and client; retries when input is asked."""

    def __init__(
        self,
        connection: Connection,
        revision: Revision,
        answers: Answers,
        client_info: Mapping[str, Any],
    ) -> None:
        self._connection = connection
        self._answers = answers
        self.revision = revision
        self._meta: Mapping[str, Any] = {
            PREFIX + "protocolVersion": revision.wire_version,
            PREFIX + "clientInfo": client_info,
            PREFIX + "clientCapabilities": answers.capabilities(revision),
        }
        """What every request carries."""
        self.server = ServerFacts()
        self.first_answer: Message | None = None

    # -- beginning -------------------------------------------------------------------------

    def begin(self, deadline: Deadline) -> Pending:
        """Send `server/discover` without waiting."""
        params = self.prepare(None)
        headers = self.headers("server/discover", params)
        return self._connection.request("server/discover", params, deadline, headers)

    def finish(self, pending: Pending, deadline: Deadline) -> None:
        """Take the answer to `server/discover`."""
        self._connection.on_request = None  # this era has no requests of servers, so no answers
        answer = self._connection.settle(pending, deadline)
        if _code(answer) == UNSUPPORTED_VERSION:
            raise self._unsupported(answer)
        if not is_discovery(answer):
            raise not_begun("server/discover", answer, show(answer.raw, 200))
        self.server = _facts(answer.result)
        self.first_answer = answer
        known = [revision_of_wire(version) for version in self.server.versions]
        if known and not any(revision in STATELESS_REVISIONS for revision in known):
            raise self._unsupported(answer)

    def _unsupported(self, answer: Message) -> PeerError:
        named = ", ".join(versions_named(answer) or ()) or "no other"
        return PeerError(
            ErrorKind.VERSION_REFUSED,
            f"the server does not speak {self.revision}; it names {show(named, 120)}",
            hint="choose another revision with --spec-version",
        )

    # -- during ----------------------------------------------------------------------------

    def prepare(self, params: Mapping[str, Any] | None) -> Mapping[str, Any]:
        given = dict(params) if params else {}
        own = given.get("_meta")
        given["_meta"] = {**self._meta, **own} if isinstance(own, Mapping) else self._meta
        return given

    def headers(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        input_schema: Mapping[str, Any] | None = None,
    ) -> Mapping[str, str]:
        if http_streams(self._connection.transport) is None:
            return {}
        from mcptest.wire.http_rules import stateless_headers

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
                    ErrorKind.PROTOCOL, f"the server asks for input that no client can give: {why}"
                )
        if "requestState" in result:
            more["requestState"] = result["requestState"]
        if not more:
            raise PeerError(
                ErrorKind.PROTOCOL,
                "the server asks for input without naming any: "
                "neither inputRequests nor requestState is there",
            )
        return more

    def _input(self, asked: Any) -> Any:
        method = asked.get("method") if isinstance(asked, dict) else None
        params = asked.get("params") if isinstance(asked, dict) else None
        outcome = self._answers.answer(str(method), params if isinstance(params, dict) else {})
        if "result" not in outcome:
            raise PeerError(
                ErrorKind.PROTOCOL,
                f"the server asks for {show(str(method), 60)}, which the client did not declare",
            )
        return outcome["result"]

    def cancel(self, pending: Pending, reason: str, deadline: Deadline) -> None:
        pending.cancelled = True
        self._connection.forget(pending)
        streams = http_streams(self._connection.transport)
        if streams is not None:
            if pending.stream is not None:
                streams.abandon(pending.stream)
            return
        params = {"requestId": pending.id, "reason": reason}
        self._connection.notify("notifications/cancelled", params, deadline)

    def subscribe(self, uri: str, deadline: Deadline) -> Pending:
        return self.listen({"resourceSubscriptions": [uri]}, deadline)

    def listen(self, notifications: Mapping[str, Any], deadline: Deadline) -> Pending:
        """Open a subscription and wait for the server's acknowledgement."""
        params = self.prepare({"notifications": notifications})
        headers = self.headers("subscriptions/listen", params)
        pending = self._connection.request("subscriptions/listen", params, deadline, headers)
        while not self._acknowledged(pending) and not pending.done:
            if not self._connection.pump(deadline):
                self._connection.forget(pending)
                came = self._connection.what_came_instead(pending.sent_after)
                raise PeerError(
                    ErrorKind.TIMEOUT,
                    "no acknowledgement of subscriptions/listen within "
                    f"{deadline.limit:g} s; {came}",
                )
        if pending.failure is not None:
            raise pending.failure
        return pending

    def _acknowledged(self, pending: Pending) -> bool:
        wanted = id_key(pending.id)
        return any(
            message.method == "notifications/subscriptions/acknowledged"
            and id_key(_subscription_id(message)) == wanted
            for message in self._connection.notifications
        )

    def unsubscribe(self, subscription: Pending, deadline: Deadline) -> None:
        if not subscription.done:  # only what is under way can be cancelled
            self.cancel(subscription, "unsubscribed", deadline)

    def log_level(self, level: str, deadline: Deadline) -> None:
        self._meta = {**self._meta, PREFIX + "logLevel": level}

    def leave(self, deadline: Deadline) -> None:
        """There is nothing to take leave of."""


def _subscription_id(message: Message) -> Any:
    meta = message.params.get("_meta")
    return meta.get(PREFIX + "subscriptionId") if isinstance(meta, dict) else None


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


def _facts(result: Mapping[str, Any]) -> ServerFacts:
    capabilities = result.get("capabilities")
    meta = result.get("_meta")
    info = meta.get(PREFIX + "serverInfo") if isinstance(meta, dict) else None
    versions = result.get("supportedVersions")
    instructions = result.get("instructions")
    return ServerFacts(
        capabilities=capabilities if isinstance(capabilities, dict) else {},
        info=info if isinstance(info, dict) else {},
        instructions=instructions if isinstance(instructions, str) else None,
        versions=tuple(map(str, versions)) if isinstance(versions, list) else (),
    )
