"""JSON-RPC 2.0: which kind of message this is, and what is wrong with its envelope.

Pure functions with reasons. `is_valid_jsonrpc` is the predicate that the whole product stands
on: `jsonrpc` is "2.0", there is a method, a result or an error, and never a result together with
an error.
"""

from __future__ import annotations

from typing import Any

from mcptest.model.limits import DEFAULT_LIMITS
from mcptest.model.message import ABSENT, Flaw, Kind, Message, Problem, json_type
from mcptest.model.show import show
from mcptest.wire.jsontext import read_json


def decode(raw: bytes, depth: int = DEFAULT_LIMITS.depth) -> Message:
    """Read one frame. Never raises: what could not be read is a message of kind INVALID."""
    value, problems = read_json(raw, depth)
    if isinstance(value, list):
        items = tuple(Message(b"", kind_of(item), item) for item in value)
        return Message(raw, Kind.BATCH, value, problems, items)
    return Message(raw, kind_of(value), value, problems)


def kind_of(value: Any) -> Kind:
    """By shape alone, so that a message with a small fault can still be matched to its request."""
    if type(value) is not dict:
        return Kind.INVALID
    if "method" in value:
        if "result" in value or "error" in value:
            return Kind.INVALID
        return Kind.REQUEST if "id" in value else Kind.NOTIFICATION
    if "result" in value:
        return Kind.INVALID if "error" in value else Kind.RESULT
    return Kind.ERROR if "error" in value else Kind.INVALID


def is_valid_jsonrpc(value: Any) -> bool:
    """The property of seed 003, by its formal expression alone."""
    return (
        isinstance(value, dict)
        and value.get("jsonrpc") == "2.0"
        and ("method" in value or "result" in value or "error" in value)
        and not ("error" in value and "result" in value)
    )


def envelope_problems(value: Any) -> tuple[Problem, ...]:
    """Everything that keeps `value` from being one JSON-RPC 2.0 message, each with its reason.

    Stricter than `is_valid_jsonrpc`: the four informal rules on requests, notifications and
    responses are checked too. Whether an id is *allowed* to be missing from an error response
    depends on the revision, so that is left to the rules.
    """
    if not isinstance(value, dict):
        return (Problem(Flaw.NOT_AN_OBJECT, f"a message is an object, not {_a(value)}"),)
    problems: list[Problem] = []
    _check_version(value, problems)
    _check_members(value, problems)
    _check_id(value, problems)
    params = value.get("params", ABSENT)
    if "method" in value and params is not ABSENT and not isinstance(params, dict | list):
        problems.append(
            Problem(Flaw.PARAMS_TYPE, f"params is {_a(params)}, not an object", "/params")
        )
    return tuple(problems)


def batch_problems(value: Any) -> tuple[Problem, ...]:
    """What is wrong with an array of messages, the members' own problems included."""
    if not isinstance(value, list):
        return envelope_problems(value)
    if not value:
        return (Problem(Flaw.EMPTY_BATCH, "a batch holds at least one message"),)
    return tuple(
        Problem(problem.flaw, problem.reason, f"/{place}{problem.pointer}")
        for place, item in enumerate(value)
        for problem in envelope_problems(item)
    )


def _check_version(value: dict[str, Any], problems: list[Problem]) -> None:
    version = value.get("jsonrpc", ABSENT)
    if version is ABSENT:
        problems.append(Problem(Flaw.JSONRPC_MISSING, 'jsonrpc: "2.0" is missing'))
    elif version != "2.0":
        problems.append(
            Problem(
                Flaw.JSONRPC_WRONG, f'jsonrpc is {show(repr(version), 40)}, not "2.0"', "/jsonrpc"
            )
        )


def _check_members(value: dict[str, Any], problems: list[Problem]) -> None:
    has_method, has_result, has_error = ("method" in value, "result" in value, "error" in value)
    if not (has_method or has_result or has_error):
        problems.append(Problem(Flaw.NO_MEMBER, "none of method, result and error is present"))
    if has_result and has_error:
        problems.append(Problem(Flaw.RESULT_AND_ERROR, "both result and error are present"))
    if has_method and (has_result or has_error):
        answer = "result" if has_result else "error"
        problems.append(Problem(Flaw.METHOD_AND_ANSWER, f"both method and {answer} are present"))
    if has_method and not isinstance(value["method"], str):
        problems.append(
            Problem(
                Flaw.METHOD_NOT_STRING, f"method is {_a(value['method'])}, not a string", "/method"
            )
        )
    if has_error and not isinstance(value["error"], dict):
        problems.append(
            Problem(Flaw.ERROR_TYPE, f"error is {_a(value['error'])}, not an object", "/error")
        )


def _check_id(value: dict[str, Any], problems: list[Problem]) -> None:
    identifier = value.get("id", ABSENT)
    if identifier is ABSENT:
        if "method" not in value and "result" in value:
            problems.append(Problem(Flaw.ID_MISSING, "a result without the id of its request"))
    elif identifier is None:
        problems.append(Problem(Flaw.ID_NULL, "id is null", "/id"))
    elif type(identifier) is not int and type(identifier) is not str:
        problems.append(
            Problem(
                Flaw.ID_TYPE, f"id is {show(repr(identifier), 40)}, not a string or integer", "/id"
            )
        )


def _a(value: Any) -> str:
    name = json_type(value)
    if name in {"null", "absent"}:
        return name
    return f"an {name}" if name[0] in "aeiou" else f"a {name}"
