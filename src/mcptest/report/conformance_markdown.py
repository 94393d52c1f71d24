"""A run of scenarios as markdown, for a pull request or a step summary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from mcptest.model.conformance import ConformanceReport, ScenarioResult, Status
from mcptest.report.conformance_text import summary_in_words
from mcptest.report.markdown import code
from mcptest.report.terminal import Style

_MARKS = {"failed": "❌", "warned": "⚠️", "passed": "✅", "unseen": "…"}


def conformance_as_markdown(report: ConformanceReport) -> str:
    return "\n".join(_lines(report)) + "\n"


def _lines(report: ConformanceReport) -> Iterator[str]:
    yield f"## Conformance: {code(report.subject)}"
    yield ""
    yield summary_in_words(report, Style(colour=False))
    yield ""
    yield "| | scenario | revision | transport | passed | warned | failed | skipped |"
    yield "|---|---|---|---|---|---|---|---|"
    for result in report.results:
        yield _row(result, report)
    bad = [one for one in report.results if one.failed or one.warned]
    for result in bad:
        yield ""
        yield f"### {code(result.scenario)}"
        yield ""
        for why in filter(None, (result.cause, result.unreached)):
            yield f"- {code(why)}"
        for check in result.told:
            word = check.status.value.lower()
            said = code(check.message or check.description, 600)
            yield f"- {code(check.id)} ({word}) {code(check.name)}: {said}"
    if report.compared is not None:
        yield from _compared(report)


def _row(result: ScenarioResult, report: ConformanceReport) -> str:
    counts = Counter(check.status for check in result.checks)
    kind = "failed" if report.fails(result) else "warned" if result.warned else "passed"
    if kind == "passed" and not result.observed:
        kind = "unseen"
    cells = (
        _MARKS[kind],
        code(result.scenario),
        result.revision.value,
        code(result.transport),
        *(str(counts[status]) for status in (Status.SUCCESS, Status.WARNING, Status.FAILURE)),
        str(counts[Status.SKIPPED] + counts[Status.UNTESTABLE]),
    )
    return "| " + " | ".join(cells) + " |"


def _compared(report: ConformanceReport) -> Iterator[str]:
    assert report.compared is not None
    for title, names in (
        ("New failures", report.compared.new),
        ("Stale entries", report.compared.stale),
        ("Failing as listed", report.compared.expected),
    ):
        if names:
            yield ""
            yield f"### {title}"
            yield ""
            yield from (f"- {code(name)}" for name in names)
