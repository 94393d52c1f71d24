"""Sitting between an agent and a server, then judging what the agent did and how both behaved."""

from __future__ import annotations

import contextlib
import datetime
import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from mcptest import __version__
from mcptest.model.errors import ExitCode, UsageError
from mcptest.model.masking import Masker
from mcptest.model.results import FailedCheck, Proof, RunReport, Status, TestResult
from mcptest.model.show import show
from mcptest.run.intercepting_trace import Trace
from mcptest.run.proxying import Passage, Passed, pass_through
from mcptest.run.recording import masker_for
from mcptest.run.settings import skip_reason
from mcptest.run.temporary import temporary_folder
from mcptest.suite.load import load_suites
from mcptest.suite.model import Test, TraceEntry, TrajectoryBlock
from mcptest.suite.trajectory import check_trajectory
from mcptest.transport.recorder import Recorder
from mcptest.transport.target import Target

SESSION = "session"
_SHOWN = 300
_CALLS_TOLD = 20
_JUDGING = 3.0
"""Seconds for judging a session that took all the time there is."""


class Interception(msgspec.Struct, frozen=True):
    """What to check about a session, and how to sit in it."""

    tests: tuple[Test, ...]
    passage: Passage
    capture: Path | None = None
    invariants: bool = True
    strict: bool = False


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
        raise UsageError(f"there is no trajectory in {where}", hint="see docs/intercept.md")
    return tests


def intercept(target: Target, wanted: Interception) -> Intercepted:
    """Pass everything on until the session is over, then judge it. Raises PeerError."""
    trace = Trace()
    began, started = time.monotonic(), datetime.datetime.now(datetime.UTC)
    with _place_of_capture(wanted.capture) as path:
        with Recorder(path, masker=masker_for(target)) as recorder:
            passed = pass_through(target, recorder, wanted.passage, trace.watch)
        masker = masker_for(target)
        results = [
            *_session_results(passed, wanted, recorder),
            *_trajectory_results(wanted, trace, masker),
        ]
        # An agent that does not wait for us to judge a long session gets what is known by then.
        interrupted = False
        try:
            results += _invariant_results(wanted, recorder, _time_to_judge(wanted, began))
        except KeyboardInterrupt:
            interrupted = True
    report = RunReport(
        results=tuple(results),
        tool=f"mcptest {__version__}",
        started=started.isoformat(timespec="seconds"),
        duration_ms=round((time.monotonic() - began) * 1000),
        interrupted=interrupted,
        notes=tuple(_notes(passed, trace, wanted, recorder)),
    )
    shown = tuple(_shown(call, masker) for call in trace.calls[:_CALLS_TOLD])
    return Intercepted(report, shown, _code(report, passed, trace))


def _time_to_judge(wanted: Interception, began: float) -> float | None:
    """What the session left of the limit, and a moment in any case."""
    patience = wanted.passage.patience
    return None if patience is None else max(_JUDGING, began + patience - time.monotonic())


def _code(report: RunReport, passed: Passed, trace: Trace) -> int:
    """A check that failed decides; then the server's own end is ours."""
    if report.failed:
        return ExitCode.FAILED
    if report.interrupted:
        return ExitCode.INTERRUPTED
    if not trace.messages and passed.code == ExitCode.OK:
        return ExitCode.NOTHING_MATCHED
    return passed.code


@contextlib.contextmanager
def _place_of_capture(wanted: Path | None) -> Iterator[Path]:
    if wanted is not None:
        yield wanted
        return
    with temporary_folder() as folder:
        yield folder / "session.jsonl"


# -- what is judged ------------------------------------------------------------------------


def _session_results(
    passed: Passed, wanted: Interception, recorder: Recorder
) -> Iterator[TestResult]:
    """What makes every other verdict doubtful."""
    if passed.timed_out:
        detail = f"timed out: the session was not over after {wanted.passage.patience:g} s"
        yield TestResult(name=SESSION, status=Status.FAIL, detail=detail, kind="timeout")
    if recorder.error is not None:
        detail = f"the capture is not complete: {recorder.error.strerror}"
        yield TestResult(name=SESSION, status=Status.FAIL, detail=detail, kind="start")
    elif recorder.dropped:
        detail = f"the capture is full: {recorder.dropped} records did not fit"
        yield TestResult(name=SESSION, status=Status.FAIL, detail=detail, kind="start")


def _trajectory_results(wanted: Interception, trace: Trace, masker: Masker) -> Iterator[TestResult]:
    for test in wanted.tests:
        reason = skip_reason(test)
        if reason is None and not isinstance(test.block, TrajectoryBlock):
            reason = "not a trajectory: mcptest run runs it"
        if reason is not None:
            yield _result(test, Status.SKIP, reason)
        elif not trace.messages:
            yield _result(test, Status.SKIP, "not observed: no message went by")
        elif trace.left_out:
            kept = len(trace.calls)
            reason = f"not judged: {trace.left_out} calls came after the {kept} that are kept"
            yield _result(test, Status.FAIL, reason)
        else:
            yield _judged(test, trace.calls, masker, wanted.capture)


def _judged(
    test: Test, calls: Sequence[TraceEntry], masker: Masker, capture: Path | None
) -> TestResult:
    assert isinstance(test.block, TrajectoryBlock)
    evaluation = check_trajectory(test.block.checks, calls, all_failures=True)
    if evaluation.passed:
        return _result(test, Status.PASS)
    failures = tuple(
        FailedCheck(
            check=failure.check,
            message=show(masker.cut_text(failure.message), _SHOWN * 4),
            expected=_words(failure.expected, masker),
            actual=_words(failure.actual, masker),
        )
        for failure in evaluation.failures
    )
    detail = "\n".join(failure.message for failure in failures)
    proof = Proof(capture=str(capture) if capture is not None else "")
    return _result(test, Status.FAIL, detail, failures, proof)


def _result(
    test: Test,
    status: Status,
    detail: str = "",
    failures: tuple[FailedCheck, ...] = (),
    proof: Proof | None = None,
) -> TestResult:
    return TestResult(
        name=test.name,
        status=status,
        detail=detail,
        file=test.place.file,
        line=test.place.line,
        kind="check" if status is Status.FAIL else "",
        failures=failures,
        proof=proof,
        tags=test.tags,
    )


def _invariant_results(
    wanted: Interception, recorder: Recorder, limit: float | None
) -> Iterator[TestResult]:
    if not wanted.invariants or not recorder.kept:
        return
    from mcptest.run.lanes_invariants import run_invariants_lane
    from mcptest.suite.invariants_block import InvariantsBlock

    block = InvariantsBlock(strict=wanted.strict)
    place = recorder.written_to
    kept = wanted.capture is not None
    yield from run_invariants_lane(block, [place], kept=kept, limit=limit)


# -- what is told --------------------------------------------------------------------------


def _notes(passed: Passed, trace: Trace, wanted: Interception, recorder: Recorder) -> Iterator[str]:
    calls = len(trace.calls) + trace.left_out
    yield f"{trace.messages} messages, {calls} tool call{'' if calls == 1 else 's'}"
    yield passed.told
    if wanted.capture is not None and recorder.kept:
        yield f"the capture is {recorder.written_to}"
    if not trace.messages:
        yield "nothing was said in the session: there was nothing to judge"


def _shown(call: TraceEntry, masker: Masker) -> str:
    arguments = json.dumps(call.args, ensure_ascii=False, default=repr)
    return show(masker.cut_text(f"{call.tool} {arguments[: _SHOWN * 10]}"), _SHOWN)


def _words(value: object, masker: Masker) -> str | None:
    if value is None:
        return None
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=repr)
    return show(masker.cut_text(text[: _SHOWN * 10]), _SHOWN)
