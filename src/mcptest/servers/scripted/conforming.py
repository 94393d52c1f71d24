"""A well-behaved server in both eras, made from tables: what scripts of scenarios derive from.

A script overrides what its scenario is about, in the tables or in one method, and nothing else. The
rest is as the specification has it, so that whatever a client does wrong is the client's doing.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from typing import Any

from mcptest import __version__
from mcptest.core.revision import Era, Revision, revision_of_wire
from mcptest.servers.demo.http_server import check_headers
from mcptest.servers.demo.jsonrpc import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    UNSUPPORTED_VERSION,
    Refusal,
    error_message,
    read_text,
)
from mcptest.servers.demo.stateless_era import CAPABILITIES, SERVER_INFO, SUBSCRIPTION, VERSION
from mcptest.servers.scripted.script import Obj, Script, ScriptedCall, ScriptStage, Visit
from mcptest.wire.envelope import LIST_MEMBERS

CACHEABLE = frozenset({*LIST_MEMBERS, "server/discover", "resources/read"})
_NO_ARGUMENTS: Obj = {"type": "object", "properties": {}}


def plain_tool(name: str, description: str) -> Obj:
    """A tool without arguments."""
    return {"name": name, "description": description, "inputSchema": _NO_ARGUMENTS}


def wire_versions(stage: ScriptStage) -> list[str]:
    """What the server speaks, the newest first."""
    return [revision.wire_version for revision in reversed(stage.offered)]


def check_meta(call: ScriptedCall, stage: ScriptStage) -> None:
    """The `_meta` of a request has what it needs. Raises Refusal."""
    asked = call.params.get("protocolVersion") if call.method == "initialize" else None
    version = call.meta.get(VERSION, asked)
    if isinstance(version, str) and version != stage.revision.wire_version:
        data = {"supported": wire_versions(stage), "requested": version[:200]}
        raise Refusal(UNSUPPORTED_VERSION, "Unsupported protocol version", data)
    for name, kind in ((VERSION, str), (CAPABILITIES, dict)):
        if not isinstance(call.meta.get(name), kind):
            raise Refusal(INVALID_PARAMS, f'Invalid params: _meta needs "{name}"')


def headers_of_arguments(call: ScriptedCall, tools: Iterable[Obj]) -> dict[str, str]:
    """The arguments of the tool that is called which have a header, with its name."""
    named = [one for one in tools if one["name"] == call.params.get("name")]
    return {
        name: about["x-mcp-header"]
        for tool in named[:1]
        if call.method == "tools/call"
        for name, about in tool["inputSchema"].get("properties", {}).items()
        if "x-mcp-header" in about
    }


ONLY_TOOLS: Obj = {"tools": {}}
_ONLY_HANDSHAKE = frozenset(
    {"initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"}
)
_ONLY_STATELESS = frozenset({"server/discover", "subscriptions/listen"})
_SERVED = {
    "initialize": ("", "initialize"),
    "ping": ("", "acknowledge"),
    "server/discover": ("", "discover"),
    "subscriptions/listen": ("", "listen"),
    "logging/setLevel": ("logging", "acknowledge"),
    "completion/complete": ("completions", "complete"),
    "tools/list": ("tools", "list_tools"),
    "tools/call": ("tools", "_use_by_name"),
    "prompts/list": ("prompts", "prompts"),
    "prompts/get": ("prompts", "_use_by_name"),
    "resources/list": ("resources", "resources"),
    "resources/templates/list": ("resources", "templates"),
    "resources/read": ("resources", "_read_resource"),
    "resources/subscribe": ("resources", "acknowledge"),
    "resources/unsubscribe": ("resources", "acknowledge"),
}
"""With the capability that each method needs, and what serves it, or the list that it shows."""


class Conforming(Script):
    """Serves both eras. Over HTTP the handshake era has sessions."""

    server_name = "mcptest-scripted"
    capabilities: Obj = ONLY_TOOLS
    tools: Sequence[Obj] = ()
    """As in tools/list; the others likewise."""
    prompts: Sequence[Obj] = ()
    resources: Sequence[Obj] = ()
    templates: Sequence[Obj] = ()
    has_sessions = True
    """Whether `initialize` gives a session id over HTTP."""
    checks_requests = True
    """Refuse requests of the stateless era whose `_meta` or headers are wrong. A script whose
    scenario looks at just these serves them all, so that one fault does not hide the next."""
    ttl_ms = 60_000

    def __init__(self, **members: Any) -> None:
        """`members` are what a scenario says of its server. A tool without a schema takes no
        arguments."""
        vars(self).update(members)
        if "tools" in members:
            self.tools = [{"inputSchema": _NO_ARGUMENTS, **one} for one in members["tools"]]
        self.sessions: dict[str, Revision] = {}
        """The revision of each, by its id."""
        self.was_initialized = False
        self._declared: dict[str | None, Obj] = {}
        """What was declared in `initialize`, by session; on stdio and without sessions there is
        one, whose id is None."""
        self.listening: dict[Any, ScriptedCall] = {}
        """Open `subscriptions/listen`, by the id of their requests."""
        self._waiting: dict[str, ScriptedCall] = {}
        """Calls that are answered after the client has, by the id of what it was asked."""

    def call_tool(self, call: ScriptedCall, name: str, arguments: Obj) -> None:
        call.error(INVALID_PARAMS, f"Unknown tool: {name[:200]}", status=self.refused)

    def get_prompt(self, call: ScriptedCall, name: str, arguments: Obj) -> None:
        call.error(INVALID_PARAMS, f"Unknown prompt: {name[:200]}", status=self.refused)

    def read_resource(self, call: ScriptedCall, uri: str) -> None:
        code = INVALID_PARAMS if self.stage.stateless else -32002
        call.error(code, "Resource not found", {"uri": uri[:200]}, status=self.refused)

    def complete(self, call: ScriptedCall) -> None:
        call.result({"completion": {"values": [], "total": 0, "hasMore": False}})

    def other(self, call: ScriptedCall) -> None:
        """Any other method, also one of a capability that is not declared."""
        status = 404 if self.stage.stateless else 200
        call.error(METHOD_NOT_FOUND, f"Method not found: {call.method[:200]}", status=status)

    def text(self, call: ScriptedCall, text: str) -> None:
        """A whole tool result with one text."""
        call.result({"content": [{"type": "text", "text": text}]})

    def publish(self, method: str, params: Obj | None = None) -> None:
        """Tell all who listen, in either era."""
        if not self.stage.stateless:
            self.stage.send({"jsonrpc": "2.0", "method": method, "params": params or {}})
        for identifier, call in tuple(self.listening.items()):
            call.notify(method, {"_meta": {SUBSCRIPTION: identifier}, **(params or {})})

    def declared(self, call: ScriptedCall) -> Obj:
        """The capabilities that the client declares: with this request, or when it began."""
        if self.stage.stateless:
            declared = call.meta.get(CAPABILITIES)
        else:
            session = call.visit.headers.get("mcp-session-id") if call.visit else None
            declared = self._declared.get(session if session in self.sessions else None)
        return declared if isinstance(declared, dict) else {}

    @property
    def refused(self) -> int:
        """The HTTP status of an error that is about the request's parameters."""
        return 400 if self.stage.stateless else 200

    @property
    def server_info(self) -> Obj:
        return {"name": self.server_name, "version": __version__}

    def finish(self, call: ScriptedCall, result: Obj) -> Obj:
        if not self.stage.stateless:
            return result
        whole: Obj = {"resultType": "complete", **result}
        if whole["resultType"] == "complete" and call.method in CACHEABLE:
            whole = {"ttlMs": self.ttl_ms, "cacheScope": "private", **whole}
        whole["_meta"] = {SERVER_INFO: self.server_info, **result.get("_meta", {})}
        return whole

    def visit(self, visit: Visit) -> bool:
        if visit.path != (self.endpoint or "/"):
            return False
        self._turn_to(self._revision_of_visit(visit))
        if self.stage.stateless or visit.method not in {"GET", "POST", "DELETE"}:
            return False
        if self._is_kept_out(visit):
            return True
        if visit.method == "DELETE" and self.has_sessions:
            self.sessions.pop(visit.headers["mcp-session-id"], None)
            visit.respond(200)
            return True
        return False

    def request(self, call: ScriptedCall) -> None:
        if call.method == "initialize":
            self._turn_to(self.stage.offers(Era.HANDSHAKE))
        elif call.method in _ONLY_STATELESS or VERSION in call.meta:
            self._turn_to(self.stage.offers(Era.STATELESS))
        if self.stage.stateless:
            self._request_on_its_own(call)
        elif self.was_initialized or call.method in {"initialize", "ping"}:
            self._serve(call)
        elif call.method in _ONLY_STATELESS:
            self.other(call)
        else:
            call.error(INVALID_REQUEST, "Invalid request: initialize comes first")

    def ask_first(self, call: ScriptedCall, identifier: str, method: str, params: Obj) -> None:
        """A request of ours; the call is answered when its answer has come."""
        self._waiting[identifier] = call
        call.ask(identifier, method, params)

    def answered(self, message: Obj) -> None:
        self.settle(message.get("id"), "thank you")

    def settle(self, identifier: Any, text: str) -> None:
        """Answer the call that waits for this, if it still does."""
        call = self._waiting.pop(identifier, None) if isinstance(identifier, str) else None
        if call is not None:
            self.text(call, text)

    def notified(self, message: Obj) -> None:
        params = message.get("params")
        if message["method"] == "notifications/cancelled" and isinstance(params, dict):
            identifier = params.get("requestId")
            if isinstance(identifier, str | int):
                self.listening.pop(identifier, None)

    def hung_up(self, visit: Visit) -> None:
        for identifier, call in tuple(self.listening.items()):
            if call.visit is visit:
                del self.listening[identifier]

    def _turn_to(self, revision: Revision | None) -> None:
        """A client may have several sessions, and try both eras."""
        if revision is not None:
            self.stage.revision = revision

    def _revision_of_visit(self, visit: Visit) -> Revision | None:
        """What an HTTP request speaks, as far as its headers tell and we speak it."""
        session = self.sessions.get(visit.headers.get("mcp-session-id", ""))
        named = revision_of_wire(visit.headers.get("mcp-protocol-version"))
        if session is not None:
            return session
        if named is not None and named.era is Era.STATELESS:
            return self.stage.offers(Era.STATELESS)
        return self.stage.offers(Era.HANDSHAKE) if _begins(visit.body) else None

    def negotiated(self, proposed: Any) -> Revision:
        """The revision that the client proposes, if we speak it; otherwise our newest."""
        named = revision_of_wire(proposed)
        if named is not None and named.era is Era.HANDSHAKE and named in self.stage.offered:
            return named
        newest = self.stage.offers(Era.HANDSHAKE)
        assert newest is not None, "without one, initialize is refused"
        return newest

    def _is_kept_out(self, visit: Visit) -> bool:
        """The session rules of streamable HTTP: 400 without an id, 404 for one that is unknown."""
        identifier = visit.headers.get("mcp-session-id")
        version = visit.headers.get("mcp-protocol-version")
        spoken = self.stage.revision.wire_version
        problem, status = "", 400
        if identifier is None and visit.method == "POST" and _begins(visit.body):
            return False  # nothing is agreed yet, so nothing can be missing or wrong
        if identifier is None and self.has_sessions:
            problem = "Mcp-Session-Id is missing; begin with initialize"
        elif identifier is not None and identifier not in self.sessions:
            problem, status = "There is no such session", 404
        elif version not in {None, spoken}:
            problem = f"MCP-Protocol-Version must be {spoken}"
        if problem:
            visit.respond(status, error_message(None, Refusal(INVALID_REQUEST, problem)))
        return bool(problem)

    def initialize(self, call: ScriptedCall) -> None:
        self.was_initialized = True
        revision = self.negotiated(call.params.get("protocolVersion"))
        self.stage.agree(revision)
        identifier = None
        if self.has_sessions and call.visit is not None:
            identifier = secrets.token_hex(16)
            self.sessions[identifier] = revision
            call.answer_headers["Mcp-Session-Id"] = identifier
        declared = call.params.get("capabilities")
        self._declared[identifier] = declared if isinstance(declared, dict) else {}
        self.welcome(call, revision.wire_version)

    def welcome(self, call: ScriptedCall, version: str) -> None:
        call.result(
            {
                "protocolVersion": version,
                "capabilities": self.capabilities,
                "serverInfo": self.server_info,
            }
        )

    def _request_on_its_own(self, call: ScriptedCall) -> None:
        try:
            if self.checks_requests:
                self._check(call)
        except Refusal as refusal:
            call.error(refusal.code, refusal.message, refusal.data, status=400)
            return
        if VERSION in call.meta or call.method in _ONLY_STATELESS:
            self.stage.agree(self.stage.revision)
        self._serve(call)

    def _check(self, call: ScriptedCall) -> None:
        """Headers, of which stdio has none, and `_meta`. Raises Refusal."""
        if call.visit is not None and (call.method != "initialize" or VERSION in call.meta):
            mirrored = headers_of_arguments(call, self.tools)
            check_headers(call.message, call.visit.headers, mirrored)
        check_meta(call, self.stage)

    def discover(self, call: ScriptedCall) -> None:
        supported = wire_versions(self.stage)
        call.result({"supportedVersions": supported, "capabilities": self.capabilities})

    def listen(self, call: ScriptedCall) -> None:
        wanted = call.params.get("notifications")
        if not isinstance(wanted, dict):
            message = "Invalid params: notifications must be an object"
            call.error(INVALID_PARAMS, message, status=self.refused)
            return
        agreed: Obj = {
            f"{what}ListChanged": True
            for what in ("tools", "prompts", "resources")
            if wanted.get(f"{what}ListChanged")
            and self.capabilities.get(what, {}).get("listChanged")
        }
        uris = wanted.get("resourceSubscriptions")
        if uris and self.capabilities.get("resources", {}).get("subscribe"):
            agreed["resourceSubscriptions"] = uris
        params = {"_meta": {SUBSCRIPTION: call.id}, "notifications": agreed}
        self.listening[call.id] = call
        call.notify("notifications/subscriptions/acknowledged", params)

    def _serve(self, call: ScriptedCall) -> None:
        capability, serve = _SERVED.get(call.method, ("", ""))
        foreign = _ONLY_HANDSHAKE if self.stage.stateless else _ONLY_STATELESS
        hidden = capability and capability not in self.capabilities
        if not serve or call.method in foreign or hidden:
            self.other(call)
        elif callable(shown := getattr(self, serve)):
            shown(call)
        else:
            call.result({LIST_MEMBERS[call.method]: list(shown)})

    def list_tools(self, call: ScriptedCall) -> None:
        call.result({"tools": list(self.tools)})

    def _read_resource(self, call: ScriptedCall) -> None:
        uri = call.params.get("uri")
        if isinstance(uri, str):
            self.read_resource(call, uri)
        else:
            call.error(INVALID_PARAMS, "Invalid params: uri must be a string", status=self.refused)

    def _use_by_name(self, call: ScriptedCall) -> None:
        name, arguments = call.params.get("name"), call.params.get("arguments", {})
        if isinstance(name, str) and isinstance(arguments, dict):
            serve = self.call_tool if call.method == "tools/call" else self.get_prompt
            serve(call, name, arguments)
        else:
            message = "Invalid params: name must be a string, arguments an object"
            call.error(INVALID_PARAMS, message, status=self.refused)

    def acknowledge(self, call: ScriptedCall) -> None:
        call.result({})


def _begins(body: bytes) -> bool:
    try:
        value = read_text(body)
    except Refusal:
        return False
    return isinstance(value, dict) and value.get("method") == "initialize"
