"""A run as GitHub-flavoured Markdown, small enough for a step summary.

Names and details are data. A name becomes code in which every character that means something to
Markdown is a numeric reference; a detail stands in a fence longer than any that it holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from mcptest.core.results import RunReport, Status, TestResult
from mcptest.core.safe_text import show
from mcptest.report.evidence import BRIEF, detail_lines, first_line, proof_lines
from mcptest.report.reliability import Identity, identity_of, reliability, titles_of
from mcptest.report.terminal import counted, duration

NAME = 200
ROOM_FOR_ROWS = 400_000
ROOM_FOR_DETAILS = 400_000
"""GitHub refuses a summary of more than 1 MiB as a whole."""

# An underscore within a word means nothing; `www.` and a scheme would become a link.
_MEANINGFUL = re.compile(
    r"[&<>|`*\[\]\\@~:!#$^{}]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|(?<=www)\.", re.IGNORECASE
)
_TICKS = re.compile("`+")


def render(report: RunReport) -> str:
    return "".join(f"{line}\n" for line in _lines(report))


def code(text: str, limit: int = NAME) -> str:
    """A text as inline code that can't end a cell, be a link, mention someone or be HTML."""
    return f"<code>{_MEANINGFUL.sub(_reference, show(text, limit)) or ' '}</code>"


def row(*cells: str) -> str:
    """One row of a table. Every cell is data."""
    return "| " + " | ".join(map(code, cells)) + " |"


def table_head(names: str) -> tuple[str, str]:
    """The line with the names of the columns, and the one below it."""
    return names, "|---" * (names.count("|") - 1) + "|"


def opening(what: str, subject: str, summary: str) -> list[str]:
    """How the page of a command on one server begins."""
    return [f"### {what} of {code(subject)}", "", f"**{code(summary)}**", ""]


def closing(
    unread: Mapping[str, str], notes: Sequence[str], steps: Sequence[str] = ()
) -> Iterator[str]:
    """How it ends: the lists that could not be read, by their method, notes, and what to do."""
    if unread:
        yield ""
        yield from (f"- {code(one)} could not be read: {code(why)}" for one, why in unread.items())
    if notes:
        yield ""
        yield from (f"- {code(note)}" for note in notes)
    if steps:
        yield from ("", "Next steps:", "")
        yield from (f"- {code(step)}" for step in steps)


def _reference(match: re.Match[str]) -> str:
    character = match.group()
    # An address is made a link after references were read; a comment keeps its halves apart.
    return f"&#{ord(character)};" + ("<!-- -->" if character == "@" else "")


def fenced(lines: Sequence[str]) -> list[str]:
    longest = max((len(run) for line in lines for run in _TICKS.findall(line)), default=0)
    fence = "`" * max(3, longest + 1)
    return [fence + "text", *lines, fence]


def _lines(report: RunReport) -> Iterator[str]:
    titles = titles_of(map(identity_of, report.results))
    total = f"{report.passed}/{len(report.results)} passed"
    some = f"{report.passed} passed, {report.failed} failed"
    yield f"### mcptest: {some if report.failed else total}"
    yield ""
    if report.interrupted:
        yield from ("**Interrupted:** only finished tests are listed.", "")
    if report.results:
        rows = (_row(result, titles, report.trials > 1) for result in report.results)
        yield from table_head("| Status | Test | Duration |")
        yield from within(rows, ROOM_FOR_ROWS, len(report.results), "| | and {} more | |")
        yield ""
    yield from _details(report, titles)
    if report.skipped:
        yield from (f"_{counted(report.skipped, 'test')} skipped_", "")
    if report.trials > 1:
        yield from _reliability(report)
    yield from _regressions(report)
    for note in report.notes[:20]:
        yield from (f"**Note:** {code(note, 500)}", "")


def _row(result: TestResult, titles: dict[Identity, str], with_trial: bool) -> str:
    name = code(titles[identity_of(result)])
    trial = f" trial {result.trial}" if with_trial else ""
    reason = ""
    if result.status is Status.SKIP and result.detail:
        reason = f"<br>{code(first_line(result.detail))}"
    return f"| {result.status.value} | {name}{trial}{reason} | {duration(result.duration_ms)} |"


def _details(report: RunReport, titles: dict[Identity, str]) -> Iterator[str]:
    failed = [result for result in report.results if result.status is Status.FAIL]
    if not failed:
        return
    yield from ("<details><summary>Failure details</summary>", "")
    blocks = (_detail(result, titles, report.trials > 1) for result in failed)
    yield from within(blocks, ROOM_FOR_DETAILS, len(failed), "and {} more failures\n")
    yield from ("</details>", "")


def _detail(result: TestResult, titles: dict[Identity, str], with_trial: bool) -> str:
    trial = f" trial {result.trial}" if with_trial else ""
    proof = [f"{label}: {text}" for label, text in proof_lines(result, BRIEF)]
    lines = [*detail_lines(result, BRIEF, all_failures=True), *([""] if proof else []), *proof]
    title = f"**{code(titles[identity_of(result)])}**{trial}"
    return "\n".join([title, "", *fenced(lines), ""])


def within(parts: Iterable[str], room: int, total: int, rest: str) -> Iterator[str]:
    """As many as there is room for, and how many more there are."""
    for number, part in enumerate(parts):
        room -= len(part.encode("utf-8"))
        if room < 0:
            yield rest.format(total - number)
            return
        yield part


def _reliability(report: RunReport) -> Iterator[str]:
    measured = reliability(report)
    rows = (
        f"| {code(test.name)}{' flaky' if test.flaky else ''} | {test.trials} | {test.passed} "
        f"| {'YES' if test.capable else 'NO'} | {'YES' if test.reliable else 'NO'} |"
        for test in measured.tests
    )
    yield from ("### Reliability", "")
    yield from table_head("| Test | Trials | Passed | pass@k | pass^k |")
    yield from within(rows, ROOM_FOR_ROWS // 4, len(measured.tests), "| and {} more | | | | |")
    yield from ("", f"**{measured}**", "")


def _regressions(report: RunReport) -> Iterator[str]:
    if not report.regressions:
        return
    rows = (
        f"- {code(each.name + (f' [{each.language}]' if each.language else ''))}: "
        f"was {code(each.was)}, now {code(each.now)}"
        for each in report.regressions
    )
    yield from (f"### Regressions ({len(report.regressions)})", "")
    yield from within(rows, ROOM_FOR_ROWS // 8, len(report.regressions), "- and {} more")
    yield ""
