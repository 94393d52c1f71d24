"""Faults in what servers offer: tools, resources, prompts, completion and their contents."""

from __future__ import annotations

from tests.mutants.mutant import mutant
from tests.mutants.seams import (
    accept,
    asks,
    calls,
    on_answer,
    on_error,
    on_result,
    params_of,
    patch,
    refuse,
)

TYPE_CHECKING = False  # a mutant starts as often as the demo does
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tests.mutants.seams import Obj, When

TEXT: Obj = {"content": [{"type": "text", "text": "All is well."}]}
GREETING = asks("resources/read", uri="demo://greeting")
UNKNOWN_REF: Obj = {"type": "ref/mcptest", "name": "x"}


def _no_array(name: str) -> Callable[[Obj], None]:
    return lambda result: result.update({name: "none"})


def _each(name: str, change: Callable[[Obj], Any]) -> Callable[[Obj], None]:
    def changed(result: Obj) -> None:
        for item in result[name]:
            change(item)

    return changed


def _set(**members: Any) -> Callable[[Obj], None]:
    return lambda item: item.update(members)


def _drop(name: str) -> Callable[[Obj], None]:
    def change(item: Obj) -> None:
        item.pop(name, None)

    return change


def _only(named: str, change: Callable[[Obj], Any]) -> Callable[[Obj], None]:
    def changed(item: Obj) -> None:
        if item.get("name") == named:
            change(item)

    return changed


def _is_wrongly_typed(request: Obj) -> bool:
    return request.get("method") == "tools/call" and bool(params_of(request).get("arguments"))


def _refused_with(when: When, code: int) -> Any:
    """Only what was an error before; what worked still works."""

    def change(message: Obj, request: Obj) -> Obj:
        if "error" in message:
            message["error"]["code"] = code
        return message

    return on_answer(when, change)


def _succeeds(when: When) -> Any:
    """What failed by its arguments succeeds."""

    def change(message: Obj, request: Obj) -> Obj:
        failed = "error" in message or message.get("result", {}).get("isError")
        return {"jsonrpc": "2.0", "id": message["id"], "result": TEXT} if failed else message

    return on_answer(when, change)


SHAPE = "the shape of the result says the same"

# -- tools -------------------------------------------------------------------------------------

mutant(
    "TOOLS-001",
    "tools is no array",
    on_result("tools/list", _no_array("tools")),
    also=f"{SHAPE}, and no page has tools",
)


def _reversed_every_other_time(table: Any) -> Any:
    from mcptest.servers.demo import offers

    state = {"turned": False}

    def turned(call: Any) -> Any:
        tools = offers.offered_tools(call)
        return tools[::-1] if state["turned"] else tools

    in_order = offers.listing("tools", turned)

    def listing(call: Any) -> Any:
        if "cursor" not in call.params:
            state["turned"] = not state["turned"]
        return in_order(call)

    table["tools/list"] = listing
    return table


mutant(
    "TOOLS-002",
    "the tools come in another order each time",
    patch("demo.offers:HANDLERS", _reversed_every_other_time),
)
mutant(
    "TOOLS-003",
    "the text does not repeat the structured content",
    on_result(
        lambda request: request.get("method") == "tools/call",
        lambda result: result.update(TEXT) if "structuredContent" in result else None,
    ),
)
mutant(
    "TOOLS-004",
    "a tool with an output schema gives text only",
    on_result(lambda request: request.get("method") == "tools/call", _drop("structuredContent")),
    also="nothing matches the output schema then",
)
mutant(
    "TOOLS-005",
    "an unknown tool is refused with -32603",
    _refused_with(
        lambda request: (
            request.get("method") == "tools/call" and not params_of(request).get("arguments")
        ),
        -32603,
    ),
)
mutant(
    "TOOLS-006",
    "a tool that fails does not say so",
    on_result(calls("test_error_handling"), _drop("isError")),
)


def _lacks_arguments(request: Obj) -> bool:
    params = params_of(request)
    named = params.get("name") in {"add", "echo"}
    return request.get("method") == "tools/call" and named and not params.get("arguments")


mutant("TOOLS-007", "a missing argument does not matter", _succeeds(_lacks_arguments))
mutant(
    "TOOLS-008", "a missing argument is an error of the protocol", refuse(_lacks_arguments, -32602)
)
mutant("TOOLS-009", "an argument of a wrong type does not matter", _succeeds(_is_wrongly_typed))
mutant(
    "TOOLS-010",
    "a call without arguments is refused",
    refuse(
        lambda request: (
            request.get("method") == "tools/call" and "arguments" not in params_of(request)
        )
    ),
)
mutant(
    "TOOLS-011",
    "a hint is a text",
    on_result(
        "tools/list", _each("tools", _only("write_file", _set(annotations={"readOnlyHint": "yes"})))
    ),
    also=SHAPE,
)


def _embeds_anyway(body: Any) -> Any:
    def embedding(arguments: Obj, call: Any) -> Obj:
        from mcptest.servers.demo.offers import GREETING_URI, read_resource

        resource = read_resource(GREETING_URI, call.world)
        return {"content": [{"type": "resource", "resource": resource}]}

    from mcptest.servers.demo.fixtures import TOOLS

    for tool in TOOLS:
        if tool.name == "test_embedded_resource":
            tool.run = embedding
    return embedding


mutant(
    "TOOLS-012",
    "a resource is embedded though there are none",
    patch("demo.fixtures:test_embedded_resource", _embeds_anyway),
    options=("--hide", "resources"),
)
mutant(
    "TOOLS-013",
    "a header annotation is empty",
    on_result(
        "tools/list",
        _each(
            "tools",
            _only(
                "echo",
                lambda tool: tool["inputSchema"]["properties"]["text"].update({"x-mcp-header": ""}),
            ),
        ),
    ),
)
mutant(
    "TOOLS-015",
    "a change of the tools is not announced",
    patch(
        "demo.handshake_era:HandshakeSession.announce",
        lambda announce: lambda self, what: announce(self, what) if what == "prompts" else None,
    ),
)
mutant(
    "TOOLS-016",
    "the listed schema lost a keyword",
    on_result(
        "tools/list",
        _each(
            "tools",
            _only(
                "json_schema_2020_12_tool",
                lambda tool: _drop("additionalProperties")(tool["inputSchema"]),
            ),
        ),
    ),
)


def _broken_schema(tool: Obj) -> None:
    tool["inputSchema"]["properties"]["text"]["type"] = "words"


mutant(
    "TOOL-002",
    "an input schema is no valid schema",
    on_result("tools/list", _each("tools", _only("echo", _broken_schema))),
)
mutant(
    "TOOL-003",
    "a tool has no input schema",
    on_result("tools/list", _each("tools", _only("link", _drop("inputSchema")))),
    also=SHAPE,
)
mutant(
    "TOOL-004",
    "the name of a tool has spaces",
    on_result("tools/list", _each("tools", _only("link", _set(name="link to a resource")))),
)


def _twice(result: Obj) -> None:
    result["tools"] += [tool for tool in result["tools"] if tool["name"] == "link"]


mutant("TOOL-005", "a tool is listed twice", on_result("tools/list", _twice))
mutant(
    "INV-005",
    "a tool result has no content",
    on_result(calls("test_error_handling"), _drop("content")),
    also=SHAPE,
)
mutant(
    "CONTENT-001",
    "a content block is of a type that nobody knows",
    on_result(
        calls("test_error_handling"), lambda result: result.update(content=[{"type": "scent"}])
    ),
    also=SHAPE,
)


def _other_types(result: Obj) -> None:
    if "sum" in result.get("structuredContent", {}):
        result["structuredContent"]["sum"] = "much"
        result["content"][0]["text"] = '{"sum": "much"}'


mutant(
    "SCHEMA-006",
    "structured content does not match the output schema",
    on_result(lambda request: request.get("method") == "tools/call", _other_types),
)

# -- resources ---------------------------------------------------------------------------------

mutant(
    "RES-101",
    "resources is no array",
    on_result("resources/list", _no_array("resources")),
    also=SHAPE,
)


def _missing(request: Obj) -> bool:
    uri = str(params_of(request).get("uri"))
    return request.get("method") == "resources/read" and not uri.startswith((":::", "file:"))


def _not_found(code: int) -> Any:
    def change(message: Obj, request: Obj) -> Obj:
        if message.get("error", {}).get("code") in {-32002, -32602}:
            message["error"]["code"] = code
        return message

    return change


def _empty(message: Obj, request: Obj) -> Obj:
    if message.get("error", {}).get("code") in {-32002, -32602}:
        return {
            "jsonrpc": "2.0",
            "id": message["id"],
            "result": {
                "resultType": "complete",
                "contents": [],
                "ttlMs": 0,
                "cacheScope": "public",
                "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "m", "version": "1"}},
            },
        }
    return message


mutant("RES-102", "a missing resource has the code -32000", on_answer(_missing, _not_found(-32000)))
mutant(
    "RES-103",
    "a missing resource is empty",
    on_answer(_missing, _empty),
    also="the rule about the code of that error sees no error",
)
mutant(
    "RES-104",
    "a URI that is none is read",
    on_answer(asks("resources/read", uri="::: this is no URI :::"), _empty),
)
mutant(
    "RES-105",
    "a path out of the root is read",
    on_answer(asks("resources/read", uri="file:///../../../../../../etc/passwd"), _empty),
)
mutant(
    "RES-106",
    "a URI has no scheme",
    on_result("resources/list", _each("resources", _only("fact-3", _set(uri="fact-3")))),
)
mutant(
    "RES-107",
    "a priority is beyond 1",
    on_result(
        "resources/list", _each("resources", _only("fact-3", _set(annotations={"priority": 7})))
    ),
    also=SHAPE,
)
mutant("RES-108", "contents is no array", on_result(GREETING, _no_array("contents")), also=SHAPE)
mutant(
    "RES-109",
    "a failure inside has the code of invalid params",
    on_error(asks("resources/read", uri="test://failing-resource"), code=-32602),
)
mutant(
    "RES-001",
    "contents have no URI",
    on_result(GREETING, _each("contents", _drop("uri"))),
    also=SHAPE,
)
mutant(
    "RES-002",
    "a listed resource has no name",
    on_result("resources/list", _each("resources", _only("fact-3", _drop("name")))),
    also=SHAPE,
)
mutant(
    "RESTPL-001",
    "the title of a template is a number",
    on_result("resources/templates/list", _each("resourceTemplates", _set(title=7))),
    also=SHAPE,
)
mutant(
    "RESTPL-002",
    "a template is not closed",
    on_result(
        "resources/templates/list", _each("resourceTemplates", _set(uriTemplate="demo://notes/{id"))
    ),
)
mutant(
    "SUBS-104",
    "resources/subscribe says more than nothing",
    on_result("resources/subscribe", lambda _: {"subscribed": True}),
)
mutant(
    "SUBS-105",
    "resources/unsubscribe says more than nothing",
    on_result("resources/unsubscribe", lambda _: {"subscribed": False}),
)
mutant(
    "SUBS-106",
    "a subscription is taken though none are offered",
    accept("resources/subscribe", {}),
    options=("--hide", "subscribe"),
)

# -- prompts -----------------------------------------------------------------------------------

mutant(
    "PROMPT-101", "prompts is no array", on_result("prompts/list", _no_array("prompts")), also=SHAPE
)


def _unknown_prompt(request: Obj) -> bool:
    params = params_of(request)
    known = {"greet", "review", "with_image"}
    return request.get("method") == "prompts/get" and params.get("name") not in known


mutant(
    "PROMPT-102", "an unknown prompt is refused with -32603", _refused_with(_unknown_prompt, -32603)
)
mutant(
    "PROMPT-103",
    "a missing argument is refused with -32603",
    _refused_with(asks("prompts/get", name="greet", arguments={}), -32603),
)
mutant(
    "PROMPT-104",
    "a failure inside has the code of invalid params",
    on_error(asks("prompts/get", name="failing_prompt"), code=-32602),
)


def _has_objects(request: Obj) -> bool:
    arguments = params_of(request).get("arguments")
    return (
        request.get("method") == "prompts/get"
        and isinstance(arguments, dict)
        and any(not isinstance(value, str) for value in arguments.values())
    )


mutant(
    "PROMPT-105",
    "arguments of a wrong type are taken",
    accept(
        _has_objects,
        {"messages": [{"role": "user", "content": {"type": "text", "text": "Hello."}}]},
    ),
)
mutant(
    "PROMPT-106",
    "a change of the prompts is not announced",
    patch(
        "demo.handshake_era:HandshakeSession.announce",
        lambda announce: lambda self, what: announce(self, what) if what == "tools" else None,
    ),
)


def _content(change: Callable[[Obj], Any]) -> Callable[[Obj], None]:
    return _each("messages", lambda message: change(message["content"]))


mutant(
    "PROMPT-107",
    "the data of a picture is not base64",
    on_result(
        asks("prompts/get", name="test_prompt_with_image"),
        _content(lambda block: block.update(data="not base64!") if "data" in block else None),
    ),
    also="the rule about all prompts wants a sound picture too",
)
mutant(
    "PROMPT-108",
    "a sound is called a picture",
    on_result(
        asks("prompts/get", name="audio_prompt"),
        _content(lambda block: block.update(mimeType="image/png") if "data" in block else None),
    ),
)
mutant(
    "PROMPT-109",
    "an embedded resource has no MIME type",
    on_result(
        asks("prompts/get", name="test_prompt_with_embedded_resource"),
        _content(lambda block: block["resource"].pop("mimeType") if "resource" in block else None),
    ),
)
mutant(
    "PROMPT-110",
    "messages is no array",
    on_result(asks("prompts/get", name="greet"), _no_array("messages")),
    also=SHAPE,
)
mutant(
    "PROMPT-111",
    "a prompt is refused without arguments",
    refuse(
        lambda request: (
            params_of(request).get("name") == "test_prompt_with_embedded_resource"
            and "arguments" not in params_of(request)
        )
    ),
    also="the rule about resources in prompts asks in the same way",
)
mutant(
    "PROMPT-001",
    "a message of a prompt has no role",
    on_result(asks("prompts/get", name="greet"), _each("messages", _drop("role"))),
    also=SHAPE,
)
mutant(
    "PROMPT-002",
    "a listed prompt has no name",
    on_result("prompts/list", _each("prompts", _only("review", _drop("name")))),
    also=SHAPE,
)

# -- completion --------------------------------------------------------------------------------

COMPLETE = "completion/complete"
NO_COMPLETIONS = ("--hide", "completions")
NONE: Obj = {"completion": {"values": []}}


def _ref(**members: Any) -> When:
    return lambda request: (
        request.get("method") == COMPLETE
        and all(params_of(request).get("ref", {}).get(k) == v for k, v in members.items())
    )


mutant(
    "COMPL-001",
    "an undeclared completion is answered",
    accept(COMPLETE, NONE),
    options=NO_COMPLETIONS,
    also="the rule about the code of that error sees no error",
)
mutant(
    "COMPL-002",
    "an undeclared completion is refused with -32602",
    on_error(COMPLETE, code=-32602, message="No."),
    options=NO_COMPLETIONS,
)
mutant(
    "COMPL-003",
    "an unknown prompt is refused with -32603",
    on_error(
        lambda request: (
            request.get("method") == COMPLETE
            and "argument" in params_of(request)
            and params_of(request)["argument"].get("name") == "mcptest"
            and params_of(request)["ref"].get("type") == "ref/prompt"
        ),
        code=-32603,
    ),
)
mutant(
    "COMPL-004",
    "a missing argument is refused with -32603",
    on_error(
        lambda request: request.get("method") == COMPLETE and "argument" not in params_of(request),
        code=-32603,
    ),
)
mutant(
    "COMPL-005", "an unknown kind of reference is completed", accept(_ref(type="ref/mcptest"), NONE)
)
mutant(
    "COMPL-006",
    "completions are numbers",
    on_result(_ref(name="greet"), lambda _: {"completion": {"values": [1, 2]}}),
    also="the rule about the number of values wants texts too",
)
mutant(
    "COMPLETE-001",
    "there are more than a hundred completions",
    on_result(_ref(name="greet"), lambda _: {"completion": {"values": ["x"] * 101}}),
    since="2025-03-26",
)
