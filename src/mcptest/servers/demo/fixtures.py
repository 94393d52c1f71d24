"""Things that only a test needs, under the names that the official suite and ours know them by.

A server that offers them lets a tester see what no server in production shows on its own: a tool
that fails, one that asks, a prompt with audio, a resource that can't be read.
"""

from __future__ import annotations

from mcptest.servers.demo import versions
from mcptest.servers.demo.exchange import (
    Together,
    ask_form,
    ask_model,
    ask_roots,
    confirm_with_user,
    list_client_roots,
    sample_from_model,
    send_user_to,
)
from mcptest.servers.demo.jsonrpc import INTERNAL_ERROR, Refusal
from mcptest.servers.demo.prompts import Argument, Prompt, says
from mcptest.servers.demo.resources import (
    GREETING_URI,
    PNG_BASE64,
    Resource,
    Template,
    exists,
    read_resource,
)
from mcptest.servers.demo.tool_list import CHANGES, Tool, failure, text, text_argument

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any

    from mcptest.servers.demo.exchange import Body
    from mcptest.servers.demo.jsonrpc import Obj
    from mcptest.servers.demo.tool_list import Call
    from mcptest.servers.demo.world import World

# -- More fixtures of the official suite ---------------------------------------------------------

SILENCE_BASE64 = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="
_TEXT: Obj = {"type": "string"}
_NAME: Obj = {"name": {**_TEXT, "title": "Name"}}
_STATUS = ("active", "inactive", "pending")
_DEFAULTS: Obj = {
    "name": {"type": "string", "default": "John Doe"},
    "age": {"type": "integer", "default": 30},
    "score": {"type": "number", "default": 95.5},
    "status": {"type": "string", "enum": list(_STATUS), "default": "active"},
    "verified": {"type": "boolean", "default": True},
}
_OPTIONS = ["option1", "option2", "option3"]
_TITLED = [
    {"const": f"value{number}", "title": f"{word} value"}
    for number, word in enumerate(("First", "Second", "Third"), 1)
]
_CHOICES: Obj = {
    "untitledSingle": {"type": "string", "enum": _OPTIONS},
    "titledSingle": {"type": "string", "oneOf": _TITLED},
    "legacyEnum": {
        "type": "string",
        "enum": ["opt1", "opt2", "opt3"],
        "enumNames": ["One", "Two", "Three"],
    },
    "untitledMulti": {"type": "array", "items": {"type": "string", "enum": _OPTIONS}},
    "titledMulti": {"type": "array", "items": {"anyOf": _TITLED}},
}


# content


def _suite_image() -> Obj:
    return {"type": "image", "data": PNG_BASE64, "mimeType": "image/png"}


def _words(words: str) -> Obj:
    return {"type": "text", "text": words}


def test_simple_text(arguments: Obj, call: Call) -> Obj:
    return text("This is a simple text.")


def test_image_content(arguments: Obj, call: Call) -> Obj:
    return {"content": [_suite_image()]}


def test_audio_content(arguments: Obj, call: Call) -> Obj:
    return {"content": [{"type": "audio", "data": SILENCE_BASE64, "mimeType": "audio/wav"}]}


def test_multiple_content_types(arguments: Obj, call: Call) -> Obj:
    uri = "test://mixed-content-resource"
    resource = {"uri": uri, "mimeType": "application/json", "text": '{"value": 123}'}
    blocks = [_words("Three blocks."), _suite_image(), {"type": "resource", "resource": resource}]
    return {"content": blocks}


# forms of 2025-11-25


def test_elicitation_sep1034_defaults(arguments: Obj, call: Call) -> Body:
    content = yield from ask_form("defaults", "Please look at these values.", _DEFAULTS)
    return text(f"The form was left with {len(content)} values.")


def test_elicitation_sep1330_enums(arguments: Obj, call: Call) -> Body:
    content = yield from ask_form("choices", "Please choose.", _CHOICES)
    return text(f"The form was left with {len(content)} choices.")


# the stateless era


def test_missing_capability(arguments: Obj, call: Call) -> Body:
    words = yield from ask_model("model", "Are you there?")
    return text(f"The model answered: {words}")


def test_streaming_elicitation(arguments: Obj, call: Call) -> Body:
    words = yield from confirm_with_user("Shall it go on?", with_mode=True)
    return text(words)


def test_logging_tool(arguments: Obj, call: Call) -> Obj:
    call.log("info", {"message": "The tool was called."})
    return text("It would be logged where a log level was set.")


def test_input_required_result_elicitation(arguments: Obj, call: Call) -> Body:
    content = yield from ask_form("user_name", "What is your name?", _NAME, loose=True)
    return text(f"Hello, {content.get('name', 'whoever you are')}!")


def test_input_required_result_sampling(arguments: Obj, call: Call) -> Body:
    words = yield from ask_model("capital_question", "What is the capital of France?")
    return text(f"The model answered: {words}")


def test_input_required_result_list_roots(arguments: Obj, call: Call) -> Body:
    answer = yield ask_roots("client_roots")
    return text("\n".join(root["uri"] for root in answer["roots"]) or "There are no roots.")


def test_input_required_result_request_state(arguments: Obj, call: Call) -> Body:
    yield from _confirm()
    return text("state-ok: the state came back as it was given.")


def test_input_required_result_tampered_state(arguments: Obj, call: Call) -> Body:
    yield from _confirm()
    return text("The state came back as it was given.")


def _confirm() -> Generator[Any, Any, Obj]:
    return ask_form("confirm", "Please confirm.", {"ok": {"type": "boolean"}})


def test_input_required_result_multiple_inputs(arguments: Obj, call: Call) -> Body:
    yield Together(
        next(ask_form("user_name", "What is your name?", _NAME)),
        next(ask_model("greeting", "Please write a greeting.")),
        ask_roots("client_roots"),
    )
    return text("All three were answered.")


def test_input_required_result_multi_round(arguments: Obj, call: Call) -> Body:
    first = yield from ask_form("step1", "What is your name?", _NAME)
    colour = {"color": {**_TEXT, "title": "Colour"}}
    second = yield from ask_form("step2", "What is your favourite colour?", colour)
    return text(f"{first.get('name')} likes {second.get('color')}.")


def test_input_required_result_capabilities(arguments: Obj, call: Call) -> Body:
    asks = []
    if "sampling" in call.declared:
        asks.append(next(ask_model("greeting", "Please write a greeting.")))
    if "elicitation" in call.declared:
        asks.append(next(ask_form("user_name", "What is your name?", _NAME)))
    if asks:
        yield Together(*asks)
    return text(f"{len(asks)} questions were answered.")


SUITE_TOOLS: tuple[Tool, ...] = (
    Tool(test_simple_text, "Return a text", "Returns one text.", {}),
    Tool(test_image_content, "Return an image", "Returns one small picture.", {}),
    Tool(
        test_audio_content,
        "Return audio",
        "Returns a short silence.",
        {},
        since=versions.V2025_03_26,
    ),
    Tool(
        test_multiple_content_types,
        "Return three kinds",
        "Returns a text, a picture and a resource.",
        {},
    ),
    Tool(
        test_elicitation_sep1034_defaults,
        "Elicit with defaults",
        "Shows a form whose five fields have defaults, and returns how it was left.",
        {},
        since=versions.V2025_11_25,
        until=versions.V2026_07_28,
    ),
    Tool(
        test_elicitation_sep1330_enums,
        "Elicit with choices",
        "Shows a form with five kinds of choices, and returns how it was left.",
        {},
        since=versions.V2025_11_25,
        until=versions.V2026_07_28,
    ),
    *(
        Tool(run, title, description, {}, since=versions.V2026_07_28)
        for run, title, description in (
            (
                test_missing_capability,
                "Need sampling",
                "Returns what the client's model says, and is refused without one.",
            ),
            (
                test_streaming_elicitation,
                "Elicit within a result",
                "Asks the user with a result that requires input, and returns the answer.",
            ),
            (test_logging_tool, "Log once", "Returns a text, and logs where that is wanted."),
            (
                test_input_required_result_sampling,
                "Require sampling",
                "Asks the model with a result that requires input, and returns its answer.",
            ),
            (
                test_input_required_result_list_roots,
                "Require the roots",
                "Asks for the roots with a result that requires input, and returns them.",
            ),
            (
                test_input_required_result_request_state,
                "Require the state",
                "Asks for a confirmation, and returns whether its state came back.",
            ),
            (
                test_input_required_result_tampered_state,
                "Guard the state",
                "Asks for a confirmation, and refuses a state that was changed.",
            ),
            (
                test_input_required_result_multiple_inputs,
                "Require three inputs",
                "Asks the user, the model and for the roots at once, and returns a text.",
            ),
            (
                test_input_required_result_multi_round,
                "Require input twice",
                "Asks two questions one after the other, and returns both answers.",
            ),
            (
                test_input_required_result_capabilities,
                "Require what is declared",
                "Asks only for what the client declares, and returns how much that was.",
            ),
        )
    ),
)


def _simple(world: World, arguments: dict[str, str]) -> list[Obj]:
    return [says("user", "This is a simple prompt.")]


def _with_arguments(world: World, arguments: dict[str, str]) -> list[Obj]:
    return [says("user", f"The first is {arguments['arg1']}, the second {arguments['arg2']}.")]


def _in_context() -> Generator[Any, Any, str]:
    fields = {"context": {**_TEXT, "title": "Context"}}
    content = yield from ask_form("user_context", "In which context?", fields)
    return f"Please answer in this context: {content.get('context', 'any')}."


SUITE_PROMPTS: tuple[Prompt, ...] = (
    Prompt("test_simple_prompt", "Simple", "Says one sentence.", messages=_simple),
    Prompt(
        "test_prompt_with_arguments",
        "With arguments",
        "Says both of its arguments.",
        (
            Argument("arg1", "First", "The first argument", True),
            Argument("arg2", "Second", "The second argument", True),
        ),
        messages=_with_arguments,
    ),
    Prompt(
        "test_input_required_result_prompt",
        "Ask for context",
        "Asks the user for a context first, with a result that requires input.",
        since=versions.V2026_07_28,
        asks=_in_context,
    ),
)
SUITE_RESOURCES: tuple[Resource, ...] = (
    Resource(
        "test://static-text",
        "static_text",
        "Static text",
        "A text that never changes.",
        "text/plain",
        contents={"text": "This text never changes."},
    ),
    Resource(
        "test://static-binary",
        "static_binary",
        "Static picture",
        "A picture that never changes.",
        "image/png",
        contents={"blob": PNG_BASE64},
    ),
    Resource(
        "test://watched-resource",
        "watched_resource",
        "Watched resource",
        "A resource to subscribe to.",
        "text/plain",
        contents={"text": "This is watched."},
    ),
)
SUITE_TEMPLATES: tuple[Template, ...] = (
    Template(
        "test://template/",
        "/data",
        "template_data",
        "Data from a template",
        "A text that shows the id.",
    ),
)


# -- Things that only a test needs, under the names that the official suite and ours know them ---

PAGE_URL = "https://demo.example/confirm"
URL_ELICITATION_REQUIRED = -32042
SLOW_SECONDS = 1.0
_CLOCK: Obj = {
    "name": "clock",
    "description": "Tells the time of day.",
    "inputSchema": {"type": "object"},
}


def test_error_handling(arguments: Obj, call: Call) -> Obj:
    return failure("This tool always fails.")


def test_tool_with_progress(arguments: Obj, call: Call) -> Body:
    for done in (0, 50, 100):
        call.progress(done, 100, f"{done} of 100")
        yield 0.01
    return text("All 100 are done.")


def slow_tool(arguments: Obj, call: Call) -> Body:
    yield SLOW_SECONDS
    return text("That took its time.")


def test_tool_with_logging(arguments: Obj, call: Call) -> Obj:
    for level in ("debug", "info", "warning", "error"):
        call.log(level, {"message": f"A message of level {level}."})
    return text("Logged at four levels.")


def test_sampling(arguments: Obj, call: Call) -> Body:
    sampling = call.declared.get("sampling")
    with_tools = isinstance(sampling, dict) and "tools" in sampling
    tools = (_CLOCK,) if with_tools and call.knows(versions.V2025_11_25) else ()
    words = yield from sample_from_model(arguments.get("prompt", "What time is it?"), tools)
    return text(f"The model answered: {words}")


def test_elicitation(arguments: Obj, call: Call) -> Body:
    question = arguments.get("message", "What do you say?")
    words = yield from confirm_with_user(question, with_mode=call.knows(versions.V2025_11_25))
    return text(words)


def url_eliciting_tool(arguments: Obj, call: Call) -> Body:
    named = not call.knows(versions.V2026_07_28)
    identifier = f"page-{call.world.next_number()}" if named else None
    words = yield from send_user_to(PAGE_URL, identifier)
    if identifier is None:
        return text(words)
    # That page was dealt with, and there is one more: then the call is to be made again.
    call.notify("notifications/elicitation/complete", {"elicitationId": identifier})
    identifier = f"page-{call.world.next_number()}"
    next_page = {"mode": "url", "message": "One more page.", "url": PAGE_URL}
    pages = {"elicitations": [{**next_page, "elicitationId": identifier}]}
    raise Refusal(URL_ELICITATION_REQUIRED, "There is one more page to open", pages)


def roots_tool(arguments: Obj, call: Call) -> Body:
    uris = yield from list_client_roots()
    return text("\n".join(uris) if uris else "The client has no roots.")


def test_embedded_resource(arguments: Obj, call: Call) -> Obj:
    if "resources" in call.world.options.hide:
        return text("There are no resources to embed.")
    resource = read_resource(GREETING_URI, call.world)
    return {"content": [{"type": "resource", "resource": resource}]}


def test_trigger_tool_change(arguments: Obj, call: Call) -> Obj:
    if call.session is None:
        call.world.announce("tools")
        return text("Who subscribed to the list of tools was told to read it again.")
    return text(f"The tool extra is {'' if call.session.toggle_extra() else 'not '}offered.")


def test_trigger_prompt_change(arguments: Obj, call: Call) -> Obj:
    if call.session is None:
        call.world.announce("prompts")
        return text("Who subscribed to the list of prompts was told to read it again.")
    offered = call.session.toggle_extra_prompt()
    return text(f"The prompt extra_prompt is {'' if offered else 'not '}offered.")


def header_tool(arguments: Obj, call: Call) -> Obj:
    return text(f"The number is {arguments['number']}.")


def test_reconnection(arguments: Obj, call: Call) -> Body:
    call.pause_stream()
    yield 0.05
    return text("Welcome back.")


def json_schema_2020_12_tool(arguments: Obj, call: Call) -> Obj:
    return text("Hello.")


TOOLS: tuple[Tool, ...] = (
    Tool(test_error_handling, "Fail", "Always fails, with an error result.", {}),
    Tool(
        test_tool_with_progress,
        "Report progress",
        "Reports progress from 0 to 100, if the request asked for progress.",
        {},
    ),
    # It does change nothing, but whoever calls all tools that only read would have to wait for it.
    Tool(slow_tool, "Take a second", "Answers after one second.", {}, CHANGES),
    Tool(
        test_tool_with_logging,
        "Log at four levels",
        "Sends one log message each at the levels debug, info, warning and error.",
        {},
    ),
    Tool(
        test_sampling,
        "Sample",
        "Asks the client's model. A client that lets it use tools is offered one.",
        {"prompt": text_argument("The question for the model")},
    ),
    Tool(
        test_elicitation,
        "Elicit with a form",
        "Shows the user a small form and returns the answer.",
        {"message": text_argument("The question for the user")},
        since=versions.V2025_06_18,
    ),
    Tool(
        url_eliciting_tool,
        "Elicit with a page",
        "Asks the user to open a page; 2025-11-25 has an error for one that is still to be opened.",
        {},
        since=versions.V2025_11_25,
    ),
    Tool(roots_tool, "Ask for the roots", "Returns the URIs of the client's roots.", {}),
    Tool(
        test_input_required_result_elicitation,
        "Ask within a result",
        "Asks for the user's name with a result that requires input, and returns the answer.",
        {"reason": text_argument("Why the name is needed", 100)},
        since=versions.V2026_07_28,
    ),
    Tool(test_embedded_resource, "Embed a resource", "Returns a resource within its result.", {}),
    Tool(
        test_trigger_tool_change,
        "Change the tools",
        "Offers one more tool in this session, or takes it away again. Without sessions, tells "
        "subscribers that the list of tools may have changed.",
        {},
        CHANGES,
    ),
    Tool(
        test_trigger_prompt_change,
        "Change the prompts",
        "Offers one more prompt in this session, or takes it away again. Without sessions, tells "
        "subscribers that the list of prompts may have changed.",
        {},
        CHANGES,
    ),
    Tool(
        header_tool,
        "Take a number by header",
        "Returns a number that travels in a header as well, where the transport is HTTP.",
        {"number": {"type": "integer", "description": "Any whole number"}},
        required=("number",),
        since=versions.V2026_07_28,
        header={"number": "Number"},
    ),
    Tool(
        test_reconnection,
        "Close the stream",
        "Closes the stream of its request before the answer, where the client can come back.",
        {},
    ),
    Tool(
        json_schema_2020_12_tool,
        "Use newer keywords",
        "Has an input schema with keywords of JSON Schema 2020-12.",
        {
            "name": text_argument("A name", 100),
            "address": {"$ref": "#/$defs/address", "description": "Where to find them"},
            "contactMethod": {
                "type": "string",
                "enum": ["phone", "email"],
                "description": "How to reach them",
            },
            "phone": text_argument("A number", 100),
            "email": text_argument("An address", 100),
        },
        since=versions.V2025_11_25,
        schema={
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$defs": {
                "address": {
                    "$anchor": "addressDef",
                    "type": "object",
                    "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
                }
            },
            "allOf": [{"anyOf": [{"maxProperties": 5}, {"required": ["name"]}]}],
            "if": {
                "properties": {"contactMethod": {"const": "phone"}},
                "required": ["contactMethod"],
            },
            "then": {"required": ["phone"]},
            "else": {"maxProperties": 5},
        },
    ),
    *SUITE_TOOLS,
)


def _shows(content: Obj) -> list[Obj]:
    words = {"type": "text", "text": "Please describe this in one sentence."}
    return [{"role": "user", "content": content}, {"role": "user", "content": words}]


def _image(world: World, arguments: dict[str, str]) -> list[Obj]:
    return _shows({"type": "image", "data": PNG_BASE64, "mimeType": "image/png"})


def _audio(world: World, arguments: dict[str, str]) -> list[Obj]:
    return _shows({"type": "audio", "data": SILENCE_BASE64, "mimeType": "audio/wav"})


def _embedded(world: World, arguments: dict[str, str]) -> list[Obj]:
    uri = arguments.get("resourceUri", GREETING_URI)
    if exists(uri, world):
        resource = read_resource(uri, world)
    else:
        resource = {"uri": uri, "mimeType": "text/plain", "text": "This was made for the prompt."}
    return _shows({"type": "resource", "resource": resource})


def _fails(world: World, arguments: dict[str, str]) -> list[Obj]:
    raise Refusal(INTERNAL_ERROR, "The prompt can't be made right now")


PROMPTS: tuple[Prompt, ...] = (
    Prompt("test_prompt_with_image", "With a picture", "Shows a picture.", messages=_image),
    Prompt(
        "test_prompt_with_embedded_resource",
        "With a resource",
        "Shows a resource of this server, or one that is made up.",
        (Argument("resourceUri", "URI", "The URI of the resource", False),),
        messages=_embedded,
    ),
    Prompt(
        "audio_prompt",
        "With a sound",
        "Plays a short silence.",
        since=versions.V2025_03_26,
        messages=_audio,
    ),
    Prompt("failing_prompt", "Fail", "Fails every time.", messages=_fails),
    *SUITE_PROMPTS,
)
RESOURCES: tuple[Resource, ...] = (
    Resource(
        "test://failing-resource",
        "failing_resource",
        "Failing resource",
        "A resource that can't be read.",
        "text/plain",
    ),
    *SUITE_RESOURCES,
)
TEMPLATES = SUITE_TEMPLATES
