"""What a session of watching knows: how all tests stand, and what flipped in the last run."""

from __future__ import annotations

import msgspec

from mcptest.model.results import Status, TestResult


class Flip(msgspec.Struct, frozen=True):
    """A test whose outcome is another than the last time, or that fails for another reason."""

    now: TestResult
    before: TestResult | None = None
    """None for a test that has not been run before."""

    @property
    def is_worse(self) -> bool:
        return self.now.status is Status.FAIL


class Standing(msgspec.Struct, frozen=True):
    """All tests that there are now, by what became of them when they were last run."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    not_run: int = 0
    problems: int = 0
    """What is wrong with the suites themselves."""

    @property
    def is_nothing(self) -> bool:
        return not (self.passed or self.failed or self.skipped or self.not_run or self.problems)

    @property
    def is_good(self) -> bool:
        """Nothing that was asked for failed or is missing."""
        return not (self.is_nothing or self.failed or self.not_run or self.problems)
