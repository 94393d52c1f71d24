"""Calls of fixture tools: each kind of content, failure, progress, logging, sampling, a form."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

from mcptest.clients.scenario import Row
from mcptest.model.show import show
from mcptest.run.conformance.scenarios.judges import (
    Problems,
    found,
    listed,
    reference,
    result_of,
    success_of,
)
from mcptest.run.conformance.scenarios.scenario import (
    ACTIVE,
    EVERY,
    HANDSHAKE,
    Judge,
    Needs,
    Script,
    ServerCheck,
    ServerScenario,
)
from mcptest.run.conformance.scenarios.scene import Obj, Scene
from mcptest.run.conformance.scenarios.stage import Stage

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


def _block(result: Obj, kind: str) -> tuple[Obj, list[str]]:
    blocks, problems = content_of(result)
    block = next((one for one in blocks if one.get("type") == kind), None)
    if block is None:
        return {}, problems or [f"there is no content of type {kind}"]
    return block, []


def _text_problems(result: Obj) -> Iterator[str]:
    block, problems = _block(result, "text")
    yield from problems
    if block and not block.get("text"):
        yield "the text block has no text"


def _image_problems(result: Obj) -> Iterator[str]:
    block, problems = _block(result, "image")
    yield from problems
    yield from (f"the image has no {one}" for one in ("data", "mimeType") if _lacks(block, one))


def _audio_problems(result: Obj) -> Iterator[str]:
    block, problems = _block(result, "audio")
    yield from problems
    yield from (f"the audio has no {one}" for one in ("data", "mimeType") if _lacks(block, one))
    kind = block.get("mimeType")
    if kind and kind != "audio/wav":
        yield f"mimeType is {show(repr(kind), 60)}, not 'audio/wav'"


def _resource_problems(result: Obj) -> Iterator[str]:
    block, problems = _block(result, "resource")
    yield from problems
    resource = block.get("resource")
    if not block:
        return
    if not isinstance(resource, dict):
        yield "the resource block has no resource"
        return
    yield from (
        f"the resource has no {one}" for one in ("uri", "mimeType") if _lacks(resource, one)
    )
    if not resource.get("text") and not resource.get("blob"):
        yield "the resource has neither text nor blob"


def _lacks(block: Obj, member: str) -> bool:
    return bool(block) and not block.get(member)


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


def _with_progress(stage: Stage) -> None:
    since = len(stage.main.notifications)
    params = stage.call_params("test_tool_with_progress", {})
    params["_meta"] = {"progressToken": _TOKEN}
    heard = stage.ask("called", "tools/call", params)
    if heard.answered:
        stage.await_notices(PROGRESS, _AT_LEAST, since, min(0.5, stage.patience))


def _progress(scene: Scene) -> Iterator[Row]:
    heard = scene["called"]
    if heard.without_success:
        yield found([heard.without_success], heard)
        return
    notices = scene.notices("called", PROGRESS)
    ours = [one.get("progress") for one in notices if one.get("progressToken") == _TOKEN]
    yield found(_progress_problems(ours, len(notices)), heard)


def _progress_problems(ours: list[Any], in_all: int) -> Iterator[str]:
    if len(ours) < _AT_LEAST:
        other = f", and {in_all - len(ours)} for another token" if in_all > len(ours) else ""
        yield f"{len(ours)} progress notifications came{other}, not at least {_AT_LEAST}"
    numbers = [one for one in ours if type(one) in (int, float)]
    if len(numbers) < len(ours):
        yield "a progress is no number"
    if any(later < earlier for earlier, later in pairwise(numbers)):
        yield f"progress went back: {show(str(numbers[:10]), 100)}"


def _with_logging(stage: Stage) -> None:
    stage.ask("level", "logging/setLevel", {"level": "debug"})
    since = len(stage.main.notifications)
    if stage.call("called", "test_tool_with_logging", {}).answered:
        stage.await_notices(LOG, _AT_LEAST, since, min(0.5, stage.patience))


def _logged(scene: Scene) -> Iterator[Row]:
    heard = scene["called"]
    count = len(scene.notices("called", LOG))
    problems = [scene["level"].without_result, heard.without_success]
    if count < _AT_LEAST:
        problems.append(f"{count} log messages came, not at least {_AT_LEAST}")
    yield found(filter(None, problems), heard)


# -- asking the client


def _asked_for(method: str) -> Judge:
    def judge(scene: Scene) -> Iterator[Row]:
        heard = scene["called"]
        methods = [one.get("method") for one in heard.exchange.asked]
        problems = [] if method in methods else [f"the server did not send {method}"]
        if heard.without_success:
            problems.append(heard.without_success)
        else:
            problems += content_of(heard.result)[1]
        yield found(problems, heard)

    return judge


# -- the table


def _calls(tool: str, arguments: Obj | None) -> Script:
    def script(stage: Stage) -> None:
        stage.call("called", tool, arguments)

    return script


def _content(
    name: str,
    check_name: str,
    tool: str,
    what: str,
    problems: Problems,
    arguments: Obj | None,
    judged_by: Callable[[str, Problems], Judge] = success_of,
) -> ServerScenario:
    """A tool that has no arguments and returns one kind of thing."""
    return ServerScenario(
        name=name,
        title=f"A tool returns {what}",
        description=f"The fixture `{tool}` is called "
        f"{'with empty arguments' if arguments is not None else 'without arguments'} and returns "
        f"{what}.",
        revisions=EVERY,
        suites=ACTIVE,
        script=_calls(tool, arguments),
        needs=Needs(capabilities=("tools",), tools=(tool,)),
        checks=(
            ServerCheck(
                id=name,
                name=check_name,
                description=f"the tool returns {what}",
                judge=judged_by("called", problems),
                references=_CALL,
            ),
        ),
    )


def _asking(
    name: str, check_name: str, tool: str, method: str, arguments: Obj, page: str
) -> ServerScenario:
    return ServerScenario(
        name=name,
        title=f"A tool sends {method}",
        description=f"The fixture `{tool}` sends `{method}` to the client while it works, and "
        "returns content once it was answered.",
        revisions=HANDSHAKE,
        suites=ACTIVE,
        script=_calls(tool, arguments),
        needs=Needs(capabilities=("tools",), tools=(tool,)),
        checks=(
            ServerCheck(
                id=name,
                name=check_name,
                description=f"the tool sends {method}, and returns content",
                judge=_asked_for(method),
                references=reference(f"MCP-{page.capitalize()}", f"2025-06-18/client/{page}"),
            ),
        ),
    )


def _noisy(
    name: str, check_name: str, script: Callable[[Stage], None], judge: Judge, **more: Any
) -> ServerScenario:
    return ServerScenario(
        name=name,
        suites=ACTIVE,
        script=script,
        checks=(
            ServerCheck(
                id=name,
                name=check_name,
                description=more.pop("check"),
                judge=judge,
                references=more.pop("references"),
            ),
        ),
        **more,
    )


SCENARIOS = (
    _content(
        "tools-call-simple-text",
        "ToolsCallSimpleText",
        "test_simple_text",
        "a text block",
        _text_problems,
        None,
    ),
    _content(
        "tools-call-image",
        "ToolsCallImage",
        "test_image_content",
        "an image with data and mimeType",
        _image_problems,
        {},
    ),
    _content(
        "tools-call-audio",
        "ToolsCallAudio",
        "test_audio_content",
        "audio/wav data",
        _audio_problems,
        {},
    ),
    _content(
        "tools-call-embedded-resource",
        "ToolsCallEmbeddedResource",
        "test_embedded_resource",
        "a resource with uri, mimeType and text or blob",
        _resource_problems,
        {},
    ),
    _content(
        "tools-call-mixed-content",
        "ToolsCallMixedContent",
        "test_multiple_content_types",
        "a text, an image and a resource",
        _mixed_problems,
        {},
    ),
    _noisy(
        "tools-call-with-logging",
        "ToolsCallWithLogging",
        _with_logging,
        _logged,
        title="A tool logs",
        description="After `logging/setLevel` with `debug`, the fixture `test_tool_with_logging` "
        "sends at least three log messages while it works.",
        revisions=HANDSHAKE,
        needs=Needs(capabilities=("tools", "logging"), tools=("test_tool_with_logging",)),
        check="at least three log messages come while the tool works",
        references=reference("MCP-Logging", "2025-06-18/server/utilities/logging"),
    ),
    _content(
        "tools-call-error",
        "ToolsCallError",
        "test_error_handling",
        "isError: true with a text",
        _failure_problems,
        {},
        result_of,
    ),
    _noisy(
        "tools-call-with-progress",
        "ToolsCallWithProgress",
        _with_progress,
        _progress,
        title="A tool reports progress",
        description="The fixture `test_tool_with_progress` is called with a progress token and "
        "reports progress for it at least three times, never going back.",
        revisions=EVERY,
        needs=Needs(capabilities=("tools",), tools=("test_tool_with_progress",)),
        check="at least three progress notifications come for the token, never going back",
        references=reference("MCP-Progress", "2025-06-18/basic/utilities/progress"),
    ),
    _asking(
        "tools-call-sampling",
        "ToolsCallSampling",
        "test_sampling",
        "sampling/createMessage",
        {"prompt": "Say something."},
        "sampling",
    ),
    _asking(
        "tools-call-elicitation",
        "ToolsCallElicitation",
        "test_elicitation",
        "elicitation/create",
        {"message": "Please say something."},
        "elicitation",
    ),
)
