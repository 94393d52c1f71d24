"""The stateless era, 2026-07-28: every request says all that is needed to serve it.

Nothing is remembered between requests. What a tool still has to learn from the client travels
back in an `input_required` result with a signed `requestState`; a subscription lives as long as
its own request.
"""

from __future__ import annotations

import json
import time

from mcptest.peer.demo.arguments import problem_with
from mcptest.peer.demo.asking import missing_capability
from mcptest.peer.demo.call import Call
from mcptest.peer.demo.exchange import Exchange, perform
from mcptest.peer.demo.features import HANDLERS
from mcptest.peer.demo.protocol import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    MISSING_CAPABILITY,
    UNSUPPORTED_VERSION,
    Refusal,
    notification,
)
from mcptest.peer.demo.resources import COUNTER_URI, exists
from mcptest.peer.demo.world import INSTRUCTIONS, LEVELS, server_info

TYPE_CHECKING = False  # see protocol
if TYPE_CHECKING:
    from typing import Any

    from mcptest.peer.demo.exchange import Ask, Job
    from mcptest.peer.demo.protocol import Obj
    from mcptest.peer.demo.world import World

PREFIX = "io.modelcontextprotocol/"
VERSION = PREFIX + "protocolVersion"
CAPABILITIES = PREFIX + "clientCapabilities"
CLIENT_INFO = PREFIX + "clientInfo"
LOG_LEVEL = PREFIX + "logLevel"
SERVER_INFO = PREFIX + "serverInfo"
SUBSCRIPTION = PREFIX + "subscriptionId"

STATE_SECONDS = 600
_HOUR_MS = 3_600_000
_MINUTE_MS = 60_000
_TTL_MS = {
    "server/discover": _HOUR_MS,
    "tools/list": _MINUTE_MS,
    "prompts/list": _MINUTE_MS,
    "resources/list": _MINUTE_MS,
    "resources/templates/list": _MINUTE_MS,
    "resources/read": _MINUTE_MS,
}
_MAY_ASK = {"tools/call", "prompts/get", "resources/read"}

_ANY_OBJECT = {"type": "object"}
_META: Obj = {
    "type": "object",
    "required": [VERSION, CAPABILITIES],
    "properties": {
        VERSION: {"type": "string"},
        CAPABILITIES: {
            "type": "object",
            "properties": {
                "elicitation": {
                    "type": "object",
                    "properties": {"form": _ANY_OBJECT, "url": _ANY_OBJECT},
                },
                "sampling": _ANY_OBJECT,
                "roots": _ANY_OBJECT,
                "extensions": _ANY_OBJECT,
                "experimental": _ANY_OBJECT,
            },
        },
        CLIENT_INFO: {
            "type": "object",
            "required": ["name", "version"],
            "properties": {"name": {"type": "string"}, "version": {"type": "string"}},
        },
        LOG_LEVEL: {"type": "string", "enum": list(LEVELS)},
    },
}
_FILTER: Obj = {
    "type": "object",
    "required": ["notifications"],
    "properties": {
        "notifications": {
            "type": "object",
            "properties": {
                "toolsListChanged": {"type": "boolean"},
                "promptsListChanged": {"type": "boolean"},
                "resourcesListChanged": {"type": "boolean"},
                "resourceSubscriptions": {
                    "type": "array",
                    "maxItems": 1_000,
                    "items": {"type": "string"},
                },
            },
        }
    },
}


def is_stateless(message: Obj) -> bool:
    """Does the request carry what only requests of this era carry?"""
    params = message.get("params", {})
    meta = params.get("_meta") if isinstance(params, dict) else None
    return isinstance(meta, dict) and (VERSION in meta or CAPABILITIES in meta)


def serve(message: Obj, world: World, exchange: Exchange) -> None:
    """Serve one request; the answer goes through the exchange, now or later."""
    method, params = message["method"], message.get("params", {})
    try:
        meta = _check_meta(method, params, world)
        version = meta[VERSION]
        call = Call(world, version, params, exchange, meta.get(LOG_LEVEL))
        if method == "subscriptions/listen":
            _listen(call, exchange)
            return
        if method not in _METHODS:
            raise Refusal(METHOD_NOT_FOUND, f"Method not found: {method[:200]}")
        answers = _check_answers(method, params, world) if method in _MAY_ASK else {}
    except Refusal as refusal:
        exchange.refuse(refusal)
        return

    def ask(job: Job, question: Ask) -> None:
        _answer_or_ask(job, question, call, meta[CAPABILITIES], answers)

    def finish(result: Obj) -> Obj:
        return _complete(result, method, params, version)

    perform(_METHODS[method], call, exchange, ask, finish)


def _check_meta(method: str, params: Obj, world: World) -> Obj:
    """The `_meta` of a request, or the error that its fault has."""
    spoken = list(world.stateless)
    meta = params.get("_meta")
    if method == "initialize" and not is_stateless({"params": params}):
        # A client of the other era: it learns which versions there are instead.
        wanted = params.get("protocolVersion")
        if isinstance(wanted, str):
            raise _unsupported(wanted, spoken)
    if not isinstance(meta, dict):
        raise Refusal(INVALID_PARAMS, f'Invalid params: _meta with "{VERSION}" is required')
    wanted = meta.get(VERSION)
    if isinstance(wanted, str) and wanted not in spoken:
        raise _unsupported(wanted, spoken)
    problem = problem_with(meta, _META, "_meta")
    if problem is not None:
        raise Refusal(INVALID_PARAMS, f"Invalid params: {problem}")
    return meta


def _unsupported(requested: str, spoken: list[str]) -> Refusal:
    message = f"Unsupported protocol version; this server speaks {', '.join(spoken)}"
    return Refusal(
        UNSUPPORTED_VERSION, message, {"supported": spoken, "requested": requested[:200]}
    )


def _complete(result: Obj, method: str, params: Obj, version: str) -> Obj:
    whole: Obj = {"resultType": "complete", **result}
    ttl = _TTL_MS.get(method)
    if ttl is not None:
        whole["ttlMs"] = 0 if params.get("uri") == COUNTER_URI else ttl
        whole["cacheScope"] = "public"
    whole["_meta"] = {SERVER_INFO: server_info(version)}
    return whole


def _discover(call: Call) -> Obj:
    return {
        "supportedVersions": list(call.world.stateless),
        "capabilities": {
            "completions": {},
            "logging": {},
            "prompts": {},
            "resources": {"subscribe": True},
            "tools": {},
        },
        "instructions": INSTRUCTIONS,
    }


# input_required


def _answer_or_ask(job: Job, ask: Ask, call: Call, declared: Obj, answers: Obj) -> None:
    needs = missing_capability(ask, declared)
    if needs is not None:
        names = ", ".join(needs)
        message = f"Server requires the {names} capability for this request"
        job.fail(Refusal(MISSING_CAPABILITY, message, {"requiredCapabilities": needs}))
    elif ask.key not in answers:
        job.end_with(_input_required(ask, call))
    else:
        problem = problem_with(
            answers[ask.key], ask.answer_schema, f"params.inputResponses.{ask.key}"
        )
        if problem is not None:
            job.fail(Refusal(INVALID_PARAMS, f"Invalid params: {problem}"))
        else:
            job.resume(answers[ask.key])


def _input_required(ask: Ask, call: Call) -> Obj:
    request: Obj = {"method": ask.method}
    if ask.params:
        request["params"] = ask.params
    expires = int(time.time()) + STATE_SECONDS
    return {
        "resultType": "input_required",
        "inputRequests": {ask.key: request},
        "requestState": _sign("tools/call", call.params, expires, call.world.secret),
        "_meta": {SERVER_INFO: server_info(call.version)},
    }


def _check_answers(method: str, params: Obj, world: World) -> Obj:
    """The client's answers, as far as they belong to a question that we asked for this request."""
    answers = params.get("inputResponses", {})
    if not isinstance(answers, dict):
        raise Refusal(INVALID_PARAMS, "Invalid params: inputResponses must be an object")
    if "requestState" not in params:
        return {}
    state = params["requestState"]
    if not isinstance(state, str) or not _is_ours(state, method, params, world.secret):
        raise Refusal(INVALID_PARAMS, "Invalid params: requestState was not given for this request")
    return answers


def _is_ours(state: str, method: str, params: Obj, secret: bytes) -> bool:
    import hmac

    digits = state.partition(".")[0]
    if not (digits.isascii() and digits.isdigit() and len(digits) < 20):
        return False
    try:
        expected = _sign(method, params, int(digits), secret)
    except RecursionError:
        return False  # read, but too deep to be written: we never signed it
    return hmac.compare_digest(expected.encode(), state.encode()) and time.time() < int(digits)


def _sign(method: str, params: Obj, expires: int, secret: bytes) -> str:
    """A state holds nothing but its end; the signature binds it to the method and its params."""
    import hmac

    fixed = {
        name: value
        for name, value in params.items()
        if name not in {"_meta", "inputResponses", "requestState"}
    }
    signed = json.dumps([expires, method, fixed], sort_keys=True)
    return f"{expires}.{hmac.digest(secret, signed.encode(), 'sha256').hex()}"


# subscriptions/listen


class Listening:
    """One open subscription: it acknowledges, tells of updates, and ends with its request."""

    def __init__(self, exchange: Exchange, world: World, uris: list[str]) -> None:
        self._exchange = exchange
        self._world = world
        self._uris = frozenset(uris)
        self._meta = {SUBSCRIPTION: exchange.identifier}
        exchange.running = self
        world.listening[self] = None
        world.watch(self, self._updated)

    def acknowledge(self, accepted: Obj) -> None:
        params = {"_meta": self._meta, "notifications": accepted}
        self._exchange.send(notification("notifications/subscriptions/acknowledged", params))

    def cancel(self) -> None:
        self._world.unwatch(self)
        self._world.listening.pop(self, None)

    def end(self) -> None:
        """The server ends it, with the result that says so."""
        self.cancel()
        self._exchange.succeed({"resultType": "complete", "_meta": self._meta})

    def _updated(self, uri: str) -> None:
        if uri in self._uris:
            params = {"_meta": self._meta, "uri": uri}
            self._exchange.send(notification("notifications/resources/updated", params))


def _listen(call: Call, exchange: Exchange) -> None:
    problem = problem_with(call.params, _FILTER, "params")
    if problem is not None:
        raise Refusal(INVALID_PARAMS, f"Invalid params: {problem}")
    wanted = call.params["notifications"].get("resourceSubscriptions", [])
    uris = [uri for uri in dict.fromkeys(wanted) if exists(uri)]
    # No list of this era ever changes, so of all the kinds only updates are agreed to.
    accepted: dict[str, Any] = {"resourceSubscriptions": uris} if uris else {}
    Listening(exchange, call.world, uris).acknowledge(accepted)


_METHODS = {**HANDLERS, "server/discover": _discover}
