"""Results that require input: asked, answered, called again, completed."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from mcptest.clients.scenario import Row
from mcptest.run.conformance.scenarios.asking import (
    ELICITATION,
    ROOTS,
    SAMPLING,
    input_check,
    input_scenario,
    methods_of,
    needs_tool,
    requests_of,
    retry,
    two_rounds,
    why_not_asking,
)
from mcptest.run.conformance.scenarios.judges import found
from mcptest.run.conformance.scenarios.scenario import Judge, Needs, ServerScenario
from mcptest.run.conformance.scenarios.scene import Heard, Obj, Scene
from mcptest.run.conformance.scenarios.stage import Stage

PROMPT = "test_input_required_result_prompt"


def _asks(*methods: str, key: str = "", with_state: bool = False, at_least: int = 1) -> Judge:
    def judge(scene: Scene) -> Iterator[Row]:
        heard = scene["asked"]
        yield found(problems(heard), heard)

    def problems(heard: Heard) -> Iterator[str]:
        whole = True
        for one in why_not_asking(heard):
            whole = False
            yield one
        if not whole:
            return
        asked = requests_of(heard)
        if key and key not in asked:
            yield f"inputRequests has no {key}"
        if len(asked) < at_least:
            yield f"inputRequests has {len(asked)} members, not at least {at_least}"
        yield from (f"no {one} is asked for" for one in methods if one not in methods_of(heard))
        if with_state and not isinstance(heard.result.get("requestState"), str):
            yield "the result has no requestState that is a string"

    return judge


def _completes(
    problems: Callable[[Obj], Iterator[str]] | None = None, label: str = "completed"
) -> Judge:
    def judge(scene: Scene) -> Iterator[Row]:
        heard = scene[label]
        if label not in scene:
            yield found(["the server did not ask for input, so there was nothing to answer"])
        elif heard.without_success:
            yield found([heard.without_success], heard)
        elif heard.wants_input:
            yield found(["all that was asked for was given, and it asks again"], heard)
        else:
            yield found(problems(heard.result) if problems else (), heard)

    return judge


def _has_content(result: Obj) -> Iterator[str]:
    content = result.get("content")
    if not isinstance(content, list) or not content:
        yield "the complete result has no content"


def _has_messages(result: Obj) -> Iterator[str]:
    if not isinstance(result.get("messages"), list):
        yield "the complete result has no messages"


def _basic(name: str, word: str, fixture: str, method: str, key: str = "") -> ServerScenario:
    slug = name.removeprefix("basic-")
    tool = f"test_input_required_result_{fixture}"
    under = f" under the key `{key}`" if key else ""
    return input_scenario(
        name,
        f"A call asks with {method}",
        f"The fixture `{tool}` answers that it requires input: `{method}`{under}. Called again "
        "with the answer, it completes.",
        two_rounds("tools/call", tool, {}),
        (
            input_check(
                f"sep-2322-{slug}-incomplete",
                f"InputRequiredResult{word}Incomplete",
                f"the first result asks for {method}",
                _asks(method, key=key),
            ),
            input_check(
                f"sep-2322-{slug}-complete",
                f"InputRequiredResult{word}Complete",
                "with the answer the call completes",
                _completes(_has_content if key else None),
            ),
        ),
        needs_tool(tool),
    )


# -- more than one round


def _multi_round(stage: Stage) -> None:
    params = stage.call_params("test_input_required_result_multi_round", {})
    first = stage.ask("asked", "tools/call", params)
    if not requests_of(first):
        return
    second = stage.ask("second", "tools/call", retry(params, first))
    if requests_of(second):
        stage.ask("completed", "tools/call", retry(params, second))


def _second_round(scene: Scene) -> Iterator[Row]:
    first, second = scene["asked"], scene["second"]
    problems = [*why_not_asking(second)]
    state = second.result.get("requestState")
    if not problems and not isinstance(state, str):
        problems.append("the result has no requestState that is a string")
    elif not problems and state == first.result.get("requestState"):
        problems.append("requestState is the same as in the first round")
    yield found(problems, second)


SCENARIOS = (
    _basic("basic-elicitation", "Elicitation", "elicitation", ELICITATION, "user_name"),
    _basic("basic-sampling", "Sampling", "sampling", SAMPLING),
    _basic("basic-list-roots", "ListRoots", "list_roots", ROOTS),
    input_scenario(
        "request-state",
        "State goes there and back",
        "The fixture `test_input_required_result_request_state` asks for input and gives a "
        "`requestState`. Called again with the answer and that state, it completes.",
        two_rounds("tools/call", "test_input_required_result_request_state", {}),
        (
            input_check(
                "sep-2322-request-state-incomplete",
                "InputRequiredResultRequestStateIncomplete",
                "the first result has inputRequests and requestState",
                _asks(with_state=True),
            ),
            input_check(
                "sep-2322-request-state-complete",
                "InputRequiredResultRequestStateComplete",
                "with the state the call completes",
                _completes(),
            ),
        ),
        needs_tool("test_input_required_result_request_state"),
    ),
    input_scenario(
        "multiple-input-requests",
        "Three questions at once",
        "The fixture `test_input_required_result_multiple_inputs` asks for a form, a message of "
        "the model and the roots in one result, with a `requestState`. With all answers it "
        "completes.",
        two_rounds("tools/call", "test_input_required_result_multiple_inputs", {}),
        (
            input_check(
                "sep-2322-multiple-inputs-incomplete",
                "InputRequiredResultMultipleInputsIncomplete",
                "the first result asks for three kinds of input, and has requestState",
                _asks(ELICITATION, SAMPLING, ROOTS, with_state=True, at_least=3),
            ),
            input_check(
                "sep-2322-multiple-inputs-complete",
                "InputRequiredResultMultipleInputsComplete",
                "with all answers the call completes",
                _completes(),
            ),
        ),
        needs_tool("test_input_required_result_multiple_inputs"),
    ),
    input_scenario(
        "multi-round",
        "Two rounds of questions",
        "The fixture `test_input_required_result_multi_round` asks, asks again with another "
        "`requestState` once it was answered, and then completes.",
        _multi_round,
        (
            input_check(
                "sep-2322-multi-round-r1",
                "InputRequiredResultMultiRoundR1",
                "the first result asks, and has requestState",
                _asks(with_state=True),
            ),
            input_check(
                "sep-2322-multi-round-r2",
                "InputRequiredResultMultiRoundR2",
                "the second result asks again, with another requestState",
                _second_round,
            ),
            input_check(
                "sep-2322-multi-round-r3",
                "InputRequiredResultMultiRoundR3",
                "the third result is complete",
                _completes(),
            ),
        ),
        needs_tool("test_input_required_result_multi_round"),
    ),
    input_scenario(
        "non-tool-request",
        "A prompt asks",
        f"`prompts/get` for the fixture `{PROMPT}` answers that it requires input, and gives its "
        "messages once it was answered.",
        two_rounds("prompts/get", PROMPT, None),
        (
            input_check(
                "sep-2322-non-tool-incomplete",
                "InputRequiredResultNonToolIncomplete",
                "prompts/get asks for input",
                _asks(),
            ),
            input_check(
                "sep-2322-non-tool-complete",
                "InputRequiredResultNonToolComplete",
                "with the answer prompts/get gives its messages",
                _completes(_has_messages),
            ),
        ),
        Needs(capabilities=("prompts",), prompts=(PROMPT,)),
    ),
)
