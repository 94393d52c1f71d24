"""Every scenario by its name, for clients and for servers, and what of the official suite is not
offered.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Mapping
from typing import Any

from mcptest.core.errors import UsageError
from mcptest.core.revision import Revision
from mcptest.core.verdict import Side
from mcptest.probe.conformance.scenario import Scenario
from mcptest.suite.reading import did_you_mean, nearest

_SERVER_ORDER = (
    *("server-initialize", "server-session-lifecycle", "server-stateless", "logging-set-level"),
    *("ping", "completion-complete", "tools-list", "tools-call-simple-text", "tools-call-image"),
    *("tools-call-audio", "tools-call-embedded-resource", "tools-call-mixed-content"),
    *("tools-call-with-logging", "tools-call-error", "tools-call-with-progress"),
    *("tools-call-sampling", "tools-call-elicitation", "json-schema-2020-12"),
    *("elicitation-sep1034-defaults", "server-sse-polling", "server-sse-multiple-streams"),
    *("elicitation-sep1330-enums", "resources-list", "resources-read-text"),
    *("resources-read-binary", "resources-templates-read", "resources-subscribe"),
    *("resources-unsubscribe", "sep-2164-resource-not-found", "prompts-list"),
    *("prompts-get-simple", "prompts-get-with-args", "prompts-get-embedded-resource"),
    *("prompts-get-with-image", "dns-rebinding-protection", "caching", "http-header-validation"),
    *("http-custom-header-server-validation",),
    *(
        f"input-required-result-{name}"
        for name in (
            *("basic-elicitation", "basic-sampling", "basic-list-roots", "request-state"),
            *(
                "multiple-input-requests",
                "multi-round",
                "missing-input-response",
                "non-tool-request",
            ),
            *("result-type", "unsupported-methods", "tampered-state", "capability-check"),
            *("ignore-extra-params", "validate-input"),
        )
    ),
)
"""As the official suite has it; it does not go by subject."""
_CLIENT_ORDER = (
    *("initialize", "tools_call", "elicitation-sep1034-client-defaults", "sse-retry"),
    *("request-metadata", "sep-2322-client-request-state", "http-standard-headers"),
    *("http-custom-headers", "http-invalid-tool-headers", "json-schema-ref-no-deref"),
    *("json-schema-2020-12-preservation", "client-capabilities"),
    *("client-capabilities-undeclared", "duplicate-response", "unknown-response", "server-error"),
    *("broken-json", "huge-response", "disconnect-mid-call", "http-500", "server-requests"),
    *("tools-paging", "version-older", "version-unknown", "era-fallback", "slow-call"),
    *("hostile-list",),
    *(
        f"auth/{name}"
        for name in (
            *("metadata-default", "metadata-var1", "metadata-var2", "metadata-var3", "basic-cimd"),
            *("scope-from-www-authenticate", "scope-from-scopes-supported"),
            *("scope-omitted-when-undefined", "scope-step-up", "scope-retry-limit"),
            *("token-endpoint-auth-basic", "token-endpoint-auth-post", "token-endpoint-auth-none"),
            *("pre-registration", "2025-03-26-oauth-metadata-backcompat"),
            *("2025-03-26-oauth-endpoint-fallback", "resource-mismatch", "offline-access-scope"),
            *("offline-access-not-supported", "authorization-server-migration", "iss-supported"),
            *("iss-not-advertised", "iss-supported-missing", "iss-wrong-issuer", "iss-unexpected"),
            *("iss-normalized", "metadata-issuer-mismatch", "token-handling", "state-mismatch"),
            *("pkce-unsupported", "discovery-order", "pre-registration-elsewhere"),
        )
    ),
)
_AUTH_EXTENSIONS = (
    *("client-credentials-jwt", "client-credentials-basic", "enterprise-managed-authorization"),
    *("dpop", "dpop-nonce", "wif-jwt-bearer"),
)
_TASKS = (
    *("lifecycle", "capability-negotiation", "wire-fields", "request-state-removal", "mrtr-input"),
    *("request-headers", "dispatch-and-envelope", "status-notifications", "required-task-error"),
    "mrtr-composition",
)
_CLIENT_SKILLS = ("no-prefetch", "verify-digest", "verify-size", "verify-frontmatter")
_SERVER_SKILLS = ("directory", "enumeration", "manifest")
NOT_OFFERED: Mapping[Side, Mapping[str, str]] = {
    Side.CLIENT: {
        f"{prefix}{name}": reason
        for prefix, names, reason in (
            ("auth/", _AUTH_EXTENSIONS, "extensions of authorization are left for later"),
            ("sep-2640-client-", _CLIENT_SKILLS, "the skills extension is left for later"),
        )
        for name in names
    },
    Side.SERVER: {
        f"{prefix}{name}": reason
        for prefix, names, reason in (
            ("tasks-", _TASKS, "the tasks extension is not offered yet"),
            ("sep-2640-skills-", _SERVER_SKILLS, "the skills extension is not offered yet"),
        )
        for name in names
    },
}
"""Scenarios of the official suite that are not here, with the reason."""
_SERVER_SUITES = ("active", "all", "draft", "pending")


_MODULES = {
    Side.CLIENT: (
        *("client.basics", "client.client_headers", "client.client_input", "client.resilience"),
        *("client.tool_schemas", "auth.client_identity", "auth.discovery", "auth.scopes"),
        "auth.token_handling",
    ),
    Side.SERVER: (
        *("server.contents", "server.handshake_sessions", "server.required_input"),
        *("server.lists", "server.server_headers", "server.stateless_requests"),
        *("server.streams", "server.tool_calls"),
    ),
}
"""Imported when asked for: most commands never do, and who serves a scenario to a client needs none
for servers."""


@functools.cache
def scenario_table(side: Side) -> Mapping[str, Scenario[Any]]:
    """All of one side, in their order."""
    modules = (
        importlib.import_module(f"mcptest.probe.conformance.{one}") for one in _MODULES[side]
    )
    found = {one.name: one for module in modules for one in module.SCENARIOS}
    order = _SERVER_ORDER if side is Side.SERVER else _CLIENT_ORDER
    assert found.keys() == set(order)
    return {name: found[name] for name in order}


def scenario_named(side: Side, name: str) -> Scenario[Any]:
    """The scenario of this name. UsageError names the nearest, or says why it is not offered."""
    table = scenario_table(side)
    if name in table:
        return table[name]
    if name in NOT_OFFERED[side]:
        raise UsageError(f"the scenario {name} can't be run: {NOT_OFFERED[side][name]}")
    near = nearest(name, tuple(table))
    hint = f"did you mean {near}?" if near else "mcptest conformance list shows all of them"
    raise UsageError(f"unknown scenario: {name}", hint=hint)


def suites(side: Side) -> tuple[str, ...]:
    if side is Side.SERVER:
        return _SERVER_SUITES
    return ("all", *sorted({name for one in scenario_table(side).values() for name in one.suites}))


def scenarios(
    side: Side, suite: str, revision: Revision | None = None, transport: str | None = None
) -> list[Scenario[Any]]:
    """The scenarios of a suite that exist in a revision and over a transport."""
    wanted = "active" if suite == "core" and side is Side.SERVER else suite
    if wanted not in suites(side):
        raise UsageError(f"unknown suite: {suite}", hint=did_you_mean(suite, suites(side)))
    return [
        one
        for one in scenario_table(side).values()
        if (wanted == "all" or wanted in one.suites)
        and (revision is None or revision in one.revisions)
        and (transport is None or transport in one.transports)
    ]
