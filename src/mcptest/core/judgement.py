"""What became of a server that was judged: rule by rule, with the proof, the grade and the gates.

Plain data that any report can be made from, also later.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, TypeAlias

import msgspec

from mcptest.core.results import Count, always, derive
from mcptest.core.revision import Revision
from mcptest.core.verdict import Finding, Outcome, Severity


class Evidence(msgspec.Struct, frozen=True):
    """What was sent and what came back, made safe to show, without secrets."""

    sent: str = ""
    received: str = ""
    """Empty: nothing came."""


CUT_SHORT = "interrupted: rules not judged by then are inconclusive, and there is no grade"
"""The note of a judgement that was stopped, by a person or by --max-time."""


class Commonness(msgspec.Struct, frozen=True):
    """How many published servers break a rule, as it was measured."""

    broken: int
    of: int
    """On how many of them it was observed."""
    when: str
    """The month."""


class FromSdk(msgspec.Struct, frozen=True):
    """The SDK that breaks a rule by itself."""

    name: str
    measured: str
    """The versions that were seen to do so."""


class RuleResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """One rule, judged on one server in one revision."""

    id: str
    title: str
    section: str
    severity: Severity
    outcome: Outcome
    reason: str = ""
    """Why it is neither pass nor fail; empty for those."""
    findings: tuple[Finding, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    again: tuple[Evidence, ...] = ()
    """Of a failure that did not repeat: what was sent and came back when it was asked again. Its
    findings and its evidence are those of the first time."""
    observed: int = 0
    """How often it was exercised. A pass has at least one."""
    requirement: str = ""
    url: str = ""
    fix: str = ""
    unlocked_by: str = ""
    """Of a rule that was not observed: what the server would need so that it could be."""
    cause: str = ""
    """The root cause that kept it from being judged: the `id` of one of the causes."""
    repeat: str = ""
    """The command that judges just this rule again."""
    common: Commonness | None = None
    """Of a rule that failed: how many published servers break it, where that was measured."""
    from_sdk: FromSdk | None = None
    """Of a rule that failed: the SDK that is known to answer like this, and which this server shows
    the signs of."""

    @property
    def failed(self) -> bool:
        return self.outcome is Outcome.FAIL

    @property
    def failed_once(self) -> bool:
        """It failed, and did not when it was asked again, or could not be asked again."""
        return self.outcome is Outcome.INCONCLUSIVE and bool(self.findings)


class RootCause(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that went wrong and kept several rules from being judged."""

    id: str
    """`exited`, `banner`, `unauthorized`, `silence`, `unchecked` …; a number follows where there
    are several."""
    message: str
    hint: str = ""
    evidence: tuple[Evidence, ...] = ()
    kept_from_judging: int = 0


class Profile(msgspec.Struct, frozen=True):
    """By what a server was judged. Two grades are comparable when their profiles are equal."""

    tool: str
    corpus: str
    """A hash over every rule of the corpus and how it weighs."""
    revision: Revision
    id: str = ""

    def __post_init__(self) -> None:
        derive(self, id=f"{self.tool}/{self.revision.label}/{self.corpus}")


class SectionScore(msgspec.Struct, frozen=True, omit_defaults=True):
    section: str
    grade: str
    """Empty where nothing of the section was observed."""
    score: float
    passed: int = 0
    failed: int = 0
    not_observed: int = 0


class Grade(msgspec.Struct, frozen=True, omit_defaults=True):
    letter: str
    """A+ … F; empty where too little was observed for one."""
    score: float
    """From 0 to 100; 0 where there is no letter."""
    sections: tuple[SectionScore, ...] = ()
    caps: tuple[str, ...] = ()
    """Why the letter is lower than the score alone would give, in words."""


class RuleCounts(msgspec.Struct, frozen=True, rename={"passed": "pass", "failed": "fail"}):
    """How many rules came to what."""

    rules: Count = 0
    broken_musts: Count = 0
    passed: Count = 0
    failed: Count = 0
    not_observed: Count = 0
    not_applicable: Count = 0
    inconclusive: Count = 0
    coverage: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.0
    """The share of the applicable rules that this run exercised."""


class Judgement(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One server in one revision over one transport."""

    revision: Revision
    transport: str
    server_name: str = ""
    server_version: str = ""
    revision_reason: str = ""
    """Why the server was judged in this revision."""
    sdk: str = ""
    """The SDK that the server shows all signs of; empty where none is recognised."""
    causes: tuple[RootCause, ...] = ()
    grade: Grade | None = None
    """None where the server was not judged by a whole corpus."""
    requests: int = 0
    duration_ms: int = 0
    notes: tuple[str, ...] = ()
    captures: tuple[str, ...] = ()
    """Files that hold everything that went over the wire, where they are kept."""
    profile: Profile
    whole_corpus: bool = always(True)
    """False when only some rules were asked for."""
    summary: RuleCounts = always(RuleCounts())
    results: tuple[RuleResult, ...]
    """Ordered by section, then by rule id."""

    def __post_init__(self) -> None:
        outcomes = [one.outcome for one in self.results]
        broken = sum(one.failed and one.severity is Severity.MUST for one in self.results)
        counts = {name.value: outcomes.count(name) for name in Outcome}
        counts |= {"passed": counts.pop("pass"), "failed": counts.pop("fail")}
        share = round(self.coverage, 4)
        summary = RuleCounts(rules=len(outcomes), broken_musts=broken, coverage=share, **counts)
        derive(self, summary=summary)

    def count(self, outcome: Outcome) -> int:
        return sum(one.outcome is outcome for one in self.results)

    @property
    def failures(self) -> Iterator[RuleResult]:
        return (one for one in self.results if one.failed)

    @property
    def broken_musts(self) -> int:
        return self.summary.broken_musts

    @property
    def observed(self) -> int:
        return self.count(Outcome.PASS) + self.count(Outcome.FAIL)

    @property
    def applicable(self) -> int:
        return len(self.results) - self.count(Outcome.NOT_APPLICABLE)

    @property
    def coverage(self) -> float:
        """The share of the applicable rules that this run exercised, from 0 to 1."""
        return self.observed / self.applicable if self.applicable else 0.0


class GateResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """One gate: spec_version_check, grade_delta or a baseline."""

    name: str
    passed: bool
    detail: str = ""
    """What did not hold, or a note such as that there was nothing to compare with."""
    lines: tuple[str, ...] = ()
    """More of it, one fact a line."""


# -- What judging a server tells while it happens ------------------------------------------------


class JudgingBegan(msgspec.Struct, frozen=True):
    """The server was met."""

    revision: Revision
    transport: str
    server: str
    """How it calls itself, made safe to show."""
    rules: int


class RuleJudged(msgspec.Struct, frozen=True):
    done: int
    total: int
    id: str
    outcome: Outcome
    title: str = ""
    failed: bool = False
    """Whether a MUST was broken: that is worth telling at once."""


class JudgingWaits(msgspec.Struct, frozen=True):
    """What nothing can go on without, as a clause."""

    what: str


Event: TypeAlias = JudgingBegan | RuleJudged | JudgingWaits


# -- What is kept of a judged server to hold later runs against it -------------------------------

SCORECARD_FORMAT = "mcptest.scorecard/1"
HISTORY_FORMAT = "mcptest.flaky-history/1"


class Scorecard(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="format", tag=SCORECARD_FORMAT
):
    """The grade of one run, by what it was given, and what became of each rule."""

    server: str
    """How people call the server: a label, with secrets masked."""
    profile: Profile
    transport: str = ""
    grade: str
    """Empty where too little was observed for a letter."""
    score: float
    sections: tuple[SectionScore, ...] = ()
    rules: Mapping[str, Outcome] = msgspec.field(default_factory=dict)


def scorecard_of(judgement: Judgement, grade: Grade, server_label: str) -> Scorecard:
    """The scorecard of a judgement. Nothing in it depends on when or where it was made."""
    return Scorecard(
        server=server_label,
        profile=judgement.profile,
        transport=judgement.transport,
        grade=grade.letter,
        score=grade.score,
        sections=grade.sections,
        rules={one.id: one.outcome for one in sorted(judgement.results, key=lambda one: one.id)},
    )


class PastRun(msgspec.Struct, frozen=True):
    """What became of the flaky rules in one earlier run."""

    revision: Revision
    outcomes: Mapping[str, Outcome]
