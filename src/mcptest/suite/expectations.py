"""Does an answer meet an `expect` block? Pure: no clock, no disk, no server.

The order is that of mcp-assert, ours come after; its messages are kept where it has them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from mcptest.core.message import ABSENT, json_type
from mcptest.suite import matching
from mcptest.suite.go_format import error_code as code_of
from mcptest.suite.go_format import (
    error_text,
    first_runes,
    quote,
    quote_all,
    trim_space,
    value_text,
)
from mcptest.suite.matching import is_number, loosely_equal
from mcptest.suite.model import (
    Expect,
    LoggingExpect,
    NotificationExpect,
    TraceEntry,
    TrajectoryCheck,
)
from mcptest.suite.observed import (
    Evaluation,
    Failure,
    FileView,
    Observed,
    Outcome,
    compact_json,
    evaluation_of,
    whole_text,
)
from mcptest.suite.regex import as_bytes, found_in, pattern_problem
from mcptest.suite.targets import AnswerUnderTest, resolve, split_target

# -- Expectations on the answer as a whole -------------------------------------------------------


def not_error(expect: Expect, subject: AnswerUnderTest) -> Iterator[Outcome]:
    if not expect.not_error:
        return
    observed = subject.observed
    if observed.error is not None:
        message = f"expected no error but got {error_text(observed.error)}"
        yield Failure("not_error", message, None, observed.error)
        return
    message = "expected no error but tool returned isError=true"
    yield Failure("not_error", message, False, True) if observed.is_error else None


def is_error(expect: Expect, subject: AnswerUnderTest) -> Iterator[Outcome]:
    if not expect.is_error:
        return
    observed = subject.observed
    if observed.error is not None:
        message = f"expected isError=true but got {error_text(observed.error)}"
        yield Failure("is_error", message, True, observed.error)
        return
    message = "expected error but tool returned isError=false"
    yield None if observed.is_error else Failure("is_error", message, True, False)


def min_progress(expect: Expect, subject: AnswerUnderTest) -> Iterator[Outcome]:
    least, count = expect.min_progress, subject.observed.progress
    if least is None:
        return
    if count is None:
        message = "min_progress: progress was not captured, set capture_progress: true"
        yield Failure("min_progress", message, least, None)
        return
    message = f"expected at least {least} progress notification(s), got {count}"
    yield None if count >= least else Failure("min_progress", message, least, count)


def error_code(expect: Expect, subject: AnswerUnderTest) -> Iterator[Outcome]:
    wanted, error = expect.error_code, subject.observed.error
    if wanted is None:
        return
    actual = code_of(error)
    if error is None:
        message = f"expected JSON-RPC error {wanted}, but the call was answered with a result"
    else:
        message = f"expected JSON-RPC error {wanted}, got {error_text(error)}"
    yield None if actual == wanted else Failure("error_code", message, wanted, actual)


def schema(expect: Expect, subject: AnswerUnderTest) -> Iterator[Outcome]:
    if expect.schema is None:
        return
    value: Any = subject.observed.structured
    looked_at = "structuredContent"
    if value is ABSENT:
        value, reason = subject.document
        looked_at = "the text"
        if value is ABSENT:
            message = f"schema: there is no structuredContent, and the text is not JSON: {reason}"
            yield Failure("schema", message, expect.schema, subject.observed.text)
            return
    yield _misfit("schema", f"schema: {looked_at}", value, expect.schema)


def output_schema(subject: AnswerUnderTest) -> Iterator[Outcome]:
    """Structured content has to fit the tool's own schema, whether a test asks for it or not.

    A result that reports an error is exempt, as in the SDKs: it has nothing to fit.
    """
    observed = subject.observed
    if observed.structured is ABSENT or observed.output_schema is None or observed.is_error:
        return
    of_tool = f" of {observed.subject}" if observed.subject else ""
    yield _misfit(
        "output_schema",
        f"output_schema: structuredContent{of_tool}",
        observed.structured,
        observed.output_schema,
    )


def _misfit(check: str, beginning: str, value: Any, wanted: Any) -> Outcome:
    mismatch = matching.schema(value, wanted)
    if mismatch is None:
        return None
    message = f"{beginning} {mismatch.reason}"
    return Failure(check, message, mismatch.expected, mismatch.actual, mismatch.pointer)


def max_duration(expect: Expect, subject: AnswerUnderTest) -> Iterator[Outcome]:
    most, actual = expect.max_duration, subject.observed.duration
    if most is None:
        return
    message = f"max_duration: expected an answer within {most:g} s, it took {actual:.3f} s"
    yield None if actual <= most else Failure("max_duration", message, most, actual)


def target_checks(expect: Expect, subject: AnswerUnderTest) -> Iterator[Outcome]:
    for row in expect.checks:
        value, missing = resolve(row.target, subject)
        mismatch = matching.match(row.matcher, value, missing)
        if mismatch is None:
            yield None
            continue
        message = f"{row.target}: {mismatch.reason}"
        pointer = row.target + mismatch.pointer
        yield Failure("checks", message, mismatch.expected, mismatch.actual, pointer)


# -- Expectations on the text under test, with mcp-assert's messages -----------------------------

# Where an object that wraps a list keeps it. The first five are mcp-assert's.
_WRAPPERS = ("locations", "items", "results", "references", "symbols")
_LIST_RESULTS = ("prompts", "resources", "resourceTemplates", "tools")

_LONGEST_SIDE = 2000


def _cut(text: str) -> str:
    return first_runes(text, _LONGEST_SIDE)


def not_empty(expect: Expect, subject: AnswerUnderTest) -> Iterator[Outcome]:
    if not expect.not_empty:
        return
    text = subject.observed.text
    trimmed = trim_space(text)
    yield (
        Failure("not_empty", f"expected non-empty result, got: {quote(trimmed)}", True, text)
        if matching.is_empty(text) or subject.observed.lists_nothing
        else None
    )


def equals(expect: Expect, subject: AnswerUnderTest) -> Iterator[Outcome]:
    wanted, text = expect.equals, subject.observed.text
    if wanted is None:
        return
    sides = f"  want: {_cut(wanted)}\n  got:  {_cut(text)}"
    message = f"expected exact match:\n{sides}"
    same = matching.equals_trimmed(text, wanted) is None
    yield None if same else Failure("equals", message, wanted, text)


def contains(expect: Expect, subject: AnswerUnderTest) -> Iterator[Outcome]:
    text = subject.observed.text
    for wanted in expect.contains:
        message = f"expected result to contain {quote(wanted)}, got: {first_runes(text)}"
        found = matching.holds(text, wanted)
        yield None if found else Failure("contains", message, wanted, text)


def contains_any(expect: Expect, subject: AnswerUnderTest) -> Iterator[Outcome]:
    if not expect.contains_any:
        return
    text = subject.observed.text
    listed = quote_all(expect.contains_any)
    message = f"expected result to contain at least one of {listed}, got: {first_runes(text)}"
    found = matching.contains_any(text, expect.contains_any) is None
    yield None if found else Failure("contains_any", message, list(expect.contains_any), text)


def not_contains(expect: Expect, subject: AnswerUnderTest) -> Iterator[Outcome]:
    text = subject.observed.text
    for unwanted in expect.not_contains:
        message = f"expected result NOT to contain {quote(unwanted)}"
        found = matching.holds(text, unwanted)
        yield Failure("not_contains", message, unwanted, text) if found else None


def matches_regex(expect: Expect, subject: AnswerUnderTest) -> Iterator[Outcome]:
    text = subject.observed.text
    encoded = as_bytes(text) if expect.matches_regex else b""
    for pattern in expect.matches_regex:
        problem = pattern_problem(pattern)
        if problem is not None:
            message = f"matches_regex: invalid pattern {quote(pattern)}: {problem}"
            yield Failure("matches_regex", message, pattern, text)
            continue
        message = f"expected result to match regex {quote(pattern)}, got: {first_runes(text)}"
        found = found_in(pattern, encoded)
        yield None if found else Failure("matches_regex", message, pattern, text)


def in_order(expect: Expect, subject: AnswerUnderTest) -> Iterator[Outcome]:
    if not expect.in_order:
        return
    text = subject.observed.text
    lost = matching.first_out_of_order(text, expect.in_order)
    if lost is None:
        yield None
        return
    missing, position = lost
    place = len(as_bytes(text[:position]))
    message = f"in_order: {quote(missing)} not found after position {place} in result"
    yield Failure("in_order", message, list(expect.in_order), text)


def json_path(expect: Expect, subject: AnswerUnderTest) -> Iterator[Outcome]:
    if not expect.json_path:
        return
    document, reason = subject.document
    if document is ABSENT:
        message = f"json_path: result is not valid JSON: {reason}"
        yield Failure("json_path", message, dict(expect.json_path), subject.observed.text)
        return
    for path in sorted(expect.json_path):
        yield _at_path(document, path, expect.json_path[path])


def _at_path(document: Any, path: str, wanted: Any) -> Outcome:
    from mcptest.suite.jsonpath import PathError, compile_path, lookup, query

    try:
        compiled = compile_path(path)
        actual = (lookup if compiled.singular else query)(document, compiled)
    except PathError as error:
        return Failure("json_path", f"json_path {quote(path)}: {error}", wanted, None, path)
    if loosely_equal(wanted, actual):
        return None
    difference = f"want {_cut(value_text(wanted))}, got {_cut(value_text(actual))}"
    return Failure("json_path", f"json_path {quote(path)}: {difference}", wanted, actual, path)


def min_results(expect: Expect, subject: AnswerUnderTest) -> Iterator[Outcome]:
    least = expect.min_results
    if least is None:
        return
    count, failure = _count("min_results", subject)
    message = f"expected at least {least} results, got {count}"
    yield failure or (None if count >= least else Failure("min_results", message, least, count))


def max_results(expect: Expect, subject: AnswerUnderTest) -> Iterator[Outcome]:
    most = expect.max_results
    if most is None:
        return
    count, failure = _count("max_results", subject)
    message = f"expected at most {most} results, got {count}"
    yield failure or (None if count <= most else Failure("max_results", message, most, count))


def _count(name: str, subject: AnswerUnderTest) -> tuple[int, Failure | None]:
    document, reason = subject.document
    results = _results_of(document)
    if results is not None:
        return len(results), None
    if document is not ABSENT:
        kind = {"boolean": "bool"}.get(json_type(document), json_type(document))
        reason = f"json: cannot unmarshal {kind} into Go value of type []interface {{}}"
    message = f"min/max_results: result is not an array or object with array field: {reason}"
    return 0, Failure(name, message, None, subject.observed.text)


def _results_of(document: Any) -> list[Any] | None:
    if isinstance(document, list):
        return document
    if document is None:
        return []
    if not isinstance(document, dict):
        return None
    completion = document.get("completion")
    lists = [document.get(name) for name in (*_WRAPPERS, *_LIST_RESULTS)]
    lists.append(completion.get("values") if isinstance(completion, dict) else None)
    return next((found for found in lists if isinstance(found, list)), None)


def net_delta(expect: Expect, subject: AnswerUnderTest) -> Iterator[Outcome]:
    wanted, text = expect.net_delta, subject.observed.text
    if wanted is None:
        return
    document, reason = whole_text(text)
    if document is not ABSENT and not isinstance(document, dict):
        reason = f"expected an object, got {json_type(document)}"
    if reason:
        message = f"net_delta: result is not valid JSON: {reason}"
        yield Failure("net_delta", message, wanted, text)
        return
    actual = document.get("net_delta")
    message = "net_delta: field not found or not a number in result"
    if is_number(actual):
        message = f"expected net_delta={wanted}, got {value_text(actual)}"
    same = is_number(actual) and actual == wanted
    yield None if same else Failure("net_delta", message, wanted, actual)


# -- Expectations on files, seen through the view that the runner gives --------------------------


class _Unseen:
    """The disk, when nobody looked at it: whatever is asked of it fails."""

    def read(self, path: str) -> bytes | None:
        return None

    def exists(self, path: str) -> bool:
        return True


def _files(subject: AnswerUnderTest) -> FileView:
    return subject.observed.files or _Unseen()


def file_contains(expect: Expect, subject: AnswerUnderTest) -> Iterator[Outcome]:
    for path, wanted in expect.file_contains.items():
        content = _files(subject).read(path)
        message = f"file_contains: {path} does not contain {quote(wanted)}"
        if content is None:
            yield _unreadable("file_contains", path, _files(subject))
        elif _bytes(wanted) in content:
            yield None
        else:
            yield Failure("file_contains", message, wanted, _shown(content), path)


def file_not_contains(expect: Expect, subject: AnswerUnderTest) -> Iterator[Outcome]:
    for path, unwanted in expect.file_not_contains.items():
        content = _files(subject).read(path)
        message = f"file_not_contains: {path} contains {quote(unwanted)}"
        if content is None:
            yield _unreadable("file_not_contains", path, _files(subject))
        elif _bytes(unwanted) in content:
            yield Failure("file_not_contains", message, unwanted, _shown(content), path)
        else:
            yield None


def file_not_exists(expect: Expect, subject: AnswerUnderTest) -> Iterator[Outcome]:
    for path in expect.file_not_exists:
        message = f"file_not_exists: expected {path} not to exist, but it does"
        there = _files(subject).exists(path)
        yield Failure("file_not_exists", message, False, True, path) if there else None


def file_unchanged(expect: Expect, subject: AnswerUnderTest) -> Iterator[Outcome]:
    for path in expect.file_unchanged:
        before = subject.observed.snapshots.get(path)
        if before is None:
            yield Failure("file_unchanged", f"file_unchanged: no snapshot for {path}", pointer=path)
            continue
        after = _files(subject).read(path)
        message = f"file_unchanged: {path} was modified"
        if after is None:
            yield _unreadable("file_unchanged", path, _files(subject))
        elif after == before:
            yield None
        else:
            yield Failure("file_unchanged", message, _shown(before), _shown(after), path)


def _unreadable(check: str, path: str, files: FileView) -> Failure:
    why = "it can't be read as a file" if files.exists(path) else "no such file or directory"
    return Failure(check, f"{check}: cannot read {path}: open {path}: {why}", pointer=path)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _shown(content: bytes) -> str:
    return content[:2000].decode("utf-8", "replace")


# -- Does an answer meet an `expect` block? ------------------------------------------------------

__all__ = ["CHECKS", "Evaluation", "Failure", "check", "evaluate"]

_RESPONSE_SHOWN = 2000

CHECKS: tuple[tuple[str, Callable[[Expect, AnswerUnderTest], Iterator[Outcome]]], ...] = (
    ("not_error", not_error),
    ("is_error", is_error),
    ("not_empty", not_empty),
    ("equals", equals),
    ("contains", contains),
    ("contains_any", contains_any),
    ("not_contains", not_contains),
    ("matches_regex", matches_regex),
    ("json_path", json_path),
    ("min_results", min_results),
    ("max_results", max_results),
    ("net_delta", net_delta),
    ("file_contains", file_contains),
    ("file_not_contains", file_not_contains),
    ("file_not_exists", file_not_exists),
    ("in_order", in_order),
    ("file_unchanged", file_unchanged),
    ("min_progress", min_progress),
    ("error_code", error_code),
    ("schema", schema),
    ("max_duration", max_duration),
    ("checks", target_checks),
)
"""Every expectation by name, in the order of evaluation."""


def check(expect: Expect, observed: Observed, *, all_failures: bool = False) -> list[Failure]:
    """The first failure, or all of them; empty when everything that was asked for holds."""
    return list(evaluate(expect, observed, all_failures=all_failures).failures)


def evaluate(expect: Expect, observed: Observed, *, all_failures: bool = False) -> Evaluation:
    """As `check`, and how many checks were made. Nothing checked is a failure."""
    unusable = _unusable(expect, observed)
    if unusable is not None:
        return Evaluation((unusable,), 1)
    subject = AnswerUnderTest(observed)
    outcomes = (outcome for _, made in CHECKS for outcome in made(expect, subject))
    found = evaluation_of(outcomes, all_failures=all_failures, unasked=output_schema(subject))
    return _with_the_response(found, observed)


def _unusable(expect: Expect, observed: Observed) -> Failure | None:
    """An answer that fails every test: an error nobody asked for, or a result that is none."""
    if observed.problem:
        message = f"{observed.failing}: {observed.problem}"
        return Failure("result", message, None, observed.result)
    asks_for_an_error = expect.error_code is not None or any(
        split_target(row.target)[0] == "error" for row in expect.checks
    )
    if observed.error is None or asks_for_an_error:
        return None
    message = f"{observed.failing}: {error_text(observed.error)}"
    if expect.is_error:
        message += "; is_error means a result with isError=true, use error_code for this"
    return Failure("error", message, None, observed.error)


def _with_the_response(found: Evaluation, observed: Observed) -> Evaluation:
    """What a tool says about its own error usually explains the failure."""
    if not found.failures or not observed.is_error or not observed.text:
        return found
    first, *others = found.failures
    response = first_runes(observed.text, _RESPONSE_SHOWN)
    message = f"{first.message}\n      server response: {response}"
    return Evaluation((msgspec.structs.replace(first, message=message), *others), found.checked)


# -- Expectations of `assert_logging`, on the log messages that a server sent --------------------

LOG_METHOD = "notifications/message"


def check_logging(
    expect: LoggingExpect,
    notifications: Sequence[Mapping[str, Any]],
    *,
    all_failures: bool = False,
) -> Evaluation:
    """Judge the log messages among all notifications of a call."""
    params = (sent.get("params") for sent in notifications if sent.get("method") == LOG_METHOD)
    messages = [one if isinstance(one, dict) else {} for one in params]
    return evaluation_of(_outcomes(expect, messages), all_failures=all_failures)


def _outcomes(expect: LoggingExpect, messages: Sequence[Mapping[str, Any]]) -> Iterator[Outcome]:
    count, least = len(messages), expect.min_messages
    if least is not None:
        message = f"expected at least {least} log message(s), got {count}"
        yield None if count >= least else Failure("min_messages", message, least, count)
    levels = {level for sent in messages if isinstance(level := sent.get("level"), str)}
    for level in expect.contains_level:
        message = f"expected log message at level {quote(level)}, not found"
        found = level in levels
        yield None if found else Failure("contains_level", message, level, sorted(levels))
    if expect.contains_data:
        texts = [data_texts(sent["data"]) for sent in messages if "data" in sent]
        for wanted in expect.contains_data:
            message = f"expected log data containing {quote(wanted)}, not found"
            found = any(wanted in text for spellings in texts for text in spellings)
            yield None if found else Failure("contains_data", message, wanted, None)


def data_texts(data: Any) -> tuple[str, ...]:
    """How the data of a log message may be spelled in a suite: as Go prints it, and as JSON."""
    if isinstance(data, str):
        return (data,)
    return value_text(data), value_text(data, numbers_as_doubles=True), compact_json(data)


# -- Expectations of `assert_notifications`, and the params of a notification as text ------------


def check_notifications(
    expect: NotificationExpect,
    notifications: Sequence[Mapping[str, Any]],
    *,
    all_failures: bool = False,
) -> Evaluation:
    """Judge every notification that came during a call."""
    return evaluation_of(_notification_outcomes(expect, notifications), all_failures=all_failures)


def _notification_outcomes(
    expect: NotificationExpect, notifications: Sequence[Mapping[str, Any]]
) -> Iterator[Outcome]:
    count, least, most = len(notifications), expect.min_count, expect.max_count
    if least is not None:
        message = f"expected at least {least} notification(s), got {count}"
        yield None if count >= least else Failure("min_count", message, least, count)
    if most is not None:
        message = f"expected at most {most} notification(s), got {count}"
        yield None if count <= most else Failure("max_count", message, most, count)
    came = {sent["method"] for sent in notifications if isinstance(sent.get("method"), str)}
    for method in expect.methods:
        message = f"expected notification method {quote(method)} but it was not received"
        yield None if method in came else Failure("methods", message, method, sorted(came))
    for method in expect.not_methods:
        message = f"notification method {quote(method)} was received but should not have been"
        yield Failure("not_methods", message, method, sorted(came)) if method in came else None
    asks_for_data = expect.contains_data or expect.not_contains_data
    texts = [params_text(sent) for sent in notifications] if asks_for_data else []
    for wanted in expect.contains_data:
        message = f"no notification params contain {quote(wanted)}"
        found = any(wanted in text for text in texts)
        yield None if found else Failure("contains_data", message, wanted, None)
    for unwanted in expect.not_contains_data:
        message = f"notification params contain {quote(unwanted)} but should not"
        bad = next((text for text in texts if unwanted in text), None)
        yield None if bad is None else Failure("not_contains_data", message, unwanted, bad)


def params_text(notification: Mapping[str, Any]) -> str:
    """Compact JSON with sorted keys, `_meta` left out; `null` when there are no params."""
    params = notification.get("params")
    if isinstance(params, dict):
        params = {name: value for name, value in params.items() if name != "_meta"}
    return compact_json(params, sort_keys=True)


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
            given = (event.get("args"), event.get("arguments"))
            calls.append(TraceEntry(tool, next((a for a in given if isinstance(a, dict)), {})))
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


def check_trajectory(
    checks: Sequence[TrajectoryCheck], trace: Sequence[TraceEntry], *, all_failures: bool = False
) -> Evaluation:
    """The first check that the trace does not meet, or all of them."""
    outcomes = (outcome for check in checks for outcome in _trajectory_outcomes(check, trace))
    return evaluation_of(outcomes, all_failures=all_failures)


def _trajectory_outcomes(check: TrajectoryCheck, trace: Sequence[TraceEntry]) -> Iterator[Outcome]:
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
                there = tool in called
                yield Failure("absence", message, tool, _tools(trace)) if there else None
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
