"""Giving input that a server of the stateless era asks for: as it should be, and otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from mcptest.rules.corpus.placeholders import PLACEHOLDERS
from mcptest.rules.corpus.probe_steps import Options, Step
from mcptest.run.compliance.conversation import Asked, Conversation
from mcptest.run.compliance.declared import answers_for
from mcptest.run.compliance.probe_course import Course
from mcptest.run.compliance.probe_seen import Unobserved
from mcptest.suite.check_forms import Check

_ROUNDS = 5
_OTHER_ARGUMENT = {"mcptest_other": "other"}
_NOBODY_ASKED = {"mcptest_nobody_asked": {"action": "cancel"}}
_MALFORMED = "no object"


def with_other_arguments(course: Course, check: Check) -> Check:
    """The same call with arguments that its tool takes just as well."""
    params = dict(check.params or {})
    given = params.get("arguments")
    other = _other_argument(course, str(params.get("name")))
    params["arguments"] = {**(given if isinstance(given, Mapping) else {}), **other}
    return msgspec.structs.replace(check, params=params)


def _other_argument(course: Course, tool: str) -> Mapping[str, Any]:
    """A text for one of the tool's own arguments, or else one that its schema knows nothing of."""
    listed = course.taken["lists"].lists.get("tools/list", ()) if "lists" in course.taken else ()
    for one in listed:
        schema = one.get("inputSchema") if isinstance(one, dict) and one.get("name") == tool else {}
        properties = schema.get("properties") if isinstance(schema, dict) else None
        for name, each in (properties or {}).items() if isinstance(properties, dict) else ():
            if isinstance(each, dict) and each.get("type") == "string" and "enum" not in each:
                return {name: "mcptest"}
    return _OTHER_ARGUMENT


def retry_with_input(course: Course, step: Step) -> None:
    """Repeat the request of an earlier step, with the answers that the step wants to be given."""
    options = step.options
    asked = course.seen.result(options.of)
    check = course.filled(_step_named(course, options.of).send)
    if options.other_arguments:
        check = with_other_arguments(course, check)
    check = _with(check, _input(options, asked, check.declare))
    conversation = course.conversation_for(step)
    place = len(conversation.tape.records)
    course.note(step.name, conversation.ask(check), conversation, place)


def complete_input(
    course: Course, name: str, check: Check, conversation: Conversation, asked: Asked
) -> None:
    """Give what is asked for, until there is a final answer or it goes on for too long."""
    place = course.taken[name].begins
    questions = list(asked.exchange.asked)
    for _ in range(_ROUNDS):
        result = asked.exchange.result
        if not isinstance(result, dict) or result.get("resultType") != "input_required":
            break
        more = _input(Options(), result, check.declare)
        asked = conversation.ask(_with(check, more))
        questions += asked.exchange.asked
        exchange = msgspec.structs.replace(asked.exchange, asked=tuple(questions))
        course.note(name, msgspec.structs.replace(asked, exchange=exchange), conversation, place)


def _step_named(course: Course, name: str) -> Step:
    return next(step for step in course.probe.steps if step.name == name)


def _with(check: Check, more: Mapping[str, Any]) -> Check:
    return msgspec.structs.replace(check, params={**(check.params or {}), **more})


def _input(
    options: Options, asked: Mapping[str, Any], declare: tuple[str, ...]
) -> Mapping[str, Any]:
    """What a retry adds to the params."""
    more: dict[str, Any] = {"inputResponses": _responses(options, asked, declare)}
    if "requestState" in asked:
        more["requestState"] = asked["requestState"]
    if options.tampered or options.other_arguments:
        more["requestState"] = _state_to_abuse(asked, options)
    return more


def _responses(options: Options, asked: Mapping[str, Any], declare: tuple[str, ...]) -> Any:
    if options.answers == "malformed":
        return _MALFORMED
    if options.answers == "none":
        return {}
    requests = asked.get("inputRequests")
    given = {
        key: _answer(one, declare)
        for key, one in (requests.items() if isinstance(requests, dict) else ())
    }
    return {**given, **_NOBODY_ASKED} if options.answers == "with_extra" else given


def _answer(request: Any, declare: tuple[str, ...]) -> Any:
    method = request.get("method") if isinstance(request, dict) else None
    params = request.get("params") if isinstance(request, dict) else None
    outcome = answers_for(declare).answer(str(method), params if isinstance(params, dict) else {})
    # What we can't answer a user would have closed.
    return outcome.get("result", {"action": "cancel"})


def _state_to_abuse(asked: Mapping[str, Any], options: Options) -> str:
    state = asked.get("requestState")
    if not isinstance(state, str) or not state:
        raise Unobserved(
            "the tool that asks gives no requestState", PLACEHOLDERS["asking_tool"].unlocked_by
        )
    return _tampered(state) if options.tampered else state


def _tampered(state: str) -> str:
    """One character is another, in the middle: the ends may be padding that nobody looks at."""
    place = len(state) // 2
    other = "A" if state[place] != "A" else "B"
    return f"{state[:place]}{other}{state[place + 1 :]}"
