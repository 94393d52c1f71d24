"""The three things a tool can ask of the client, and what a usable answer looks like."""

from __future__ import annotations

from mcptest.peer.demo.exchange import Ask, ToolFailure

TYPE_CHECKING = False  # see protocol
if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any

    from mcptest.peer.demo.protocol import Obj

    Asking = Generator[Ask, Any, str]

MAX_TURNS = 3
"""How often a model may use tools before it has to say something."""
_SAMPLE: Obj = {
    "type": "object",
    "required": ["role", "content", "model"],
    "properties": {"role": {"enum": ["assistant", "user"]}, "model": {"type": "string"}},
}
_FORM: Obj = {
    "type": "object",
    "properties": {
        "answer": {
            "type": "string",
            "title": "Answer",
            "description": "Your answer in a few words",
        },
        "sure": {
            "type": "boolean",
            "title": "Sure",
            "description": "Whether you are sure of it",
            "default": True,
        },
    },
    "required": ["answer"],
}
_ELICITED: Obj = {
    "type": "object",
    "required": ["action"],
    "properties": {
        "action": {"enum": ["accept", "decline", "cancel"]},
        "content": {"type": "object", "properties": _FORM["properties"]},
    },
}
_ACTION: Obj = {
    "type": "object",
    "required": ["action"],
    "properties": {"action": {"enum": ["accept", "decline", "cancel"]}},
}
_ROOTS: Obj = {
    "type": "object",
    "required": ["roots"],
    "properties": {
        "roots": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["uri"],
                "properties": {"uri": {"type": "string"}, "name": {"type": "string"}},
            },
        }
    },
}


def sample_from_model(question: str, tools: tuple[Obj, ...] = ()) -> Asking:
    """The text that the client's model gave. The tools that it may use answer with a fixed text."""
    messages: list[Obj] = [{"role": "user", "content": {"type": "text", "text": question}}]
    params: Obj = {"messages": messages, "maxTokens": 100}
    if tools:
        params |= {"tools": list(tools), "toolChoice": {"mode": "auto"}}
    needs: dict[str, Obj] = {"sampling": {"tools": {}} if tools else {}}
    blocks: list[Any] = []
    for turn in range(MAX_TURNS):
        key = f"model-{turn + 1}" if turn else "model"
        answer = yield Ask(key, "sampling/createMessage", params, needs, _SAMPLE)
        content = answer["content"]
        blocks = content if isinstance(content, list) else [content]
        uses = [one for one in blocks if isinstance(one, dict) and one.get("type") == "tool_use"]
        if not tools or not uses:
            break
        messages = [*messages, {"role": "assistant", "content": content}, _used(uses)]
        params = {**params, "messages": messages}
    words = [
        block["text"]
        for block in blocks
        if isinstance(block, dict) and isinstance(block.get("text"), str)
    ]
    if not words:
        raise ToolFailure("The model answered without any text.")
    return "\n".join(words)


def _used(uses: list[Obj]) -> Obj:
    """The message with what the tools gave: results for all uses, and nothing else."""
    answer = [{"type": "text", "text": "It is noon."}]
    results = [
        {"type": "tool_result", "toolUseId": str(one.get("id", "")), "content": answer}
        for one in uses
    ]
    return {"role": "user", "content": results}


def confirm_with_user(question: str, with_mode: bool) -> Asking:
    """What the user did with the form, in words. `mode` is known from 2025-11-25 on."""
    params: Obj = {"mode": "form"} if with_mode else {}
    params |= {"message": question, "requestedSchema": _FORM}
    needs: dict[str, Obj] = {"elicitation": {"form": {}} if with_mode else {}}
    answer = yield Ask("user", "elicitation/create", params, needs, _ELICITED)
    if answer["action"] == "decline":
        return "The user declined to answer."
    if answer["action"] == "cancel":
        return "The user closed the question without answering."
    content = answer.get("content", {})
    if "answer" not in content:
        raise ToolFailure("The user accepted without giving an answer.")
    certainty = "is sure" if content.get("sure", True) else "is not sure"
    return f"The user answered: {content['answer']} (and {certainty})"


def send_user_to(url: str, identifier: str | None) -> Asking:
    """What the user did with the question to open a page, in words."""
    params: Obj = {"mode": "url", "message": "Please confirm this on our page.", "url": url}
    if identifier is not None:
        params["elicitationId"] = identifier
    needs: dict[str, Obj] = {"elicitation": {"url": {}}}
    answer = yield Ask("page", "elicitation/create", params, needs, _ACTION)
    return f"The user said {answer['action']}."


def ask_form(key: str, question: str, fields: Obj, loose: bool = False) -> Generator[Ask, Any, Obj]:
    """What the user filled in; nothing where the form was not accepted."""
    form = {"type": "object", "properties": fields}
    params: Obj = {"mode": "form", "message": question, "requestedSchema": form}
    needs: dict[str, Obj] = {"elicitation": {"form": {}}}
    kinds = {name: {"type": field["type"]} for name, field in fields.items()}
    content = {"type": "object", "properties": kinds}
    schema = {**_ACTION, "properties": {**_ACTION["properties"], "content": content}}
    answer = yield Ask(key, "elicitation/create", params, needs, schema, loose)
    return dict(answer.get("content", {}))


def ask_model(key: str, question: str) -> Asking:
    """The text that the client's model gave, asked under a key of its own."""
    message = {"role": "user", "content": {"type": "text", "text": question}}
    params: Obj = {"messages": [message], "maxTokens": 100}
    answer = yield Ask(key, "sampling/createMessage", params, {"sampling": {}}, _SAMPLE)
    content = answer["content"]
    return str(content.get("text", "")) if isinstance(content, dict) else str(content)


def ask_roots(key: str) -> Ask:
    return Ask(key, "roots/list", {}, {"roots": {}}, _ROOTS)


def list_client_roots() -> Generator[Ask, Any, list[str]]:
    """The URIs of the client's roots."""
    answer = yield ask_roots("roots")
    return [root["uri"] for root in answer["roots"]]


def missing_capability(ask: Ask, declared: Obj) -> dict[str, Obj] | None:
    """What the client would have to declare for this question, or None when it did."""
    for name, modes in ask.needs.items():
        offered = declared.get(name)
        if not isinstance(offered, dict):
            return ask.needs
        # An empty elicitation capability means forms; one that names only other modes does not.
        if not offered and "form" in modes:
            continue
        if modes and not any(mode in offered for mode in modes):
            return ask.needs
    return None
