"""Things that only a test needs, under the names that the official suite and ours know them by.

A server that offers them lets a tester see what no server in production shows on its own: a tool
that fails, one that asks, a prompt with audio, a resource that can't be read.
"""

from __future__ import annotations

from mcptest.servers.demo import versions
from mcptest.servers.demo.exchange import (
    ask_form,
    ask_roots,
    confirm_with_user,
    sample_from_model,
    send_user_to,
    text,
)
from mcptest.servers.demo.jsonrpc import INTERNAL_ERROR, Refusal, read_data
from mcptest.servers.demo.offers import (
    GREETING_URI,
    PNG_BASE64,
    Resource,
    Template,
    declared_prompt,
    declared_tools,
    exists,
    list_roots,
    read_resource,
    says,
)

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any

    from mcptest.servers.demo.exchange import Body, Call
    from mcptest.servers.demo.jsonrpc import Obj
    from mcptest.servers.demo.offers import Prompt, Run
    from mcptest.servers.demo.world import World

SILENCE_BASE64 = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="
_OFFERS = read_data("fixtures.json", PNG=PNG_BASE64, SILENCE=SILENCE_BASE64)
_TEXT: Obj = {"type": "string"}
_NAME: Obj = {"name": {**_TEXT, "title": "Name"}}


def test_logging_tool(arguments: Obj, call: Call) -> Obj:
    call.log("info", {"message": "The tool was called."})
    return text("It would be logged where a log level was set.")


def test_input_required_result_list_roots(arguments: Obj, call: Call) -> Body:
    answer = yield ask_roots("client_roots")
    return text("\n".join(root["uri"] for root in answer["roots"]) or "There are no roots.")


def test_input_required_result_multiple_inputs(arguments: Obj, call: Call) -> Body:
    yield (
        next(ask_form("user_name", "What is your name?", _NAME)),
        next(sample_from_model("Please write a greeting.", key="greeting")),
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
        asks.append(next(sample_from_model("Please write a greeting.", key="greeting")))
    if "elicitation" in call.declared:
        asks.append(next(ask_form("user_name", "What is your name?", _NAME)))
    if asks:
        yield tuple(asks)
    return text(f"{len(asks)} questions were answered.")


def _in_context() -> Generator[Any, Any, str]:
    fields = {"context": {**_TEXT, "title": "Context"}}
    content = yield from ask_form("user_context", "In which context?", fields)
    return f"Please answer in this context: {content.get('context', 'any')}."


PAGE_URL = "https://demo.example/confirm"
URL_ELICITATION_REQUIRED = -32042
SLOW_SECONDS = 1.0


def test_tool_with_progress(arguments: Obj, call: Call) -> Body:
    for done in (0, 50, 100):
        call.progress(done, 100, f"{done} of 100")
        yield 0.01
    return text("All 100 are done.")


def slow_tool(arguments: Obj, call: Call) -> Body:
    # It changes nothing, and does not say so: who calls all tools that only read would wait for it.
    yield SLOW_SECONDS
    return text("That took its time.")


def test_tool_with_logging(arguments: Obj, call: Call) -> Obj:
    for level in ("debug", "info", "warning", "error"):
        call.log(level, {"message": f"A message of level {level}."})
    return text("Logged at four levels.")


def test_sampling(arguments: Obj, call: Call) -> Body:
    sampling = call.declared.get("sampling")
    with_tools = isinstance(sampling, dict) and "tools" in sampling
    tools = (_OFFERS["clock"],) if with_tools and call.knows(versions.V2025_11_25) else ()
    return sample_from_model(arguments.get("prompt", "What time is it?"), tools)


def test_elicitation(arguments: Obj, call: Call) -> Body:
    question = arguments.get("message", "What do you say?")
    return confirm_with_user(question, with_mode=call.knows(versions.V2025_11_25))


def url_eliciting_tool(arguments: Obj, call: Call) -> Body:
    named = not call.knows(versions.V2026_07_28)
    identifier = f"page-{next(call.world.numbers)}" if named else None
    words = yield from send_user_to(PAGE_URL, identifier)
    if identifier is None:
        return text(words)
    # That page was dealt with, and there is one more: then the call is to be made again.
    call.notify("notifications/elicitation/complete", {"elicitationId": identifier})
    identifier = f"page-{next(call.world.numbers)}"
    next_page = {"mode": "url", "message": "One more page.", "url": PAGE_URL}
    pages = {"elicitations": [{**next_page, "elicitationId": identifier}]}
    raise Refusal(URL_ELICITATION_REQUIRED, "There is one more page to open", pages)


def test_embedded_resource(arguments: Obj, call: Call) -> Obj:
    if "resources" in call.world.options.hide:
        return text("There are no resources to embed.")
    resource = read_resource(GREETING_URI, call.world)
    return {"content": [{"type": "resource", "resource": resource}]}


def _changing(what: str, extra: str) -> Run:
    def run(arguments: Obj, call: Call) -> Obj:
        if call.session is None:
            call.world.announce(what)
            return text(f"Who subscribed to the list of {what} was told to read it again.")
        return text(f"{extra} is {'' if call.session.toggle_extra(what) else 'not '}offered.")

    return run


def header_tool(arguments: Obj, call: Call) -> Obj:
    return text(f"The number is {arguments['number']}.")


def test_reconnection(arguments: Obj, call: Call) -> Body:
    call.exchange.pause()
    yield 0.05
    return text("Welcome back.")


def _embedded(world: World, arguments: dict[str, str]) -> list[Obj]:
    uri = arguments.get("resourceUri", GREETING_URI)
    if exists(uri, world):
        resource = read_resource(uri, world)
    else:
        resource = {"uri": uri, "mimeType": "text/plain", "text": "This was made for the prompt."}
    shown = {"role": "user", "content": {"type": "resource", "resource": resource}}
    return [shown, says("user", "Please describe this in one sentence.")]


def _fails(world: World, arguments: dict[str, str]) -> list[Obj]:
    raise Refusal(INTERNAL_ERROR, "The prompt can't be made right now")


TOOLS = declared_tools(
    _OFFERS,
    *("test_error_handling", test_tool_with_progress, slow_tool, test_tool_with_logging),
    *(test_sampling, test_elicitation, url_eliciting_tool, test_embedded_resource),
    *("test_input_required_result_elicitation", "json_schema_2020_12_tool"),
    *(header_tool, test_reconnection, test_logging_tool),
    *("test_simple_text", "test_image_content", "test_audio_content"),
    "test_multiple_content_types",
    *("test_elicitation_sep1034_defaults", "test_elicitation_sep1330_enums"),
    test_input_required_result_list_roots,
    *("test_input_required_result_request_state", "test_input_required_result_tampered_state"),
    *(test_input_required_result_multiple_inputs, test_input_required_result_multi_round),
    test_input_required_result_capabilities,
    roots_tool=list_roots,
    test_trigger_tool_change=_changing("tools", "The tool extra"),
    test_trigger_prompt_change=_changing("prompts", "The prompt extra_prompt"),
    test_missing_capability=lambda arguments, call: sample_from_model("Are you there?"),
    test_streaming_elicitation=lambda arguments, call: confirm_with_user("Shall it go on?", True),
    test_input_required_result_sampling=lambda arguments, call: sample_from_model(
        "What is the capital of France?", key="capital_question"
    ),
)
_PROMPT_CODE: dict[str, dict[str, Any]] = {
    "test_prompt_with_embedded_resource": {"messages": _embedded},
    "failing_prompt": {"messages": _fails},
    "test_input_required_result_prompt": {"asks": _in_context},
}
PROMPTS: tuple[Prompt, ...] = tuple(
    declared_prompt(_OFFERS, name, **_PROMPT_CODE.get(name, {})) for name in _OFFERS["prompts"]
)
RESOURCES = tuple(Resource(**one) for one in _OFFERS["resources"])
TEMPLATES = tuple(Template(**one) for one in _OFFERS["templates"])
