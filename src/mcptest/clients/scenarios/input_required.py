"""Calls that end with `input_required` and are made again with the answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mcptest.clients.rows import (
    bad,
    good,
    missing,
    reference,
    shown,
    skipped,
    untestable,
    verdict,
)
from mcptest.clients.scenario import Check, Judge, Row, Scenario
from mcptest.clients.seen import Said, Seen, declared_on, declares_forms
from mcptest.model.revision import Revision
from mcptest.peer.scripted.conforming import Conforming
from mcptest.peer.scripted.script import Call, Obj

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
    tools = tuple(
        {"name": name, "description": about, "inputSchema": {"type": "object", "properties": {}}}
        for name, about in _ABOUT.items()
    )

    def call_tool(self, call: Call, name: str, arguments: Obj) -> None:
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


def _retries(seen: Seen, tool: str) -> list[tuple[Said, Said]]:
    """Pairs of a call that was asked back and the call that answers."""
    first: Said | None = None
    found = []
    for call in seen.calls(tool):
        if "inputResponses" in call.params:
            if first is not None:
                found.append((first, call))
        else:
            first = call
    return found


def _not_reached(seen: Seen, tool: str) -> Row:
    calls = seen.calls(tool)
    if not calls:
        return missing(f"the client did not call {tool}")
    if not any(declares_forms(declared_on(call)) for call in calls):
        return untestable("the client declares no elicitation, so it is asked nothing")
    return bad(f"the client did not call {tool} again with its answer", calls[0])


def _state_comes_back(seen: Seen) -> Iterator[Row]:
    pairs = _retries(seen, ECHO)
    if not pairs:
        yield _not_reached(seen, ECHO)
    for _, again in pairs:
        state = again.params.get("requestState")
        problem = [] if state == STATE else [f"requestState came back as {shown(state)}"]
        yield verdict(problem, again, sent=STATE, received=state)


def _another_id(seen: Seen) -> Iterator[Row]:
    pairs = [*_retries(seen, ECHO), *_retries(seen, NO_STATE)]
    if not pairs:
        yield _not_reached(seen, ECHO)
    for first, again in pairs:
        same = first.value.get("id") == again.value.get("id")
        yield verdict([f"the id is {shown(again.value.get('id'))} again"] if same else [], again)


def _no_state_invented(seen: Seen) -> Iterator[Row]:
    pairs = _retries(seen, NO_STATE)
    if not pairs:
        yield _not_reached(seen, NO_STATE)
    for _, again in pairs:
        given: Any = again.params.get("requestState", None)
        invented = "requestState" in again.params
        yield verdict([f"requestState {shown(given)} was never given"] if invented else [], again)


def _nothing_leaks(seen: Seen) -> Iterator[Row]:
    calls = seen.calls(UNRELATED)
    if not calls:
        yield missing(f"the client did not call {UNRELATED}")
    for call in calls:
        leaked = [key for key in ("inputResponses", "requestState") if key in call.params]
        yield verdict([f"{key} belongs to another call" for key in leaked], call)


def _complete_by_default(seen: Seen) -> Iterator[Row]:
    calls = seen.calls(NO_TYPE)
    again = [call for call in calls if "inputResponses" in call.params]
    if not calls:
        yield missing(f"the client did not call {NO_TYPE}")
    elif again:
        yield bad("a result without resultType was taken for an unfinished one", again[0])
    elif not seen.ended.well:
        yield skipped(
            "the client gave up, which it may: only servers of older revisions leave it out"
        )
    else:
        yield good(calls[0])


def _check(identifier: str, title: str, description: str, judge: Judge) -> Check:
    return Check(
        id=f"sep-2322-{identifier}",
        title=title,
        description=description,
        judge=judge,
        references=reference("SEP-2322", "2026-07-28/basic/patterns/mrtr"),
    )


CLIENT_REQUEST_STATE = Scenario(
    name="sep-2322-client-request-state",
    title="Answering and calling again",
    description="Two tools end with `input_required`, one with a `requestState`, one without. The"
    " client is expected to call all four tools and, if it declares elicitation, to call those two"
    " again: with its answers, a new id, and the state exactly as it was given, or none. One that"
    " does not is asked nothing.",
    revisions=frozenset({Revision.V2026_07_28}),
    suites=frozenset({"core", "draft"}),
    make=Retrying,
    context={"toolCalls": [{"name": name, "arguments": {}} for name in _ABOUT]},
    client_may_fail=True,  # one of the tools breaks a rule: its result lacks resultType
    checks=(
        _check(
            "client-request-state-echoed",
            "MRTRClientRequestStateEchoed",
            "the state comes back byte for byte",
            _state_comes_back,
        ),
        _check(
            "client-jsonrpc-id-different",
            "MRTRClientJsonRpcIdDifferent",
            "the second call has an id of its own",
            _another_id,
        ),
        _check(
            "client-no-state-omitted",
            "MRTRClientNoStateOmitted",
            "where no state was given, none comes back",
            _no_state_invented,
        ),
        _check(
            "client-parallel-isolation",
            "MRTRClientParallelIsolation",
            "answers and state stay with the call that they belong to",
            _nothing_leaks,
        ),
        _check(
            "default-result-type-complete",
            "DefaultResultTypeComplete",
            "a result without resultType is complete",
            _complete_by_default,
        ),
    ),
)

SCENARIOS = (CLIENT_REQUEST_STATE,)
