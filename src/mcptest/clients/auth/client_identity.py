"""Scenarios about who the client is: by a document, a registration, a secret; and for whom."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

from mcptest.clients.auth import flow, steps
from mcptest.clients.auth.plan import AS, BASIC, POST, PUBLIC, SECOND_AS, AuthPlan
from mcptest.clients.auth.resource_checks import resource_checks
from mcptest.clients.auth.scenarios import ONLY_2026_07_28, SINCE_2025_06_18, auth_scenario
from mcptest.clients.auth.steps import AUTHORIZATION, OAUTH_TOKEN, REGISTRATION, check
from mcptest.clients.rows import bad, good, reference, shown, verdict, warned
from mcptest.clients.scenario import Row, Scenario
from mcptest.clients.seen import Seen, Visited
from mcptest.model.conformance import Status

# -- a document as client id ----------------------------------------------------------------------


def _names_document(seen: Seen, plan: AuthPlan) -> Iterator[Row]:
    for one in flow.authorizations(seen, plan):
        client_id = one.query.get("client_id", "")
        if _is_address_of_document(client_id):
            yield good(one)
        else:
            yield warned(f"client_id is {shown(client_id)}, not the https URL of a document", one)


def _is_address_of_document(client_id: str) -> bool:
    try:
        parts = urlsplit(client_id)
    except ValueError:
        return False
    return parts.scheme == "https" and bool(parts.netloc) and parts.path not in {"", "/"}


_DOCUMENTS = AuthPlan(takes_documents=True)

CIMD = auth_scenario(
    "basic-cimd",
    "A document as client id",
    "The authorization server takes the address of a metadata document as client id. A client that"
    " has one is expected to use it, and not to register: in the official suite it is"
    " `https://conformance-test.local/client-metadata.json`. Nobody fetches it.",
    _DOCUMENTS,
    (
        *steps.discovery(_DOCUMENTS),
        steps.registration(_DOCUMENTS, silence=Status.SKIPPED)[0],
        *steps.authorization(_DOCUMENTS),
        check(
            "cimd-client-id-used",
            "ClientIdDocument",
            "the client id is the https URL of a document",
            _names_document,
            _DOCUMENTS,
            references=reference("documents", f"{AUTHORIZATION}#client-id-metadata-documents"),
        ),
        *steps.token(_DOCUMENTS),
        *steps.token_shown(_DOCUMENTS),
    ),
)


# -- at the token endpoint ------------------------------------------------------------------------


def _authenticates(seen: Seen, plan: AuthPlan) -> Iterator[Row]:
    registered = {
        (client.get("client_id"), client.get("client_secret", ""))
        for client in map(flow.told, flow.registrations(seen, plan))
    }
    for one in flow.token_requests(seen, plan):
        yield verdict(_problems_of_identity(one, plan, registered), one)


def _problems_of_identity(
    request: Visited, plan: AuthPlan, registered: set[tuple[object, object]]
) -> Iterator[str]:
    who = flow.identified(request)
    if who.method != plan.method:
        yield f"the client used {who.method}, the server only supports {plan.method}"
    elif who.problem:
        yield who.problem
    elif (who.client_id, who.secret) not in registered:
        yield "client id and secret are not those of the registration"


def _token_endpoint(name: str, method: str, how: str) -> Scenario:
    plan = AuthPlan(method=method)
    method_check = check(
        "token-endpoint-auth-method",
        "TokenEndpointAuthMethod",
        f"the client authenticates with `{method}`",
        _authenticates,
        plan,
        references=OAUTH_TOKEN,
    )
    return auth_scenario(
        f"token-endpoint-auth-{name}",
        f"Token endpoint: {how}",
        f"The token endpoint supports nothing but `{method}`, and the registration says so.",
        plan,
        (*steps.whole_flow(plan), method_check, *resource_checks(plan)),
        revisions=SINCE_2025_06_18,
    )


TOKEN_ENDPOINT = (
    _token_endpoint("basic", BASIC, "the secret in the header"),
    _token_endpoint("post", POST, "the secret in the form"),
    _token_endpoint("none", PUBLIC, "a public client"),
)


# -- registered by hand ---------------------------------------------------------------------------


def _uses_what_it_was_given(seen: Seen, plan: AuthPlan) -> Iterator[Row]:
    for one in flow.token_requests(seen, plan):
        who = flow.identified(one)
        if who.method != BASIC:
            yield bad(f"the client used {who.method}, the server only supports {BASIC}", one)
        elif who.problem:
            yield bad(who.problem, one)
        elif (who.client_id, who.secret) != (plan.client_id, plan.client_secret):
            yield bad(f"client id {shown(who.client_id)} and its secret are not those given", one)
        else:
            yield good(one)


_BY_HAND = AuthPlan(
    registers=False,
    method=BASIC,
    client_id="mcptest-client-by-hand",
    client_secret="mcptest-secret-by-hand",  # noqa: S106 - made up, and told to the client
)

PRE_REGISTRATION = auth_scenario(
    "pre-registration",
    "A client that was registered by hand",
    "The authorization server registers nobody. `client_id` and `client_secret`, and the `issuer`"
    " that they are for, are in the context.",
    _BY_HAND,
    (
        *steps.whole_flow(_BY_HAND, registers=False),
        check(
            "pre-registration-auth",
            "PreRegistrationAuth",
            "the client authenticates with the id and the secret that it was given, in the header",
            _uses_what_it_was_given,
            _BY_HAND,
            references=reference("registration", f"{AUTHORIZATION}#preregistration"),
        ),
    ),
    revisions=SINCE_2025_06_18,
)


# -- moving to another authorization server -------------------------------------------------------


def _registers_anew(seen: Seen, plan: AuthPlan) -> Iterator[Row]:
    yield from map(good, _only_at(seen, SECOND_AS, flow.registrations(seen, plan)))


def _leaves_client_id_behind(seen: Seen, plan: AuthPlan) -> Iterator[Row]:
    """Only a client that came to the second server can have left anything behind."""
    former = _only_at(seen, AS, flow.registrations(seen, plan))
    known = {flow.told(one).get("client_id") for one in former}
    for one in _only_at(seen, SECOND_AS, flow.authorizations(seen, plan)):
        yield _not_of_the_former(one, one.query.get("client_id", ""), known)
    for one in _only_at(seen, SECOND_AS, flow.token_requests(seen, plan)):
        yield _not_of_the_former(one, flow.identified(one).client_id, known)


def _leaves_everything_behind(seen: Seen, plan: AuthPlan) -> Iterator[Row]:
    yield from _leaves_client_id_behind(seen, plan)
    registered = _only_at(seen, AS, flow.registrations(seen, plan))
    exchanged = _only_at(seen, AS, flow.token_requests(seen, plan))
    secrets = {flow.told(one).get("client_secret") for one in registered}
    tokens = {flow.told(one).get("access_token") for one in exchanged}
    former = (secrets | tokens) - {None}
    for one in _only_at(seen, SECOND_AS, seen.visits):
        if former & {flow.bearer_of(one), flow.identified(one).secret}:
            yield bad("a secret or token of the former authorization server is shown here", one)


def _only_at(seen: Seen, origin: str, visits: list[Visited]) -> list[Visited]:
    return [one for one in visits if one.origin == seen.urls.get(origin)]


def _not_of_the_former(where: Visited, client_id: str, known: set[object]) -> Row:
    problem = f"client_id {shown(client_id)} is of the former authorization server"
    return verdict([problem] if client_id in known else [], where)


_MOVING = AuthPlan(origins=(AS, SECOND_AS), challenge_scope="mcp:basic", moves=True, method=POST)
_BINDING = reference("SEP-2352", f"{REGISTRATION}#authorization-server-binding")

MIGRATION = auth_scenario(
    "authorization-server-migration",
    "Another authorization server",
    "Once a request was served, the metadata of the resource names another authorization server,"
    " and tokens of the former are refused with 401. The client is expected to register there, and"
    " to show nothing there that it has from the former.",
    _MOVING,
    (
        *steps.whole_flow(_MOVING),
        check(
            "sep-2352-reregister-on-as-change",
            "RegistersAnew",
            "the client registers with the new authorization server",
            _registers_anew,
            _MOVING,
            references=_BINDING,
        ),
        check(
            "sep-2352-no-reuse-on-as-change",
            "ClientIdNotReused",
            "the former client id does not turn up at the new authorization server",
            _leaves_client_id_behind,
            _MOVING,
            references=_BINDING,
        ),
        check(
            "sep-2352-no-cross-as-credential-reuse",
            "CredentialsNotReused",
            "nothing of the former turns up there: no client id, no secret, no token",
            _leaves_everything_behind,
            _MOVING,
            references=_BINDING,
        ),
    ),
    revisions=ONLY_2026_07_28,
)
