"""Asking a server for what the linter looks at: its lists, and answers of tools that only read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from mcptest.explore.audit import input_for
from mcptest.explore.lint.called import TRIALS, Called
from mcptest.explore.lint.surface import Surface, surface_of
from mcptest.peer.connection import Stopped
from mcptest.peer.tool_safety import is_safe
from mcptest.run.exploring.outcome import Outcome
from mcptest.run.exploring.subject import Offer, Subject


def surface_of_offer(offer: Offer) -> Surface:
    lists = (offer.tools, offer.prompts, offer.resources, offer.templates)
    return surface_of(*map(list, lists))


def called_tools(
    subject: Subject, offer: Offer, *, often: bool, on_call: Callable[[str], None]
) -> Iterator[Called]:
    """Call every tool that says that it only reads, once or several times, with the same input."""
    for tool in offer.tools:
        name = tool.get("name") if isinstance(tool, dict) else None
        if not isinstance(name, str) or not is_safe(tool):
            continue
        on_call(name)
        arguments = input_for(tool).arguments
        answers = []
        for _ in range(TRIALS if often else 1):
            try:
                outcome = subject.call(name, arguments)
            except Stopped:
                return  # what was seen so far is still worth a report
            if outcome.reply is None:
                break  # what it breaks is for `audit` to say
            answers.append(_text_of(outcome))
        yield Called(name, answers)


def skipped_tools(offer: Offer) -> list[str]:
    """Tools that were not called, because they do not say that they only read."""
    return [
        str(tool.get("name"))
        for tool in offer.tools
        if isinstance(tool, dict) and not is_safe(tool)
    ]


def _text_of(outcome: Outcome) -> str:
    reply = outcome.reply
    content: Any = reply.result.get("content") if reply is not None and reply.ok else None
    if not isinstance(content, list):
        return str(outcome.detail)
    texts = (block.get("text") for block in content if isinstance(block, dict))
    return "\n".join(text for text in texts if isinstance(text, str))
