"""Lists, completion and what a cacheable result says of its life."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from mcptest.clients.scenario import Row
from mcptest.model.show import show
from mcptest.run.conformance.scenarios.judges import (
    can_not_tell,
    found,
    listed,
    missing_members,
    not_for_it,
    reference,
    result_of,
    sep,
    told,
)
from mcptest.run.conformance.scenarios.scenario import (
    ACTIVE,
    DRAFT,
    EVERY,
    SINCE_2025_11_25,
    STATELESS,
    Judge,
    Needs,
    ServerCheck,
    ServerScenario,
)
from mcptest.run.conformance.scenarios.scene import Obj, Scene
from mcptest.run.conformance.scenarios.stage import Stage

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")
_LISTS = ("first", "second", "third")
_COMPLETED = "test_prompt_with_arguments"
_CACHED = {
    "tools/list": "ToolsListCachingHints",
    "prompts/list": "PromptsListCachingHints",
    "resources/list": "ResourcesListCachingHints",
    "resources/templates/list": "ResourcesTemplatesListCachingHints",
    "resources/read": "ResourcesReadCachingHints",
}
_NEEDED_BY = {"tools/list": "tools", "prompts/list": "prompts"}
_CACHING = (*reference("MCP-Caching", "2026-07-28/server/utilities/caching"), *sep(2549))


# -- tools-list


def _list_tools(stage: Stage) -> None:
    for label in _LISTS if stage.is_stateless else _LISTS[:1]:
        stage.ask(label, "tools/list")


def _tool_problems(result: Obj) -> Iterator[str]:
    yield from missing_members(result.get("tools"), "tool", "name", "description", "inputSchema")


def _names(scene: Scene) -> Iterator[Row]:
    heard = scene["first"]
    if heard.without_result:
        yield found([heard.without_result], heard)
        return
    tools = listed(heard.result.get("tools"))
    if not tools:
        yield told("no tools are listed", heard)
        return
    odd = [show(str(tool.get("name")), 140) for tool in tools if not _is_well_named(tool)]
    problems = [f"{name!r} is not 1 to 128 of A-Z a-z 0-9 _ . -" for name in odd]
    yield found(problems, heard, mild=True)


def _is_well_named(tool: Obj) -> bool:
    name = tool.get("name")
    return isinstance(name, str) and _NAME.fullmatch(name) is not None


def _order(scene: Scene) -> Iterator[Row]:
    orders = []
    for label in _LISTS:
        heard = scene[label]
        if heard.without_result:
            yield found([heard.without_result], heard, mild=True)
            return
        orders.append([str(tool.get("name")) for tool in listed(heard.result.get("tools"))])
    if any(Counter(one) != Counter(orders[0]) for one in orders):
        yield can_not_tell("other tools were listed each time; keep the set of tools as it is")
    elif len(orders[0]) < 2:
        yield told(f"{len(orders[0])} tools have no order")
    else:
        same = all(one == orders[0] for one in orders)
        fault = "the same tools were listed in another order the next time"
        yield found([] if same else [fault], scene["second"], mild=True)


# -- resources-list, prompts-list, completion


def _resource_problems(result: Obj) -> Iterator[str]:
    yield from missing_members(result.get("resources"), "resource", "uri", "name")


def _prompt_problems(result: Obj) -> Iterator[str]:
    yield from missing_members(result.get("prompts"), "prompt", "name", "description")


def _complete(stage: Stage) -> None:
    name = stage.fixture(_COMPLETED)
    declared = stage.offered.prompt_arguments(name)
    prompt = {"type": "ref/prompt", "name": name}
    argument = {"name": "arg1" if "arg1" in declared else next(iter(declared), "arg1")}
    argument["value"] = "test"
    stage.ask("asked", "completion/complete", {"ref": prompt, "argument": argument})


def _completion_problems(result: Obj) -> Iterator[str]:
    completion = result.get("completion")
    if not isinstance(completion, dict):
        yield "the result has no completion object"
    elif not isinstance(completion.get("values"), list):
        yield "completion.values is no array"


# -- caching


def _ask_all(stage: Stage) -> None:
    for method in _CACHED:
        capability = _NEEDED_BY.get(method, "resources")
        if method == "resources/read" or not stage.offered.declares(capability):
            continue
        stage.ask(method, method)
    uri = _first_uri(stage.heard("resources/list").result) if "resources/list" in stage else None
    if uri is not None:
        stage.ask("resources/read", "resources/read", {"uri": uri})


def _first_uri(result: Obj) -> str | None:
    uris = (one.get("uri") for one in listed(result.get("resources")))
    return next((uri for uri in uris if isinstance(uri, str)), None)


def _hints(method: str) -> Judge:
    def judge(scene: Scene) -> Iterator[Row]:
        capability = _NEEDED_BY.get(method, "resources")
        if method not in scene:
            if method == "resources/read" and scene.offered.declares(capability):
                yield not_for_it("no resource is listed that could be read")
            else:
                yield can_not_tell(f"declare the capability {capability}, and serve {method}")
            return
        heard = scene[method]
        missing = [one for one in ("ttlMs", "cacheScope") if one not in heard.result]
        problems = [f"the result of {method} has no {one}" for one in missing]
        yield found([heard.without_result] if heard.without_result else problems, heard)

    return judge


def _values(member: str) -> Judge:
    def judge(scene: Scene) -> Iterator[Row]:
        asked = [method for method in _CACHED if method in scene]
        if not asked:
            yield can_not_tell("declare a capability with a list: tools, prompts or resources")
            return
        results = {method: scene[method].result for method in asked}
        given = {method: one[member] for method, one in results.items() if member in one}
        if not given:
            yield found([f"no result has {member}"])
            return
        fits = _is_life if member == "ttlMs" else _is_scope
        odd = [
            f"{member} of {method} is {show(repr(value), 60)}"
            for method, value in given.items()
            if not fits(value)
        ]
        yield found(odd)

    return judge


def _is_life(value: Any) -> bool:
    whole = type(value) is int or (type(value) is float and value.is_integer())
    return bool(whole and value >= 0)


def _is_scope(value: Any) -> bool:
    return value in ("public", "private")


def _hint_check(method: str, name: str) -> ServerCheck:
    return ServerCheck(
        id=f"sep-2549-{method.replace('/', '-')}-caching-hints",
        name=name,
        description=f"the result of {method} has ttlMs and cacheScope",
        judge=_hints(method),
        references=_CACHING,
    )


SCENARIOS = (
    ServerScenario(
        name="completion-complete",
        title="Completion",
        description="`completion/complete` is asked for the argument `arg1` of the prompt "
        "`test_prompt_with_arguments`; the result has an array of values, which may be empty.",
        revisions=EVERY,
        suites=ACTIVE,
        script=_complete,
        needs=Needs(capabilities=("completions", "prompts"), prompts=(_COMPLETED,)),
        checks=(
            ServerCheck(
                id="completion-complete",
                name="CompletionComplete",
                description="completion/complete is answered with values",
                judge=result_of("asked", _completion_problems),
                references=reference("MCP-Completion", "2025-06-18/server/utilities/completion"),
            ),
        ),
    ),
    ServerScenario(
        name="tools-list",
        title="Tools are listed",
        description="`tools/list` shows each tool with name, description and inputSchema. From "
        "2025-11-25 on names should be of 1 to 128 letters, digits and `_ . -`; from 2026-07-28 "
        "on the order should not change from one request to the next.",
        revisions=EVERY,
        suites=ACTIVE,
        script=_list_tools,
        needs=Needs(capabilities=("tools",)),
        checks=(
            ServerCheck(
                id="tools-list",
                name="ToolsList",
                description="each listed tool has name, description and inputSchema",
                judge=result_of("first", _tool_problems),
                references=reference("MCP-Tools-List", "2025-06-18/server/tools#listing-tools"),
            ),
            ServerCheck(
                id="tools-name-format",
                name="ToolsNameFormat",
                description="tool names should be of 1 to 128 letters, digits and _ . -",
                judge=_names,
                references=reference("MCP-Tool-Names", "2025-11-25/server/tools#tool-names"),
                revisions=SINCE_2025_11_25,
            ),
            ServerCheck(
                id="tools-list-deterministic-order",
                name="ToolsListDeterministicOrder",
                description="the same tools should be listed in the same order each time",
                judge=_order,
                references=reference(
                    "MCP-Tools-Deterministic-Order", "2026-07-28/server/tools#capabilities"
                ),
                revisions=STATELESS,
            ),
        ),
    ),
    ServerScenario(
        name="resources-list",
        title="Resources are listed",
        description="`resources/list` shows each resource with uri and name.",
        revisions=EVERY,
        suites=ACTIVE,
        script=lambda stage: _ask(stage, "resources/list"),
        needs=Needs(capabilities=("resources",)),
        checks=(
            ServerCheck(
                id="resources-list",
                name="ResourcesList",
                description="each listed resource has uri and name",
                judge=result_of("asked", _resource_problems),
                references=reference(
                    "MCP-Resources-List", "2025-06-18/server/resources#listing-resources"
                ),
            ),
        ),
    ),
    ServerScenario(
        name="prompts-list",
        title="Prompts are listed",
        description="`prompts/list` shows each prompt with name and description.",
        revisions=EVERY,
        suites=ACTIVE,
        script=lambda stage: _ask(stage, "prompts/list"),
        needs=Needs(capabilities=("prompts",)),
        checks=(
            ServerCheck(
                id="prompts-list",
                name="PromptsList",
                description="each listed prompt has name and description",
                judge=result_of("asked", _prompt_problems),
                references=reference(
                    "MCP-Prompts-List", "2025-06-18/server/prompts#listing-prompts"
                ),
            ),
        ),
    ),
    ServerScenario(
        name="caching",
        title="Results say how long they live",
        description="The four lists and `resources/read` say with `ttlMs` (a whole number, not "
        "negative) and `cacheScope` (`public` or `private`) how they may be cached.",
        revisions=STATELESS,
        suites=DRAFT,
        script=_ask_all,
        checks=(
            *(_hint_check(method, name) for method, name in _CACHED.items()),
            ServerCheck(
                id="sep-2549-ttl-non-negative",
                name="TtlNonNegative",
                description="every ttlMs is a whole number that is not negative",
                judge=_values("ttlMs"),
                references=_CACHING,
            ),
            ServerCheck(
                id="sep-2549-cache-scope-valid",
                name="CacheScopeValid",
                description="every cacheScope is public or private",
                judge=_values("cacheScope"),
                references=_CACHING,
            ),
        ),
    ),
)


def _ask(stage: Stage, method: str) -> None:
    stage.ask("asked", method)
