"""What is asked of a client in scenarios about authorization, besides the flow itself: where it
looks for metadata, which scopes it asks for, who it says it is, and what it does with what comes
back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import parse_qs, urlsplit

from msgspec.structs import replace

from mcptest.core.scenario_outcome import CheckStatus
from mcptest.probe.conformance.auth.flow import (
    AuthFlow,
    answer_of,
    bearer_of,
    body_of,
    identified,
    scopes_of,
)
from mcptest.probe.conformance.auth.protected_server import (
    AS,
    BASIC,
    FOREIGN_ISSUER,
    MOST_REFUSALS,
    OAUTH_METADATA,
    OPENID_METADATA,
    PATH_PRM,
    ROOT_PRM,
    SECOND_AS,
)
from mcptest.probe.conformance.client.seen import SeenSession, Visited
from mcptest.probe.conformance.scenario import (
    CheckFinding,
    Findings,
    Judge,
    bad,
    good,
    info,
    missing,
    shown,
    skipped,
    verdict,
)
from mcptest.servers.scripted.script import MCP

FIRST, MORE, OFFLINE = "mcp:basic", "mcp:write", "offline_access"
_FOREIGN_RESOURCE = "https://attacker.example.com/mcp"
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_FORBIDDEN = 403
_NEVER_READ_METADATA = "it did not get there: it never read the authorization server's metadata"


def _stops_after(
    reached: Sequence[Visited], unreached: str, further: Sequence[Visited], problem: str
) -> Findings:
    """A client that never came so far has decided nothing; one that did goes no further."""
    if not reached:
        yield missing(unreached)
        return
    yield from (bad(problem, one) for one in further)
    yield good(reached[0])


# -- traps ----------------------------------------------------------------------------------------


def _leaves_root_prm_alone(auth: AuthFlow) -> Findings:
    message = "asked for at the root, although the challenge says where it is"
    for one in auth.seen.visited(MCP, ROOT_PRM):
        yield bad(message, one)
    yield from map(good, auth.of_the_resource)


def _leaves_root_metadata_alone(auth: AuthFlow) -> Findings:
    message = f"asked for at the root, although the issuer ends with {auth.plan.issuer_path}"
    for one in auth.seen.visited(AS, OAUTH_METADATA):
        yield bad(message, one)
    yield from map(good, auth.of_the_issuer)


# -- metadata that lies ---------------------------------------------------------------------------


def _stops_at_foreign_resource(auth: AuthFlow) -> Findings:
    yield from _stops_after(
        auth.of_the_resource,
        "it did not get there: it never read the metadata of the resource",
        auth.authorizations + auth.token_requests,
        f"went on for {_FOREIGN_RESOURCE}, which is not this server",
    )


def _stops_at_foreign_issuer(auth: AuthFlow) -> Findings:
    yield from _stops_after(
        auth.of_the_issuer,
        _NEVER_READ_METADATA,
        auth.registrations + auth.authorizations + auth.token_requests,
        f"uses an endpoint of metadata whose issuer is {FOREIGN_ISSUER}",
    )


# -- the order of places --------------------------------------------------------------------------

_TENANT = "/tenant1"
RESOURCE_PLACES = (PATH_PRM, ROOT_PRM)
ISSUER_PLACES = (OAUTH_METADATA + _TENANT, OPENID_METADATA + _TENANT, _TENANT + OPENID_METADATA)


def _in_order(seen: SeenSession, origin: str, places: tuple[str, ...]) -> CheckFinding | None:
    """Each place was tried before the next one, down to the last, where the document is."""
    tried = [seen.visited(origin, path)[:1] for path in places]
    if not tried[-1]:
        return None
    found = tried[-1][0]
    problems = []
    latest = -1
    for path, first in zip(places, tried, strict=True):
        if not first:
            problems.append(f"{path} was not tried")
        elif first[0].place < latest:
            problems.append(f"{path} was tried too late")
        latest = max([latest, *(one.place for one in first)])
    return verdict(problems, found)


def _resource_in_order(auth: AuthFlow) -> CheckFinding | None:
    return _in_order(auth.seen, MCP, RESOURCE_PLACES)


def _issuer_in_order(auth: AuthFlow) -> CheckFinding | None:
    return _in_order(auth.seen, AS, ISSUER_PLACES)


# -- scopes ---------------------------------------------------------------------------------------


def _asks_for(*wanted: str, which: slice = slice(None)) -> Judge[AuthFlow]:
    """These authorizations, or all of them, are for these scopes."""

    def judge(auth: AuthFlow) -> Findings:
        for one in auth.authorizations[which]:
            problem = f"scope is {shown(one.query.get('scope'))}; expected {' '.join(wanted)}"
            yield verdict("" if {*wanted} <= {*scopes_of(one)} else problem, one, mild=True)

    return judge


def _asks_for_nothing(auth: AuthFlow) -> Findings:
    for one in auth.authorizations:
        problem = f"scope is {shown(one.query.get('scope'))}, and nobody spoke of scopes"
        yield verdict(problem if scopes_of(one) else "", one, mild=True)


def _knows_when_it_is_enough(auth: AuthFlow) -> CheckFinding | None:
    attempts = auth.authorizations
    refused = any(one.status == _FORBIDDEN for one in auth.to_the_server)
    if attempts and not refused:
        return missing("the client did not get there: no request of its was refused with 403")
    if len(attempts) > MOST_REFUSALS:
        message = f"{len(attempts)} authorizations, expected {MOST_REFUSALS} at most"
        return bad(message, attempts[MOST_REFUSALS], attempts=len(attempts))
    if attempts:
        return good(attempts[-1], attempts=len(attempts))
    return None


def _may_ask_for_offline(auth: AuthFlow) -> Findings:
    for one in auth.authorizations:
        chose_not_to = info(f"the client chose not to ask for {OFFLINE}")
        yield good(one) if OFFLINE in scopes_of(one) else chose_not_to


def _registers_for_refreshing(auth: AuthFlow) -> Findings:
    for one in auth.registrations:
        kinds = body_of(one).get("grant_types")
        fine = isinstance(kinds, list) and "refresh_token" in kinds
        problem = f"grant_types is {shown(kinds)}, without refresh_token"
        yield verdict("" if fine else problem, one, mild=True)


def _does_not_ask_for_offline(auth: AuthFlow) -> Findings:
    for one in auth.authorizations:
        problem = f"{OFFLINE} is asked for, which the server does not list"
        yield verdict(problem if OFFLINE in scopes_of(one) else "", one)


# -- a document as client id ----------------------------------------------------------------------


def _names_document(auth: AuthFlow) -> Findings:
    for one in auth.authorizations:
        client_id = one.query.get("client_id", "")
        problem = f"client_id is {shown(client_id)}, not the https URL of a document"
        yield verdict("" if _is_address_of_document(client_id) else problem, one, mild=True)


def _is_address_of_document(client_id: str) -> bool:
    try:
        parts = urlsplit(client_id)
    except ValueError:
        return False
    return parts.scheme == "https" and bool(parts.netloc) and parts.path not in {"", "/"}


# -- at the token endpoint ------------------------------------------------------------------------


def _problem_of_identity(
    request: Visited, method: str, foreign: str, known: set[tuple[Any, Any]]
) -> str:
    """`known` are the pairs of client id and secret that it may have."""
    who = identified(request)
    if who.method != method:
        return f"the client used {who.method}, the server only supports {method}"
    is_known = (who.client_id, who.secret) in known
    return who.problem or ("" if is_known else foreign.format(shown(who.client_id)))


def _authenticates(auth: AuthFlow) -> Findings:
    answers = map(answer_of, auth.registrations)
    known = {(one.get("client_id"), one.get("client_secret", "")) for one in answers}
    foreign = "client id and secret are not those of the registration"
    for one in auth.token_requests:
        yield verdict(_problem_of_identity(one, auth.plan.method, foreign, known), one)


# -- registered by hand ---------------------------------------------------------------------------


def _uses_what_it_was_given(auth: AuthFlow) -> Findings:
    known = {(auth.plan.client_id, auth.plan.client_secret)}
    foreign = "client id {} and its secret are not those given"
    for one in auth.token_requests:
        yield verdict(_problem_of_identity(one, BASIC, foreign, known), one)


# -- moving to another authorization server -------------------------------------------------------


def _registers_anew(auth: AuthFlow) -> Findings:
    yield from map(good, auth.only_at(SECOND_AS, auth.registrations))


def _leaves_client_id_behind(auth: AuthFlow) -> Findings:
    """Only a client that came to the second server can have left anything behind."""
    former = auth.only_at(AS, auth.registrations)
    known = {answer_of(one).get("client_id") for one in former}
    for one in auth.only_at(SECOND_AS, auth.authorizations):
        yield _not_of_the_former(one, one.query.get("client_id", ""), known)
    for one in auth.only_at(SECOND_AS, auth.token_requests):
        yield _not_of_the_former(one, identified(one).client_id, known)


def _leaves_everything_behind(auth: AuthFlow) -> Findings:
    yield from _leaves_client_id_behind(auth)
    answers = map(answer_of, auth.only_at(AS, auth.registrations + auth.token_requests))
    named = (one.get(key) for one in answers for key in ("client_secret", "access_token"))
    former = {one for one in named if isinstance(one, str)}
    for one in auth.only_at(SECOND_AS, auth.seen.visits):
        if former & {bearer_of(one), identified(one).secret}:
            yield bad("a secret or token of the former authorization server is shown here", one)


def _not_of_the_former(where: Visited, client_id: str, known: set[object]) -> CheckFinding:
    problem = f"client_id {shown(client_id)} is of the former authorization server"
    return verdict(problem if client_id in known else "", where)


# -- credentials of somewhere else ----------------------------------------------------------------


def _keeps_credentials_to_itself(auth: AuthFlow) -> Findings:
    read = auth.of_the_resource
    if not read:
        yield missing("it did not get there: it never read which authorization server it is")
        return
    for one in auth.authorizations:
        if one.query.get("client_id") == auth.plan.client_id:
            yield bad(f"the client id is of {auth.plan.registered_with}, not of this server", one)
    for one in auth.token_requests:
        who = identified(one)
        if auth.plan.client_id == who.client_id or auth.plan.client_secret == who.secret:
            yield bad(
                f"the credentials are of {auth.plan.registered_with}, not of this server", one
            )
    yield good(read[0])


# -- who answered ---------------------------------------------------------------------------------


def _stops(auth: AuthFlow) -> Findings:
    if auth.plan.metadata_path is not None and not auth.of_the_issuer:
        yield missing(_NEVER_READ_METADATA)
        return
    yield from _stops_after(
        auth.redirects[-1:],
        "the client did not get there: it has no authorization response to look at",
        auth.token_requests,
        "the code was used, although the response was to be thrown away",
    )


# -- tokens ---------------------------------------------------------------------------------------


def _is_always_there(auth: AuthFlow) -> Findings:
    given = [one.place for one in auth.tokens_issued.values()]
    for one in auth.to_the_server:
        if given and one.place > given[0]:
            problem = f"{one.method} without a bearer token, although the client has one"
            yield verdict(problem if bearer_of(one) is None else "", one)


def _is_not_in_queries(auth: AuthFlow) -> Findings:
    issued = auth.tokens_issued
    for one in auth.seen.visits if issued else ():
        values = {value for found in parse_qs(urlsplit(one.url).query).values() for value in found}
        problem = f"the query of a {one.method} to {shown(one.path)} has the token in it"
        yield verdict(problem if values & issued.keys() else "", one)


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


def _sends_state(auth: AuthFlow) -> Findings:
    used: set[str] = set()
    for one in auth.authorizations:
        state = one.query.get("state", "")
        problem = "the state was used before" if state in used else ""
        if not state:
            problem = "no state is sent, so the response can't be told from a forged one"
        yield verdict(problem, one, mild=True)
        used.add(state)


# -- a response that is not the client's ----------------------------------------------------------


def _throws_foreign_state_away(auth: AuthFlow) -> Findings:
    redirects = auth.redirects
    if redirects and not any(one.query.get("state") for one in redirects):
        yield skipped("the client sends no state, so it has nothing to compare")
        return
    for row in _stops(auth):
        only_recommended = row.status is CheckStatus.FAILURE and redirects
        yield replace(row, status=CheckStatus.WARNING) if only_recommended else row


# -- no PKCE --------------------------------------------------------------------------------------


def _refuses_without_pkce(auth: AuthFlow) -> Findings:
    yield from _stops_after(
        auth.of_the_issuer,
        _NEVER_READ_METADATA,
        auth.authorizations + auth.token_requests,
        "goes on, although the authorization server does not say that it has PKCE",
    )


JUDGES: dict[str, Judge[AuthFlow]] = {
    "prm-priority-order": _leaves_root_prm_alone,
    "authorization-server-metadata-wrong-path": _leaves_root_metadata_alone,
    "resource-mismatch-rejected": _stops_at_foreign_resource,
    "sep-2468-client-validate-metadata-issuer": _stops_at_foreign_issuer,
    "prm-discovery-order": _resource_in_order,
    "metadata-discovery-order": _issuer_in_order,
    "scope-omitted-when-undefined": _asks_for_nothing,
    "scope-retry-limit": _knows_when_it_is_enough,
    "sep-2207-offline-access-requested": _may_ask_for_offline,
    "sep-2207-client-metadata-grant-types": _registers_for_refreshing,
    "sep-2207-offline-access-not-requested": _does_not_ask_for_offline,
    "scope-from-www-authenticate": _asks_for(FIRST),
    "scope-from-scopes-supported": _asks_for(FIRST, "mcp:read", MORE),
    "scope-step-up-initial": _asks_for(FIRST, which=slice(1)),
    "scope-step-up-escalation": _asks_for(MORE, which=slice(1, 2)),
    "sep-2350-scope-union-on-reauth": _asks_for(FIRST, which=slice(1, 2)),
    "cimd-client-id-used": _names_document,
    "token-endpoint-auth-method": _authenticates,
    "pre-registration-auth": _uses_what_it_was_given,
    "sep-2352-reregister-on-as-change": _registers_anew,
    "sep-2352-no-cross-as-credential-reuse": _leaves_everything_behind,
    "credentials-bound-to-issuer": _keeps_credentials_to_itself,
    "sep-2352-no-reuse-on-as-change": _leaves_client_id_behind,
    "goes-on-to-token": lambda auth: map(good, auth.token_requests),
    "throws-response-away": _stops,
    "token-in-every-request": _is_always_there,
    "token-not-in-query": _is_not_in_queries,
    "token-only-for-its-server": _is_for_its_server,
    "redirect-uri-consistent": _returns_where_it_said,
    "redirect-uri-safe": _returns_safely,
    "state-sent": _sends_state,
    "state-mismatch-rejected": _throws_foreign_state_away,
    "pkce-unsupported-rejected": _refuses_without_pkce,
}
