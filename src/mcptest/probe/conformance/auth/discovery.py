"""Scenarios about finding out: where the metadata is, and which of it is not to be trusted."""

from __future__ import annotations

from mcptest.core.revision import Revision
from mcptest.core.scenario_outcome import Reference
from mcptest.probe.conformance.auth.flow import (
    DISCOVERY_STEPS,
    NEVER_READ_METADATA,
    NEW_AUTHORIZATION,
    OF_THE_ISSUER,
    OF_THE_RESOURCE,
    PRM_READ,
    RESOURCE_CHECKS,
    SINCE_2025_06_18,
    SINCE_2025_11_25,
    TOKEN_SHOWN,
    WHOLE_FLOW,
    AuthCheck,
    AuthFlow,
    auth_scenario,
    authorization_requested,
    registered,
    stops_after,
    token_requested,
)
from mcptest.probe.conformance.auth.protected_server import (
    AS,
    FOREIGN_ISSUER,
    OAUTH_METADATA,
    OPENID_METADATA,
    PATH_PRM,
    ROOT_PRM,
    AuthPlan,
)
from mcptest.probe.conformance.client.seen import SeenSession
from mcptest.probe.conformance.scenario import (
    ONLY_2026_07_28,
    CheckFinding,
    Findings,
    Scenario,
    bad,
    check,
    good,
    reference,
    verdict,
)
from mcptest.servers.scripted.script import MCP

_FOREIGN_RESOURCE = "https://attacker.example.com/mcp"
ONLY_2025_03_26 = frozenset({Revision.V2025_03_26})


# -- traps ----------------------------------------------------------------------------------------


@check(
    "prm-priority-order",
    f"where the place is known, `{ROOT_PRM}` is not tried",
    title="PRMPriorityOrder",
    references=OF_THE_RESOURCE,
)
def _leaves_root_prm_alone(auth: AuthFlow) -> Findings:
    message = "asked for at the root, although the challenge says where it is"
    for one in auth.seen.visited(MCP, ROOT_PRM):
        yield bad(message, one)
    yield from map(good, auth.of_the_resource)


@check(
    "authorization-server-metadata-wrong-path",
    f"the metadata of an issuer with a path is not asked for at `{OAUTH_METADATA}`",
    references=OF_THE_ISSUER,
)
def _leaves_root_metadata_alone(auth: AuthFlow) -> Findings:
    message = f"asked for at the root, although the issuer ends with {auth.plan.issuer_path}"
    for one in auth.seen.visited(AS, OAUTH_METADATA):
        yield bad(message, one)
    yield from map(good, auth.of_the_issuer)


# -- places ---------------------------------------------------------------------------------------


def _places(name: str, title: str, plan: AuthPlan, *traps: AuthCheck) -> Scenario[SeenSession]:
    announced = "announced in the challenge" if plan.announces_prm else "not announced"
    description = (
        f"The metadata of the resource is at `{plan.prm_path}`, {announced}; that of the"
        f" authorization server is at `{plan.metadata_path}`."
    )
    checks = (*WHOLE_FLOW, *RESOURCE_CHECKS, *traps)
    # Metadata that is not announced, and that of OpenID, came with 2025-11-25.
    older = plan.announces_prm and plan.metadata_path == OAUTH_METADATA
    revisions = SINCE_2025_06_18 if older else SINCE_2025_11_25
    return auth_scenario(
        name, title, description, plan, checks, revisions=revisions, suites=("metadata",)
    )


METADATA = (
    _places("metadata-default", "Metadata at the usual places", AuthPlan(), _leaves_root_prm_alone),
    _places(
        "metadata-var1",
        "Metadata that is not announced, and OpenID",
        AuthPlan(announces_prm=False, metadata_path=OPENID_METADATA),
    ),
    _places(
        "metadata-var2",
        "Metadata at the root, and a tenant",
        AuthPlan(
            prm_path=ROOT_PRM,
            announces_prm=False,
            metadata_path=f"{OAUTH_METADATA}/tenant1",
            issuer_path="/tenant1",
            endpoints="/tenant1",
        ),
        _leaves_root_metadata_alone,
    ),
    _places(
        "metadata-var3",
        "Metadata at a place of its own",
        AuthPlan(
            prm_path="/custom/metadata/location.json",
            metadata_path=f"/tenant1{OPENID_METADATA}",
            issuer_path="/tenant1",
            endpoints="/tenant1",
        ),
        _leaves_root_metadata_alone,
    ),
)


# -- before there was metadata of resources -------------------------------------------------------

BACKCOMPAT = (
    auth_scenario(
        "2025-03-26-oauth-metadata-backcompat",
        "As in 2025-03-26, with metadata",
        "The MCP server is its own authorization server: there is no metadata of a resource, and"
        f" that of the authorization server is at `{OAUTH_METADATA}` of the MCP server.",
        AuthPlan(prm_path=None, origins=(MCP,), endpoints="/oauth"),
        WHOLE_FLOW,
        revisions=ONLY_2025_03_26,
        suites=("backcompat",),
    ),
    auth_scenario(
        "2025-03-26-oauth-endpoint-fallback",
        "As in 2025-03-26, without metadata",
        "There is no metadata at all. The client is expected to use `/register`, `/authorize` and"
        " `/token` of the MCP server.",
        AuthPlan(prm_path=None, origins=(MCP,), metadata_path=None, iss="left_out"),
        (registered, authorization_requested, token_requested, *TOKEN_SHOWN),
        revisions=ONLY_2025_03_26,
        suites=("backcompat",),
    ),
)


# -- metadata that lies ---------------------------------------------------------------------------


@check(
    "resource-mismatch-rejected",
    "nothing is authorized for a resource that is not the server",
    references=(
        Reference("RFC 9728", "https://www.rfc-editor.org/rfc/rfc9728.html#section-3.3"),
        *reference("resource", f"{NEW_AUTHORIZATION}#resource-parameter-implementation"),
    ),
)
def _stops_at_foreign_resource(auth: AuthFlow) -> Findings:
    yield from stops_after(
        auth.of_the_resource,
        "it did not get there: it never read the metadata of the resource",
        auth.authorizations + auth.token_requests,
        f"went on for {_FOREIGN_RESOURCE}, which is not this server",
    )


@check(
    "sep-2468-client-validate-metadata-issuer",
    "metadata of an issuer that was not asked for is not used",
    title="ValidatesMetadataIssuer",
    references=reference(
        "SEP-2468",
        f"{NEW_AUTHORIZATION}/authorization-server-discovery#authorization-server-metadata-discovery",
    ),
)
def _stops_at_foreign_issuer(auth: AuthFlow) -> Findings:
    yield from stops_after(
        auth.of_the_issuer,
        NEVER_READ_METADATA,
        auth.registrations + auth.authorizations + auth.token_requests,
        f"uses an endpoint of metadata whose issuer is {FOREIGN_ISSUER}",
    )


RESOURCE_MISMATCH = auth_scenario(
    "resource-mismatch",
    "Metadata of another resource",
    f"The metadata says that it is about `{_FOREIGN_RESOURCE}`. The client is expected to read it,"
    " and to stop there: a token for another server is none of this one's business.",
    AuthPlan(resource=_FOREIGN_RESOURCE),
    (PRM_READ, _stops_at_foreign_resource),
    revisions=ONLY_2026_07_28,
    gives_up=True,
)

ISSUER_MISMATCH = auth_scenario(
    "metadata-issuer-mismatch",
    "Metadata of another issuer",
    f"The metadata of the authorization server says that its issuer is `{FOREIGN_ISSUER}`, which is"
    " not where it was asked for. The client is expected not to use any of it.",
    AuthPlan(issuer=FOREIGN_ISSUER, endpoints="/mismatched-as"),
    (*DISCOVERY_STEPS, _stops_at_foreign_issuer),
    revisions=ONLY_2026_07_28,
    gives_up=True,
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


@check(
    "prm-discovery-order",
    "the metadata of the resource is looked for at the endpoint's path, then at the root",
    title="PRMDiscoveryOrder",
    references=OF_THE_RESOURCE,
)
def _resource_in_order(auth: AuthFlow) -> CheckFinding | None:
    return _in_order(auth.seen, MCP, RESOURCE_PLACES)


@check(
    "metadata-discovery-order",
    "that of the authorization server at " + ", then ".join(f"`{p}`" for p in ISSUER_PLACES),
    references=OF_THE_ISSUER,
)
def _issuer_in_order(auth: AuthFlow) -> CheckFinding | None:
    return _in_order(auth.seen, AS, ISSUER_PLACES)


DISCOVERY_ORDER = auth_scenario(
    "discovery-order",
    "The order in which places are tried",
    "Nothing is announced, and both documents are at the last place at which a client has to look:"
    f" `{ROOT_PRM}`, and `{ISSUER_PLACES[-1]}` of the authorization server.",
    AuthPlan(
        prm_path=ROOT_PRM,
        announces_prm=False,
        metadata_path=ISSUER_PLACES[-1],
        issuer_path=_TENANT,
        endpoints=_TENANT,
    ),
    (*WHOLE_FLOW, _resource_in_order, _issuer_in_order),
    suites=("ours",),
)

SCENARIOS = (*METADATA, *BACKCOMPAT, RESOURCE_MISMATCH, ISSUER_MISMATCH, DISCOVERY_ORDER)
