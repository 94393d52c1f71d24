"""What is said of each snapshot: diffs, notes, and the results that a report is made of."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from mcptest.model.results import Status, TestResult
from mcptest.model.show import show
from mcptest.run.server_session import ServerSession
from mcptest.suite.failure import Evaluation, Failure
from mcptest.suite.model import (
    LoggingBlock,
    NotificationsBlock,
    ResourcesBlock,
    Test,
    TrajectoryBlock,
)
from mcptest.suite.observed import Observed
from mcptest.suite.snapshots import Kept, SnapshotOutcome
from mcptest.suite.snapshots_diff import unified
from mcptest.suite.snapshots_names import MANY, SUFFIX

_DIFF_LINES = 200
_CONTENT_LINES = 20
_WITHOUT_AN_ANSWER = (LoggingBlock, NotificationsBlock, TrajectoryBlock)


def with_answers(tests: Sequence[Test]) -> tuple[list[Test], list[Test]]:
    """Tests whose answer can be kept, as they are run for it; and those that have none."""
    kept, others = [], []
    for test in tests:
        if isinstance(test.block, _WITHOUT_AN_ANSWER):
            others.append(test)
        elif isinstance(test.block, ResourcesBlock) and test.block.expect_notification:
            kept.append(replace(test, block=replace(test.block, expect_notification=False)))
        else:
            kept.append(test)
    return kept, others


def unusable(observed: Observed, own: Evaluation) -> Failure | None:
    """An answer that is not worth keeping: no result at all, or an error nobody asked for."""
    if not observed.problem and observed.error is None:
        return None
    return next((one for one in own.failures if one.check in {"result", "error"}), None)


def note_of(own: Evaluation, session: ServerSession) -> str:
    if not own.failures:
        return ""
    first = own.failures[0].message.partition("\n")[0]
    return f"its own expectation does not hold: {show(session.masker.cut_text(first), 200)}"


def changed(expected: str, actual: str, path: str) -> Failure:
    lines = unified(expected, actual)
    more = len(lines) - _DIFF_LINES
    cut = [f"(and {more} more lines of the diff)"] if more > 0 else []
    head = "the answer changed: - is the golden file, + is what came"
    return Failure("changed", "\n".join([head, *lines[:_DIFF_LINES], *cut]), pointer=path)


def new(text: str, path: str) -> Failure:
    lines = text.removesuffix("\n").split("\n")
    more = len(lines) - _CONTENT_LINES
    cut = [f"(and {more} more lines)"] if more > 0 else []
    shown = [f"+{line[:500]}" for line in lines[:_CONTENT_LINES]]
    head = "there is no golden file yet: --update would write"
    return Failure("new", "\n".join([head, *shown, *cut]), pointer=path)


def as_told(result: TestResult, kept: Kept) -> TestResult:
    note = "; ".join(filter(None, (result.note, kept.note)))
    if kept.outcome is SnapshotOutcome.SKIPPED and result.status is Status.PASS:
        detail = f"not compared: {show(kept.golden, 300)} calls the whole answer volatile"
        return replace(result, status=Status.SKIP, detail=detail, note=note)
    is_ours = kept.outcome.is_bad and result.kind == "check"
    return replace(result, kind=kept.outcome.value if is_ours else result.kind, note=note)


def left_out_result(test: Test) -> TestResult:
    word = type(test.block).__name__.removesuffix("Block").lower()
    return TestResult(
        test.name,
        Status.SKIP,
        f"a test of {word} has no answer that could be kept",
        file=test.place.file,
        line=test.place.line,
        tags=test.tags,
    )


def missing_result(path: str, *, fails: bool) -> TestResult:
    detail = "no test has this golden file: bring the test back, or delete the file"
    status = Status.FAIL if fails else Status.SKIP
    return TestResult(path, status, detail, file=path, kind=SnapshotOutcome.MISSING.value)


def base_of_golden(name: str) -> str:
    """What its suite is called."""
    return name.partition("/")[0].removesuffix(MANY).removesuffix(SUFFIX)
