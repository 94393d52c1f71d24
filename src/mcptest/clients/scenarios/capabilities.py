"""A client supports an optional capability if and only if it declares it: asked, not believed.

One scenario asks only for what the client declared, so it is a legal server throughout. A second
one asks for what was *not* declared: deliberately illegal, and kept apart for that reason. In the
handshake era the server sends a request; in the stateless era a call ends with `input_required`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from mcptest.clients.rows import bad, good, reference, shown, skipped
from mcptest.clients.scenario import Check, Judge, Row, Scenario
from mcptest.clients.seen import Said, Seen
from mcptest.model.message import Kind
from mcptest.model.revision import Era, Revision
from mcptest.peer.scripted.conforming import Conforming
from mcptest.peer.scripted.script import META_PREFIX, Call, Obj

CAPABILITIES = META_PREFIX + "clientCapabilities"
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
    since: Revision = Revision.V2025_06_18


def _has(capability: str) -> Callable[[Obj], bool]:
    return lambda declared: capability in declared


def _has_form(declared: Obj) -> bool:
    """An empty object means the form, as it did before there was anything else."""
    elicitation = declared.get("elicitation")
    return isinstance(elicitation, dict) and ("form" in elicitation or "url" not in elicitation)


def _has_url(declared: Obj) -> bool:
    elicitation = declared.get("elicitation")
    return isinstance(elicitation, dict) and "url" in elicitation


def _decides(result: Obj) -> bool:
    return result.get("action") in {"accept", "decline", "cancel"}


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
        lambda result: isinstance(result.get("roots"), list),
    ),
    Probe(
        "sampling",
        "probe_sampling",
        "sampling/createMessage",
        {"messages": _MESSAGES, "maxTokens": 16},
        _has("sampling"),
        _samples,
    ),
    Probe(
        "elicitation-form",
        "probe_elicitation_form",
        "elicitation/create",
        {"mode": "form", "message": "Go on?", "requestedSchema": _CONFIRM},
        _has_form,
        _decides,
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
        Revision.V2025_11_25,
    ),
)
BY_TOOL = {probe.tool: probe for probe in PROBES}


def probes_of(revision: Revision) -> list[Probe]:
    return [probe for probe in PROBES if probe.since <= revision]


def declared_on(said: Said) -> Obj:
    """What one request declares: in `_meta`, or in initialize."""
    where = said.params.get("capabilities") if said.method == "initialize" else None
    declared = said.meta.get(CAPABILITIES) if where is None else where
    return declared if isinstance(declared, dict) else {}


# -- the scripts -----------------------------------------------------------------------------------


class Probing(Conforming):
    """Asks for what was declared; with `illegally`, for what was not."""

    illegally = False

    def __init__(self, revision: Revision) -> None:
        super().__init__()
        self._declared_once: Obj = {}
        self._waiting: dict[str, Call] = {}
        self._asked = 0
        self.tools = tuple(
            {
                "name": probe.tool,
                "description": f"Asks the client for {probe.name}",
                "inputSchema": {"type": "object", "properties": {}},
            }
            for probe in probes_of(revision)
        )

    def request(self, call: Call) -> None:
        if call.method == "initialize":
            declared = call.params.get("capabilities")
            self._declared_once = declared if isinstance(declared, dict) else {}
        super().request(call)

    def call_tool(self, call: Call, name: str, arguments: Obj) -> None:
        probe = BY_TOOL.get(name)
        if probe is None:
            super().call_tool(call, name, arguments)
        elif "inputResponses" in call.params:
            self.text(call, "thank you")
        elif probe.declared(self._declared(call)) is self.illegally:
            self.text(call, f"{probe.name} is not asked for here")
        elif self.stage.stateless:
            self._ask_back(call, probe)
        else:
            self._ask_now(call, probe)

    def _declared(self, call: Call) -> Obj:
        declared = call.meta.get(CAPABILITIES) if self.stage.stateless else self._declared_once
        return declared if isinstance(declared, dict) else {}

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
        call.ask(identifier, probe.method, probe.params)
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
        elif not _ever_declared(seen, probe):
            yield _undeclared(seen, probe)
        elif seen.mode == "permissive":
            yield good(seen.requests()[0])
        else:
            yield from _fulfilled(seen, probe)

    return judge


def _fulfilled(seen: Seen, probe: Probe) -> Iterator[Row]:
    asked = list(asked_for(seen, probe))
    if not asked and seen.calls(probe.tool):
        yield skipped("the call itself does not declare it: see capabilities-on-every-request")
    elif not asked:
        yield bad(f"{probe.name} is declared, but {probe.tool} was not called, so it was not asked")
    for one in asked:
        if one.result is not None and probe.answers(one.result):
            yield good(one.answer)
        elif one.answer is None:
            yield bad(f"{probe.name} is declared, and a request for it got no answer", one.where)
        else:
            told = one.answer.value.get("error", one.result)
            yield bad(f"{probe.name} is declared, and refused: {shown(told)}", one.answer)


def _undeclared(seen: Seen, probe: Probe) -> Row:
    if seen.mode == "strict":
        return bad(f"{probe.name} is not declared (strict)", seen.requests()[0])
    if probe.name in seen.claims:
        return bad(f"the client is said to support {probe.name}, and does not declare it")
    return skipped(f"{probe.name} is optional, and not declared")


def _ever_declared(seen: Seen, probe: Probe) -> bool:
    return any(probe.declared(declared_on(said)) for said in seen.requests())


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
    requests = seen.requests()
    for said in requests[1:]:
        first, now = set(declared_on(requests[0])), set(declared_on(said))
        if first != now:
            missing = ", ".join(sorted(first ^ now))
            yield bad(f"{said.method} declares other capabilities than before: {missing}", said)
            return
    for said in requests[:1]:
        yield good(said)


def _keeps_quiet(probe: Probe) -> Judge:
    """Of the illegal scenario: what is not declared is not fulfilled either."""

    def judge(seen: Seen) -> Iterator[Row]:
        if not seen.requests():
            return
        if probe.since > seen.revision:
            yield skipped(f"not in {seen.revision}")
            return
        if _ever_declared(seen, probe):
            yield skipped(f"{probe.name} is declared; the other scenario asks for it")
            return
        asked = list(asked_for(seen, probe))
        if not asked and any(True for other in PROBES for _ in asked_for(seen, other)):
            yield skipped("the client gave up when it was asked for something else")
        elif not asked:
            yield bad(f"the client did not call {probe.tool}, so it could not be asked")
        for one in asked:
            if one.result is not None and probe.answers(one.result):
                yield bad(f"{probe.name} was fulfilled without being declared", one.answer)
            else:
                yield good(one.where)

    return judge


_REVISIONS = frozenset({Revision.V2025_06_18, Revision.V2025_11_25, Revision.V2026_07_28})
_PAGE = reference("capabilities", "2025-11-25/basic/lifecycle#capability-negotiation")
_TOOL_CALLS = {"toolCalls": [{"name": probe.tool, "arguments": {}} for probe in PROBES]}

DECLARED = Scenario(
    name="client-capabilities",
    title="What is declared is there",
    description="One tool for each of roots, sampling and elicitation (form and url). A call of it"
    " makes the server ask for that capability, if the client declares it. The client is expected"
    " to make the calls of `toolCalls` in its context that exist, and to answer what it declares.",
    revisions=_REVISIONS,
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
            description="in the stateless era every request declares the same capabilities",
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
    revisions=_REVISIONS,
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
