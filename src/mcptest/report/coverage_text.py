"""Coverage for a terminal: the share of each kind, what is covered how often, and what is not."""

from __future__ import annotations

from collections.abc import Iterator

from mcptest.model.coverage import KINDS, CoverageReport, CoveredItem, CoveredKind, share
from mcptest.model.show import show
from mcptest.report.terminal import Style

_PLURAL: dict[CoveredKind, str] = {
    "tool": "tools",
    "prompt": "prompts",
    "resource": "resources",
    "template": "resource templates",
}


def coverage_lines(report: CoverageReport, style: Style) -> Iterator[str]:
    for kind in KINDS:
        items = report.of(kind)
        if items:
            covered = sum(item.covered for item in items)
            head = f"{covered} of {len(items)} {_PLURAL[kind]} covered ({share(items):g}%)"
            yield style.paint(head, "bold")
            yield from (_line(item, style) for item in items)
            yield ""
    for one in report.unknown:
        what = f"{one.kind} {show(one.name, 100)}"
        yield f"{style.warning} {what} is not offered: {show(one.place, 200)}"
    for problem in report.problems:
        yield f"{style.cross} could not be read: {show(problem, 300)}"
    yield style.paint(coverage_in_words(report), "bold")


def _line(item: CoveredItem, style: Style) -> str:
    name = show(item.name, 100)
    more = f", {item.skipped} skipped" if item.skipped else ""
    if item.covered:
        plural = "s" * (item.assertions != 1)
        return f"  {style.tick} {name} ({item.assertions} assertion{plural}{more})"
    why = f" (only skipped tests: {item.skipped})" if item.skipped else ""
    return f"  {style.cross} {name}{why}"


def coverage_in_words(report: CoverageReport) -> str:
    covered = sum(item.covered for item in report.items)
    demanded = f", {report.threshold:g}% demanded" if report.threshold is not None else ""
    return (
        f"coverage {report.percentage:g}%{demanded}: {covered} of {len(report.items)} items, "
        f"{report.tests} tests"
    )
