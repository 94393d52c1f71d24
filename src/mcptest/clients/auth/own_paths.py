"""Scenarios that the official suite does not have: where a client looks, and whom it trusts."""

from __future__ import annotations

from collections.abc import Iterator

from mcptest.clients.auth import flow, steps
from mcptest.clients.auth.plan import (
    AS,
    BASIC,
    OAUTH_METADATA,
    OPENID_METADATA,
    PATH_PRM,
    ROOT_PRM,
    AuthPlan,
)
from mcptest.clients.auth.scenarios import ONLY_2026_07_28, auth_scenario
from mcptest.clients.auth.steps import AUTHORIZATION, REGISTRATION, check
from mcptest.clients.auth.token_handling import OURS
from mcptest.clients.rows import bad, good, missing, reference, verdict
from mcptest.clients.scenario import Row
from mcptest.clients.seen import Seen
from mcptest.peer.scripted.script import MCP

# -- the order of places --------------------------------------------------------------------------

_TENANT = "/tenant1"
RESOURCE_PLACES = (PATH_PRM, ROOT_PRM)
ISSUER_PLACES = (OAUTH_METADATA + _TENANT, OPENID_METADATA + _TENANT, _TENANT + OPENID_METADATA)


def _in_order(seen: Seen, origin: str, places: tuple[str, ...]) -> Iterator[Row]:
    """Each place was tried before the next one, down to the last, where the document is."""
    tried = [seen.visited(origin, path)[:1] for path in places]
    if not tried[-1]:
        return
    found = tried[-1][0]
    problems = []
    latest = -1
    for path, first in zip(places, tried, strict=True):
        if not first:
            problems.append(f"{path} was not tried")
        elif first[0].place < latest:
            problems.append(f"{path} was tried too late")
        latest = max([latest, *(one.place for one in first)])
    yield verdict(problems, found)


def _resource_in_order(seen: Seen, plan: AuthPlan) -> Iterator[Row]:
    yield from _in_order(seen, MCP, RESOURCE_PLACES)


def _issuer_in_order(seen: Seen, plan: AuthPlan) -> Iterator[Row]:
    yield from _in_order(seen, AS, ISSUER_PLACES)


_LAST_PLACES = AuthPlan(
    prm_path=ROOT_PRM,
    announces_prm=False,
    metadata_path=ISSUER_PLACES[-1],
    issuer_path=_TENANT,
    endpoints=_TENANT,
)

DISCOVERY_ORDER = auth_scenario(
    "discovery-order",
    "The order in which places are tried",
    "Nothing is announced, and both documents are at the last place at which a client has to look:"
    f" `{ROOT_PRM}`, and `{ISSUER_PLACES[-1]}` of the authorization server.",
    _LAST_PLACES,
    (
        *steps.whole_flow(_LAST_PLACES),
        check(
            "prm-discovery-order",
            "PRMDiscoveryOrder",
            "the metadata of the resource is looked for at the endpoint's path, then at the root",
            _resource_in_order,
            _LAST_PLACES,
            references=reference(
                "discovery", f"{AUTHORIZATION}#protected-resource-metadata-discovery-requirements"
            ),
        ),
        check(
            "metadata-discovery-order",
            "MetadataDiscoveryOrder",
            "that of the authorization server at "
            + ", then ".join(f"`{p}`" for p in ISSUER_PLACES),
            _issuer_in_order,
            _LAST_PLACES,
            references=reference(
                "discovery", f"{AUTHORIZATION}#authorization-server-metadata-discovery"
            ),
        ),
    ),
    suites=OURS,
)


# -- credentials of somewhere else ----------------------------------------------------------------


def _keeps_credentials_to_itself(seen: Seen, plan: AuthPlan) -> Iterator[Row]:
    read = flow.of_the_resource(seen, plan)
    if not read:
        yield missing("it did not get there: it never read which authorization server it is")
        return
    for one in flow.authorizations(seen, plan):
        if one.query.get("client_id") == plan.client_id:
            yield bad(f"the client id is of {plan.registered_with}, not of this server", one)
    for one in flow.token_requests(seen, plan):
        who = flow.identified(one)
        if plan.client_id == who.client_id or plan.client_secret == who.secret:
            yield bad(f"the credentials are of {plan.registered_with}, not of this server", one)
    yield good(read[0])


_ELSEWHERE = AuthPlan(
    registers=False,
    method=BASIC,
    client_id="mcptest-client-elsewhere",
    client_secret="mcptest-secret-elsewhere",  # noqa: S106 - made up, and told to the client
    registered_with="https://auth.example.com",
)

REGISTERED_ELSEWHERE = auth_scenario(
    "pre-registration-elsewhere",
    "Registered by hand, with somebody else",
    "The context has a `client_id`, a `client_secret` and the `issuer` that they are for, which is"
    " not the authorization server of this resource; and this one registers nobody. The client is"
    " expected to show them to nobody, and to stop.",
    _ELSEWHERE,
    (
        steps.prm_read(_ELSEWHERE),
        check(
            "credentials-bound-to-issuer",
            "CredentialsBoundToIssuer",
            "credentials are shown to nobody but the issuer that they are for",
            _keeps_credentials_to_itself,
            _ELSEWHERE,
            references=reference("SEP-2352", f"{REGISTRATION}#authorization-server-binding"),
        ),
    ),
    revisions=ONLY_2026_07_28,
    suites=OURS,
    gives_up=True,
)
