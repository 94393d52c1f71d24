"""SUBS: subscriptions/listen, the only long-lived stream of the stateless era."""

from __future__ import annotations

from typing import Any, Final

from mcptest.model.message import ABSENT, Kind, id_key
from mcptest.model.revision import STATELESS_ERA
from mcptest.model.verdict import Severity, Side
from mcptest.rules.check import Check
from mcptest.rules.declare import Watching, session_rule
from mcptest.rules.protocol import CHANGE_NOTIFICATIONS, SUBSCRIPTION_ID
from mcptest.rules.session import Step

_LISTEN = "subscriptions/listen"
_ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
_SPEC = "basic/patterns/subscriptions"
_FILTER: Final = {
    "notifications/tools/list_changed": "toolsListChanged",
    "notifications/prompts/list_changed": "promptsListChanged",
    "notifications/resources/list_changed": "resourcesListChanged",
    "notifications/resources/updated": "resourceSubscriptions",
}


def _subscription(step: Step) -> Any:
    return step.meta.get(SUBSCRIPTION_ID, ABSENT)


def _wants(listen: Step, step: Step) -> bool:
    """Did this listen request ask for the notification?"""
    asked = listen.params.get("notifications")
    wanted = asked.get(_FILTER[step.method]) if isinstance(asked, dict) else None
    if step.method == "notifications/resources/updated":
        # An update may be for a part of a subscribed resource, so the URIs are not compared.
        return isinstance(wanted, list) and bool(wanted)
    return wanted is True


@session_rule(
    "SUBS-001",
    "a subscription begins with its acknowledgement",
    category="subscriptions",
    severity=Severity.MUST,
    side=Side.SERVER,
    spec=_SPEC,
    window=STATELESS_ERA,
    listens=(Kind.NOTIFICATION,),
    methods=(_ACKNOWLEDGED, *CHANGE_NOTIFICATIONS),
    sender="server",
)
def acknowledgement_comes_first(check: Check) -> Watching:
    """The first message of a subscription is `notifications/subscriptions/acknowledged`.

    It carries the subscription's id, which is the id of the listen request in its JSON type, and
    nothing else comes on the subscription before it: until then the client does not know what it
    will be told about.
    """
    acknowledged: set[Any] = set()
    while step := (yield):
        name = _subscription(step)
        listen = check.session.in_flight["client"].find(name)
        known = listen is not None and listen.method == _LISTEN
        if step.method == _ACKNOWLEDGED:
            check.saw(step)
            acknowledged.add(id_key(name))
            if not known:
                check.violated(
                    step,
                    f"an acknowledgement for {name!r}, which is no open subscription",
                    expected=f"the id of the listen request as {SUBSCRIPTION_ID}",
                    pointer="/params/_meta",
                )
        elif known and id_key(name) not in acknowledged:
            check.violated(
                step,
                f"{step.method!r} before the subscription was acknowledged",
                expected=_ACKNOWLEDGED,
            )


@session_rule(
    "SUBS-002",
    "changes are announced only to subscriptions that asked",
    category="subscriptions",
    severity=Severity.MUST,
    side=Side.SERVER,
    spec=_SPEC,
    window=STATELESS_ERA,
    listens=(Kind.NOTIFICATION,),
    methods=tuple(CHANGE_NOTIFICATIONS),
    sender="server",
)
def changes_belong_to_a_subscription(check: Check) -> Watching:
    """`list_changed` and `resources/updated` carry the id of a subscription that asked for them.

    There is no other stream for them in the stateless era, and without the id a client with two
    subscriptions can't tell them apart. 1 and "1" are two ids.
    """
    while step := (yield):
        check.saw(step)
        name = _subscription(step)
        listen = check.session.in_flight["client"].find(name)
        if name is ABSENT:
            check.violated(
                step,
                f"{step.method!r} without {SUBSCRIPTION_ID}",
                expected="the id of the listen request in _meta",
                pointer="/params/_meta",
            )
        elif listen is None or listen.method != _LISTEN:
            check.violated(
                step,
                f"{step.method!r} for {name!r}, which is no open subscription",
                expected="the id of an open listen request, in its JSON type",
            )
        elif not _wants(listen, step):
            check.violated(
                step,
                f"{step.method!r} for a subscription that did not ask for it",
                expected=f"{_FILTER[step.method]} in the listen request",
            )


@session_rule(
    "SUBS-003",
    "progress and log messages stay off subscriptions",
    category="subscriptions",
    severity=Severity.MUST,
    side=Side.SERVER,
    spec=_SPEC,
    window=STATELESS_ERA,
    listens=(Kind.NOTIFICATION,),
    sender="server",
)
def subscriptions_carry_changes_only(check: Check) -> Watching:
    """`notifications/progress` and `notifications/message` belong to the request they are about.

    On a subscription's stream, or with its id, nobody can tell which request that is.
    """
    while step := (yield):
        posted = step.stream.posted if step.stream is not None else None
        on_listen = posted is not None and posted.method == _LISTEN
        if not on_listen and _subscription(step) is ABSENT:
            continue
        check.saw(step)
        if step.method in {"notifications/progress", "notifications/message"}:
            check.violated(
                step,
                f"{step.method!r} on a subscription",
                expected="the stream of the request it is about",
            )
