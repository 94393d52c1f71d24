"""Does a sequence of tool calls look as it should? No server is asked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from mcptest.model.message import ABSENT, json_type
from mcptest.suite.failure import Evaluation, Failure, Outcome, evaluation_of
from mcptest.suite.go_format import quote, value_text
from mcptest.suite.json_equality import loosely_equal
from mcptest.suite.model import TraceEntry, TrajectoryCheck
from mcptest.suite.text_as_json import whole_text

_SHOWN_CALLS = 200


class AuditLogError(ValueError):
    """The log can't be read as a trace; the text says which line and why."""


def read_audit_log(lines: Iterable[str | bytes]) -> tuple[TraceEntry, ...]:
    """The calls in a JSONL log: each line an object with `tool` and `args`.

    Objects that name no tool are other events of the log and are left out. A log without any call
    is no evidence: that a tool is absent from it proves nothing. Raises AuditLogError.
    """
    calls: list[TraceEntry] = []
    others = 0
    for number, line in enumerate(lines, 1):
        text = line if isinstance(line, str) else line.decode("utf-8", "replace")
        if not text.strip():
            continue
        event = _event(text, number)
        tool = event.get("tool")
        if isinstance(tool, str):
            calls.append(TraceEntry(tool, _arguments(event)))
        else:
            others += 1
    if not calls:
        found = f"none of its {others} events names a tool" if others else "it holds no event"
        raise AuditLogError(f"{found}, so nothing was observed")
    return tuple(calls)


def _event(text: str, number: int) -> dict[str, Any]:
    value, reason = whole_text(text)
    if value is not ABSENT and not isinstance(value, dict):
        reason = f"expected an object, got {json_type(value)}"
    if reason:
        raise AuditLogError(f"audit log line {number}: invalid JSON: {reason}")
    assert isinstance(value, dict)
    return value


def _arguments(event: Mapping[str, Any]) -> Mapping[str, Any]:
    for name in ("args", "arguments"):
        if isinstance(event.get(name), dict):
            return event[name]  # type: ignore[no-any-return]  # the line above says it
    return {}


def check_trajectory(
    checks: Sequence[TrajectoryCheck], trace: Sequence[TraceEntry], *, all_failures: bool = False
) -> Evaluation:
    """The first check that the trace does not meet, or all of them."""
    outcomes = (outcome for check in checks for outcome in _outcomes(check, trace))
    return evaluation_of(outcomes, all_failures=all_failures)


def _outcomes(check: TrajectoryCheck, trace: Sequence[TraceEntry]) -> Iterator[Outcome]:
    match check.type:
        case "order":
            if check.tools:
                yield _order(check.tools, trace)
        case "presence":
            yield from (_presence(tool, trace) for tool in check.tools)
        case "absence":
            yield from (_absence(tool, trace) for tool in check.tools)
        case "args_contain":
            yield _args_contain(check, trace)


def _order(tools: Sequence[str], trace: Sequence[TraceEntry]) -> Outcome:
    calls = iter(trace)
    before: str | None = None
    for tool in tools:
        if not any(call.tool == tool for call in calls):
            if before is None:
                message = f"order: {quote(tool)} not found in trace"
            else:
                follows = f"found {quote(before)} but {quote(tool)} did not follow"
                message = f"order: {follows} (got: {_tools(trace)})"
            return Failure("order", message, list(tools), _tools(trace))
        before = tool
    return None


def _presence(tool: str, trace: Sequence[TraceEntry]) -> Outcome:
    if any(call.tool == tool for call in trace):
        return None
    return _not_found("presence", tool, trace)


def _absence(tool: str, trace: Sequence[TraceEntry]) -> Outcome:
    if not any(call.tool == tool for call in trace):
        return None
    message = f"absence: {quote(tool)} appeared in trace but should not have"
    return Failure("absence", message, tool, _tools(trace))


def _args_contain(check: TrajectoryCheck, trace: Sequence[TraceEntry]) -> Outcome:
    """One call of the tool has to have all the arguments; which one does not matter."""
    calls = [call for call in trace if call.tool == check.tool]
    if not calls:
        return _not_found("args_contain", check.tool, trace)
    differences = [_difference(check, call) for call in calls]
    if None in differences:
        return None
    others = f" (and no other of its {len(calls)} calls has them)" if len(calls) > 1 else ""
    message = f"args_contain: {differences[0]}{others}"
    return Failure("args_contain", message, dict(check.args), [dict(call.args) for call in calls])


def _difference(check: TrajectoryCheck, call: TraceEntry) -> str | None:
    for name, wanted in check.args.items():
        if name not in call.args:
            return f"{quote(check.tool)} called without arg {quote(name)}"
        actual = call.args[name]
        if not loosely_equal(wanted, actual):
            values = f"want {value_text(wanted)}, got {value_text(actual)}"
            return f"{quote(check.tool)} arg {quote(name)}: {values}"
    return None


def _not_found(check: str, tool: str, trace: Sequence[TraceEntry]) -> Failure:
    message = f"{check}: {quote(tool)} not found in trace (got: {_tools(trace)})"
    return Failure(check, message, tool, _tools(trace))


def _tools(trace: Sequence[TraceEntry]) -> str:
    names = [call.tool for call in trace[:_SHOWN_CALLS]]
    if len(trace) > _SHOWN_CALLS:
        names.append(f"and {len(trace) - _SHOWN_CALLS} more")
    return "[" + ", ".join(names) + "]"
