"""Made-up results of rules, for tests of what is done with them."""

from __future__ import annotations

from mcptest.core.judgement import Judgement, Profile, RuleResult
from mcptest.core.revision import Revision
from mcptest.core.verdict import Outcome, Severity
from mcptest.rules.grading import grade

PASS, FAIL = Outcome.PASS, Outcome.FAIL
UNSEEN, NOT_APPLICABLE = Outcome.NOT_OBSERVED, Outcome.NOT_APPLICABLE
INCONCLUSIVE = Outcome.INCONCLUSIVE
MUST, SHOULD, MAY = Severity.MUST, Severity.SHOULD, Severity.MAY
NEWEST = Revision.V2025_11_25


def result(
    rule: str,
    outcome: Outcome = PASS,
    severity: Severity = MUST,
    section: str = "tools",
    cause: str = "",
) -> RuleResult:
    return RuleResult(
        rule, f"the title of {rule}", section, severity, outcome, cause=cause, observed=1
    )


def results(count: int, outcome: Outcome = PASS, severity: Severity = MUST) -> list[RuleResult]:
    """That many of a kind, with ids of their own."""
    kind = f"{outcome.name[:3]}{severity.name[:3]}"
    return [result(f"{kind}-{number:03}", outcome, severity) for number in range(count)]


def judgement(
    *those: RuleResult,
    revision: Revision = NEWEST,
    corpus: str = "c0ffee",
    tool: str = "1.0",
    transport: str = "stdio",
) -> Judgement:
    return Judgement(
        revision=revision,
        transport=transport,
        results=tuple(those),
        profile=Profile(tool, corpus, revision),
        grade=grade(those),
    )
