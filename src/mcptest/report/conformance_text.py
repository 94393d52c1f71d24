"""A run of scenarios at a terminal: each scenario in a line, what failed with its proof."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from mcptest.model.baseline import Compared
from mcptest.model.conformance import CheckResult, ConformanceReport, ScenarioResult, Status
from mcptest.model.show import show
from mcptest.model.verdict import Side
from mcptest.report.compliance_text_page import Page
from mcptest.report.explored_text import why_revision
from mcptest.report.terminal import Style

ROWS_SHOWN = 4
MISSING_SHOWN = 4
_NAME = 60
_TALLY = (
    (Status.FAILURE, "failed", "red"),
    (Status.WARNING, "warned", "yellow"),
    (Status.SUCCESS, "passed", "green"),
    (Status.SKIPPED, "skipped", "dim"),
    (Status.UNTESTABLE, "untestable", "dim"),
)


def conformance_lines(
    report: ConformanceReport,
    style: Style,
    *,
    verbose: bool = False,
    quiet: bool = False,
    width: int = 100,
) -> Iterator[str]:
    page = Page(style, verbose, width)
    yield style.paint(show(report.subject, 200), "bold")
    yield style.paint(_scope(report, style), "dim")
    if report.revision_reason and report.results:
        why = why_revision(report.results[0].revision, report.revision_reason)
        yield style.paint(why, "dim")
    yield ""
    for result in report.results:
        if quiet and not _is_bad(result):
            continue
        yield from _scenario(result, report, page)
    yield from _untestable(report.results, page)
    if report.compared is not None:
        yield from _comparison(report.compared, page)
    for problem in report.problems:
        yield from page.prose(show(problem, 400), 0, "red")
    for note in report.notes:
        yield from page.prose(show(note, 400), 0, "yellow")
    yield ""
    yield summary_in_words(report, style)


def _scope(report: ConformanceReport, style: Style) -> str:
    revisions = ", ".join(sorted({one.revision.value for one in report.results}))
    transports = ", ".join(sorted({one.transport for one in report.results}))
    words = [f"{report.side.value} scenarios: {len(report.results)}", revisions, transports]
    if report.scored:
        words.append(f"{len(report.scored)} of them count")
    return f" {style.dot} ".join(word for word in words if word)


def _is_bad(result: ScenarioResult) -> bool:
    return result.failed or result.warned


def _scenario(result: ScenarioResult, report: ConformanceReport, page: Page) -> Iterator[str]:
    style = page.style
    counts = Counter(check.status for check in result.checks)
    if report.fails(result):
        mark = style.cross
    elif result.warned:
        mark = style.warning
    elif result.observed:
        mark = style.tick
    else:
        mark = style.paint("-", "dim")
    several = len({one.revision for one in report.results}) > 1
    where = f" {result.revision}" if several else ""
    uncounted = "" if report.counts(result) else "  (not counted)"
    tally = ", ".join(f"{counts[one]} {word}" for one, word, _ in _TALLY if counts[one])
    took = f"{result.duration_ms:.0f} ms"
    name = f"{result.scenario}{where}"
    yield f"{mark} {name:<50} {style.paint(f'{tally}  {took}{uncounted}', 'dim')}".rstrip()
    for why in filter(None, (result.cause, result.unreached)):
        yield from page.prose(show(why, 1_000), 4, "red")
    rows = (
        [check for check in result.checks if check.status.is_bad] if page.verbose else result.told
    )
    shown = rows if page.verbose else rows[:ROWS_SHOWN]
    for check in shown:
        yield from _row(check, page, result.capture)
    if len(rows) > len(shown):
        more = f"and {len(rows) - len(shown)} more; --verbose shows all"
        yield from page.prose(more, 4, "dim")
    if rows or result.cause or result.unreached:
        yield from page.labelled(list(_circumstances(result)), 6)
    if page.verbose and not rows:
        for check in result.checks:
            yield from _quiet_row(check, page)


def _row(check: CheckResult, page: Page, capture: str) -> Iterator[str]:
    colour = "red" if check.status is Status.FAILURE else "yellow"
    named = "" if check.name == check.id else f" ({show(check.name, 80)})"
    yield from page.prose(f"{show(check.id, 80)}{named}: {show(check.description, 200)}", 4, colour)
    pairs = [("seen", show(check.message, 600))] if check.message else []
    if check.excerpt:
        pairs.append(("message", show(check.excerpt, 400 if page.verbose else 160)))
    if check.record is not None:
        where = check.details.get("capture") or (capture and "the capture")
        kept = f"record {check.record} of {where}" if where else ""
        pairs.append(("at", kept or f"record {check.record}; -o DIR keeps the capture"))
    if check.references:
        pairs.append(("spec", check.references[0].url))
    yield from page.labelled(pairs, 6)


def _quiet_row(check: CheckResult, page: Page) -> Iterator[str]:
    mark = page.style.tick if check.status is Status.SUCCESS else page.style.paint("-", "dim")
    why = f": {show(check.message, 200)}" if check.message else ""
    yield f"    {mark} {page.style.paint(f'{show(check.name, _NAME)}{why}', 'dim')}"


def _circumstances(result: ScenarioResult) -> Iterator[tuple[str, str]]:
    telling = [line for line in result.stderr.splitlines() if any(map(str.isalpha, line))]
    for line in [] if result.unreached else telling[-1:]:
        yield "stderr", show(line.strip(), 200)
    if result.capture:
        yield "capture", show(result.capture, 300)
    if result.repeat:
        yield "repeat", result.repeat


def _untestable(results: Sequence[ScenarioResult], page: Page) -> Iterator[str]:
    """What is missing so that more could be seen, each said once."""
    missing: dict[str, list[str]] = {}
    for result in results:
        for check in result.checks:
            if check.status is Status.UNTESTABLE:
                names = missing.setdefault(check.message, [])
                names += [] if result.scenario in names else [result.scenario]
    if not missing:
        return
    on_servers = results[0].side is Side.SERVER
    remedy = "--strict-fixtures counts these as failures" if on_servers else ""
    yield from page.heading("Not testable here", remedy)
    shown = len(missing) if page.verbose else MISSING_SHOWN
    for message, names in list(missing.items())[:shown]:
        several = f" and {len(names) - 1} more" if len(names) > 1 else ""
        yield from page.prose(f"{show(message, 300)}: {names[0]}{several}", 2)
    if len(missing) > shown:
        yield from page.prose(f"and {len(missing) - shown} more; --verbose shows all", 2, "dim")


def _comparison(compared: Compared, page: Page) -> Iterator[str]:
    yield from page.heading("Expected failures")
    for names, words, colour in (
        (compared.new, "new: fails and is not listed", "red"),
        (compared.stale, "stale: is listed and passes; remove it", "red"),
        (compared.expected, "fails as listed", "dim"),
        (compared.tolerated, "listed, flaky or not seen in this run", "dim"),
    ):
        if names:
            yield f"  {page.style.paint(words, colour)}"
        for name in names:
            yield from page.prose(show(name, 300), 4)


def summary_in_words(report: ConformanceReport, style: Style) -> str:
    """One line that could be pasted anywhere."""
    counted = [one for one in report.results if report.counts(one)]
    bad = sum(report.fails(one) for one in counted)
    warned = sum(one.warned and not report.fails(one) for one in counted)
    unseen = sum(not one.failed and not one.observed for one in counted)
    by_warnings = sum(report.fails(one) and not one.failed for one in counted)
    passed = len(counted) - bad - warned - unseen
    checks = Counter(check.status for one in counted for check in one.checks)
    parts = [f"{passed} passed"]
    parts += [f"{warned} passed with warnings"] if warned else []
    because = f" ({by_warnings} for warnings; --no-fail-on-warning)" if by_warnings else ""
    parts += [f"{bad} failed{because}"] if bad else []
    parts += [f"{unseen} not testable"] if unseen else []
    tally = ", ".join(f"{checks[one]} {word}" for one, word, _ in _TALLY if checks[one])
    took = f"{report.duration_ms / 1000:.1f} s"
    text = f"{', '.join(parts)} of {len(counted)} scenarios in {took} (checks: {tally or 'none'})"
    if report.interrupted:
        text = f"interrupted: {text}"
    return style.paint(text, "red" if report.failed or report.interrupted else "green", "bold")
