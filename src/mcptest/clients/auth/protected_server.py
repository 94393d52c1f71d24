"""A server that wants a token, and tells where to get one: what every scenario here plays."""

from __future__ import annotations

from mcptest.clients.auth.authorization_server import AuthorizationServer, Grant, Grants
from mcptest.clients.auth.plan import ROOT_PRM, AuthPlan
from mcptest.peer.scripted.conforming import Conforming
from mcptest.peer.scripted.script import MCP, Call, Obj, Stage, Visit

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
        self.origins = plan.all_origins
        self.grants = Grants()
        self.issued = self.grants.issued
        self.authorization_servers: dict[str, AuthorizationServer] = {}
        self._has_moved = False
        self._refusals = 0
        if plan.client_secret:
            self.grants.issued[plan.client_secret] = None

    def begin(self, stage: Stage) -> None:
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

    # What comes

    def visit(self, visit: Visit) -> bool:
        if visit.origin == MCP and visit.method == "GET" and visit.path == self.plan.prm_path:
            visit.respond(200, self._metadata())
            return True
        server = self.authorization_servers.get(visit.origin)
        if server is not None and server.visit(visit):
            return True
        is_for_us = visit.origin == MCP and visit.path == self.endpoint
        if is_for_us and self._grant_of(visit) is None:
            self._challenge(visit, _UNAUTHORIZED, self.plan.challenge_scope)
            return True
        return super().visit(visit)

    def request(self, call: Call) -> None:
        grant = self._grant_of(call.visit)
        if call.method == "initialize" or call.visit is None or grant is None:
            super().request(call)
        elif self.plan.never_enough:
            self._ask_for_more(call.visit)
        elif self._is_of_the_former(grant):
            self._challenge(call.visit, _UNAUTHORIZED, self.plan.challenge_scope)
        elif not _covers(grant, self.plan.needs.get(call.method, "")):
            self._challenge(call.visit, _FORBIDDEN, self.plan.needs[call.method])
        else:
            super().request(call)

    def call_tool(self, call: Call, name: str, arguments: Obj) -> None:
        if name == TOOL:
            self.text(call, "test")
        else:
            super().call_tool(call, name, arguments)

    # What is told

    def _metadata(self) -> Obj:
        plan, url = self.plan, self.stage.url()
        own = url if plan.prm_path == ROOT_PRM else url + self.endpoint
        told: Obj = {"resource": plan.resource or own, "authorization_servers": [self.issuer]}
        if plan.scopes_supported is not None:
            told["scopes_supported"] = list(plan.scopes_supported)
        return told

    def _grant_of(self, visit: Visit | None) -> Grant | None:
        if visit is None:
            return None
        scheme, _, token = visit.headers.get("authorization", "").partition(" ")
        return self.grants.tokens.get(token.strip()) if scheme.lower() == "bearer" else None

    def _is_of_the_former(self, grant: Grant) -> bool:
        if not self.plan.moves:
            return False
        if not self._has_moved:
            self.stage.note("from now on another authorization server is named, on purpose")
            self._has_moved = True
            return False
        return grant.origin != self.plan.origins[-1]

    def _ask_for_more(self, visit: Visit) -> None:
        self._refusals += 1
        if self._refusals > MOST_REFUSALS:
            visit.respond(_GONE, {"error": "test_complete"})
        else:
            self._challenge(visit, _FORBIDDEN, self.plan.challenge_scope)

    def _challenge(self, visit: Visit, status: int, scope: str) -> None:
        told = {"realm": "mcptest"}
        if status == _FORBIDDEN:
            told["error"] = "insufficient_scope"
        elif "authorization" in visit.headers:
            told["error"] = "invalid_token"
        if scope:
            told["scope"] = scope
        if self.plan.challenge_path is not None:
            told["resource_metadata"] = self.stage.url() + self.plan.challenge_path
        header = "Bearer " + ", ".join(f'{name}="{value}"' for name, value in told.items())
        error = told.get("error", "unauthorized")
        visit.respond(status, {"error": error}, headers={"WWW-Authenticate": header})


def _covers(grant: Grant, scope: str) -> bool:
    return set(scope.split()) <= set(grant.scope.split())
