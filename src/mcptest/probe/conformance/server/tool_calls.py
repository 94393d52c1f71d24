"""Calls of fixture tools: each kind of content, failure, progress, logging, sampling, and forms
with defaults and choices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

from mcptest.core.safe_text import show
from mcptest.probe.conformance.scenario import (
    ONLY_2025_11_25,
    CheckFinding,
    Judge,
    Scenario,
    ScenarioCheck,
    bad,
    reference,
    sep,
    verdict,
)
from mcptest.probe.conformance.server.scene import (
    ACTIVE,
    HANDSHAKE,
    Obj,
    Problems,
    ScenarioStage,
    Scene,
    calls,
    listed,
    needs_tool,
    one_check,
    result_of,
    success_of,
)

PROGRESS = "notifications/progress"
LOG = "notifications/message"
_TOKEN = "mcptest-progress"
_AT_LEAST = 3
_CALL = reference("MCP-Tools-Call", "2025-06-18/server/tools#calling-tools")


# -- content


def content_of(result: Obj) -> tuple[list[Obj], list[str]]:
    """The blocks of a result, and what keeps one from looking at them."""
    content = result.get("content")
    if not isinstance(content, list):
        return [], ["the result has no content array"]
    return listed(content), [] if content else ["the content array is empty"]


def _has_block(
    kind: str, *members: str, called: str = "", more: Problems = lambda block: ()
) -> Problems:
    """There is a block of this kind, with these members; `more` looks at the block itself."""

    def problems(result: Obj) -> Iterator[str]:
        blocks, unseen = content_of(result)
        block = next((one for one in blocks if one.get("type") == kind), None)
        if not block:
            yield from unseen or [f"there is no content of type {kind}"]
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
    blocks, problems = content_of(result)
    yield from problems
    kinds = {one.get("type") for one in blocks if isinstance(one.get("type"), str)}
    for kind in ("text", "image", "resource") if blocks else ():
        if kind not in kinds:
            yield f"there is no content of type {kind}"


def _failure_problems(result: Obj) -> Iterator[str]:
    if result.get("isError") is not True:
        yield "the result does not say isError: true"
    blocks, problems = content_of(result)
    yield from problems
    if blocks and not blocks[0].get("text"):
        yield "the first block has no text that says what went wrong"


# -- progress and logging


def _with_progress(stage: ScenarioStage) -> None:
    since = len(stage.main.notifications)
    params = stage.call_params("test_tool_with_progress", {})
    params["_meta"] = {"progressToken": _TOKEN}
    heard = stage.ask("called", "tools/call", params)
    if heard.answered:
        stage.await_notices(PROGRESS, _AT_LEAST, since, min(0.5, stage.patience))


def _progress(scene: Scene) -> CheckFinding:
    heard = scene["called"]
    if heard.without_success:
        return bad(heard.without_success, heard)
    notices = scene.notices("called", PROGRESS)
    ours = [one.get("progress") for one in notices if one.get("progressToken") == _TOKEN]
    return verdict(_progress_problems(ours, len(notices)), heard)


def _progress_problems(ours: list[Any], in_all: int) -> Iterator[str]:
    if len(ours) < _AT_LEAST:
        other = f", and {in_all - len(ours)} for another token" if in_all > len(ours) else ""
        yield f"{len(ours)} progress notifications came{other}, not at least {_AT_LEAST}"
    numbers = [one for one in ours if type(one) in (int, float)]
    if len(numbers) < len(ours):
        yield "a progress is no number"
    if any(later < earlier for earlier, later in pairwise(numbers)):
        yield f"progress went back: {show(str(numbers[:10]), 100)}"


def _with_logging(stage: ScenarioStage) -> None:
    stage.ask("level", "logging/setLevel", {"level": "debug"})
    since = len(stage.main.notifications)
    if stage.call("called", "test_tool_with_logging", {}).answered:
        stage.await_notices(LOG, _AT_LEAST, since, min(0.5, stage.patience))


def _logged(scene: Scene) -> CheckFinding:
    heard = scene["called"]
    count = len(scene.notices("called", LOG))
    problems = [scene["level"].without_result, heard.without_success]
    if count < _AT_LEAST:
        problems.append(f"{count} log messages came, not at least {_AT_LEAST}")
    return verdict(filter(None, problems), heard)


# -- asking the client


def _asked_for(method: str) -> Judge[Scene]:
    def judge(scene: Scene) -> CheckFinding:
        heard = scene["called"]
        methods = [one.get("method") for one in heard.exchange.asked]
        problems = [] if method in methods else [f"the server did not send {method}"]
        if heard.without_success:
            problems.append(heard.without_success)
        else:
            problems += content_of(heard.result)[1]
        return verdict(problems, heard)

    return judge


# -- forms

_DEFAULTS: dict[str, tuple[str, str, Any, str]] = {
    "string": ("name", "string", "John Doe", "StringDefault"),
    "integer": ("age", "integer", 30, "IntegerDefault"),
    "number": ("score", "number", 95.5, "NumberDefault"),
    "enum": ("status", "string", "active", "EnumDefault"),
    "boolean": ("verified", "boolean", True, "BooleanDefault"),
}


def _fields(scene: Scene) -> tuple[Obj, str]:
    """The fields of the form that was asked for, or why there are none."""
    heard = scene["called"]
    for one in heard.exchange.asked:
        if one.get("method") == "elicitation/create":
            params = one.get("params")
            schema = params.get("requestedSchema") if isinstance(params, dict) else None
            fields = schema.get("properties") if isinstance(schema, dict) else None
            return (fields, "") if isinstance(fields, dict) else ({}, "the form has no fields")
    return {}, heard.without_result or "the server did not send elicitation/create"


def _judge(field: str, problems: Callable[[Obj], Iterator[str]]) -> Judge[Scene]:
    def judge(scene: Scene) -> CheckFinding:
        fields, why = _fields(scene)
        schema = fields.get(field)
        if why or not isinstance(schema, dict):
            return bad(why or f"the form has no field {field}", scene["called"])
        return verdict((f"{field}: {one}" for one in problems(schema)), scene["called"])

    return judge


def _default_problems(kind: str, wanted: Any, is_choice: bool) -> Callable[[Obj], Iterator[str]]:
    def problems(schema: Obj) -> Iterator[str]:
        yield from _type_problems(schema, kind)
        choices = schema.get("enum")
        if is_choice and not isinstance(choices, list):
            yield "enum is no array"
        if "default" not in schema:
            yield "there is no default"
            return
        given = schema["default"]
        # In JSON 1 is no true; in Python they are equal.
        if isinstance(given, bool) is not isinstance(wanted, bool) or given != wanted:
            yield f"default is {show(repr(given), 60)}, not {wanted!r}"
        if isinstance(choices, list) and given not in choices:
            yield "the default is none of the choices"

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
    yield from _type_problems(schema, "string")
    if not isinstance(schema.get("enum"), list):
        yield "enum is no array"
    yield from (f"it has {one} too" for one in ("oneOf", "enumNames") if schema.get(one))


def _titled_single(schema: Obj) -> Iterator[str]:
    yield from _type_problems(schema, "string")
    if not _has_titles(schema.get("oneOf")):
        yield "oneOf is no array of const and title"
    if schema.get("enum"):
        yield "it has enum too"


def _legacy(schema: Obj) -> Iterator[str]:
    yield from _type_problems(schema, "string")
    values, names = schema.get("enum"), schema.get("enumNames")
    if not isinstance(values, list):
        yield "enum is no array"
    if not isinstance(names, list):
        yield "enumNames is no array"
    elif isinstance(values, list) and len(names) != len(values):
        yield f"there are {len(values)} values and {len(names)} names"


def _untitled_multi(schema: Obj) -> Iterator[str]:
    yield from _type_problems(schema, "array")
    items = schema.get("items")
    if not isinstance(items, dict):
        yield "items is no object"
        return
    yield from (f"items: {one}" for one in _type_problems(items, "string"))
    if not isinstance(items.get("enum"), list):
        yield "items.enum is no array"
    if items.get("anyOf"):
        yield "items has anyOf too"


def _titled_multi(schema: Obj) -> Iterator[str]:
    yield from _type_problems(schema, "array")
    items = schema.get("items")
    if not isinstance(items, dict):
        yield "items is no object"
        return
    if not _has_titles(items.get("anyOf")):
        yield "items.anyOf is no array of const and title"
    if items.get("enum"):
        yield "items has enum too"


_CHOICES = {
    "untitled-single": ("untitledSingle", "UntitledSingle", _untitled_single, "enum"),
    "titled-single": ("titledSingle", "TitledSingle", _titled_single, "oneOf"),
    "legacy-enumnames": ("legacyEnum", "LegacyEnumNames", _legacy, "enum and enumNames"),
    "untitled-multi": ("untitledMulti", "UntitledMulti", _untitled_multi, "items.enum"),
    "titled-multi": ("titledMulti", "TitledMulti", _titled_multi, "items.anyOf"),
}


# -- the table


def _content(
    name: str,
    tool: str,
    what: str,
    problems: Problems,
    arguments: Obj | None,
    judged_by: Callable[[str, Problems], Judge[Scene]] = success_of,
) -> Scenario[Scene]:
    """A tool that has no arguments and returns one kind of thing."""
    return one_check(
        name,
        f"A tool returns {what}",
        f"The fixture `{tool}` is called "
        f"{'with empty arguments' if arguments is not None else 'without arguments'} and returns "
        f"{what}.",
        f"the tool returns {what}",
        calls(tool, arguments),
        judged_by("called", problems),
        _CALL,
        needs_tool(tool),
    )


def _asking(name: str, tool: str, method: str, arguments: Obj, page: str) -> Scenario[Scene]:
    return one_check(
        name,
        f"A tool sends {method}",
        f"The fixture `{tool}` sends `{method}` to the client while it works, and "
        "returns content once it was answered.",
        f"the tool sends {method}, and returns content",
        calls(tool, arguments),
        _asked_for(method),
        reference(f"MCP-{page.capitalize()}", f"2025-06-18/client/{page}"),
        needs_tool(tool),
        HANDSHAKE,
    )


SCENARIOS = (
    _content(
        "tools-call-simple-text",
        "test_simple_text",
        "a text block",
        _has_block("text", "text", called="text block"),
        None,
    ),
    _content(
        "tools-call-image",
        "test_image_content",
        "an image with data and mimeType",
        _has_block("image", "data", "mimeType"),
        {},
    ),
    _content(
        "tools-call-audio",
        "test_audio_content",
        "audio/wav data",
        _has_block("audio", "data", "mimeType", more=_is_wav),
        {},
    ),
    _content(
        "tools-call-embedded-resource",
        "test_embedded_resource",
        "a resource with uri, mimeType and text or blob",
        _has_block("resource", more=_embedded),
        {},
    ),
    _content(
        "tools-call-mixed-content",
        "test_multiple_content_types",
        "a text, an image and a resource",
        _mixed_problems,
        {},
    ),
    one_check(
        "tools-call-with-logging",
        "A tool logs",
        "After `logging/setLevel` with `debug`, the fixture `test_tool_with_logging` "
        "sends at least three log messages while it works.",
        "at least three log messages come while the tool works",
        _with_logging,
        _logged,
        reference("MCP-Logging", "2025-06-18/server/utilities/logging"),
        needs_tool("test_tool_with_logging", capabilities=("logging",)),
        HANDSHAKE,
    ),
    _content(
        "tools-call-error",
        "test_error_handling",
        "isError: true with a text",
        _failure_problems,
        {},
        result_of,
    ),
    one_check(
        "tools-call-with-progress",
        "A tool reports progress",
        "The fixture `test_tool_with_progress` is called with a progress token and "
        "reports progress for it at least three times, never going back.",
        "at least three progress notifications come for the token, never going back",
        _with_progress,
        _progress,
        reference("MCP-Progress", "2025-06-18/basic/utilities/progress"),
        needs_tool("test_tool_with_progress"),
    ),
    _asking(
        "tools-call-sampling",
        "test_sampling",
        "sampling/createMessage",
        {"prompt": "Say something."},
        "sampling",
    ),
    _asking(
        "tools-call-elicitation",
        "test_elicitation",
        "elicitation/create",
        {"message": "Please say something."},
        "elicitation",
    ),
    Scenario(
        name="elicitation-sep1034-defaults",
        title="A form has defaults",
        description="The fixture `test_elicitation_sep1034_defaults` asks for a form with five "
        "fields, each with a default: `name` (John Doe), `age` (30), `score` (95.5), `status` "
        "(active, one of active, inactive, pending) and `verified` (true).",
        revisions=ONLY_2025_11_25,
        suites=ACTIVE,
        script=calls("test_elicitation_sep1034_defaults", {}),
        needs=needs_tool("test_elicitation_sep1034_defaults"),
        references=sep(1034),
        checks=tuple(
            ScenarioCheck(
                f"elicitation-sep1034-{what}-default",
                f"the {what} field of the form has its default",
                _judge(field, _default_problems(kind, wanted, what == "enum")),
                title=f"ElicitationSEP1034{name}",
            )
            for what, (field, kind, wanted, name) in _DEFAULTS.items()
        ),
    ),
    Scenario(
        name="elicitation-sep1330-enums",
        title="A form offers choices",
        description="The fixture `test_elicitation_sep1330_enums` asks for a form with five "
        "choices: `untitledSingle`, `titledSingle`, `legacyEnum`, `untitledMulti` and "
        "`titledMulti`, each written in its own way.",
        revisions=ONLY_2025_11_25,
        suites=ACTIVE,
        script=calls("test_elicitation_sep1330_enums", {}),
        needs=needs_tool("test_elicitation_sep1330_enums"),
        references=sep(1330),
        checks=tuple(
            ScenarioCheck(
                f"elicitation-sep1330-{what}",
                f"the field {field} is written with {how}",
                _judge(field, problems),
                title=f"ElicitationSEP1330{name}",
            )
            for what, (field, name, problems, how) in _CHOICES.items()
        ),
    ),
)
