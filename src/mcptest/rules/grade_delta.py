"""`grade_delta`: how a grade moved since a saved scorecard, and whether that is allowed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mcptest.model.compliance import GateResult, Grade, Judgement, SectionScore
from mcptest.model.scorecard import Scorecard
from mcptest.model.show import show
from mcptest.model.verdict import Outcome
from mcptest.rules.grading import rank
from mcptest.suite.compliance_block import GradeDelta, judge_gate

GATE = "grade_delta"
_NEED_NO_SCORECARD = frozenset({"grade", "score"})


def judge_grade_delta(block: GradeDelta, now: Judgement, before: Scorecard | None) -> GateResult:
    """The gate's result.

    Adding the gate never breaks a build on that day: without a scorecard there is nothing that
    could have regressed. What is asked of the grade and the score alone is judged all the same.
    """
    if now.grade is None:
        hint = "judge the server by the whole corpus: leave out --rule and tests:"
        return GateResult(GATE, False, "no grade: only some rules were asked for", (hint,))
    if before is None:
        return _first_run(block, now.grade)
    judged = judge_gate(block.expect, delta_facts(now.grade, before))
    failures = tuple(show(one.message, 600) for one in judged.failures)
    lines = (*failures, *_moves(now, now.grade, before), *_other_profile(now, before))
    return GateResult(GATE, judged.passed, _in_words(now.grade, before), lines)


def delta_facts(now: Grade, before: Scorecard) -> dict[str, Any]:
    """What `grade_delta` may look at. A server without a letter has no `grade`."""
    return {
        **_facts_alone(now),
        "grade_regressed": rank(now.letter) > rank(before.grade),
        "regressed_sections": [one.section for one, _ in regressed_sections(now, before)],
    }


def regressed_sections(
    now: Grade, before: Scorecard
) -> Iterator[tuple[SectionScore, SectionScore]]:
    """Sections whose score fell, or of which nothing was observed any more; with what they had.

    A section that does not apply to the server any more has not regressed: what a server does not
    declare it need not do.
    """
    earlier = {one.section: one for one in before.sections if one.grade}
    for one in now.sections:
        was = earlier.get(one.section)
        if was is not None and (not one.grade or one.score < was.score):
            yield one, was


def _facts_alone(now: Grade) -> dict[str, Any]:
    return {**({"grade": now.letter} if now.letter else {}), "score": now.score}


def _first_run(block: GradeDelta, now: Grade) -> GateResult:
    note = f"{_graded(now.letter, now.score)}; no scorecard to compare with yet"
    alone = tuple(one for one in block.expect if one.target in _NEED_NO_SCORECARD)
    if not alone:
        return GateResult(GATE, True, note)
    judged = judge_gate(alone, _facts_alone(now))
    return GateResult(
        GATE, judged.passed, note, tuple(show(one.message, 600) for one in judged.failures)
    )


def _graded(letter: str, score: float) -> str:
    return f"{show(letter, 4)} with {score:.1f}" if letter else "no letter"


def _in_words(now: Grade, before: Scorecard) -> str:
    was, is_now = _graded(before.grade, before.score), _graded(now.letter, now.score)
    return f"{is_now} as before" if was == is_now else f"{was} -> {is_now}"


def _moves(judgement: Judgement, now: Grade, before: Scorecard) -> Iterator[str]:
    for one, was in regressed_sections(now, before):
        here = _graded(one.grade, one.score) if one.grade else "nothing observed"
        yield f"section {show(one.section, 60)}: {_graded(was.grade, was.score)} -> {here}"
    gone = {one.section for one in before.sections if one.grade}
    for name in sorted(gone - {one.section for one in now.sections}):
        yield f"section {show(name, 60)}: does not apply any more"
    for result in judgement.failures:
        earlier = before.rules.get(result.id)
        if earlier is not Outcome.FAIL:
            was_there = "not in the scorecard" if earlier is None else earlier.value
            yield f"{show(result.id, 60)} fails, was: {was_there.replace('_', ' ')}"


def _other_profile(now: Judgement, before: Scorecard) -> Iterator[str]:
    """A grade never moves silently: what it was given by is told where it is not the same."""
    was, is_now = before.profile, now.profile
    if was.revision is not is_now.revision:
        yield f"note: the scorecard is of {was.revision.label}, this run of {is_now.revision.label}"
    elif was.corpus != is_now.corpus:
        yield f"note: the corpus is another one: {show(was.corpus, 40)} -> {is_now.corpus}"
    if was.tool != is_now.tool:
        yield f"note: mcptest is another version: {show(was.tool, 40)} -> {is_now.tool}"
    if before.transport != now.transport:
        transport = show(before.transport, 40)
        yield f"note: the scorecard is of a run over {transport}, this one over {now.transport}"
    if was != is_now:
        yield "note: the two grades are not of the same profile; save the scorecard again"
