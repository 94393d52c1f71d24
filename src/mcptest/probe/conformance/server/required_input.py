"""Results that require input, in the stateless era: how one answers and calls again, odd answers, a
changed state, and who may not ask at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
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

SAMPLING, ROOTS = "sampling/createMessage", "roots/list"
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


def _asked_back(again: Again) -> ServerScript:
    """Ask first, so that the state is known; then call again."""

    def script(stage: ScenarioStage) -> None:
        method, params = stage.fixture_request()
        asked = stage.ask("asked", method, params)
        if _requests(asked):
            for label, whole in again(_retry(params, asked)).items():
                stage.ask(label, method, whole)

    return script


asked_back = _asked_back(lambda whole: {"completed": whole})


def asked_back_twice(stage: ScenarioStage) -> None:
    method, params = stage.fixture_request()
    heard = stage.ask("asked", method, params)
    for label in ("second", "completed"):
        if not _requests(heard):
            return
        heard = stage.ask(label, method, _retry(params, heard))


@_asked_back
def wrong_key(whole: Obj) -> Mapping[str, Obj]:
    return {"odd": {**whole, "inputResponses": {"wrong_key": accepted(data="wrong")}}}


@_asked_back
def extra_keys(whole: Obj) -> Mapping[str, Obj]:
    extra = {"unknown_extra_key": accepted(foo="bar"), "another_unexpected": accepted(baz=123)}
    return {"odd": {**whole, "inputResponses": {**whole["inputResponses"], **extra}}}


@_asked_back
def invalid(whole: Obj) -> Mapping[str, Obj]:
    number = dict.fromkeys(whole["inputResponses"], 12345)
    odd = {"number": number, "null": None}
    return {label: {**whole, "inputResponses": answers} for label, answers in odd.items()}


def tamper(stage: ScenarioStage) -> None:
    method, params = stage.fixture_request()
    asked = stage.ask("asked", method, params)
    if isinstance(asked.result.get("requestState"), str):
        whole = _retry(params, asked)
        changed = {**whole, "requestState": f"{whole['requestState']}-TAMPERED"}
        stage.ask("tampered", method, changed)


def declare_sampling(stage: ScenarioStage) -> None:
    method, params = stage.fixture_request()
    stage.ask("asked", method, params, meta={CLIENT_CAPABILITIES: {"sampling": {}}})


def ask_lists(stage: ScenarioStage) -> None:
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


def asks_for(
    *, methods: Sequence[str] = (), key: str = "", with_state: bool = False, at_least: int = 1
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


def completes(member: str = "") -> Judge[Scene]:
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


def multi_round_r2(scene: Scene) -> CheckFinding:
    second = scene["second"]
    state, problem = second.result.get("requestState"), _why_not_asking(second)
    if not problem and not isinstance(state, str):
        problem = _NO_STATE
    elif not problem and state == scene["asked"].result.get("requestState"):
        problem = "requestState is the same as in the first round"
    return verdict(problem, second)


def missing_response_rerequests(scene: Scene) -> CheckFinding:
    heard = scene["odd" if "odd" in scene else "asked"]
    return verdict(_why_not_asking(heard), heard, mild=True)


def ignore_unexpected_params(scene: Scene) -> CheckFinding:
    heard = scene["odd"]
    if "odd" not in scene:
        return verdict(_why_not_asking(scene["asked"]), scene["asked"], mild=True)
    fault = "the call did not complete because of extra inputs"
    problem = heard.without_success or (fault if heard.wants_input else "")
    return verdict(problem, heard, mild=True)


def not_taken(label: str, what: str) -> Judge[Scene]:
    def judge(scene: Scene) -> CheckFinding:
        heard = scene[label]
        if label not in scene:
            return verdict(_why_not_asking(scene["asked"]), scene["asked"], mild=True)
        refused = scene.answered(label).exchange.answer == "error" or heard.wants_input
        refused = refused or heard.result.get("isError") is True
        return expect(refused, f"the server accepted {what} as input", heard, mild=True)

    return judge


def reject_tampered_state(scene: Scene) -> CheckFinding:
    asked, heard = scene["asked"], scene["tampered"]
    if "tampered" not in scene:
        return bad(_why_not_asking(asked) or "the result has no requestState to change", asked)
    refused = scene.answered("tampered").exchange.answer == "error"
    return expect(refused, "the server accepted a changed requestState", heard)


def respect_client_capabilities(scene: Scene) -> CheckFinding:
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


def not_on_unsupported_requests(scene: Scene) -> CheckFinding:
    heard = [scene[label] for label in ("tools/list", "prompts/list") if label in scene]
    if not heard:
        return untestable("declare the capability tools or prompts")
    problems = [f"{one.method} asks for input" for one in heard if one.wants_input]
    problems += [one.silence for one in heard if not one.answered]
    return verdict(problems, heard[0])


def result_type_included(scene: Scene) -> CheckFinding:
    heard = scene["asked"]
    if heard.without_result or "resultType" not in heard.result:
        return bad(heard.without_result or "the result has no resultType", heard)
    kind = show(repr(heard.result["resultType"]), 60)
    return expect(heard.wants_input, f"resultType is {kind}, not 'input_required'", heard)
