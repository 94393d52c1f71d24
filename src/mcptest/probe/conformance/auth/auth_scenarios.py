"""The scenarios about authorization: a script plays an `AuthPlan`, checks look at an `AuthFlow`."""

from __future__ import annotations

from pathlib import Path

import msgspec

from mcptest.probe.conformance.auth.authorization_checks import JUDGES, AuthFlow
from mcptest.probe.conformance.auth.protected_server import TOOL, AuthPlan, ProtectedServer
from mcptest.probe.conformance.client.seen import SeenSession
from mcptest.probe.conformance.scenario import CheckFinding, findings_of, worst
from mcptest.probe.conformance.scenario_file import Obj, read_scenarios

_USES_TOOL = " The client is expected to list the tools and to call `test-tool`."


def _planned(entry: Obj) -> Obj:
    plan = msgspec.convert(entry.pop("plan"), AuthPlan)
    if not entry.get("client_may_fail"):
        entry["description"] += _USES_TOOL
    return {
        **entry,
        "script": lambda: ProtectedServer(plan),
        "checks": [_of_plan(one, plan) for one in entry["checks"]],
        "context": {"toolCalls": [{"name": TOOL, "arguments": {}}]},
        "transports": ["http"],
    }


def _of_plan(check: Obj, plan: AuthPlan) -> Obj:
    """It looks at all steps of a kind, and says the worst of them."""

    def judge(seen: SeenSession) -> CheckFinding | None:
        return worst(findings_of(check["judge"](AuthFlow(seen, plan))))

    return {**check, "judge": judge, "description": check["description"].format(plan=plan)}


SCENARIOS = read_scenarios(Path(__file__).with_suffix(".yml"), [JUDGES], completed=_planned)
