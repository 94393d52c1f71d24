"""A client supports an optional capability if and only if it declares it: asked, not believed.

One scenario asks only for what the client declared, so it is a legal server throughout. A second
one asks for what was *not* declared: deliberately illegal, and kept apart for that reason. In the
handshake era the server sends a request; in the stateless era a call ends with `input_required`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from mcptest.clients.rows import bad, good, missing, reference, shown, skipped, untestable
from mcptest.clients.scenario import EVERY_REVISION, Check, Judge, Row, Scenario
from mcptest.clients.scenarios.answers import tool
from mcptest.clients.seen import Said, Seen, declared_on, declares_forms
from mcptest.model.message import Kind
from mcptest.model.revision import Era, Revision
from mcptest.peer.scripted.conforming import Conforming
from mcptest.peer.scripted.request_checks import CAPABILITIES
from mcptest.peer.scripted.script import Call, Obj

PATIENCE = 5.0
"""How long a request of ours is waited for after the client has shown that it answers others."""
ALIVE = "alive-"


class Probe(msgspec.Struct, frozen=True):
    """One optional capability: how it is declared and asked for, and what is an answer."""

    name: str
    tool: str
    method: str
    params: Obj
    declared: Callable[[Obj], bool]
    answers: Callable[[Obj], bool]
    """It is an answer of someone who has the capability."""
    proves: Callable[[Obj], bool]
    """It can't come from anyone else: a refusal may be worded as an answer."""
    since: Revision = Revision.V2024_11_05


def _has(capability: str) -> Callable[[Obj], bool]:
    return lambda declared: capability in declared


def _has_url(declared: Obj) -> bool:
    elicitation = declared.get("elicitation")
    return isinstance(elicitation, dict) and "url" in elicitation


def _decides(result: Obj) -> bool:
    """Someone looked at it. `cancel` is what comes when nobody did."""
    return result.get("action") in {"accept", "decline"}


def _consents(result: Obj) -> bool:
    return result.get("action") == "accept"


def _dismisses(result: Obj) -> bool:
    return result.get("action") == "cancel"


def _lists_roots(result: Obj) -> bool:
    return isinstance(result.get("roots"), list)


def _samples(result: Obj) -> bool:
    return isinstance(result.get("model"), str) and "content" in result and "role" in result


_CONFIRM: Obj = {"type": "object", "properties": {"confirmed": {"type": "boolean"}}}
_MESSAGES: list[Obj] = [{"role": "user", "content": {"type": "text", "text": "Say: yes"}}]
PROBES = (
    Probe(
        "roots",
        "probe_roots",
        "roots/list",
        {},
        _has("roots"),
        _lists_roots,
        _lists_roots,
    ),
    Probe(
        "sampling",
        "probe_sampling",
        "sampling/createMessage",
        {"messages": _MESSAGES, "maxTokens": 16},
        _has("sampling"),
        _samples,
        _samples,
    ),
    Probe(
        "elicitation-form",
        "probe_elicitation_form",
        "elicitation/create",
        {"mode": "form", "message": "Go on?", "requestedSchema": _CONFIRM},
        declares_forms,
        _decides,
        _consents,
        Revision.V2025_06_18,
    ),
    Probe(
        "elicitation-url",
        "probe_elicitation_url",
        "elicitation/create",
        {
            "mode": "url",
            "message": "Please look at this page",
            "url": "https://example.com/confirm",
            "elicitationId": "mcptest-1",
        },
        _has_url,
        _decides,
        _consents,
        Revision.V2025_11_25,
    ),
)
BY_TOOL = {probe.tool: probe for probe in PROBES}


def probes_of(revision: Revision) -> list[Probe]:
    return [probe for probe in PROBES if probe.since <= revision]


# -- the scripts -----------------------------------------------------------------------------------


class Probing(Conforming):
    """Asks for what was declared; with `illegally`, for what was not."""

    illegally = False
    checks_requests = False

    def __init__(self) -> None:
        super().__init__()
        self._waiting: dict[str, Call] = {}
        self._asked = 0

    def list_tools(self, call: Call) -> None:
        tools = [
            tool(probe.tool, f"Asks the client for {probe.name}")
            for probe in probes_of(self.stage.revision)
        ]
        call.result({"tools": tools})

    def call_tool(self, call: Call, name: str, arguments: Obj) -> None:
        probe = BY_TOOL.get(name)
        if probe is None:
            super().call_tool(call, name, arguments)
        elif "inputResponses" in call.params:
            self.text(call, "thank you")
        elif (
            not self.stage.asks_for_capabilities
            or probe.declared(self.declared(call)) is self.illegally
        ):
            self.text(call, f"{probe.name} is not asked for here")
        elif self.stage.stateless:
            self._ask_back(call, probe)
        else:
            self._ask_now(call, probe)

    def _ask_back(self, call: Call, probe: Probe) -> None:
        self._note(probe)
        request = {"method": probe.method, "params": probe.params}
        result = {"resultType": "input_required", "inputRequests": {probe.name: request}}
        call.reply({"jsonrpc": "2.0", "id": call.id, "result": result})

    def _ask_now(self, call: Call, probe: Probe) -> None:
        """With a ping behind it: a client that answers that one is awake, and then has a while."""
        self._note(probe)
        self._asked += 1
        identifier = f"{probe.name}-{self._asked}"
        self._waiting[identifier] = call
        has_modes = self.stage.revision >= Revision.V2025_11_25
        params = {key: value for key, value in probe.params.items() if has_modes or key != "mode"}
        call.ask(identifier, probe.method, params)
        call.ask(ALIVE + identifier, "ping", {})

    def answered(self, message: Obj) -> None:
        identifier = message.get("id")
        if not isinstance(identifier, str):
            return
        if identifier.startswith(ALIVE):
            waiting = identifier.removeprefix(ALIVE)
            self.stage.after(PATIENCE, lambda: self._settle(waiting, "no answer came"))
        else:
            self._settle(identifier, "thank you")

    def _settle(self, identifier: str, text: str) -> None:
        call = self._waiting.pop(identifier, None)
        if call is not None:
            self.text(call, text)

    def _note(self, probe: Probe) -> None:
        if self.illegally:
            self.stage.note(f"asks for {probe.name}, which was not declared, on purpose")


class ProbingIllegally(Probing):
    illegally = True


# -- the judges ------------------------------------------------------------------------------------


class Asked(msgspec.Struct, frozen=True):
    """One time the client was asked for a capability."""

    where: Said
    declared: bool
    answer: Said | None
    result: Obj | None
    """The client's answer, where it is one at all."""


def asked_for(seen: Seen, probe: Probe) -> Iterator[Asked]:
    if seen.revision.era is Era.STATELESS:
        yield from _asked_back(seen, probe)
    else:
        yield from _asked_now(seen, probe)


def _asked_now(seen: Seen, probe: Probe) -> Iterator[Asked]:
    declared: Obj = {}
    for said in seen.said:
        if said.method == "initialize" and said.sender == "client":
            declared = declared_on(said)
        if said.sender == "server" and said.message.kind is Kind.REQUEST:
            identifier = said.value.get("id")
            if isinstance(identifier, str) and identifier.startswith(f"{probe.name}-"):
                answers = seen.answers(identifier)
                answer = answers[0] if answers else None
                result = answer.value.get("result") if answer is not None else None
                yield Asked(
                    said,
                    probe.declared(declared),
                    answer,
                    result if isinstance(result, dict) else None,
                )


def _asked_back(seen: Seen, probe: Probe) -> Iterator[Asked]:
    calls = seen.calls(probe.tool)
    for number, call in enumerate(calls):
        if "inputResponses" in call.params or not _was_asked_back(seen, call):
            continue
        again = next((one for one in calls[number + 1 :] if "inputResponses" in one.params), None)
        responses = again.params.get("inputResponses") if again is not None else None
        result = responses.get(probe.name) if isinstance(responses, dict) else None
        yield Asked(
            call,
            probe.declared(declared_on(call)),
            again,
            result if isinstance(result, dict) else None,
        )


def _was_asked_back(seen: Seen, call: Said) -> bool:
    for said in seen.said:
        if said.sender == "server" and said.value.get("id") == call.value.get("id"):
            result = said.value.get("result")
            if isinstance(result, dict) and said.place > call.place:
                return result.get("resultType") == "input_required"
    return False


def _honours(probe: Probe) -> Judge:
    """Of the legal scenario: declared means fulfilled; neither is not applicable."""

    def judge(seen: Seen) -> Iterator[Row]:
        if not seen.requests():
            return
        if probe.since > seen.revision:
            yield skipped(f"not in {seen.revision}")
            return
        malformed = _malformed(seen, probe)
        if malformed is not None:
            yield malformed
        elif not seen.declares(probe.declared):
            yield _undeclared(seen, probe)
        elif seen.mode != "probe":
            yield good(seen.requests()[0])  # only what is declared is looked at
        else:
            yield from _fulfilled(seen, probe)

    return judge


def _fulfilled(seen: Seen, probe: Probe) -> Iterator[Row]:
    asked = list(asked_for(seen, probe))
    if not asked and seen.calls(probe.tool):
        yield skipped(f"the call of {probe.tool} itself does not declare it, so it was not asked")
    elif not asked:
        yield missing(
            f"{probe.name} is declared, but {probe.tool} was not called, so it was not asked"
        )
    for one in asked:
        if one.result is not None and probe.answers(one.result):
            yield good(one.answer)
        elif one.result is not None and _dismisses(one.result):
            yield untestable("the elicitation was answered with cancel, which shows nothing")
        elif one.answer is None:
            yield bad(f"{probe.name} is declared, and a request for it got no answer", one.where)
        else:
            told = one.answer.value.get("error", one.result)
            yield bad(f"{probe.name} is declared, and refused: {shown(told)}", one.answer)


def _undeclared(seen: Seen, probe: Probe) -> Row:
    if seen.mode == "strict":
        return bad(f"{probe.name} is not declared (strict)", seen.requests()[0])
    if seen.mode == "probe" and probe.name in seen.claims:
        return bad(f"the client is said to support {probe.name}, and does not declare it")
    return skipped(f"{probe.name} is optional, and not declared")


def _malformed(seen: Seen, probe: Probe) -> Row | None:
    member = probe.name.partition("-")[0]
    for said in seen.requests():
        value: Any = declared_on(said).get(member, {})
        if not isinstance(value, dict):
            return bad(f"{member} is {shown(value)}, not an object", said)
    return None


def _on_every_request(seen: Seen) -> Iterator[Row]:
    if seen.revision.era is not Era.STATELESS:
        yield skipped("said once, in initialize")
        return
    for said in seen.requests():
        declared = said.meta.get(CAPABILITIES)
        if not isinstance(declared, dict):
            yield bad(f"{said.method} does not say what the client can do, not even {{}}", said)
            return
    for said in seen.requests()[:1]:
        yield good(said)


def _keeps_quiet(probe: Probe) -> Judge:
    """Of the illegal scenario: what is not declared is not fulfilled either."""

    def judge(seen: Seen) -> Iterator[Row]:
        if not seen.requests():
            return
        if probe.since > seen.revision:
            yield skipped(f"not in {seen.revision}")
            return
        if seen.mode != "probe":
            yield skipped("only --capabilities probe asks for what is not declared")
            return
        if seen.declares(probe.declared):
            yield skipped(f"{probe.name} is declared; the other scenario asks for it")
            return
        asked = list(asked_for(seen, probe))
        if not asked and any(True for other in PROBES for _ in asked_for(seen, other)):
            yield skipped("the client gave up when it was asked for something else")
        elif not asked:
            yield missing(f"the client did not call {probe.tool}, so it could not be asked")
        for one in asked:
            if one.result is not None and probe.proves(one.result):
                yield bad(f"{probe.name} was fulfilled without being declared", one.answer)
            else:
                yield good(one.where)

    return judge


_PAGE = reference("capabilities", "2025-11-25/basic/lifecycle#capability-negotiation")
_TOOL_CALLS = {"toolCalls": [{"name": probe.tool, "arguments": {}} for probe in PROBES]}

DECLARED = Scenario(
    name="client-capabilities",
    title="What is declared is there",
    description="One tool for each of roots, sampling and elicitation (form and url). A call of it"
    " makes the server ask for that capability, if the client declares it. The client is expected"
    " to make the calls of `toolCalls` in its context that exist, and to answer what it declares.",
    revisions=EVERY_REVISION,
    suites=frozenset({"core", "ours", "capabilities"}),
    make=Probing,
    context=_TOOL_CALLS,
    checks=(
        *(
            Check(
                id=f"capability-{probe.name}",
                title=f"Capability_{probe.name}",
                description=f"{probe.name}: declared means fulfilled when it is asked for",
                judge=_honours(probe),
                references=_PAGE,
            )
            for probe in PROBES
        ),
        Check(
            id="capabilities-on-every-request",
            title="CapabilitiesOnEveryRequest",
            description="in the stateless era every request says what the client can do for it",
            judge=_on_every_request,
            references=_PAGE,
        ),
    ),
)

UNDECLARED = Scenario(
    name="client-capabilities-undeclared",
    title="What is not declared is not there",
    description="The same tools, but the server asks for what the client does *not* declare, which"
    " no server may do. The client is expected to refuse or to give up; one that answers supports"
    " what it does not declare.",
    revisions=EVERY_REVISION,
    suites=frozenset({"core", "ours", "capabilities"}),
    make=ProbingIllegally,
    context=_TOOL_CALLS,
    client_may_fail=True,
    checks=tuple(
        Check(
            id=f"undeclared-{probe.name}",
            title=f"Undeclared_{probe.name}",
            description=f"{probe.name}: not declared means not fulfilled",
            judge=_keeps_quiet(probe),
            references=_PAGE,
        )
        for probe in PROBES
    ),
)

SCENARIOS = (DECLARED, UNDECLARED)
