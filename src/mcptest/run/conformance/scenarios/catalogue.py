"""Every scenario for servers by its name, in the order of the official suite."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from mcptest.model.errors import UsageError
from mcptest.model.revision import Revision
from mcptest.run.conformance.scenarios import (
    contents,
    elicitation,
    headers,
    input_odd,
    input_required,
    json_schema,
    lists,
    session,
    stateless,
    streams,
    tool_calls,
)
from mcptest.run.conformance.scenarios.scenario import ServerScenario
from mcptest.suite.problems import did_you_mean

_ORDER = (
    "server-initialize",
    "server-session-lifecycle",
    "server-stateless",
    "logging-set-level",
    "ping",
    "completion-complete",
    "tools-list",
    "tools-call-simple-text",
    "tools-call-image",
    "tools-call-audio",
    "tools-call-embedded-resource",
    "tools-call-mixed-content",
    "tools-call-with-logging",
    "tools-call-error",
    "tools-call-with-progress",
    "tools-call-sampling",
    "tools-call-elicitation",
    "json-schema-2020-12",
    "elicitation-sep1034-defaults",
    "server-sse-polling",
    "server-sse-multiple-streams",
    "elicitation-sep1330-enums",
    "resources-list",
    "resources-read-text",
    "resources-read-binary",
    "resources-templates-read",
    "resources-subscribe",
    "resources-unsubscribe",
    "sep-2164-resource-not-found",
    "prompts-list",
    "prompts-get-simple",
    "prompts-get-with-args",
    "prompts-get-embedded-resource",
    "prompts-get-with-image",
    "dns-rebinding-protection",
    "caching",
    "http-header-validation",
    "http-custom-header-server-validation",
    "input-required-result-basic-elicitation",
    "input-required-result-basic-sampling",
    "input-required-result-basic-list-roots",
    "input-required-result-request-state",
    "input-required-result-multiple-input-requests",
    "input-required-result-multi-round",
    "input-required-result-missing-input-response",
    "input-required-result-non-tool-request",
    "input-required-result-result-type",
    "input-required-result-unsupported-methods",
    "input-required-result-tampered-state",
    "input-required-result-capability-check",
    "input-required-result-ignore-extra-params",
    "input-required-result-validate-input",
)
_MODULES = (
    session,
    stateless,
    lists,
    tool_calls,
    json_schema,
    elicitation,
    streams,
    contents,
    headers,
    input_required,
    input_odd,
)
_FOUND = {scenario.name: scenario for module in _MODULES for scenario in module.SCENARIOS}
SERVER_SCENARIOS: Final[Mapping[str, ServerScenario]] = MappingProxyType(
    {name: _FOUND[name] for name in _ORDER}
)
NOT_OFFERED: Final[Mapping[str, str]] = MappingProxyType(
    {
        **dict.fromkeys(
            (
                "tasks-lifecycle",
                "tasks-capability-negotiation",
                "tasks-wire-fields",
                "tasks-request-state-removal",
                "tasks-mrtr-input",
                "tasks-request-headers",
                "tasks-dispatch-and-envelope",
                "tasks-status-notifications",
                "tasks-required-task-error",
                "tasks-mrtr-composition",
            ),
            "the tasks extension is not offered yet",
        ),
        **dict.fromkeys(
            (
                "sep-2640-skills-directory",
                "sep-2640-skills-enumeration",
                "sep-2640-skills-manifest",
            ),
            "the skills extension is not offered yet",
        ),
    }
)
"""Scenarios of the official suite that are not here, with the reason."""
SUITES: Final = ("active", "all", "draft", "pending")


def server_scenario(name: str) -> ServerScenario:
    """The scenario of this name. UsageError names the nearest, or says why it is not offered."""
    found = SERVER_SCENARIOS.get(name)
    if found is not None:
        return found
    reason = NOT_OFFERED.get(name)
    if reason is not None:
        raise UsageError(f"the scenario {name} can't be run: {reason}")
    raise UsageError(f"unknown scenario: {name}", hint=did_you_mean(name, [*SERVER_SCENARIOS]))


def server_scenarios(
    suite: str, revision: Revision | None = None, transport: str | None = None
) -> list[ServerScenario]:
    """The scenarios of a suite that exist in a revision and over a transport."""
    wanted = "active" if suite == "core" else suite
    if wanted not in SUITES:
        raise UsageError(f"unknown suite: {suite}", hint=did_you_mean(suite, SUITES))
    return [
        one
        for one in SERVER_SCENARIOS.values()
        if wanted in one.suites
        and (revision is None or revision in one.revisions)
        and (transport is None or transport in one.transports)
    ]
