"""What a server asks of a client: calls that end with `input_required` and are made again with the
answers, and capabilities, which a client supports if and only if it declares them.

One scenario about capabilities asks only for what the client declared, so it is a legal server
throughout. A second one asks for what was *not* declared: deliberately illegal, and kept apart for
that reason. In the handshake era the server sends a request; in the stateless era a call ends with
`input_required`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from mcptest.core.message import Kind
from mcptest.core.revision import Era, Revision
from mcptest.probe.conformance.client.seen import (
    SeenMessage,
    SeenSession,
    declared_on,
    declares_forms,
)
from mcptest.probe.conformance.scenario import (
    CheckFinding,
    Findings,
    Judge,
    bad,
    good,
    inside,
    missing,
    shown,
    skipped,
    untestable,
    verdict,
)
from mcptest.servers.scripted.conforming import CAPABILITIES, Conforming, plain_tool
from mcptest.servers.scripted.script import Obj, ScriptedCall

ECHO, NO_STATE = "test_mrtr_echo_state", "test_mrtr_no_state"
UNRELATED, NO_TYPE = "test_mrtr_unrelated", "test_mrtr_no_result_type"
_ABOUT = {
    ECHO: "Asks for a confirmation and gives a state that must come back unchanged",
    NO_STATE: "Asks for a confirmation without a state",
    UNRELATED: "Has nothing to do with the others",
    NO_TYPE: "Gives a result without resultType, which is a complete one",
}
STATE = '{"n":1,"raw":"\\u00e9 +/=%20"}'
"""Looks like JSON and has what a careless client would decode, sort or escape."""
_QUESTION: Obj = {
    "method": "elicitation/create",
    "params": {
        "mode": "form",
        "message": "Go on?",
        "requestedSchema": {
            "type": "object",
            "properties": {"confirmed": {"type": "boolean", "description": "Yes or no"}},
        },
    },
}


class Retrying(Conforming):
    tools = tuple(plain_tool(name, about) for name, about in _ABOUT.items())

    def call_tool(self, call: ScriptedCall, name: str, arguments: Obj) -> None:
        if name == NO_TYPE:
            bare = {"content": [{"type": "text", "text": "complete, though it does not say so"}]}
            call.reply({"jsonrpc": "2.0", "id": call.id, "result": bare})
        elif name == UNRELATED or "inputResponses" in call.params:
            self.text(call, f"{name} is done")
        elif name in {ECHO, NO_STATE} and not declares_forms(self.declared(call)):
            self.text(call, "nothing is asked of a client that declares no elicitation")
        elif name in {ECHO, NO_STATE}:
            asking: Obj = {"resultType": "input_required", "inputRequests": {"confirm": _QUESTION}}
            if name == ECHO:
                asking["requestState"] = STATE
            call.reply({"jsonrpc": "2.0", "id": call.id, "result": asking})
        else:
            super().call_tool(call, name, arguments)


def _retries(seen: SeenSession, tool: str) -> list[tuple[SeenMessage, SeenMessage]]:
    """Pairs of a call that was asked back and the call that answers."""
    first: SeenMessage | None = None
    found = []
    for call in seen.calls(tool):
        if "inputResponses" in call.params:
            if first is not None:
                found.append((first, call))
        else:
            first = call
    return found


def _not_reached(seen: SeenSession, tool: str) -> CheckFinding:
    calls = seen.calls(tool)
    if not calls:
        return missing(f"the client did not call {tool}")
    if not any(declares_forms(declared_on(call)) for call in calls):
        return untestable("the client declares no elicitation, so it is asked nothing")
    return bad(f"the client did not call {tool} again with its answer", calls[0])


def _state_comes_back(seen: SeenSession) -> Findings:
    pairs = _retries(seen, ECHO)
    if not pairs:
        yield _not_reached(seen, ECHO)
    for _, again in pairs:
        state = again.params.get("requestState")
        problem = "" if state == STATE else f"requestState came back as {shown(state)}"
        yield verdict(problem, again, sent=STATE, received=state)


def _another_id(seen: SeenSession) -> Findings:
    pairs = [*_retries(seen, ECHO), *_retries(seen, NO_STATE)]
    if not pairs:
        yield _not_reached(seen, ECHO)
    for first, again in pairs:
        same = first.value.get("id") == again.value.get("id")
        yield verdict(f"the id is {shown(again.value.get('id'))} again" if same else "", again)


def _no_state_invented(seen: SeenSession) -> Findings:
    pairs = _retries(seen, NO_STATE)
    if not pairs:
        yield _not_reached(seen, NO_STATE)
    for _, again in pairs:
        problem = f"requestState {shown(again.params.get('requestState'))} was never given"
        yield verdict(problem if "requestState" in again.params else "", again)


def _nothing_leaks(seen: SeenSession) -> Findings:
    calls = seen.calls(UNRELATED)
    if not calls:
        yield missing(f"the client did not call {UNRELATED}")
    for call in calls:
        leaked = [key for key in ("inputResponses", "requestState") if key in call.params]
        yield verdict((f"{key} belongs to another call" for key in leaked), call)


def _complete_by_default(seen: SeenSession) -> CheckFinding:
    calls = seen.calls(NO_TYPE)
    again = [call for call in calls if "inputResponses" in call.params]
    if not calls:
        return missing(f"the client did not call {NO_TYPE}")
    if again:
        return bad("a result without resultType was taken for an unfinished one", again[0])
    if seen.ended is not None and not seen.ended.well:
        return skipped(
            "the client gave up, which it may: only servers of older revisions leave it out"
        )
    return good(calls[0])


PATIENCE = 5.0
"""How long a request of ours is waited for after the client has shown that it answers others."""
ALIVE = "alive-"


class CapabilityProbe(msgspec.Struct, frozen=True):
    """One optional capability: how it is declared and asked for, and what is an answer."""

    name: str
    method: str
    params: Obj
    declared: Callable[[Obj], bool]
    answers: Callable[[Obj], bool]
    """It is an answer of someone who has the capability."""
    proves: Callable[[Obj], bool]
    """It can't come from anyone else: a refusal may be worded as an answer."""
    since: Revision = Revision.V2024_11_05

    @property
    def tool(self) -> str:
        return f"probe_{self.name.replace('-', '_')}"


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


def _lists_roots(result: Obj) -> bool:
    return isinstance(result.get("roots"), list)


def _samples(result: Obj) -> bool:
    return isinstance(result.get("model"), str) and "content" in result and "role" in result


_CONFIRM: Obj = {"type": "object", "properties": {"confirmed": {"type": "boolean"}}}
_MESSAGES: list[Obj] = [{"role": "user", "content": {"type": "text", "text": "Say: yes"}}]
PROBES = (
    CapabilityProbe("roots", "roots/list", {}, _has("roots"), _lists_roots, _lists_roots),
    CapabilityProbe(
        "sampling",
        "sampling/createMessage",
        {"messages": _MESSAGES, "maxTokens": 16},
        _has("sampling"),
        _samples,
        _samples,
    ),
    CapabilityProbe(
        "elicitation-form",
        "elicitation/create",
        {"mode": "form", "message": "Go on?", "requestedSchema": _CONFIRM},
        declares_forms,
        _decides,
        _consents,
        Revision.V2025_06_18,
    ),
    CapabilityProbe(
        "elicitation-url",
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


def probes_of(revision: Revision) -> list[CapabilityProbe]:
    return [probe for probe in PROBES if probe.since <= revision]


# -- the scripts


class Probing(Conforming):
    """Asks for what was declared; with `illegally`, for what was not."""

    illegally = False
    checks_requests = False

    def __init__(self) -> None:
        super().__init__()
        self._waiting: dict[str, ScriptedCall] = {}
        self._asked = 0

    def list_tools(self, call: ScriptedCall) -> None:
        tools = [
            plain_tool(probe.tool, f"Asks the client for {probe.name}")
            for probe in probes_of(self.stage.revision)
        ]
        call.result({"tools": tools})

    def call_tool(self, call: ScriptedCall, name: str, arguments: Obj) -> None:
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

    def _ask_back(self, call: ScriptedCall, probe: CapabilityProbe) -> None:
        self._note(probe)
        request = {"method": probe.method, "params": probe.params}
        result = {"resultType": "input_required", "inputRequests": {probe.name: request}}
        call.reply({"jsonrpc": "2.0", "id": call.id, "result": result})

    def _ask_now(self, call: ScriptedCall, probe: CapabilityProbe) -> None:
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

    def _note(self, probe: CapabilityProbe) -> None:
        if self.illegally:
            self.stage.note(f"asks for {probe.name}, which was not declared, on purpose")


class ProbingIllegally(Probing):
    illegally = True


# -- the judges


class CapabilityAsked(msgspec.Struct, frozen=True):
    """One time the client was asked for a capability."""

    where: SeenMessage
    answer: SeenMessage | None
    said: Any
    """What the answer says, whatever that is."""

    @property
    def result(self) -> Obj | None:
        """The client's answer, where it is one at all."""
        return self.said if isinstance(self.said, dict) else None


def asked_for(seen: SeenSession, probe: CapabilityProbe) -> Iterator[CapabilityAsked]:
    if seen.revision.era is Era.STATELESS:
        yield from _asked_back(seen, probe)
    else:
        yield from _asked_now(seen, probe)


def _asked_now(seen: SeenSession, probe: CapabilityProbe) -> Iterator[CapabilityAsked]:
    for said in seen.said:
        if said.sender == "server" and said.message.kind is Kind.REQUEST:
            identifier = said.value.get("id")
            if isinstance(identifier, str) and identifier.startswith(f"{probe.name}-"):
                answer = next(iter(seen.answers(identifier)), None)
                yield CapabilityAsked(said, answer, answer and answer.value.get("result"))


def _asked_back(seen: SeenSession, probe: CapabilityProbe) -> Iterator[CapabilityAsked]:
    calls = seen.calls(probe.tool)
    for number, call in enumerate(calls):
        if "inputResponses" in call.params or not _was_asked_back(seen, call):
            continue
        again = next((one for one in calls[number + 1 :] if "inputResponses" in one.params), None)
        answer = again and inside(again.params, "inputResponses", probe.name)
        yield CapabilityAsked(call, again, answer)


def _was_asked_back(seen: SeenSession, call: SeenMessage) -> bool:
    for said in seen.said:
        if said.sender == "server" and said.value.get("id") == call.value.get("id"):
            result = said.value.get("result")
            if isinstance(result, dict) and said.place > call.place:
                return result.get("resultType") == "input_required"
    return False


def _honours(probe: CapabilityProbe) -> Judge[SeenSession]:
    """Of the legal scenario: declared means fulfilled; neither is not applicable."""

    def judge(seen: SeenSession) -> Findings:
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


def _fulfilled(seen: SeenSession, probe: CapabilityProbe) -> Findings:
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
        elif one.result is not None and one.result.get("action") == "cancel":
            yield untestable("the elicitation was answered with cancel, which shows nothing")
        elif one.answer is None:
            yield bad(f"{probe.name} is declared, and a request for it got no answer", one.where)
        else:
            refusal = one.answer.value.get("error", one.result)
            yield bad(f"{probe.name} is declared, and refused: {shown(refusal)}", one.answer)


def _undeclared(seen: SeenSession, probe: CapabilityProbe) -> CheckFinding:
    if seen.mode == "strict":
        return bad(f"{probe.name} is not declared (strict)", seen.requests()[0])
    if seen.mode == "probe" and probe.name in seen.claims:
        return bad(f"the client is said to support {probe.name}, and does not declare it")
    return skipped(f"{probe.name} is optional, and not declared")


def _malformed(seen: SeenSession, probe: CapabilityProbe) -> CheckFinding | None:
    member = probe.name.partition("-")[0]
    for said in seen.requests():
        value: Any = declared_on(said).get(member, {})
        if not isinstance(value, dict):
            return bad(f"{member} is {shown(value)}, not an object", said)
    return None


def _on_every_request(seen: SeenSession) -> Findings:
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


def _keeps_quiet(probe: CapabilityProbe) -> Judge[SeenSession]:
    """Of the illegal scenario: what is not declared is not fulfilled either."""

    def judge(seen: SeenSession) -> Findings:
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


SCRIPTS = {
    "sep-2322-client-request-state": Retrying,
    "client-capabilities": Probing,
    "client-capabilities-undeclared": ProbingIllegally,
}
JUDGES: Mapping[str, Judge[SeenSession]] = {
    "sep-2322-client-request-state-echoed": _state_comes_back,
    "sep-2322-client-jsonrpc-id-different": _another_id,
    "sep-2322-client-no-state-omitted": _no_state_invented,
    "sep-2322-client-parallel-isolation": _nothing_leaks,
    "sep-2322-default-result-type-complete": _complete_by_default,
    "capabilities-on-every-request": _on_every_request,
    **{f"capability-{probe.name}": _honours(probe) for probe in PROBES},
    **{f"undeclared-{probe.name}": _keeps_quiet(probe) for probe in PROBES},
}
