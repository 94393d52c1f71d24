"""Static answers of our client to what a server may ask: roots, sampling, elicitation.

A client that answers must declare it, so the declared capabilities are derived from the answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from mcptest.core.message import ABSENT, Kind, Message
from mcptest.core.revision import Revision
from mcptest.core.safe_text import show

METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602


class Answers(msgspec.Struct, frozen=True):
    """What the client says when it is asked; None means that it does not offer the feature."""

    roots: tuple[Mapping[str, str], ...] | None = ()
    sampling: str | None = "This is a static answer from mcptest."
    model: str = "mcptest-static"
    stop_reason: str = "endTurn"
    elicitation: str | None = "accept"
    """The action: accept, decline or cancel. An accepted form is filled in from its schema."""
    form: Mapping[str, Any] = {}
    """Values for form fields by name; the others are made up from the schema."""
    content: Mapping[str, Any] | None = None
    """The whole content of an accepted form, instead of one that is made up."""

    def capabilities(self, revision: Revision) -> dict[str, Any]:
        """What these answers oblige the client to declare in `revision`."""
        declared: dict[str, Any] = {}
        if self.roots is not None:
            declared["roots"] = {}
        if self.sampling is not None:
            declared["sampling"] = {}
        if self.elicitation is not None and revision >= Revision.V2025_06_18:
            declared["elicitation"] = {}
        return declared

    def answer(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """The `result` or `error` member for one request of the server."""
        if method == "ping":
            return {"result": {}}
        if method == "roots/list" and self.roots is not None:
            return {"result": {"roots": [dict(root) for root in self.roots]}}
        if method == "sampling/createMessage" and self.sampling is not None:
            return {"result": self._sampled(self.sampling)}
        if method == "elicitation/create" and self.elicitation is not None:
            return self._elicited(self.elicitation, params)
        return {"error": {"code": METHOD_NOT_FOUND, "message": "Method not found"}}

    def reply_to(self, request: Message, revision: Revision) -> dict[str, Any]:
        """The same for a request as it came: one whose params no client can take is refused."""
        outcome = self.answer(request.method or "", request.params)
        why = "" if "error" in outcome else why_invalid(request, revision)
        if why:
            return {"error": {"code": INVALID_PARAMS, "message": f"Invalid params: {why}"}}
        return outcome

    def _sampled(self, text: str) -> dict[str, Any]:
        return {
            "role": "assistant",
            "content": {"type": "text", "text": text},
            "model": self.model,
            "stopReason": self.stop_reason,
        }

    def _elicited(self, action: str, params: Mapping[str, Any]) -> dict[str, Any]:
        mode = params.get("mode", "form")
        if mode != "form":  # the only mode that an empty `elicitation` capability declares
            message = f"elicitation mode {show(str(mode), 40)} was not declared"
            return {"error": {"code": INVALID_PARAMS, "message": message}}
        if action != "accept":
            return {"result": {"action": action}}
        if self.content is not None:
            return {"result": {"action": "accept", "content": dict(self.content)}}
        schema = params.get("requestedSchema")
        properties = schema.get("properties") if isinstance(schema, dict) else None
        fields = properties if isinstance(properties, dict) else {}
        content = {name: self.form.get(name, _filled_in(field)) for name, field in fields.items()}
        return {"result": {"action": "accept", "content": content}}


def why_invalid(message: Message, revision: Revision) -> str:
    """What about a server's request does not fit its revision; empty when it fits.

    An answer that asks for input is such a request, too: for each input that it asks for.
    """
    from mcptest.schema.message_shapes import shape_problems  # few servers ask anything

    asks = "/params" if message.kind is Kind.REQUEST else "/result/inputRequests"
    # Whatever was called, an answer that asks for input has the same shape.
    found = shape_problems(message.value, message.kind, "server", revision, "tools/call")
    for one in found or ():
        if one.pointer.startswith(asks):
            return show(f"{one.pointer} is {one.actual}, not {one.expected}", 200)
    return ""


NO_ANSWERS = Answers(roots=None, sampling=None, elicitation=None)


def _filled_in(field: Any) -> Any:
    """A valid value for one field of a flat elicitation form; of several choices the first."""
    from mcptest.schema.generator import fitting_value  # few servers ask anything

    if isinstance(field, dict) and "default" not in field:
        if field.get("type") == "boolean":
            return True
        if field.get("type") == "array":
            field = {**field, "minItems": field.get("minItems") or 1}
    value = fitting_value(field)
    return "mcptest" if value is ABSENT else value


# -- What a client declares, by name -----------------------------------------------------------

EVERYTHING = ("roots", "sampling", "elicitation")
"""What a client that is well equipped declares."""
_MANNERS = ("decline", "cancel")
"""Parts of `elicitation` that are no capability: how the user is to decide."""
_ROOT = {"uri": "file:///mcptest", "name": "mcptest"}


def capabilities_of(declare: tuple[str, ...], revision: Revision) -> dict[str, Any]:
    """The capabilities object: `elicitation.url` is `{"elicitation": {"url": {}}}`."""
    declared: dict[str, Any] = {}
    for one in declare:
        name, _, part = one.partition(".")
        if name == "elicitation" and revision < Revision.V2025_06_18:
            continue
        inner = declared.setdefault(name, {})
        if part and part not in _MANNERS:
            inner[part] = {}
    return declared


class DeclaredAnswers(Answers, frozen=True):
    """Answers what was declared and refuses the rest."""

    declare: tuple[str, ...] = ()

    def capabilities(self, revision: Revision) -> dict[str, Any]:
        return capabilities_of(self.declare, revision)

    def answer(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        if method == "elicitation/create" and params.get("mode") == "url":
            if "elicitation.url" in self.declare:
                return {"result": {"action": self.elicitation or "accept"}}
        elif method == "sampling/createMessage" and "sampling.tools" in self.declare:
            uses = _tool_uses(params)
            if uses:
                return {"result": uses}
        return Answers.answer(self, method, params)


def answers_for(declare: tuple[str, ...]) -> DeclaredAnswers:
    """The answers of a client that declares these capabilities and no others."""
    names = {one.partition(".")[0] for one in declare}
    manner = next((one for one in _MANNERS if f"elicitation.{one}" in declare), "accept")
    return DeclaredAnswers(
        roots=(_ROOT,) if "roots" in names else None,
        sampling="This is a static answer from mcptest." if "sampling" in names else None,
        elicitation=manner if "elicitation" in names else None,
        declare=declare,
    )


def _tool_uses(params: Mapping[str, Any]) -> dict[str, Any] | None:
    """Two uses of the first offered tool; None when there is none, or they were answered."""
    tools, messages = params.get("tools"), params.get("messages")
    first = tools[0] if isinstance(tools, list) and tools else None
    if not isinstance(first, dict) or not isinstance(messages, list) or len(messages) > 1:
        return None
    uses: list[Any] = [
        {"type": "tool_use", "id": f"mcptest-{number}", "name": first.get("name"), "input": {}}
        for number in (1, 2)
    ]
    kept = {"role": "assistant", "model": "mcptest-static", "stopReason": "toolUse"}
    return {**kept, "content": uses}
