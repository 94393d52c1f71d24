"""Does an answer meet an `expect` block? Pure: no clock, no disk, no server.

Each function below is the expectation of its name, in the order of evaluation: that of mcp-assert,
whose messages are kept where it has them, then ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from msgspec.structs import replace

from mcptest.core.message import ABSENT, json_type
from mcptest.suite import matching
from mcptest.suite.matching import (
    Failure,
    compact_json,
    error_text,
    first_runes,
    is_number,
    loosely_equal,
    quote,
    quote_all,
    trim_space,
    value_text,
)
from mcptest.suite.matching import error_code as code_of
from mcptest.suite.model import (
    Expect,
    Expectation,
    LoggingExpect,
    NotificationExpect,
    TraceEntry,
    TrajectoryCheck,
)
from mcptest.suite.observed import (
    Evaluation,
    Observed,
    Outcome,
    evaluation_of,
    failing_call,
    failure_of,
    listed_by,
    resolve,
    split_target,
    whole_text,
)
from mcptest.suite.regex import as_bytes, found_in, pattern_problem
from mcptest.wire.envelope import LIST_MEMBERS

_LONGEST_SIDE = 2000
_ASKS_NOTHING = Expect()
_Check: TypeAlias = Callable[[Any, Observed], Outcome]
CHECKS: dict[str, Callable[[Any, Observed], Iterable[Outcome]]] = {}
"""Every expectation by name, in the order of evaluation. Each is given what the field asks for."""


def _whole(check: _Check) -> _Check:
    """One check of all that the field asks for."""
    CHECKS[check.__name__] = lambda wanted, subject: (check(wanted, subject),)
    return check


def _each(check: _Check) -> _Check:
    """A check of each item, or of each name with its value, that the field asks for."""

    def every(wanted: Any, subject: Observed) -> Iterator[Outcome]:
        items = wanted.items() if isinstance(wanted, Mapping) else wanted
        return (check(one, subject) for one in items)

    CHECKS[check.__name__] = every
    return check


def _unless(
    holds: bool, check: str, message: str, expected: Any = None, actual: Any = None, at: str = ""
) -> Outcome:
    return None if holds else Failure(check, message, expected, actual, at)


def evaluate(expect: Expect, observed: Observed, *, all_failures: bool = False) -> Evaluation:
    """The first failure, or all of them, and how many checks were made; none at all is a failure
    too."""
    unusable = _unusable(expect, observed)
    if unusable is not None:
        return Evaluation((unusable,), 1)
    outcomes = (
        outcome
        for name, made in CHECKS.items()
        if (wanted := getattr(expect, name)) != getattr(_ASKS_NOTHING, name)
        for outcome in made(wanted, observed)
    )
    found = evaluation_of(outcomes, all_failures=all_failures, unasked=_output_schema(observed))
    if not found.failures or not observed.is_error or not observed.text:
        return found
    # What a tool says about its own error usually explains the failure.
    first, *others = found.failures
    message = f"{first.message}\n      server response: {_cut(observed.text)}"
    return Evaluation((replace(first, message=message), *others), found.checked)


def _unusable(expect: Expect, observed: Observed) -> Failure | None:
    """An answer that fails every test: an error nobody asked for, or a result that is none."""
    failing = failing_call(observed.method, observed.subject)
    if observed.problem:
        return Failure("result", f"{failing}: {observed.problem}", None, observed.result)
    asks_for_an_error = expect.error_code is not None or any(
        split_target(row.target)[0] == "error" for row in expect.checks
    )
    if observed.error is None or asks_for_an_error:
        return None
    message = f"{failing}: {error_text(observed.error)}"
    if expect.is_error:
        message += "; is_error means a result with isError=true, use error_code for this"
    return Failure("error", message, None, observed.error)


def _cut(text: str) -> str:
    return text[:_LONGEST_SIDE]


# -- The answer as a whole, and its text ---------------------------------------------------------


@_whole
def not_error(_wanted: bool, subject: Observed) -> Outcome:
    if subject.error is not None:
        message = f"expected no error but got {error_text(subject.error)}"
        return Failure("not_error", message, None, subject.error)
    message = "expected no error but tool returned isError=true"
    return _unless(not subject.is_error, "not_error", message, False, True)


@_whole
def is_error(_wanted: bool, subject: Observed) -> Outcome:
    if subject.error is not None:
        message = f"expected isError=true but got {error_text(subject.error)}"
        return Failure("is_error", message, True, subject.error)
    message = "expected error but tool returned isError=false"
    return _unless(subject.is_error, "is_error", message, True, False)


@_whole
def not_empty(_wanted: bool, subject: Observed) -> Outcome:
    text = subject.text
    message = f"expected non-empty result, got: {quote(trim_space(text))}"
    is_empty = matching.is_empty(text) or listed_by(subject.method, subject.result) == []
    return _unless(not is_empty, "not_empty", message, True, text)


@_whole
def equals(wanted: str, subject: Observed) -> Outcome:
    text = subject.text
    message = f"expected exact match:\n  want: {_cut(wanted)}\n  got:  {_cut(text)}"
    return _unless(trim_space(text) == trim_space(wanted), "equals", message, wanted, text)


@_each
def contains(wanted: str, subject: Observed) -> Outcome:
    text = subject.text
    message = f"expected result to contain {quote(wanted)}, got: {first_runes(text)}"
    return _unless(wanted in text, "contains", message, wanted, text)


@_whole
def contains_any(wanted: Sequence[str], subject: Observed) -> Outcome:
    text = subject.text
    listed = quote_all(wanted)
    message = f"expected result to contain at least one of {listed}, got: {first_runes(text)}"
    found = any(one in text for one in wanted)
    return _unless(found, "contains_any", message, list(wanted), text)


@_each
def not_contains(unwanted: str, subject: Observed) -> Outcome:
    text = subject.text
    message = f"expected result NOT to contain {quote(unwanted)}"
    return _unless(unwanted not in text, "not_contains", message, unwanted, text)


@_each
def matches_regex(pattern: str, subject: Observed) -> Outcome:
    text = subject.text
    if problem := pattern_problem(pattern):
        message = f"matches_regex: invalid pattern {quote(pattern)}: {problem}"
        return Failure("matches_regex", message, pattern, text)
    message = f"expected result to match regex {quote(pattern)}, got: {first_runes(text)}"
    found = found_in(pattern, subject.encoded)
    return _unless(found, "matches_regex", message, pattern, text)


def _json_path(asked: Mapping[str, Any], subject: Observed) -> Iterator[Outcome]:
    from mcptest.suite.jsonpath import PathError, value_at

    document, reason = subject.document
    if document is ABSENT:
        message = f"json_path: result is not valid JSON: {reason}"
        yield Failure("json_path", message, dict(asked), subject.text)
        return
    for path, wanted in sorted(asked.items()):
        beginning = f"json_path {quote(path)}: "
        try:
            actual = value_at(document, path)
        except PathError as error:
            yield Failure("json_path", f"{beginning}{error}", wanted, None, path)
            continue
        same = loosely_equal(wanted, actual)
        message = f"{beginning}want {_cut(value_text(wanted))}, got {_cut(value_text(actual))}"
        yield _unless(same, "json_path", message, wanted, actual, path)


CHECKS["json_path"] = _json_path


@_whole
def min_results(least: int, subject: Observed) -> Outcome:
    count, failure = _count("min_results", subject)
    message = f"expected at least {least} results, got {count}"
    return failure or _unless(count >= least, "min_results", message, least, count)


@_whole
def max_results(most: int, subject: Observed) -> Outcome:
    count, failure = _count("max_results", subject)
    message = f"expected at most {most} results, got {count}"
    return failure or _unless(count <= most, "max_results", message, most, count)


# Where an object that wraps a list keeps it. The first five are mcp-assert's.
_WRAPPERS = ("locations", "items", "results", "references", "symbols")


def _count(name: str, subject: Observed) -> tuple[int, Failure | None]:
    document, reason = subject.document
    results = _results_of(document)
    if results is not None:
        return len(results), None
    if document is not ABSENT:
        kind = {"boolean": "bool"}.get(json_type(document), json_type(document))
        reason = f"json: cannot unmarshal {kind} into Go value of type []interface {{}}"
    message = f"min/max_results: result is not an array or object with array field: {reason}"
    return 0, Failure(name, message, None, subject.text)


def _results_of(document: Any) -> list[Any] | None:
    if isinstance(document, list):
        return document
    if document is None:
        return []
    if not isinstance(document, dict):
        return None
    completion = document.get("completion")
    lists = [document.get(name) for name in (*_WRAPPERS, *LIST_MEMBERS.values())]
    lists.append(completion.get("values") if isinstance(completion, dict) else None)
    return next((found for found in lists if isinstance(found, list)), None)


@_whole
def net_delta(wanted: int, subject: Observed) -> Outcome:
    document, reason = _object_in(subject.text)
    if reason:
        message = f"net_delta: result is not valid JSON: {reason}"
        return Failure("net_delta", message, wanted, subject.text)
    actual = document.get("net_delta")
    message = "net_delta: field not found or not a number in result"
    if is_number(actual):
        message = f"expected net_delta={wanted}, got {value_text(actual)}"
    same = is_number(actual) and actual == wanted
    return _unless(same, "net_delta", message, wanted, actual)


def _object_in(text: str) -> tuple[dict[str, Any], str]:
    """The object that a text is as JSON, or why it is none."""
    value, reason = whole_text(text)
    if isinstance(value, dict):
        return value, ""
    return {}, reason or f"expected an object, got {json_type(value)}"


# -- Files, seen through the view that the runner gives ------------------------------------------


def _content(check: str, path: str, subject: Observed) -> tuple[bytes, Failure | None]:
    """A file's content, or that it can't be read: when nobody looked at the disk, nothing can."""
    files = subject.files
    content = None if files is None else files.read(path)
    if content is not None:
        return content, None
    there = files is None or files.exists(path)
    why = "not readable as a file" if there else "no such file or directory"
    return b"", Failure(check, f"{check}: cannot read {path}: open {path}: {why}", pointer=path)


@_each
def file_contains(asked: tuple[str, str], subject: Observed) -> Outcome:
    path, wanted = asked
    content, failure = _content("file_contains", path, subject)
    message = f"file_contains: {path} does not contain {quote(wanted)}"
    there = wanted.encode("utf-8", "surrogatepass") in content
    return failure or _unless(there, "file_contains", message, wanted, _shown(content), path)


@_each
def file_not_contains(asked: tuple[str, str], subject: Observed) -> Outcome:
    path, unwanted = asked
    content, failure = _content("file_not_contains", path, subject)
    message = f"file_not_contains: {path} contains {quote(unwanted)}"
    absent = unwanted.encode("utf-8", "surrogatepass") not in content
    return failure or _unless(absent, "file_not_contains", message, unwanted, _shown(content), path)


@_each
def file_not_exists(path: str, subject: Observed) -> Outcome:
    message = f"file_not_exists: expected {path} not to exist, but it does"
    there = subject.files is None or subject.files.exists(path)
    return _unless(not there, "file_not_exists", message, False, True, path)


@_whole
def in_order(wanted: Sequence[str], subject: Observed) -> Outcome:
    text = subject.text
    missing, position = matching.first_out_of_order(text, wanted) or ("", 0)
    place = len(as_bytes(text[:position]))
    message = f"in_order: {quote(missing)} not found after position {place} in result"
    return _unless(not missing, "in_order", message, list(wanted), text)


@_each
def file_unchanged(path: str, subject: Observed) -> Outcome:
    before = subject.snapshots.get(path)
    if before is None:
        return Failure("file_unchanged", f"file_unchanged: no snapshot for {path}", pointer=path)
    after, failure = _content("file_unchanged", path, subject)
    message = f"file_unchanged: {path} was modified"
    sides = (_shown(before), _shown(after))
    return failure or _unless(after == before, "file_unchanged", message, *sides, path)


def _shown(content: bytes) -> str:
    return content[:_LONGEST_SIDE].decode("utf-8", "replace")


# -- What mcp-assert has in other places, or not at all ------------------------------------------


@_whole
def min_progress(least: int, subject: Observed) -> Outcome:
    count = subject.progress
    if count is None:
        message = "min_progress: progress was not captured, set capture_progress: true"
        return Failure("min_progress", message, least, None)
    message = f"expected at least {least} progress notification(s), got {count}"
    return _unless(count >= least, "min_progress", message, least, count)


@_whole
def error_code(wanted: int, subject: Observed) -> Outcome:
    error = subject.error
    message = f"expected JSON-RPC error {wanted}, but the call returned a result"
    if error is not None:
        message = f"expected JSON-RPC error {wanted}, got {error_text(error)}"
    return _unless(code_of(error) == wanted, "error_code", message, wanted, code_of(error))


@_whole
def schema(wanted: Any, subject: Observed) -> Outcome:
    if (value := subject.structured) is not ABSENT:
        return _misfit("schema", "schema: structuredContent", value, wanted)
    value, reason = subject.document
    if value is not ABSENT:
        return _misfit("schema", "schema: the text", value, wanted)
    message = f"schema: there is no structuredContent, and the text is not JSON: {reason}"
    return Failure("schema", message, wanted, subject.text)


def _output_schema(observed: Observed) -> Iterator[Outcome]:
    """Structured content has to fit the tool's own schema, whether a test asks for it or not.

    A result that reports an error is exempt, as in the SDKs: it has nothing to fit.
    """
    value, wanted = observed.structured, observed.output_schema
    if value is not ABSENT and wanted is not None and not observed.is_error:
        of_tool = f" of {observed.subject}" if observed.subject else ""
        yield _misfit("output_schema", f"output_schema: structuredContent{of_tool}", value, wanted)


def _misfit(check: str, beginning: str, value: Any, wanted: Any) -> Outcome:
    found = matching.schema(value, wanted)
    return found and replace(found, check=check, message=f"{beginning} {found.message}")


@_whole
def max_duration(most: float, subject: Observed) -> Outcome:
    actual = subject.duration
    message = f"max_duration: expected a response within {most:g}s, it took {actual:.3f}s"
    return _unless(actual <= most, "max_duration", message, most, actual)


@_each
def checks(row: Expectation, subject: Observed) -> Outcome:
    found = failure_of(row, *resolve(row.target, subject))
    return found and replace(found, check="checks", pointer=row.target + found.pointer)


# -- `assert_logging` and `assert_notifications`: what came beside the answer --------------------

LOG_METHOD = "notifications/message"
_Sent: TypeAlias = Sequence[Mapping[str, Any]]


def check_logging(
    expect: LoggingExpect, notifications: _Sent, *, all_failures: bool = False
) -> Evaluation:
    """Judge the log messages among all notifications of a call."""
    params = (sent.get("params") for sent in notifications if sent.get("method") == LOG_METHOD)
    messages = [one if isinstance(one, dict) else {} for one in params]
    return evaluation_of(_log_outcomes(expect, messages), all_failures=all_failures)


def _log_outcomes(expect: LoggingExpect, messages: _Sent) -> Iterator[Outcome]:
    count, least = len(messages), expect.min_messages
    if least is not None:
        message = f"expected at least {least} log message(s), got {count}"
        yield _unless(count >= least, "min_messages", message, least, count)
    levels = {level for sent in messages if isinstance(level := sent.get("level"), str)}
    for level in expect.contains_level:
        message = f"expected log message at level {quote(level)}, not found"
        yield _unless(level in levels, "contains_level", message, level, sorted(levels))
    texts: list[str] = []
    for data in (sent["data"] for sent in messages if "data" in sent and expect.contains_data):
        if isinstance(data, str):
            texts.append(data)
        else:  # a suite may spell it as Go prints it, and as JSON
            doubles = value_text(data, numbers_as_doubles=True)
            texts += [value_text(data), doubles, compact_json(data)]
    for wanted in expect.contains_data:
        message = f"expected log data containing {quote(wanted)}, not found"
        yield _unless(any(wanted in text for text in texts), "contains_data", message, wanted)


def check_notifications(
    expect: NotificationExpect, notifications: _Sent, *, all_failures: bool = False
) -> Evaluation:
    """Judge every notification that came during a call."""
    return evaluation_of(_notification_outcomes(expect, notifications), all_failures=all_failures)


def _notification_outcomes(expect: NotificationExpect, notifications: _Sent) -> Iterator[Outcome]:
    count, least, most = len(notifications), expect.min_count, expect.max_count
    if least is not None:
        message = f"expected at least {least} notification(s), got {count}"
        yield _unless(count >= least, "min_count", message, least, count)
    if most is not None:
        message = f"expected at most {most} notification(s), got {count}"
        yield _unless(count <= most, "max_count", message, most, count)
    came = {sent["method"] for sent in notifications if isinstance(sent.get("method"), str)}
    for method in expect.methods:
        message = f"expected notification method {quote(method)} but it was not received"
        yield _unless(method in came, "methods", message, method, sorted(came))
    for method in expect.not_methods:
        message = f"notification method {quote(method)} was received but should not have been"
        yield _unless(method not in came, "not_methods", message, method, sorted(came))
    asks_for_data = expect.contains_data or expect.not_contains_data
    texts = [params_text(sent) for sent in notifications] if asks_for_data else []
    for wanted in expect.contains_data:
        message = f"no notification params contain {quote(wanted)}"
        yield _unless(any(wanted in text for text in texts), "contains_data", message, wanted)
    for unwanted in expect.not_contains_data:
        message = f"notification params contain {quote(unwanted)} but should not"
        bad = next((text for text in texts if unwanted in text), None)
        yield _unless(bad is None, "not_contains_data", message, unwanted, bad)


def params_text(notification: Mapping[str, Any]) -> str:
    """Compact JSON with sorted keys, `_meta` left out; `null` when there are no params."""
    params = notification.get("params")
    if isinstance(params, dict):
        params = {name: value for name, value in params.items() if name != "_meta"}
    return compact_json(params, sort_keys=True)


# -- `trajectory`: the calls of a trace ----------------------------------------------------------

_SHOWN_CALLS = 200
_Trace: TypeAlias = Sequence[TraceEntry]


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
        event, reason = _object_in(text)
        if reason:
            raise AuditLogError(f"audit log line {number}: invalid JSON: {reason}")
        if isinstance(tool := event.get("tool"), str):
            given = (event.get("args"), event.get("arguments"))
            calls.append(TraceEntry(tool, next((a for a in given if isinstance(a, dict)), {})))
        else:
            others += 1
    if not calls:
        found = f"none of its {others} events has a tool" if others else "it has no events"
        raise AuditLogError(f"{found}, so nothing was observed")
    return tuple(calls)


def check_trajectory(
    checks: Sequence[TrajectoryCheck], trace: _Trace, *, all_failures: bool = False
) -> Evaluation:
    """The first check that the trace does not meet, or all of them."""
    outcomes = (outcome for check in checks for outcome in _trajectory_outcomes(check, trace))
    return evaluation_of(outcomes, all_failures=all_failures)


def _trajectory_outcomes(check: TrajectoryCheck, trace: _Trace) -> Iterator[Outcome]:
    called = {call.tool for call in trace}
    match check.type:
        case "order":
            if check.tools:
                yield _order(check.tools, trace)
        case "presence":
            for tool in check.tools:
                yield None if tool in called else _not_found("presence", tool, trace)
        case "absence":
            for tool in check.tools:
                message = f"absence: {quote(tool)} appeared in trace but should not have"
                yield _unless(tool not in called, "absence", message, tool, _tools(trace))
        case "args_contain":
            yield _args_contain(check, trace)


def _order(tools: Sequence[str], trace: _Trace) -> Outcome:
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


def _args_contain(check: TrajectoryCheck, trace: _Trace) -> Outcome:
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


def _not_found(check: str, tool: str, trace: _Trace) -> Failure:
    message = f"{check}: {quote(tool)} not found in trace (got: {_tools(trace)})"
    return Failure(check, message, tool, _tools(trace))


def _tools(trace: _Trace) -> str:
    names = [call.tool for call in trace[:_SHOWN_CALLS]]
    if len(trace) > _SHOWN_CALLS:
        names.append(f"and {len(trace) - _SHOWN_CALLS} more")
    return "[" + ", ".join(names) + "]"
