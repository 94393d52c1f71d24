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
    Scenario,
    ScenarioCheck,
    ScenarioNeeds,
    bad,
    check,
    reference,
    sep,
    untestable,
    verdict,
)
from mcptest.probe.conformance.server.scene import (
    CAPABILITIES,
    DRAFT,
    STATELESS,
    Heard,
    Obj,
    ScenarioStage,
    Scene,
    ServerScript,
    needs_tool,
)

ELICITING = "test_input_required_result_elicitation"
ELICITATION, SAMPLING, ROOTS = "elicitation/create", "sampling/createMessage", "roots/list"
PROMPT = "test_input_required_result_prompt"
_NO_STATE = "the result has no requestState that is a string"


# -- answering


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
    method = asked.get("method") if isinstance(asked, Mapping) else None
    if method in (SAMPLING, ROOTS):
        return _SAMPLED if method == SAMPLING else _LISTED
    for member in ("params", "requestedSchema", "properties"):
        asked = asked.get(member) if isinstance(asked, Mapping) else None
    fields = asked if isinstance(asked, Mapping) else {}
    return accepted(**{name: _value(field) for name, field in fields.items()})


def _value(field: Any) -> Any:
    kind = field.get("type") if isinstance(field, Mapping) else None
    return _VALUES.get(kind, "Alice") if isinstance(kind, str) else "Alice"


def _requests(heard: Heard) -> Mapping[str, Any]:
    asked = heard.result.get("inputRequests")
    return asked if isinstance(asked, dict) else {}


def _retry(params: Mapping[str, Any], heard: Heard) -> Obj:
    """The call once more, with an answer to all that was asked and the state as it came."""
    answers = {key: _answer(one) for key, one in _requests(heard).items()}
    again: Obj = {**params, "inputResponses": answers}
    if "requestState" in heard.result:
        again["requestState"] = heard.result["requestState"]
    return again


Again: TypeAlias = Callable[[Obj], Mapping[str, Obj]]
"""From the call as it should be made again to the calls that are made, by their labels."""


def _complete(whole: Obj) -> Mapping[str, Obj]:
    return {"completed": whole}


def _asked_back(again: Again = _complete, *, tool: str = ELICITING) -> ServerScript:
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
    params = stage.call_params("test_input_required_result_multi_round", {})
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
    params = stage.call_params("test_input_required_result_tampered_state", {})
    asked = stage.ask("asked", "tools/call", params)
    if isinstance(asked.result.get("requestState"), str):
        whole = _retry(params, asked)
        changed = {**whole, "requestState": f"{whole['requestState']}-TAMPERED"}
        stage.ask("tampered", "tools/call", changed)


def _declare_sampling(stage: ScenarioStage) -> None:
    params = stage.call_params("test_input_required_result_capabilities", {})
    stage.ask("asked", "tools/call", params, meta={CAPABILITIES: {"sampling": {}}})


def _lists(stage: ScenarioStage) -> None:
    for capability in ("tools", "prompts"):
        if stage.offered.declares(capability):
            stage.ask(f"{capability}/list", f"{capability}/list", {})


# -- judging


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
        yield from (f"no {one} is asked for" for one in methods if one not in _methods(heard))
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
            return bad("the server did not ask for input, so there was nothing to answer")
        if heard.without_success or heard.wants_input:
            again = "all that was asked for was given, and it asks again"
            return bad(heard.without_success or again, heard)
        given = heard.result.get(member)
        fine = not member or (isinstance(given, list) and (given or member == "messages"))
        return verdict("" if fine else f"the complete result has no {member}", heard)

    return judge


@check(
    "sep-2322-multi-round-r2",
    "the second result asks again, with another requestState",
    title="InputRequiredResultMultiRoundR2",
)
def _second_round(scene: Scene) -> CheckFinding:
    second = scene["second"]
    state, problem = second.result.get("requestState"), _why_not_asking(second)
    if not problem and not isinstance(state, str):
        problem = _NO_STATE
    elif not problem and state == scene["asked"].result.get("requestState"):
        problem = "requestState is the same as in the first round"
    return verdict(problem, second)


@check(
    "sep-2322-missing-response-rerequests",
    "what was not answered should be asked for again",
    title="InputRequiredResultMissingResponseRerequests",
)
def _asks_again(scene: Scene) -> CheckFinding:
    heard = scene["odd" if "odd" in scene else "asked"]
    return verdict(_why_not_asking(heard), heard, mild=True)


@check("sep-2322-ignore-unexpected-params", "answers that were not asked for should be ignored")
def _ignores(scene: Scene) -> CheckFinding:
    heard = scene["odd"]
    if "odd" not in scene:
        return verdict(_why_not_asking(scene["asked"]), scene["asked"], mild=True)
    fault = "answers that nobody asked for kept the call from completing"
    problem = heard.without_success or (fault if heard.wants_input else "")
    return verdict(problem, heard, mild=True)


def _not_taken(label: str, what: str) -> Judge[Scene]:
    def judge(scene: Scene) -> CheckFinding:
        heard = scene[label]
        if label not in scene:
            return verdict(_why_not_asking(scene["asked"]), scene["asked"], mild=True)
        if not heard.answered:
            return bad(heard.silence, heard)
        taken = heard.exchange.answer == "result" and not heard.wants_input
        taken = taken and heard.result.get("isError") is not True
        return verdict(f"{what} was taken for an answer" if taken else "", heard, mild=True)

    return judge


@check("sep-2322-reject-tampered-state", "a changed requestState is answered with an error")
def _tampering(scene: Scene) -> CheckFinding:
    asked, heard = scene["asked"], scene["tampered"]
    if "tampered" not in scene:
        return bad(_why_not_asking(asked) or "the result has no requestState to change", asked)
    if not heard.answered:
        return bad(heard.silence, heard)
    refused = heard.exchange.answer == "error"
    return verdict("" if refused else "a changed requestState was accepted", heard)


@check("sep-2322-respect-client-capabilities", "only what the client declared is asked for")
def _respects(scene: Scene) -> CheckFinding:
    heard = scene["asked"]
    if heard.without_result or not heard.wants_input:
        completed = "the call completed; it should ask for sampling"
        return bad(heard.without_result or completed, heard)
    asked = _methods(heard)
    if not asked:
        return untestable("let the fixture ask for sampling when the client declares it", heard)
    other = (f"{one} is asked for, and was not declared" for one in asked - {SAMPLING})
    return verdict(sorted(other), heard)


@check("sep-2322-not-on-unsupported-requests", "no list asks for input")
def _never_on_lists(scene: Scene) -> CheckFinding:
    heard = [scene[label] for label in ("tools/list", "prompts/list") if label in scene]
    if not heard:
        return untestable("declare the capability tools or prompts")
    problems = [f"{one.method} asks for input" for one in heard if one.wants_input]
    problems += [one.silence for one in heard if not one.answered]
    return verdict(problems, heard[0])


@check("sep-2322-result-type-included", "a result that asks for input has its resultType")
def _says_its_type(scene: Scene) -> CheckFinding:
    heard = scene["asked"]
    if heard.without_result or "resultType" not in heard.result:
        return bad(heard.without_result or "the result has no resultType", heard)
    kind = show(repr(heard.result["resultType"]), 60)
    return verdict(
        "" if heard.wants_input else f"resultType is {kind}, not 'input_required'", heard
    )


# -- the table


def _scenario(
    name: str,
    title: str,
    description: str,
    script: ServerScript,
    needs: ScenarioNeeds | str,
    *checks: ScenarioCheck[Scene],
) -> Scenario[Scene]:
    """`needs` may be the name of a tool."""
    return Scenario(
        name=f"input-required-result-{name}",
        title=title,
        description=description,
        revisions=STATELESS,
        suites=DRAFT,
        script=script,
        references=(*reference("MCP-Input-Required", "2026-07-28/basic/patterns/mrtr"), *sep(2322)),
        checks=checks,
        needs=needs_tool(needs) if isinstance(needs, str) else needs,
    )


def _rounds(
    slug: str, word: str, *rounds: tuple[str, str, Judge[Scene]]
) -> Iterator[ScenarioCheck[Scene]]:
    """The checks of a call that asks, one for each round: its name, what it asks for, its judge."""
    for name, expected, judge in rounds:
        title = f"InputRequiredResult{word}{name.capitalize()}"
        yield ScenarioCheck(f"sep-2322-{slug}-{name}", expected, judge, title)


def _basic(slug: str, word: str, fixture: str, method: str, key: str = "") -> Scenario[Scene]:
    tool = f"test_input_required_result_{fixture}"
    under = f" under the key `{key}`" if key else ""
    return _scenario(
        f"basic-{slug}",
        f"A call asks with {method}",
        f"The fixture `{tool}` answers that it requires input: `{method}`{under}. Called again "
        "with the answer, it completes.",
        _asked_back(tool=tool),
        tool,
        *_rounds(
            slug,
            word,
            ("incomplete", f"the first result asks for {method}", _asks(method, key=key)),
            (
                "complete",
                "with the answer the call completes",
                _completes("content" if key else ""),
            ),
        ),
    )


_STATE = "test_input_required_result_request_state"
_THREE = "test_input_required_result_multiple_inputs"

SCENARIOS = (
    _basic("elicitation", "Elicitation", "elicitation", ELICITATION, "user_name"),
    _basic("sampling", "Sampling", "sampling", SAMPLING),
    _basic("list-roots", "ListRoots", "list_roots", ROOTS),
    _scenario(
        "request-state",
        "State goes there and back",
        f"The fixture `{_STATE}` asks for input and gives a `requestState`. Called again with the "
        "answer and that state, it completes.",
        _asked_back(tool=_STATE),
        _STATE,
        *_rounds(
            "request-state",
            "RequestState",
            (
                "incomplete",
                "the first result has inputRequests and requestState",
                _asks(with_state=True),
            ),
            ("complete", "with the state the call completes", _completes()),
        ),
    ),
    _scenario(
        "multiple-input-requests",
        "Three questions at once",
        f"The fixture `{_THREE}` asks for a form, a message of the model and the roots in one "
        "result, with a `requestState`. With all answers it completes.",
        _asked_back(tool=_THREE),
        _THREE,
        *_rounds(
            "multiple-inputs",
            "MultipleInputs",
            (
                "incomplete",
                "the first result asks for three kinds of input, and has requestState",
                _asks(ELICITATION, SAMPLING, ROOTS, with_state=True, at_least=3),
            ),
            ("complete", "with all answers the call completes", _completes()),
        ),
    ),
    _scenario(
        "multi-round",
        "Two rounds of questions",
        "The fixture `test_input_required_result_multi_round` asks, asks again with another "
        "`requestState` once it was answered, and then completes.",
        _multi_round,
        "test_input_required_result_multi_round",
        *_rounds(
            "multi-round",
            "MultiRound",
            ("r1", "the first result asks, and has requestState", _asks(with_state=True)),
        ),
        _second_round,
        *_rounds("multi-round", "MultiRound", ("r3", "the third result is complete", _completes())),
    ),
    _scenario(
        "non-tool-request",
        "A prompt asks",
        f"`prompts/get` for the fixture `{PROMPT}` answers that it requires input, and gives its "
        "messages once it was answered.",
        _asked_back(tool=PROMPT),
        ScenarioNeeds(capabilities=("prompts",), prompts=(PROMPT,)),
        *_rounds(
            "non-tool",
            "NonTool",
            ("incomplete", "prompts/get asks for input", _asks()),
            ("complete", "with the answer prompts/get gives its messages", _completes("messages")),
        ),
    ),
    _scenario(
        "missing-input-response",
        "The wrong question is answered",
        f"The fixture `{ELICITING}` is called again with an answer under another key. It should "
        "ask again, not fail.",
        _asked_back(_wrong_key),
        ELICITING,
        _asks_again,
    ),
    _scenario(
        "result-type",
        "A result that asks says so",
        f"The result of the fixture `{ELICITING}` says `resultType: input_required`.",
        lambda stage: stage.call("asked", ELICITING, {}),
        ELICITING,
        _says_its_type,
    ),
    _scenario(
        "unsupported-methods",
        "Lists never ask",
        "`tools/list` and `prompts/list` must not answer that they require input.",
        _lists,
        ScenarioNeeds(),
        _never_on_lists,
    ),
    _scenario(
        "tampered-state",
        "A changed state is refused",
        "The fixture `test_input_required_result_tampered_state` gives a `requestState`. Called "
        "again with a state that was changed, it answers with an error.",
        _tamper,
        "test_input_required_result_tampered_state",
        _tampering,
    ),
    _scenario(
        "capability-check",
        "Only what was declared is asked for",
        "The fixture `test_input_required_result_capabilities` is called by a client that "
        "declares sampling alone, and asks for nothing else.",
        _declare_sampling,
        "test_input_required_result_capabilities",
        _respects,
    ),
    _scenario(
        "ignore-extra-params",
        "Answers to nothing are ignored",
        f"The fixture `{ELICITING}` is called again with its answer and two more that it did not "
        "ask for. It should complete all the same.",
        _asked_back(_extra_keys),
        ELICITING,
        _ignores,
    ),
    _scenario(
        "validate-input",
        "Answers are validated",
        f"The fixture `{ELICITING}` is called again with a number as the answer, and with null in "
        "place of all answers. Neither should complete the call.",
        _asked_back(_invalid),
        ELICITING,
        ScenarioCheck(
            "sep-2322-validate-input-responses",
            "a number should not be taken for an answer",
            _not_taken("number", "a number"),
        ),
        ScenarioCheck(
            "sep-2322-error-on-protocol-error",
            "null should not be taken for answers",
            _not_taken("null", "null"),
        ),
    ),
)
