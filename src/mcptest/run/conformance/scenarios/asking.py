"""Scenarios about results that require input, in the stateless era: how one answers and retries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mcptest.model.show import show
from mcptest.run.conformance.scenarios.judges import reference, sep
from mcptest.run.conformance.scenarios.scenario import (
    DRAFT,
    STATELESS,
    Judge,
    Needs,
    Script,
    ServerCheck,
    ServerScenario,
)
from mcptest.run.conformance.scenarios.scene import Heard, Obj
from mcptest.run.conformance.scenarios.stage import Stage

ELICITING = "test_input_required_result_elicitation"
ELICITATION, SAMPLING, ROOTS = "elicitation/create", "sampling/createMessage", "roots/list"
_REFERENCES = (
    *reference("MCP-Input-Required", "2026-07-28/basic/patterns/mrtr"),
    *sep(2322),
)


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


def _answer(asked: Any) -> Any:
    """What a client answers to one request: forms are filled in from their schema."""
    method = asked.get("method") if isinstance(asked, Mapping) else None
    if method == SAMPLING:
        return _SAMPLED
    if method == ROOTS:
        return _LISTED
    return accepted(**{name: _value(field) for name, field in _fields(asked).items()})


def _fields(asked: Any) -> Mapping[str, Any]:
    for member in ("params", "requestedSchema", "properties"):
        asked = asked.get(member) if isinstance(asked, Mapping) else None
    return asked if isinstance(asked, Mapping) else {}


def _value(field: Any) -> Any:
    kind = field.get("type") if isinstance(field, Mapping) else None
    if kind == "boolean":
        return True
    return 1 if kind in ("integer", "number") else "Alice"


def requests_of(heard: Heard) -> Mapping[str, Any]:
    asked = heard.result.get("inputRequests")
    return asked if isinstance(asked, dict) else {}


def retry(params: Mapping[str, Any], heard: Heard) -> Obj:
    """The call once more, with an answer to all that was asked and the state as it came."""
    answers = {key: _answer(one) for key, one in requests_of(heard).items()}
    again: Obj = {**params, "inputResponses": answers}
    if "requestState" in heard.result:
        again["requestState"] = heard.result["requestState"]
    return again


def two_rounds(method: str, name: str, arguments: Obj | None) -> Script:
    def script(stage: Stage) -> None:
        make = stage.call_params if method == "tools/call" else stage.prompt_params
        params = make(name, arguments)
        asked = stage.ask("asked", method, params)
        if requests_of(asked):
            stage.ask("completed", method, retry(params, asked))

    return script


# -- judging


def why_not_asking(heard: Heard) -> Iterator[str]:
    if heard.without_result:
        yield heard.without_result
    elif not heard.wants_input:
        kind = show(repr(heard.result.get("resultType")), 60)
        yield f"resultType is {kind}, not 'input_required'"
    elif not requests_of(heard):
        yield "the result has no inputRequests"


def methods_of(heard: Heard) -> set[str]:
    found_in = (one.get("method") for one in requests_of(heard).values() if isinstance(one, dict))
    return {one for one in found_in if isinstance(one, str)}


def input_check(identifier: str, name: str, what: str, judge: Judge) -> ServerCheck:
    return ServerCheck(
        id=identifier, name=name, description=what, judge=judge, references=_REFERENCES
    )


def input_scenario(
    name: str,
    title: str,
    description: str,
    script: Script,
    checks: tuple[ServerCheck, ...],
    needs: Needs,
) -> ServerScenario:
    return ServerScenario(
        name=f"input-required-result-{name}",
        title=title,
        description=description,
        revisions=STATELESS,
        suites=DRAFT,
        script=script,
        checks=checks,
        needs=needs,
    )


def needs_tool(name: str) -> Needs:
    return Needs(capabilities=("tools",), tools=(name,))
