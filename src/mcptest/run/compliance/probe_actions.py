"""What the steps of a probe do, one small function per action."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from mcptest.model.deadline import Deadline
from mcptest.model.message import ABSENT
from mcptest.rules.corpus.placeholders import PLACEHOLDERS
from mcptest.rules.corpus.probe_steps import Action, Step
from mcptest.run.compliance.conversation import Asked, Conversation
from mcptest.run.compliance.probe_course import Course, UnderWay
from mcptest.run.compliance.probe_facts_connection import is_beyond_counter_offer, unasked_answer
from mcptest.run.compliance.probe_facts_http import is_streamed, session_id, stream_of
from mcptest.run.compliance.probe_facts_tasks import created, has_ended
from mcptest.run.compliance.probe_header import with_integer_header
from mcptest.run.compliance.probe_input import (
    complete_input,
    retry_with_input,
    with_other_arguments,
)
from mcptest.run.compliance.probe_listening import await_change, listen, release
from mcptest.run.compliance.probe_metadata import fetch_metadata
from mcptest.run.compliance.probe_seen import Taken, Unobserved
from mcptest.run.compliance.probe_walk import walk_lists
from mcptest.suite.check_forms import Check
from mcptest.suite.exchange_targets import Exchange

_SHORTEST_POLL = 0.01
_LONGEST_POLL = 0.5
_POLLING = 5.0
"""How many times our patience a task may take until it has ended."""


def take(course: Course, step: Step) -> None:
    """Take one step. Raises Unobserved when it can't be taken, and is not optional."""
    if step.options.needs and not course.is_declared(step.options.needs):
        return
    if step.options.beyond and not _is_beyond(course, step):
        return
    try:
        _ACTIONS[step.action](course, step)
    except Unobserved:
        if not step.options.optional:
            raise


def _is_beyond(course: Course, step: Step) -> bool:
    offered = str((step.send.params or {}).get("protocolVersion"))
    return is_beyond_counter_offer(offered, course.seen)


# -- messages


def _request(course: Course, step: Step) -> None:
    check = _prepared(course, step)
    conversation = course.conversation_for(step)
    course.start(step, check, conversation)
    if not step.options.together:
        asked = course.collect(step.name)
        if step.options.complete:
            complete_input(course, step.name, check, conversation, asked)
        if asked.exchange.http is not None:
            _await_end_of_stream(course, step.name, conversation)
        _require_what_follows(step, asked)


def _prepared(course: Course, step: Step) -> Check:
    """The check of a step, with what earlier steps found out."""
    options = step.options
    if options.integer_header:
        with_integer_header(course)
    if options.of and "{page_cursor}" in (step.send.params or {}).values():
        course.learned["page_cursor"] = _next_page(course, options.of)
    check = course.filled(step.send)
    if check.method.startswith("tasks/"):
        check = _about_task(course, options.of, check)
    return with_other_arguments(course, check) if options.other_arguments else check


def _next_page(course: Course, step: str) -> str:
    cursor = course.seen.result(step).get("nextCursor")
    if not isinstance(cursor, str):
        raise Unobserved(
            "the list of tools has one page only", PLACEHOLDERS["page_cursor"].unlocked_by
        )
    return cursor


def _about_task(course: Course, step: str, check: Check) -> Check:
    return msgspec.structs.replace(
        check, params={**(check.params or {}), "taskId": created(course.seen, step)["taskId"]}
    )


def _require_what_follows(step: Step, asked: Asked) -> None:
    """Nothing that comes after it would mean anything without these."""
    result = asked.exchange.result if isinstance(asked.exchange.result, dict) else {}
    if step.name == "ask" and result.get("resultType") != "input_required":
        if "{asking_tool}" in str(step.send.params):
            raise Unobserved(
                "the tool did not answer input_required", PLACEHOLDERS["asking_tool"].unlocked_by
            )
    elif step.send.params and "task" in step.send.params:
        task = result.get("task")
        if not isinstance(task, dict) or "taskId" not in task:
            raise Unobserved("the call did not become a task", "the fixture task_tool")
    elif step.options.other_arguments and result.get("resultType") != "input_required":
        raise Unobserved(
            "the tool that asks takes no other arguments",
            "the fixture asking_tool, with an argument of any value",
        )


def _await_end_of_stream(course: Course, name: str, conversation: Conversation) -> None:
    """Whether an event stream ends after its answer is part of what was asked."""
    taken = course.taken[name]
    if course.probe.name == "streamed_answer" and is_streamed(taken):
        stream = stream_of(taken)
        course.await_silence(conversation, lambda: stream in conversation.tape.ended)


def _notification(course: Course, step: Step) -> None:
    conversation = course.conversation_for(step)
    place = len(conversation.tape.records)
    asked = conversation.notify(course.filled(step.send))
    course.note(step.name, asked, conversation, place)


def _raw(course: Course, step: Step) -> None:
    """What comes of it shows behind the answer to the next request, so it is collected later."""
    conversation = course.conversation_for(step)
    check = course.filled(step.send)
    if course.is_stateless and check.raw.startswith("["):
        check = _with_meta_in_array(check, conversation)
    course.start(step, check, conversation)


def _with_meta_in_array(check: Check, conversation: Conversation) -> Check:
    """Nothing but the array may be wrong with what is sent."""
    items = msgspec.json.decode(check.raw)
    for item in items:
        item["params"] = conversation.lifecycle.prepare(item.get("params"))
    return msgspec.structs.replace(check, raw=msgspec.json.encode(items).decode())


def _http(course: Course, step: Step) -> None:
    conversation = course.conversation_for(step)
    place = len(conversation.tape.records)
    asked = course.note(step.name, conversation.ask(course.filled(step.send)), conversation, place)
    status = (asked.exchange.http or {}).get("status")
    if not isinstance(status, int) or status >= 300:
        raise Unobserved(
            f"the request was answered with HTTP {status}",
            "a server that lets clients end sessions",
        )


def _begin(course: Course, step: Step) -> None:
    conversation = course.open()
    if session_id(conversation.tape.records) is None:
        raise Unobserved("the server gave out no session id", "a server with sessions")
    course.taken[step.name] = Taken(records=conversation.tape.records)


# -- requests under way


def _start(course: Course, step: Step) -> None:
    course.start(step, _prepared(course, step), course.conversation_for(step))


def _cancel(course: Course, step: Step) -> None:
    name = list(course.under_way)[-1]
    under_way = course.under_way[name]
    place = len(under_way.conversation.tape.records)
    _take_back(course, under_way)
    course.taken[step.name] = Taken(records=under_way.conversation.tape.records, begins=place)


def _take_back(course: Course, under_way: UnderWay) -> None:
    under_way.given_up = True
    under_way.conversation.give_up(under_way.started)


def _collect(course: Course, step: Step) -> None:
    if step.options.of in course.under_way:
        course.collect(step.options.of)
    course.taken[step.name] = course.taken[step.options.of]


def _poll(course: Course, step: Step) -> None:
    """Ask until the task has ended, as often as the server wants to be asked."""
    conversation = course.conversation_for(step)
    check = _about_task(course, step.options.of, course.filled(step.send))
    deadline = Deadline.after(min(course.site.order.timeout, _POLLING * course.site.order.patience))
    place = len(conversation.tape.records)
    pause = _SHORTEST_POLL
    while True:
        asked = course.note(step.name, conversation.ask(check), conversation, place)
        result = asked.exchange.result
        if not isinstance(result, dict) or has_ended(result.get("status")) or deadline.expired:
            return
        pause = min(2 * pause, _longest_pause(result.get("pollInterval")))
        conversation.pump(deadline.within(pause).remaining(), lambda: False)


def _longest_pause(interval: Any) -> float:
    if isinstance(interval, int | float) and not isinstance(interval, bool) and interval >= 0:
        return min(interval / 1000, _LONGEST_POLL)
    return _LONGEST_POLL


# -- ends


def _close_stdin(course: Course, step: Step) -> None:
    conversation = course.conversation_for(step)
    place = len(conversation.tape.records)
    began = time.monotonic()
    # Half of the time goes to waiting for the process to leave by itself. On a busy machine a
    # large one takes its time, and whoever leaves sooner is not waited for any longer.
    conversation.client.close(Deadline.after(5 * course.site.order.patience))
    course.taken[step.name] = Taken(
        records=conversation.tape.records, begins=place, seconds=time.monotonic() - began
    )


def settle(course: Course) -> None:
    """Collect whatever is still under way, once every step was taken."""
    release(course)
    for name in list(course.under_way):
        under_way = course.under_way[name]
        if under_way.given_up or _says_nothing_to_answer(under_way):
            del course.under_way[name]
            _note_without_waiting(course, under_way)
        else:
            _await_whole_batch(course, under_way)
            course.collect(name)
    for step in course.probe.steps:
        if step.action == "notification" and step.name in course.taken:
            _note_what_came_unasked(course, step.name)


def _await_whole_batch(course: Course, under_way: UnderWay) -> None:
    """Every id of an array is waited for, or an error for the array as a whole."""
    started = under_way.started
    if not started.wants_all:
        return
    named = tuple(one for one in started.waiting if one.id not in (None, ABSENT))

    def is_over() -> bool:
        return all(one.done for one in named) or sum(one.done for one in started.waiting) > len(
            [one for one in named if one.done]
        )

    if course.await_silence(under_way.conversation, is_over):
        started.wants_all = False


def _says_nothing_to_answer(under_way: UnderWay) -> bool:
    """Bytes that are no message: over a pipe, only an error without an id could come of them."""
    started = under_way.started
    if not started.check.raw or started.stream is not None:
        return False
    return all(pending.id in (None, ABSENT) for pending in started.waiting)


def _note_without_waiting(course: Course, under_way: UnderWay) -> None:
    conversation, started = under_way.conversation, under_way.started
    for pending in started.waiting:
        conversation.client.connection.forget(pending)
    answer = next((one.answer for one in started.waiting if one.answer is not None), None)
    exchange = Exchange(transport=conversation.observation(answered=answer is not None))
    if answer is not None:
        exchange = msgspec.structs.replace(exchange, result=answer.result, error=answer.error)
    received = b"" if answer is None else answer.raw
    asked = Asked(exchange, started.body, received, started.identifier)
    course.note(under_way.step.name, asked, conversation, started.place)


def _note_what_came_unasked(course: Course, name: str) -> None:
    taken = course.taken[name]
    answer = unasked_answer(taken)
    result = answer.result if answer is not None else ABSENT
    error = answer.error if answer is not None else ABSENT
    exchange = msgspec.structs.replace(taken.exchange, result=result, error=error)
    course.taken[name] = msgspec.structs.replace(taken, exchange=exchange)


_ACTIONS: Final[Mapping[Action, Callable[[Course, Step], None]]] = {
    "request": _request,
    "notification": _notification,
    "raw": _raw,
    "http": _http,
    "begin": _begin,
    "retry": retry_with_input,
    "start": _start,
    "cancel": _cancel,
    "collect": _collect,
    "poll": _poll,
    "listen": listen,
    "await_change": await_change,
    "walk_lists": walk_lists,
    "fetch_metadata": fetch_metadata,
    "close_stdin": _close_stdin,
}
