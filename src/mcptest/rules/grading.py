"""From what became of the rules to a grade. docs/compliance/grading.md publishes the figures.

The score is the weighted share of the observed rules that pass. What was not observed, does not
apply or could not be judged is in neither part of that share, so it never moves the score; the
letter says it where it matters. Letters can only be taken away from what the score gives.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from mcptest.model.compliance import Grade, RuleResult, SectionScore
from mcptest.model.verdict import Outcome, Severity

WEIGHTS: Final[Mapping[Severity, int]] = {
    Severity.MUST: 10,
    Severity.SHOULD: 3,
    Severity.MAY: 1,
}
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
BASIC: Final[Mapping[str, str]] = {
    "PROTO-001": "without version, capabilities and name a client ends the handshake",
    "PROTO-002": "clients refuse an initialize result whose capabilities they can't read",
    "LIFE-005": "there is no revision that client and server could agree on",
    "PROTO-010": "a client can't find out which versions and capabilities there are",
    "META-007": "a client can't find out which versions and capabilities there are",
    "MSG-001": "clients drop what is no JSON-RPC 2.0 message, and wait",
    "MSG-006": "an answer without its request's id answers nothing, and the client waits",
    "HTTP-002": "a client can't tell how to read the body of an answer",
    "SSE-001": "a client has no address to send anything to",
}
"""The basic protocol: rules without which no client gets any further, and why. Failing one is F."""


def grade(results: Sequence[RuleResult]) -> Grade:
    """The grade of a server that was judged by a whole corpus."""
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


class _Cap(msgspec.Struct, frozen=True):
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


def _caps_by_failures(results: Iterable[RuleResult]) -> Iterator[_Cap]:
    broken = [one.id for one in results if one.failed and one.severity is Severity.MUST]
    for name in sorted(set(broken) & BASIC.keys()):
        yield _Cap("F", f"{name} is of the basic protocol: {BASIC[name]}")
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
        return _too_much_unjudged(_unjudged_musts(results), musts)
    return (
        f"no letter: {seen} of {applicable} applicable rules were observed, {musts} of them MUST; "
        f"a letter needs {RULES_FOR_A_LETTER}, {MUSTS_FOR_A_LETTER} of them MUST, "
        f"and {SHARE_FOR_A_LETTER} %"
    )


def _too_much_unjudged(unjudged: int, musts: int) -> str:
    """Who falls silent after the handshake has passed what a handshake shows, and nothing else."""
    if 100 * unjudged <= UNJUDGED_FOR_A_LETTER * musts:
        return ""
    return (
        f"no letter: {unjudged} MUST rules could not be judged, {musts} were observed; "
        f"a letter takes at most {UNJUDGED_FOR_A_LETTER} % of these"
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
