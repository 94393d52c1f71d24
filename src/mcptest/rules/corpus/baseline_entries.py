"""The baseline of a server as values: rules that are known to fail, each with its reason."""

from __future__ import annotations

from dataclasses import dataclass, field

from mcptest.model.compliance import RuleResult
from mcptest.model.revision import Revision
from mcptest.model.verdict import Outcome
from mcptest.suite.model import Place


@dataclass(frozen=True, slots=True)
class KnownFailure:
    rule_id: str
    reason: str = ""
    tracking: str = ""
    max_rate: float | None = None
    """Of a flaky rule: the share of runs in which it may fail. None: it always fails."""
    revision: Revision | None = None
    """The only revision that the entry is about; None: every revision."""
    place: Place = field(default_factory=lambda: Place(""), compare=False)


@dataclass(frozen=True, slots=True)
class KnownFailures:
    entries: tuple[KnownFailure, ...] = ()

    def of(self, revision: Revision) -> dict[str, KnownFailure]:
        """The entries that hold in a revision, by rule; one that names it goes before."""
        general = {one.rule_id: one for one in self.entries if one.revision is None}
        own = {one.rule_id: one for one in self.entries if one.revision is revision}
        return {**general, **own}

    @property
    def flaky_rules(self) -> frozenset[str]:
        return frozenset(one.rule_id for one in self.entries if one.max_rate is not None)


def is_known_matter(result: RuleResult) -> bool:
    """What belongs in a baseline: a failure, or that a root cause keeps the rule unjudged."""
    return result.failed or (result.outcome is Outcome.INCONCLUSIVE and bool(result.cause))
