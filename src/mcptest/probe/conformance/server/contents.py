"""What a server lists, and what it gives: tools with their input schemas, results with each kind of
content, progress, logging and questions; forms with defaults and choices; resources and prompts;
completion; how long a result lives.
"""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
_TOOL = "json_schema_2020_12_tool"


def asks(requests: Mapping[str, Obj | None]) -> ServerScript:
    """These requests in their order, by their methods; what came of the last is `asked`."""

    def script(stage: ScenarioStage) -> None:
        *before, last = requests
        for label, method in (*zip(before, before, strict=True), ("asked", last)):
            params = requests[method]
            stage.ask(label, method, params and stage.fitted(method, params))

    return script


def list_tools(stage: ScenarioStage) -> None:
    for label in _LISTS if stage.scene.is_stateless else _LISTS[:1]:
        stage.ask(label, "tools/list")


def each_has(kind: str, members: Sequence[str], label: str = "asked") -> Judge[Scene]:
    return result_of(label)(lambda result: missing_members(result.get(f"{kind}s"), kind, *members))


def tools_name_format(scene: Scene) -> CheckFinding:
    heard = scene["first"]
    if heard.without_result:
        return bad(heard.without_result, heard)
    names = [tool.get("name") for tool in listed(heard.result.get("tools"))]
    if not names:
        return info("the server lists no tools", heard)
    odd = [one for one in names if not (isinstance(one, str) and _NAME.fullmatch(one))]
    problem = "does not have 1 to 128 characters of A-Z a-z 0-9 _ . -"
    return verdict((f"{show(str(one), 140)!r} {problem}" for one in odd), heard, mild=True)


def tools_list_deterministic_order(scene: Scene) -> CheckFinding:
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


def complete_argument(stage: ScenarioStage) -> None:
    name = stage.scene.fixture(_COMPLETED)
    declared = stage.scene.offered.prompt_arguments(name)
    argument = "arg1" if "arg1" in declared else next(iter(declared), "arg1")
    asked = {
        "ref": {"type": "ref/prompt", "name": name},
        "argument": {"name": argument, "value": "test"},
    }
    stage.ask("asked", "completion/complete", asked)


@result_of("asked")
def completion_complete(result: Obj) -> Iterator[str]:
    completion = result.get("completion")
    if not isinstance(completion, dict):
        yield "the result has no completion object"
    elif not isinstance(completion.get("values"), list):
        yield "completion.values is not an array"


def ask_all(stage: ScenarioStage) -> None:
    for method, capability in LIST_CAPABILITIES.items():
        if stage.scene.offered.declares(capability):
            stage.ask(method, method)
    found = stage.scene["resources/list"].result.get("resources")
    uris = (one.get("uri") for one in listed(found))
    uri = next((one for one in uris if isinstance(one, str)), None)
    if uri is not None:
        stage.ask("resources/read", "resources/read", {"uri": uri})


def has_hints(method: str) -> Judge[Scene]:
    capability = _CACHED[method]

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
    """Wherever a result has this member, it fits."""

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


ttl_non_negative = _values("ttlMs", _is_life)
cache_scope_valid = _values("cacheScope", lambda one: one in ("public", "private"))


def walk(stage: ScenarioStage) -> None:
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
            if _tool_on(heard, stage.scene.fixture(_TOOL)) is not None:
                return


def _tool_on(heard: Heard, name: str) -> Obj | None:
    tools = listed(heard.result.get("tools"))
    return next((tool for tool in tools if tool.get("name") == name), None)


def _schema(only_stateless: bool = False) -> Callable[[Problems], Judge[Scene]]:
    """The tool is listed, and its schema has no problems. What only 2026-07-28 asks for is no fault
    where it is absent before that."""

    def judging(problems: Problems) -> Judge[Scene]:
        def judge(scene: Scene) -> CheckFinding:
            if not scene.heard:
                return bad("tools/list was not sent")
            heard = max(scene.heard.values(), key=lambda one: one.place)
            tool = _tool_on(heard, scene.fixture(_TOOL))
            schema = None if tool is None else tool.get("inputSchema")
            if not isinstance(schema, dict):
                unlisted = f"the server does not list the tool {scene.fixture(_TOOL)}"
                why = unlisted if tool is None else "inputSchema is not an object"
                return bad(heard.without_result or why, heard)
            row = verdict(problems(schema), heard)
            excused = only_stateless and not scene.is_stateless
            excused = excused and row.status is CheckStatus.FAILURE
            return replace(row, status=CheckStatus.SKIPPED) if excused else row

        return judge

    return judging


tool_with_schema = _schema()(lambda schema: ())


def schema_keeps(keyword: str, value: str | bool) -> Judge[Scene]:
    written, most = ("false", 60) if value is False else (repr(value), 120)

    def problems(schema: Obj) -> Iterator[str]:
        given = schema.get(keyword)
        if given is not value and (isinstance(value, bool) or given != value):
            yield f"{keyword} is {show(repr(given), most)}, not {written}"

    return _schema()(problems)


def schema_has(path: Sequence[str], member: str, only_stateless: bool = False) -> Judge[Scene]:
    problem = f"{'.'.join(path)} has no {member}"
    return _schema(only_stateless)(
        lambda schema: () if member in object_in(schema, *path) else (problem,)
    )


@_schema(only_stateless=True)
def composition_keywords_preserved(schema: Obj) -> Iterator[str]:
    if not any(isinstance(part.get("anyOf"), list) for part in listed(schema.get("allOf"))):
        yield "allOf with an anyOf in it is missing"


@_schema(only_stateless=True)
def conditional_keywords_preserved(schema: Obj) -> Iterator[str]:
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


def has_block(
    kind: str, members: Sequence[str], called: str = "", mime_type: str = ""
) -> Judge[Scene]:
    """The result has a block of this kind, with these members."""

    @success_of
    def problems(result: Obj) -> Iterator[str]:
        block, unseen = _block(result, kind)
        yield from unseen
        lacking = (one for one in members if block and not block.get(one))
        yield from (f"the {called or kind} has no {one}" for one in lacking)
        given = block.get("mimeType")
        if mime_type and given and given != mime_type:
            yield f"mimeType is {show(repr(given), 60)}, not {mime_type!r}"

    return problems


def _block(result: Obj, kind: str) -> tuple[Obj, list[str]]:
    """The first block of this kind, or why there is none."""
    blocks, unseen = _items(result, "content")
    block: Obj = next((one for one in blocks if one.get("type") == kind), {})
    return block, [] if block else unseen or [f"the result has no content of type {kind}"]


@success_of
def tools_call_embedded_resource(result: Obj) -> Iterator[str]:
    block, unseen = _block(result, "resource")
    yield from unseen
    resource = block.get("resource")
    if block and not isinstance(resource, dict):
        yield "the resource block has no resource"
    elif resource:
        lacking = (one for one in ("uri", "mimeType") if not resource.get(one))
        yield from (f"the resource has no {one}" for one in lacking)
    if isinstance(resource, dict) and not resource.get("text") and not resource.get("blob"):
        yield "the resource has neither text nor blob"


@success_of
def tools_call_mixed_content(result: Obj) -> Iterator[str]:
    blocks, problems = _items(result, "content")
    yield from problems
    kinds = {one.get("type") for one in blocks if isinstance(one.get("type"), str)}
    for kind in ("text", "image", "resource") if blocks else ():
        if kind not in kinds:
            yield f"the result has no content of type {kind}"


@result_of("asked")
def tools_call_error(result: Obj) -> Iterator[str]:
    if result.get("isError") is not True:
        yield "the result does not have isError: true"
    blocks, problems = _items(result, "content")
    yield from problems
    if blocks and not blocks[0].get("text"):
        yield "the first block has no text that explains the error"


def ask_with_progress(stage: ScenarioStage) -> None:
    since = len(stage.main.notifications)
    method, params = stage.fixture_request()
    heard = stage.ask("asked", method, {**params, "_meta": {"progressToken": _TOKEN}})
    if heard.answered:
        stage.await_notices(PROGRESS, _AT_LEAST, since, min(0.5, stage.patience))


def tools_call_with_progress(scene: Scene) -> CheckFinding:
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


def ask_with_logging(stage: ScenarioStage) -> None:
    stage.ask("level", "logging/setLevel", {"level": "debug"})
    since = len(stage.main.notifications)
    if stage.ask("asked", *stage.fixture_request()).answered:
        stage.await_notices(LOG, _AT_LEAST, since, min(0.5, stage.patience))


def tools_call_with_logging(scene: Scene) -> CheckFinding:
    heard = scene["asked"]
    count = len(scene.notices("asked", LOG))
    problems = [scene["level"].without_result, heard.without_success]
    if count < _AT_LEAST:
        problems.append(f"the server sent {count} log messages; expected at least {_AT_LEAST}")
    return verdict(problems, heard)


def asked_for(method: str) -> Judge[Scene]:
    def judge(scene: Scene) -> CheckFinding:
        heard = scene["asked"]
        methods = [one.get("method") for one in heard.exchange.asked]
        unasked = "" if method in methods else f"the server did not send {method}"
        failed = heard.without_success
        return verdict(
            [unasked, *([failed] if failed else _items(heard.result, "content")[1])], heard
        )

    return judge


def _fields(scene: Scene) -> tuple[Obj, str]:
    """The fields of the form that was asked for, or why there are none."""
    heard = scene["asked"]
    for one in heard.exchange.asked:
        if one.get("method") == "elicitation/create":
            fields = inside(one, "params", "requestedSchema", "properties")
            return (fields, "") if isinstance(fields, dict) else ({}, "the form has no fields")
    return {}, heard.without_result or "the server did not send elicitation/create"


def _field(field: str, kind: str) -> Callable[[Problems], Judge[Scene]]:
    """A field of the form is there, is of this type, and has no other problems."""

    def judging(problems: Problems) -> Judge[Scene]:
        def judge(scene: Scene) -> CheckFinding:
            fields, why = _fields(scene)
            schema = fields.get(field)
            if why or not isinstance(schema, dict):
                return bad(why or f"the form has no field {field}", scene["asked"])
            found = (*_type_problems(schema, kind), *problems(schema))
            return verdict((f"{field}: {one}" for one in found), scene["asked"])

        return judge

    return judging


def has_default(field: str, kind: str, wanted: Any, is_choice: bool = False) -> Judge[Scene]:
    @_field(field, kind)
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


def choice(
    field: str, member: str, never: Sequence[str], *, titled: bool = False, many: bool = False
) -> Judge[Scene]:
    """A field gives its choices, of which one is made or many, in this member and in no other."""

    @_field(field, "array" if many else "string")
    def problems(schema: Obj) -> Iterator[str]:
        part = schema.get("items") if many else schema
        if not isinstance(part, dict):
            yield "items is not an object"
            return
        if many and not titled:
            yield from (f"items: {one}" for one in _type_problems(part, "string"))
        options, place = part.get(member), "items." if many else ""
        if not (_has_titles(options) if titled else isinstance(options, list)):
            what = "an array of const and title" if titled else "an array"
            yield f"{place}{member} is not {what}"
        whole = "items" if many else "it"
        yield from (f"{whole} also has {one}" for one in never if part.get(one))

    return problems


@_field("legacyEnum", "string")
def elicitation_sep1330_legacy_enumnames(schema: Obj) -> Iterator[str]:
    values, names = schema.get("enum"), schema.get("enumNames")
    if not isinstance(values, list):
        yield "enum is not an array"
    if not isinstance(names, list):
        yield "enumNames is not an array"
    elif isinstance(values, list) and len(names) != len(values):
        yield f"there are {len(values)} values and {len(names)} names"


NOWHERE = "test://nonexistent-resource-for-conformance-testing"
_INVALID_PARAMS = -32602


def _first(result: Obj) -> tuple[Obj, list[str]]:
    """The first of a resource's contents, or what keeps one from looking at it."""
    _, missing = _items(result, "contents")
    first = {} if missing else result["contents"][0]
    if not isinstance(first, dict):
        return {}, ["the first item of contents is not an object"]
    return first, missing


def contents_have(*members: str) -> Judge[Scene]:
    @result_of("asked")
    def problems(result: Obj) -> Iterable[str]:
        first, missing = _first(result)
        return missing or [f"the contents have no {one}" for one in members if not first.get(one)]

    return problems


@result_of("asked")
def resources_templates_read(result: Obj) -> Iterable[str]:
    first, missing = _first(result)
    if missing:
        return missing
    if not first.get("uri"):
        return ["the contents have no uri"]
    text = first.get("text", "[binary]" if "blob" in first else None)
    if not isinstance(text, str):
        return ["the contents have neither text nor blob"]
    return [] if FILLED_IN in text else [f"the contents do not have the value {FILLED_IN}"]


answered = result_of("asked")(lambda result: ())


def no_empty_contents(scene: Scene) -> CheckFinding:
    heard = scene.answered("asked")
    fine = heard.exchange.answer == "error" or listed(heard.result.get("contents"))
    return expect(
        fine, "the server returned empty contents for a resource that does not exist", heard
    )


def error_code(scene: Scene) -> CheckFinding:
    heard = scene.answered("asked")
    if heard.exchange.answer == "result":
        return warned("the server returned a result instead of an error", heard)
    fault = (
        f"the server answered with error {show(str(heard.code), 20)}; expected {_INVALID_PARAMS}"
    )
    return expect(heard.code == _INVALID_PARAMS, fault, heard, mild=True)


def data_uri(scene: Scene) -> CheckFinding:
    heard = scene.answered("asked")
    if heard.exchange.answer != "error":
        return bad("the server returned no error", heard)
    uri = heard.error_data.get("uri")
    fault = f"data.uri of the error is {show(repr(uri), 120)}, not the requested URI"
    return expect(uri == NOWHERE, fault, heard, mild=True)


_ARGUMENTS = {"arg1": "testValue1", "arg2": "testValue2"}


@result_of("asked")
def prompts_get_simple(result: Obj) -> Iterator[str]:
    messages, problems = _items(result, "messages")
    yield from problems
    yield from missing_members(messages, "message", "role", "content")


@result_of("asked")
def prompts_get_with_args(result: Obj) -> Iterator[str]:
    messages, problems = _items(result, "messages")
    yield from problems
    said = str(messages)
    for name, value in _ARGUMENTS.items():
        if messages and value not in said:
            yield f"the messages do not have the value of {name}"


def message_has(kind: str, *members: str) -> Judge[Scene]:
    @result_of("asked")
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
