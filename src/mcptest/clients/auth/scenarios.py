"""What all scenarios about authorization have in common."""

from __future__ import annotations

from mcptest.clients.auth.plan import AuthPlan
from mcptest.clients.auth.protected_server import TOOL, ProtectedServer
from mcptest.clients.scenario import Check, Scenario
from mcptest.model.revision import Revision

SINCE_2025_11_25 = frozenset({Revision.V2025_11_25, Revision.V2026_07_28})
SINCE_2025_06_18 = SINCE_2025_11_25 | {Revision.V2025_06_18}
ONLY_2026_07_28 = frozenset({Revision.V2026_07_28})
ONLY_2025_03_26 = frozenset({Revision.V2025_03_26})
_USES_TOOL = " The client is expected to list the tools and to call `test-tool`."


def auth_scenario(
    name: str,
    title: str,
    description: str,
    plan: AuthPlan,
    checks: tuple[Check, ...],
    *,
    revisions: frozenset[Revision] = SINCE_2025_11_25,
    suites: tuple[str, ...] = (),
    gives_up: bool = False,
) -> Scenario:
    """`gives_up`: the right thing for the client is to stop, so how it ends does not count."""
    newest_only = ("draft",) if revisions == ONLY_2026_07_28 else ()
    return Scenario(
        name=f"auth/{name}",
        title=title,
        description=description if gives_up else description + _USES_TOOL,
        revisions=revisions,
        suites=frozenset({"auth", *newest_only, *suites}),
        make=lambda: ProtectedServer(plan),
        checks=checks,
        context={"toolCalls": [{"name": TOOL, "arguments": {}}]},
        transports=frozenset({"http"}),
        client_may_fail=gives_up,
    )
