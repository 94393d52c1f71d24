"""`spec_version_check`: is the way from the pinned revision to another one clean?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mcptest.model.errors import UsageError
from mcptest.model.revision import Revision
from mcptest.rules.corpus.version_corpus import VersionCorpus
from mcptest.rules.corpus.version_diff import VersionDiff, diff_facts, diff_versions
from mcptest.suite.compliance_block import ComplianceBlock, judge_gate


@dataclass(frozen=True, slots=True)
class GateResult:
    """One line of the report, and what stands behind it."""

    gate: str
    passed: bool
    note: str = ""
    failures: tuple[str, ...] = ()
    diff: VersionDiff | None = None

    @property
    def line(self) -> str:
        note = f" ({self.note})" if self.note else ""
        return f"{self.gate}: {'PASS' if self.passed else 'FAIL'}{note}"


def judge_spec_version_check(
    block: ComplianceBlock, corpus_of: Callable[[Revision], VersionCorpus | None]
) -> GateResult | None:
    """The gate's result; None when the block has none.

    Adding the gate never breaks a build on that day: without a revision to go to, or without a
    corpus for it, it passes and says so. Without a pin there is nothing to start from.
    """
    check = block.spec_version_check
    if check is None:
        return None
    pinned = block.spec_version
    if pinned is None:
        raise UsageError(
            "spec_version_check needs compliance.spec_version",
            hint="pin the revision that the suite was written for",
        )
    if check.against is None:
        return GateResult("spec_version_check", True, "no against: nothing to compare with yet")
    older, newer = corpus_of(pinned), corpus_of(check.against)
    for revision, corpus in ((check.against, newer), (pinned, older)):
        if corpus is None:
            note = f"there is no corpus for {revision.label}: nothing to compare with yet"
            return GateResult("spec_version_check", True, note)
    assert older is not None  # both were looked at
    assert newer is not None
    diff = diff_versions(older, newer)
    judged = judge_gate(check.expect, diff_facts(diff))
    failures = tuple(failure.message for failure in judged.failures)
    return GateResult("spec_version_check", judged.passed, _note(diff), failures, diff)


def _note(diff: VersionDiff) -> str:
    total = diff.summary
    return (
        f"{diff.from_version} -> {diff.to_version}: {total.changed} changed, "
        f"{total.added} added, {total.removed} removed"
    )
