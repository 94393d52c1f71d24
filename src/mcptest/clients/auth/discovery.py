"""Scenarios about finding out: where the metadata is, and which of it is not to be trusted."""

from __future__ import annotations

from collections.abc import Iterator

from mcptest.clients.auth import flow, steps
from mcptest.clients.auth.plan import (
    AS,
    FOREIGN_ISSUER,
    OAUTH_METADATA,
    OPENID_METADATA,
    ROOT_PRM,
    AuthPlan,
)
from mcptest.clients.auth.resource_checks import resource_checks
from mcptest.clients.auth.scenarios import (
    ONLY_2025_03_26,
    ONLY_2026_07_28,
    SINCE_2025_06_18,
    SINCE_2025_11_25,
    auth_scenario,
)
from mcptest.clients.auth.steps import AUTHORIZATION, DISCOVERY, NEW_AUTHORIZATION, check
from mcptest.clients.rows import bad, good, missing, reference
from mcptest.clients.scenario import Check, Row, Scenario
from mcptest.clients.seen import Seen
from mcptest.model.conformance import Reference
from mcptest.peer.scripted.script import MCP

_FOREIGN_RESOURCE = "https://attacker.example.com/mcp"
_DISCOVERY = reference("discovery", f"{AUTHORIZATION}#authorization-server-metadata-discovery")


# -- traps ----------------------------------------------------------------------------------------


def _leaves_root_prm_alone(seen: Seen, plan: AuthPlan) -> Iterator[Row]:
    message = "asked for at the root, although the challenge says where it is"
    for one in seen.visited(MCP, ROOT_PRM):
        yield bad(message, one)
    yield from map(good, flow.of_the_resource(seen, plan))


def _leaves_root_metadata_alone(seen: Seen, plan: AuthPlan) -> Iterator[Row]:
    message = f"asked for at the root, although the issuer ends with {plan.issuer_path}"
    for one in seen.visited(AS, OAUTH_METADATA):
        yield bad(message, one)
    yield from map(good, flow.of_the_issuer(seen, plan))


def _root_prm_trap(plan: AuthPlan) -> Check:
    return check(
        "prm-priority-order",
        "PRMPriorityOrder",
        f"where the place is known, `{ROOT_PRM}` is not tried",
        _leaves_root_prm_alone,
        plan,
        references=reference(
            "discovery", f"{AUTHORIZATION}#protected-resource-metadata-discovery-requirements"
        ),
    )


def _root_metadata_trap(plan: AuthPlan) -> Check:
    return check(
        "authorization-server-metadata-wrong-path",
        "AuthorizationServerMetadataWrongPath",
        f"the metadata of an issuer with a path is not asked for at `{OAUTH_METADATA}`",
        _leaves_root_metadata_alone,
        plan,
        references=_DISCOVERY,
    )


# -- places ---------------------------------------------------------------------------------------


def _places(name: str, title: str, plan: AuthPlan, *traps: Check) -> Scenario:
    announced = "announced in the challenge" if plan.announces_prm else "not announced"
    description = (
        f"The metadata of the resource is at `{plan.prm_path}`, {announced}; that of the"
        f" authorization server is at `{plan.metadata_path}`."
    )
    checks = (*steps.whole_flow(plan), *resource_checks(plan), *traps)
    # Metadata that is not announced, and that of OpenID, came with 2025-11-25.
    older = plan.announces_prm and plan.metadata_path == OAUTH_METADATA
    revisions = SINCE_2025_06_18 if older else SINCE_2025_11_25
    return auth_scenario(
        name, title, description, plan, checks, revisions=revisions, suites=("metadata",)
    )


_DEFAULT = AuthPlan()
_VAR1 = AuthPlan(announces_prm=False, metadata_path=OPENID_METADATA)
_VAR2 = AuthPlan(
    prm_path=ROOT_PRM,
    announces_prm=False,
    metadata_path=f"{OAUTH_METADATA}/tenant1",
    issuer_path="/tenant1",
    endpoints="/tenant1",
)
_VAR3 = AuthPlan(
    prm_path="/custom/metadata/location.json",
    metadata_path=f"/tenant1{OPENID_METADATA}",
    issuer_path="/tenant1",
    endpoints="/tenant1",
)

METADATA = (
    _places("metadata-default", "Metadata at the usual places", _DEFAULT, _root_prm_trap(_DEFAULT)),
    _places("metadata-var1", "Metadata that is not announced, and OpenID", _VAR1),
    _places(
        "metadata-var2", "Metadata at the root, and a tenant", _VAR2, _root_metadata_trap(_VAR2)
    ),
    _places("metadata-var3", "Metadata at a place of its own", _VAR3, _root_metadata_trap(_VAR3)),
)


# -- before there was metadata of resources -------------------------------------------------------

_WITH_METADATA = AuthPlan(prm_path=None, origins=(MCP,), endpoints="/oauth")
_WITHOUT_ANY = AuthPlan(prm_path=None, origins=(MCP,), metadata_path=None, iss="left_out")

BACKCOMPAT = (
    auth_scenario(
        "2025-03-26-oauth-metadata-backcompat",
        "As in 2025-03-26, with metadata",
        "The MCP server is its own authorization server: there is no metadata of a resource, and"
        f" that of the authorization server is at `{OAUTH_METADATA}` of the MCP server.",
        _WITH_METADATA,
        steps.whole_flow(_WITH_METADATA),
        revisions=ONLY_2025_03_26,
        suites=("backcompat",),
    ),
    auth_scenario(
        "2025-03-26-oauth-endpoint-fallback",
        "As in 2025-03-26, without metadata",
        "There is no metadata at all. The client is expected to use `/register`, `/authorize` and"
        " `/token` of the MCP server.",
        _WITHOUT_ANY,
        (
            steps.registration(_WITHOUT_ANY)[0],
            steps.authorization_requested(_WITHOUT_ANY),
            steps.token_requested(_WITHOUT_ANY),
            *steps.token_shown(_WITHOUT_ANY),
        ),
        revisions=ONLY_2025_03_26,
        suites=("backcompat",),
    ),
)


# -- metadata that lies ---------------------------------------------------------------------------


def _stops_at_foreign_resource(seen: Seen, plan: AuthPlan) -> Iterator[Row]:
    if not flow.of_the_resource(seen, plan):
        yield missing("it did not get there: it never read the metadata of the resource")
        return
    for one in flow.authorizations(seen, plan) + flow.token_requests(seen, plan):
        yield bad(f"went on for {_FOREIGN_RESOURCE}, which is not this server", one)
    yield good(flow.of_the_resource(seen, plan)[0])


def _stops_at_foreign_issuer(seen: Seen, plan: AuthPlan) -> Iterator[Row]:
    if not flow.of_the_issuer(seen, plan):
        yield missing("it did not get there: it never read the authorization server's metadata")
        return
    used = flow.registrations, flow.authorizations, flow.token_requests
    for one in (one for find in used for one in find(seen, plan)):
        yield bad(f"uses an endpoint of metadata whose issuer is {FOREIGN_ISSUER}", one)
    yield good(flow.of_the_issuer(seen, plan)[0])


_OTHER_RESOURCE = AuthPlan(resource=_FOREIGN_RESOURCE)
_OTHER_ISSUER = AuthPlan(issuer=FOREIGN_ISSUER, endpoints="/mismatched-as")

RESOURCE_MISMATCH = auth_scenario(
    "resource-mismatch",
    "Metadata of another resource",
    f"The metadata says that it is about `{_FOREIGN_RESOURCE}`. The client is expected to read it,"
    " and to stop there: a token for another server is none of this one's business.",
    _OTHER_RESOURCE,
    (
        steps.prm_read(_OTHER_RESOURCE),
        check(
            "resource-mismatch-rejected",
            "ResourceMismatchRejected",
            "nothing is authorized for a resource that is not the server",
            _stops_at_foreign_resource,
            _OTHER_RESOURCE,
            references=(
                Reference("RFC 9728", "https://www.rfc-editor.org/rfc/rfc9728.html#section-3.3"),
                *reference("resource", f"{NEW_AUTHORIZATION}#resource-parameter-implementation"),
            ),
        ),
    ),
    revisions=ONLY_2026_07_28,
    gives_up=True,
)

ISSUER_MISMATCH = auth_scenario(
    "metadata-issuer-mismatch",
    "Metadata of another issuer",
    f"The metadata of the authorization server says that its issuer is `{FOREIGN_ISSUER}`, which is"
    " not where it was asked for. The client is expected not to use any of it.",
    _OTHER_ISSUER,
    (
        *steps.discovery(_OTHER_ISSUER),
        check(
            "sep-2468-client-validate-metadata-issuer",
            "ValidatesMetadataIssuer",
            "metadata of an issuer that was not asked for is not used",
            _stops_at_foreign_issuer,
            _OTHER_ISSUER,
            references=reference(
                "SEP-2468", f"{DISCOVERY}#authorization-server-metadata-discovery"
            ),
        ),
    ),
    revisions=ONLY_2026_07_28,
    gives_up=True,
)
