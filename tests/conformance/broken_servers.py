"""Servers with one fault each: `python -m tests.conformance.serve_broken NAME [options]`.

Each is the demo with one thing changed, and the one check that has to notice it. The changes are
made where those of the mutants are made: at what the demo says and hears, or in one function.
"""

from __future__ import annotations

from tests.mutants.seams import (
    accept,
    asks,
    calls,
    hear,
    on_error,
    on_message,
    on_result,
    patch,
    refuse,
)

TYPE_CHECKING = False  # a broken server starts as often as the demo does
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeAlias

    Obj: TypeAlias = dict[str, Any]
    Fault: TypeAlias = Callable[[], None]

PREFIX = "io.modelcontextprotocol/"
ELICITING = "test_input_required_result_elicitation"
NOWHERE = "test://nonexistent-resource-for-conformance-testing"
D, E = "2025-11-25", "2026-07-28"
SCHEMA = "wire-schema-valid"
BROKEN: dict[str, Broken] = {}


class Broken:
    """One fault, and the check that it fails."""

    def __init__(
        self,
        check: str,
        about: str,
        fault: Fault,
        revision: str = D,
        over: str = "stdio",
        also: tuple[str, ...] = (),
        options: tuple[str, ...] = (),
    ) -> None:
        self.check = check
        self.about = about
        self.fault = fault
        self.revision = revision
        self.over = over
        self.also = also
        """Checks that can't but notice it too."""
        self.options = options


def broken(name: str, check: str, about: str, fault: Fault, **more: Any) -> None:
    if name in BROKEN:
        raise ValueError(f"{name} is there already")
    BROKEN[name] = Broken(check, about, fault, **more)


# -- ways to break something


def gives(tool: str, change: Callable[[Any], Any]) -> Fault:
    """Another result of one tool."""
    return on_result(calls(tool), change)


def says(words: str) -> Callable[[Any], Any]:
    """A text in place of the content of a result."""
    return lambda result: {**result, "content": [{"type": "text", "text": words}]}


def _fails(result: Any) -> None:
    if result.get("resultType") != "input_required":
        result["isError"] = True


def prompt(name: str, change: Callable[[Any], Any]) -> Fault:
    return on_result(asks("prompts/get", name=name), change)


def _plain(result: Any) -> Any:
    message = {"role": "user", "content": {"type": "text", "text": "Nothing of the kind."}}
    return {**result, "messages": [message]}


def read(uri: str, change: Callable[[Any], Any]) -> Fault:
    return on_result(asks("resources/read", uri=uri), lambda result: change(result["contents"][0]))


def without(member: str) -> Callable[[Any], Any]:
    def change(value: Any) -> None:
        del value[member]

    return change


def instead(tool: str, other: str) -> Fault:
    """Calls of one tool get to another."""

    def install() -> None:
        def listen(value: Any) -> Any:
            if isinstance(value, dict) and calls(tool)(value):
                value["params"]["name"] = other
            return value

        hear(listen)

    return install


def form(field: str, change: Callable[[Any], Any]) -> Fault:
    """Another field in a form that is asked for."""

    def changed(params: Obj) -> None:
        fields = params["requestedSchema"]["properties"]
        if field in fields:
            change(fields[field])

    return on_message("elicitation/create", changed)


def puts(**members: Any) -> Callable[[Any], Any]:
    return lambda value: value.update(members)


def odd_tool(tool: str, **members: Any) -> Fault:
    """Another description of one listed tool; None leaves a member out."""

    def changed(result: Any) -> None:
        for one in result["tools"]:
            if one["name"] == tool:
                one.update(members)
                for name in [name for name, value in members.items() if value is None]:
                    del one[name]

    return on_result("tools/list", changed)


def odd_schema(change: Callable[[Obj], Any]) -> Fault:
    def changed(result: Any) -> None:
        for one in result["tools"]:
            if one["name"] == "json_schema_2020_12_tool":
                change(one["inputSchema"])

    return on_result("tools/list", changed)


def first_of(what: str, change: Callable[[Any], Any]) -> Fault:
    """Another first item of a list."""

    def changed(result: Any) -> None:
        if result[what]:
            change(result[what][0])

    return on_result(f"{what}/list", changed)


def status(when: Callable[[bytes], bool], other: int) -> Fault:
    """Another HTTP status for some answers."""

    def make(respond: Any) -> Any:
        def responding(self: Any, status: int, body: bytes = b"", *words: Any, **rest: Any) -> None:
            respond(self, other if when(body) else status, body, *words, **rest)

        return responding

    return patch("http_connection:HttpConnection.respond", make)


def has_code(code: int) -> Callable[[bytes], bool]:
    return lambda body: b'"code":%d' % code in body


# -- sessions


def _wide_id(init: Any) -> Any:
    def made(self: Any, world: Any) -> None:
        init(self, world)
        self.identifier = f"a session {self.identifier}"

    return made


def _lives_on(delete: Any) -> Any:
    return lambda self, request, connection: connection.respond(200)


def _no_delete(delete: Any) -> Any:
    return lambda self, request, connection: connection.respond(500)


broken(
    "nameless-server",
    "server-initialize",
    "initialize does not tell the server's version",
    on_result("initialize", lambda result: result["serverInfo"].update(version="")),
)
broken(
    "wide-session-id",
    "server-session-id-visible-ascii",
    "the session id has blanks",
    patch("demo.http_server:HttpSession.__init__", _wide_id),
    over="http",
)
broken(
    "immortal-session",
    "server-session-terminated-returns-404",
    "a session lives on after its end",
    patch("demo.http_server:Sessions.delete", _lives_on),
    over="http",
)
broken(
    "delete-fails",
    "server-session-delete-accepted",
    "DELETE is answered with 500",
    patch("demo.http_server:Sessions.delete", _no_delete),
    over="http",
)
broken("chatty-ping", "ping", "ping says pong", on_result("ping", puts(pong=True)))
broken(
    "chatty-level",
    "logging-set-level",
    "logging/setLevel repeats the level",
    on_result("logging/setLevel", puts(level="info")),
)

# -- lists, completion

broken(
    "no-values",
    "completion-complete",
    "values of a completion are no array",
    on_result("completion/complete", lambda result: result["completion"].update(values="test")),
    also=(SCHEMA,),
)
broken(
    "wordless-tool", "tools-list", "a tool has no description", odd_tool("echo", description=None)
)
broken(
    "odd-name",
    "tools-name-format",
    "the name of a tool has a blank",
    odd_tool("echo", name="say it again"),
)
broken(
    "nameless-resource",
    "resources-list",
    "the name of a resource is empty",
    first_of("resources", puts(name="")),
)
broken(
    "wordless-prompt",
    "prompts-list",
    "a prompt has no description",
    first_of("prompts", without("description")),
)
_seen: list[int] = []


def _turned_round(result: Any) -> None:
    if len(result["tools"]) > 1:
        _seen.append(1)
        if len(_seen) % 2:
            result["tools"].reverse()


broken(
    "shuffled-tools",
    "tools-list-deterministic-order",
    "every second list of tools is the other way round",
    on_result("tools/list", _turned_round),
    revision=E,
)

# -- tools

broken(
    "no-text", "tools-call-simple-text", "no content", gives("test_simple_text", puts(content=[]))
)
broken(
    "no-image", "tools-call-image", "a text for an image", gives("test_image_content", says("!"))
)
broken(
    "other-audio",
    "tools-call-audio",
    "the audio is of another type",
    gives("test_audio_content", lambda result: result["content"][0].update(mimeType="audio/ogg")),
)
broken(
    "untyped-resource",
    "tools-call-embedded-resource",
    "the resource has no mimeType",
    gives(
        "test_embedded_resource",
        lambda result: result["content"][0]["resource"].pop("mimeType") and None,
    ),
)
broken(
    "half-mixed",
    "tools-call-mixed-content",
    "the image is missing",
    gives("test_multiple_content_types", lambda result: result["content"].pop(1) and None),
)


def _quiet(log: Any) -> Any:
    return lambda self, level, data: None if level in {"debug", "info"} else log(self, level, data)


broken(
    "quiet-tool",
    "tools-call-with-logging",
    "two log messages in place of four",
    patch("demo.exchange:Call.log", _quiet),
)
broken(
    "silent-failure",
    "tools-call-error",
    "a failure is no error",
    gives("test_error_handling", puts(isError=False)),
)
broken(
    "backward-progress",
    "tools-call-with-progress",
    "progress goes back",
    on_message(
        "notifications/progress", lambda params: params.update(progress=100 - params["progress"])
    ),
)
broken(
    "other-token",
    "tools-call-with-progress",
    "progress is for another token",
    on_message("notifications/progress", puts(progressToken="another")),
    revision=E,
)
broken(
    "never-samples",
    "tools-call-sampling",
    "the tool answers without asking the model",
    instead("test_sampling", "test_simple_text"),
)
broken(
    "never-elicits",
    "tools-call-elicitation",
    "the tool answers without asking the user",
    instead("test_elicitation", "test_simple_text"),
)

for _check, _tool, _era in (
    ("tools-call-simple-text", "test_simple_text", D),
    ("tools-call-image", "test_image_content", D),
    ("tools-call-audio", "test_audio_content", D),
    ("tools-call-embedded-resource", "test_embedded_resource", D),
    ("tools-call-mixed-content", "test_multiple_content_types", D),
    ("tools-call-with-logging", "test_tool_with_logging", D),
    ("tools-call-with-progress", "test_tool_with_progress", D),
    ("tools-call-sampling", "test_sampling", D),
    ("tools-call-elicitation", "test_elicitation", D),
    ("sep-2322-list-roots-complete", "test_input_required_result_list_roots", E),
    ("sep-2322-sampling-complete", "test_input_required_result_sampling", E),
):
    broken(
        f"failing-{_tool.removeprefix('test_').replace('_', '-')}",
        _check,
        "all is there that should be, and the result says isError: true",
        gives(_tool, _fails),
        revision=_era,
    )

# -- forms

for _kind, _field, _other in (
    ("string", "name", "Jane Doe"),
    ("integer", "age", 31),
    ("number", "score", 95.0),
    ("enum", "status", "pending"),
    ("boolean", "verified", False),
):
    broken(
        f"other-{_kind}-default",
        f"elicitation-sep1034-{_kind}-default",
        f"the default of {_field} is another",
        form(_field, puts(default=_other)),
    )
broken(
    "named-untitled",
    "elicitation-sep1330-untitled-single",
    "an untitled choice has names",
    form("untitledSingle", puts(enumNames=["One", "Two", "Three"])),
)
broken(
    "untitled-single",
    "elicitation-sep1330-titled-single",
    "a titled choice has values only",
    form("titledSingle", lambda field: field.update(enum=field.pop("oneOf") and ["value1"])),
)
broken(
    "too-few-names",
    "elicitation-sep1330-legacy-enumnames",
    "a choice has more values than names",
    form("legacyEnum", puts(enumNames=["One"])),
)
broken(
    "titled-untitled",
    "elicitation-sep1330-untitled-multi",
    "an untitled choice of several has titles",
    form("untitledMulti", puts(items={"anyOf": [{"const": "option1", "title": "One"}]})),
)
broken(
    "untitled-multi",
    "elicitation-sep1330-titled-multi",
    "a titled choice of several has values only",
    form("titledMulti", puts(items={"type": "string", "enum": ["value1"]})),
)

# -- the schema of a tool

broken(
    "no-dialect", "json-schema-2020-12-$schema", "$schema is lost", odd_schema(without("$schema"))
)
broken(
    "open-schema",
    "json-schema-2020-12-additionalProperties",
    "additionalProperties is lost",
    odd_schema(without("additionalProperties")),
)
broken(
    "no-address",
    "json-schema-2020-12-$defs",
    "$defs has another name in it",
    odd_schema(lambda schema: schema["$defs"].update(place=schema["$defs"].pop("address"))),
)
broken(
    "no-composition",
    "sep-2106-composition-keywords-preserved",
    "allOf is lost",
    odd_schema(without("allOf")),
    revision=E,
)
broken(
    "no-condition",
    "sep-2106-conditional-keywords-preserved",
    "else is lost",
    odd_schema(without("else")),
    revision=E,
)
broken(
    "no-anchor",
    "sep-2106-anchor-keyword-preserved",
    "$anchor is lost",
    odd_schema(lambda schema: schema["$defs"]["address"].pop("$anchor") and None),
    revision=E,
)

# -- resources and prompts

broken(
    "untyped-text",
    "resources-read-text",
    "no mimeType",
    read("test://static-text", without("mimeType")),
)
broken(
    "untyped-binary",
    "resources-read-binary",
    "no mimeType",
    read("test://static-binary", without("mimeType")),
)
broken(
    "deaf-template",
    "resources-templates-read",
    "the text does not show the id",
    read("test://template/123/data", puts(text="Some text.")),
)
broken("no-subscribing", "resources-subscribe", "it is refused", refuse("resources/subscribe"))
broken(
    "no-unsubscribing", "resources-unsubscribe", "it is refused", refuse("resources/unsubscribe")
)
broken(
    "speechless-prompt",
    "prompts-get-simple",
    "there are no messages",
    prompt("test_simple_prompt", puts(messages=[])),
)
for _prompt, _check in (
    ("test_prompt_with_arguments", "prompts-get-with-args"),
    ("test_prompt_with_embedded_resource", "prompts-get-embedded-resource"),
    ("test_prompt_with_image", "prompts-get-with-image"),
):
    broken(f"plain-{_prompt}", _check, "it has a text only", prompt(_prompt, _plain))
broken(
    "empty-contents",
    "sep-2164-no-empty-contents",
    "a missing resource has empty contents",
    accept(
        asks("resources/read", uri=NOWHERE),
        {"resultType": "complete", "contents": [], "ttlMs": 0, "cacheScope": "public"},
    ),
    revision=E,
    also=("sep-2164-error-code", "sep-2164-data-uri"),
)
broken(
    "old-code",
    "sep-2164-error-code",
    "a missing resource has the code of the older revisions",
    on_error(asks("resources/read", uri=NOWHERE), code=-32002),
    revision=E,
)
broken(
    "nameless-error",
    "sep-2164-data-uri",
    "the error does not name the resource",
    on_error(asks("resources/read", uri=NOWHERE), data={}),
    revision=E,
)


def every_broken_server() -> dict[str, Broken]:
    """The whole table."""
    import importlib

    importlib.import_module("tests.conformance.broken_stateless")
    return BROKEN
