"""What became of the tests of a run: plain data that any report can be made from, also later.

A member that follows from the others is a field too, so that a script finds it in the file. It is
worked out each time a report is made, also when one is read: what a file states about its own
results is never believed.
"""

from __future__ import annotations

import datetime
import enum
import time
from typing import Annotated, Any, TypeAlias, TypeVar

import msgspec
from msgspec.structs import force_setattr

from mcptest import __version__
from mcptest.core.errors import ExitCode

Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]
_Value = TypeVar("_Value")


def always(default: _Value, name: str | None = None) -> _Value:
    """The default of a member that is written even so, in a type that omits defaults."""
    # msgspec can't tell what a factory gives, and writes it.
    return msgspec.field(default_factory=lambda: default, name=name)


def derive(value: msgspec.Struct, **members: Any) -> None:
    """Set the members of a frozen value that follow from its others."""
    for name, member in members.items():
        force_setattr(value, name, member)


def made_since(began: float) -> dict[str, Any]:
    """What a report says of its own making: by which version, when it began and how long it took.

    `began` is a time of the monotonic clock.
    """
    spent = time.monotonic() - began
    started = datetime.datetime.now(datetime.UTC) - datetime.timedelta(seconds=spent)
    return {
        "tool": f"mcptest {__version__}",
        "started": started.isoformat(timespec="seconds"),
        "duration_ms": round(spent * 1000),
    }


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
    duration_ms: int = always(0)
    language: str = ""
    trial: int = always(1)
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


class RunSummary(msgspec.Struct, frozen=True):
    total: Count = 0
    passed: Count = 0
    failed: Count = 0
    skipped: Count = 0


class Invocation(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a report came about."""

    command: str = ""
    """The command line, with secrets masked."""
    commit: str = ""
    """The commit that was checked out, in short; empty outside of a repository."""
    platform: str = ""


class RunReport(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    tag_field="format",
    tag="mcptest.run/1",
):
    """A whole run. Saved as JSON, it can be rendered again in any form."""

    tool: str = always("")
    started: str = always("")
    duration_ms: int = always(0)
    trials: int = always(1)
    interrupted: bool = always(False)
    summary: RunSummary = always(RunSummary())
    results: tuple[TestResult, ...] = always(())
    regressions: tuple[Regression, ...] = ()
    notes: tuple[str, ...] = ()
    """What the reader must know: warnings of the loader, reports that could not be written."""
    shard: Shard | None = None
    """None: nothing was left to others."""
    demand: Demand | None = None
    """None: everything has to pass."""
    invocation: Invocation | None = None

    def __post_init__(self) -> None:
        statuses = [one.status for one in self.results]
        passed, failed = statuses.count(Status.PASS), statuses.count(Status.FAIL)
        skipped = len(statuses) - passed - failed
        derive(self, summary=RunSummary(len(statuses), passed, failed, skipped))

    @property
    def passed(self) -> int:
        return self.summary.passed

    @property
    def failed(self) -> int:
        return self.summary.failed

    @property
    def skipped(self) -> int:
        return self.summary.skipped

    @property
    def code(self) -> ExitCode:
        """The exit code that goes with it."""
        if self.interrupted:
            return ExitCode.INTERRUPTED
        if self.falls_short:
            return ExitCode.FAILED
        return ExitCode.OK if self.passed or self.failed else ExitCode.NOTHING_MATCHED

    def as_run(self) -> RunReport:
        """As every kind of report has it."""
        return self

    @property
    def falls_short(self) -> bool:
        """Whether what ran is not good enough."""
        if self.demand is None:
            return bool(self.failed or self.regressions)
        enough = self.passed * 100 >= self.demand.threshold * (self.passed + self.failed)
        return not enough or bool(self.regressions and self.demand.no_regressions)
