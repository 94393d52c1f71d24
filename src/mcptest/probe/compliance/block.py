"""Judging a server as a `compliance:` block says: its tests, and its gates."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from mcptest.core.errors import ExitCode, UsageError
from mcptest.core.judgement import GateResult, Grade, Judgement, Scorecard
from mcptest.core.verdict import Severity
from mcptest.probe.compliance.judging import Tell, judge_server, run_tests
from mcptest.probe.compliance.site import Order
from mcptest.rules.corpus.reader import corpus_of
from mcptest.rules.corpus.version_diff import judge_spec_version_check
from mcptest.rules.grading import judge_grade_delta, rank
from mcptest.session.connection import Stopped
from mcptest.suite.compliance_block import ComplianceBlock
from mcptest.suite.reading import SuiteError


@dataclass(frozen=True, slots=True)
class JudgedBlock:
    """What came of a block."""

    judgements: tuple[Judgement, ...] = ()
    """Those whose rules were asked for."""
    gates: tuple[GateResult, ...] = ()
    graded: Judgement | None = None
    """By the whole corpus, where a gate or a scorecard needs the grade."""
    notes: tuple[str, ...] = ()


def narrowed(block: ComplianceBlock, names: Sequence[str]) -> ComplianceBlock:
    """Just the tests of these names, and no gates; the block itself when there are no names."""
    if not names:
        return block
    tests = None
    if block.tests is not None:
        tests = tuple(test for test in block.tests if test.name in names)
    return replace(block, tests=tests, spec_version_check=None, grade_delta=None)


def judge_block(
    block: ComplianceBlock,
    order: Order | None,
    tell: Tell,
    *,
    corpora: Path | None = None,
    before: Scorecard | None = None,
    needs_grade: bool = False,
) -> JudgedBlock:
    """Run the tests and hold the gates. No server is contacted when nothing is asked of one.

    `order` may be None only then. Raises PeerError when the server can't be reached.
    """
    found = judge_spec_version_check(block, lambda revision: corpus_of(revision, corpora))
    gates = [] if found is None else [found]
    judgement = graded = None
    if order is not None:
        judgement = _judged_tests(block, order, tell)
        wants_grade = needs_grade or block.grade_delta is not None
        if wants_grade and not _is_interrupted(order):
            if block.tests is None:
                graded = judgement
            else:
                with contextlib.suppress(Stopped):  # before the server was met again
                    graded = judge_server(msgspec.structs.replace(order, rules=()), tell)
    if block.grade_delta is not None and graded is not None and not _is_interrupted(order):
        gates.append(judge_grade_delta(block.grade_delta, graded, before))
    judged = () if judgement is None else (judgement,)
    notes: tuple[str, ...] = ()
    if graded is not None and graded is not judgement and graded.grade is not None:
        notes = (f"the grade is of the whole corpus: {_graded(graded.grade)}",)
    return JudgedBlock(judged, tuple(gates), graded, notes)


def _is_interrupted(order: Order | None) -> bool:
    """Then there is no grade, and nothing that needs one."""
    return order is not None and order.should_stop is not None and order.should_stop()


def _judged_tests(block: ComplianceBlock, order: Order, tell: Tell) -> Judgement | None:
    if block.tests == ():
        return None
    try:
        if block.tests is None:
            return judge_server(order, tell)
        judged = run_tests(order, block.tests, tell)
    except UsageError as error:
        # Which revision is spoken was found out only now, and it lacks a rule that was named.
        if order.revision is not None or isinstance(error, SuiteError):
            raise
        remedy = "--spec-version" if block.tests is None else "compliance.spec_version"
        raise UsageError(error.message, hint=f"name the revision that has it: {remedy}") from None
    # The name of a test may hold spaces: the command that repeats it must still be one.
    results = tuple(
        msgspec.structs.replace(one, repeat=f"{order.repeat} --rule {shlex.quote(one.id)}")
        if order.repeat and shlex.quote(one.id) != one.id
        else one
        for one in judged.results
    )
    return msgspec.structs.replace(judged, results=results)


def _graded(grade: Grade) -> str:
    return f"{grade.letter} with {grade.score:.1f}" if grade.letter else "no letter"


def min_grade_gate(wanted: str, judgement: Judgement) -> GateResult:
    """`--min-grade`: the letter must be this one or a better one."""
    grade = judgement.grade
    if grade is None:
        return GateResult("min_grade", False, f"{wanted} is wanted, and only some rules were asked")
    detail = f"{_graded(grade)}, {wanted} is wanted"
    passed = bool(grade.letter) and rank(grade.letter) <= rank(wanted)
    return GateResult("min_grade", passed, detail, () if passed else grade.caps)


def exit_code_for(
    judgements: Sequence[Judgement],
    gates: Sequence[GateResult],
    *,
    strict: bool = False,
    excused: bool = False,
) -> ExitCode:
    """What the verdicts come to. `excused`: a baseline says which failures count, not we."""
    if any(not gate.passed for gate in gates):
        return ExitCode.FAILED
    if not excused and any(is_bad(one, strict=strict) for one in judgements):
        return ExitCode.FAILED
    if not gates and not judgements:
        return ExitCode.NOTHING_MATCHED
    if judgements and not any(one.observed for one in judgements):
        return ExitCode.NOTHING_MATCHED
    return ExitCode.OK


def is_bad(judgement: Judgement, *, strict: bool) -> bool:
    """A broken MUST, a broken SHOULD where that counts, or something that kept us from judging."""
    if judgement.broken_musts or any(one.kept_from_judging for one in judgement.causes):
        return True
    return strict and any(one.severity is Severity.SHOULD for one in judgement.failures)
