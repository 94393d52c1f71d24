"""Resources and prompts: reading, subscribing, a missing resource, each kind of prompt."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from mcptest.clients.scenario import Row
from mcptest.model.conformance import Reference
from mcptest.model.show import show
from mcptest.run.conformance.scenarios.judges import (
    Problems,
    found,
    listed,
    reference,
    result_of,
)
from mcptest.run.conformance.scenarios.scenario import (
    ACTIVE,
    DRAFT,
    EVERY,
    HANDSHAKE,
    STATELESS,
    Needs,
    Script,
    ServerCheck,
    ServerScenario,
)
from mcptest.run.conformance.scenarios.scene import Obj, Scene
from mcptest.run.conformance.scenarios.stage import Stage

NOWHERE = "test://nonexistent-resource-for-conformance-testing"
TEMPLATE = "test://template/{id}/data"
_FILLED_IN = "123"
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


def _read(uri: str) -> Script:
    def script(stage: Stage) -> None:
        given = _VARIABLE.sub(_FILLED_IN, stage.fixture(uri))
        stage.ask("asked", "resources/read", {"uri": given})

    return script


def _reading(name: str, check: str, uri: str, what: str, problems: Problems) -> ServerScenario:
    return ServerScenario(
        name=name,
        title=f"A resource is read: {what}",
        description=f"The fixture `{uri}` is read{' with the id 123' if '{' in uri else ''}; the "
        f"result has {what}.",
        revisions=EVERY,
        suites=ACTIVE,
        script=_read(uri),
        needs=Needs(capabilities=("resources",), resources=(uri,)),
        checks=(
            ServerCheck(
                id=name,
                name=check,
                description=f"the contents have {what}",
                judge=result_of("asked", problems),
                references=_READ,
            ),
        ),
    )


def _anything(result: Obj) -> Iterable[str]:
    return ()


def _subscribe(stage: Stage) -> None:
    uri = {"uri": stage.fixture("test://watched-resource")}
    stage.ask("asked", "resources/subscribe", uri)


def _unsubscribe(stage: Stage) -> None:
    uri = {"uri": stage.fixture("test://watched-resource")}
    stage.ask("before", "resources/subscribe", uri)
    stage.ask("asked", "resources/unsubscribe", uri)


def _subscribing(name: str, check: str, script: Script) -> ServerScenario:
    method = name.replace("-", "/")
    return ServerScenario(
        name=name,
        title=f"{method} is accepted",
        description=f"`{method}` for the fixture `test://watched-resource` is answered without an "
        "error.",
        revisions=HANDSHAKE,
        suites=ACTIVE,
        script=script,
        needs=Needs(capabilities=("resources.subscribe",), resources=("test://watched-resource",)),
        checks=(
            ServerCheck(
                id=name,
                name=check,
                description=f"{method} is answered with a result",
                judge=result_of("asked", _anything),
                references=reference(
                    "MCP-Resources-Subscribe", "2025-06-18/server/resources#subscriptions"
                ),
            ),
        ),
    )


# -- sep-2164-resource-not-found


def _read_nothing(stage: Stage) -> None:
    stage.ask("asked", "resources/read", {"uri": NOWHERE})


def _no_empty_contents(scene: Scene) -> Iterator[Row]:
    heard = scene["asked"]
    if not heard.answered:
        yield found([heard.silence], heard)
    else:
        empty = heard.exchange.answer == "result" and not listed(heard.result.get("contents"))
        fault = "a resource that does not exist was answered with empty contents"
        yield found([fault] if empty else [], heard)


def _code(scene: Scene) -> Iterator[Row]:
    heard = scene["asked"]
    if not heard.answered:
        yield found([heard.silence], heard)
    elif heard.exchange.answer == "result":
        yield found(["a result came in place of an error"], heard, mild=True)
    else:
        fault = f"the error's code is {show(str(heard.code), 20)}, not {_INVALID_PARAMS}"
        yield found([] if heard.code == _INVALID_PARAMS else [fault], heard, mild=True)


def _data(scene: Scene) -> Iterator[Row]:
    heard = scene["asked"]
    if heard.exchange.answer != "error":
        yield found([heard.silence if not heard.answered else "no error came"], heard)
        return
    data = heard.error.get("data")
    uri = data.get("uri") if isinstance(data, dict) else None
    fault = f"data.uri of the error is {show(repr(uri), 120)}, not the URI that was asked for"
    yield found([] if uri == NOWHERE else [fault], heard, mild=True)


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


def _get(prompt: str, arguments: dict[str, str] | None) -> Script:
    def script(stage: Stage) -> None:
        stage.ask("asked", "prompts/get", stage.prompt_params(prompt, arguments))

    return script


def _getting(
    name: str,
    check: str,
    prompt: str,
    what: str,
    problems: Problems,
    arguments: dict[str, str] | None = None,
) -> ServerScenario:
    given = f" with {', '.join(arguments)}" if arguments else ""
    return ServerScenario(
        name=name,
        title=f"A prompt has {what}",
        description=f"`prompts/get` for the fixture `{prompt}`{given} gives {what}.",
        revisions=EVERY,
        suites=ACTIVE,
        script=_get(prompt, arguments),
        needs=Needs(capabilities=("prompts",), prompts=(prompt,)),
        checks=(
            ServerCheck(
                id=name,
                name=check,
                description=f"the prompt has {what}",
                judge=result_of("asked", problems),
                references=_GET,
            ),
        ),
    )


SCENARIOS = (
    _reading(
        "resources-read-text",
        "ResourcesReadText",
        "test://static-text",
        "uri, mimeType and text",
        _has("uri", "mimeType", "text"),
    ),
    _reading(
        "resources-read-binary",
        "ResourcesReadBinary",
        "test://static-binary",
        "uri, mimeType and blob",
        _has("uri", "mimeType", "blob"),
    ),
    _reading(
        "resources-templates-read",
        "ResourcesTemplateRead",
        TEMPLATE,
        "the value that filled in the template",
        _from_template,
    ),
    _subscribing("resources-subscribe", "ResourcesSubscribe", _subscribe),
    _subscribing("resources-unsubscribe", "ResourcesUnsubscribe", _unsubscribe),
    ServerScenario(
        name="sep-2164-resource-not-found",
        title="A resource does not exist",
        description="A URI that names nothing is read. The answer must not be empty contents; it "
        "should be the error -32602, with the URI in its data.",
        revisions=STATELESS,
        suites=DRAFT,
        script=_read_nothing,
        needs=Needs(capabilities=("resources",)),
        checks=(
            ServerCheck(
                id="sep-2164-no-empty-contents",
                name="ResourcesNotFoundNoEmptyContents",
                description="a missing resource is not answered with empty contents",
                judge=_no_empty_contents,
                references=_NOT_FOUND,
            ),
            ServerCheck(
                id="sep-2164-error-code",
                name="ResourcesNotFoundErrorCode",
                description="a missing resource should be answered with the error -32602",
                judge=_code,
                references=_NOT_FOUND,
            ),
            ServerCheck(
                id="sep-2164-data-uri",
                name="ResourcesNotFoundDataUri",
                description="the error should name the URI in its data",
                judge=_data,
                references=_NOT_FOUND,
            ),
        ),
    ),
    _getting(
        "prompts-get-simple",
        "PromptsGetSimple",
        "test_simple_prompt",
        "messages with role and content",
        _simple,
    ),
    _getting(
        "prompts-get-with-args",
        "PromptsGetWithArgs",
        "test_prompt_with_arguments",
        "the values of both arguments in its messages",
        _with_both,
        _ARGUMENTS,
    ),
    _getting(
        "prompts-get-embedded-resource",
        "PromptsGetEmbeddedResource",
        "test_prompt_with_embedded_resource",
        "an embedded resource",
        _with_content("resource"),
        {"resourceUri": "test://example-resource"},
    ),
    _getting(
        "prompts-get-with-image",
        "PromptsGetWithImage",
        "test_prompt_with_image",
        "an image with data and mimeType",
        _with_content("image", "data", "mimeType"),
    ),
)
