"""The checks of the steps that every authorization has, whatever its scenario is about."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

from mcptest.clients.auth import flow
from mcptest.clients.auth.plan import AuthPlan
from mcptest.clients.rows import bad, good, reference, shown, verdict, worst_first
from mcptest.clients.scenario import Check, Judge, Row
from mcptest.clients.seen import Seen, Visited
from mcptest.model.conformance import Reference, Status
from mcptest.model.revision import Revision

STATELESS = frozenset({Revision.V2026_07_28})
AUTHORIZATION = "2025-11-25/basic/authorization"
NEW_AUTHORIZATION = "2026-07-28/basic/authorization"
REGISTRATION = f"{NEW_AUTHORIZATION}/client-registration"
DISCOVERY = f"{NEW_AUTHORIZATION}/authorization-server-discovery"
_PKCE = reference("pkce", f"{AUTHORIZATION}#authorization-code-protection")
_DISCOVERY = reference("discovery", f"{AUTHORIZATION}#authorization-server-metadata-discovery")
_TOKENS = reference("tokens", f"{AUTHORIZATION}#access-token-usage")
_OAUTH_21 = "https://www.ietf.org/archive/id/draft-ietf-oauth-v2-1-13.html"
OAUTH_AUTHORIZATION = (Reference("OAuth 2.1", f"{_OAUTH_21}#name-authorization-endpoint"),)
OAUTH_TOKEN = (Reference("OAuth 2.1", f"{_OAUTH_21}#name-token-request"),)
_APPLICATION_TYPES = ("native", "web")

PlanJudge: TypeAlias = Callable[[Seen, AuthPlan], Iterable[Row]]


def of_plan(judge: PlanJudge, plan: AuthPlan) -> Judge:
    """A judge that looks at all steps of a kind, and says the worst of them."""
    return lambda seen: worst_first(judge(seen, plan))


def check(
    identifier: str,
    title: str,
    description: str,
    judge: PlanJudge,
    plan: AuthPlan,
    *,
    references: tuple[Reference, ...] = (),
    silence: Status = Status.FAILURE,
    revisions: frozenset[Revision] | None = None,
) -> Check:
    return Check(
        id=identifier,
        title=title,
        description=description,
        judge=of_plan(judge, plan),
        silence=silence,
        references=references,
        revisions=revisions,
    )


# -- finding out ----------------------------------------------------------------------------------


def _reads_prm(seen: Seen, plan: AuthPlan) -> Iterator[Row]:
    yield from map(good, flow.of_the_resource(seen, plan))


def _reads_metadata(seen: Seen, plan: AuthPlan) -> Iterator[Row]:
    yield from map(good, flow.of_the_issuer(seen, plan))


def prm_read(plan: AuthPlan) -> Check:
    return check(
        "prm-pathbased-requested",
        "PRMPathBasedRequested",
        f"the metadata of the protected resource is read at `{plan.prm_path}`",
        _reads_prm,
        plan,
        references=reference(
            "discovery", f"{AUTHORIZATION}#protected-resource-metadata-discovery-requirements"
        ),
    )


def metadata_read(plan: AuthPlan) -> Check:
    return check(
        "authorization-server-metadata",
        "AuthorizationServerMetadata",
        f"the metadata of the authorization server is read at `{plan.metadata_path}`",
        _reads_metadata,
        plan,
        references=_DISCOVERY,
    )


def discovery(plan: AuthPlan) -> tuple[Check, ...]:
    """Both documents, as far as the plan has them."""
    found = [] if plan.prm_path is None else [prm_read(plan)]
    return (*found, *(() if plan.metadata_path is None else (metadata_read(plan),)))


# -- registering ----------------------------------------------------------------------------------


def _registers(seen: Seen, plan: AuthPlan) -> Iterator[Row]:
    for one in flow.registrations(seen, plan):
        registered = one.status == flow.CREATED
        yield good(one) if registered else bad("the body is no JSON object", one)


def _names_application_type(seen: Seen, plan: AuthPlan) -> Iterator[Row]:
    for one in flow.registrations(seen, plan):
        kind = flow.asked(one).get("application_type")
        problem = f"application_type is {shown(kind)}; expected one of {_APPLICATION_TYPES}"
        yield verdict([] if kind in _APPLICATION_TYPES else [problem], one)


def registration(plan: AuthPlan, *, silence: Status = Status.FAILURE) -> tuple[Check, ...]:
    return (
        check(
            "client-registration",
            "ClientRegistration",
            "the client registers itself with the authorization server",
            _registers,
            plan,
            references=reference("registration", f"{AUTHORIZATION}#dynamic-client-registration"),
            silence=silence,
        ),
        check(
            "sep-837-application-type-present",
            "ApplicationTypePresent",
            "a client that registers says whether it is a native or a web application",
            _names_application_type,
            plan,
            references=reference(
                "SEP-837", f"{REGISTRATION}#application-type-and-redirect-uri-constraints"
            ),
            silence=silence,
            revisions=STATELESS,
        ),
    )


# -- asking the user ------------------------------------------------------------------------------


def _asks(seen: Seen, plan: AuthPlan) -> Iterator[Row]:
    for one in flow.authorizations(seen, plan):
        kind = one.query.get("response_type")
        problems = [] if kind == "code" else [f"response_type is {shown(kind)}, not code"]
        missing = [name for name in ("client_id", "redirect_uri") if not one.query.get(name)]
        yield verdict([*problems, *(f"{name} is missing" for name in missing)], one)


def _sends_challenge(seen: Seen, plan: AuthPlan) -> Iterator[Row]:
    for one in flow.authorizations(seen, plan):
        yield verdict([] if one.query.get("code_challenge") else ["no code_challenge"], one)


def _uses_s256(seen: Seen, plan: AuthPlan) -> Iterator[Row]:
    for one in flow.authorizations(seen, plan):
        method = one.query.get("code_challenge_method")
        problem = f"code_challenge_method is {shown(method)}, not S256"
        yield verdict([] if method == "S256" else [problem], one)


def authorization_requested(plan: AuthPlan) -> Check:
    return check(
        "authorization-request",
        "AuthorizationRequest",
        f"the client goes to `{plan.endpoints}/authorize` for a code",
        _asks,
        plan,
        references=OAUTH_AUTHORIZATION,
    )


def authorization(plan: AuthPlan) -> tuple[Check, ...]:
    return (
        authorization_requested(plan),
        check(
            "pkce-code-challenge-sent",
            "PKCECodeChallenge",
            "every request for a code has a `code_challenge`",
            _sends_challenge,
            plan,
            references=_PKCE,
        ),
        check(
            "pkce-s256-method-used",
            "PKCES256Method",
            "the challenge is made with S256",
            _uses_s256,
            plan,
            references=_PKCE,
        ),
    )


# -- getting a token, and using it ----------------------------------------------------------------


def _asks_for_token(seen: Seen, plan: AuthPlan) -> Iterator[Row]:
    given = {flow.code_of(one) for one in flow.redirects(seen, plan)}
    for one in flow.token_requests(seen, plan):
        yield verdict(_problems_of_token_request(one, given), one)


def _problems_of_token_request(request: Visited, given: set[str]) -> Iterator[str]:
    kind, code = request.form.get("grant_type"), request.form.get("code")
    if kind != "authorization_code":
        yield f"grant_type is {shown(kind)}, not authorization_code"
    elif code not in given:
        yield f"the code {shown(code)} was never given"
    elif request.status != flow.OK:
        error = flow.told(request).get("error_description", "")
        yield f"the answer is {request.status}: {error}"


def _sends_verifier(seen: Seen, plan: AuthPlan) -> Iterator[Row]:
    for one in flow.token_requests(seen, plan):
        yield verdict([] if one.form.get("code_verifier") else ["no code_verifier"], one)


def _proves_it(seen: Seen, plan: AuthPlan) -> Iterator[Row]:
    for asked, request in flow.by_code(seen, plan):
        challenge, verifier = asked.query.get("code_challenge"), request.form.get("code_verifier")
        if not challenge or not verifier:
            yield bad("there is no challenge and verifier to compare", request)
        elif flow.s256(verifier) != challenge:
            yield bad("S256 of the code_verifier is not the code_challenge", request)
        else:
            yield good(request)


def _shows_token(seen: Seen, plan: AuthPlan) -> Iterator[Row]:
    issued = flow.tokens_issued(seen, plan)
    yield from (good(one) for one in flow.to_the_server(seen) if flow.bearer_of(one) in issued)


def _makes_none_up(seen: Seen, plan: AuthPlan) -> Iterator[Row]:
    issued = flow.tokens_issued(seen, plan)
    for one in flow.to_the_server(seen):
        token = flow.bearer_of(one)
        if token is not None:
            problem = "the bearer token is none that was given out"
            yield verdict([] if token in issued else [problem], one)


def token_requested(plan: AuthPlan) -> Check:
    return check(
        "token-request",
        "TokenRequest",
        f"the client exchanges the code for a token at `{plan.endpoints}/token`",
        _asks_for_token,
        plan,
        references=OAUTH_TOKEN,
    )


def token(plan: AuthPlan) -> tuple[Check, ...]:
    return (
        token_requested(plan),
        check(
            "pkce-code-verifier-sent",
            "PKCECodeVerifier",
            "every token request has a `code_verifier`",
            _sends_verifier,
            plan,
            references=_PKCE,
        ),
        check(
            "pkce-verifier-matches-challenge",
            "PKCEVerifierValidation",
            "the verifier is the one that the challenge was made from",
            _proves_it,
            plan,
            references=_PKCE,
        ),
    )


def token_shown(plan: AuthPlan) -> tuple[Check, ...]:
    return (
        check(
            "valid-bearer-token",
            "ValidBearerToken",
            "the client shows the MCP server a token that it was given",
            _shows_token,
            plan,
            references=_TOKENS,
        ),
        check(
            "invalid-bearer-token",
            "InvalidBearerToken",
            "it shows no other",
            _makes_none_up,
            plan,
            references=_TOKENS,
            silence=Status.SKIPPED,
        ),
    )


def whole_flow(plan: AuthPlan, *, registers: bool = True) -> tuple[Check, ...]:
    """From the challenge to the token in use."""
    return (
        *discovery(plan),
        *(registration(plan) if registers else ()),
        *authorization(plan),
        *token(plan),
        *token_shown(plan),
    )


def up_to_authorization(plan: AuthPlan) -> tuple[Check, ...]:
    """Where the client has to decide on what came back from there."""
    return (*discovery(plan), *registration(plan), *authorization(plan))
