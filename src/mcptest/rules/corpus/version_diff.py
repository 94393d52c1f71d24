"""What moved between two revisions, rule by rule. What a rule expects decides, nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from mcptest.model.show import show
from mcptest.model.verdict import Severity
from mcptest.rules.corpus.rows import CorpusRule, same_expectations
from mcptest.rules.corpus.version_corpus import VersionCorpus
from mcptest.rules.corpus.words import expectations_in_words

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
    """Compare two corpora, keyed by rule id."""
    names = sorted(older.rules.keys() | newer.rules.keys())
    entries = tuple(_entry(name, older.rules.get(name), newer.rules.get(name)) for name in names)
    count = {bucket: sum(entry.bucket == bucket for entry in entries) for bucket in BUCKETS}
    moves = sum(entry.severity_move is not None for entry in entries)
    summary = DiffSummary(
        changed=count["changed"],
        unchanged=count["unchanged"],
        added=count["added"],
        removed=count["removed"],
        severity_changes=moves,
    )
    return VersionDiff(older.version, newer.version, entries, summary, newer.about)


def _entry(name: str, was: CorpusRule | None, now: CorpusRule | None) -> DiffEntry:
    bucket: Bucket
    if was is None:
        bucket = "added"
    elif now is None:
        bucket = "removed"
    else:
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
    total = diff.summary
    verdict = "clean" if diff.is_clean() else "BREAKING"
    yield _painted(f"{diff.from_version} -> {diff.to_version}: {verdict}", "1", color)
    yield (
        f"  {total.changed} changed, {total.added} added, {total.removed} removed, "
        f"{total.unchanged} unchanged, {total.severity_changes} with another severity"
    )
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
