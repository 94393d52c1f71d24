"""Subscriptions of the stateless era, and waiting for a change to be announced in either."""

from __future__ import annotations

from typing import Any

from mcptest.model.message import id_key
from mcptest.rules.corpus.probe_steps import Step
from mcptest.run.compliance.probe_course import Course, UnderWay
from mcptest.run.compliance.probe_facts_features import (
    ACKNOWLEDGED,
    KINDS_OF_CHANGE,
    SUBSCRIPTION_ID,
)
from mcptest.run.compliance.probe_seen import Taken, messages_of_server
from mcptest.suite.check_forms import Check
from mcptest.suite.exchange_targets import Exchange


def listen(course: Course, step: Step) -> None:
    """Open a subscription and wait until it is acknowledged, or can't be any more."""
    if not course.is_stateless:
        return  # there, every change is announced to everybody
    check = Check(method="subscriptions/listen", params={"notifications": _filter(course, step)})
    under_way = course.start(step, check, course.conversation_for(step))
    if step.options.together:
        return
    waiting = [one for one in course.under_way.values() if one.step.action == "listen"]
    course.await_silence(under_way.conversation, lambda: all(map(_is_settled, waiting)))


def _filter(course: Course, step: Step) -> dict[str, Any]:
    """What is asked for: one kind, all kinds, or what the server says that it has."""
    if step.options.only:
        return {step.options.only: True}
    wanted = {
        kind: True
        for kind, capability in KINDS_OF_CHANGE.items()
        if kind != "resourceSubscriptions"
        and (step.options.everything or course.is_declared(capability))
    }
    resource = course.site.known.get("first_resource")
    if resource is not None and (step.options.everything or not wanted):
        return {**wanted, "resourceSubscriptions": [resource]}
    return wanted or {"toolsListChanged": True}


def _is_settled(under_way: UnderWay) -> bool:
    wanted = id_key(under_way.started.identifier)
    return under_way.started.done or any(
        isinstance(one, dict)
        and one.get("method") == ACKNOWLEDGED
        and id_key(_subscription(one)) == wanted
        for one in under_way.conversation.notifications
    )


def _subscription(notification: dict[str, Any]) -> Any:
    params = notification.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    return meta.get(SUBSCRIPTION_ID) if isinstance(meta, dict) else None


def await_change(course: Course, step: Step) -> None:
    """Wait for the notification, as long as silence is waited for."""
    change = course.taken["change"]
    conversation = course.conversation_for(step)
    place = len(conversation.tape.records)
    course.await_silence(
        conversation,
        lambda: any(
            message.method == step.options.only for message, _ in messages_of_server(change.since)
        ),
    )
    course.taken[step.name] = Taken(
        exchange=Exchange(notifications=tuple(conversation.notifications)),
        records=conversation.tape.records,
        begins=place,
    )


def release(course: Course) -> None:
    """End the subscriptions that are open. What came of them is then known."""
    for name, under_way in list(course.under_way.items()):
        if under_way.step.action != "listen":
            continue
        under_way.conversation.give_up(under_way.started)
        course.collect(name)
