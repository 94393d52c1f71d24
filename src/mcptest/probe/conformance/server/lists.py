"""Lists and what is in them, input schemas included; completion; how long a result lives."""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

from msgspec.structs import replace

from mcptest.core.safe_text import show
from mcptest.core.scenario_outcome import CheckStatus
from mcptest.probe.conformance.scenario import (
    CheckFinding,
    Judge,
    bad,
    expect,
    info,
    object_in,
    skipped,
    untestable,
    verdict,
    warned,
)
from mcptest.probe.conformance.server.scene import (
    Heard,
    Obj,
    Problems,
    ScenarioStage,
    Scene,
    ServerScript,
    asks,
    listed,
    missing_members,
    result_of,
)
from mcptest.session.pages import EndlessPages, walk_pages

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")
_LISTS = ("first", "second", "third")
_COMPLETED = "test_prompt_with_arguments"
_CACHED = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resources",
    "resources/read": "resources",
}
"""With the capability that each needs."""
TOOL = "json_schema_2020_12_tool"
DIALECT = "https://json-schema.org/draft/2020-12/schema"


def _list_tools(stage: ScenarioStage) -> None:
    for label in _LISTS if stage.scene.is_stateless else _LISTS[:1]:
        stage.ask(label, "tools/list")


def _each_has(kind: str, *members: str) -> Problems:
    return lambda result: missing_members(result.get(f"{kind}s"), kind, *members)


def _names(scene: Scene) -> CheckFinding:
    heard = scene["first"]
    if heard.without_result:
        return bad(heard.without_result, heard)
    names = [tool.get("name") for tool in listed(heard.result.get("tools"))]
    if not names:
        return info("no tools are listed", heard)
    odd = [one for one in names if not (isinstance(one, str) and _NAME.fullmatch(one))]
    problem = "is not 1 to 128 of A-Z a-z 0-9 _ . -"
    return verdict((f"{show(str(one), 140)!r} {problem}" for one in odd), heard, mild=True)


def _order(scene: Scene) -> CheckFinding:
    orders = []
    for heard in (scene[label] for label in _LISTS):
        if heard.without_result:
            return warned(heard.without_result, heard)
        orders.append([str(tool.get("name")) for tool in listed(heard.result.get("tools"))])
    if any(Counter(one) != Counter(orders[0]) for one in orders):
        return untestable("other tools were listed each time; keep the set of tools as it is")
    if len(orders[0]) < 2:
        return info(f"{len(orders[0])} tools have no order")
    same = all(one == orders[0] for one in orders)
    fault = "the same tools were listed in another order the next time"
    return expect(same, fault, scene["second"], mild=True)


def _complete(stage: ScenarioStage) -> None:
    name = stage.scene.fixture(_COMPLETED)
    declared = stage.scene.offered.prompt_arguments(name)
    argument = "arg1" if "arg1" in declared else next(iter(declared), "arg1")
    asked = {
        "ref": {"type": "ref/prompt", "name": name},
        "argument": {"name": argument, "value": "test"},
    }
    stage.ask("asked", "completion/complete", asked)


def _completion_problems(result: Obj) -> Iterator[str]:
    completion = result.get("completion")
    if not isinstance(completion, dict):
        yield "the result has no completion object"
    elif not isinstance(completion.get("values"), list):
        yield "completion.values is no array"


def _ask_all(stage: ScenarioStage) -> None:
    for method, capability in _CACHED.items():
        if method != "resources/read" and stage.scene.offered.declares(capability):
            stage.ask(method, method)
    found = stage.scene["resources/list"].result.get("resources")
    uris = (one.get("uri") for one in listed(found))
    uri = next((one for one in uris if isinstance(one, str)), None)
    if uri is not None:
        stage.ask("resources/read", "resources/read", {"uri": uri})


def _hints(method: str, capability: str) -> Judge[Scene]:
    def judge(scene: Scene) -> CheckFinding:
        heard = scene[method]
        if method in scene:
            missing = [one for one in ("ttlMs", "cacheScope") if one not in heard.result]
            problems = (f"the result of {method} has no {one}" for one in missing)
            return verdict(heard.without_result or problems, heard)
        if method == "resources/read" and scene.offered.declares(capability):
            return skipped("no resource is listed that could be read")
        return untestable(f"declare the capability {capability}, and serve {method}")

    return judge


def _values(member: str, fits: Callable[[Any], bool]) -> Judge[Scene]:
    def judge(scene: Scene) -> CheckFinding:
        results = {method: scene[method].result for method in _CACHED if method in scene}
        if not results:
            return untestable("declare a capability with a list: tools, prompts or resources")
        given = {method: one[member] for method, one in results.items() if member in one}
        if not given:
            return bad(f"no result has {member}")
        return verdict(
            f"{member} of {method} is {show(repr(value), 60)}"
            for method, value in given.items()
            if not fits(value)
        )

    return judge


def _is_life(value: Any) -> bool:
    whole = type(value) is int or (type(value) is float and value.is_integer())
    return bool(whole and value >= 0)


def _walk(stage: ScenarioStage) -> None:
    """Every page of the list, until the tool was seen."""
    numbers = count(1)
    pages = walk_pages(
        "tools/list",
        lambda params: stage.ask(f"page {next(numbers)}", "tools/list", params),
        lambda heard: heard.result,
        seconds=stage.site.order.timeout,
    )
    with contextlib.suppress(EndlessPages):  # the tool was not on any of them
        for heard in pages:
            if _tool_on(heard, stage.scene.fixture(TOOL)) is not None:
                return


def _tool_on(heard: Heard, name: str) -> Obj | None:
    tools = listed(heard.result.get("tools"))
    return next((tool for tool in tools if tool.get("name") == name), None)


def _keeps(problems: Problems = lambda schema: (), *, only_stateless: bool = False) -> Judge[Scene]:
    """The tool is listed, and its schema has no problems. What only 2026-07-28 asks for is no fault
    where it is absent before that."""

    def judge(scene: Scene) -> CheckFinding:
        if not scene.heard:
            return bad("tools/list was not asked")
        heard = max(scene.heard.values(), key=lambda one: one.place)
        tool = _tool_on(heard, scene.fixture(TOOL))
        schema = None if tool is None else tool.get("inputSchema")
        if not isinstance(schema, dict):
            unlisted = f"the tool {scene.fixture(TOOL)} is not listed"
            why = unlisted if tool is None else "inputSchema is no object"
            return bad(heard.without_result or why, heard)
        row = verdict(problems(schema), heard)
        excused = only_stateless and not scene.is_stateless and row.status is CheckStatus.FAILURE
        return replace(row, status=CheckStatus.SKIPPED) if excused else row

    return judge


def _is(keyword: str, wanted: Any, written: str, most: int) -> Problems:
    def problems(schema: Obj) -> Iterator[str]:
        given = schema.get(keyword)
        if given is not wanted and (isinstance(wanted, bool) or given != wanted):
            yield f"{keyword} is {show(repr(given), most)}, not {written}"

    return problems


def _has(member: str, *path: str, problem: str) -> Problems:
    return lambda schema: () if member in object_in(schema, *path) else (problem,)


def _composition(schema: Obj) -> Iterator[str]:
    if not any(isinstance(part.get("anyOf"), list) for part in listed(schema.get("allOf"))):
        yield "allOf with an anyOf in it is missing"


def _conditions(schema: Obj) -> Iterator[str]:
    yield from (f"{word} is missing" for word in ("if", "then", "else") if word not in schema)


SCRIPTS: dict[str, ServerScript] = {
    "completion-complete": _complete,
    "tools-list": _list_tools,
    "resources-list": asks("resources/list"),
    "prompts-list": asks("prompts/list"),
    "caching": _ask_all,
    "json-schema-2020-12": _walk,
}
JUDGES: dict[str, Judge[Scene]] = {
    "completion-complete": result_of("asked", _completion_problems),
    "tools-list": result_of("first", _each_has("tool", "name", "description", "inputSchema")),
    "tools-name-format": _names,
    "tools-list-deterministic-order": _order,
    "resources-list": result_of("asked", _each_has("resource", "uri", "name")),
    "prompts-list": result_of("asked", _each_has("prompt", "name", "description")),
    **{
        f"sep-2549-{method.replace('/', '-')}-caching-hints": _hints(method, capability)
        for method, capability in _CACHED.items()
    },
    "sep-2549-ttl-non-negative": _values("ttlMs", _is_life),
    "sep-2549-cache-scope-valid": _values("cacheScope", lambda one: one in ("public", "private")),
    "json-schema-2020-12-tool-found": _keeps(),
    "json-schema-2020-12-$schema": _keeps(_is("$schema", DIALECT, repr(DIALECT), 120)),
    "json-schema-2020-12-$defs": _keeps(_has("address", "$defs", problem="$defs has no address")),
    "json-schema-2020-12-additionalProperties": _keeps(
        _is("additionalProperties", False, "false", 60)
    ),
    "sep-2106-composition-keywords-preserved": _keeps(_composition, only_stateless=True),
    "sep-2106-conditional-keywords-preserved": _keeps(_conditions, only_stateless=True),
    "sep-2106-anchor-keyword-preserved": _keeps(
        _has("$anchor", "$defs", "address", problem="$defs.address has no $anchor"),
        only_stateless=True,
    ),
}
