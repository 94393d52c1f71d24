"""Every scenario for clients, by name."""

from __future__ import annotations

import difflib
import functools
from collections.abc import Mapping

from mcptest.clients.scenario import Scenario
from mcptest.model.errors import UsageError
from mcptest.model.revision import Revision

NOT_OFFERED = {
    **dict.fromkeys(
        (
            "auth/client-credentials-jwt",
            "auth/client-credentials-basic",
            "auth/enterprise-managed-authorization",
            "auth/dpop",
            "auth/dpop-nonce",
            "auth/wif-jwt-bearer",
        ),
        "extensions of authorization are left for later",
    ),
    **dict.fromkeys(
        (
            "sep-2640-client-no-prefetch",
            "sep-2640-client-verify-digest",
            "sep-2640-client-verify-size",
            "sep-2640-client-verify-frontmatter",
        ),
        "the skills extension is left for later",
    ),
}
"""Scenarios of the official suite that are not here, with the reason."""


@functools.cache
def client_scenario_table() -> Mapping[str, Scenario]:
    """Imported when it is asked for: most commands never do."""
    from mcptest.clients.auth.catalogue import AUTH_SCENARIOS
    from mcptest.clients.scenarios import (
        answers,
        capabilities,
        core,
        headers,
        input_required,
        metadata,
        schemas,
        sessions,
    )

    modules = (core, metadata, input_required, headers, schemas, capabilities, answers, sessions)
    ours = {one.name: one for module in modules for one in module.SCENARIOS}
    return {**ours, **AUTH_SCENARIOS}


def scenario_named(name: str) -> Scenario:
    table = client_scenario_table()
    if name in table:
        return table[name]
    if name in NOT_OFFERED:
        raise UsageError(f"the scenario {name} can't be run: {NOT_OFFERED[name]}")
    near = difflib.get_close_matches(name, table, 1)
    hint = f"did you mean {near[0]}?" if near else "mcptest conformance list shows all of them"
    raise UsageError(f"there is no scenario {name!r} for clients", hint=hint)


def client_suites() -> list[str]:
    names = {name for one in client_scenario_table().values() for name in one.suites}
    return ["all", *sorted(names)]


def client_scenarios(suite: str, revision: Revision | None = None) -> list[Scenario]:
    """Those of a suite, in the order of the catalogue; of one revision, if one is given."""
    if suite not in client_suites():
        near = difflib.get_close_matches(suite, client_suites(), 1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(client_suites())}"
        raise UsageError(f"there is no suite {suite!r} for clients", hint=hint)
    return [
        one
        for one in client_scenario_table().values()
        if (suite == "all" or suite in one.suites)
        and (revision is None or revision in one.revisions)
    ]
