"""Which tests of a suite a move between two revisions touches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mcptest.rules.corpus.rows import CorpusRule
from mcptest.rules.corpus.version_diff import DiffEntry, VersionDiff
from mcptest.suite.compliance_block import ComplianceBlock, ComplianceTest


@dataclass(frozen=True, slots=True)
class Touched:
    """A test, and the rule that moves under it."""

    test: ComplianceTest
    entry: DiffEntry

    @property
    def why(self) -> str:
        if self.test.rule_id == self.entry.rule_id:
            return f"it is named after {self.entry.rule_id}, which is {self.entry.bucket}"
        method = self.test.check.method if self.test.check is not None else ""
        return f"it sends {method}, and {self.entry.rule_id} about that is {self.entry.bucket}"


def touched_tests(block: ComplianceBlock, diff: VersionDiff) -> list[Touched]:
    """By the name of a rule, or by the method that is sent; in the order of the suite.

    A rule that is new can't break a test that exists, so only changed and removed ones count.
    """
    moved = [entry for entry in diff.entries if entry.bucket in {"changed", "removed"}]
    return [Touched(test, entry) for test in block.tests or () for entry in _under(test, moved)]


def _under(test: ComplianceTest, moved: list[DiffEntry]) -> Iterator[DiffEntry]:
    for entry in moved:
        if test.rule_id:
            if entry.rule_id == test.rule_id:
                yield entry
        elif test.check is not None and test.check.method in _methods_of(entry):
            yield entry


def _methods_of(entry: DiffEntry) -> set[str]:
    sides: tuple[CorpusRule | None, ...] = (entry.was, entry.now)
    rows = [side.row for side in sides if side is not None and side.row is not None]
    return {row.check.method for row in rows} - {""}
