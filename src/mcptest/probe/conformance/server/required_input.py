"""Results that require input, in the stateless era: how one answers and calls again, odd answers, a
changed state, and who may not ask at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from mcptest.core.safe_text import show
from mcptest.probe.conformance.scenario import (
    CheckFinding,
    Judge,
    bad,
    expect,
    inside,
    object_in,
    untestable,
    verdict,
)
from mcptest.probe.conformance.server.scene import (
    Heard,
    Obj,
    ScenarioStage,
    Scene,
    ServerScript,
)
from mcptest.rules.protocol import CLIENT_CAPABILITIES

_PREFIX = "test_input_required_result_"
ELICITING = f"{_PREFIX}elicitation"
ELICITATION, SAMPLING, ROOTS = "elicitation/create", "sampling/createMessage", "roots/list"
PROMPT = f"{_PREFIX}prompt"
_NO_STATE = "the result has no requestState that is a string"


def accepted(**content: Any) -> Obj:
    return {"action": "accept", "content": content}


_SAMPLED = {
    "role": "assistant",
    "content": {"type": "text", "text": "This is an answer of a model."},
    "model": "mcptest-static",
    "stopReason": "endTurn",
}
_LISTED = {"roots": [{"uri": "file:///mcptest/root", "name": "A root"}]}
_VALUES: Obj = {"boolean": True, "integer": 1, "number": 1}


def _answer(asked: Any) -> Any:
    """What a client answers to one request: forms are filled in from their schema."""
    method = inside(asked, "method")
    if method in (SAMPLING, ROOTS):
        return _SAMPLED if method == SAMPLING else _LISTED
    fields = object_in(asked, "params", "requestedSchema", "properties")
    kinds = {name: str(inside(field, "type")) for name, field in fields.items()}
    return accepted(**{name: _VALUES.get(kind, "Alice") for name, kind in kinds.items()})


def _requests(heard: Heard) -> Mapping[str, Any]:
    return object_in(heard.result, "inputRequests")


def _retry(params: Mapping[str, Any], heard: Heard) -> Obj:
    """The call once more, with an answer to all that was asked and the state as it came."""
    answers = {key: _answer(one) for key, one in _requests(heard).items()}
    again: Obj = {**params, "inputResponses": answers}
    if "requestState" in heard.result:
        again["requestState"] = heard.result["requestState"]
    return again


Again: TypeAlias = Callable[[Obj], Mapping[str, Obj]]
"""From the call as it should be made again to the calls that are made, by their labels."""


def _asked_back(
    again: Again = lambda whole: {"completed": whole}, *, tool: str = ELICITING
) -> ServerScript:
    """Ask first, so that the state is known; then call again."""

    def script(stage: ScenarioStage) -> None:
        method, params = "tools/call", stage.call_params(tool, {})
        if tool == PROMPT:
            method, params = "prompts/get", stage.prompt_params(tool)
        asked = stage.ask("asked", method, params)
        if _requests(asked):
            for label, whole in again(_retry(params, asked)).items():
                stage.ask(label, method, whole)

    return script


def _multi_round(stage: ScenarioStage) -> None:
    params = stage.call_params(f"{_PREFIX}multi_round", {})
    heard = stage.ask("asked", "tools/call", params)
    for label in ("second", "completed"):
        if not _requests(heard):
            return
        heard = stage.ask(label, "tools/call", _retry(params, heard))


def _wrong_key(whole: Obj) -> Mapping[str, Obj]:
    return {"odd": {**whole, "inputResponses": {"wrong_key": accepted(data="wrong")}}}


def _extra_keys(whole: Obj) -> Mapping[str, Obj]:
    extra = {"unknown_extra_key": accepted(foo="bar"), "another_unexpected": accepted(baz=123)}
    return {"odd": {**whole, "inputResponses": {**whole["inputResponses"], **extra}}}


def _invalid(whole: Obj) -> Mapping[str, Obj]:
    number = dict.fromkeys(whole["inputResponses"], 12345)
    odd = {"number": number, "null": None}
    return {label: {**whole, "inputResponses": answers} for label, answers in odd.items()}


def _tamper(stage: ScenarioStage) -> None:
    params = stage.call_params(f"{_PREFIX}tampered_state", {})
    asked = stage.ask("asked", "tools/call", params)
    if isinstance(asked.result.get("requestState"), str):
        whole = _retry(params, asked)
        changed = {**whole, "requestState": f"{whole['requestState']}-TAMPERED"}
        stage.ask("tampered", "tools/call", changed)


def _declare_sampling(stage: ScenarioStage) -> None:
    params = stage.call_params(f"{_PREFIX}capabilities", {})
    stage.ask("asked", "tools/call", params, meta={CLIENT_CAPABILITIES: {"sampling": {}}})


def _lists(stage: ScenarioStage) -> None:
    for capability in ("tools", "prompts"):
        if stage.scene.offered.declares(capability):
            stage.ask(f"{capability}/list", f"{capability}/list", {})


def _why_not_asking(heard: Heard) -> str:
    if heard.without_result:
        return heard.without_result
    if not heard.wants_input:
        kind = show(repr(heard.result.get("resultType")), 60)
        return f"resultType is {kind}, not 'input_required'"
    return "" if _requests(heard) else "the result has no inputRequests"


def _methods(heard: Heard) -> set[str]:
    found = (one.get("method") for one in _requests(heard).values() if isinstance(one, dict))
    return {one for one in found if isinstance(one, str)}


def _asks(
    *methods: str, key: str = "", with_state: bool = False, at_least: int = 1
) -> Judge[Scene]:
    def problems(heard: Heard) -> Iterator[str]:
        asked = _requests(heard)
        if key and key not in asked:
            yield f"inputRequests has no {key}"
        if len(asked) < at_least:
            yield f"inputRequests has {len(asked)} members, not at least {at_least}"
        yield from (
            f"the server does not ask for {one}" for one in methods if one not in _methods(heard)
        )
        if with_state and not isinstance(heard.result.get("requestState"), str):
            yield _NO_STATE

    return lambda scene: verdict(
        _why_not_asking(scene["asked"]) or problems(scene["asked"]), scene["asked"]
    )


def _completes(member: str = "") -> Judge[Scene]:
    """The last call is complete; with `member`, its result has a list of that name."""

    def judge(scene: Scene) -> CheckFinding:
        heard = scene["completed"]
        if "completed" not in scene:
            return bad("the server did not ask for input")
        if heard.without_success or heard.wants_input:
            again = "the server asks again after it got all inputs"
            return bad(heard.without_success or again, heard)
        given = heard.result.get(member)
        fine = not member or (isinstance(given, list) and (given or member == "messages"))
        return expect(fine, f"the complete result has no {member}", heard)

    return judge


def _second_round(scene: Scene) -> CheckFinding:
    second = scene["second"]
    state, problem = second.result.get("requestState"), _why_not_asking(second)
    if not problem and not isinstance(state, str):
        problem = _NO_STATE
    elif not problem and state == scene["asked"].result.get("requestState"):
        problem = "requestState is the same as in the first round"
    return verdict(problem, second)


def _asks_again(scene: Scene) -> CheckFinding:
    heard = scene["odd" if "odd" in scene else "asked"]
    return verdict(_why_not_asking(heard), heard, mild=True)


def _ignores(scene: Scene) -> CheckFinding:
    heard = scene["odd"]
    if "odd" not in scene:
        return verdict(_why_not_asking(scene["asked"]), scene["asked"], mild=True)
    fault = "the call did not complete because of extra inputs"
    problem = heard.without_success or (fault if heard.wants_input else "")
    return verdict(problem, heard, mild=True)


def _not_taken(label: str, what: str) -> Judge[Scene]:
    def judge(scene: Scene) -> CheckFinding:
        heard = scene[label]
        if label not in scene:
            return verdict(_why_not_asking(scene["asked"]), scene["asked"], mild=True)
        refused = scene.answered(label).exchange.answer == "error" or heard.wants_input
        refused = refused or heard.result.get("isError") is True
        return expect(refused, f"the server accepted {what} as input", heard, mild=True)

    return judge


def _tampering(scene: Scene) -> CheckFinding:
    asked, heard = scene["asked"], scene["tampered"]
    if "tampered" not in scene:
        return bad(_why_not_asking(asked) or "the result has no requestState to change", asked)
    refused = scene.answered("tampered").exchange.answer == "error"
    return expect(refused, "the server accepted a changed requestState", heard)


def _respects(scene: Scene) -> CheckFinding:
    heard = scene["asked"]
    if heard.without_result or not heard.wants_input:
        completed = "the call completed; it should ask for sampling"
        return bad(heard.without_result or completed, heard)
    asked = _methods(heard)
    if not asked:
        return untestable("make the fixture ask for sampling if the client declares it", heard)
    other = (
        f"the server asks for {one}, which the client did not declare" for one in asked - {SAMPLING}
    )
    return verdict(sorted(other), heard)


def _never_on_lists(scene: Scene) -> CheckFinding:
    heard = [scene[label] for label in ("tools/list", "prompts/list") if label in scene]
    if not heard:
        return untestable("declare the capability tools or prompts")
    problems = [f"{one.method} asks for input" for one in heard if one.wants_input]
    problems += [one.silence for one in heard if not one.answered]
    return verdict(problems, heard[0])


def _says_its_type(scene: Scene) -> CheckFinding:
    heard = scene["asked"]
    if heard.without_result or "resultType" not in heard.result:
        return bad(heard.without_result or "the result has no resultType", heard)
    kind = show(repr(heard.result["resultType"]), 60)
    return expect(heard.wants_input, f"resultType is {kind}, not 'input_required'", heard)


SCRIPTS: dict[str, ServerScript] = {
    "input-required-result-basic-elicitation": _asked_back(),
    "input-required-result-basic-sampling": _asked_back(tool=f"{_PREFIX}sampling"),
    "input-required-result-basic-list-roots": _asked_back(tool=f"{_PREFIX}list_roots"),
    "input-required-result-request-state": _asked_back(tool=f"{_PREFIX}request_state"),
    "input-required-result-multiple-input-requests": _asked_back(tool=f"{_PREFIX}multiple_inputs"),
    "input-required-result-multi-round": _multi_round,
    "input-required-result-non-tool-request": _asked_back(tool=PROMPT),
    "input-required-result-missing-input-response": _asked_back(_wrong_key),
    "input-required-result-unsupported-methods": _lists,
    "input-required-result-tampered-state": _tamper,
    "input-required-result-capability-check": _declare_sampling,
    "input-required-result-ignore-extra-params": _asked_back(_extra_keys),
    "input-required-result-validate-input": _asked_back(_invalid),
}
JUDGES: dict[str, Judge[Scene]] = {
    "sep-2322-elicitation-incomplete": _asks(ELICITATION, key="user_name"),
    "sep-2322-elicitation-complete": _completes("content"),
    "sep-2322-sampling-incomplete": _asks(SAMPLING),
    "sep-2322-sampling-complete": _completes(),
    "sep-2322-list-roots-incomplete": _asks(ROOTS),
    "sep-2322-list-roots-complete": _completes(),
    "sep-2322-request-state-incomplete": _asks(with_state=True),
    "sep-2322-request-state-complete": _completes(),
    "sep-2322-multiple-inputs-incomplete": _asks(
        ELICITATION, SAMPLING, ROOTS, with_state=True, at_least=3
    ),
    "sep-2322-multiple-inputs-complete": _completes(),
    "sep-2322-multi-round-r1": _asks(with_state=True),
    "sep-2322-multi-round-r2": _second_round,
    "sep-2322-multi-round-r3": _completes(),
    "sep-2322-non-tool-incomplete": _asks(),
    "sep-2322-non-tool-complete": _completes("messages"),
    "sep-2322-missing-response-rerequests": _asks_again,
    "sep-2322-result-type-included": _says_its_type,
    "sep-2322-not-on-unsupported-requests": _never_on_lists,
    "sep-2322-reject-tampered-state": _tampering,
    "sep-2322-respect-client-capabilities": _respects,
    "sep-2322-ignore-unexpected-params": _ignores,
    "sep-2322-validate-input-responses": _not_taken("number", "a number"),
    "sep-2322-error-on-protocol-error": _not_taken("null", "null"),
}
