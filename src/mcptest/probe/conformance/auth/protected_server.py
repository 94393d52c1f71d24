"""A server that wants a token, and tells where to get one: what every scenario here plays."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import msgspec

from mcptest.servers.scripted.conforming import Conforming
from mcptest.servers.scripted.script import MCP, Obj, ScriptedCall, ScriptStage, Visit

AS = "as"
SECOND_AS = "as2"
ROOT_PRM = "/.well-known/oauth-protected-resource"
PATH_PRM = f"{ROOT_PRM}/mcp"
OAUTH_METADATA = "/.well-known/oauth-authorization-server"
OPENID_METADATA = "/.well-known/openid-configuration"
PUBLIC, BASIC, POST = "none", "client_secret_basic", "client_secret_post"
FOREIGN_ISSUER = "https://attacker.example.com"

Redirected: TypeAlias = Literal["right", "left_out", "foreign", "with_slash"]


class AuthPlan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One scenario's servers. Paths begin with a slash."""

    # The protected server
    prm_path: str | None = PATH_PRM
    """Where its metadata is; None: it has none, as before 2025-06-18."""
    announces_prm: bool = True
    """Whether the challenge says where."""
    resource: str = ""
    """What the metadata calls the resource, where that is not this server."""
    challenge_scope: str = ""
    scopes_supported: tuple[str, ...] | None = None
    needs: Mapping[str, str] = {}
    """The scope that a method needs beyond the first one."""
    never_enough: bool = False
    """Whatever was granted, more is asked for."""
    moves: bool = False
    """After the first request that is served, the second authorization server takes over."""

    # The authorization server
    origins: tuple[str, ...] = (AS,)
    metadata_path: str | None = OAUTH_METADATA
    issuer_path: str = ""
    """What of the issuer comes behind the origin."""
    issuer: str = ""
    """What the metadata calls the issuer, where that is not the true one."""
    endpoints: str = ""
    """What comes before `/authorize`, `/token` and `/register`."""
    offered_scopes: tuple[str, ...] | None = None
    registers: bool = True
    takes_documents: bool | None = None
    """Whether the client's id may be the address of a document; None: not said."""
    method: str = PUBLIC
    """How clients authenticate at the token endpoint."""
    says_s256: bool = True
    announces_iss: bool | None = True
    """None: not said."""
    iss: Redirected = "right"
    """The issuer that the redirect names."""
    changes_state: bool = False
    client_id: str = ""
    client_secret: str = ""
    """Of a client that was registered by hand."""
    registered_with: str = ""
    """The issuer that it was registered with, where that is not this one."""


# -- A scripted authorization server -------------------------------------------------------------

MOST_GRANTS = 1_000
MOST_FIELDS = 100
_CREATED, _FOUND, _BAD = 201, 302, 400


class Grant(msgspec.Struct, frozen=True):
    """What a code or a token stands for."""

    origin: str
    scope: str


class Grants:
    """All codes and tokens of one scenario. The oldest go when a client asks without end."""

    def __init__(self) -> None:
        self.codes: dict[str, Grant] = {}
        self.tokens: dict[str, Grant] = {}
        self.issued: dict[str, None] = {}
        """Tokens and secrets."""
        self._made = 0

    def new_name(self, kind: str, origin: str) -> str:
        self._made += 1
        return f"mcptest-{kind}-{origin}-{self._made}"


def keep(kept: dict[str, Any], name: str, value: Any) -> None:
    kept[name] = value
    if len(kept) > MOST_GRANTS:
        del kept[next(iter(kept))]


class AuthorizationServer:
    """One origin at which there is one."""

    def __init__(self, plan: AuthPlan, origin: str, url: str, grants: Grants) -> None:
        self._plan = plan
        self._origin = origin
        self._url = url
        self._grants = grants
        self._served = {
            ("GET", plan.metadata_path): self._tell_metadata,
            ("GET", f"{plan.endpoints}/authorize"): self._authorize,
            ("POST", f"{plan.endpoints}/token"): self._give_token,
        }
        if plan.registers:
            self._served["POST", f"{plan.endpoints}/register"] = self._register

    @property
    def issuer(self) -> str:
        """The true one, which is also what the protected server calls it."""
        return self._url + self._plan.issuer_path

    @property
    def named_issuer(self) -> str:
        return self._plan.issuer or self.issuer

    def visit(self, visit: Visit) -> bool:
        serve = self._served.get((visit.method, visit.path))
        if serve is not None:
            serve(visit)
        return serve is not None

    def _tell_metadata(self, visit: Visit) -> None:
        plan, base = self._plan, self._url + self._plan.endpoints
        told: Obj = {
            "issuer": self.named_issuer,
            "authorization_endpoint": f"{base}/authorize",
            "token_endpoint": f"{base}/token",
            "registration_endpoint": f"{base}/register" if plan.registers else None,
            "response_types_supported": ["code"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "token_endpoint_auth_methods_supported": [plan.method],
            "code_challenge_methods_supported": ["S256"] if plan.says_s256 else None,
            "authorization_response_iss_parameter_supported": plan.announces_iss,
            "scopes_supported": plan.offered_scopes,
            "client_id_metadata_document_supported": plan.takes_documents,
        }
        if plan.metadata_path is not None and OPENID_METADATA in plan.metadata_path:
            told["jwks_uri"] = f"{self._url}/.well-known/jwks.json"
            told["subject_types_supported"] = ["public"]
            told["id_token_signing_alg_values_supported"] = ["RS256"]
        visit.respond(200, {name: value for name, value in told.items() if value is not None})

    def _register(self, visit: Visit) -> None:
        try:
            asked = json.loads(visit.body)
        except (ValueError, RecursionError):
            asked = None
        if not isinstance(asked, dict):
            _refuse(visit, "invalid_client_metadata", "the body is not a JSON object")
            return
        client: Obj = {
            **asked,
            "client_id": self._grants.new_name("client", self._origin),
            "token_endpoint_auth_method": self._plan.method,
        }
        client.pop("client_secret", None)
        if self._plan.method != PUBLIC:
            secret = self._grants.new_name("secret", self._origin)
            keep(self._grants.issued, secret, None)
            client |= {"client_secret": secret, "client_secret_expires_at": 0}
        visit.respond(_CREATED, client, headers={"Cache-Control": "no-store"})

    def _authorize(self, visit: Visit) -> None:
        target = visit.query.get("redirect_uri", "")
        try:
            parts = urlsplit(target)
        except ValueError:
            parts = urlsplit("")
        if not parts.scheme:
            _refuse(visit, "invalid_request", "there is no redirect_uri to go to")
            return
        code = self._grants.new_name("code", self._origin)
        keep(self._grants.codes, code, Grant(self._origin, visit.query.get("scope", "")))
        answer = {"code": code}
        if "state" in visit.query:
            state = visit.query["state"]
            answer["state"] = f"not-{state}" if self._plan.changes_state else state
        if self._plan.iss != "left_out":
            issuers = {"foreign": FOREIGN_ISSUER, "with_slash": f"{self.named_issuer}/"}
            answer["iss"] = issuers.get(self._plan.iss, self.named_issuer)
        query = "&".join(filter(None, (parts.query, urlencode(answer))))
        location = urlunsplit(parts._replace(query=query, fragment=""))
        visit.respond(_FOUND, headers={"Location": location})

    def _give_token(self, visit: Visit) -> None:
        try:
            text = visit.body.decode()
            form = dict(parse_qsl(text, keep_blank_values=True, max_num_fields=MOST_FIELDS))
        except ValueError:
            _refuse(visit, "invalid_request", "the body is not a form")
            return
        if form.get("grant_type") != "authorization_code":
            _refuse(visit, "unsupported_grant_type", "only authorization_code is served here")
            return
        grant = self._grants.codes.pop(form.get("code", ""), None)
        if grant is None:
            _refuse(visit, "invalid_grant", "this code was never given, or was used before")
            return
        token = self._grants.new_name("token", self._origin)
        keep(self._grants.tokens, token, Grant(self._origin, grant.scope))
        keep(self._grants.issued, token, None)
        answer: Obj = {"access_token": token, "token_type": "Bearer", "expires_in": 3600}
        if grant.scope:
            answer["scope"] = grant.scope
        visit.respond(200, answer, headers={"Cache-Control": "no-store"})


def _refuse(visit: Visit, error: str, description: str) -> None:
    visit.respond(_BAD, {"error": error, "error_description": description})


# -- A server that wants a token, and tells where to get one -------------------------------------

TOOL = "test-tool"
MOST_REFUSALS = 3
"""How often more is asked for where nothing is enough; after that the scenario is over."""
_UNAUTHORIZED, _FORBIDDEN, _GONE = 401, 403, 410


class ProtectedServer(Conforming):
    """Plays a plan. What it serves behind the token is one tool."""

    has_sessions = False
    tools = ({"name": TOOL, "description": "Says test", "inputSchema": {"type": "object"}},)

    def __init__(self, plan: AuthPlan) -> None:
        super().__init__()
        self.plan = plan
        self.origins = tuple(dict.fromkeys((MCP, *plan.origins)))
        self.grants = Grants()
        self.issued = self.grants.issued
        self.authorization_servers: dict[str, AuthorizationServer] = {}
        self._has_moved = False
        self._refusals = 0
        if plan.client_secret:
            self.grants.issued[plan.client_secret] = None

    def begin(self, stage: ScriptStage) -> None:
        super().begin(stage)
        for origin in self.plan.origins:
            url = stage.url(origin)
            server = AuthorizationServer(self.plan, origin, url, self.grants)
            self.authorization_servers[origin] = server
        if self.plan.client_id:
            self.context = {
                "client_id": self.plan.client_id,
                "client_secret": self.plan.client_secret,
                "issuer": self.plan.registered_with or self.issuer,
            }

    @property
    def issuer(self) -> str:
        """The authorization server that the metadata names now."""
        origins = self.plan.origins
        return self.authorization_servers[origins[-1 if self._has_moved else 0]].issuer

    def visit(self, visit: Visit) -> bool:
        plan, url = self.plan, self.stage.url()
        if visit.origin == MCP and visit.method == "GET" and visit.path == plan.prm_path:
            own = url if plan.prm_path == ROOT_PRM else url + self.endpoint
            metadata: Obj = {
                "resource": plan.resource or own,
                "authorization_servers": [self.issuer],
            }
            if plan.scopes_supported is not None:
                metadata["scopes_supported"] = list(plan.scopes_supported)
            visit.respond(200, metadata)
            return True
        server = self.authorization_servers.get(visit.origin)
        if server is not None and server.visit(visit):
            return True
        is_for_us = visit.origin == MCP and visit.path == self.endpoint
        if is_for_us and self._grant_of(visit) is None:
            self._challenge(visit, _UNAUTHORIZED, plan.challenge_scope)
            return True
        return super().visit(visit)

    def request(self, call: ScriptedCall) -> None:
        grant = self._grant_of(call.visit)
        if call.method == "initialize" or call.visit is None or grant is None:
            super().request(call)
        elif self.plan.never_enough:
            self._refusals += 1
            if self._refusals > MOST_REFUSALS:
                call.visit.respond(_GONE, {"error": "test_complete"})
            else:
                self._challenge(call.visit, _FORBIDDEN, self.plan.challenge_scope)
        elif self._is_of_the_former(grant):
            self._challenge(call.visit, _UNAUTHORIZED, self.plan.challenge_scope)
        elif not {*self.plan.needs.get(call.method, "").split()} <= {*grant.scope.split()}:
            self._challenge(call.visit, _FORBIDDEN, self.plan.needs[call.method])
        else:
            super().request(call)

    def call_tool(self, call: ScriptedCall, name: str, arguments: Obj) -> None:
        if name == TOOL:
            self.text(call, "test")
        else:
            super().call_tool(call, name, arguments)

    def _grant_of(self, visit: Visit | None) -> Grant | None:
        if visit is None:
            return None
        scheme, _, token = visit.headers.get("authorization", "").partition(" ")
        return self.grants.tokens.get(token.strip()) if scheme.lower() == "bearer" else None

    def _is_of_the_former(self, grant: Grant) -> bool:
        if not self.plan.moves:
            return False
        if not self._has_moved:
            self.stage.note("names another authorization server from now on, on purpose")
            self._has_moved = True
            return False
        return grant.origin != self.plan.origins[-1]

    def _challenge(self, visit: Visit, status: int, scope: str) -> None:
        challenge = {"realm": "mcptest"}
        if status == _FORBIDDEN:
            challenge["error"] = "insufficient_scope"
        elif "authorization" in visit.headers:
            challenge["error"] = "invalid_token"
        if scope:
            challenge["scope"] = scope
        if self.plan.announces_prm and self.plan.prm_path is not None:
            challenge["resource_metadata"] = self.stage.url() + self.plan.prm_path
        header = "Bearer " + ", ".join(f'{name}="{value}"' for name, value in challenge.items())
        error = challenge.get("error", "unauthorized")
        visit.respond(status, {"error": error}, headers={"WWW-Authenticate": header})
