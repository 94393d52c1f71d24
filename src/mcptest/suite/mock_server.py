"""A mock server as YAML: what it offers and what it answers, with the place of every mistake."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from mcptest.schema.json_schema import schema_problem
from mcptest.suite.fields import (
    Choice,
    Declaration,
    Duration,
    Field,
    Flag,
    JsonSchema,
    JsonTable,
    ListOf,
    ObjectOf,
    Text,
    Texts,
    Whole,
)
from mcptest.suite.json_schema_of_suite import object_json_schema
from mcptest.suite.problems import Source, SuiteError
from mcptest.suite.reading import Reading, describe, read_object
from mcptest.suite.yaml_file import read_yaml
from mcptest.suite.yaml_nodes import Mapping as MappingNode

_NAME = Field("name", Text(), "How it is called.", required=True)
_TITLE = Field("title", Text(), "What people see; the name by default.")
_DESCRIPTION = Field("description", Text(), "What it is for.")

REFUSAL = Declaration(
    "refuse",
    "An error of the protocol.",
    (
        Field("code", Whole(minimum=None), "Its code, such as -32603.", required=True),
        Field("message", Text(), "Its message.", required=True),
        Field("data", JsonTable(), "What else it says."),
    ),
)
ANSWER = Declaration(
    "answers",
    "What a tool answers: the first that fits the arguments is taken.",
    (
        Field("when", JsonTable(), "Arguments that must be given just so; others may be too."),
        Field("text", Text(may_be_empty=True), "A text. {{name}} is the argument of that name."),
        Field("structured", JsonTable(), "Structured content, which is told as text as well."),
        Field("error", Text(), "A result with isError, and these words."),
        Field("result", JsonTable(), "The whole result, as it is sent."),
        Field("refuse", ObjectOf(REFUSAL), "An error of the protocol instead of a result."),
        Field("delay", Duration(), "How long the answer takes."),
    ),
)
TOOL = Declaration(
    "tools",
    "A tool, and what it answers.",
    (
        _NAME,
        _TITLE,
        _DESCRIPTION,
        Field("input", JsonSchema(), "The JSON Schema of its arguments; any object by default."),
        Field("output", JsonSchema(), "The JSON Schema of its structured content."),
        Field("hints", JsonTable(), "Its annotations, such as readOnlyHint."),
        Field("answers", ListOf(ANSWER), "What it answers.", required=True),
    ),
)
RESOURCE = Declaration(
    "resources",
    "A resource, and what it holds.",
    (
        Field("uri", Text(), "Its URI.", required=True),
        _NAME,
        _TITLE,
        _DESCRIPTION,
        Field("mime_type", Text(), "Its kind; text/plain by default."),
        Field("text", Text(may_be_empty=True), "What it holds, as text."),
        Field("blob", Text(), "What it holds, in base64."),
    ),
)
ARGUMENT = Declaration(
    "arguments",
    "An argument of a prompt.",
    (
        _NAME,
        _TITLE,
        _DESCRIPTION,
        Field("required", Flag(), "Whether it must be given."),
        Field("values", Texts(), "Values that are suggested for it."),
    ),
)
MESSAGE = Declaration(
    "messages",
    "One message of a prompt.",
    (
        Field("role", Choice(("user", "assistant")), "Who says it.", required=True),
        Field("text", Text(), "What. {{name}} is the argument of that name.", required=True),
    ),
)
PROMPT = Declaration(
    "prompts",
    "A prompt, and what it says.",
    (
        _NAME,
        _TITLE,
        _DESCRIPTION,
        Field("arguments", ListOf(ARGUMENT), "Its arguments."),
        Field("messages", ListOf(MESSAGE), "What it says.", required=True),
    ),
)
MOCK = Declaration(
    "a mock",
    "A server that answers as it is told to.",
    (
        _NAME,
        Field("version", Text(), "Its version; 1 by default."),
        _TITLE,
        _DESCRIPTION,
        Field("instructions", Text(), "What it tells models about itself."),
        Field("tools", ListOf(TOOL), "Its tools."),
        Field("resources", ListOf(RESOURCE), "Its resources."),
        Field("prompts", ListOf(PROMPT), "Its prompts."),
    ),
)
_WAYS = ("error", "result", "refuse")
_SAID = ("text", "structured")


class MockAnswer(msgspec.Struct, frozen=True):
    when: Mapping[str, Any] = {}
    text: str | None = None
    structured: Mapping[str, Any] | None = None
    error: str = ""
    result: Mapping[str, Any] | None = None
    refusal: tuple[int, str, Mapping[str, Any] | None] | None = None
    delay: float = 0.0


class MockTool(msgspec.Struct, frozen=True):
    name: str
    title: str
    description: str
    input: Mapping[str, Any]
    output: Mapping[str, Any] | None
    hints: Mapping[str, bool]
    answers: tuple[MockAnswer, ...]


class MockResource(msgspec.Struct, frozen=True):
    uri: str
    name: str
    title: str
    description: str
    kind: str
    contents: Mapping[str, str]


class MockArgument(msgspec.Struct, frozen=True):
    name: str
    title: str
    description: str
    required: bool
    values: tuple[str, ...]


class MockPrompt(msgspec.Struct, frozen=True):
    name: str
    title: str
    description: str
    arguments: tuple[MockArgument, ...]
    messages: tuple[tuple[str, str], ...]
    """Who says it, and what."""


class MockServer(msgspec.Struct, frozen=True):
    name: str
    version: str
    title: str
    description: str
    instructions: str
    tools: tuple[MockTool, ...] = ()
    resources: tuple[MockResource, ...] = ()
    prompts: tuple[MockPrompt, ...] = ()


def load_mock(path: str) -> MockServer:
    """SuiteError, with every place, for a file that is no sound mock."""
    root, source = read_yaml(Path(path))
    mock = None
    if root is None:
        if not source.errors:
            source.report("the file is empty", 1, 1)
    elif not isinstance(root, MappingNode):
        source.report(f"a mock is a mapping, not {describe(root)}", root.line, root.column)
    else:
        read = read_object(MOCK, root, source)
        _check(read, source)
        mock = _mock(read) if not source.errors else None
    if mock is None or source.errors:
        raise SuiteError(source.problems)
    return mock


def mock_json_schema() -> dict[str, Any]:
    definitions: dict[str, dict[str, Any]] = {}
    return {**object_json_schema(MOCK, definitions), "$defs": dict(sorted(definitions.items()))}


def _check(read: Reading, source: Source) -> None:
    if source.errors:
        return  # of what could not be read nothing more can be said
    if not any(name in read for name in ("tools", "resources", "prompts")):
        read.complain("the mock offers nothing", hint="add tools, resources or prompts")
    for tool in read.get("tools", ()):
        _check_schemas(tool)
        for answer in tool.get("answers"):
            _check_answer(answer)
    for resource in read.get("resources", ()):
        if ("text" in resource) == ("blob" in resource):
            resource.complain("a resource holds either text or blob")
    for name, key in (("tools", "name"), ("prompts", "name"), ("resources", "uri")):
        _check_names(read.get(name, ()), key)


def _check_schemas(tool: Reading) -> None:
    for name in ("input", "output"):
        schema = tool.get(name, {"type": "object"})
        if not isinstance(schema, dict) or schema.get("type") != "object":
            tool.complain(f"{name} must be a JSON Schema with type: object", name)
            continue
        problem = schema_problem(schema)
        if problem:
            tool.complain(f"{name} {problem}", name)


def _check_answer(answer: Reading) -> None:
    ways = [name for name in _WAYS if name in answer]
    said = any(name in answer for name in _SAID)
    if len(ways) + said != 1:
        hint = "text or structured, or one of error, result and refuse"
        answer.complain("an answer is given in exactly one way", hint=hint)


def _check_names(items: tuple[Reading, ...], key: str) -> None:
    seen = set()
    for item in items:
        if item.get(key) in seen:
            item.complain(f"the {key} is that of an earlier one", key)
        seen.add(item.get(key))


def _mock(read: Reading) -> MockServer:
    return MockServer(
        **_named(read),
        version=read.get("version") or "1",
        instructions=read.get("instructions") or "",
        tools=tuple(map(_tool, read.get("tools", ()))),
        resources=tuple(map(_resource, read.get("resources", ()))),
        prompts=tuple(map(_prompt, read.get("prompts", ()))),
    )


def _named(read: Reading) -> dict[str, str]:
    name: str = read.get("name")
    title = read.get("title") or name
    return {"name": name, "title": title, "description": read.get("description") or ""}


def _tool(read: Reading) -> MockTool:
    return MockTool(
        **_named(read),
        input=read.get("input") or {"type": "object"},
        output=read.get("output"),
        hints=read.get("hints") or {},
        answers=tuple(map(_answer, read.get("answers"))),
    )


def _answer(read: Reading) -> MockAnswer:
    refuse = read.get("refuse")
    return MockAnswer(
        when=read.get("when") or {},
        text=read.get("text"),
        structured=read.get("structured"),
        error=read.get("error") or "",
        result=read.get("result"),
        refusal=(refuse.get("code"), refuse.get("message"), refuse.get("data")) if refuse else None,
        delay=read.get("delay") or 0.0,
    )


def _resource(read: Reading) -> MockResource:
    contents = {name: read.get(name) for name in ("text", "blob") if name in read}
    kind = read.get("mime_type") or "text/plain"
    return MockResource(**_named(read), uri=read.get("uri"), kind=kind, contents=contents)


def _prompt(read: Reading) -> MockPrompt:
    arguments = tuple(
        MockArgument(
            **_named(one),
            required=bool(one.get("required")),
            values=tuple(one.get("values") or ()),
        )
        for one in read.get("arguments", ())
    )
    messages = tuple((one.get("role"), one.get("text")) for one in read.get("messages"))
    return MockPrompt(**_named(read), arguments=arguments, messages=messages)


__all__ = [
    "MockAnswer",
    "MockPrompt",
    "MockResource",
    "MockServer",
    "MockTool",
    "load_mock",
    "mock_json_schema",
]
