"""A mock from YAML as a server: the machinery of the demo, with the content of the mock."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from mcptest.schema.validation import CompiledSchema, SchemaLimitError
from mcptest.servers.demo.exchange import Call, text
from mcptest.servers.demo.jsonrpc import Refusal
from mcptest.servers.demo.offers import (
    Argument,
    Content,
    Prompt,
    Resource,
    Tool,
    failure,
    says,
    structured,
)
from mcptest.servers.demo.start_options import Options
from mcptest.servers.demo.world import World
from mcptest.suite.matching import json_equal
from mcptest.suite.mock_server import MockAnswer, MockPrompt, MockResource, MockServer, MockTool
from mcptest.suite.templates import fill

if TYPE_CHECKING:
    from mcptest.servers.demo.exchange import Body

_NEVER = frozenset({"logging", "subscribe", "list-changed"})


def mock_content(mock: MockServer) -> Content:
    return Content(
        mock.name,
        mock.title,
        mock.description or mock.title,
        mock.instructions or f"{mock.title} answers what it was told to.",
        tuple(map(_tool, mock.tools)),
        tuple(map(_prompt, mock.prompts)),
        tuple(map(_resource, mock.resources)),
        version=mock.version,
    )


def hide_what_is_not_there(options: Options, mock: MockServer) -> None:
    """What a mock does not have is not declared."""
    absent = {name for name in ("tools", "resources", "prompts") if not getattr(mock, name)}
    options.hide = _NEVER | absent | ({"completions"} if "prompts" in absent else set())


def _tool(mock: MockTool) -> Tool:
    schema = CompiledSchema(mock.input)

    def problem(arguments: dict[str, Any]) -> str | None:
        try:
            misfit = schema.misfit(arguments)
        except SchemaLimitError as error:
            return f"arguments: {error}"
        return None if misfit is None else f"arguments{misfit.pointer}: {misfit.reason}"

    def answer(arguments: dict[str, Any], call: Call) -> Body:
        for one in mock.answers:
            known = (
                name in arguments and json_equal(value, arguments[name])
                for name, value in one.when.items()
            )
            if all(known):
                if one.delay:
                    yield one.delay
                return _result(one, arguments, call)
        return failure("The mock has no response for these arguments.")

    return Tool(
        answer,
        mock.title,
        mock.description or mock.title,
        {},
        dict(mock.hints),
        output=None if mock.output is None else dict(mock.output),
        name=mock.name,
        input_schema=dict(mock.input),
        problem=problem,
    )


def _result(answer: MockAnswer, arguments: dict[str, Any], call: Call) -> dict[str, Any]:
    if (refused := answer.refuse) is not None:
        data = None if refused.data is None else dict(refused.data)
        raise Refusal(refused.code, refused.message, data)
    if answer.result is not None:
        return dict(answer.result)
    if answer.error:
        return failure(_filled(answer.error, arguments))
    if answer.structured is None:
        return text(_filled(answer.text or "", arguments))
    result = structured(call, dict(answer.structured))
    if answer.text is not None:
        result["content"].insert(0, {"type": "text", "text": _filled(answer.text, arguments)})
    return result


def _filled(words: str, arguments: dict[str, Any]) -> str:
    known = {
        name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for name, value in arguments.items()
    }
    return fill(words, known)


def _resource(mock: MockResource) -> Resource:
    described = mock.description or mock.title
    contents = dict(mock.contents)
    return Resource(mock.uri, mock.name, mock.title, described, mock.mime_type, contents=contents)


def _prompt(mock: MockPrompt) -> Prompt:
    def messages(world: World, arguments: dict[str, str]) -> list[dict[str, Any]]:
        return [says(one.role, fill(one.text, arguments)) for one in mock.messages]

    arguments = tuple(
        Argument(one.name, one.title, one.description or one.title, one.required, one.values)
        for one in mock.arguments
    )
    described = mock.description or mock.title
    return Prompt(mock.name, mock.title, described, arguments, messages=messages)
