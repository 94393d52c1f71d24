"""What became of the tests of a run: plain data that any report can be made from, also later."""

from __future__ import annotations

import enum

import msgspec

RUN_FORMAT = "mcptest.run/1"


class Status(enum.Enum):
    PASS = "PASS"
    FAIL = "FAIL"
    SKIP = "SKIP"


class FailedCheck(msgspec.Struct, frozen=True, omit_defaults=True):
    """One expectation that did not hold."""

    check: str
    message: str
    expected: str | None = None
    actual: str | None = None
    pointer: str | None = None


class Proof(msgspec.Struct, frozen=True, omit_defaults=True):
    """What went over the wire for a test, cut to a length a person reads."""

    request: str = ""
    response: str = ""
    stderr: tuple[str, ...] = ()
    exit: str = ""
    repeat: str = ""
    """The command that runs just this test again."""
    capture: str = ""
    """The file that holds everything, when captures are kept."""


class TestResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """One test, once. The first six members are the shape that mcp-assert prints as JSON."""

    name: str
    status: Status
    detail: str = ""
    duration_ms: int = 0
    language: str = ""
    trial: int = 1
    file: str = ""
    line: int = 0
    kind: str = ""
    """Of a failure: `check`, `call`, `setup`, `start`, `timeout`, `crash` or `protocol`."""
    failures: tuple[FailedCheck, ...] = ()
    proof: Proof | None = None
    tags: tuple[str, ...] = ()
    server: str = ""
    revision: str = ""
    revision_reason: str = ""
    """Why this revision was spoken."""
    note: str = ""
    """Worth knowing, not worth failing: a retry, a symlink that was left out."""


class Suggestion(msgspec.Struct, frozen=True):
    """A position nearby at which a failing test passes."""

    name: str
    file: str
    line: int
    was: tuple[tuple[str, int], ...]
    """The arguments that hold the position, with their values in the suite."""
    now: tuple[tuple[str, int], ...]
    patch: tuple[str, ...] = ()
    """Lines of a unified diff; none where the place in the file is not known."""


class Flakiness(msgspec.Struct, frozen=True):
    """One test over its trials."""

    name: str
    trials: int
    passed: int

    @property
    def capable(self) -> bool:
        """pass@k: it passed at least once."""
        return self.passed > 0

    @property
    def reliable(self) -> bool:
        """pass^k: it passed every time."""
        return self.passed == self.trials and self.trials > 0

    @property
    def flaky(self) -> bool:
        return self.capable and not self.reliable


class Regression(msgspec.Struct, frozen=True):
    name: str
    was: str
    now: str
    language: str = ""


class Shard(msgspec.Struct, frozen=True):
    """Which part of a run that was divided this is: the `index`-th of `count`, counted from 1."""

    index: int
    count: int


class Demand(msgspec.Struct, frozen=True):
    """What `mcptest ci` takes for good enough, where that is not that everything passes."""

    threshold: int = 100
    """The lowest pass rate, in percent."""
    no_regressions: bool = False


class RunReport(msgspec.Struct, frozen=True, omit_defaults=True):
    """A whole run. Saved as JSON, it can be rendered again in any form."""

    results: tuple[TestResult, ...] = ()
    format: str = RUN_FORMAT
    tool: str = ""
    started: str = ""
    duration_ms: int = 0
    trials: int = 1
    interrupted: bool = False
    regressions: tuple[Regression, ...] = ()
    notes: tuple[str, ...] = ()
    """What the reader must know: warnings of the loader, reports that could not be written."""
    shard: Shard | None = None
    """None: nothing was left to others."""
    demand: Demand | None = None
    """None: everything has to pass."""

    @property
    def falls_short(self) -> bool:
        """Whether what ran is not good enough."""
        if self.demand is None:
            return bool(self.failed or self.regressions)
        enough = self.passed * 100 >= self.demand.threshold * (self.passed + self.failed)
        return not enough or bool(self.regressions and self.demand.no_regressions)

    @property
    def passed(self) -> int:
        return sum(result.status is Status.PASS for result in self.results)

    @property
    def failed(self) -> int:
        return sum(result.status is Status.FAIL for result in self.results)

    @property
    def skipped(self) -> int:
        return sum(result.status is Status.SKIP for result in self.results)
