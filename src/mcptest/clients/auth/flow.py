"""The steps of an authorization, found again in a capture. Pure; nothing is judged here."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl, unquote_plus, urlsplit

import msgspec

from mcptest.clients.auth.plan import BASIC, POST, PUBLIC, AuthPlan
from mcptest.clients.seen import Seen, Visited
from mcptest.model.show import show
from mcptest.peer.scripted.script import MCP

OK, CREATED, REDIRECTED = 200, 201, 302


def to_the_server(seen: Seen) -> list[Visited]:
    """Requests to the MCP endpoint, whatever became of them."""
    return seen.visited(MCP, seen.endpoint)


def of_the_resource(seen: Seen, plan: AuthPlan) -> list[Visited]:
    """Requests for the metadata of the protected resource, at the place where it is."""
    return _at(seen, (MCP,), "GET", plan.prm_path)


def of_the_issuer(seen: Seen, plan: AuthPlan) -> list[Visited]:
    """Requests for the metadata of the authorization server, at the place where it is."""
    return _at(seen, plan.origins, "GET", plan.metadata_path)


def registrations(seen: Seen, plan: AuthPlan) -> list[Visited]:
    return _at(seen, plan.origins, "POST", f"{plan.endpoints}/register")


def authorizations(seen: Seen, plan: AuthPlan) -> list[Visited]:
    return _at(seen, plan.origins, "GET", f"{plan.endpoints}/authorize")


def token_requests(seen: Seen, plan: AuthPlan) -> list[Visited]:
    return _at(seen, plan.origins, "POST", f"{plan.endpoints}/token")


def redirects(seen: Seen, plan: AuthPlan) -> list[Visited]:
    """Authorizations that led back to the client."""
    return [one for one in authorizations(seen, plan) if one.status == REDIRECTED]


def _at(seen: Seen, origins: tuple[str, ...], method: str, path: str | None) -> list[Visited]:
    """In the order in which they came."""
    if path is None:
        return []
    found = [one for origin in origins for one in seen.visited(origin, path)]
    return sorted((one for one in found if one.method == method), key=lambda visited: visited.place)


# What was said in them


def told(visited: Visited) -> dict[str, Any]:
    """The answer, where it is a JSON object."""
    return _object(visited.answer)


def asked(visited: Visited) -> dict[str, Any]:
    """The body, where it is a JSON object, as of a registration."""
    return _object(visited.body)


def _object(raw: bytes) -> dict[str, Any]:
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def code_of(authorization: Visited) -> str:
    """The code with which an authorization led back."""
    location = authorization.answer_headers.get("location", "")
    return dict(parse_qsl(urlsplit(location).query)).get("code", "")


def by_code(seen: Seen, plan: AuthPlan) -> Iterator[tuple[Visited, Visited]]:
    """Each token request with the authorization that it follows."""
    known = {code_of(one): one for one in redirects(seen, plan)}
    for request in token_requests(seen, plan):
        authorization = known.get(request.form.get("code", ""))
        if authorization is not None:
            yield authorization, request


def scopes_of(authorization: Visited) -> list[str]:
    return authorization.query.get("scope", "").split()


def tokens_issued(seen: Seen, plan: AuthPlan) -> dict[str, Visited]:
    """Every token that was given out, with the request that got it."""
    answers = {told(one).get("access_token"): one for one in token_requests(seen, plan)}
    return {token: one for token, one in answers.items() if isinstance(token, str)}


def bearer_of(visited: Visited) -> str | None:
    """The token in the header; None when there is none of this scheme."""
    scheme, separator, token = visited.headers.get("authorization", "").partition(" ")
    return token.strip() if separator and scheme.lower() == "bearer" else None


def s256(verifier: str) -> str:
    digest = hashlib.sha256(verifier.encode("utf-8", "surrogateescape")).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


class Identified(msgspec.Struct, frozen=True):
    """How a client said at the token endpoint who it is."""

    method: str
    client_id: str = ""
    secret: str = ""
    problem: str = ""


def identified(request: Visited) -> Identified:
    """By the header or by the form, as RFC 6749 has it in 2.3.1."""
    form = request.form
    header = request.headers.get("authorization")
    if header is None:
        method = POST if form.get("client_secret") else PUBLIC
        return Identified(method, form.get("client_id", ""), form.get("client_secret", ""))
    scheme, _, encoded = header.partition(" ")
    if scheme.lower() != "basic":
        return Identified(
            show(scheme, 40), problem="the scheme of the Authorization header is not Basic"
        )
    try:
        pair = base64.b64decode(encoded.strip(), validate=True).decode()
    except (binascii.Error, ValueError):
        return Identified(BASIC, problem="what follows Basic is not base64 of text")
    client_id, colon, secret = pair.partition(":")
    problem = "" if colon else "there is no colon between client id and secret"
    return Identified(BASIC, unquote_plus(client_id), unquote_plus(secret), problem)
