"""MRTR: a result that asks for input, and the request that comes back with it."""

from __future__ import annotations

from typing import Any

import msgspec

from mcptest.model.message import ABSENT, Kind, id_key, json_type
from mcptest.model.revision import STATELESS_ERA
from mcptest.model.verdict import Severity, Side
from mcptest.rules.check import Check
from mcptest.rules.declare import Watching, session_rule
from mcptest.rules.protocol import (
    CLIENT_CAPABILITIES,
    CLIENT_CAPABILITY,
    MAY_ASK_FOR_INPUT,
    declares,
)
from mcptest.rules.session import Step

_SPEC = "basic/patterns/mrtr"
_MOST_OPEN = 10_000


def _asks(step: Step) -> bool:
    result = step.result
    return isinstance(result, dict) and result.get("resultType") == "input_required"


@session_rule(
    "MRTR-001",
    "only three methods ask for input",
    category="input-required",
    severity=Severity.MUST,
    side=Side.SERVER,
    spec=_SPEC,
    window=STATELESS_ERA,
    listens=(Kind.RESULT,),
    sender="server",
)
def few_methods_ask_for_input(check: Check) -> Watching:
    """`input_required` is a result of `tools/call`, `prompts/get` and `resources/read` only.

    Clients have no way to answer elsewhere: a list that asks for input is never shown.
    """
    while step := (yield):
        if not _asks(step):
            continue
        check.saw(step)
        if step.method not in MAY_ASK_FOR_INPUT:
            check.violated(
                step,
                f"{step.method!r} asks for input",
                expected=", ".join(sorted(MAY_ASK_FOR_INPUT)),
                pointer="/result/resultType",
            )


@session_rule(
    "MRTR-002",
    "a result that asks for input says which",
    category="input-required",
    severity=Severity.MUST,
    side=Side.SERVER,
    spec=_SPEC,
    window=STATELESS_ERA,
    listens=(Kind.RESULT,),
    sender="server",
)
def asking_says_for_what(check: Check) -> Watching:
    """An `input_required` result has `inputRequests`, a `requestState`, or both.

    With neither the client has nothing to gather and nothing to send back. Each of the
    `inputRequests` is an `elicitation/create`, a `sampling/createMessage` or a `roots/list`.
    """
    while step := (yield):
        if not _asks(step):
            continue
        check.saw(step)
        asked = step.result.get("inputRequests", ABSENT)
        if asked is ABSENT and not isinstance(step.result.get("requestState"), str):
            check.violated(
                step,
                "neither inputRequests nor requestState",
                expected="at least one of them",
                pointer="/result",
            )
        elif asked is not ABSENT and not isinstance(asked, dict):
            check.violated(step, f"inputRequests is {json_type(asked)}", expected="an object")
        for key, request in asked.items() if isinstance(asked, dict) else ():
            method = request.get("method") if isinstance(request, dict) else None
            if not isinstance(method, str) or method not in CLIENT_CAPABILITY:
                check.violated(
                    step,
                    f"the input request {key!r} is {method!r}",
                    expected=", ".join(CLIENT_CAPABILITY),
                    pointer=f"/result/inputRequests/{key}",
                )


@session_rule(
    "MRTR-003",
    "input is asked only of a client that can give it",
    category="input-required",
    severity=Severity.MUST,
    side=Side.SERVER,
    spec=_SPEC,
    window=STATELESS_ERA,
    listens=(Kind.RESULT,),
    sender="server",
)
def input_is_asked_as_declared(check: Check) -> Watching:
    """Each input request needs a capability that this very request of the client declared.

    Capabilities don't carry over from earlier requests. Without it the server answers -32021.
    """
    while step := (yield):
        asked = step.result.get("inputRequests") if _asks(step) else None
        if not isinstance(asked, dict) or step.request is None:
            continue
        declared = step.request.meta.get(CLIENT_CAPABILITIES)
        for key, request in asked.items():
            method = request.get("method") if isinstance(request, dict) else None
            needed = CLIENT_CAPABILITY.get(method) if isinstance(method, str) else None
            if needed is None:
                continue
            check.saw(step)
            if not declares(declared, needed):
                check.violated(
                    step,
                    f"the server asks for {method!r}, but the request did not declare {needed!r}",
                    expected="error -32021, or input that the client can give",
                    pointer=f"/result/inputRequests/{key}",
                )


@session_rule(
    "MRTR-004",
    "a retry repeats the request with what was asked",
    category="input-required",
    severity=Severity.MUST,
    side=Side.CLIENT,
    spec=_SPEC,
    window=STATELESS_ERA,
    listens=(Kind.RESULT, Kind.REQUEST),
    methods=tuple(sorted(MAY_ASK_FOR_INPUT)),
)
def retries_repeat_the_request(check: Check) -> Watching:
    """The retry has a new id, the same params, an answer to each question and the same state.

    `inputResponses` has exactly the keys of `inputRequests`; `requestState` comes back byte for
    byte, and only if there was one. The server keeps nothing, so what the retry leaves out is
    lost. A retry is told by its `inputResponses` or `requestState`.
    """
    asked: dict[Any, list[Step]] = {}
    while step := (yield):
        if step.kind is Kind.RESULT:
            if _asks(step) and step.request is not None and len(asked) < _MOST_OPEN:
                asked.setdefault(_same(step.request), []).append(step)
            continue
        params = step.params
        if step.sender != "client" or not ({"inputResponses", "requestState"} & params.keys()):
            continue
        if check.session.crowded:
            check.inconclusive("too many requests were waiting at once")
            continue
        check.saw(step)
        questions = asked.get(_same(step), [])
        if not questions:
            check.violated(
                step,
                f"{step.method!r} carries answers, but no such request was asked for input",
                expected="the method and params of the request that was asked",
            )
            continue
        question = _best(questions, params)
        fault = _retry_fault(question, step)
        if fault:
            check.violated(step, fault, expected="as the input_required result demands")
        questions.remove(question)
        if not questions:
            asked.pop(_same(step), None)


def _same(request: Step) -> bytes:
    """Method and params without what a retry adds; a key to find the question by."""
    left_out = {"inputResponses", "requestState", "_meta"}
    kept = {key: value for key, value in request.params.items() if key not in left_out}
    return msgspec.json.encode([request.method, kept], order="sorted")


def _best(questions: list[Step], params: dict[str, Any]) -> Step:
    state = params.get("requestState", ABSENT)
    fitting = (q for q in questions if q.result.get("requestState", ABSENT) == state)
    return next(fitting, questions[0])


def _retry_fault(question: Step, retry: Step) -> str:
    result, params = question.result, retry.params
    given, wanted = params.get("requestState", ABSENT), result.get("requestState", ABSENT)
    if given != wanted:
        if wanted is ABSENT:
            return "a requestState, though none was given"
        return "the requestState is not the one that was given"
    questions = result.get("inputRequests")
    answers = params.get("inputResponses", {})
    if not isinstance(answers, dict):
        return f"inputResponses is {json_type(answers)}, not an object"
    expected = set(questions) if isinstance(questions, dict) else set()
    if set(answers) != expected:
        return f"answers for {sorted(answers)}, asked were {sorted(expected)}"
    first = question.request
    if first is not None and id_key(first.id) == id_key(retry.id):
        return "the retry has the id of the first request"
    return ""
