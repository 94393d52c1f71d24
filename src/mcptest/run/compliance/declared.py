"""A client that declares exactly what a check asks for, and answers what it then is asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcptest.model.revision import Revision
from mcptest.peer.answers import Answers

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
    tools = params.get("tools")
    first = tools[0] if isinstance(tools, list) and tools else None
    messages = params.get("messages")
    if not isinstance(first, dict) or not isinstance(messages, list) or len(messages) > 1:
        return None
    uses: list[Any] = [
        {"type": "tool_use", "id": f"mcptest-{number}", "name": first.get("name"), "input": {}}
        for number in (1, 2)
    ]
    return {
        "role": "assistant",
        "content": uses,
        "model": "mcptest-static",
        "stopReason": "toolUse",
    }
