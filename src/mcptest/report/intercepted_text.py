"""What a person reads after a session was intercepted: the calls, then what is wrong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from mcptest.model.results import RunReport, Status, TestResult
from mcptest.report import results_text
from mcptest.report.terminal import Style

_INVARIANT = "invariants "


def intercepted_lines(
    calls: Sequence[str], report: RunReport, style: Style, *, verbose: bool, width: int
) -> Iterator[str]:
    """Of the invariants only those that are broken, unless `verbose`: there are many that hold."""
    for number, call in enumerate(calls, 1):
        yield style.paint(f"  [{number}] {call}", "dim")
    held = [one for one in report.results if _is_quiet(one)]
    if not verbose and held:
        others = tuple(one for one in report.results if not _is_quiet(one))
        report = replace(report, results=others, notes=(*report.notes, *_in_words(held)))
    yield results_text.render(report, style, verbose=verbose, width=width).rstrip("\n")


def _is_quiet(result: TestResult) -> bool:
    return result.name.startswith(_INVARIANT) and result.status is not Status.FAIL


def _in_words(held: Sequence[TestResult]) -> Iterator[str]:
    passed = sum(one.status is Status.PASS for one in held)
    advice = [one for one in held if one.detail.startswith("not followed")]
    yield f"{passed} session invariants hold"
    for one in advice:
        yield f"{one.name.removeprefix(_INVARIANT)}: {one.detail}"
