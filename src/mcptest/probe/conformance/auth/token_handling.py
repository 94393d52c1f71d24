"""Scenarios about what comes back from an authorization: issuers, states, codes and tokens."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

from msgspec.structs import replace

from mcptest.core.scenario_outcome import CheckStatus, Reference
from mcptest.probe.conformance.auth.flow import (
    AUTHORIZATION,
    DISCOVERY_STEPS,
    NEVER_READ_METADATA,
    NEW_AUTHORIZATION,
    PKCE,
    SINCE_2025_06_18,
    UP_TO_AUTHORIZATION,
    WHOLE_FLOW,
    AuthCheck,
    AuthFlow,
    auth_scenario,
    bearer_of,
    body_of,
    stops_after,
)
from mcptest.probe.conformance.auth.protected_server import FOREIGN_ISSUER, AuthPlan
from mcptest.probe.conformance.client.seen import SeenSession
from mcptest.probe.conformance.scenario import (
    ONLY_2026_07_28,
    Findings,
    Scenario,
    ScenarioCheck,
    bad,
    check,
    good,
    missing,
    reference,
    shown,
    skipped,
    verdict,
)

_RFC_9207 = (
    Reference("RFC 9207", "https://www.rfc-editor.org/rfc/rfc9207.html#section-2.4"),
    *reference("SEP-2468", f"{NEW_AUTHORIZATION}#authorization-response-validation"),
)


# -- who answered ---------------------------------------------------------------------------------


def _stops(auth: AuthFlow) -> Findings:
    if auth.plan.metadata_path is not None and not auth.of_the_issuer:
        yield missing(NEVER_READ_METADATA)
        return
    yield from stops_after(
        auth.redirects[-1:],
        "the client did not get there: it has no authorization response to look at",
        auth.token_requests,
        "the code was used, although the response was to be thrown away",
    )


def _accepted(
    name: str, title: str, about: str, identifier: str, short: str, plan: AuthPlan
) -> Scenario[SeenSession]:
    decided: AuthCheck = ScenarioCheck(
        identifier,
        "the client goes on to the token",
        lambda auth: map(good, auth.token_requests),
        title=short,
        references=_RFC_9207,
    )
    checks = (*WHOLE_FLOW, decided)
    return auth_scenario(name, title, about, plan, checks, revisions=ONLY_2026_07_28)


def _rejected(
    name: str, title: str, about: str, identifier: str, short: str, plan: AuthPlan
) -> Scenario[SeenSession]:
    decided = ScenarioCheck(
        identifier, "the client does not use the code", _stops, title=short, references=_RFC_9207
    )
    return auth_scenario(
        name,
        title,
        f"{about} The client is expected to throw the response away.",
        plan,
        (*UP_TO_AUTHORIZATION, decided),
        revisions=ONLY_2026_07_28,
        gives_up=True,
    )


ISSUERS = (
    _accepted(
        "iss-supported",
        "The right issuer",
        "The metadata promises `iss` in the authorization response, and there it is.",
        "sep-2468-client-compare-iss-supported",
        "RightIssuerAccepted",
        AuthPlan(),
    ),
    _accepted(
        "iss-not-advertised",
        "No issuer, and none promised",
        "Neither does the metadata promise `iss`, nor does the authorization response have it.",
        "sep-2468-client-proceed-no-iss",
        "NoIssuerAccepted",
        AuthPlan(announces_iss=None, iss="left_out"),
    ),
    _rejected(
        "iss-supported-missing",
        "No issuer, although promised",
        "The metadata promises `iss`, and the authorization response does not have it.",
        "sep-2468-client-reject-missing-iss",
        "MissingIssuerRejected",
        AuthPlan(iss="left_out"),
    ),
    _rejected(
        "iss-wrong-issuer",
        "Another issuer",
        f"The metadata promises `iss`, and the authorization response names `{FOREIGN_ISSUER}`.",
        "sep-2468-client-compare-iss-supported",
        "OtherIssuerRejected",
        AuthPlan(iss="foreign"),
    ),
    _rejected(
        "iss-unexpected",
        "Another issuer, and none promised",
        "The metadata does not promise `iss`, and the authorization response names"
        f" `{FOREIGN_ISSUER}`.",
        "sep-2468-client-compare-iss-unadvertised",
        "UnpromisedIssuerRejected",
        AuthPlan(announces_iss=None, iss="foreign"),
    ),
    _rejected(
        "iss-normalized",
        "Nearly the right issuer",
        "The authorization response names the issuer with a slash behind it, which is another one:"
        " issuers are compared character by character.",
        "sep-2468-client-no-normalization",
        "SimilarIssuerRejected",
        AuthPlan(iss="with_slash"),
    ),
)


OURS = ("ours",)
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_TOKENS = reference("tokens", f"{AUTHORIZATION}#token-requirements")
_REDIRECTION = reference("redirects", f"{AUTHORIZATION}#open-redirection")
_SECURITY = reference("redirects", f"{AUTHORIZATION}#communication-security")


# -- tokens ---------------------------------------------------------------------------------------


@check(
    "token-in-every-request",
    "once there is a token, every request to the server has it",
    references=_TOKENS,
)
def _is_always_there(auth: AuthFlow) -> Findings:
    given = [one.place for one in auth.tokens_issued.values()]
    for one in auth.to_the_server:
        if given and one.place > given[0]:
            problem = f"{one.method} without a bearer token, although the client has one"
            yield verdict(problem if bearer_of(one) is None else "", one)


@check("token-not-in-query", "no address has a token in its query", references=_TOKENS)
def _is_not_in_queries(auth: AuthFlow) -> Findings:
    issued = auth.tokens_issued
    for one in auth.seen.visits if issued else ():
        values = {value for found in parse_qs(urlsplit(one.url).query).values() for value in found}
        problem = f"the query of a {one.method} to {shown(one.path)} has the token in it"
        yield verdict(problem if values & issued.keys() else "", one)


@check(
    "token-only-for-its-server",
    "the token is shown to nobody but the server that it is for",
    references=_TOKENS,
)
def _is_for_its_server(auth: AuthFlow) -> Findings:
    issued = auth.tokens_issued
    own = {one.stream for one in auth.to_the_server}
    for one in auth.seen.visits if issued else ():
        shown_here = one.headers.get("authorization", "").rpartition(" ")[2] in issued
        if one.stream in own:
            yield good(one)
        elif shown_here:
            yield bad(f"the token is shown at {shown(one.origin + one.path)}", one)


# -- redirects ------------------------------------------------------------------------------------


@check(
    "redirect-uri-consistent",
    "the redirect is the one that was registered, and the same in both requests",
    references=_REDIRECTION,
)
def _returns_where_it_said(auth: AuthFlow) -> Findings:
    named = (body_of(one).get("redirect_uris") for one in auth.registrations)
    registered = [uri for uris in named if isinstance(uris, list) for uri in uris]
    for asked, request in auth.by_code:
        first, second = asked.query.get("redirect_uri"), request.form.get("redirect_uri")
        problems = []
        if registered and first not in registered:
            problems.append(f"redirect_uri {shown(first)} was not registered")
        if second not in {None, first}:
            problems.append(f"the code came to {shown(first)}, the token request says otherwise")
        yield verdict(problems, request)


@check("redirect-uri-safe", "redirects lead to this machine or to https", references=_SECURITY)
def _returns_safely(auth: AuthFlow) -> Findings:
    for one in auth.authorizations:
        target = one.query.get("redirect_uri", "")
        problem = f"redirect_uri {shown(target)} is neither https nor on this machine"
        yield verdict("" if _is_safe(target) else problem, one)


def _is_safe(target: str) -> bool:
    try:
        parts = urlsplit(target)
        return parts.scheme == "https" or parts.hostname in _LOOPBACK
    except ValueError:
        return False


@check("state-sent", "every request for a code has a state of its own", references=_REDIRECTION)
def _sends_state(auth: AuthFlow) -> Findings:
    used: set[str] = set()
    for one in auth.authorizations:
        state = one.query.get("state", "")
        problem = "the state was used before" if state in used else ""
        if not state:
            problem = "no state is sent, so the response can't be told from a forged one"
        yield verdict(problem, one, mild=True)
        used.add(state)


TOKEN_HANDLING = auth_scenario(
    "token-handling",
    "What becomes of the token",
    "Nothing is out of the ordinary. The client is expected to send its token with every request,"
    " in the header, to this server only, and to be careful about redirects.",
    AuthPlan(challenge_scope="mcp:basic"),
    (
        *WHOLE_FLOW,
        _is_always_there,
        _is_not_in_queries,
        _is_for_its_server,
        _returns_where_it_said,
        _returns_safely,
        _sends_state,
    ),
    revisions=SINCE_2025_06_18,
    suites=OURS,
)


# -- a response that is not the client's ----------------------------------------------------------


@check("state-mismatch-rejected", "the client does not use the code", references=_REDIRECTION)
def _throws_foreign_state_away(auth: AuthFlow) -> Findings:
    redirects = auth.redirects
    if redirects and not any(one.query.get("state") for one in redirects):
        yield skipped("the client sends no state, so it has nothing to compare")
        return
    for row in _stops(auth):
        only_recommended = row.status is CheckStatus.FAILURE and redirects
        yield replace(row, status=CheckStatus.WARNING) if only_recommended else row


STATE_MISMATCH = auth_scenario(
    "state-mismatch",
    "A response to somebody else's request",
    "The authorization response has a state that the client did not send. It is expected to throw"
    " the response away.",
    AuthPlan(changes_state=True),
    (*UP_TO_AUTHORIZATION, _throws_foreign_state_away),
    revisions=SINCE_2025_06_18,
    suites=OURS,
    gives_up=True,
)


# -- no PKCE --------------------------------------------------------------------------------------


@check(
    "pkce-unsupported-rejected",
    "nothing is authorized without PKCE",
    title="PKCEUnsupportedRejected",
    references=PKCE,
)
def _refuses_without_pkce(auth: AuthFlow) -> Findings:
    yield from stops_after(
        auth.of_the_issuer,
        NEVER_READ_METADATA,
        auth.authorizations + auth.token_requests,
        "goes on, although the authorization server does not say that it has PKCE",
    )


PKCE_UNSUPPORTED = auth_scenario(
    "pkce-unsupported",
    "An authorization server without PKCE",
    "The metadata has no `code_challenge_methods_supported`, which means that the authorization"
    " server does not do PKCE. The client is expected to stop there.",
    AuthPlan(says_s256=False),
    (*DISCOVERY_STEPS, _refuses_without_pkce),
    suites=OURS,
    gives_up=True,
)

SCENARIOS = (*ISSUERS, TOKEN_HANDLING, STATE_MISMATCH, PKCE_UNSUPPORTED)
