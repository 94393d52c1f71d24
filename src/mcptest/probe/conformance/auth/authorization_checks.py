"""What is asked of a client in scenarios about authorization: the steps of the flow, found again in
a capture, and where it looks for metadata, which scopes it asks for, who it says it is, and what it
does with what comes back.

The server of a scenario is an `AuthPlan`. Checks look at an `AuthFlow`: the plan, and what a client
did about it.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias
from urllib.parse import parse_qs, parse_qsl, unquote_plus, urlsplit

import msgspec
from msgspec.structs import replace

from mcptest.core.safe_text import show
from mcptest.core.scenario_outcome import CheckStatus
from mcptest.probe.conformance.auth.protected_server import (
    AS,
    BASIC,
    MOST_REFUSALS,
    POST,
    PUBLIC,
    SECOND_AS,
    TOOL,
    AuthPlan,
    ProtectedServer,
)
from mcptest.probe.conformance.client.seen import SeenSession, Visited
from mcptest.probe.conformance.scenario import (
    CheckFinding,
    Findings,
    Judge,
    bad,
    expect,
    findings_of,
    good,
    info,
    missing,
    object_in,
    shown,
    skipped,
    verdict,
    worst,
)
from mcptest.servers.scripted.script import MCP, Obj
from mcptest.transport.listener import LOOPBACK

OK, CREATED, REDIRECTED = 200, 201, 302
_APPLICATION_TYPES = ("native", "web")


class AuthFlow:
    """What a client did about a plan, step by step; each in the order in which it came."""

    def __init__(self, seen: SeenSession, plan: AuthPlan) -> None:
        self.seen = seen
        self.plan = plan
        self.to_the_server = seen.visited(MCP, seen.endpoint)
        """Requests to the MCP endpoint, whatever became of them."""
        self.of_the_resource = self._at((MCP,), "GET", plan.prm_path)
        """Requests for the metadata of the protected resource, at the place where it is."""
        self.of_the_issuer = self._at(plan.origins, "GET", plan.metadata_path)
        """Requests for the metadata of the authorization server, at the place where it is."""
        self.registrations = self._at(plan.origins, "POST", f"{plan.endpoints}/register")
        self.authorizations = self._at(plan.origins, "GET", f"{plan.endpoints}/authorize")
        self.token_requests = self._at(plan.origins, "POST", f"{plan.endpoints}/token")

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

    def requests(self, *steps: str) -> list[Visited]:
        """Of the steps that these members have."""
        return [one for step in steps for one in getattr(self, step)]

    def only_at(self, origin: str, visits: list[Visited]) -> list[Visited]:
        return [one for one in visits if one.origin == self.seen.urls.get(origin)]

    def _at(self, origins: tuple[str, ...], method: str, path: str | None) -> list[Visited]:
        if path is None:
            return []
        found = (one for origin in origins for one in self.seen.visited(origin, path))
        return sorted((one for one in found if one.method == method), key=lambda one: one.place)


def answer_of(visited: Visited) -> dict[str, Any]:
    return object_of(visited.answer)


def object_of(raw: bytes) -> dict[str, Any]:
    """What a body says, where it is a JSON object; an empty one where it is none."""
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
        return Identified(BASIC, problem="the Basic credentials are not valid base64")
    client_id, colon, secret = pair.partition(":")
    problem = "" if colon else "the Basic credentials have no colon between client id and secret"
    return Identified(BASIC, unquote_plus(client_id), unquote_plus(secret), problem)


Problem: TypeAlias = Callable[[Visited], str | Iterable[str]]


def _each(step: str, *, mild: bool = False) -> Callable[[Problem], Judge[AuthFlow]]:
    """The same of every request of a step."""
    return lambda problem: (
        lambda auth: (verdict(problem(one), one, mild=mild) for one in auth.requests(step))
    )


def each_has(step: str, parameter: str, problem: str) -> Judge[AuthFlow]:
    return _each(step)(lambda one: "" if parameters(one).get(parameter) else problem)


def gets_to(step: str) -> Judge[AuthFlow]:
    return lambda auth: map(good, auth.requests(step))


@_each("registrations")
def client_registration(registration: Visited) -> str:
    return "" if registration.status == CREATED else "the body is not a JSON object"


@_each("registrations")
def application_type_present(registration: Visited) -> str:
    kind = object_of(registration.body).get("application_type")
    problem = f"application_type is {shown(kind)}; expected one of {_APPLICATION_TYPES}"
    return "" if kind in _APPLICATION_TYPES else problem


@_each("authorizations")
def authorization_request(one: Visited) -> list[str]:
    kind = one.query.get("response_type")
    problems = [] if kind == "code" else [f"response_type is {shown(kind)}, not code"]
    absent = [name for name in ("client_id", "redirect_uri") if not one.query.get(name)]
    return [*problems, *(f"{name} is missing" for name in absent)]


@_each("authorizations")
def pkce_s256_method_used(authorization: Visited) -> str:
    method = authorization.query.get("code_challenge_method")
    return "" if method == "S256" else f"code_challenge_method is {shown(method)}, not S256"


def token_request(auth: AuthFlow) -> Findings:
    given = {code_of(one) for one in auth.redirects}
    for one in auth.token_requests:
        kind, code, problem = one.form.get("grant_type"), one.form.get("code"), ""
        if kind != "authorization_code":
            problem = f"grant_type is {shown(kind)}, not authorization_code"
        elif code not in given:
            problem = f"the client sent the code {shown(code)}, which was never issued"
        elif one.status != OK:
            problem = f"the answer is {one.status}: {answer_of(one).get('error_description', '')}"
        yield verdict(problem, one)


def pkce_verifier_matches_challenge(auth: AuthFlow) -> Findings:
    for asked, request in auth.by_code:
        challenge, verifier = asked.query.get("code_challenge"), request.form.get("code_verifier")
        if not challenge or not verifier:
            yield bad("the client sent no challenge and verifier to compare", request)
            continue
        digest = hashlib.sha256(verifier.encode("utf-8", "surrogateescape")).digest()
        proves = base64.urlsafe_b64encode(digest).decode().rstrip("=") == challenge
        yield expect(proves, "S256 of the code_verifier is not the code_challenge", request)


def valid_bearer_token(auth: AuthFlow) -> Findings:
    return (good(one) for one in auth.to_the_server if bearer_of(one) in auth.tokens_issued)


def invalid_bearer_token(auth: AuthFlow) -> Findings:
    issued = auth.tokens_issued
    for one in auth.to_the_server:
        token = bearer_of(one)
        if token is not None:
            yield expect(
                token in issued, "the client sent a bearer token that was never issued", one
            )


_LEFT_OUT = "the resource parameter is missing, as other checks report"


def _given(auth: AuthFlow) -> Iterator[tuple[Visited, str]]:
    for one in (*auth.authorizations, *auth.token_requests):
        yield one, parameters(one).get("resource", "")


def resource_parameter_valid_uri(auth: AuthFlow) -> Findings:
    for where, resource in _given(auth):
        problem = "has a fragment" if "#" in resource else ""
        try:
            parts = urlsplit(resource)
            problem = problem if parts.scheme and parts.netloc else "is not an absolute URI"
        except ValueError:
            problem = "is not a URI"
        said = verdict(problem and f"{shown(resource)} {problem}", where)
        yield said if resource else skipped(_LEFT_OUT)


def resource_parameter_consistency(auth: AuthFlow) -> Findings:
    for asked, request in auth.by_code:
        first, second = asked.query.get("resource"), request.form.get("resource")
        if not first or not second:
            yield skipped(_LEFT_OUT)
        else:
            problem = (
                f"the client authorized {shown(first)} but requested the token for {shown(second)}"
            )
            yield expect(first == second, problem, request)


def resource_parameter_matches_prm(auth: AuthFlow) -> Findings:
    published = {answer_of(one).get("resource") for one in auth.of_the_resource}
    expected = " or ".join(map(shown, published))
    for where, resource in _given(auth) if published else ():
        problem = f"{shown(resource)} differs from the published {expected}"
        said = expect(resource in published, problem, where)
        yield said if resource else skipped(_LEFT_OUT)


# -- What particular scenarios are about -----------------------------------------------------------

OFFLINE = "offline_access"
_FORBIDDEN = 403
_NEVER_READ_METADATA = "the client never read the authorization server metadata"


def _stopped(
    came: Sequence[Visited], unreached: str, further: list[Visited], fault: str
) -> Findings:
    """A client that never came so far has decided nothing; one that did goes no further."""
    if not came:
        yield missing(unreached)
        return
    yield from (bad(fault, one) for one in further)
    yield good(came[0])


def stops_after(
    reached: str, unreached: str, further: Sequence[str], fault: str
) -> Judge[AuthFlow]:
    return lambda auth: _stopped(auth.requests(reached), unreached, auth.requests(*further), fault)


def leaves_alone(origin: str, path: str, read: str, why: str) -> Judge[AuthFlow]:
    """What is at the root is not for a client that was told of another place."""

    def judge(auth: AuthFlow) -> Findings:
        message = f"the client requested it at the root, although {why.format(plan=auth.plan)}"
        yield from (bad(message, one) for one in auth.seen.visited(origin, path))
        yield from map(good, auth.requests(read))

    return judge


def in_order(origin: str, *places: str) -> Judge[AuthFlow]:
    """Each place was tried before the next one, down to the last, where the document is."""

    def judge(auth: AuthFlow) -> CheckFinding | None:
        tried = [auth.seen.visited(origin, path)[:1] for path in places]
        problems, latest = [], -1
        for path, first in zip(places, tried, strict=True):
            if not first:
                problems.append(f"the client did not try {path}")
            elif first[0].place < latest:
                problems.append(f"the client tried {path} too late")
            latest = max([latest, *(one.place for one in first)])
        return verdict(problems, tried[-1][0]) if tried[-1] else None

    return judge


def asks_for(scopes: Sequence[str], nth: int | None = None) -> Judge[AuthFlow]:
    """This authorization, or all of them, are for these scopes."""

    def judge(auth: AuthFlow) -> Findings:
        every = auth.authorizations
        for one in every if nth is None else every[nth - 1 : nth]:
            fault = f"scope is {shown(one.query.get('scope'))}; expected {' '.join(scopes)}"
            yield expect({*scopes} <= {*scopes_of(one)}, fault, one, mild=True)

    return judge


@_each("authorizations", mild=True)
def scope_omitted_when_undefined(authorization: Visited) -> str:
    scope = authorization.query.get("scope")
    asked = bool(scopes_of(authorization))
    return f"scope is {shown(scope)}, although no scopes are defined" if asked else ""


def scope_retry_limit(auth: AuthFlow) -> CheckFinding | None:
    attempts = auth.authorizations
    refused = any(one.status == _FORBIDDEN for one in auth.to_the_server)
    if attempts and not refused:
        return missing("the client sent no request that was rejected with 403")
    if len(attempts) > MOST_REFUSALS:
        message = f"the client authorized {len(attempts)} times; expected at most {MOST_REFUSALS}"
        return bad(message, attempts[MOST_REFUSALS], attempts=len(attempts))
    if attempts:
        return good(attempts[-1], attempts=len(attempts))
    return None


def offline_access_requested(auth: AuthFlow) -> Findings:
    for one in auth.authorizations:
        chose_not_to = info(f"the client did not request {OFFLINE}, which is optional")
        yield good(one) if OFFLINE in scopes_of(one) else chose_not_to


@_each("authorizations")
def offline_access_not_requested(authorization: Visited) -> str:
    fault = f"the client requested {OFFLINE}, which the server does not list"
    return fault if OFFLINE in scopes_of(authorization) else ""


@_each("registrations", mild=True)
def client_metadata_grant_types(registration: Visited) -> str:
    kinds = object_of(registration.body).get("grant_types")
    fine = isinstance(kinds, list) and "refresh_token" in kinds
    return "" if fine else f"grant_types is {shown(kinds)}, without refresh_token"


@_each("authorizations", mild=True)
def cimd_client_id_used(authorization: Visited) -> str:
    """The client id is the address of a document about the client."""
    client_id, fine = authorization.query.get("client_id", ""), False
    with contextlib.suppress(ValueError):
        parts = urlsplit(client_id)
        fine = parts.scheme == "https" and bool(parts.netloc) and parts.path not in {"", "/"}
    return "" if fine else f"client_id is {shown(client_id)}, not the https URL of a document"


def _identify_as(
    requests: Iterable[Visited], method: str, known: set[tuple[Any, Any]], foreign: str
) -> Findings:
    """`known` are the pairs of client id and secret that the client may have."""
    for one in requests:
        who = identified(one)
        problem = f"the client used {who.method}, the server only supports {method}"
        if who.method == method:
            is_known = (who.client_id, who.secret) in known
            problem = who.problem or ("" if is_known else foreign.format(shown(who.client_id)))
        yield verdict(problem, one)


def token_endpoint_auth_method(auth: AuthFlow) -> Findings:
    answers = map(answer_of, auth.registrations)
    known = {(one.get("client_id"), one.get("client_secret", "")) for one in answers}
    foreign = "the client id and secret differ from the registered ones"
    return _identify_as(auth.token_requests, auth.plan.method, known, foreign)


def pre_registration_auth(auth: AuthFlow) -> Findings:
    known = {(auth.plan.client_id, auth.plan.client_secret)}
    foreign = "the client id {} and its secret differ from the given ones"
    return _identify_as(auth.token_requests, BASIC, known, foreign)


def reregister_on_as_change(auth: AuthFlow) -> Findings:
    return map(good, auth.only_at(SECOND_AS, auth.registrations))


def no_reuse_on_as_change(auth: AuthFlow) -> Findings:
    """Only a client that came to the second server can have left anything behind."""
    former = auth.only_at(AS, auth.registrations)
    known = {answer_of(one).get("client_id") for one in former}
    for one in auth.only_at(SECOND_AS, auth.authorizations):
        yield _not_of_the_former(one, one.query.get("client_id", ""), known)
    for one in auth.only_at(SECOND_AS, auth.token_requests):
        yield _not_of_the_former(one, identified(one).client_id, known)


def no_cross_as_credential_reuse(auth: AuthFlow) -> Findings:
    yield from no_reuse_on_as_change(auth)
    answers = map(answer_of, auth.only_at(AS, auth.registrations + auth.token_requests))
    named = (one.get(key) for one in answers for key in ("client_secret", "access_token"))
    former = {one for one in named if isinstance(one, str)}
    for one in auth.only_at(SECOND_AS, auth.seen.visits):
        if former & {bearer_of(one), identified(one).secret}:
            yield bad("the client sent a secret or token of the old authorization server", one)


def _not_of_the_former(where: Visited, client_id: str, known: set[object]) -> CheckFinding:
    problem = f"client_id {shown(client_id)} belongs to the old authorization server"
    return expect(client_id not in known, problem, where)


def credentials_bound_to_issuer(auth: AuthFlow) -> Findings:
    read = auth.of_the_resource
    if not read:
        yield missing("the client never read which authorization server applies")
        return
    for one in auth.authorizations:
        if one.query.get("client_id") == auth.plan.client_id:
            yield bad(
                f"the client id belongs to {auth.plan.registered_with}, not to this server", one
            )
    for one in auth.token_requests:
        who = identified(one)
        if auth.plan.client_id == who.client_id or auth.plan.client_secret == who.secret:
            yield bad(
                f"the credentials belong to {auth.plan.registered_with}, not to this server", one
            )
    yield good(read[0])


def throws_response_away(auth: AuthFlow) -> Findings:
    if auth.plan.metadata_path is not None and not auth.of_the_issuer:
        return iter((missing(_NEVER_READ_METADATA),))
    return _stopped(
        auth.redirects[-1:],
        "the client never received an authorization response",
        auth.token_requests,
        "the client used the code of a response that it should discard",
    )


def token_in_every_request(auth: AuthFlow) -> Findings:
    given = [one.place for one in auth.tokens_issued.values()]
    for one in auth.to_the_server:
        if given and one.place > given[0]:
            problem = f"the client sent {one.method} without its bearer token"
            yield expect(bearer_of(one) is not None, problem, one)


def token_not_in_query(auth: AuthFlow) -> Findings:
    issued = auth.tokens_issued
    for one in auth.seen.visits if issued else ():
        values = {value for found in parse_qs(urlsplit(one.url).query).values() for value in found}
        problem = f"the client sent the token in the query of {one.method} {shown(one.path)}"
        yield expect(not values & issued.keys(), problem, one)


def token_only_for_its_server(auth: AuthFlow) -> Findings:
    issued = auth.tokens_issued
    own = {one.stream for one in auth.to_the_server}
    for one in auth.seen.visits if issued else ():
        shown_here = one.headers.get("authorization", "").rpartition(" ")[2] in issued
        if one.stream in own:
            yield good(one)
        elif shown_here:
            yield bad(f"the client sent the token to {shown(one.origin + one.path)}", one)


def redirect_uri_consistent(auth: AuthFlow) -> Findings:
    named = (object_of(one.body).get("redirect_uris") for one in auth.registrations)
    registered = [uri for uris in named if isinstance(uris, list) for uri in uris]
    for asked, request in auth.by_code:
        first, second = asked.query.get("redirect_uri"), request.form.get("redirect_uri")
        problems = []
        if registered and first not in registered:
            problems.append(f"redirect_uri {shown(first)} was not registered")
        if second not in {None, first}:
            problems.append(f"the token request has another redirect_uri than {shown(first)}")
        yield verdict(problems, request)


@_each("authorizations")
def redirect_uri_safe(authorization: Visited) -> str:
    target, fine = authorization.query.get("redirect_uri", ""), False
    with contextlib.suppress(ValueError):
        parts = urlsplit(target)
        fine = parts.scheme == "https" or parts.hostname in LOOPBACK
    return "" if fine else f"redirect_uri {shown(target)} is neither https nor on this machine"


def state_sent(auth: AuthFlow) -> Findings:
    used: set[str] = set()
    for one in auth.authorizations:
        state = one.query.get("state", "")
        problem = "the client reused a state" if state in used else ""
        if not state:
            problem = "the client sent no state, so it cannot recognize a forged response"
        yield verdict(problem, one, mild=True)
        used.add(state)


def state_mismatch_rejected(auth: AuthFlow) -> Findings:
    redirects = auth.redirects
    if redirects and not any(one.query.get("state") for one in redirects):
        yield skipped("the client sent no state, so it has nothing to compare")
        return
    for row in throws_response_away(auth):
        only_recommended = row.status is CheckStatus.FAILURE and redirects
        yield replace(row, status=CheckStatus.WARNING) if only_recommended else row


_USES_TOOL = " The client should list the tools and call `test-tool`."


def completed(entry: Obj) -> Obj:
    """The script plays the plan of a scenario; its checks look at an `AuthFlow`."""
    plan = msgspec.convert(entry.pop("plan"), AuthPlan)
    if not entry.get("client_may_fail"):
        entry["description"] += _USES_TOOL
    return {
        **entry,
        "script": lambda: ProtectedServer(plan),
        "checks": [_of_plan(one, plan) for one in entry["checks"]],
        "context": {"toolCalls": [{"name": TOOL, "arguments": {}}]},
        "transports": ["http"],
    }


def _of_plan(check: Obj, plan: AuthPlan) -> Obj:
    """It looks at all steps of a kind, and says the worst of them."""

    def judge(seen: SeenSession) -> CheckFinding | None:
        return worst(findings_of(check["judge"](AuthFlow(seen, plan))))

    return {**check, "judge": judge, "description": check["description"].format(plan=plan)}
