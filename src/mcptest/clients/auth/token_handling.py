"""Scenarios that the official suite does not have: what becomes of codes, states and tokens."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

from msgspec.structs import replace

from mcptest.clients.auth import flow, steps
from mcptest.clients.auth.issuers import stops
from mcptest.clients.auth.plan import AuthPlan
from mcptest.clients.auth.scenarios import SINCE_2025_06_18, auth_scenario
from mcptest.clients.auth.steps import AUTHORIZATION, check
from mcptest.clients.rows import bad, good, missing, reference, shown, skipped, verdict, warned
from mcptest.clients.scenario import Row
from mcptest.clients.seen import Seen
from mcptest.model.conformance import Status

OURS = ("ours",)
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_TOKENS = reference("tokens", f"{AUTHORIZATION}#token-requirements")
_REDIRECTION = reference("redirects", f"{AUTHORIZATION}#open-redirection")
_SECURITY = reference("redirects", f"{AUTHORIZATION}#communication-security")
_PKCE = reference("pkce", f"{AUTHORIZATION}#authorization-code-protection")


# -- tokens ---------------------------------------------------------------------------------------


def _is_always_there(seen: Seen, plan: AuthPlan) -> Iterator[Row]:
    given = [one.place for one in flow.tokens_issued(seen, plan).values()]
    for one in flow.to_the_server(seen):
        if given and one.place > given[0]:
            problem = f"{one.method} without a bearer token, although the client has one"
            yield verdict([] if flow.bearer_of(one) is not None else [problem], one)


def _is_not_in_queries(seen: Seen, plan: AuthPlan) -> Iterator[Row]:
    issued = flow.tokens_issued(seen, plan)
    for one in seen.visits if issued else ():
        values = {value for found in parse_qs(urlsplit(one.url).query).values() for value in found}
        problem = f"the query of a {one.method} to {shown(one.path)} has the token in it"
        yield verdict([problem] if values & issued.keys() else [], one)


def _is_for_its_server(seen: Seen, plan: AuthPlan) -> Iterator[Row]:
    """Nobody but the server that it is for gets to see the token."""
    issued = flow.tokens_issued(seen, plan)
    own = {one.stream for one in flow.to_the_server(seen)}
    for one in seen.visits if issued else ():
        shown_here = one.headers.get("authorization", "").rpartition(" ")[2] in issued
        if one.stream in own:
            yield good(one)
        elif shown_here:
            yield bad(f"the token is shown at {shown(one.origin + one.path)}", one)


# -- redirects ------------------------------------------------------------------------------------


def _returns_where_it_said(seen: Seen, plan: AuthPlan) -> Iterator[Row]:
    registered = [
        uri for one in flow.registrations(seen, plan) for uri in _redirects_of(flow.asked(one))
    ]
    for asked, request in flow.by_code(seen, plan):
        first, second = asked.query.get("redirect_uri"), request.form.get("redirect_uri")
        problems = []
        if registered and first not in registered:
            problems.append(f"redirect_uri {shown(first)} was not registered")
        if second not in {None, first}:
            problems.append(f"the code came to {shown(first)}, the token request says otherwise")
        yield verdict(problems, request)


def _redirects_of(registration: dict[str, object]) -> list[object]:
    found = registration.get("redirect_uris")
    return found if isinstance(found, list) else []


def _returns_safely(seen: Seen, plan: AuthPlan) -> Iterator[Row]:
    for one in flow.authorizations(seen, plan):
        target = one.query.get("redirect_uri", "")
        problem = f"redirect_uri {shown(target)} is neither https nor on this machine"
        yield verdict([] if _is_safe(target) else [problem], one)


def _is_safe(target: str) -> bool:
    try:
        parts = urlsplit(target)
        return parts.scheme == "https" or parts.hostname in _LOOPBACK
    except ValueError:
        return False


def _sends_state(seen: Seen, plan: AuthPlan) -> Iterator[Row]:
    used: set[str] = set()
    for one in flow.authorizations(seen, plan):
        state = one.query.get("state", "")
        if not state:
            yield warned("no state is sent, so the response can't be told from a forged one", one)
        elif state in used:
            yield warned("the state was used before", one)
        else:
            yield good(one)
        used.add(state)


_ORDINARY = AuthPlan(challenge_scope="mcp:basic")

TOKEN_HANDLING = auth_scenario(
    "token-handling",
    "What becomes of the token",
    "Nothing is out of the ordinary. The client is expected to send its token with every request,"
    " in the header, to this server only, and to be careful about redirects.",
    _ORDINARY,
    (
        *steps.whole_flow(_ORDINARY),
        check(
            "token-in-every-request",
            "TokenInEveryRequest",
            "once there is a token, every request to the server has it",
            _is_always_there,
            _ORDINARY,
            references=_TOKENS,
        ),
        check(
            "token-not-in-query",
            "TokenNotInQuery",
            "no address has a token in its query",
            _is_not_in_queries,
            _ORDINARY,
            references=_TOKENS,
        ),
        check(
            "token-only-for-its-server",
            "TokenOnlyForItsServer",
            "the token is shown to nobody but the server that it is for",
            _is_for_its_server,
            _ORDINARY,
            references=_TOKENS,
        ),
        check(
            "redirect-uri-consistent",
            "RedirectUriConsistent",
            "the redirect is the one that was registered, and the same in both requests",
            _returns_where_it_said,
            _ORDINARY,
            references=_REDIRECTION,
        ),
        check(
            "redirect-uri-safe",
            "RedirectUriSafe",
            "redirects lead to this machine or to https",
            _returns_safely,
            _ORDINARY,
            references=_SECURITY,
        ),
        check(
            "state-sent",
            "StateSent",
            "every request for a code has a state of its own",
            _sends_state,
            _ORDINARY,
            references=_REDIRECTION,
        ),
    ),
    revisions=SINCE_2025_06_18,
    suites=OURS,
)


# -- a response that is not the client's ----------------------------------------------------------


def _throws_foreign_state_away(seen: Seen, plan: AuthPlan) -> Iterator[Row]:
    redirects = flow.redirects(seen, plan)
    if redirects and not any(one.query.get("state") for one in redirects):
        yield skipped("the client sends no state, so it has nothing to compare")
        return
    for row in stops(seen, plan):
        only_recommended = row.status is Status.FAILURE and redirects
        yield replace(row, status=Status.WARNING) if only_recommended else row


_FOREIGN_STATE = AuthPlan(changes_state=True)

STATE_MISMATCH = auth_scenario(
    "state-mismatch",
    "A response to somebody else's request",
    "The authorization response has a state that the client did not send. It is expected to throw"
    " the response away.",
    _FOREIGN_STATE,
    (
        *steps.up_to_authorization(_FOREIGN_STATE),
        check(
            "state-mismatch-rejected",
            "StateMismatchRejected",
            "the client does not use the code",
            _throws_foreign_state_away,
            _FOREIGN_STATE,
            references=_REDIRECTION,
        ),
    ),
    revisions=SINCE_2025_06_18,
    suites=OURS,
    gives_up=True,
)


# -- no PKCE --------------------------------------------------------------------------------------


def _refuses_without_pkce(seen: Seen, plan: AuthPlan) -> Iterator[Row]:
    metadata = flow.of_the_issuer(seen, plan)
    if not metadata:
        yield missing("it did not get there: it never read the authorization server's metadata")
        return
    for one in flow.authorizations(seen, plan) + flow.token_requests(seen, plan):
        yield bad("goes on, although the authorization server does not say that it has PKCE", one)
    yield good(metadata[0])


_NO_PKCE = AuthPlan(says_s256=False)

PKCE_UNSUPPORTED = auth_scenario(
    "pkce-unsupported",
    "An authorization server without PKCE",
    "The metadata has no `code_challenge_methods_supported`, which means that the authorization"
    " server does not do PKCE. The client is expected to stop there.",
    _NO_PKCE,
    (
        *steps.discovery(_NO_PKCE),
        check(
            "pkce-unsupported-rejected",
            "PKCEUnsupportedRejected",
            "nothing is authorized without PKCE",
            _refuses_without_pkce,
            _NO_PKCE,
            references=_PKCE,
        ),
    ),
    suites=OURS,
    gives_up=True,
)
