"""Every scenario by its name, for clients and for servers, and what of the official suite is not
offered.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterator, Mapping
from typing import Any

from mcptest.core.errors import UsageError
from mcptest.core.revision import Revision
from mcptest.core.verdict import Side
from mcptest.probe.conformance.scenario import Scenario
from mcptest.suite.reading import did_you_mean, nearest

_LEFT_OUT = {
    (Side.CLIENT, "auth/", "extensions of authorization are left for later"): (
        *("client-credentials-jwt", "client-credentials-basic", "enterprise-managed-authorization"),
        *("dpop", "dpop-nonce", "wif-jwt-bearer"),
    ),
    (Side.CLIENT, "sep-2640-client-", "the skills extension is left for later"): (
        *("no-prefetch", "verify-digest", "verify-size", "verify-frontmatter"),
    ),
    (Side.SERVER, "tasks-", "the tasks extension is not offered yet"): (
        *("lifecycle", "capability-negotiation", "wire-fields", "request-state-removal"),
        *("mrtr-input", "request-headers", "dispatch-and-envelope", "status-notifications"),
        *("required-task-error", "mrtr-composition"),
    ),
    (Side.SERVER, "sep-2640-skills-", "the skills extension is not offered yet"): (
        *("directory", "enumeration", "manifest"),
    ),
}
NOT_OFFERED: Mapping[Side, Mapping[str, str]] = {
    side: {
        f"{prefix}{name}": reason
        for (tested, prefix, reason), names in _LEFT_OUT.items()
        for name in names
        if tested is side
    }
    for side in (Side.CLIENT, Side.SERVER)
}
"""Scenarios of the official suite that are not here, with the reason."""
_SERVER_SUITES = ("active", "all", "draft", "pending")
_FILES = {
    Side.CLIENT: ("client.client_scenarios", "auth.auth_scenarios"),
    Side.SERVER: ("server.server_scenarios",),
}
"""Imported when asked for: most commands never do, and who serves one scenario to a client needs
nothing of the others."""


def _files(side: Side) -> Iterator[Mapping[str, Scenario[Any]]]:
    for one in _FILES[side]:
        yield importlib.import_module(f"mcptest.probe.conformance.{one}").SCENARIOS


@functools.cache
def scenario_table(side: Side) -> Mapping[str, Scenario[Any]]:
    """All of one side, in their order."""
    return {name: one for file in _files(side) for name, one in file.items()}


def scenario_named(side: Side, name: str) -> Scenario[Any]:
    """The scenario of this name. UsageError names the nearest, or says why it is not offered."""
    for file in _files(side):
        if name in file:
            return file[name]
    if name in NOT_OFFERED[side]:
        raise UsageError(f"the scenario {name} can't be run: {NOT_OFFERED[side][name]}")
    near = nearest(name, tuple(scenario_table(side)))
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
