"""From the outcomes of the rules to a grade. docs/compliance/grading.md publishes the figures.

The score is the weighted share of the observed rules that pass. Rules that were not observed, do
not apply or could not be judged do not count for the score; the letter shows it where it matters.
Caps only lower the letter that the score gives.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from mcptest import __version__
from mcptest.core.errors import ExitCode, UsageError
from mcptest.core.judgement import (
    GateResult,
    Grade,
    Judgement,
    Profile,
    RuleResult,
    Scorecard,
    SectionScore,
)
from mcptest.core.revision import Revision
from mcptest.core.safe_text import show
from mcptest.core.verdict import Outcome, Severity
from mcptest.rules.corpus.probes import all_probes
from mcptest.rules.corpus.reader import SHIPPED, VersionCorpus, corpus_of, shipped_registry
from mcptest.rules.corpus.registry import CorpusRule, Row
from mcptest.rules.declaration import Rule
from mcptest.suite.lane_blocks import GradeDelta, judge_gate

WEIGHTS: Final[Mapping[Severity, int]] = {Severity.MUST: 10, Severity.SHOULD: 3, Severity.MAY: 1}
CUT_OFFS: Final[Mapping[str, int]] = {
    "A+": 100,
    "A": 95,
    "A-": 90,
    "B+": 87,
    "B": 83,
    "B-": 80,
    "C+": 77,
    "C": 73,
    "C-": 70,
    "D+": 67,
    "D": 63,
    "D-": 60,
    "F": 0,
}
"""The least score of each letter, best first."""
LETTERS: Final = tuple(CUT_OFFS)
CAP_BY_BROKEN_MUSTS: Final[Mapping[int, str]] = {1: "B+", 3: "C+", 6: "D+"}
"""The best letter from that many failed MUSTs on."""
CAP_UNJUDGED: Final = "B+"
"""The best letter when something kept a MUST from being judged: it may be a failed one."""
CAP_HALF_SEEN: Final = "A"
"""The best letter when less than `SEEN_FOR_BEST` of the applicable rules were observed."""
SEEN_FOR_BEST: Final = 50
"""In percent."""
RULES_FOR_A_LETTER: Final = 20
MUSTS_FOR_A_LETTER: Final = 10
SHARE_FOR_A_LETTER: Final = 20
"""In percent of the applicable rules."""
UNJUDGED_FOR_A_LETTER: Final = 25
"""The most MUST rules that a root cause may stand in front of, in percent of those observed."""


@functools.cache
def basic_rules() -> Mapping[str, str]:
    """The basic protocol: rules without which no client gets any further, and why. Failing one
    is F. They are named by our own registry, whatever corpora a server is judged by."""
    return {one.id: one.basic for one in shipped_registry().values() if one.basic}


@functools.cache
def shown_harmless_by() -> Mapping[str, str]:
    """Rules of the basic protocol, each with the rule whose pass shows that clients get further."""
    entries = shipped_registry().values()
    return {one.id: one.basic_unless for one in entries if one.basic_unless}


def grade(results: Sequence[RuleResult]) -> Grade:
    caps = list(_caps(results))
    too_little = "" if any(one.letter == "F" for one in caps) else _too_little(results)
    score = score_of(results)
    return Grade(
        letter="" if too_little else _worst([letter_of(score), *(one.letter for one in caps)]),
        score=0.0 if too_little else score,
        sections=tuple(_sections(results)),
        caps=tuple(_said(score, caps)) if not too_little else (too_little,),
    )


def score_of(results: Iterable[RuleResult]) -> float:
    """From 0 to 100 in steps of a tenth, rounded down: 100 means that nothing observed failed."""
    gained = possible = 0
    for one in results:
        if one.outcome in _OBSERVED:
            weight = WEIGHTS[one.severity]
            possible += weight
            gained += weight if one.outcome is Outcome.PASS else 0
    return (1000 * gained // possible) / 10 if possible else 0.0


def letter_of(score: float) -> str:
    """What the score alone gives."""
    return next(letter for letter, least in CUT_OFFS.items() if score >= least)


def rank(letter: str) -> int:
    """0 for the best letter. No letter, or one that does not exist, is worse than all of them."""
    return LETTERS.index(letter) if letter in CUT_OFFS else len(LETTERS)


_OBSERVED: Final = frozenset({Outcome.PASS, Outcome.FAIL})


class _Cap(NamedTuple):
    letter: str
    why: str


def _caps(results: Sequence[RuleResult]) -> Iterator[_Cap]:
    yield from _caps_by_failures(results)
    unjudged = _unjudged_musts(results)
    if unjudged:
        rules = "1 MUST rule" if unjudged == 1 else f"{unjudged} MUST rules"
        yield _Cap(CAP_UNJUDGED, f"{rules} could not be judged")
    seen, applicable = _seen(results)
    if 100 * seen < SEEN_FOR_BEST * applicable:
        yield _Cap(CAP_HALF_SEEN, f"{seen} of {applicable} applicable rules were observed")


def _caps_by_failures(results: Sequence[RuleResult]) -> Iterator[_Cap]:
    broken = [one.id for one in results if one.failed and one.severity is Severity.MUST]
    basic = basic_rules() if broken else {}
    passed = {one.id for one in results if one.outcome is Outcome.PASS}
    for name in sorted(set(broken) & basic.keys()):
        if shown_harmless_by().get(name) not in passed:
            yield _Cap("F", f"{name} is part of the basic protocol: {basic[name]}")
    reached = [letter for least, letter in CAP_BY_BROKEN_MUSTS.items() if len(broken) >= least]
    if reached:
        rules = "1 MUST rule" if len(broken) == 1 else f"{len(broken)} MUST rules"
        yield _Cap(_worst(reached), f"{rules} failed")


def _unjudged_musts(results: Iterable[RuleResult]) -> int:
    """Those that a root cause stands in front of: a dead process, a banner, a 401."""
    return sum(
        one.outcome is Outcome.INCONCLUSIVE and bool(one.cause) and one.severity is Severity.MUST
        for one in results
    )


def _said(score: float, caps: Iterable[_Cap]) -> Iterator[str]:
    """The caps that lower the letter, the lowest first."""
    free = rank(letter_of(score))
    for one in sorted(caps, key=lambda cap: -rank(cap.letter)):
        if rank(one.letter) > free:
            least = one.letter if one.letter == "F" else f"at best {one.letter}"
            yield f"{least}: {one.why}"


def _worst(letters: Iterable[str]) -> str:
    return max(letters, key=rank)


def _seen(results: Iterable[RuleResult]) -> tuple[int, int]:
    outcomes = [one.outcome for one in results if one.outcome is not Outcome.NOT_APPLICABLE]
    return sum(one in _OBSERVED for one in outcomes), len(outcomes)


def _too_little(results: Sequence[RuleResult]) -> str:
    """Why there is no letter; empty when enough was observed for one."""
    seen, applicable = _seen(results)
    musts = sum(one.outcome in _OBSERVED and one.severity is Severity.MUST for one in results)
    enough = seen >= RULES_FOR_A_LETTER and musts >= MUSTS_FOR_A_LETTER
    if enough and 100 * seen >= SHARE_FOR_A_LETTER * applicable:
        # Who falls silent after the handshake has passed what a handshake shows, nothing else.
        unjudged = _unjudged_musts(results)
        if 100 * unjudged <= UNJUDGED_FOR_A_LETTER * musts:
            return ""
        return (
            f"no letter: {unjudged} MUST rules could not be judged and {musts} were observed; "
            f"a letter allows at most {UNJUDGED_FOR_A_LETTER}% of these"
        )
    return (
        f"no letter: {seen} of {applicable} applicable rules were observed, {musts} of them MUST; "
        f"a letter needs at least {RULES_FOR_A_LETTER} rules, {MUSTS_FOR_A_LETTER} of them MUST, "
        f"and {SHARE_FOR_A_LETTER}% of the applicable rules"
    )


def _sections(results: Iterable[RuleResult]) -> Iterator[SectionScore]:
    """The sections that apply to the server, by name. A section has a letter from one rule on."""
    by_name: dict[str, list[RuleResult]] = {}
    for one in results:
        if one.outcome is not Outcome.NOT_APPLICABLE:
            by_name.setdefault(one.section, []).append(one)
    for name, rules in sorted(by_name.items()):
        passed = sum(one.outcome is Outcome.PASS for one in rules)
        failed = sum(one.failed for one in rules)
        score = score_of(rules)
        caps = (one.letter for one in _caps_by_failures(rules))
        yield SectionScore(
            section=name,
            grade=_worst([letter_of(score), *caps]) if passed or failed else "",
            score=score,
            passed=passed,
            failed=failed,
            not_observed=len(rules) - passed - failed,
        )


GATE = "grade_delta"
_NEED_NO_SCORECARD = frozenset({"grade", "score"})


def judge_grade_delta(block: GradeDelta, now: Judgement, before: Scorecard | None) -> GateResult:
    """The gate's result.

    Adding the gate never breaks a build on that day: without a scorecard there is nothing that
    could have regressed. What is asked of the grade and the score alone is judged all the same.
    """
    if now.grade is None:
        hint = "to get a grade, run the whole corpus: omit --rule and `tests:`"
        return GateResult(GATE, False, "no grade: only some rules were selected", (hint,))
    is_now, more = graded_in_words(now.grade.letter, now.grade.score), list[str]()
    if before is None:
        note = f"{is_now}; no scorecard to compare with yet"
        alone = tuple(one for one in block.expect if one.target in _NEED_NO_SCORECARD)
        if not alone:
            return GateResult(GATE, True, note)
        judged = judge_gate(alone, _facts_alone(now.grade))
    else:
        was = graded_in_words(before.grade, before.score)
        note = f"{is_now}, unchanged" if was == is_now else f"{was} -> {is_now}"
        judged = judge_gate(block.expect, delta_facts(now.grade, before))
        more += (*_moves(now, now.grade, before), *_other_profile(now, before))
    failures = (show(one.message, 600) for one in judged.failures)
    return GateResult(GATE, judged.passed, note, (*failures, *more))


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


def graded_in_words(letter: str, score: float) -> str:
    return f"{show(letter, 4)} ({score:.1f})" if letter else "no letter"


def _moves(judgement: Judgement, now: Grade, before: Scorecard) -> Iterator[str]:
    for one, was in regressed_sections(now, before):
        there = graded_in_words(was.grade, was.score)
        here = graded_in_words(one.grade, one.score) if one.grade else "nothing observed"
        yield f"section {show(one.section, 60)}: {there} -> {here}"
    gone = {one.section for one in before.sections if one.grade}
    for name in sorted(gone - {one.section for one in now.sections}):
        yield f"section {show(name, 60)}: no longer applies"
    for result in judgement.failures:
        earlier = before.rules.get(result.id)
        if earlier is not Outcome.FAIL:
            was_there = "not in the scorecard" if earlier is None else earlier.value
            yield f"{show(result.id, 60)} fails; before: {was_there.replace('_', ' ')}"


def _other_profile(now: Judgement, before: Scorecard) -> Iterator[str]:
    """A grade never moves silently: what it was given by is told where it is not the same."""
    was, is_now = before.profile, now.profile
    if was.revision is not is_now.revision:
        here = is_now.revision.label
        yield f"note: the scorecard is for {was.revision.label}, this run for {here}"
    elif was.corpus != is_now.corpus:
        yield f"note: the corpus changed: {show(was.corpus, 40)} -> {is_now.corpus}"
    if was.tool != is_now.tool:
        yield f"note: the version of mcptest changed: {show(was.tool, 40)} -> {is_now.tool}"
    if before.transport != now.transport:
        transport = show(before.transport, 40)
        yield f"note: the scorecard is of a run over {transport}, this run is over {now.transport}"
    if was != is_now:
        yield "note: the two grades are not comparable; save the scorecard again"


# -- What the verdicts come to --------------------------------------------------------------------


def min_grade_gate(wanted: str, judgement: Judgement) -> GateResult:
    """`--min-grade`: the letter must be this one or a better one."""
    grade = judgement.grade
    if grade is None:
        return GateResult(
            "min_grade", False, f"required {wanted}, but only some rules were selected"
        )
    detail = f"{graded_in_words(grade.letter, grade.score)}, required {wanted}"
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
    seen = any(one.observed for one in judgements) if judgements else gates
    return ExitCode.OK if seen else ExitCode.NOTHING_MATCHED


def is_bad(judgement: Judgement, *, strict: bool) -> bool:
    """A broken MUST, a broken SHOULD where that counts, or something that kept us from judging."""
    if judgement.broken_musts or any(one.kept_from_judging for one in judgement.causes):
        return True
    return strict and any(one.severity is Severity.SHOULD for one in judgement.failures)


# -- What a grade was given by --------------------------------------------------------------------

DIGITS: Final = 12
"""Of the hash. Two corpora that somebody compares are told apart by far fewer."""


def profile_of(revision: Revision, corpora: Path | None = None) -> Profile:
    """The profile of a revision's corpus: equal profiles give comparable grades."""
    return Profile(tool=__version__, corpus=_hash_of(revision, corpora), revision=revision)


@functools.lru_cache(maxsize=16)
def _shipped(revision: Revision) -> str:
    return _hash_of(revision, SHIPPED)


def _hash_of(revision: Revision, corpora: Path | None) -> str:
    if corpora is None:
        return _shipped(revision)
    corpus = corpus_of(revision, corpora)
    if corpus is None:
        raise UsageError(f"no corpus for {revision.label}")
    return corpus_hash(corpus)


def corpus_hash(corpus: VersionCorpus) -> str:
    """Over everything in a corpus that can move a verdict or a grade.

    Neither the order of keys nor that of the rules or of what they expect counts; nor do the words
    that only explain. What is code (rules over sessions, how probes are run) is told apart by the
    version of the tool.
    """
    parts = {
        "rules": {name: _of_rule(rule) for name, rule in corpus.rules.items()},
        "grading": _of_grading(),
    }
    return hashlib.sha256(_canonical(parts).encode()).hexdigest()[:DIGITS]


def _of_rule(rule: CorpusRule) -> dict[str, Any]:
    return {
        "section": rule.section,
        "severity": rule.severity.value if rule.severity is not None else None,
        "transports": sorted(rule.said.transports),
        "row": _of_row(rule.row) if rule.row is not None else None,
        "session": _of_session(rule.session) if rule.session is not None else None,
    }


def _of_row(row: Row) -> dict[str, Any]:
    expect, when = (
        [{"target": one.target, "matcher": one.matcher} for one in found]
        for found in (row.expect, [one.expectation for one in row.when])
    )
    probe = all_probes().get(row.check.probe)
    return {
        "check": msgspec.to_builtins(row.check),
        "steps": [msgspec.to_builtins(step) for step in probe.steps] if probe is not None else [],
        "expect": sorted(map(_canonical, expect)),
        "when": sorted(map(_canonical, when)),
        "needs": msgspec.to_builtins(row.needs),
    }


def _of_session(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.id,
        "side": rule.side.value,
        "window": str(rule.window),
        "transports": sorted(rule.transports),
        "methods": sorted(rule.methods),
        "answers_to": sorted(rule.answers_to),
        "sender": rule.sender,
    }


def _of_grading() -> dict[str, Any]:
    return {
        "weights": {severity.value: weight for severity, weight in WEIGHTS.items()},
        "cut_offs": CUT_OFFS,
        "broken_musts": {str(least): cap for least, cap in CAP_BY_BROKEN_MUSTS.items()},
        "caps": [CAP_UNJUDGED, CAP_HALF_SEEN, SEEN_FOR_BEST],
        "letter": [
            RULES_FOR_A_LETTER,
            MUSTS_FOR_A_LETTER,
            SHARE_FOR_A_LETTER,
            UNJUDGED_FOR_A_LETTER,
        ],
        "basic": sorted(basic_rules()),
        "basic_unless": shown_harmless_by(),
    }


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, default=dict)
