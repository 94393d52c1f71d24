"""Which items of a live server the tests of a suite assert on."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

COVERAGE_FORMAT = "mcptest.coverage/1"
CoveredKind: TypeAlias = Literal["tool", "prompt", "resource", "template"]
KINDS: tuple[CoveredKind, ...] = ("tool", "prompt", "resource", "template")


class CoveredItem(msgspec.Struct, frozen=True):
    """One item, and the tests that would notice if it broke."""

    kind: CoveredKind
    name: str
    assertions: int = 0
    skipped: int = 0
    """Tests that assert on it, and do not run."""

    @property
    def covered(self) -> bool:
        return self.assertions > 0


class Unknown(msgspec.Struct, frozen=True):
    """What a test asserts on, and the server does not offer."""

    kind: CoveredKind
    name: str
    place: str


class CoverageReport(msgspec.Struct, frozen=True, kw_only=True):
    server: str
    items: tuple[CoveredItem, ...] = ()
    """Only of the kinds that count."""
    unknown: tuple[Unknown, ...] = ()
    tests: int = 0
    threshold: float | None = None
    problems: tuple[str, ...] = ()
    """Lists that could not be read: what they name is not counted."""
    tool: str = ""
    format: str = COVERAGE_FORMAT

    def of(self, kind: CoveredKind) -> tuple[CoveredItem, ...]:
        return tuple(item for item in self.items if item.kind == kind)

    @property
    def percentage(self) -> float:
        return share(self.items)

    @property
    def failed(self) -> bool:
        below = self.threshold is not None and self.percentage < self.threshold
        return below or bool(self.problems)


def share(items: tuple[CoveredItem, ...]) -> float:
    """The covered share in percent, cut to a tenth: never more than it is."""
    if not items:
        return 0.0
    return sum(item.covered for item in items) * 1000 // len(items) / 10
