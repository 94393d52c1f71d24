"""The steps of an authorization, found again in a capture, and the checks that every scenario about
authorization has, whatever else it is about.

The server of a scenario is an `AuthPlan`. Checks look at an `AuthFlow`: the plan, and what a client
did about it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Any
from urllib.parse import parse_qsl, unquote_plus, urlsplit

import msgspec

from mcptest.core.safe_text import show
from mcptest.probe.conformance.auth.protected_server import BASIC, POST, PUBLIC, AuthPlan
from mcptest.probe.conformance.client.seen import SeenSession, Visited
from mcptest.probe.conformance.scenario import (
    Findings,
    Judge,
    bad,
    good,
    object_in,
    shown,
    skipped,
    verdict,
)
from mcptest.servers.scripted.script import MCP

OK, CREATED, REDIRECTED = 200, 201, 302
_APPLICATION_TYPES = ("native", "web")


class AuthFlow:
    """What a client did about a plan, step by step; each in the order in which it came."""

    def __init__(self, seen: SeenSession, plan: AuthPlan) -> None:
        self.seen = seen
        self.plan = plan

    @property
    def to_the_server(self) -> list[Visited]:
        """Requests to the MCP endpoint, whatever became of them."""
        return self.seen.visited(MCP, self.seen.endpoint)

    @property
    def of_the_resource(self) -> list[Visited]:
        """Requests for the metadata of the protected resource, at the place where it is."""
        return self._at((MCP,), "GET", self.plan.prm_path)

    @property
    def of_the_issuer(self) -> list[Visited]:
        """Requests for the metadata of the authorization server, at the place where it is."""
        return self._at(self.plan.origins, "GET", self.plan.metadata_path)

    @property
    def registrations(self) -> list[Visited]:
        return self._at(self.plan.origins, "POST", f"{self.plan.endpoints}/register")

    @cached_property
    def authorizations(self) -> list[Visited]:
        return self._at(self.plan.origins, "GET", f"{self.plan.endpoints}/authorize")

    @cached_property
    def token_requests(self) -> list[Visited]:
        return self._at(self.plan.origins, "POST", f"{self.plan.endpoints}/token")

    @property
    def redirects(self) -> list[Visited]:
        """Authorizations that led back to the client."""
        return [one for one in self.authorizations if one.status == REDIRECTED]

    @property
    def by_code(self) -> Iterator[tuple[Visited, Visited]]:
        """Each token request with the authorization that it follows."""
        known = {code_of(one): one for one in self.redirects}
        for request in self.token_requests:
            authorization = known.get(request.form.get("code", ""))
            if authorization is not None:
                yield authorization, request

    @property
    def tokens_issued(self) -> dict[str, Visited]:
        """Every token that was given out, with the request that got it."""
        answers = {answer_of(one).get("access_token"): one for one in self.token_requests}
        return {token: one for token, one in answers.items() if isinstance(token, str)}

    def only_at(self, origin: str, visits: list[Visited]) -> list[Visited]:
        return [one for one in visits if one.origin == self.seen.urls.get(origin)]

    def _at(self, origins: tuple[str, ...], method: str, path: str | None) -> list[Visited]:
        if path is None:
            return []
        found = (one for origin in origins for one in self.seen.visited(origin, path))
        return sorted((one for one in found if one.method == method), key=lambda one: one.place)


def answer_of(visited: Visited) -> dict[str, Any]:
    """The answer, where it is a JSON object."""
    return _object(visited.answer)


def body_of(visited: Visited) -> dict[str, Any]:
    """The body, where it is a JSON object, as of a registration."""
    return _object(visited.body)


def _object(raw: bytes) -> dict[str, Any]:
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        return {}
    return object_in(value)


def parameters(visited: Visited) -> dict[str, str]:
    """Of an authorization in its query, of a token request in its form."""
    return visited.query if visited.method == "GET" else visited.form


def code_of(authorization: Visited) -> str:
    """The code with which an authorization led back."""
    location = authorization.answer_headers.get("location", "")
    return dict(parse_qsl(urlsplit(location).query)).get("code", "")


def scopes_of(authorization: Visited) -> list[str]:
    return authorization.query.get("scope", "").split()


def bearer_of(visited: Visited) -> str | None:
    """The token in the header; None when there is none of this scheme."""
    scheme, separator, token = visited.headers.get("authorization", "").partition(" ")
    return token.strip() if separator and scheme.lower() == "bearer" else None


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


def each(
    step: str, problem: Callable[[Visited], str | Iterable[str]], *, mild: bool = False
) -> Judge[AuthFlow]:
    """The same of every request of a step."""
    return lambda auth: (verdict(problem(one), one, mild=mild) for one in getattr(auth, step))


def _each_has(step: str, parameter: str, problem: str) -> Judge[AuthFlow]:
    return each(step, lambda one: "" if parameters(one).get(parameter) else problem)


def _unnamed_application_type(registration: Visited) -> str:
    kind = body_of(registration).get("application_type")
    problem = f"application_type is {shown(kind)}; expected one of {_APPLICATION_TYPES}"
    return "" if kind in _APPLICATION_TYPES else problem


def _authorization_problems(one: Visited) -> list[str]:
    kind = one.query.get("response_type")
    problems = [] if kind == "code" else [f"response_type is {shown(kind)}, not code"]
    absent = [name for name in ("client_id", "redirect_uri") if not one.query.get(name)]
    return [*problems, *(f"{name} is missing" for name in absent)]


def _not_s256(authorization: Visited) -> str:
    method = authorization.query.get("code_challenge_method")
    return "" if method == "S256" else f"code_challenge_method is {shown(method)}, not S256"


def _token_requested(auth: AuthFlow) -> Findings:
    given = {code_of(one) for one in auth.redirects}
    for one in auth.token_requests:
        kind, code, problem = one.form.get("grant_type"), one.form.get("code"), ""
        if kind != "authorization_code":
            problem = f"grant_type is {shown(kind)}, not authorization_code"
        elif code not in given:
            problem = f"the code {shown(code)} was never given"
        elif one.status != OK:
            problem = f"the answer is {one.status}: {answer_of(one).get('error_description', '')}"
        yield verdict(problem, one)


def _proves_it(auth: AuthFlow) -> Findings:
    for asked, request in auth.by_code:
        challenge, verifier = asked.query.get("code_challenge"), request.form.get("code_verifier")
        if not challenge or not verifier:
            yield bad("there is no challenge and verifier to compare", request)
            continue
        digest = hashlib.sha256(verifier.encode("utf-8", "surrogateescape")).digest()
        proves = base64.urlsafe_b64encode(digest).decode().rstrip("=") == challenge
        problem = "S256 of the code_verifier is not the code_challenge"
        yield verdict("" if proves else problem, request)


def _makes_none_up(auth: AuthFlow) -> Findings:
    issued = auth.tokens_issued
    for one in auth.to_the_server:
        token = bearer_of(one)
        if token is not None:
            problem = "the bearer token is none that was given out"
            yield verdict("" if token in issued else problem, one)


_LEFT_OUT = "the resource parameter is missing: see the checks about that"


def _given(auth: AuthFlow) -> Iterator[tuple[Visited, str]]:
    for one in (*auth.authorizations, *auth.token_requests):
        yield one, parameters(one).get("resource", "")


def _is_canonical(auth: AuthFlow) -> Findings:
    for where, resource in _given(auth):
        problem = "has a fragment" if "#" in resource else ""
        try:
            parts = urlsplit(resource)
            problem = problem if parts.scheme and parts.netloc else "is no absolute URI"
        except ValueError:
            problem = "is no URI"
        said = verdict(problem and f"{shown(resource)} {problem}", where)
        yield said if resource else skipped(_LEFT_OUT)


def _is_the_same(auth: AuthFlow) -> Findings:
    for asked, request in auth.by_code:
        first, second = asked.query.get("resource"), request.form.get("resource")
        if not first or not second:
            yield skipped(_LEFT_OUT)
        else:
            problem = f"authorized for {shown(first)}, the token is asked for {shown(second)}"
            yield verdict("" if first == second else problem, request)


def _is_as_published(auth: AuthFlow) -> Findings:
    published = {answer_of(one).get("resource") for one in auth.of_the_resource}
    expected = " or ".join(map(shown, published))
    for where, resource in _given(auth) if published else ():
        problem = f"{shown(resource)} is not the published {expected}, character by character"
        said = verdict("" if resource in published else problem, where)
        yield said if resource else skipped(_LEFT_OUT)


JUDGES: dict[str, Judge[AuthFlow]] = {
    "prm-pathbased-requested": lambda auth: map(good, auth.of_the_resource),
    "authorization-server-metadata": lambda auth: map(good, auth.of_the_issuer),
    "client-registration": each(
        "registrations", lambda one: "" if one.status == CREATED else "the body is no JSON object"
    ),
    "sep-837-application-type-present": each("registrations", _unnamed_application_type),
    "authorization-request": each("authorizations", _authorization_problems),
    "pkce-code-challenge-sent": _each_has("authorizations", "code_challenge", "no code_challenge"),
    "pkce-s256-method-used": each("authorizations", _not_s256),
    "token-request": _token_requested,
    "pkce-code-verifier-sent": _each_has("token_requests", "code_verifier", "no code_verifier"),
    "pkce-verifier-matches-challenge": _proves_it,
    "valid-bearer-token": lambda auth: (
        good(one) for one in auth.to_the_server if bearer_of(one) in auth.tokens_issued
    ),
    "invalid-bearer-token": _makes_none_up,
    "resource-parameter-in-authorization": _each_has(
        "authorizations", "resource", "no resource parameter"
    ),
    "resource-parameter-in-token": _each_has("token_requests", "resource", "no resource parameter"),
    "resource-parameter-valid-uri": _is_canonical,
    "resource-parameter-consistency": _is_the_same,
    "resource-parameter-matches-prm": _is_as_published,
}
