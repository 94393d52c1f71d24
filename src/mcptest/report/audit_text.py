"""An audit for a terminal: a line for each item, the proof of what is broken, what to do next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mcptest.model.audit import ONLY_AS_TASK, AuditItem, AuditReport, Health, ItemKind
from mcptest.model.show import show
from mcptest.report import columns
from mcptest.report.explored_text import closing_lines, heading, why_lines
from mcptest.report.terminal import Style

_NAME = 60
_HEADINGS: dict[ItemKind, str] = {
    "tool": "Tools",
    "prompt": "Prompts",
    "resource": "Resources",
    "template": "Resource templates",
}
_WITH_ERROR = "error"
WORDS = {
    Health.HEALTHY: "answers",
    Health.CRASHED: "crashed",
    Health.TIMED_OUT: "timed out",
    Health.REFUSED: "refused",
    Health.PROTOCOL: "no answer",
    Health.SKIPPED: "skipped",
}


def audit_lines(
    report: AuditReport, style: Style, *, verbose: bool = False, quiet: bool = False
) -> Iterator[str]:
    """The whole report, line by line; `quiet` leaves out what is in order."""
    yield style.paint(heading(report), "bold")
    yield from why_lines(report, style)
    for kind, title in _HEADINGS.items():
        items = [one for one in report.of(kind) if one.is_bad or not quiet]
        if items:
            yield ""
            yield from _table(title, items, style, verbose=verbose)
    yield ""
    for method, reason in report.problems.items():
        yield f"{style.cross} {method} could not be read: {show(reason, 300)}"
    yield from closing_lines(report, summary_in_words(report), next_steps(report), style)


def _table(title: str, items: Sequence[AuditItem], style: Style, *, verbose: bool) -> Iterator[str]:
    yield f"{title} ({len(items)})"
    width = min(_NAME, max(columns.cells(show(item.name, 200)) for item in items))
    for item in items:
        name = columns.pad(columns.cut(show(item.name, 200), width), width)
        word = word_of(item)
        spent = columns.duration(item.duration_ms) if item.tested else ""
        yield f"  {_sign(item, style)} {name}  {word:<9}  {spent:>6}  {_said(item)}".rstrip()
        yield from _more(item, style, verbose=verbose)


def word_of(item: AuditItem) -> str:
    return _WITH_ERROR if item.answers and not item.worked else WORDS[item.health]


def _sign(item: AuditItem, style: Style) -> str:
    if item.health is Health.SKIPPED:
        return style.dash
    if item.is_bad:
        return style.cross
    return style.warning if not item.worked or item.notes else style.tick


def _said(item: AuditItem) -> str:
    if item.detail:
        text = f"isError: {item.detail}" if item.is_error else item.detail
        return show(text, 160)
    if item.is_error:
        return "isError"
    return "" if item.has_content else "nothing in the answer"


def _more(item: AuditItem, style: Style, *, verbose: bool) -> Iterator[str]:
    margin = " " * 6
    for finding in item.findings:
        yield f"{margin}{style.cross} {show(finding, 300)}"
    for note in item.notes:
        yield f"{margin}{style.warning} {show(note, 300)}"
    if verbose:
        for claim in item.claims:
            if claim.holds is not False:
                sign = style.tick if claim.holds else style.unsure
                yield f"{margin}{sign} {claim.hint}: {show(claim.detail, 200)}"
    if item.is_bad or item.health is Health.REFUSED:
        facts = {"sent": item.sent, "received": item.received, "again": item.repeat}
        for label, text in facts.items():
            if text:
                yield style.paint(f"{margin}{label:<9}{show(text, 1_000)}", "dim")
        for line in item.stderr[-5:]:
            yield style.paint(f"{margin}{'stderr':<9}{show(line, 300)}", "dim")


def summary_in_words(report: AuditReport) -> str:
    tested = report.tested
    if not tested:
        return f"nothing was tested: {len(report.items)} items, all skipped"
    worked = sum(item.worked for item in tested)
    erred = sum(item.answers for item in tested) - worked
    counts = {"answer": worked, "answer with errors": erred}
    for health in Health:
        if health is not Health.HEALTHY:
            counts[WORDS[health]] = sum(item.health is health for item in report.items)
    parts = [f"{count} {word}" for word, count in counts.items() if count]
    parts += [f"{report.unreached} not reached"] if report.unreached else []
    findings = sum(len(item.findings) for item in report.items)
    parts += [f"{findings} finding{'s' * (findings != 1)}"] if findings else []
    parts += [f"{report.restarts} restarts"] if report.restarts else []
    demanded = f", {report.min_score}% demanded" if report.min_score is not None else ""
    early = "interrupted; " if report.interrupted else ""
    unread = len(report.problems)
    lists = f", {unread} list{'s' * (unread > 1)} not read to the end" if unread else ""
    share = f"{report.score}% ({worked} of {len(tested)} worked{lists}){demanded}"
    return f"{early}score {share}: {', '.join(parts)}"


def next_steps(report: AuditReport) -> list[str]:
    """What somebody who reads this can do about it."""
    steps = []
    healths = {item.health for item in report.items}
    if any(item.answers and not item.worked for item in report.items):
        steps.append(
            "Error: it answers, and says that it failed. Where made-up input is the reason, "
            "--fixture DIR gives paths that exist; what the server needs (a key, the address of a "
            "backend) is passed with --env."
        )
    if Health.CRASHED in healths:
        steps.append(
            "Crashed: catch the exception inside the tool and answer a result with isError: true "
            "and a sentence that a model can act on."
        )
    if Health.TIMED_OUT in healths:
        steps.append("Timed out: bound what the tool waits for; --timeout gives it longer.")
    if Health.PROTOCOL in healths:
        steps.append("No answer: compliance run says which rule of the protocol was broken.")
    if Health.REFUSED in healths:
        steps.append(
            "Refused: its schema accepts the input; say in the schema what it does not take, or "
            "answer with isError: true."
        )
    if any(item.findings for item in report.items):
        steps.append("Findings: make the hint or the output schema say what the tool does.")
    unsafe = [one for one in report.of("tool") if not one.tested and one.detail != ONLY_AS_TASK]
    if unsafe:
        steps.append(
            f"Skipped: {len(unsafe)} tool{'s' * (len(unsafe) != 1)} may write. --include-writes "
            "calls such tools; with --docker IMAGE, or on a copy with --fixture DIR, that is safe."
        )
    if report.tested:
        steps.append("--output DIR writes a starter test for each item.")
    return steps
