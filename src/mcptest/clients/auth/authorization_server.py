"""A scripted authorization server. It gives a token to whoever asks in any way for one.

It refuses next to nothing, so that one fault of a client does not hide the next: whether the client
did well is for the checks to say. There is no user and no browser: it redirects at once.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import msgspec

from mcptest.clients.auth.plan import FOREIGN_ISSUER, PUBLIC, AuthPlan
from mcptest.peer.scripted.script import Obj, Visit

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
        visit.respond(200, dict(self._metadata()))

    def _metadata(self) -> Iterator[tuple[str, Any]]:
        plan, base = self._plan, self._url + self._plan.endpoints
        yield "issuer", self.named_issuer
        yield "authorization_endpoint", f"{base}/authorize"
        yield "token_endpoint", f"{base}/token"
        if plan.registers:
            yield "registration_endpoint", f"{base}/register"
        yield "response_types_supported", ["code"]
        yield "grant_types_supported", ["authorization_code", "refresh_token"]
        yield "token_endpoint_auth_methods_supported", [plan.method]
        if plan.says_s256:
            yield "code_challenge_methods_supported", ["S256"]
        if plan.announces_iss is not None:
            yield "authorization_response_iss_parameter_supported", plan.announces_iss
        if plan.offered_scopes is not None:
            yield "scopes_supported", list(plan.offered_scopes)
        if plan.takes_documents is not None:
            yield "client_id_metadata_document_supported", plan.takes_documents
        if plan.is_openid:
            yield "jwks_uri", f"{self._url}/.well-known/jwks.json"
            yield "subject_types_supported", ["public"]
            yield "id_token_signing_alg_values_supported", ["RS256"]

    def _register(self, visit: Visit) -> None:
        try:
            asked = json.loads(visit.body)
        except (ValueError, RecursionError):
            asked = None
        if not isinstance(asked, dict):
            _refuse(visit, "invalid_client_metadata", "the body is no JSON object")
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
        if not _can_be_redirected_to(target):
            _refuse(visit, "invalid_request", "there is no redirect_uri to go to")
            return
        code = self._grants.new_name("code", self._origin)
        keep(self._grants.codes, code, Grant(self._origin, visit.query.get("scope", "")))
        answer = {"code": code}
        if "state" in visit.query:
            state = visit.query["state"]
            answer["state"] = f"not-{state}" if self._plan.changes_state else state
        iss = self._redirected_issuer()
        if iss is not None:
            answer["iss"] = iss
        visit.respond(_FOUND, headers={"Location": _with_query(target, answer)})

    def _redirected_issuer(self) -> str | None:
        return {
            "right": self.named_issuer,
            "left_out": None,
            "foreign": FOREIGN_ISSUER,
            "with_slash": f"{self.named_issuer}/",
        }[self._plan.iss]

    def _give_token(self, visit: Visit) -> None:
        try:
            text = visit.body.decode()
            form = dict(parse_qsl(text, keep_blank_values=True, max_num_fields=MOST_FIELDS))
        except ValueError:
            _refuse(visit, "invalid_request", "the body is no form")
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


def _can_be_redirected_to(target: str) -> bool:
    try:
        return bool(urlsplit(target).scheme)
    except ValueError:
        return False


def _with_query(target: str, answer: Obj) -> str:
    parts = urlsplit(target)
    query = "&".join(part for part in (parts.query, urlencode(answer)) if part)
    return urlunsplit(parts._replace(query=query, fragment=""))
