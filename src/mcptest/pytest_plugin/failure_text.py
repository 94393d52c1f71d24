"""A failure of a suite's test in the words of `mcptest run`, in the form that pytest passes on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from _pytest._code.code import ReprEntryNative, ReprExceptionInfo, ReprFileLocation, ReprTraceback

from mcptest.core.redaction import redaction
from mcptest.core.results import TestResult
from mcptest.core.safe_text import show
from mcptest.report.evidence import BRIEF, FULL, detail_lines, labelled_once, proof_lines

_LABEL = 10
_NAME = 300
_REASON = 500


class SuiteTestFailed(Exception):  # noqa: N818 - what failed is the test
    """The test ran, and these of its results are failures."""

    def __init__(self, results: Sequence[TestResult], *, named: bool = False) -> None:
        """`named`: several results of one item, which are told apart by their names."""
        super().__init__(results[0].detail)
        self.results = tuple(results)
        self.named = named


def failure_repr(
    failed: SuiteTestFailed, path: str, line: int, *, full: bool, brief: bool
) -> ReprExceptionInfo:
    """As pytest tells of an exception, so that all reporters and xdist know what to do with it.

    `brief` is --tb=line, where pytest itself writes the only line.
    """
    lines: list[str] = []
    for result in () if brief else failed.results:
        lines += [show(result.name, _NAME)] if failed.named else []
        lines += detail_lines(result, FULL if full else BRIEF, all_failures=True)
        lines += lines_of_proof(result, full=full)
        lines += [""] if failed.named else []
    entry = ReprEntryNative([f"{redaction.text(text)}\n" for text in lines])
    reason = redaction.text(" ".join(" ".join(detail_lines(failed.results[0], BRIEF)).split()))
    return ReprExceptionInfo(
        reprcrash=ReprFileLocation(path, line, reason[:_REASON]),
        reprtraceback=ReprTraceback([entry], None, style="native"),
    )


def lines_of_proof(result: TestResult, *, full: bool) -> Iterator[str]:
    for label, text in labelled_once(proof_lines(result, FULL if full else BRIEF)):
        yield f"{label:<{_LABEL}}{text}"
