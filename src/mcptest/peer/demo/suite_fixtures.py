"""More fixtures of the official suite: content, forms, and tools that ask within their results."""

from __future__ import annotations

from mcptest.peer.demo import versions
from mcptest.peer.demo.asking import ask_form, ask_model, ask_roots, confirm_with_user
from mcptest.peer.demo.call import text
from mcptest.peer.demo.exchange import Together
from mcptest.peer.demo.pictures import PNG_BASE64
from mcptest.peer.demo.prompts import Argument, Prompt, says
from mcptest.peer.demo.resources import Resource, Template
from mcptest.peer.demo.tools import Tool

TYPE_CHECKING = False  # see protocol
if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any

    from mcptest.peer.demo.call import Call
    from mcptest.peer.demo.exchange import Body
    from mcptest.peer.demo.protocol import Obj
    from mcptest.peer.demo.world import World

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


def _image() -> Obj:
    return {"type": "image", "data": PNG_BASE64, "mimeType": "image/png"}


def _words(words: str) -> Obj:
    return {"type": "text", "text": words}


def test_simple_text(arguments: Obj, call: Call) -> Obj:
    return text("This is a simple text.")


def test_image_content(arguments: Obj, call: Call) -> Obj:
    return {"content": [_image()]}


def test_audio_content(arguments: Obj, call: Call) -> Obj:
    return {"content": [{"type": "audio", "data": SILENCE_BASE64, "mimeType": "audio/wav"}]}


def test_multiple_content_types(arguments: Obj, call: Call) -> Obj:
    uri = "test://mixed-content-resource"
    resource = {"uri": uri, "mimeType": "application/json", "text": '{"value": 123}'}
    blocks = [_words("Three blocks."), _image(), {"type": "resource", "resource": resource}]
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


TOOLS: tuple[Tool, ...] = (
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


PROMPTS: tuple[Prompt, ...] = (
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
RESOURCES: tuple[Resource, ...] = (
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
TEMPLATES: tuple[Template, ...] = (
    Template(
        "test://template/",
        "/data",
        "template_data",
        "Data from a template",
        "A text that shows the id.",
    ),
)
