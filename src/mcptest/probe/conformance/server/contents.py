"""Resources and prompts: reading, subscribing, a missing resource, each kind of prompt."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from mcptest.core.safe_text import show
from mcptest.core.scenario_outcome import Reference
from mcptest.probe.conformance.scenario import (
    CheckFinding,
    Scenario,
    ScenarioNeeds,
    bad,
    check,
    reference,
    verdict,
    warned,
)
from mcptest.probe.conformance.server.scene import (
    DRAFT,
    HANDSHAKE,
    STATELESS,
    Obj,
    Problems,
    ScenarioStage,
    Scene,
    ServerScript,
    asks,
    listed,
    one_check,
    result_of,
)

NOWHERE = "test://nonexistent-resource-for-conformance-testing"
TEMPLATE = "test://template/{id}/data"
_FILLED_IN = "123"
_WATCHED = "test://watched-resource"
_VARIABLE = re.compile(r"\{[^{}]*\}")
_INVALID_PARAMS = -32602
_READ = reference("MCP-Resources-Read", "2025-06-18/server/resources#reading-resources")
_GET = reference("MCP-Prompts-Get", "2025-06-18/server/prompts#getting-a-prompt")
_NOT_FOUND = (
    *reference("MCP-Resources-Errors", "2026-07-28/server/resources#error-handling"),
    Reference("SEP-2164", "https://github.com/modelcontextprotocol/modelcontextprotocol/pull/2164"),
)


# -- resources


def _first(result: Obj) -> tuple[Obj, list[str]]:
    contents = result.get("contents")
    if not isinstance(contents, list):
        return {}, ["the result has no contents array"]
    if not contents:
        return {}, ["the contents array is empty"]
    first = contents[0]
    return (first, []) if isinstance(first, dict) else ({}, ["the first of contents is no object"])


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
    return [] if _FILLED_IN in text else [f"the contents do not show the value {_FILLED_IN}"]


def _read(uri: str) -> ServerScript:
    def script(stage: ScenarioStage) -> None:
        given = _VARIABLE.sub(_FILLED_IN, stage.fixture(uri))
        stage.ask("asked", "resources/read", {"uri": given})

    return script


def _reading(
    name: str, uri: str, what: str, problems: Problems, check_title: str = ""
) -> Scenario[Scene]:
    return one_check(
        name,
        f"A resource is read: {what}",
        f"The fixture `{uri}` is read{' with the id 123' if '{' in uri else ''}; the "
        f"result has {what}.",
        f"the contents have {what}",
        _read(uri),
        result_of("asked", problems),
        _READ,
        ScenarioNeeds(capabilities=("resources",), resources=(uri,)),
        check_title=check_title,
    )


def _subscribe(stage: ScenarioStage) -> None:
    uri = {"uri": stage.fixture(_WATCHED)}
    stage.ask("asked", "resources/subscribe", uri)


def _unsubscribe(stage: ScenarioStage) -> None:
    uri = {"uri": stage.fixture(_WATCHED)}
    stage.ask("before", "resources/subscribe", uri)
    stage.ask("asked", "resources/unsubscribe", uri)


def _subscribing(name: str, script: ServerScript) -> Scenario[Scene]:
    method = name.replace("-", "/")
    return one_check(
        name,
        f"{method} is accepted",
        f"`{method}` for the fixture `{_WATCHED}` is answered without an error.",
        f"{method} is answered with a result",
        script,
        result_of("asked", lambda result: ()),
        reference("MCP-Resources-Subscribe", "2025-06-18/server/resources#subscriptions"),
        ScenarioNeeds(capabilities=("resources.subscribe",), resources=(_WATCHED,)),
        HANDSHAKE,
    )


# -- sep-2164-resource-not-found


@check(
    "sep-2164-no-empty-contents",
    "a missing resource is not answered with empty contents",
    title="ResourcesNotFoundNoEmptyContents",
)
def _no_empty_contents(scene: Scene) -> CheckFinding:
    heard = scene["asked"]
    if not heard.answered:
        return bad(heard.silence, heard)
    empty = heard.exchange.answer == "result" and not listed(heard.result.get("contents"))
    fault = "a resource that does not exist was answered with empty contents"
    return verdict(fault if empty else "", heard)


@check(
    "sep-2164-error-code",
    "a missing resource should be answered with the error -32602",
    title="ResourcesNotFoundErrorCode",
)
def _code(scene: Scene) -> CheckFinding:
    heard = scene["asked"]
    if not heard.answered:
        return bad(heard.silence, heard)
    if heard.exchange.answer == "result":
        return warned("a result came in place of an error", heard)
    fault = f"the error's code is {show(str(heard.code), 20)}, not {_INVALID_PARAMS}"
    return verdict("" if heard.code == _INVALID_PARAMS else fault, heard, mild=True)


@check(
    "sep-2164-data-uri",
    "the error should name the URI in its data",
    title="ResourcesNotFoundDataUri",
)
def _data(scene: Scene) -> CheckFinding:
    heard = scene["asked"]
    if heard.exchange.answer != "error":
        return bad(heard.silence if not heard.answered else "no error came", heard)
    data = heard.error.get("data")
    uri = data.get("uri") if isinstance(data, dict) else None
    fault = f"data.uri of the error is {show(repr(uri), 120)}, not the URI that was asked for"
    return verdict("" if uri == NOWHERE else fault, heard, mild=True)


# -- prompts


def _messages(result: Obj) -> tuple[list[Obj], list[str]]:
    messages = result.get("messages")
    if not isinstance(messages, list):
        return [], ["the result has no messages array"]
    return listed(messages), [] if messages else ["the messages array is empty"]


def _simple(result: Obj) -> Iterator[str]:
    messages, problems = _messages(result)
    yield from problems
    for place, message in enumerate(messages):
        for member in ("role", "content"):
            if not message.get(member):
                yield f"message {place} has no {member}"


def _with_both(result: Obj) -> Iterator[str]:
    messages, problems = _messages(result)
    yield from problems
    said = str(messages)
    for name, value in _ARGUMENTS.items():
        if messages and value not in said:
            yield f"the value of {name} is not in the messages"


def _with_content(kind: str, *members: str) -> Problems:
    def problems(result: Obj) -> Iterable[str]:
        messages, missing = _messages(result)
        contents = [one["content"] for one in messages if isinstance(one.get("content"), dict)]
        fits = any(
            one.get("type") == kind and all(one.get(member) for member in members)
            for one in contents
        )
        wanted = f"{kind} with {' and '.join(members)}" if members else kind
        return missing or ([] if fits else [f"no message has content of type {wanted}"])

    return problems


_ARGUMENTS = {"arg1": "testValue1", "arg2": "testValue2"}


def _getting(
    name: str, prompt: str, what: str, problems: Problems, arguments: dict[str, str] | None = None
) -> Scenario[Scene]:
    given = f" with {', '.join(arguments)}" if arguments else ""
    return one_check(
        name,
        f"A prompt has {what}",
        f"`prompts/get` for the fixture `{prompt}`{given} gives {what}.",
        f"the prompt has {what}",
        lambda stage: stage.ask("asked", "prompts/get", stage.prompt_params(prompt, arguments)),
        result_of("asked", problems),
        _GET,
        ScenarioNeeds(capabilities=("prompts",), prompts=(prompt,)),
    )


SCENARIOS = (
    _reading(
        "resources-read-text",
        "test://static-text",
        "uri, mimeType and text",
        _has("uri", "mimeType", "text"),
    ),
    _reading(
        "resources-read-binary",
        "test://static-binary",
        "uri, mimeType and blob",
        _has("uri", "mimeType", "blob"),
    ),
    _reading(
        "resources-templates-read",
        TEMPLATE,
        "the value that filled in the template",
        _from_template,
        "ResourcesTemplateRead",
    ),
    _subscribing("resources-subscribe", _subscribe),
    _subscribing("resources-unsubscribe", _unsubscribe),
    Scenario(
        name="sep-2164-resource-not-found",
        title="A resource does not exist",
        description="A URI that names nothing is read. The answer must not be empty contents; it "
        "should be the error -32602, with the URI in its data.",
        revisions=STATELESS,
        suites=DRAFT,
        script=asks("resources/read", {"uri": NOWHERE}),
        needs=ScenarioNeeds(capabilities=("resources",)),
        references=_NOT_FOUND,
        checks=(_no_empty_contents, _code, _data),
    ),
    _getting("prompts-get-simple", "test_simple_prompt", "messages with role and content", _simple),
    _getting(
        "prompts-get-with-args",
        "test_prompt_with_arguments",
        "the values of both arguments in its messages",
        _with_both,
        _ARGUMENTS,
    ),
    _getting(
        "prompts-get-embedded-resource",
        "test_prompt_with_embedded_resource",
        "an embedded resource",
        _with_content("resource"),
        {"resourceUri": "test://example-resource"},
    ),
    _getting(
        "prompts-get-with-image",
        "test_prompt_with_image",
        "an image with data and mimeType",
        _with_content("image", "data", "mimeType"),
    ),
)
