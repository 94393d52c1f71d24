"""The `invariants:` lane: the sessions that the tests recorded, judged by the session rules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mcptest.model.capture import AnyRecord
from mcptest.model.deadline import Deadline
from mcptest.model.errors import UsageError
from mcptest.model.results import FailedCheck, Proof, Status, TestResult
from mcptest.model.show import show
from mcptest.model.verdict import Outcome, Severity, Verdict
from mcptest.rules.catalogue import all_rules
from mcptest.rules.declare import Rule
from mcptest.rules.judge import decisiveness, judge
from mcptest.suite.invariants_block import InvariantsBlock
from mcptest.transport.capture_file import open_capture

INVARIANTS = "invariants"
_LOOKING_UP = 1_000
"""Records between two looks at the clock."""
_UNJUDGED_TOLD = 5


class _InTime(Iterator[tuple[int, AnyRecord]]):
    """Records up to a deadline. A session that ends there is judged as one that was cut short."""

    def __init__(self, records: Iterator[tuple[int, AnyRecord]], deadline: Deadline | None) -> None:
        self._records = records
        self._deadline = deadline
        self.read = 0
        self.cut_off = False

    def __next__(self) -> tuple[int, AnyRecord]:
        due = self.read % _LOOKING_UP == 0 and self.read > 0
        if due and self._deadline is not None and self._deadline.expired:
            self.cut_off = True
            raise StopIteration
        record = next(self._records)
        self.read += 1
        return record


@dataclass(slots=True)
class _Seen:
    """One rule over all sessions."""

    rule: Rule
    worst: Verdict | None = None
    file: str = ""
    failed: int = 0
    sessions: int = 0

    def add(self, verdict: Verdict, file: str) -> None:
        self.sessions += 1
        self.failed += verdict.outcome is Outcome.FAIL
        if self.worst is None or decisiveness(verdict) < decisiveness(self.worst):
            self.worst, self.file = verdict, file


def run_invariants_lane(
    block: InvariantsBlock, captures: Sequence[Path], *, kept: bool, limit: float | None = None
) -> Iterator[TestResult]:
    """One result for each rule that the sessions exercised, and for each that was asked for.

    `kept`: the captures stay, so a failure may name its file. `limit`: seconds for each capture;
    what is not judged by then is a failure of its own.
    """
    unjudged: list[str] = []
    seen = _judged(block, captures, limit, unjudged)
    told = [_result(one, block, kept=kept) for one in seen if _is_worth_telling(one, block)]
    yield from told
    if unjudged:
        advice = "mcptest compliance invariants --capture FILE judges all of a capture"
        detail = "\n  ".join((*unjudged[:_UNJUDGED_TOLD], advice))
        yield TestResult(
            name=INVARIANTS,
            status=Status.FAIL,
            detail=detail,
            kind="timeout",
            file=block.place.file,
            line=block.place.line,
        )
    if not told and not unjudged:
        yield TestResult(
            name=INVARIANTS,
            status=Status.SKIP,
            detail="not observed: the tests of the file recorded no session",
            file=block.place.file,
            line=block.place.line,
        )


def _judged(
    block: InvariantsBlock, captures: Iterable[Path], limit: float | None, unjudged: list[str]
) -> list[_Seen]:
    rules = [rule for rule in all_rules() if not block.rules or rule.id in block.rules]
    seen = {rule.id: _Seen(rule) for rule in rules}
    for path in captures:
        for verdict in _verdicts(path, rules, limit, unjudged):
            seen[verdict.rule].add(verdict, str(path))
    return list(seen.values())


def _verdicts(
    path: Path, rules: list[Rule], limit: float | None, unjudged: list[str]
) -> Iterator[Verdict]:
    deadline = Deadline.after(limit) if limit is not None else None
    try:
        for source in open_capture(str(path)):
            records = _InTime(source.records, deadline)
            yield from judge(replace(source, records=records), rules).verdicts
            if records.cut_off:
                unjudged.append(
                    f"only the first {records.read:,} records of {show(source.label, 80)} were "
                    f"judged, which took {limit:g} s"
                )
                return
    except UsageError:
        # Nothing was said: the server did not start, and the test that needed it says so.
        return


def _is_worth_telling(one: _Seen, block: InvariantsBlock) -> bool:
    if one.worst is None:
        return False
    exercised = one.worst.outcome in {Outcome.FAIL, Outcome.PASS, Outcome.INCONCLUSIVE}
    return exercised or bool(block.rules)


def _result(one: _Seen, block: InvariantsBlock, *, kept: bool) -> TestResult:
    verdict = one.worst
    assert verdict is not None  # only those with a verdict are told
    status = _status(verdict, one.rule.severity, strict=block.strict)
    failed = status is Status.FAIL
    return TestResult(
        name=f"{INVARIANTS} {one.rule.id}",
        status=status,
        detail=_detail(one, verdict, status),
        file=block.place.file,
        line=block.place.line,
        kind="check" if failed else "",
        failures=_failures(verdict) if failed else (),
        proof=_proof(one, verdict, kept=kept) if failed else None,
    )


def _status(verdict: Verdict, severity: Severity, *, strict: bool) -> Status:
    if verdict.outcome is Outcome.PASS:
        return Status.PASS
    if verdict.outcome is not Outcome.FAIL:
        return Status.FAIL if verdict.unchecked else Status.SKIP
    counts = severity is Severity.MUST or (strict and severity is Severity.SHOULD)
    return Status.FAIL if counts else Status.SKIP


def _detail(one: _Seen, verdict: Verdict, status: Status) -> str:
    if status is Status.PASS:
        return ""
    if verdict.outcome is not Outcome.FAIL:
        return f"{verdict.outcome.value.replace('_', ' ')}: {verdict.reason}".rstrip(": ")
    advice = "" if status is Status.FAIL else f"not followed ({one.rule.severity.value}): "
    found = f": {verdict.findings[0].message}" if verdict.findings else ""
    return f"{advice}{one.rule.title}{found} (in {one.failed} of {one.sessions} sessions)"


def _failures(verdict: Verdict) -> tuple[FailedCheck, ...]:
    return tuple(
        FailedCheck("rule", found.message, found.expected, found.actual, found.pointer)
        for found in verdict.findings
    )


def _proof(one: _Seen, verdict: Verdict, *, kept: bool) -> Proof:
    excerpt = verdict.findings[0].excerpt if verdict.findings else None
    return Proof(
        response=excerpt or "",
        repeat=f"mcptest explain {one.rule.id}",
        capture=one.file if kept else "",
    )
