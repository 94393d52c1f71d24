"""What a server asks of a client: calls that end with `input_required` and are made again with the
answers, and capabilities, which a client supports if and only if it declares them.

One scenario about capabilities asks only for what the client declared, so it is a legal server
throughout. A second one asks for what was *not* declared: deliberately illegal, and kept apart for
that reason. In the handshake era the server sends a request; in the stateless era a call ends with
`input_required`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import starmap
from typing import Any, TypeAlias

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
    expect,
    good,
    inside,
    missing,
    object_in,
    shown,
    skipped,
    untestable,
    verdict,
)
from mcptest.probe.conformance.scenario_catalogue import server_members
from mcptest.rules.protocol import CLIENT_CAPABILITIES
from mcptest.servers.scripted.conforming import Conforming, plain_tool
from mcptest.servers.scripted.script import Obj, ScriptedCall

ECHO, NO_STATE = "test_mrtr_echo_state", "test_mrtr_no_state"
UNRELATED, NO_TYPE = "test_mrtr_unrelated", "test_mrtr_no_result_type"
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
    def call_tool(self, call: ScriptedCall, name: str, arguments: Obj) -> None:
        if name == NO_TYPE:
            bare = {"content": [{"type": "text", "text": "complete, though it does not say so"}]}
            call.reply({"jsonrpc": "2.0", "id": call.id, "result": bare})
        elif name == UNRELATED or "inputResponses" in call.params:
            self.text(call, f"{name} is done")
        elif name in {ECHO, NO_STATE} and not declares_forms(self.declared(call)):
            self.text(call, "sends no elicitation to a client that does not declare it")
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


JudgeRetry: TypeAlias = Callable[[SeenMessage, SeenMessage], CheckFinding]


def _each_retry(*tools: str) -> Callable[[JudgeRetry], Judge[SeenSession]]:
    """Of every call that was asked back, with the call that answers."""

    def judging(judge: JudgeRetry) -> Judge[SeenSession]:
        def judged(seen: SeenSession) -> Findings:
            pairs = [pair for tool in tools for pair in _retries(seen, tool)]
            calls = [] if pairs else seen.need_calls(tools[0])
            if pairs:
                yield from starmap(judge, pairs)
            elif not any(declares_forms(declared_on(call)) for call in calls):
                yield untestable("the client does not declare elicitation, so it was asked nothing")
            else:
                yield bad(f"the client did not call {tools[0]} again with its input", calls[0])

        return judged

    return judging


@_each_retry(ECHO)
def client_request_state_echoed(first: SeenMessage, again: SeenMessage) -> CheckFinding:
    state = again.params.get("requestState")
    problem = f"the client returned requestState as {shown(state)}"
    return expect(state == STATE, problem, again, sent=STATE, received=state)


@_each_retry(ECHO, NO_STATE)
def client_jsonrpc_id_different(first: SeenMessage, again: SeenMessage) -> CheckFinding:
    identifier = again.value.get("id")
    return expect(
        first.value.get("id") != identifier, f"the id is {shown(identifier)} again", again
    )


@_each_retry(NO_STATE)
def client_no_state_omitted(first: SeenMessage, again: SeenMessage) -> CheckFinding:
    state = shown(again.params.get("requestState"))
    problem = f"the client sent requestState {state}, which it never received"
    return expect("requestState" not in again.params, problem, again)


def client_parallel_isolation(seen: SeenSession) -> Findings:
    for call in seen.need_calls(UNRELATED):
        leaked = [key for key in ("inputResponses", "requestState") if key in call.params]
        yield verdict((f"{key} belongs to another call" for key in leaked), call)


def default_result_type_complete(seen: SeenSession) -> CheckFinding:
    calls = seen.need_calls(NO_TYPE)
    again = [call for call in calls if "inputResponses" in call.params]
    if again:
        return bad("the client treated a result without resultType as incomplete", again[0])
    if seen.ended is not None and not seen.ended.well:
        return skipped(
            "the client gave up, which is allowed: only servers of older revisions omit resultType"
        )
    return good(calls[0])


PATIENCE = 5.0
"""How long a request of ours is waited for after the client has shown that it answers others."""
ALIVE = "alive-"


class CapabilityProbe(msgspec.Struct, frozen=True):
    """One optional capability: how it is declared and asked for, and what is an answer."""

    name: str
    method: str
    params: Obj = {}
    since: Revision = Revision.V2024_11_05

    @property
    def tool(self) -> str:
        return f"probe_{self.name.replace('-', '_')}"

    def declared(self, declared: Obj) -> bool:
        kind, _, mode = self.name.partition("-")
        if mode == "form":
            return declares_forms(declared)
        return mode in object_in(declared, kind) if mode else kind in declared

    def answers(self, result: Obj) -> bool:
        """It is an answer of someone who has the capability."""
        if self.method == "roots/list":
            return isinstance(result.get("roots"), list)
        if self.method == "sampling/createMessage":
            return isinstance(result.get("model"), str) and {"content", "role"} <= {*result}
        # Someone looked at it. `cancel` is what comes when nobody did.
        return result.get("action") in {"accept", "decline"}

    def proves(self, result: Obj) -> bool:
        """It can't come from anyone else: a refusal may be worded as an answer."""
        is_form = self.method == "elicitation/create"
        return result.get("action") == "accept" if is_form else self.answers(result)


PROBES = msgspec.convert(
    server_members("client-capabilities")["probes"], tuple[CapabilityProbe, ...]
)
BY_TOOL = {probe.tool: probe for probe in PROBES}


class Probing(Conforming):
    """Asks for what was declared; with `illegally`, for what was not."""

    illegally = False
    checks_requests = False
    _asked = 0

    def list_tools(self, call: ScriptedCall) -> None:
        offered = (probe for probe in PROBES if probe.since <= self.stage.revision)
        tools = [plain_tool(one.tool, f"Asks the client for {one.name}") for one in offered]
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
            self.text(call, f"{probe.name} is not requested here")
        else:
            if self.illegally:
                self.stage.note(f"requests {probe.name}, which was not declared, on purpose")
            (self._ask_back if self.stage.stateless else self._ask_now)(call, probe)

    def _ask_back(self, call: ScriptedCall, probe: CapabilityProbe) -> None:
        request = {"method": probe.method, "params": probe.params}
        result = {"resultType": "input_required", "inputRequests": {probe.name: request}}
        call.reply({"jsonrpc": "2.0", "id": call.id, "result": result})

    def _ask_now(self, call: ScriptedCall, probe: CapabilityProbe) -> None:
        """With a ping behind it: a client that answers that one is awake, and then has a while."""
        self._asked += 1
        identifier = f"{probe.name}-{self._asked}"
        has_modes = self.stage.revision >= Revision.V2025_11_25
        params = {key: value for key, value in probe.params.items() if has_modes or key != "mode"}
        self.ask_first(call, identifier, probe.method, params)
        call.ask(ALIVE + identifier, "ping", {})

    def answered(self, message: Obj) -> None:
        identifier = message.get("id")
        if isinstance(identifier, str) and identifier.startswith(ALIVE):
            waiting = identifier.removeprefix(ALIVE)
            self.stage.after(PATIENCE, lambda: self.settle(waiting, "the client did not answer"))
        else:
            super().answered(message)


def asked_for(
    seen: SeenSession, probe: CapabilityProbe
) -> Iterator[tuple[SeenMessage, SeenMessage | None, Any]]:
    """Each time the client was asked for a capability: where, the answer, and what that says."""
    if seen.revision.era is Era.STATELESS:
        calls = seen.calls(probe.tool)
        for number, call in enumerate(calls):
            if "inputResponses" not in call.params and _was_asked_back(seen, call):
                later = (one for one in calls[number + 1 :] if "inputResponses" in one.params)
                again = next(later, None)
                yield call, again, again and inside(again.params, "inputResponses", probe.name)
        return
    for said in seen.said:
        if said.sender == "server" and said.message.kind is Kind.REQUEST:
            identifier = said.value.get("id")
            if isinstance(identifier, str) and identifier.startswith(f"{probe.name}-"):
                answer = next(iter(seen.answers(identifier)), None)
                yield said, answer, answer and answer.value.get("result")


def _was_asked_back(seen: SeenSession, call: SeenMessage) -> bool:
    for said in seen.said:
        if said.sender == "server" and said.value.get("id") == call.value.get("id"):
            result = said.value.get("result")
            if isinstance(result, dict) and said.place > call.place:
                return result.get("resultType") == "input_required"
    return False


def _probed(
    judge: Callable[[SeenSession, CapabilityProbe], Findings],
) -> Callable[[str], Judge[SeenSession]]:
    """Of the capability of this name, where the client's revision has it."""

    def of_capability(name: str) -> Judge[SeenSession]:
        probe = next(one for one in PROBES if one.name == name)

        def judged(seen: SeenSession) -> Findings:
            if seen.requests() and probe.since > seen.revision:
                yield skipped(f"not in {seen.revision}")
            elif seen.requests():
                yield from judge(seen, probe)

        return judged

    return of_capability


@_probed
def honours(seen: SeenSession, probe: CapabilityProbe) -> Findings:
    """Of the legal scenario: declared means fulfilled; neither is not applicable."""
    member = probe.name.partition("-")[0]
    for said in seen.requests():
        value: Any = declared_on(said).get(member, {})
        if not isinstance(value, dict):
            yield bad(f"{member} is {shown(value)}, not an object", said)
            return
    if seen.declares(probe.declared) and seen.mode == "probe":
        yield from _fulfilled(seen, probe)
    elif seen.declares(probe.declared):
        yield good(seen.requests()[0])  # only what is declared is looked at
    elif seen.mode == "strict":
        yield bad(f"{probe.name} is not declared (strict)", seen.requests()[0])
    elif seen.mode == "probe" and probe.name in seen.claims:
        yield bad(f"the client should support {probe.name}, but does not declare it")
    else:
        yield skipped(f"{probe.name} is optional and not declared")


def _fulfilled(seen: SeenSession, probe: CapabilityProbe) -> Findings:
    asked = list(asked_for(seen, probe))
    if not asked and seen.calls(probe.tool):
        yield skipped(
            f"the call to {probe.tool} does not declare it, so the server did not request it"
        )
    elif not asked:
        yield missing(f"{probe.name} is declared, but the client did not call {probe.tool}")
    for where, answer, said in asked:
        result = said if isinstance(said, dict) else None
        if result is not None and probe.answers(result):
            yield good(answer)
        elif inside(result, "action") == "cancel":
            yield untestable("the client cancelled the elicitation, which proves nothing")
        elif answer is None:
            yield bad(f"the client declares {probe.name}, but did not answer a request", where)
        else:
            refusal = answer.value.get("error", result)
            yield bad(
                f"the client declares {probe.name}, but rejected a request: {shown(refusal)}",
                answer,
            )


def capabilities_on_every_request(seen: SeenSession) -> Findings:
    if seen.revision.era is not Era.STATELESS:
        yield skipped("declared once, in initialize")
        return
    for said in seen.requests():
        declared = said.meta.get(CLIENT_CAPABILITIES)
        if not isinstance(declared, dict):
            yield bad(f"{said.method} has no client capabilities, not even {{}}", said)
            return
    for said in seen.requests()[:1]:
        yield good(said)


@_probed
def keeps_to_declared(seen: SeenSession, probe: CapabilityProbe) -> Findings:
    """Of the illegal scenario: what is not declared is not fulfilled either."""
    if seen.mode != "probe":
        yield skipped("only --capabilities probe requests undeclared capabilities")
        return
    if seen.declares(probe.declared):
        yield skipped(f"{probe.name} is declared, so the other scenario tests it")
        return
    asked = list(asked_for(seen, probe))
    if not asked and any(True for other in PROBES for _ in asked_for(seen, other)):
        yield skipped("the client gave up at another request")
    elif not asked:
        yield missing(f"the client did not call {probe.tool}, so the server could not request it")
    for where, answer, said in asked:
        if probe.proves(object_in(said)):
            yield bad(f"the client fulfilled {probe.name} without declaring it", answer)
        else:
            yield good(where)
