"""Reading whole lists, page by page."""

from __future__ import annotations

import contextlib
from typing import Any, Final

from mcptest.peer.pagination import LIST_CAPABILITIES, LIST_MEMBERS, EndlessPages, walk_pages
from mcptest.rules.corpus.probe_steps import Step
from mcptest.run.compliance.conversation import Asked, Conversation, Started
from mcptest.run.compliance.probe_course import Course
from mcptest.run.compliance.probe_seen import Unobserved
from mcptest.suite.check_forms import Check

_MEMBERS: Final = {**LIST_MEMBERS, "tasks/list": "tasks"}


def walk_lists(course: Course, step: Step) -> None:
    """Every page of the lists that the server declares. The first pages are asked for at once."""
    conversation = course.conversation_for(step)
    place = len(conversation.tape.records)
    started = {
        method: conversation.start(Check(method=method)) for method in _methods(course, step)
    }
    lists: dict[str, list[Any]] = {}
    last: Asked | None = None
    for method, first in started.items():
        items, last = _walk(conversation, method, first)
        if items is not None:
            lists[method] = items
    if last is None:
        raise Unobserved("the server declares no lists", "a list of tools, prompts or resources")
    course.note(step.name, last, conversation, place, lists=lists)


def _methods(course: Course, step: Step) -> list[str]:
    if step.options.only:
        return [step.options.only]
    return [method for method, name in LIST_CAPABILITIES.items() if course.is_declared(name)]


def _walk(
    conversation: Conversation, method: str, started: Started
) -> tuple[list[Any] | None, Asked]:
    """The items, as far as there are pages; None where the list can't be had at all."""
    items: list[Any] | None = None
    asked = conversation.finish(started)

    def ask(params: dict[str, Any] | None) -> Asked:
        return asked if params is None else conversation.ask(Check(method=method, params=params))

    # That the pages never end is for the rules about paging to say.
    with contextlib.suppress(EndlessPages):
        pages = walk_pages(
            method, ask, lambda one: one.exchange.result, seconds=conversation.site.order.timeout
        )
        for asked in pages:
            result = asked.exchange.result
            page = result.get(_MEMBERS[method]) if isinstance(result, dict) else None
            if isinstance(page, list):
                items = [*(items or ()), *page]
    return items, asked
