"""Results that require input: odd answers, a changed state, and who may not ask at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from mcptest.clients.scenario import Row
from mcptest.model.show import show
from mcptest.run.conformance.scenarios.asking import (
    ELICITING,
    SAMPLING,
    accepted,
    input_check,
    input_scenario,
    methods_of,
    needs_tool,
    requests_of,
    retry,
    why_not_asking,
)
from mcptest.run.conformance.scenarios.judges import can_not_tell, found
from mcptest.run.conformance.scenarios.scenario import Judge, Needs, Script
from mcptest.run.conformance.scenarios.scene import Obj, Scene
from mcptest.run.conformance.scenarios.stage import CAPABILITIES, Stage

# -- odd answers


def _with_answers(change: Callable[[Obj, Obj], Obj]) -> Script:
    """Ask first, so that the state is known; then call again with answers that are odd."""

    def script(stage: Stage) -> None:
        params = stage.call_params(ELICITING, {})
        asked = stage.ask("asked", "tools/call", params)
        if requests_of(asked):
            whole = retry(params, asked)
            stage.ask("odd", "tools/call", change(whole, dict(requests_of(asked))))

    return script


def _wrong_key(whole: Obj, asked: Obj) -> Obj:
    return {**whole, "inputResponses": {"wrong_key": accepted(data="wrong")}}


def _extra_keys(whole: Obj, asked: Obj) -> Obj:
    extra = {"unknown_extra_key": accepted(foo="bar"), "another_unexpected": accepted(baz=123)}
    return {**whole, "inputResponses": {**whole["inputResponses"], **extra}}


def _asks_again(scene: Scene) -> Iterator[Row]:
    heard = scene["odd"]
    if "odd" not in scene:
        yield found(why_not_asking(scene["asked"]), scene["asked"], mild=True)
    else:
        yield found(why_not_asking(heard), heard, mild=True)


def _ignores(scene: Scene) -> Iterator[Row]:
    heard = scene["odd"]
    if "odd" not in scene:
        yield found(why_not_asking(scene["asked"]), scene["asked"], mild=True)
    elif heard.without_success:
        yield found([heard.without_success], heard, mild=True)
    else:
        fault = "answers that nobody asked for kept the call from completing"
        yield found([fault] if heard.wants_input else [], heard, mild=True)


def _invalid_answers(stage: Stage) -> None:
    params = stage.call_params(ELICITING, {})
    asked = stage.ask("asked", "tools/call", params)
    if not requests_of(asked):
        return
    whole = retry(params, asked)
    number = dict.fromkeys(requests_of(asked), 12345)
    stage.ask("number", "tools/call", {**whole, "inputResponses": number})
    stage.ask("null", "tools/call", {**whole, "inputResponses": None})


def _not_taken(label: str, what: str) -> Judge:
    def judge(scene: Scene) -> Iterator[Row]:
        heard = scene[label]
        if label not in scene:
            yield found(why_not_asking(scene["asked"]), scene["asked"], mild=True)
        elif not heard.answered:
            yield found([heard.silence], heard)
        else:
            taken = heard.exchange.answer == "result" and not heard.wants_input
            taken = taken and heard.result.get("isError") is not True
            yield found([f"{what} was taken for an answer"] if taken else [], heard, mild=True)

    return judge


# -- state, capabilities, methods that can't ask


def _tamper(stage: Stage) -> None:
    params = stage.call_params("test_input_required_result_tampered_state", {})
    asked = stage.ask("asked", "tools/call", params)
    if isinstance(asked.result.get("requestState"), str):
        whole = retry(params, asked)
        changed = {**whole, "requestState": f"{whole['requestState']}-TAMPERED"}
        stage.ask("tampered", "tools/call", changed)


def _tampering(scene: Scene) -> Iterator[Row]:
    asked, heard = scene["asked"], scene["tampered"]
    if "tampered" not in scene:
        problems = [*why_not_asking(asked)] or ["the result has no requestState to change"]
        yield found(problems, asked)
    elif not heard.answered:
        yield found([heard.silence], heard)
    else:
        refused = heard.exchange.answer == "error"
        yield found([] if refused else ["a changed requestState was accepted"], heard)


def _declare_sampling(stage: Stage) -> None:
    params = stage.call_params("test_input_required_result_capabilities", {})
    stage.ask("asked", "tools/call", params, meta={CAPABILITIES: {"sampling": {}}})


def _respects(scene: Scene) -> Iterator[Row]:
    heard = scene["asked"]
    if heard.without_result:
        yield found([heard.without_result], heard)
        return
    if not heard.wants_input:
        yield found(["the call completed; it should ask for sampling"], heard)
        return
    asked = methods_of(heard)
    if not asked:
        yield can_not_tell("let the fixture ask for sampling when the client declares it", heard)
    else:
        other = [f"{one} is asked for, and was not declared" for one in asked - {SAMPLING}]
        yield found(sorted(other), heard)


def _lists(stage: Stage) -> None:
    for capability in ("tools", "prompts"):
        if stage.offered.declares(capability):
            stage.ask(f"{capability}/list", f"{capability}/list", {})


def _never_on_lists(scene: Scene) -> Iterator[Row]:
    heard = [scene[label] for label in ("tools/list", "prompts/list") if label in scene]
    if not heard:
        yield can_not_tell("declare the capability tools or prompts")
        return
    problems = [f"{one.method} asks for input" for one in heard if one.wants_input]
    problems += [one.silence for one in heard if not one.answered]
    yield found(problems, heard[0])


def _ask_once(stage: Stage) -> None:
    stage.call("asked", ELICITING, {})


def _says_its_type(scene: Scene) -> Iterator[Row]:
    heard = scene["asked"]
    if heard.without_result:
        yield found([heard.without_result], heard)
    elif "resultType" not in heard.result:
        yield found(["the result has no resultType"], heard)
    else:
        kind = show(repr(heard.result["resultType"]), 60)
        fault = f"resultType is {kind}, not 'input_required'"
        yield found([] if heard.wants_input else [fault], heard)


SCENARIOS = (
    input_scenario(
        "missing-input-response",
        "The wrong question is answered",
        f"The fixture `{ELICITING}` is called again with an answer under another key. It should "
        "ask again, not fail.",
        _with_answers(_wrong_key),
        (
            input_check(
                "sep-2322-missing-response-rerequests",
                "InputRequiredResultMissingResponseRerequests",
                "what was not answered should be asked for again",
                _asks_again,
            ),
        ),
        needs_tool(ELICITING),
    ),
    input_scenario(
        "result-type",
        "A result that asks says so",
        f"The result of the fixture `{ELICITING}` says `resultType: input_required`.",
        _ask_once,
        (
            input_check(
                "sep-2322-result-type-included",
                "ResultTypeIncluded",
                "a result that asks for input has its resultType",
                _says_its_type,
            ),
        ),
        needs_tool(ELICITING),
    ),
    input_scenario(
        "unsupported-methods",
        "Lists never ask",
        "`tools/list` and `prompts/list` must not answer that they require input.",
        _lists,
        (
            input_check(
                "sep-2322-not-on-unsupported-requests",
                "NotOnUnsupportedRequests",
                "no list asks for input",
                _never_on_lists,
            ),
        ),
        Needs(),
    ),
    input_scenario(
        "tampered-state",
        "A changed state is refused",
        "The fixture `test_input_required_result_tampered_state` gives a `requestState`. Called "
        "again with a state that was changed, it answers with an error.",
        _tamper,
        (
            input_check(
                "sep-2322-reject-tampered-state",
                "RejectTamperedState",
                "a changed requestState is answered with an error",
                _tampering,
            ),
        ),
        needs_tool("test_input_required_result_tampered_state"),
    ),
    input_scenario(
        "capability-check",
        "Only what was declared is asked for",
        "The fixture `test_input_required_result_capabilities` is called by a client that "
        "declares sampling alone, and asks for nothing else.",
        _declare_sampling,
        (
            input_check(
                "sep-2322-respect-client-capabilities",
                "RespectClientCapabilities",
                "only what the client declared is asked for",
                _respects,
            ),
        ),
        needs_tool("test_input_required_result_capabilities"),
    ),
    input_scenario(
        "ignore-extra-params",
        "Answers to nothing are ignored",
        f"The fixture `{ELICITING}` is called again with its answer and two more that it did not "
        "ask for. It should complete all the same.",
        _with_answers(_extra_keys),
        (
            input_check(
                "sep-2322-ignore-unexpected-params",
                "IgnoreUnexpectedParams",
                "answers that were not asked for should be ignored",
                _ignores,
            ),
        ),
        needs_tool(ELICITING),
    ),
    input_scenario(
        "validate-input",
        "Answers are validated",
        f"The fixture `{ELICITING}` is called again with a number as the answer, and with null in "
        "place of all answers. Neither should complete the call.",
        _invalid_answers,
        (
            input_check(
                "sep-2322-validate-input-responses",
                "ValidateInputResponses",
                "a number should not be taken for an answer",
                _not_taken("number", "a number"),
            ),
            input_check(
                "sep-2322-error-on-protocol-error",
                "ErrorOnProtocolError",
                "null should not be taken for answers",
                _not_taken("null", "null"),
            ),
        ),
        needs_tool(ELICITING),
    ),
)
