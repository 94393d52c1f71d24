"""What moved between two revisions, rule by rule. What a rule expects decides, nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from mcptest.core.errors import UsageError
from mcptest.core.judgement import GateResult
from mcptest.core.revision import Revision
from mcptest.core.safe_text import show
from mcptest.core.verdict import Severity
from mcptest.rules.corpus.reader import VersionCorpus
from mcptest.rules.corpus.registry import CorpusRule, expectations_in_words, same_expectations
from mcptest.suite.lane_blocks import ComplianceBlock, ComplianceTest, judge_gate

Bucket: TypeAlias = Literal["changed", "unchanged", "added", "removed"]
BUCKETS: tuple[Bucket, ...] = ("changed", "added", "removed", "unchanged")
_PAINT = {"changed": "31", "added": "32", "removed": "33", "unchanged": "2"}
_SIGN = {"changed": "!", "added": "+", "removed": "-", "unchanged": "="}


@dataclass(frozen=True, slots=True)
class DiffEntry:
    """One rule: as it was, as it is."""

    rule_id: str
    bucket: Bucket
    was: CorpusRule | None
    now: CorpusRule | None

    @property
    def rule(self) -> CorpusRule:
        """The newer of the two."""
        found = self.now or self.was
        assert found is not None  # an entry has at least one side
        return found

    @property
    def title(self) -> str:
        return self.rule.title

    @property
    def severity_move(self) -> tuple[Severity | None, Severity | None] | None:
        """Old and new keyword where a rule that stayed has another one; never a breakage."""
        if self.was is None or self.now is None or self.was.severity == self.now.severity:
            return None
        return self.was.severity, self.now.severity


@dataclass(frozen=True, slots=True)
class DiffSummary:
    changed: int
    unchanged: int
    added: int
    removed: int
    severity_changes: int

    @property
    def in_words(self) -> str:
        return (
            f"{self.changed} changed, {self.added} added, {self.removed} removed, "
            f"{self.unchanged} unchanged, {self.severity_changes} with a new severity"
        )


@dataclass(frozen=True, slots=True)
class VersionDiff:
    """All rules of both revisions, ordered by id."""

    from_version: str
    to_version: str
    entries: tuple[DiffEntry, ...]
    summary: DiffSummary
    about: str = ""
    """What the newer revision says it changed."""

    def is_clean(self) -> bool:
        """Nothing that both revisions have is expected differently."""
        return self.summary.changed == 0

    def changed_rules(self) -> Iterator[DiffEntry]:
        """The breakage: rules that both have and that expect something else now."""
        return self.in_bucket("changed")

    def in_bucket(self, bucket: Bucket) -> Iterator[DiffEntry]:
        return (entry for entry in self.entries if entry.bucket == bucket)

    def severity_changes(self) -> Iterator[DiffEntry]:
        return (entry for entry in self.entries if entry.severity_move is not None)

    def render_pretty(self, color: bool = False) -> str:
        """A summary for people: what changed with both sides, the rest by name."""
        return "\n".join(_pretty(self, color)) + "\n"


def diff_versions(older: VersionCorpus, newer: VersionCorpus) -> VersionDiff:
    names = sorted(older.rules.keys() | newer.rules.keys())
    entries = tuple(_entry(name, older.rules.get(name), newer.rules.get(name)) for name in names)
    count = {bucket: sum(entry.bucket == bucket for entry in entries) for bucket in BUCKETS}
    moves = sum(entry.severity_move is not None for entry in entries)
    summary = DiffSummary(**count, severity_changes=moves)
    return VersionDiff(older.version, newer.version, entries, summary, newer.about)


def _entry(name: str, was: CorpusRule | None, now: CorpusRule | None) -> DiffEntry:
    bucket: Bucket = "removed" if was is not None else "added"
    if was is not None and now is not None:
        bucket = "unchanged" if same_expectations(was, now) else "changed"
    return DiffEntry(name, bucket, was, now)


def move_in_words(move: tuple[Severity | None, Severity | None]) -> str:
    """`SHOULD -> MUST`; a rule that no registry knows has no keyword."""
    return " -> ".join("none" if one is None else one.value for one in move)


def diff_facts(diff: VersionDiff) -> dict[str, Any]:
    """What `spec_version_check` may look at."""
    return {
        "spec_clean": diff.is_clean(),
        "spec_breaking_changes": [entry.rule_id for entry in diff.changed_rules()],
        "spec_added": [entry.rule_id for entry in diff.in_bucket("added")],
        "spec_removed": [entry.rule_id for entry in diff.in_bucket("removed")],
        "spec_severity_changes": [entry.rule_id for entry in diff.severity_changes()],
    }


def _pretty(diff: VersionDiff, color: bool) -> Iterator[str]:
    verdict = "clean" if diff.is_clean() else "BREAKING"
    yield _painted(f"{diff.from_version} -> {diff.to_version}: {verdict}", "1", color)
    yield f"  {diff.summary.in_words}"
    for bucket in BUCKETS[:3]:
        for entry in diff.in_bucket(bucket):
            sign = _painted(f"{_SIGN[bucket]} {entry.rule_id}", _PAINT[bucket], color)
            yield f"  {sign}  {show(entry.title, 120)}"
            if bucket == "changed":
                yield from (f"      was  {line}" for line in expectations_in_words(entry.was))
                yield from (f"      now  {line}" for line in expectations_in_words(entry.now))
    for entry in diff.severity_changes():
        assert entry.severity_move is not None  # that is what they were chosen by
        yield f"  ~ {entry.rule_id}  {move_in_words(entry.severity_move)}"


def _painted(text: str, code: str, color: bool) -> str:
    return f"\x1b[{code}m{text}\x1b[0m" if color else text


# -- Which tests of a suite a move between two revisions touches ---------------------------------


@dataclass(frozen=True, slots=True)
class Touched:
    """A test, and the rule that moves under it."""

    test: ComplianceTest
    entry: DiffEntry

    @property
    def why(self) -> str:
        if self.test.rule_id == self.entry.rule_id:
            return f"it is named after {self.entry.rule_id}, which was {self.entry.bucket}"
        method = self.test.check.method if self.test.check is not None else ""
        return f"it sends {method}, and {self.entry.rule_id} about it was {self.entry.bucket}"


def touched_tests(block: ComplianceBlock, diff: VersionDiff) -> list[Touched]:
    """By the name of a rule, or by the method that is sent; in the order of the suite.

    A rule that is new can't break a test that exists, so only changed and removed ones count.
    """
    moved = [entry for entry in diff.entries if entry.bucket in {"changed", "removed"}]
    return [Touched(test, entry) for test in block.tests or () for entry in _under(test, moved)]


def _under(test: ComplianceTest, moved: list[DiffEntry]) -> Iterator[DiffEntry]:
    for entry in moved:
        rules: list[CorpusRule] = [one for one in (entry.was, entry.now) if one is not None]
        sent = {one.row.check.method for one in rules if one.row is not None} - {""}
        is_sent = test.check is not None and test.check.method in sent
        if entry.rule_id == test.rule_id or (is_sent and not test.rule_id):
            yield entry


# -- `spec_version_check` ------------------------------------------------------------------------


_GATE = "spec_version_check"


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
        hint = "pin the revision that the suite was written for"
        raise UsageError("spec_version_check needs compliance.spec_version", hint=hint)
    if check.against is None:
        return GateResult(_GATE, True, "no against: nothing to compare with yet")
    newer, older = corpus_of(check.against), corpus_of(pinned)
    if newer is None or older is None:
        missing = check.against if newer is None else pinned
        note = f"no corpus for {missing.label}: nothing to compare with yet"
        return GateResult(_GATE, True, note)
    diff = diff_versions(older, newer)
    judged = judge_gate(check.expect, diff_facts(diff))
    failures = tuple(failure.message for failure in judged.failures)
    total = diff.summary
    counts = f"{total.changed} changed, {total.added} added, {total.removed} removed"
    note = f"{diff.from_version} -> {diff.to_version}: {counts}"
    return GateResult(_GATE, judged.passed, note, failures)
