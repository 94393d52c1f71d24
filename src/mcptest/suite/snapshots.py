"""What can become of a golden answer: the words that every report of snapshots is made of."""

from __future__ import annotations

import enum

import msgspec

from mcptest.model.results import RunReport

FILE_TROUBLE = "snapshot"
"""The check that fails when a golden file can't be read or written."""


class SnapshotOutcome(enum.Enum):
    """One test, or one golden file that no test is left for."""

    MATCHED = "matched"
    CHANGED = "changed"
    """The answer is another one than the golden file holds."""
    NEW = "new"
    """There is no golden file yet, so nothing was compared."""
    MISSING = "missing"
    """There is a golden file, and no test whose answer it could be."""
    CREATED = "created"
    UPDATED = "updated"
    UNCHANGED = "unchanged"
    FAILED = "failed"
    """There was no answer, or its file could not be read or written."""
    SKIPPED = "skipped"

    @property
    def is_bad(self) -> bool:
        return self in _BAD


_BAD = frozenset(
    {
        SnapshotOutcome.CHANGED,
        SnapshotOutcome.NEW,
        SnapshotOutcome.MISSING,
        SnapshotOutcome.FAILED,
    }
)
_NOT_COMPARED = frozenset({SnapshotOutcome.SKIPPED, SnapshotOutcome.MISSING})


class Kept(msgspec.Struct, frozen=True):
    """What became of one snapshot, and where it is."""

    outcome: SnapshotOutcome
    golden: str = ""
    """The file, as a path that a person can open."""
    note: str = ""


class SnapshotReport(msgspec.Struct, frozen=True):
    """A run whose answers were held against golden files: `kept[i]` belongs to result `i`."""

    run: RunReport
    kept: tuple[Kept, ...]
    update: bool = False

    def count(self, outcome: SnapshotOutcome) -> int:
        return sum(one.outcome is outcome for one in self.kept)

    @property
    def failed(self) -> bool:
        """A file without its test is no failure of an update, which never deletes anything."""
        allowed = SnapshotOutcome.MISSING if self.update else None
        return any(one.outcome.is_bad and one.outcome is not allowed for one in self.kept)

    @property
    def compared(self) -> int:
        """How many answers were held against a file, or written into one."""
        return sum(one.outcome not in _NOT_COMPARED for one in self.kept)

    @property
    def unwritten(self) -> bool:
        """Whether there was an answer that could not be put into its file."""
        pairs = zip(self.run.results, self.kept, strict=True)
        failed = (result for result, one in pairs if one.outcome is SnapshotOutcome.FAILED)
        return any(failure.check == FILE_TROUBLE for each in failed for failure in each.failures)
