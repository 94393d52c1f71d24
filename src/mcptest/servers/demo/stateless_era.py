"""The stateless era, 2026-07-28: every request says all that is needed to serve it.

Nothing is remembered between requests. What a tool still has to learn from the client travels
back in an `input_required` result with a signed `requestState`; a subscription lives as long as
its own request.
"""

from __future__ import annotations

import json
import time

from mcptest.servers.demo.exchange import (
    Call,
    ClientQuestion,
    ServerExchange,
    missing_capability,
    perform,
)
from mcptest.servers.demo.jsonrpc import (
    INVALID_PARAMS,
    MISSING_CAPABILITY,
    SCHEMAS,
    UNSUPPORTED_VERSION,
    Declared,
    Refusal,
    notification,
    require_fit,
)
from mcptest.servers.demo.offers import exists, find_handler, is_volatile

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from mcptest.servers.demo.exchange import Handler, Questions, ToolJob
    from mcptest.servers.demo.jsonrpc import Obj
    from mcptest.servers.demo.world import World

STATE_SECONDS = 600
_MAX_STATE = 1_000_000


def new_state(method: str, params: Obj, answers: Obj, secret: bytes) -> str:
    """A state for this request that lasts for a while."""
    payload = json.dumps([int(time.time()) + STATE_SECONDS, answers]).encode().hex()
    return f"{payload}.{_signature(payload, method, params, secret)}"


def read_state(state: Any, method: str, params: Obj, secret: bytes) -> Obj | None:
    """The answers in a state that we gave for this very request; None for any other."""
    import hmac

    if not isinstance(state, str) or len(state) > _MAX_STATE:
        return None
    payload, _, signature = state.partition(".")
    try:
        expected = _signature(payload, method, params, secret)
    except RecursionError:
        return None  # read, but too deep to be written: we never signed it
    if not hmac.compare_digest(expected.encode(), signature.encode()):
        return None
    ends, answers = json.loads(bytes.fromhex(payload))
    return dict(answers) if time.time() < ends else None


def _signature(payload: str, method: str, params: Obj, secret: bytes) -> str:
    import hmac

    fixed = {
        name: value
        for name, value in params.items()
        if name not in {"_meta", "inputResponses", "requestState"}
    }
    signed = json.dumps([payload, method, fixed], sort_keys=True)
    return hmac.digest(secret, signed.encode(), "sha256").hex()


PREFIX = "io.modelcontextprotocol/"
VERSION = PREFIX + "protocolVersion"
CAPABILITIES = PREFIX + "clientCapabilities"
CLIENT_INFO = PREFIX + "clientInfo"
LOG_LEVEL = PREFIX + "logLevel"
SERVER_INFO = PREFIX + "serverInfo"
SUBSCRIPTION = PREFIX + "subscriptionId"

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
_HOUR_MS = 3_600_000
_MINUTE_MS = 60_000
_LISTS = ("tools/list", "prompts/list", "resources/list", "resources/templates/list")
_TTL_MS = {"server/discover": _HOUR_MS, **dict.fromkeys((*_LISTS, "resources/read"), _MINUTE_MS)}
_MAY_ASK = {"tools/call", "prompts/get", "resources/read"}

_META = SCHEMAS["meta"]


def is_stateless(message: Obj) -> bool:
    """Does the request carry what only requests of this era carry?"""
    params = message.get("params", {})
    meta = params.get("_meta") if isinstance(params, dict) else None
    return isinstance(meta, dict) and (VERSION in meta or CAPABILITIES in meta)


def serve(message: Obj, world: World, exchange: ServerExchange) -> None:
    """Serve one request; the answer goes through the exchange, now or later."""
    method, params = message["method"], message.get("params", {})
    try:
        meta = _check_meta(method, params, world)
        version = meta[VERSION]
        declared = meta[CAPABILITIES]
        call = Call(world, version, params, exchange, meta.get(LOG_LEVEL), declared)
        if method == "subscriptions/listen":
            _listen(call)
            return
        handler = find_handler(method, version, world, _OWN_METHODS)
        answers = _check_answers(method, params, world) if method in _MAY_ASK else {}
    except Refusal as refusal:
        exchange.refuse(refusal)
        return

    perform(
        handler,
        call,
        exchange,
        lambda job, question: _answer_or_ask(job, question, call, method, answers),
        lambda result: _complete(result, method, call),
    )


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
    require_fit(meta, _META, "_meta")
    return meta


def _unsupported(requested: str, spoken: list[str]) -> Refusal:
    message = f"Unsupported protocol version; this server speaks {', '.join(spoken)}"
    return Refusal(
        UNSUPPORTED_VERSION, message, {"supported": spoken, "requested": requested[:200]}
    )


def _complete(result: Obj, method: str, call: Call) -> Obj:
    whole: Obj = {"resultType": "complete", **result}
    ttl = _TTL_MS.get(method)
    if ttl is not None:
        whole["ttlMs"] = 0 if is_volatile(call.params.get("uri"), call.world) else ttl
        whole["cacheScope"] = "public"
    who = call.world.content.server_info(call.version)
    whole["_meta"] = {SERVER_INFO: who, **result.get("_meta", {})}
    return whole


def _discover(call: Call) -> Obj:
    found: Obj = {
        "supportedVersions": list(call.world.stateless),
        "capabilities": call.world.declared(call.version),
        "instructions": call.world.content.instructions,
    }
    if "fixtures" in call.world.options.offer:
        found["_meta"] = {"traceparent": TRACE}
    return found


def _answer_or_ask(job: ToolJob, ask: Questions, call: Call, method: str, answers: Obj) -> None:
    """`answers` is what the client answered so far to what we asked within this request."""
    asks = (ask,) if isinstance(ask, ClientQuestion) else ask
    given: Obj = {}
    try:
        for one in asks:
            needs = missing_capability(one, call.declared)
            if needs is not None:
                message = f"Server requires the {', '.join(needs)} capability for this request"
                raise Refusal(MISSING_CAPABILITY, message, {"requiredCapabilities": needs})
        for one in asks:
            known = answers
            if one.key not in answers and one.loose and "requestState" not in call.params:
                known = call.params.get("inputResponses", {})
            given[one.key] = known.get(one.key)
            if given[one.key] is not None:
                where = f"params.inputResponses.{one.key}"
                require_fit(given[one.key], one.answer_schema, where)
    except Refusal as refusal:
        job.fail(refusal)
        return
    missing = [one for one in asks if given[one.key] is None]
    if missing:
        job.end_with(_input_required(missing, call, method, answers))
    else:
        job.resume(given[ask.key] if isinstance(ask, ClientQuestion) else given)


def _input_required(asks: list[ClientQuestion], call: Call, method: str, answers: Obj) -> Obj:
    requests: Obj = {}
    for ask in asks:
        requests[ask.key] = {"method": ask.method}
        if ask.params:
            requests[ask.key]["params"] = ask.params
    state = new_state(method, call.params, answers, call.world.secret)
    return {
        "resultType": "input_required",
        "inputRequests": requests,
        "requestState": state,
        "_meta": {SERVER_INFO: call.world.content.server_info(call.version)},
    }


def _check_answers(method: str, params: Obj, world: World) -> Obj:
    """The client's answers, as far as they belong to a question that we asked for this request."""
    answers = params.get("inputResponses", {})
    if not isinstance(answers, dict):
        raise Refusal(INVALID_PARAMS, "Invalid params: inputResponses must be an object")
    if "requestState" not in params:
        return {}
    earlier = read_state(params["requestState"], method, params, world.secret)
    if earlier is None:
        raise Refusal(INVALID_PARAMS, "Invalid params: requestState was not given for this request")
    return {**earlier, **answers}


class Listening(Declared):
    """One open subscription: it acknowledges, tells of updates, and ends with its request."""

    exchange: ServerExchange
    world: World
    version: str
    accepted: Obj

    def __post_init__(self) -> None:
        self._meta = {SUBSCRIPTION: self.exchange.identifier}
        self.exchange.running = self
        self.world.listening[self] = None
        self.world.watchers[self] = self.updated

    def acknowledge(self) -> None:
        params = {"_meta": self._meta, "notifications": self.accepted}
        self.exchange.send(notification("notifications/subscriptions/acknowledged", params))

    def cancel(self) -> None:
        self.world.watchers.pop(self, None)
        self.world.listening.pop(self, None)

    def end(self) -> None:
        """The server ends it, with the result that says so."""
        self.cancel()
        meta = {**self._meta, SERVER_INFO: self.world.content.server_info(self.version)}
        self.exchange.succeed({"resultType": "complete", "_meta": meta})

    def changed(self, what: str) -> None:
        if self.accepted.get(f"{what}ListChanged"):
            method = f"notifications/{what}/list_changed"
            self.exchange.send(notification(method, {"_meta": self._meta}))

    def updated(self, uri: str) -> None:
        if uri in self.accepted.get("resourceSubscriptions", ()):
            params = {"_meta": self._meta, "uri": uri}
            self.exchange.send(notification("notifications/resources/updated", params))


def _listen(call: Call) -> None:
    require_fit(call.params, SCHEMAS["listen"])
    accepted = _agreed(call.params["notifications"], call)
    listening = Listening(call.exchange, call.world, call.version, accepted)
    listening.acknowledge()
    if "resourceSubscriptions" in accepted and "fixtures" in call.world.options.offer:
        # So that whoever tests subscriptions sees a change without having to make one.
        listening.updated(accepted["resourceSubscriptions"][0])


def _agreed(wanted: Obj, call: Call) -> Obj:
    """What the server will tell of what the client wants to hear: what it declares."""
    declared = call.world.declared(call.version)
    agreed: Obj = {
        f"{what}ListChanged": True
        for what in ("tools", "prompts")
        if wanted.get(f"{what}ListChanged") and declared.get(what, {}).get("listChanged")
    }
    uris = dict.fromkeys(wanted.get("resourceSubscriptions", ()))
    known = [uri for uri in uris if exists(uri, call.world)]
    if known and "subscribe" in declared.get("resources", {}):
        agreed["resourceSubscriptions"] = known
    return agreed


_OWN_METHODS: dict[str, Handler] = {"server/discover": _discover}
