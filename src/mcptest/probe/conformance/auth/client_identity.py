"""Scenarios about who the client is: by a document, a registration, a secret; and for whom."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from mcptest.probe.conformance.auth.flow import (
    AUTHORIZATION,
    AUTHORIZATION_STEPS,
    DISCOVERY_STEPS,
    OAUTH_TOKEN,
    PRM_READ,
    REGISTRATION,
    RESOURCE_CHECKS,
    SINCE_2025_06_18,
    TOKEN_SHOWN,
    TOKEN_STEPS,
    WHOLE_FLOW,
    AuthFlow,
    answer_of,
    auth_scenario,
    bearer_of,
    identified,
    optional,
    registered,
)
from mcptest.probe.conformance.auth.protected_server import (
    AS,
    BASIC,
    POST,
    PUBLIC,
    SECOND_AS,
    AuthPlan,
)
from mcptest.probe.conformance.client.seen import SeenSession, Visited
from mcptest.probe.conformance.scenario import (
    ONLY_2026_07_28,
    CheckFinding,
    Findings,
    Scenario,
    ScenarioCheck,
    bad,
    check,
    good,
    missing,
    reference,
    shown,
    verdict,
)

_BINDING = reference("SEP-2352", f"{REGISTRATION}#authorization-server-binding")

# -- a document as client id ----------------------------------------------------------------------


@check(
    "cimd-client-id-used",
    "the client id is the https URL of a document",
    title="ClientIdDocument",
    references=reference("documents", f"{AUTHORIZATION}#client-id-metadata-documents"),
)
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


CIMD = auth_scenario(
    "basic-cimd",
    "A document as client id",
    "The authorization server takes the address of a metadata document as client id. A client that"
    " has one is expected to use it, and not to register: in the official suite it is"
    " `https://conformance-test.local/client-metadata.json`. Nobody fetches it.",
    AuthPlan(takes_documents=True),
    (
        *DISCOVERY_STEPS,
        *optional([registered]),
        *AUTHORIZATION_STEPS,
        _names_document,
        *TOKEN_STEPS,
        *TOKEN_SHOWN,
    ),
)


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


@check(
    "token-endpoint-auth-method",
    "the client authenticates with `{plan.method}`",
    references=OAUTH_TOKEN,
)
def _authenticates(auth: AuthFlow) -> Findings:
    answers = map(answer_of, auth.registrations)
    known = {(one.get("client_id"), one.get("client_secret", "")) for one in answers}
    foreign = "client id and secret are not those of the registration"
    for one in auth.token_requests:
        yield verdict(_problem_of_identity(one, auth.plan.method, foreign, known), one)


def _token_endpoint(name: str, method: str, how: str) -> Scenario[SeenSession]:
    return auth_scenario(
        f"token-endpoint-auth-{name}",
        f"Token endpoint: {how}",
        f"The token endpoint supports nothing but `{method}`, and the registration says so.",
        AuthPlan(method=method),
        (*WHOLE_FLOW, _authenticates, *RESOURCE_CHECKS),
        revisions=SINCE_2025_06_18,
    )


TOKEN_ENDPOINT = (
    _token_endpoint("basic", BASIC, "the secret in the header"),
    _token_endpoint("post", POST, "the secret in the form"),
    _token_endpoint("none", PUBLIC, "a public client"),
)


# -- registered by hand ---------------------------------------------------------------------------


@check(
    "pre-registration-auth",
    "the client authenticates with the id and the secret that it was given, in the header",
    references=reference("registration", f"{AUTHORIZATION}#preregistration"),
)
def _uses_what_it_was_given(auth: AuthFlow) -> Findings:
    known = {(auth.plan.client_id, auth.plan.client_secret)}
    foreign = "client id {} and its secret are not those given"
    for one in auth.token_requests:
        yield verdict(_problem_of_identity(one, BASIC, foreign, known), one)


PRE_REGISTRATION = auth_scenario(
    "pre-registration",
    "A client that was registered by hand",
    "The authorization server registers nobody. `client_id` and `client_secret`, and the `issuer`"
    " that they are for, are in the context.",
    AuthPlan(
        registers=False,
        method=BASIC,
        client_id="mcptest-client-by-hand",
        client_secret="mcptest-secret-by-hand",  # noqa: S106 - made up, and told to the client
    ),
    (*DISCOVERY_STEPS, *AUTHORIZATION_STEPS, *TOKEN_STEPS, *TOKEN_SHOWN, _uses_what_it_was_given),
    revisions=SINCE_2025_06_18,
)


# -- moving to another authorization server -------------------------------------------------------


@check(
    "sep-2352-reregister-on-as-change",
    "the client registers with the new authorization server",
    title="RegistersAnew",
    references=_BINDING,
)
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


@check(
    "sep-2352-no-cross-as-credential-reuse",
    "nothing of the former turns up there: no client id, no secret, no token",
    title="CredentialsNotReused",
    references=_BINDING,
)
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


MIGRATION = auth_scenario(
    "authorization-server-migration",
    "Another authorization server",
    "Once a request was served, the metadata of the resource names another authorization server,"
    " and tokens of the former are refused with 401. The client is expected to register there, and"
    " to show nothing there that it has from the former.",
    AuthPlan(origins=(AS, SECOND_AS), challenge_scope="mcp:basic", moves=True, method=POST),
    (
        *WHOLE_FLOW,
        _registers_anew,
        ScenarioCheck(
            "sep-2352-no-reuse-on-as-change",
            "the former client id does not turn up at the new authorization server",
            _leaves_client_id_behind,
            title="ClientIdNotReused",
            references=_BINDING,
        ),
        _leaves_everything_behind,
    ),
    revisions=ONLY_2026_07_28,
)


# -- credentials of somewhere else ----------------------------------------------------------------


@check(
    "credentials-bound-to-issuer",
    "credentials are shown to nobody but the issuer that they are for",
    references=_BINDING,
)
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


REGISTERED_ELSEWHERE = auth_scenario(
    "pre-registration-elsewhere",
    "Registered by hand, with somebody else",
    "The context has a `client_id`, a `client_secret` and the `issuer` that they are for, which is"
    " not the authorization server of this resource; and this one registers nobody. The client is"
    " expected to show them to nobody, and to stop.",
    AuthPlan(
        registers=False,
        method=BASIC,
        client_id="mcptest-client-elsewhere",
        client_secret="mcptest-secret-elsewhere",  # noqa: S106 - made up, and told to the client
        registered_with="https://auth.example.com",
    ),
    (PRM_READ, _keeps_credentials_to_itself),
    revisions=ONLY_2026_07_28,
    suites=("ours",),
    gives_up=True,
)

SCENARIOS = (CIMD, *TOKEN_ENDPOINT, PRE_REGISTRATION, MIGRATION, REGISTERED_ELSEWHERE)
