"""What a server lists, and what it gives: tools with their input schemas, results with each kind of
content, progress, logging and questions; forms with defaults and choices; resources and prompts;
completion; how long a result lives.
"""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import count, pairwise
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
    inside,
    object_in,
    skipped,
    untestable,
    verdict,
    warned,
)
from mcptest.probe.conformance.server.scene import (
    FILLED_IN,
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
    success_of,
)
from mcptest.session.pages import LIST_CAPABILITIES, EndlessPages, walk_pages

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")
_LISTS = ("first", "second", "third")
_COMPLETED = "test_prompt_with_arguments"
_CACHED = {**LIST_CAPABILITIES, "resources/read": "resources"}
"""With the capability that each needs."""
TOOL = "json_schema_2020_12_tool"
DIALECT = "https://json-schema.org/draft/2020-12/schema"


def completed(entry: Obj) -> Obj:
    """A scenario that only asks says so in its entry."""
    requests = entry.pop("asks", None)
    return entry if requests is None else {**entry, "script": asks(requests)}


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
        return info("the server lists no tools", heard)
    odd = [one for one in names if not (isinstance(one, str) and _NAME.fullmatch(one))]
    problem = "does not have 1 to 128 characters of A-Z a-z 0-9 _ . -"
    return verdict((f"{show(str(one), 140)!r} {problem}" for one in odd), heard, mild=True)


def _order(scene: Scene) -> CheckFinding:
    orders = []
    for heard in (scene[label] for label in _LISTS):
        if heard.without_result:
            return warned(heard.without_result, heard)
        orders.append([str(tool.get("name")) for tool in listed(heard.result.get("tools"))])
    if any(Counter(one) != Counter(orders[0]) for one in orders):
        return untestable("the server listed different tools each time")
    if len(orders[0]) < 2:
        return info(f"{len(orders[0])} tools have no order")
    same = all(one == orders[0] for one in orders)
    fault = "the server listed the same tools in another order the next time"
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
        yield "completion.values is not an array"


def _ask_all(stage: ScenarioStage) -> None:
    for method, capability in LIST_CAPABILITIES.items():
        if stage.scene.offered.declares(capability):
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
            return skipped("the server lists no readable resource")
        return untestable(f"declare the capability {capability} and answer {method}")

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
            return bad("tools/list was not sent")
        heard = max(scene.heard.values(), key=lambda one: one.place)
        tool = _tool_on(heard, scene.fixture(TOOL))
        schema = None if tool is None else tool.get("inputSchema")
        if not isinstance(schema, dict):
            unlisted = f"the server does not list the tool {scene.fixture(TOOL)}"
            why = unlisted if tool is None else "inputSchema is not an object"
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


def _schema_has(member: str, *path: str, problem: str) -> Problems:
    return lambda schema: () if member in object_in(schema, *path) else (problem,)


def _composition(schema: Obj) -> Iterator[str]:
    if not any(isinstance(part.get("anyOf"), list) for part in listed(schema.get("allOf"))):
        yield "allOf with an anyOf in it is missing"


def _conditions(schema: Obj) -> Iterator[str]:
    yield from (f"{word} is missing" for word in ("if", "then", "else") if word not in schema)


# -- What is behind the lists ----------------------------------------------------------------------

PROGRESS = "notifications/progress"
LOG = "notifications/message"
_TOKEN = "mcptest-progress"
_AT_LEAST = 3


def _items(result: Obj, member: str) -> tuple[list[Obj], list[str]]:
    """The objects of an array of a result, and what keeps one from looking at them."""
    items = result.get(member)
    if not isinstance(items, list):
        return [], [f"the result has no {member} array"]
    return listed(items), [] if items else [f"the {member} array is empty"]


def _has_block(
    kind: str, *members: str, called: str = "", more: Problems = lambda block: ()
) -> Problems:
    """There is a block of this kind, with these members; `more` looks at the block itself."""

    def problems(result: Obj) -> Iterator[str]:
        blocks, unseen = _items(result, "content")
        block = next((one for one in blocks if one.get("type") == kind), None)
        if not block:
            yield from unseen or [f"the result has no content of type {kind}"]
            return
        lacking = (one for one in members if not block.get(one))
        yield from (f"the {called or kind} has no {one}" for one in lacking)
        yield from more(block)

    return problems


def _is_wav(block: Obj) -> Iterator[str]:
    kind = block.get("mimeType")
    if kind and kind != "audio/wav":
        yield f"mimeType is {show(repr(kind), 60)}, not 'audio/wav'"


def _embedded(block: Obj) -> Iterator[str]:
    resource = block.get("resource")
    if not isinstance(resource, dict):
        yield "the resource block has no resource"
    elif resource:
        lacking = (one for one in ("uri", "mimeType") if not resource.get(one))
        yield from (f"the resource has no {one}" for one in lacking)
    if isinstance(resource, dict) and not resource.get("text") and not resource.get("blob"):
        yield "the resource has neither text nor blob"


def _mixed_problems(result: Obj) -> Iterator[str]:
    blocks, problems = _items(result, "content")
    yield from problems
    kinds = {one.get("type") for one in blocks if isinstance(one.get("type"), str)}
    for kind in ("text", "image", "resource") if blocks else ():
        if kind not in kinds:
            yield f"the result has no content of type {kind}"


def _failure_problems(result: Obj) -> Iterator[str]:
    if result.get("isError") is not True:
        yield "the result does not have isError: true"
    blocks, problems = _items(result, "content")
    yield from problems
    if blocks and not blocks[0].get("text"):
        yield "the first block has no text that explains the error"


def _with_progress(stage: ScenarioStage) -> None:
    since = len(stage.main.notifications)
    params = stage.call_params("test_tool_with_progress", {})
    params["_meta"] = {"progressToken": _TOKEN}
    heard = stage.ask("asked", "tools/call", params)
    if heard.answered:
        stage.await_notices(PROGRESS, _AT_LEAST, since, min(0.5, stage.patience))


def _progress(scene: Scene) -> CheckFinding:
    heard = scene["asked"]
    if heard.without_success:
        return bad(heard.without_success, heard)
    notices = scene.notices("asked", PROGRESS)
    ours = [one.get("progress") for one in notices if one.get("progressToken") == _TOKEN]
    numbers: list[Any] = [one for one in ours if type(one) in (int, float)]
    problems = []
    if len(ours) < _AT_LEAST:
        more = len(notices) - len(ours)
        other = f", and {more} for another token" if more else ""
        problems.append(
            f"the server sent {len(ours)} progress notifications{other}; expected {_AT_LEAST}"
        )
    if len(numbers) < len(ours):
        problems.append("the server sent a progress that is not a number")
    if any(later < earlier for earlier, later in pairwise(numbers)):
        problems.append(f"progress decreased: {show(str(numbers[:10]), 100)}")
    return verdict(problems, heard)


def _with_logging(stage: ScenarioStage) -> None:
    stage.ask("level", "logging/setLevel", {"level": "debug"})
    since = len(stage.main.notifications)
    if stage.call("asked", "test_tool_with_logging", {}).answered:
        stage.await_notices(LOG, _AT_LEAST, since, min(0.5, stage.patience))


def _logged(scene: Scene) -> CheckFinding:
    heard = scene["asked"]
    count = len(scene.notices("asked", LOG))
    problems = [scene["level"].without_result, heard.without_success]
    if count < _AT_LEAST:
        problems.append(f"the server sent {count} log messages; expected at least {_AT_LEAST}")
    return verdict(problems, heard)


def _asked_for(method: str) -> Judge[Scene]:
    def judge(scene: Scene) -> CheckFinding:
        heard = scene["asked"]
        methods = [one.get("method") for one in heard.exchange.asked]
        unasked = "" if method in methods else f"the server did not send {method}"
        failed = heard.without_success
        return verdict(
            [unasked, *([failed] if failed else _items(heard.result, "content")[1])], heard
        )

    return judge


_DEFAULTS: dict[str, tuple[str, str, Any]] = {
    "string": ("name", "string", "John Doe"),
    "integer": ("age", "integer", 30),
    "number": ("score", "number", 95.5),
    "enum": ("status", "string", "active"),
    "boolean": ("verified", "boolean", True),
}


def _fields(scene: Scene) -> tuple[Obj, str]:
    """The fields of the form that was asked for, or why there are none."""
    heard = scene["asked"]
    for one in heard.exchange.asked:
        if one.get("method") == "elicitation/create":
            fields = inside(one, "params", "requestedSchema", "properties")
            return (fields, "") if isinstance(fields, dict) else ({}, "the form has no fields")
    return {}, heard.without_result or "the server did not send elicitation/create"


def _judge(field: str, kind: str, problems: Problems) -> Judge[Scene]:
    """A field of the form is there, is of this type, and has no other problems."""

    def judge(scene: Scene) -> CheckFinding:
        fields, why = _fields(scene)
        schema = fields.get(field)
        if why or not isinstance(schema, dict):
            return bad(why or f"the form has no field {field}", scene["asked"])
        found = (*_type_problems(schema, kind), *problems(schema))
        return verdict((f"{field}: {one}" for one in found), scene["asked"])

    return judge


def _default_problems(wanted: Any, is_choice: bool) -> Problems:
    def problems(schema: Obj) -> Iterator[str]:
        choices = schema.get("enum")
        if is_choice and not isinstance(choices, list):
            yield "enum is not an array"
        if "default" not in schema:
            yield "the field has no default"
            return
        given = schema["default"]
        # In JSON 1 is no true; in Python they are equal.
        if isinstance(given, bool) is not isinstance(wanted, bool) or given != wanted:
            yield f"default is {show(repr(given), 60)}, not {wanted!r}"
        if isinstance(choices, list) and given not in choices:
            yield "the default is not one of the choices"

    return problems


def _type_problems(schema: Obj, kind: str) -> Iterator[str]:
    if schema.get("type") != kind:
        yield f"type is {show(repr(schema.get('type')), 60)}, not {kind!r}"


def _has_titles(options: Any) -> bool:
    return isinstance(options, list) and all(
        isinstance(one, dict)
        and isinstance(one.get("const"), str)
        and isinstance(one.get("title"), str)
        for one in options
    )


def _untitled_single(schema: Obj) -> Iterator[str]:
    if not isinstance(schema.get("enum"), list):
        yield "enum is not an array"
    yield from (f"it also has {one}" for one in ("oneOf", "enumNames") if schema.get(one))


def _titled_single(schema: Obj) -> Iterator[str]:
    if not _has_titles(schema.get("oneOf")):
        yield "oneOf is not an array of const and title"
    if schema.get("enum"):
        yield "it also has enum"


def _legacy(schema: Obj) -> Iterator[str]:
    values, names = schema.get("enum"), schema.get("enumNames")
    if not isinstance(values, list):
        yield "enum is not an array"
    if not isinstance(names, list):
        yield "enumNames is not an array"
    elif isinstance(values, list) and len(names) != len(values):
        yield f"there are {len(values)} values and {len(names)} names"


def _untitled_multi(schema: Obj) -> Iterator[str]:
    items = schema.get("items")
    if not isinstance(items, dict):
        yield "items is not an object"
        return
    yield from (f"items: {one}" for one in _type_problems(items, "string"))
    if not isinstance(items.get("enum"), list):
        yield "items.enum is not an array"
    if items.get("anyOf"):
        yield "items also has anyOf"


def _titled_multi(schema: Obj) -> Iterator[str]:
    items = schema.get("items")
    if not isinstance(items, dict):
        yield "items is not an object"
        return
    if not _has_titles(items.get("anyOf")):
        yield "items.anyOf is not an array of const and title"
    if items.get("enum"):
        yield "items also has enum"


_CHOICES: dict[str, tuple[str, str, Problems]] = {
    "untitled-single": ("untitledSingle", "string", _untitled_single),
    "titled-single": ("titledSingle", "string", _titled_single),
    "legacy-enumnames": ("legacyEnum", "string", _legacy),
    "untitled-multi": ("untitledMulti", "array", _untitled_multi),
    "titled-multi": ("titledMulti", "array", _titled_multi),
}


NOWHERE = "test://nonexistent-resource-for-conformance-testing"
_INVALID_PARAMS = -32602


def _first(result: Obj) -> tuple[Obj, list[str]]:
    """The first of a resource's contents, or what keeps one from looking at it."""
    _, missing = _items(result, "contents")
    first = {} if missing else result["contents"][0]
    if not isinstance(first, dict):
        return {}, ["the first item of contents is not an object"]
    return first, missing


def _has(*members: str) -> Problems:
    def problems(result: Obj) -> Iterable[str]:
        first, missing = _first(result)
        return missing or [f"the contents have no {one}" for one in members if not first.get(one)]

    return problems


def _from_template(result: Obj) -> Iterable[str]:
    first, missing = _first(result)
    if missing:
        return missing
    if not first.get("uri"):
        return ["the contents have no uri"]
    text = first.get("text", "[binary]" if "blob" in first else None)
    if not isinstance(text, str):
        return ["the contents have neither text nor blob"]
    return [] if FILLED_IN in text else [f"the contents do not have the value {FILLED_IN}"]


def _no_empty_contents(scene: Scene) -> CheckFinding:
    heard = scene.answered("asked")
    fine = heard.exchange.answer == "error" or listed(heard.result.get("contents"))
    return expect(
        fine, "the server returned empty contents for a resource that does not exist", heard
    )


def _code(scene: Scene) -> CheckFinding:
    heard = scene.answered("asked")
    if heard.exchange.answer == "result":
        return warned("the server returned a result instead of an error", heard)
    fault = (
        f"the server answered with error {show(str(heard.code), 20)}; expected {_INVALID_PARAMS}"
    )
    return expect(heard.code == _INVALID_PARAMS, fault, heard, mild=True)


def _data(scene: Scene) -> CheckFinding:
    heard = scene.answered("asked")
    if heard.exchange.answer != "error":
        return bad("the server returned no error", heard)
    uri = heard.error_data.get("uri")
    fault = f"data.uri of the error is {show(repr(uri), 120)}, not the requested URI"
    return expect(uri == NOWHERE, fault, heard, mild=True)


_ARGUMENTS = {"arg1": "testValue1", "arg2": "testValue2"}


def _simple(result: Obj) -> Iterator[str]:
    messages, problems = _items(result, "messages")
    yield from problems
    yield from missing_members(messages, "message", "role", "content")


def _with_both(result: Obj) -> Iterator[str]:
    messages, problems = _items(result, "messages")
    yield from problems
    said = str(messages)
    for name, value in _ARGUMENTS.items():
        if messages and value not in said:
            yield f"the messages do not have the value of {name}"


def _with_content(kind: str, *members: str) -> Problems:
    def problems(result: Obj) -> Iterable[str]:
        messages, missing = _items(result, "messages")
        contents = [one["content"] for one in messages if isinstance(one.get("content"), dict)]
        fits = any(
            one.get("type") == kind and all(one.get(member) for member in members)
            for one in contents
        )
        wanted = f"{kind} with {' and '.join(members)}" if members else kind
        return missing or ([] if fits else [f"no message has content of type {wanted}"])

    return problems


SCRIPTS: dict[str, ServerScript] = {
    "completion-complete": _complete,
    "tools-list": _list_tools,
    "caching": _ask_all,
    "json-schema-2020-12": _walk,
    "tools-call-with-logging": _with_logging,
    "tools-call-with-progress": _with_progress,
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
    "json-schema-2020-12-$defs": _keeps(
        _schema_has("address", "$defs", problem="$defs has no address")
    ),
    "json-schema-2020-12-additionalProperties": _keeps(
        _is("additionalProperties", False, "false", 60)
    ),
    "sep-2106-composition-keywords-preserved": _keeps(_composition, only_stateless=True),
    "sep-2106-conditional-keywords-preserved": _keeps(_conditions, only_stateless=True),
    "sep-2106-anchor-keyword-preserved": _keeps(
        _schema_has("$anchor", "$defs", "address", problem="$defs.address has no $anchor"),
        only_stateless=True,
    ),
    "tools-call-simple-text": success_of(_has_block("text", "text", called="text block")),
    "tools-call-image": success_of(_has_block("image", "data", "mimeType")),
    "tools-call-audio": success_of(_has_block("audio", "data", "mimeType", more=_is_wav)),
    "tools-call-embedded-resource": success_of(_has_block("resource", more=_embedded)),
    "tools-call-mixed-content": success_of(_mixed_problems),
    "tools-call-with-logging": _logged,
    "tools-call-error": result_of("asked", _failure_problems),
    "tools-call-with-progress": _progress,
    "tools-call-sampling": _asked_for("sampling/createMessage"),
    "tools-call-elicitation": _asked_for("elicitation/create"),
    **{
        f"elicitation-sep1034-{what}-default": _judge(
            field, kind, _default_problems(wanted, what == "enum")
        )
        for what, (field, kind, wanted) in _DEFAULTS.items()
    },
    **{f"elicitation-sep1330-{what}": _judge(*judged) for what, judged in _CHOICES.items()},
    "resources-read-text": result_of("asked", _has("uri", "mimeType", "text")),
    "resources-read-binary": result_of("asked", _has("uri", "mimeType", "blob")),
    "resources-templates-read": result_of("asked", _from_template),
    "resources-subscribe": result_of("asked", lambda result: ()),
    "resources-unsubscribe": result_of("asked", lambda result: ()),
    "sep-2164-no-empty-contents": _no_empty_contents,
    "sep-2164-error-code": _code,
    "sep-2164-data-uri": _data,
    "prompts-get-simple": result_of("asked", _simple),
    "prompts-get-with-args": result_of("asked", _with_both),
    "prompts-get-embedded-resource": result_of("asked", _with_content("resource")),
    "prompts-get-with-image": result_of("asked", _with_content("image", "data", "mimeType")),
}
