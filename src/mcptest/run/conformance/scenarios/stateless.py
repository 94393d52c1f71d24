"""The scenario about the whole stateless era: its requests, and its subscriptions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mcptest.clients.scenario import Row
from mcptest.model.capture import Frame
from mcptest.model.message import Kind, Message, id_key
from mcptest.model.show import show
from mcptest.run.conformance.scenarios.judges import can_not_tell, found, not_for_it, sep
from mcptest.run.conformance.scenarios.scenario import (
    DRAFT,
    STATELESS,
    Judge,
    ServerCheck,
    ServerScenario,
)
from mcptest.run.conformance.scenarios.scene import Heard, Scene
from mcptest.run.conformance.scenarios.stage import ACKNOWLEDGED, SUBSCRIPTION, Stage
from mcptest.run.conformance.scenarios.stateless_requests import (
    BARE,
    REQUEST_CHECKS,
    ask_requests,
)
from mcptest.wire.envelope import decode

_NOT_FOUND = -32601
_LISTEN = "subscriptions/listen"
_KINDS = ("tools", "prompts")
_TRIGGERS = {"tools": "test_trigger_tool_change", "prompts": "test_trigger_prompt_change"}
_SUBSCRIBED = ("tools.listChanged", "prompts.listChanged", "resources.listChanged")


# -- asking


def _ask(stage: Stage) -> None:
    ask_requests(stage)
    _listen(stage)


def _listen(stage: Stage) -> None:
    """Two subscriptions side by side: a change of one list must show on one of them alone."""
    labels = [f"listen {kind}" for kind in _KINDS]
    for kind, label in zip(_KINDS, labels, strict=True):
        wanted = {"notifications": {f"{kind}ListChanged": True}}
        stage.start(label, _LISTEN, wanted, meta=BARE)
    stage.await_settled(labels)
    for kind in _KINDS:
        since = len(stage.main.notifications)
        call = stage.call_params(_TRIGGERS[kind], {})
        heard = stage.ask(f"change {kind}", "tools/call", call, meta=BARE)
        if heard.did_its_work and stage.offered.declares(f"{kind}.listChanged"):
            stage.await_notices(_changed(kind), 1, since)
    # What still comes of a change comes before the answer to this.
    stage.ask("afterwards", "server/discover", meta=BARE)
    for label in labels:
        stage.give_up(label)


def _changed(kind: str) -> str:
    return f"notifications/{kind}/list_changed"


# -- judging


def _told(scene: Scene, label: str) -> list[Message]:
    """What came on a subscription. Over HTTP it has a stream, on stdio its id tells."""
    heard = scene[label]
    frames = (one for one in scene.on_stream(label) if isinstance(one, Frame))
    messages = [decode(frame.raw) for frame in frames]
    if heard.stream is not None:
        return messages
    return [one for one in messages if _belongs(one, heard)]


def _belongs(message: Message, heard: Heard) -> bool:
    own = id_key(heard.identifier)
    if message.kind is not Kind.NOTIFICATION:
        return bool(id_key(message.id) == own)
    tag = _tag(message)
    about = message.method == ACKNOWLEDGED or str(message.method).endswith("/list_changed")
    return bool(id_key(tag) == own or (about and tag is None))


def _tag(message: Message) -> Any:
    meta = message.params.get("_meta")
    return meta.get(SUBSCRIPTION) if isinstance(meta, dict) else None


def _without_subscriptions(scene: Scene, label: str) -> Row | None:
    heard = scene[label]
    if heard.code != _NOT_FOUND:
        return None
    declared = [one for one in (*_SUBSCRIBED, "resources.subscribe") if scene.offered.declares(one)]
    if not declared:
        return not_for_it("the server declares nothing that could be subscribed to")
    return found([f"{', '.join(declared)} is declared, and {_LISTEN} is unknown"], heard)


def _acknowledged(scene: Scene) -> Iterator[Row]:
    label = "listen tools"
    nothing = _without_subscriptions(scene, label)
    if nothing is not None:
        yield nothing
        return
    messages = _told(scene, label)
    if not messages:
        yield found([f"nothing came on {_LISTEN}"], scene[label])
    else:
        first = messages[0].method
        fault = f"the first message is {show(str(first), 80)}, not {ACKNOWLEDGED}"
        yield found([] if first == ACKNOWLEDGED else [fault], scene[label])


def _tagged(scene: Scene) -> Iterator[Row]:
    nothing = _without_subscriptions(scene, "listen tools")
    if nothing is not None:
        yield nothing
        return
    seen, problems = 0, []
    for kind in _KINDS:
        heard = scene[f"listen {kind}"]
        for one in _told(scene, f"listen {kind}"):
            if one.kind is Kind.NOTIFICATION:
                seen += 1
                if id_key(_tag(one)) != id_key(heard.identifier):
                    tag = show(repr(_tag(one)), 40)
                    problems.append(f"{one.method} has the subscriptionId {tag}")
    if not seen:
        problems.append("no notification came that could have a subscriptionId")
    yield found(problems, scene["listen tools"])


def _filtered(scene: Scene) -> Iterator[Row]:
    nothing = _without_subscriptions(scene, "listen prompts")
    if nothing is not None:
        yield nothing
        return
    leaks = [
        f"{_changed(other)} came to who asked for {kind} only"
        for kind, other in (_KINDS, _KINDS[::-1])
        if _is_told_of(scene, f"listen {kind}", _changed(other))
    ]
    if leaks:
        yield found(leaks, scene["listen prompts"])
    elif not any(_told(scene, f"listen {kind}") for kind in _KINDS):
        yield found([f"nothing came on {_LISTEN}"], scene["listen prompts"])
    elif scene["change tools"].did_its_work:
        yield found([], scene["listen prompts"])
    elif not scene.offered.declares("tools.listChanged"):
        yield not_for_it("the server declares no tools.listChanged, so there is nothing to leak")
    else:
        yield can_not_tell(f"offer the fixture {_TRIGGERS['tools']}, or map it to a tool of yours")


def _is_told_of(scene: Scene, label: str, method: str) -> bool:
    """What names no subscription could be for anybody; that it does not is another check's."""
    own = scene[label].stream is not None
    return any(
        one.method == method and (own or _tag(one) is not None) for one in _told(scene, label)
    )


def _announced(kind: str) -> Judge:
    def judge(scene: Scene) -> Iterator[Row]:
        if not scene.offered.declares(f"{kind}.listChanged"):
            yield not_for_it(f"the server does not declare {kind}.listChanged")
            return
        trigger, label = scene[f"change {kind}"], f"listen {kind}"
        if not trigger.did_its_work:
            wanted = f"offer the fixture {_TRIGGERS[kind]}, or map it to a tool of yours"
            yield can_not_tell(wanted, trigger)
            return
        came = any(one.method == _changed(kind) for one in _told(scene, label))
        fault = f"the list changed, and no {_changed(kind)} came on the subscription"
        yield found([] if came else [fault], scene[label], mild=True)

    return judge


def _check(identifier: str, name: str, what: str, judge: Judge) -> ServerCheck:
    return ServerCheck(
        id=f"sep-2575-{identifier}", name=name, description=what, judge=judge, references=sep(2575)
    )


_SUBSCRIPTION_CHECKS = (
    _check(
        "server-sends-subscription-ack",
        "ServerSendsSubscriptionAck",
        "the first message of a subscription acknowledges it",
        _acknowledged,
    ),
    _check(
        "server-tags-subscription-id",
        "ServerTagsSubscriptionId",
        "every notification of a subscription has its id",
        _tagged,
    ),
    _check(
        "server-honors-notification-filter",
        "ServerHonorsNotificationFilter",
        "nothing comes that was not asked for",
        _filtered,
    ),
    _check(
        "server-sends-prompts-list-changed-on-subscription",
        "ServerSendsPromptsListChangedOnSubscription",
        "a change of the prompts should be told to who subscribed to it",
        _announced("prompts"),
    ),
    _check(
        "server-sends-tools-list-changed-on-subscription",
        "ServerSendsToolsListChangedOnSubscription",
        "a change of the tools should be told to who subscribed to it",
        _announced("tools"),
    ),
)

SCENARIOS = (
    ServerScenario(
        name="server-stateless",
        title="Every request stands on its own",
        description="Requests without a member of `_meta`, of an unknown version, under another "
        "version in the header, or of a method that is unknown or was removed are refused, each "
        "with its own error and HTTP status. `server/discover` says what is there. The fixture "
        "`test_missing_capability` needs sampling, which is not declared; "
        "`test_streaming_elicitation` asks within its result, and `test_logging_tool` stays quiet "
        "without a log level. Two subscriptions are acknowledged and hear of what they asked for: "
        "`test_trigger_tool_change` and `test_trigger_prompt_change` make something happen.",
        revisions=STATELESS,
        suites=DRAFT,
        script=_ask,
        checks=(*REQUEST_CHECKS, *_SUBSCRIPTION_CHECKS),
        isolated=True,
        disturbs=True,
    ),
)
