"""A mock server as YAML: what it offers and what it answers, with the place of every mistake."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from mcptest.schema.validation import schema_problem
from mcptest.suite.fields import (
    DECLARED,
    JsonSchema,
    Mark,
    Reading,
    Whole,
    declared,
    read_object,
    value_of,
)
from mcptest.suite.model import AnyText, Strings, Table
from mcptest.suite.reading import MappingNode, SuiteError, SuiteSource, read_yaml

_ANY_OBJECT = {"type": "object"}


class _Named(msgspec.Struct, frozen=True, kw_only=True):
    """What everything has that a server offers."""

    name: Annotated[str, "Its name.", Mark.REQUIRED]
    title: Annotated[str, "Title for people (default: the name)."] = ""
    description: Annotated[str, "What it is for."] = ""

    def __post_init__(self) -> None:
        if not self.title:
            msgspec.structs.force_setattr(self, "title", self.name)


@declared("refuse")
class MockRefusal(msgspec.Struct, frozen=True):
    """An error of the protocol."""

    code: Annotated[int, Whole(minimum=None), "Its code, such as -32603.", Mark.REQUIRED]
    message: Annotated[str, "Its message.", Mark.REQUIRED]
    data: Annotated[Table | None, "Its data."] = None


@declared("answers")
class MockAnswer(msgspec.Struct, frozen=True):
    """What a tool answers: the first that fits the arguments is taken."""

    when: Annotated[Table, "Arguments that must match exactly; others are allowed."] = {}
    text: Annotated[AnyText, "A text. {{name}} is the argument of that name."] = None
    structured: Annotated[Table | None, "Structured content, repeated as text."] = None
    error: Annotated[str, "A result with isError and this text."] = ""
    result: Annotated[Table | None, "The complete result."] = None
    refuse: Annotated[MockRefusal | None, "A JSON-RPC error instead of a result."] = None
    delay: Annotated[float, "Delay before the response."] = 0.0


@declared("tools")
class MockTool(_Named, frozen=True, kw_only=True):
    """A tool, and what it answers."""

    input: Annotated[
        Table, JsonSchema(), "The JSON Schema of its arguments; any object by default."
    ] = msgspec.field(default_factory=_ANY_OBJECT.copy)
    output: Annotated[Table | None, JsonSchema(), "The JSON Schema of its structured content."] = (
        None
    )
    hints: Annotated[Table, "Its annotations, such as readOnlyHint."] = {}
    answers: Annotated[tuple[MockAnswer, ...], "What it answers.", Mark.REQUIRED]


@declared("resources")
class MockResource(_Named, frozen=True, kw_only=True):
    """A resource, and what it holds."""

    uri: Annotated[str, "Its URI.", Mark.REQUIRED]
    mime_type: Annotated[str, "Its MIME type (default: text/plain)."] = "text/plain"
    text: Annotated[AnyText, "Its content as text."] = None
    blob: Annotated[str | None, "Its content in base64."] = None

    @property
    def contents(self) -> Mapping[str, str]:
        return {"text": self.text} if self.text is not None else {"blob": self.blob or ""}


@declared("arguments")
class MockArgument(_Named, frozen=True, kw_only=True):
    """An argument of a prompt."""

    required: Annotated[bool, "Whether it is required."] = False
    values: Annotated[Strings, "Suggested values."] = ()


@declared("messages")
class MockMessage(msgspec.Struct, frozen=True):
    """One message of a prompt."""

    role: Annotated[Literal["user", "assistant"], "Its role.", Mark.REQUIRED]
    text: Annotated[str, "Its text. {{name}} is the argument of that name.", Mark.REQUIRED]


@declared("prompts")
class MockPrompt(_Named, frozen=True, kw_only=True):
    """A prompt, and what it says."""

    arguments: Annotated[tuple[MockArgument, ...], "Its arguments."] = ()
    messages: Annotated[tuple[MockMessage, ...], "What it says.", Mark.REQUIRED]


@declared("a mock")
class MockServer(_Named, frozen=True, kw_only=True):
    """A server that answers as it is told to."""

    version: Annotated[str, "Its version; 1 by default."] = "1"
    instructions: Annotated[str, "Instructions for models."] = ""
    tools: Annotated[tuple[MockTool, ...], "Its tools."] = ()
    resources: Annotated[tuple[MockResource, ...], "Its resources."] = ()
    prompts: Annotated[tuple[MockPrompt, ...], "Its prompts."] = ()


def load_mock(path: str) -> MockServer:
    """SuiteError, with every place, for a file that is no sound mock."""
    root, source = read_yaml(Path(path))
    if root is None:
        if not source.errors:
            source.report("the file is empty", 1, 1)
    elif not isinstance(root, MappingNode):
        source.report(f"a mock is a mapping, not {root.described}", root.line, root.column)
    else:
        read = read_object(DECLARED[MockServer], root, source)
        _check(read, source)
        if not source.errors:
            return value_of(MockServer, read)
    raise SuiteError(source.problems)


def _check_tool(tool: Reading) -> None:
    for name in ("input", "output"):
        schema = tool.get(name, _ANY_OBJECT)
        if not isinstance(schema, dict) or schema.get("type") != "object":
            tool.complain(f"{name} must be a JSON Schema with type: object", name)
        elif problem := schema_problem(schema):
            tool.complain(f"{name} {problem}", name)
    for answer in tool.get("answers"):
        forms = sum(name in answer for name in ("error", "result", "refuse"))
        if forms + ("text" in answer or "structured" in answer) != 1:
            hint = "text or structured, or one of error, result and refuse"
            answer.complain("give exactly one kind of response", hint=hint)


def mock_json_schema() -> dict[str, Any]:
    definitions: dict[str, dict[str, Any]] = {}
    schema = DECLARED[MockServer].schema(definitions)
    return {**schema, "$defs": dict(sorted(definitions.items()))}


def _check(read: Reading, source: SuiteSource) -> None:
    if source.errors:
        return  # of what could not be read nothing more can be said
    if not any(name in read for name in ("tools", "resources", "prompts")):
        read.complain(
            "the mock has no tools, resources or prompts", hint="add tools, resources or prompts"
        )
    for tool in read.get("tools", ()):
        _check_tool(tool)
    for resource in read.get("resources", ()):
        if ("text" in resource) == ("blob" in resource):
            resource.complain("a resource has either text or blob")
    for name, key in (("tools", "name"), ("prompts", "name"), ("resources", "uri")):
        seen = set()
        for item in read.get(name, ()):
            if item.get(key) in seen:
                item.complain(f"an earlier one has the same {key}", key)
            seen.add(item.get(key))
