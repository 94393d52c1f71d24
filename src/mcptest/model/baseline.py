"""Failures that are known, and how a run of scenarios compares with them."""

from __future__ import annotations

import msgspec

from mcptest.model.verdict import Side


class ExpectedFailure(msgspec.Struct, frozen=True, omit_defaults=True):
    """A scenario that is known to fail, or one check of it."""

    side: Side
    scenario: str
    check: str = ""
    """Empty: the whole scenario."""
    reason: str = ""
    flaky: bool = False
    """Fails now and then: neither its failure nor its success is news."""
    place: str = ""
    """`file:line`, for messages."""

    @property
    def name(self) -> str:
        return f"{self.scenario}:{self.check}" if self.check else self.scenario


class Compared(msgspec.Struct, frozen=True):
    """What a list of expected failures says about a run. Red when anything is new or stale."""

    expected: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    """Failed, and not listed."""
    stale: tuple[str, ...] = ()
    """Listed, and passes: the list says something that is not true any more."""
    tolerated: tuple[str, ...] = ()
    """Listed, and not seen in this run, or flaky."""

    @property
    def holds(self) -> bool:
        return not self.new and not self.stale
