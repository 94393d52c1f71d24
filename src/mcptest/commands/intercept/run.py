"""What `mcptest intercept` does: pass a session on, check its calls, report."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from mcptest.commands.options import duration, named_target
from mcptest.commands.reporting import (
    code_with_reports,
    page_of,
    say_unwritten,
    tell_written,
    write_files,
)
from mcptest.core.capture import AnyRecord, Frame, Trouble
from mcptest.core.errors import ErrorKind, ExitCode, McptestError, UsageError
from mcptest.core.limits import time_to_end
from mcptest.core.redaction import redaction
from mcptest.core.results import FailedCheck, Proof, RunReport, Status, TestResult, made_since
from mcptest.core.safe_text import show
from mcptest.probe.lanes import run_invariants_lane
from mcptest.probe.proxied_session import Passage, Passed, pass_through
from mcptest.probe.suites.settings import skip_reason
from mcptest.report import run_results
from mcptest.report.terminal import Style, columns, counted, say
from mcptest.suite.expectations import check_trajectory
from mcptest.suite.lane_blocks import InvariantsBlock
from mcptest.suite.load import load_suites
from mcptest.suite.model import Test, TraceEntry, TrajectoryBlock
from mcptest.transport.base import Sink
from mcptest.transport.recorder import Recorder
from mcptest.transport.target import Target
from mcptest.transport.temporary import temporary_folder
from mcptest.wire.json_text import UNREAD, has_too_many_values


def run_intercept(arguments: argparse.Namespace) -> int:
    target = named_target(arguments)
    endless = arguments.max_time in {"0", "0s"}
    limit = None if endless else duration(arguments.max_time, "--max-time")
    patience = None if limit is None else limit - time_to_end(limit)
    tests = trajectories_in(arguments.trajectory)
    passage = Passage.asked_for(arguments.listen, arguments.port_file, patience)
    try:
        intercepted = intercept(arguments, target, tests, passage, limit)
    except McptestError as error:
        raise error.masked(redaction.text) from None
    _print(intercepted, arguments)
    page = partial(_as_html, intercepted, arguments.save_capture)
    unwritten = write_files(arguments, intercepted.report, page)
    tell_written(arguments, sys.stderr)
    say_unwritten(unwritten)
    return code_with_reports(arguments, intercepted.code, unwritten)


def _print(intercepted: Intercepted, arguments: argparse.Namespace) -> None:
    """On stderr: stdout belongs to the agent."""
    if arguments.quiet and not intercepted.report.failed:
        return
    how = {"verbose": arguments.verbose, "width": columns()}
    style = Style.of(sys.stderr, no_color=arguments.no_color, **how)
    calls = () if arguments.quiet else intercepted.calls
    for line in intercepted_lines(calls, intercepted.report, style):
        say(sys.stderr, line + "\n")


def _as_html(intercepted: Intercepted, capture: Path | None) -> bytes:
    kept = [str(capture)] if capture is not None and capture.is_file() else []
    return page_of(intercepted.report, kept, name="mcptest intercept")


# -- The tool calls of a session that somebody else drives, noted as they go by ------------------

MOST_CALLS = 100_000
MOST_BYTES = 64 * 1024 * 1024
"""Of arguments, all calls together."""
_TOO_LARGE = frozenset(
    kind.value
    for kind in (ErrorKind.LINE_TOO_LONG, ErrorKind.EVENT_TOO_LARGE, ErrorKind.BODY_TOO_LARGE)
)


class _Asked(msgspec.Struct):
    """What has to be known of a message to see whether it is a call; the rest is skipped."""

    method: Any = None
    params: msgspec.Raw = msgspec.Raw()


_decode_one = msgspec.json.Decoder(_Asked).decode
_decode_batch = msgspec.json.Decoder(list[msgspec.Raw]).decode


class Trace:
    """Watches sessions on their way to the capture, before anything in them is masked."""

    def __init__(self) -> None:
        self.calls: list[TraceEntry] = []
        self.left_out = 0
        """Calls that were not kept: a trace without them proves nothing."""
        self.unread = ""
        """Why something that went by could not be looked at, where that was so."""
        self.messages = 0
        self.heard = False
        """Whether the server said anything."""
        self._bytes = 0

    def watch(self, sink: Sink) -> Sink:
        def noting(record: AnyRecord) -> None:
            if type(record) is Frame:
                self.messages += 1
                self.heard = self.heard or record.sender == "server"
                if has_too_many_values(record.raw):
                    self.unread = self.unread or f"a message from the {record.sender}: {UNREAD}"
                elif record.sender == "client":
                    self._note(record.raw)
            elif type(record) is Trouble and record.error in _TOO_LARGE:
                self.unread = self.unread or record.detail
            sink(record)

        return noting

    def _note(self, raw: bytes) -> None:
        for call, size in calls_in(raw):
            self._bytes += size
            if len(self.calls) < MOST_CALLS and self._bytes <= MOST_BYTES:
                self.calls.append(call)
            else:
                self.left_out += 1


def calls_in(raw: bytes) -> Iterator[tuple[TraceEntry, int]]:
    """The tool calls in a message or batch, each with the size of its arguments.

    A call without an id counts as well: whoever sent it meant to call the tool.
    """
    try:
        parts = _decode_batch(raw) if raw.lstrip()[:1] == b"[" else [raw]
    except (ValueError, RecursionError):
        return  # no JSON: nobody can have been called by it
    for part in parts:
        try:
            asked = _decode_one(part)
            if asked.method != "tools/call":
                continue
            params = msgspec.json.decode(asked.params)
        except (ValueError, RecursionError):
            continue
        if isinstance(params, dict) and isinstance(params.get("name"), str):
            arguments = params.get("arguments")
            entry = TraceEntry(params["name"], arguments if isinstance(arguments, dict) else {})
            yield entry, len(bytes(asked.params))


# -- Sitting between an agent and a server, then judging what the agent did and how both ---------

SESSION = "session"
_SHOWN = 300
_CALLS_TOLD = 20
_JUDGING = 1.0
"""Seconds for judging a session that took all the time there is."""


class Intercepted(msgspec.Struct, frozen=True):
    """The session is over, and judged."""

    report: RunReport
    calls: tuple[str, ...]
    """Each call as it may be shown; the first ones of many."""
    code: int


def trajectories_in(paths: Sequence[str]) -> tuple[Test, ...]:
    """The trajectories of the files; anything else in them is not for a session like this."""
    loaded = load_suites(paths, server_given=True, trace_given=True)
    tests = loaded.suite.tests
    if not any(isinstance(test.block, TrajectoryBlock) for test in tests):
        where = ", ".join(show(path, 120) for path in paths)
        raise UsageError(f"no trajectory in {where}", hint="see docs/commands/intercept.md")
    return tests


def intercept(
    arguments: argparse.Namespace,
    target: Target,
    tests: Sequence[Test],
    passage: Passage,
    limit: float | None,
) -> Intercepted:
    """Pass everything on until the session is over, then judge it. Raises PeerError.

    `limit` are the seconds for all of it, of which the session has most.
    """
    trace, capture = Trace(), arguments.save_capture
    began = time.monotonic()
    with contextlib.ExitStack() as lent:
        path = capture or lent.enter_context(temporary_folder()) / "session.jsonl"
        with Recorder(path, masker=redaction.masker) as recorder:
            passed = pass_through(target, recorder, passage, trace.watch)
        results = [
            *_session_results(passed, recorder, trace, limit),
            *_trajectory_results(tests, trace, capture),
        ]
        # An agent that does not wait for us to judge a long session gets what is known by then.
        interrupted = False
        try:
            if recorder.kept and not arguments.no_invariants:
                # What the session left of the limit, and a moment in any case.
                over = began + (limit or 0.0) - time.monotonic()
                left = None if limit is None else max(_JUDGING, over)
                block, kept = InvariantsBlock(strict=arguments.strict), capture is not None
                place = recorder.written_to
                results += run_invariants_lane(block, [place], kept=kept, limit=left)
        except KeyboardInterrupt:
            interrupted = True
    report = RunReport(
        results=tuple(results),
        interrupted=interrupted,
        notes=tuple(_notes(passed, trace, capture, recorder)),
        **made_since(began),
    )
    shown = tuple(map(_shown, trace.calls[:_CALLS_TOLD]))
    return Intercepted(report, shown, _code(report, passed, trace))


def _code(report: RunReport, passed: Passed, trace: Trace) -> int:
    """A check that failed decides; then the server's own end is ours."""
    if report.failed:
        return ExitCode.FAILED
    if report.interrupted:
        return ExitCode.INTERRUPTED
    if not trace.messages and passed.code == ExitCode.OK:
        return ExitCode.NOTHING_MATCHED
    return passed.code


# -- what is judged ------------------------------------------------------------------------


def _session_results(
    passed: Passed, recorder: Recorder, trace: Trace, limit: float | None
) -> Iterator[TestResult]:
    """What makes every other verdict doubtful."""
    if passed.timed_out:
        detail = f"timed out: the session was not over after {limit:g}s"
        yield TestResult(SESSION, Status.FAIL, detail, kind="timeout")
    elif passed.unasked and not trace.heard:
        detail = f"{passed.told} before it sent a message"
        yield TestResult(SESSION, Status.FAIL, detail, kind="start")
    if recorder.error is not None:
        detail = f"the capture is not complete: {recorder.error.strerror}"
        yield TestResult(SESSION, Status.FAIL, detail, kind="start")
    elif recorder.dropped:
        detail = f"the capture is full: {recorder.dropped} records did not fit"
        yield TestResult(SESSION, Status.FAIL, detail, kind="start")
    if trace.unread:
        detail = f"not all of it was judged: {trace.unread}"
        yield TestResult(SESSION, Status.FAIL, detail, kind="check")


def _trajectory_results(
    tests: Sequence[Test], trace: Trace, capture: Path | None
) -> Iterator[TestResult]:
    for test in tests:
        reason = skip_reason(test)
        if reason is None and not isinstance(test.block, TrajectoryBlock):
            reason = "not a trajectory; use mcptest run"
        if reason is not None:
            yield _result(test, Status.SKIP, reason)
        elif not trace.messages:
            yield _result(test, Status.SKIP, "not observed: the session had no messages")
        elif trace.left_out:
            kept = len(trace.calls)
            reason = f"not judged: {trace.left_out} calls exceed the limit of {kept}"
            yield _result(test, Status.FAIL, reason)
        else:
            yield _judged(test, trace.calls, capture)


def _judged(test: Test, calls: Sequence[TraceEntry], capture: Path | None) -> TestResult:
    assert isinstance(test.block, TrajectoryBlock)
    evaluation = check_trajectory(test.block.trajectory, calls, all_failures=True)
    if evaluation.passed:
        return _result(test, Status.PASS)
    failures = tuple(
        FailedCheck(
            check=failure.check,
            message=show(redaction.masker.cut_text(failure.message), _SHOWN * 4),
            expected=_words(failure.expected),
            actual=_words(failure.actual),
        )
        for failure in evaluation.failures
    )
    detail = "\n".join(failure.message for failure in failures)
    proof = Proof(capture=str(capture) if capture is not None else "")
    return _result(test, Status.FAIL, detail, failures=failures, proof=proof)


def _result(test: Test, status: Status, detail: str = "", **more: Any) -> TestResult:
    more |= {"file": test.place.file, "line": test.place.line, "tags": test.tags}
    kind = "check" if status is Status.FAIL else ""
    return TestResult(test.name, status, detail, kind=kind, **more)


# -- what is told --------------------------------------------------------------------------


def _notes(passed: Passed, trace: Trace, capture: Path | None, recorder: Recorder) -> Iterator[str]:
    calls = len(trace.calls) + trace.left_out
    yield f"{trace.messages} messages, {counted(calls, 'tool call')}"
    yield passed.told
    if capture is not None and recorder.kept:
        yield f"the capture is {recorder.written_to}"
    if not trace.messages:
        yield "the session had no messages: nothing to judge"


def _shown(call: TraceEntry) -> str:
    arguments = json.dumps(call.args, ensure_ascii=False, default=repr)
    return show(redaction.masker.cut_text(f"{call.tool} {arguments[: _SHOWN * 10]}"), _SHOWN)


def _words(value: object) -> str | None:
    if value is None:
        return None
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=repr)
    return show(redaction.masker.cut_text(text[: _SHOWN * 10]), _SHOWN)


_INVARIANT = "invariants "


def intercepted_lines(calls: Sequence[str], report: RunReport, style: Style) -> Iterator[str]:
    """Of the invariants only those that are broken, unless `verbose`: there are many that hold."""
    for number, call in enumerate(calls, 1):
        yield style.paint(f"  [{number}] {call}", "dim")
    held: list[TestResult] = []
    others: list[TestResult] = []
    for one in report.results:
        quiet = one.name.startswith(_INVARIANT) and one.status is not Status.FAIL
        (held if quiet else others).append(one)
    if not style.verbose and held:
        passed = sum(one.status is Status.PASS for one in held)
        advice = (one for one in held if one.detail.startswith("not followed"))
        told = (f"{one.name.removeprefix(_INVARIANT)}: {one.detail}" for one in advice)
        notes = (*report.notes, f"{passed} session invariants hold", *told)
        report = replace(report, results=tuple(others), notes=notes)
    yield run_results.render(report, style).rstrip("\n")
