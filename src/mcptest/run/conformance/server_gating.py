"""What a server lacks for a scenario, in words that say what would unlock it."""

from __future__ import annotations

from collections.abc import Mapping

from mcptest.run.conformance.scenarios.scenario import ServerScenario
from mcptest.run.conformance.scenarios.scene import Offered, Scene

_METHOD_NOT_FOUND = -32601


def missing_for(scenario: ServerScenario, offered: Offered, names: Mapping[str, str]) -> str:
    """Why it can't be run at all; empty when it can."""
    needs = scenario.needs
    lacking = [one for one in needs.capabilities if not offered.declares(one)]
    if lacking:
        return f"the server does not declare {' and '.join(lacking)}"
    for kind, fixtures in (("tool", needs.tools), ("prompt", needs.prompts)):
        for official in fixtures:
            if not offered.has(kind, names.get(official, official)):
                return _not_offered(kind, official, names)
    return ""


def unserved(scenario: ServerScenario, scene: Scene) -> str:
    """Resources need not be listed, so only asking shows that one is not there."""
    refused = [
        heard
        for heard in scene.heard.values()
        if heard.exchange.answer == "error" and heard.code != _METHOD_NOT_FOUND
    ]
    for official in scenario.needs.resources if refused else ():
        if not _is_listed(official, scene):
            return _not_offered("resource", official, scene.names)
    return ""


def _is_listed(official: str, scene: Scene) -> bool:
    uri = scene.fixture(official)
    templates = (one.get("uriTemplate") for one in scene.offered.templates if isinstance(one, dict))
    return scene.offered.has("resource", uri) or uri in templates


def _not_offered(kind: str, official: str, names: Mapping[str, str]) -> str:
    given = names.get(official)
    if given is not None:
        return f"the {kind} {given}, which stands for {official}, is not there"
    return (
        f"the {kind} {official} is not there: offer it, or name one of yours with "
        f"--fixture {official}=NAME"
    )
