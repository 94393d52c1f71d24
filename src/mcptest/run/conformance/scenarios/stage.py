"""Where a script acts: it asks under labels, and everything that comes is kept for the checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mcptest.explore.plausible import plausible_arguments
from mcptest.model.capture import Note
from mcptest.model.message import id_key
from mcptest.model.revision import Era, Revision
from mcptest.model.show import show
from mcptest.peer.stateless import PREFIX
from mcptest.run.compliance.asked import Asked, Started, trouble_of
from mcptest.run.compliance.conversation import Conversation
from mcptest.run.compliance.site import Site
from mcptest.run.conformance.scenarios.scene import Heard, Offered, Scene
from mcptest.suite.check_forms import Check, HttpRequest

CAPABILITIES = PREFIX + "clientCapabilities"
SUBSCRIPTION = PREFIX + "subscriptionId"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"


class _UnderWay:
    """A request that is not collected yet."""

    def __init__(self, conversation: Conversation, started: Started, place: int) -> None:
        self.conversation = conversation
        self.started = started
        self.place = place


class Stage:
    """One scenario in progress. Nothing that the server does raises here."""

    def __init__(
        self,
        site: Site,
        conversation: Conversation,
        *,
        scenario: str,
        offered: Offered,
        names: Mapping[str, str],
        whole: bool = False,
    ) -> None:
        """`whole`: the connection was opened for this scenario, and its beginning counts."""
        self.site = site
        self.revision: Revision = site.revision
        self.transport = site.transport
        self.offered = offered
        self.scenario = scenario
        self.facts: dict[str, Any] = {}
        self._names = names
        self._main = conversation
        self._used: list[tuple[Conversation, int]] = []
        self._heard: dict[str, Heard] = {}
        self._under_way: dict[str, _UnderWay] = {}
        self._used.append((conversation, 0 if whole else len(conversation.tape.records)))

    @property
    def is_stateless(self) -> bool:
        return self.revision.era is Era.STATELESS

    @property
    def patience(self) -> float:
        """How long something is waited for that may well not come."""
        return self.site.order.patience

    @property
    def main(self) -> Conversation:
        return self._main

    def fixture(self, name: str) -> str:
        """What the user calls it."""
        return self._names.get(name, name)

    def __contains__(self, label: str) -> bool:
        return label in self._heard

    def heard(self, label: str) -> Heard:
        return self._heard[label]

    # -- asking ----------------------------------------------------------------------------

    def ask(
        self,
        label: str,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        on: Conversation | None = None,
        meta: Mapping[str, Any] | None = None,
        headers: Mapping[str, Any] | None = None,
        omit: tuple[str, ...] = (),
    ) -> Heard:
        """Ask and wait. `meta` and `headers` change what is usually sent; None leaves one out."""
        self.start(label, method, params, on=on, meta=meta, headers=headers, omit=omit)
        return self.collect(label)

    def start(
        self,
        label: str,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        on: Conversation | None = None,
        meta: Mapping[str, Any] | None = None,
        headers: Mapping[str, Any] | None = None,
        omit: tuple[str, ...] = (),
    ) -> None:
        """Ask and go on at once; `collect` waits for the answer."""
        check = Check(
            method=method, params=params, meta=meta or {}, headers=headers or {}, omit=omit
        )
        self._begin(label, check, on or self._main)

    def call(self, label: str, tool: str, arguments: Mapping[str, Any] | None = None) -> Heard:
        """Call a fixture by its official name; without arguments, none are sent."""
        return self.ask(label, "tools/call", self.call_params(tool, arguments))

    def call_params(self, tool: str, arguments: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """What calls a fixture. A tool of the user's own that stands for it gets what its schema
        requires as well, and nothing that the schema forbids.
        """
        name = self.fixture(tool)
        schema = self.offered.input_schema(name)
        if tool in self._names and schema:
            given = dict(arguments or {})
            if schema.get("additionalProperties") is False:
                known = schema.get("properties")
                known = known if isinstance(known, Mapping) else {}
                given = {key: value for key, value in given.items() if key in known}
            arguments = {**plausible_arguments(schema), **given} or arguments
        return {"name": name} if arguments is None else {"name": name, "arguments": arguments}

    def prompt_params(
        self, prompt: str, arguments: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """What gets a prompt. One of the user's own takes the values under its own names, in
        order, and each argument beyond these that it requires.
        """
        name = self.fixture(prompt)
        declared = self.offered.prompt_arguments(name)
        if prompt in self._names and declared:
            values = list((arguments or {}).values())
            given = dict(zip(declared, values, strict=False))
            more = {key: key for key in declared if declared[key] and key not in given}
            arguments = {**given, **more} or arguments
        return {"name": name} if arguments is None else {"name": name, "arguments": arguments}

    def http(
        self,
        label: str,
        method: str,
        headers: Mapping[str, Any],
        body: str = "",
        *,
        on: Conversation | None = None,
    ) -> Heard:
        """A bare HTTP request; of a stream only that it was opened is waited for."""
        self._begin(label, Check(http=HttpRequest(method, headers, body)), on or self._main)
        return self.collect(label)

    def collect(self, label: str) -> Heard:
        under_way = self._under_way.pop(label)
        check = under_way.started.check
        asked = under_way.conversation.finish(under_way.started)
        method = check.method or (check.http.method if check.http else "")
        return self._keep(label, method, asked, under_way.conversation, under_way.place)

    def _begin(self, label: str, check: Check, conversation: Conversation) -> None:
        place = self._mark(conversation, label)
        started = conversation.start(check)
        self._under_way[label] = _UnderWay(conversation, started, place)

    # -- waiting ---------------------------------------------------------------------------

    def await_notices(self, method: str, count: int, since: int = 0, seconds: float = 0.0) -> bool:
        """Wait until so many notifications of a method came, for as long as they may take."""
        conversation = self._main

        def came() -> bool:
            seen = conversation.notifications[since:]
            return sum(bool(_method(one) == method) for one in seen) >= count

        return conversation.pump(seconds or self.patience, came)

    def await_settled(self, labels: Sequence[str]) -> bool:
        """Wait until each of these subscriptions is acknowledged, or answered otherwise."""
        waiting = [self._under_way[label] for label in labels]
        return self._main.pump(self.patience, lambda: all(map(_is_settled, waiting)))

    def give_up(self, label: str) -> None:
        """Take a request back, and keep what came of it so far."""
        under_way = self._under_way[label]
        under_way.conversation.give_up(under_way.started)
        self.collect(label)

    # -- keeping ---------------------------------------------------------------------------

    def _place_of(self, conversation: Conversation) -> int:
        for number, (known, _) in enumerate(self._used):
            if known is conversation:
                return number
        self._used.append((conversation, len(conversation.tape.records)))
        return len(self._used) - 1

    def _mark(self, conversation: Conversation, label: str) -> int:
        """So that a capture which was kept says what was being done."""
        self._place_of(conversation)
        records = conversation.tape.records
        conversation.tape(
            Note(t=records[-1].t if records else 0.0, text=f"{self.scenario}: {label}")
        )
        return len(records)

    def _keep(
        self, label: str, method: str, asked: Asked, conversation: Conversation, place: int
    ) -> Heard:
        heard = Heard(
            label=label,
            method=method,
            exchange=asked.exchange,
            received=asked.received,
            identifier=asked.identifier,
            tape=self._place_of(conversation),
            begins=place,
            stream=asked.stream,
            lost=why_lost(conversation),
            trouble=asked.unusable or trouble_of(conversation.tape.records[place:], asked.stream),
        )
        self._heard[label] = heard
        return heard

    def scene(self) -> Scene:
        """All of it, up to now."""
        return Scene(
            revision=self.revision,
            transport=self.transport,
            offered=self.offered,
            heard=self._heard,
            tapes=[one.tape.records for one, _ in self._used],
            names=self._names,
            facts=self.facts,
        )

    @property
    def spans(self) -> list[tuple[Conversation, int]]:
        """Each connection that was used, and where in its records the scenario began."""
        return self._used


def why_lost(conversation: Conversation) -> str:
    if conversation.gone is not None:
        return show(conversation.gone.message.partition("\n")[0], 300)
    return "the server answers nothing any more" if conversation.mute else ""


def _method(notification: Any) -> Any:
    return notification.get("method") if isinstance(notification, dict) else None


def _is_settled(under_way: _UnderWay) -> bool:
    wanted = id_key(under_way.started.identifier)
    return under_way.started.done or any(
        _method(one) == ACKNOWLEDGED and id_key(_subscription(one)) == wanted
        for one in under_way.conversation.notifications
    )


def _subscription(notification: dict[str, Any]) -> Any:
    params = notification.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    return meta.get(SUBSCRIPTION) if isinstance(meta, dict) else None
