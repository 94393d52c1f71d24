"""Which items of a live server the tests of a suite assert on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

import msgspec

from mcptest.core.errors import ExitCode
from mcptest.core.results import Count, RunReport, Status, TestResult, derive
from mcptest.core.safe_text import show
from mcptest.report.head import ITEM_KINDS, ItemKind, Report, Share
from mcptest.report.markdown import code, table_head
from mcptest.report.terminal import Style, counted


class CoveredItem(msgspec.Struct, frozen=True):
    """One item, and the tests that would notice if it broke."""

    name: str
    assertions: Count = 0
    skipped: Count = 0
    """Tests that assert on it, and do not run."""

    @property
    def covered(self) -> bool:
        return self.assertions > 0


class Unknown(msgspec.Struct, frozen=True):
    """What a test asserts on, and the server does not offer."""

    kind: ItemKind
    name: str
    place: str


def share(items: Sequence[CoveredItem]) -> float:
    """The covered share in percent, cut to a tenth: never more than it is."""
    if not items:
        return 0.0
    return sum(item.covered for item in items) * 1000 // len(items) / 10


class KindCoverage(msgspec.Struct, frozen=True, kw_only=True):
    """All items of one kind."""

    total: Count = 0
    covered: Count = 0
    percentage: Share = 0.0
    items: tuple[CoveredItem, ...] = ()

    def __post_init__(self) -> None:
        covered = sum(item.covered for item in self.items)
        derive(self, total=len(self.items), covered=covered, percentage=share(self.items))


class CoverageKinds(msgspec.Struct, frozen=True, kw_only=True):
    """Only what is of a kind that counts."""

    tools: KindCoverage = KindCoverage()
    prompts: KindCoverage = KindCoverage()
    resources: KindCoverage = KindCoverage()
    templates: KindCoverage = KindCoverage()


class CoveredTool(msgspec.Struct, frozen=True):
    name: str
    assertions: Annotated[int, msgspec.Meta(ge=1)]


class CoverageReport(Report, frozen=True, kw_only=True, tag="mcptest.coverage/1"):
    """What a suite covers. The first numbers are of the tools alone, as mcp-assert has them."""

    tool: str = ""
    server: str
    total: Count = 0
    covered: Count = 0
    percentage: Share = 0.0
    covered_tools: tuple[CoveredTool, ...] = ()
    uncovered_tools: tuple[str, ...] = ()
    overall: Share = 0.0
    threshold: float | None = None
    failed: bool = False
    tests: Count = 0
    kinds: CoverageKinds = CoverageKinds()
    unknown: tuple[Unknown, ...] = ()
    problems: tuple[str, ...] = ()
    """Lists that could not be read: what they name is not counted."""

    def __post_init__(self) -> None:
        tools, overall = self.kinds.tools, share([item for _, item in self.items])
        below = self.threshold is not None and overall < self.threshold
        derive(
            self,
            total=tools.total,
            covered=tools.covered,
            percentage=tools.percentage,
            covered_tools=tuple(
                CoveredTool(item.name, item.assertions) for item in tools.items if item.covered
            ),
            uncovered_tools=tuple(item.name for item in tools.items if not item.covered),
            overall=overall,
            failed=below or bool(self.problems),
        )

    def of(self, kind: ItemKind) -> tuple[CoveredItem, ...]:
        found: KindCoverage = getattr(self.kinds, f"{kind}s")
        return found.items

    @property
    def items(self) -> tuple[tuple[ItemKind, CoveredItem], ...]:
        return tuple((kind, item) for kind in ITEM_KINDS for item in self.of(kind))

    @property
    def code(self) -> ExitCode:
        if not self.items and not self.problems:
            return ExitCode.NOTHING_MATCHED
        return ExitCode.FAILED if self.failed else ExitCode.OK

    # -- views ---------------------------------------------------------------------------------

    def lines(self, style: Style) -> Iterator[str]:
        for kind, plural in ITEM_KINDS.items():
            items = self.of(kind)
            if items:
                covered = sum(item.covered for item in items)
                head = f"{covered} of {len(items)} {plural} covered ({share(items):g}%)"
                yield style.paint(head, "bold")
                yield from (_line(item, style) for item in items)
                yield ""
        for one in self.unknown:
            what = f"{one.kind} {show(one.name, 100)}"
            yield f"{style.warning} {what} is not offered by the server: {show(one.place, 200)}"
        for problem in self.problems:
            yield f"{style.cross} could not be read: {show(problem, 300)}"
        yield style.paint(self.in_words(), "bold")

    def in_words(self) -> str:
        covered = sum(item.covered for _, item in self.items)
        required = ""
        if self.threshold is not None:
            below = "below the required " if self.overall < self.threshold else ""
            required = f", {below}{self.threshold:g}%{'' if below else ' required'}"
        unread = f", {counted(len(self.problems), 'list')} not read" if self.problems else ""
        return (
            f"coverage {self.overall:g}%{required}: {covered} of {len(self.items)} items, "
            f"{counted(self.tests, 'test')}{unread}"
        )

    def markdown_lines(self) -> Iterator[str]:
        yield from (f"### Coverage of {code(self.server)}", "", f"**{self.in_words()}**", "")
        yield from table_head("| kind | name | assertions | skipped |")
        for kind, item in self.items:
            yield f"| {kind} | {code(item.name)} | {item.assertions} | {item.skipped or ''} |"
        if self.unknown:
            yield from ("", "Not offered by the server:", "")
            yield from (f"- {one.kind} {code(one.name)}: {code(one.place)}" for one in self.unknown)

    def as_run(self) -> RunReport:
        """One result for each item. What nobody demands to be covered is skipped, not failed."""
        missing = Status.FAIL if self.failed else Status.SKIP
        bad = "check" if self.failed else ""
        why = "no active test covers it"
        results = [
            TestResult(problem.partition(":")[0], Status.FAIL, problem, kind="call")
            for problem in self.problems
        ]
        for kind, item in self.items:
            name = f"{kind} {item.name}"
            covered = TestResult(name, Status.PASS)
            results.append(covered if item.covered else TestResult(name, missing, why, kind=bad))
        return self.run_of(results)


def _line(item: CoveredItem, style: Style) -> str:
    name = show(item.name, 100)
    if item.covered:
        more = f", {item.skipped} skipped" if item.skipped else ""
        return f"  {style.tick} {name} ({counted(item.assertions, 'assertion')}{more})"
    why = f" (only skipped tests: {item.skipped})" if item.skipped else ""
    return f"  {style.cross} {name}{why}"
