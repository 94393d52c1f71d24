"""Things that only a test needs, under the names that the official suite and ours know them by.

A server that offers them lets a tester see what no server in production shows on its own: a tool
that fails, one that asks, a prompt with audio, a resource that can't be read.
"""

from __future__ import annotations

from mcptest.peer.demo import suite_fixtures, versions
from mcptest.peer.demo.asking import (
    confirm_with_user,
    list_client_roots,
    sample_from_model,
    send_user_to,
)
from mcptest.peer.demo.call import failure, text
from mcptest.peer.demo.pictures import PNG_BASE64
from mcptest.peer.demo.prompts import Argument, Prompt
from mcptest.peer.demo.protocol import INTERNAL_ERROR, Refusal
from mcptest.peer.demo.resources import GREETING_URI, Resource, exists, read_resource
from mcptest.peer.demo.suite_fixtures import SILENCE_BASE64
from mcptest.peer.demo.tools import CHANGES, Tool, text_argument

TYPE_CHECKING = False  # see protocol
if TYPE_CHECKING:
    from mcptest.peer.demo.call import Call
    from mcptest.peer.demo.exchange import Body
    from mcptest.peer.demo.protocol import Obj
    from mcptest.peer.demo.world import World

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
        suite_fixtures.test_input_required_result_elicitation,
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
    *suite_fixtures.TOOLS,
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
    *suite_fixtures.PROMPTS,
)
RESOURCES: tuple[Resource, ...] = (
    Resource(
        "test://failing-resource",
        "failing_resource",
        "Failing resource",
        "A resource that can't be read.",
        "text/plain",
    ),
    *suite_fixtures.RESOURCES,
)
TEMPLATES = suite_fixtures.TEMPLATES
