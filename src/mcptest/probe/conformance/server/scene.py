"""What one scenario saw of a server, in order, for its checks. Pure: nothing in here asks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from mcptest.core.capture import AnyRecord, Frame, Note, SseEvent
from mcptest.core.message import Kind, Message, id_key, json_type
from mcptest.core.revision import Era, Revision
from mcptest.core.safe_text import show
from mcptest.probe.compliance.conversation import Asked, Conversation, Started, trouble_of
from mcptest.probe.compliance.site import Site
from mcptest.probe.conformance.scenario import (
    CheckFinding,
    Decided,
    Judge,
    Scenario,
    bad,
    inside,
    object_in,
    verdict,
)
from mcptest.rules.protocol import SUBSCRIPTION_ID
from mcptest.schema.tool_inputs import plausible_arguments
from mcptest.session.pages import ITEM_NAMES, Offer
from mcptest.suite.observed import SeenExchange
from mcptest.suite.sent_message import SentCheck, SentHttpRequest
from mcptest.wire.envelope import decode

Obj = dict[str, Any]
ServerScript: TypeAlias = Callable[["ScenarioStage"], object]
Problems: TypeAlias = Callable[[Obj], Iterable[str]]
"""What is wrong with a result."""
FILLED_IN = "123"
"""The value of each variable of a URI template."""
_VARIABLE = re.compile(r"\{[^{}]*\}")
_SHOWN = 160
_EXCERPT = 400


class ServerOffer(Offer, frozen=True):
    """What the server declares and lists, learned once for all scenarios."""

    def has(self, kind: str, name: str) -> bool:
        """Whether it is listed: a `tool`, a `prompt` or a `resource`."""
        return name in self.names(f"{kind}s", ITEM_NAMES[f"{kind}s/list"])

    def input_schema(self, tool: str) -> Mapping[str, Any]:
        """Of a tool that is listed; empty when it has none."""
        named = (one for one in self.tools if inside(one, "name") == tool)
        return object_in(next(named, None), "inputSchema")

    def prompt_arguments(self, prompt: str) -> dict[str, bool]:
        """The arguments of a prompt that is listed, and whether each is required."""
        named = next((one for one in self.prompts if inside(one, "name") == prompt), None)
        return {
            str(about.get("name")): about.get("required") is True
            for about in listed(inside(named, "arguments"))
        }


class Heard(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that was asked, by its label, and what came of it."""

    method: str
    asked: Asked
    lost: str = ""
    """Why no answer could come any more; empty while the connection is fine."""
    trouble: str = ""
    """What came in place of the answer, or what became of its HTTP exchange."""

    @property
    def place(self) -> int:
        # A capture's first record tells of the peer; the connection's own records follow it.
        return self.asked.place + 1

    @property
    def excerpt(self) -> str:
        return show(self.asked.received, _EXCERPT) if self.asked.received else ""

    @property
    def exchange(self) -> SeenExchange:
        return self.asked.exchange

    @property
    def result(self) -> Obj:
        """The result, or an empty object when there is none that is one."""
        return object_in(self.exchange.result)

    @property
    def error(self) -> Obj:
        return object_in(self.exchange.error)

    @property
    def error_data(self) -> Obj:
        return object_in(self.error, "data")

    @property
    def code(self) -> Any:
        return self.error.get("code")

    @property
    def status(self) -> int | None:
        status = (self.exchange.http or {}).get("status")
        return status if isinstance(status, int) else None

    def status_problem(self, wanted: int) -> str:
        came = self.silence if self.status is None else f"HTTP {self.status}"
        return "" if self.status == wanted else f"{came} came, not HTTP {wanted}"

    def header(self, name: str) -> str | None:
        headers = (self.exchange.http or {}).get("headers") or {}
        value = headers.get(name)
        return value if isinstance(value, str) else None

    @property
    def answered(self) -> bool:
        return self.exchange.answer != "none"

    @property
    def without_result(self) -> str:
        """Why there is no result to look at, in words; empty when there is one."""
        if self.exchange.answer == "error":
            code, words = show(str(self.code), 20), show(str(self.error.get("message")), _SHOWN)
            return f"the server answered {self.method} with error {code}: {words}"
        if self.exchange.answer == "none":
            return self.silence
        if not isinstance(self.exchange.result, dict):
            return (
                f"the result of {self.method} is {json_type(self.exchange.result)}, not an object"
            )
        return ""

    @property
    def without_success(self) -> str:
        """Why there is no result of a tool that did its work; empty when there is one."""
        if self.without_result or self.did_its_work:
            return self.without_result
        texts = [one.get("text") for one in listed(self.result.get("content"))]
        said = show(" ".join(one for one in texts if isinstance(one, str)), _SHOWN)
        return f"the tool failed (isError: true){f': {said}' if said else ''}"

    @property
    def silence(self) -> str:
        """What came in place of an answer."""
        if self.lost:
            return f"{self.method} got no response: {self.lost}"
        if self.trouble and self.status in {None, 200}:
            return f"{self.method} got no response: {self.trouble}"
        if self.status is not None:
            body = show(str((self.exchange.http or {}).get("body", "")), _SHOWN)
            came = f"HTTP {self.status}" + (f" with {body!r}" if body else "")
            return f"the server answered {self.method} with {came} and no JSON-RPC message"
        return f"the server did not answer {self.method}"

    @property
    def did_its_work(self) -> bool:
        """A call that came to a tool, and did not fail there."""
        return bool(self.result) and self.result.get("isError") is not True

    @property
    def wants_input(self) -> bool:
        return self.result.get("resultType") == "input_required"


class Scene(msgspec.Struct, kw_only=True):
    """Everything that one scenario saw."""

    revision: Revision
    transport: str
    offered: ServerOffer
    records: Sequence[AnyRecord]
    """Of its connection, up to where the scenario has come."""
    names: Mapping[str, str] = {}
    """What the user calls a fixture, by its official name."""
    heard: dict[str, Heard] = {}

    def __getitem__(self, label: str) -> Heard:
        """What was heard under a label; where the script did not come so far, that is heard."""
        never = "the scenario ended before this check"
        nothing = Heard(method=label, asked=Asked(SeenExchange(), b"", b""), lost=never)
        return self.heard.get(label, nothing)

    def answered(self, label: str) -> Heard:
        """What was heard under a label. Decided where that is no answer."""
        heard = self[label]
        if not heard.answered:
            raise Decided(bad(heard.silence, heard))
        return heard

    def __contains__(self, label: str) -> bool:
        return label in self.heard

    @property
    def is_stateless(self) -> bool:
        return self.revision.era is Era.STATELESS

    def fixture(self, name: str) -> str:
        """What the user calls it."""
        return self.names.get(name, name)

    def records_since(self, label: str) -> Sequence[AnyRecord]:
        """What happened on the connection from when this was asked to the scenario's end."""
        return self.records[self[label].asked.place :]

    def said_since(self, label: str) -> Iterator[Message]:
        """Every message of the server from then on, whatever carried it."""
        for record in self.records_since(label):
            if isinstance(record, Frame) and record.sender == "server":
                message = decode(record.raw)
                yield from message.items if message.kind is Kind.BATCH else (message,)

    def notices(self, label: str, method: str) -> list[Obj]:
        """The params of the server's notifications of a method from then on."""
        return [
            one.params
            for one in self.said_since(label)
            if one.kind is Kind.NOTIFICATION and one.method == method
        ]

    def on_stream(self, label: str) -> list[Frame | SseEvent]:
        """What came on the HTTP stream of this request; on stdio, everything from then on."""
        stream = self[label].asked.stream
        return [
            one
            for one in self.records_since(label)
            if (isinstance(one, SseEvent) and one.stream == stream)
            or (
                isinstance(one, Frame)
                and one.sender == "server"
                and (stream is None or one.stream == stream)
            )
        ]


# -- Short ways to judge what was heard -----------------------------------------------------------


def result_of(label: str, *, tool_worked: bool = False) -> Callable[[Problems], Judge[Scene]]:
    """The result of what was asked under a label must be there, and have no problems. With
    `tool_worked`, the tool that was called must not have failed either."""

    def judging(problems: Problems) -> Judge[Scene]:
        def judge(scene: Scene) -> CheckFinding:
            heard = scene[label]
            why = heard.without_success if tool_worked else heard.without_result
            return verdict(why or problems(heard.result), heard)

        return judge

    return judging


success_of = result_of("asked", tool_worked=True)
"""The tool that was called must have done its work, and without problems."""


def listed(value: Any) -> list[Obj]:
    """The objects of a list; empty when it is none."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def missing_members(items: Any, what: str, *members: str) -> Iterator[str]:
    """What a list of a result lacks."""
    if not isinstance(items, list):
        yield f"{what}s is not an array"
        return
    for place, item in enumerate(items):
        if not isinstance(item, dict):
            yield f"{what} {place} is not an object"
            continue
        yield from (f"{what} {place} has no {one}" for one in members if not item.get(one))


# -- Where a script acts -------------------------------------------------------------------------

ACKNOWLEDGED = "notifications/subscriptions/acknowledged"


class ScenarioStage:
    """One scenario in progress, on one connection. Nothing that the server does raises here."""

    def __init__(
        self,
        site: Site,
        conversation: Conversation,
        offered: ServerOffer,
        scenario: Scenario[Scene],
    ) -> None:
        self.site = site
        self.main = conversation
        self.scenario = scenario
        records = conversation.tape.records
        self.begins = 0 if scenario.isolated else len(records)
        """Where in the records of the connection the scenario begins. Of one that was opened for
        it, the beginning counts."""
        self.scene = Scene(
            revision=site.revision,
            transport=site.transport,
            offered=offered,
            names=site.order.fixtures,
            records=records,
        )
        """Filled with what is heard."""
        self._under_way: dict[str, Started] = {}
        """Requests that are not collected yet."""

    @property
    def patience(self) -> float:
        """How long something is waited for that may well not come."""
        return self.site.order.patience

    def ask(
        self, label: str, method: str, params: Mapping[str, Any] | None = None, **changed: Any
    ) -> Heard:
        """Ask and wait. `changed` is what `start` takes besides."""
        self.start(label, method, params, **changed)
        return self.collect(label)

    def start(
        self,
        label: str,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        meta: Mapping[str, Any] | None = None,
        headers: Mapping[str, Any] | None = None,
        omit: tuple[str, ...] = (),
    ) -> None:
        """Ask and go on at once; `collect` waits for the answer. `meta` and `headers` change what
        is usually sent; None leaves one out."""
        changed: Obj = {"meta": meta or {}, "headers": headers or {}, "omit": omit}
        self._begin(label, SentCheck(method=method, params=params, **changed))

    def call(self, label: str, tool: str, meta: Mapping[str, Any]) -> Heard:
        """Call a fixture by its official name, with empty arguments."""
        params = self.fitted("tools/call", {"name": tool, "arguments": {}})
        return self.ask(label, "tools/call", params, meta=meta)

    def fixture_request(self) -> tuple[str, Obj]:
        """What uses the one fixture that the scenario needs: its method and params."""
        needs = self.scenario.needs
        if needs.prompts:
            return "prompts/get", self.fitted("prompts/get", {"name": needs.prompts[0]})
        whole = {"name": needs.tools[0], "arguments": {}}
        return "tools/call", self.fitted("tools/call", whole)

    def fitted(self, method: str, params: Obj) -> Obj:
        """Params that name fixtures, as the server has these; variables of a URI are filled in."""
        if "uri" in params:
            return {"uri": _VARIABLE.sub(FILLED_IN, self.scene.fixture(params["uri"]))}
        if method not in {"tools/call", "prompts/get"} or params["name"] not in self.scene.names:
            return params
        name, arguments = self.scene.fixture(params["name"]), params.get("arguments")
        fit = self._tool_arguments if method == "tools/call" else self._prompt_arguments
        arguments = fit(name, arguments or {}) or arguments
        return {"name": name} if arguments is None else {"name": name, "arguments": arguments}

    def _tool_arguments(self, name: str, given: Obj) -> Obj:
        """A tool of the user's own that stands for a fixture gets what its schema requires as well,
        and nothing that the schema forbids."""
        schema = self.scene.offered.input_schema(name)
        if schema.get("additionalProperties") is False:
            known = object_in(schema, "properties")
            given = {key: value for key, value in given.items() if key in known}
        return {**plausible_arguments(schema), **given} if schema else {}

    def _prompt_arguments(self, name: str, given: Obj) -> Obj:
        """A prompt of the user's own takes the values under its own names, in order, and each
        argument beyond these that it requires."""
        declared = self.scene.offered.prompt_arguments(name)
        named = dict(zip(declared, given.values(), strict=False))
        return {**named, **{key: key for key in declared if declared[key] and key not in named}}

    def http(self, label: str, method: str, headers: Mapping[str, Any]) -> Heard:
        """A bare HTTP request; of a stream only that it was opened is waited for."""
        self._begin(label, SentCheck(http=SentHttpRequest(method, headers, "")))
        return self.collect(label)

    def collect(self, label: str) -> Heard:
        started, main = self._under_way.pop(label), self.main
        sent, asked = started.check, main.finish(started)
        since = main.tape.records[asked.place :]
        lost = "the server stopped answering" if main.mute else ""
        if main.gone is not None:
            lost = show(main.gone.message.partition("\n")[0], 300)
        heard = self.scene.heard[label] = Heard(
            method=sent.method or (sent.http.method if sent.http else ""),
            asked=asked,
            lost=lost,
            trouble=asked.unusable or trouble_of(since, asked.stream),
        )
        return heard

    def _begin(self, label: str, check: SentCheck) -> None:
        """With a note, so that a capture which was kept says what was being done."""
        records = self.main.tape.records
        at = records[-1].t if records else 0.0
        self.main.tape(Note(t=at, text=f"{self.scenario.name}: {label}"))
        self._under_way[label] = self.main.start(check)

    def await_notices(self, method: str, count: int, since: int = 0, seconds: float = 0.0) -> bool:
        """Wait until so many notifications of a method came, for as long as they may take."""

        def came() -> bool:
            seen = self.main.notifications[since:]
            return [inside(one, "method") for one in seen].count(method) >= count

        return self.main.pump(seconds or self.patience, came)

    def await_settled(self, labels: Sequence[str]) -> bool:
        """Wait until each of these subscriptions is acknowledged, or answered otherwise."""
        waiting = [self._under_way[label] for label in labels]

        def settled() -> bool:
            acknowledged = {
                id_key(inside(one, "params", "_meta", SUBSCRIPTION_ID))
                for one in self.main.notifications
                if inside(one, "method") == ACKNOWLEDGED
            }
            return all(one.done or id_key(one.identifier) in acknowledged for one in waiting)

        return self.main.pump(self.patience, settled)

    def give_up(self, label: str) -> None:
        """Take a request back, and keep what came of it so far."""
        self.main.give_up(self._under_way[label])
        self.collect(label)
