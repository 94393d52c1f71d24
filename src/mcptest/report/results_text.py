"""A run for a person: one line per test, and under each failure the reason and the proof.

A terminal sees symbols and colour in columns that fit it. A pipe sees PASS, FAIL and SKIP, whole
names and whole lines, so that they can be searched.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from mcptest.model.results import RunReport, Status, TestResult
from mcptest.model.show import show
from mcptest.report import columns
from mcptest.report.closing import SCREEN, failed_lines, slowest_lines
from mcptest.report.evidence import BRIEF, FULL, Bounds, detail_lines, first_line, proof_lines
from mcptest.report.explored_text import why_revision
from mcptest.report.reliability import (
    Identity,
    identity_of,
    overall,
    reliability,
    titles_of,
    trials_of_each_test,
)
from mcptest.report.terminal import Style

NAME = 300
PROOFS_SHOWN = 100
NOTES_SHOWN = 50
_SLOW = 1_000
"""Milliseconds after which it matters which tests were slow."""
_PLAIN_NAME_COLUMN = 60
_LABEL = 10
_COLOURS = {Status.PASS: "green", Status.FAIL: "red", Status.SKIP: "yellow"}


class _Page(msgspec.Struct, frozen=True):
    """What is being written, and for whom."""

    report: RunReport
    style: Style
    verbose: bool
    all_failures: bool
    width: int
    titles: dict[Identity, str]

    @property
    def bounds(self) -> Bounds:
        return FULL if self.verbose else BRIEF

    @property
    def margin(self) -> str:
        return " " * (4 if self.style.colour else 6)

    def tests(self) -> list[list[TestResult]]:
        """With trials, the trials of a test stand together; else each result for itself."""
        if self.report.trials > 1:
            return list(trials_of_each_test(self.report.results).values())
        return [[result] for result in self.report.results]


def render(
    report: RunReport,
    style: Style,
    *,
    verbose: bool = False,
    all_failures: bool = False,
    width: int = 80,
) -> str:
    titles = titles_of(map(identity_of, report.results))
    page = _Page(report, style, verbose, all_failures, max(width, 40), titles)
    lines = list(_lines(page))
    lines += _end(page, is_long=len(lines) > SCREEN)
    return "".join(f"{line}\n" for line in lines)


def in_short(report: RunReport, style: Style) -> str:
    """Only what went wrong, and the counts."""
    titles = titles_of(map(identity_of, report.results))
    lines = [*failed_lines(report, titles, style), summary(report, style)]
    return "".join(f"{line}\n" for line in lines)


def _end(page: _Page, *, is_long: bool) -> Iterator[str]:
    """What a person looks for at the end, also when all else has scrolled away."""
    if page.verbose or (is_long and page.report.duration_ms >= _SLOW):
        yield from slowest_lines(page.report, page.titles, page.style)
    if is_long:
        width = page.width if page.style.colour else None
        yield from failed_lines(page.report, page.titles, page.style, width)
    if page.verbose:
        yield from _revision_lines(page)
    yield from _summary_lines(page)


def _revision_lines(page: _Page) -> Iterator[str]:
    """What was spoken with each server, and why."""
    spoken = {
        (result.server, result.revision, result.revision_reason): None
        for result in page.report.results
        if result.revision_reason
    }
    if spoken:
        yield "spoken:"
        for server, revision, reason in spoken:
            yield f"  {show(server, NAME)}  {why_revision(revision, reason)}"
        yield ""


def _lines(page: _Page) -> Iterator[str]:
    tests = page.tests()
    names = [_name(trials, page) for trials in tests]
    column = _name_column(names, page)
    failures = 0
    for trials, name in zip(tests, names, strict=True):
        yield _test_line(trials, name, column, page)
        yield from _below(trials, page, with_proof=page.verbose or failures < PROOFS_SHOWN)
        failures += overall(trials) is Status.FAIL
    # On a terminal an empty line follows each failure already.
    if tests and not (page.style.colour and overall(tests[-1]) is Status.FAIL):
        yield ""
    if failures > PROOFS_SHOWN and not page.verbose:
        yield f"proof is shown for the first {PROOFS_SHOWN} failures; --verbose shows it for all"
    yield from _reliability_lines(page)
    yield from regression_lines(page.report, page.style)
    yield from note_lines(page.report, page.style)


def _name(trials: Sequence[TestResult], page: _Page) -> str:
    title = show(page.titles[identity_of(trials[0])], NAME)
    ran = [trial for trial in trials if trial.status is not Status.SKIP]
    if page.report.trials == 1 or not ran:
        return title
    passed = sum(trial.status is Status.PASS for trial in ran)
    flaky = " flaky" if 0 < passed < len(ran) else ""
    return f"{title} ({passed}/{len(ran)}){flaky}"


def _name_column(names: Sequence[str], page: _Page) -> int:
    if not page.style.colour:
        return _PLAIN_NAME_COLUMN
    longest = max(map(columns.cells, names), default=0)
    return max(20, min(longest, page.width - 12))


def _test_line(trials: Sequence[TestResult], name: str, column: int, page: _Page) -> str:
    status = overall(trials)
    average = sum(max(0, trial.duration_ms) for trial in trials) // len(trials)
    if not page.style.colour:
        return f"{status.value}  {columns.pad(name, column)} {f'{average}ms':>6}"
    if status is not Status.FAIL:
        name = columns.cut(name, column)  # a failure is named in full, whatever that does
    took = page.style.paint(f"{columns.duration(average):>8}", "dim")
    weight = ("bold",) if status is Status.FAIL else ()
    shown = page.style.paint(columns.pad(name, column), *weight)
    return f"{_symbol(status, page.style)} {shown}  {took}"


def _symbol(status: Status, style: Style) -> str:
    if status is Status.PASS:
        return style.tick
    if status is Status.FAIL:
        return style.cross
    return style.paint("○" if style.unicode else "o", "yellow")


def _below(trials: Sequence[TestResult], page: _Page, *, with_proof: bool) -> Iterator[str]:
    status = overall(trials)
    if status is Status.FAIL:
        yield from _failure_lines(trials, page, with_proof)
    elif status is Status.SKIP:
        skipped = next(trial for trial in trials if trial.status is Status.SKIP)
        if skipped.detail:
            yield from _told(first_line(skipped.detail, NAME), page, "dim")
    for note in dict.fromkeys(trial.note for trial in trials if trial.note):
        yield from _told(f"note: {first_line(note, NAME)}", page, "yellow")


def _failure_lines(trials: Sequence[TestResult], page: _Page, with_proof: bool) -> Iterator[str]:
    failed = [trial for trial in trials if trial.status is Status.FAIL]
    first = failed[0]
    if page.report.trials > 1:
        others = f", and {len(failed) - 1} more" if len(failed) > 1 else ""
        yield from _told(f"trial {first.trial}{others}:", page, "dim")
    for line in detail_lines(first, page.bounds, all_failures=page.all_failures):
        yield from _told(line, page, "red")
    if with_proof:
        yield from _proof(first, page)
    if page.style.colour:
        yield ""


def _told(line: str, page: _Page, colour: str) -> Iterator[str]:
    for piece in _fitted(line, page, len(page.margin)):
        yield page.margin + page.style.paint(piece, colour)


def _proof(result: TestResult, page: _Page) -> Iterator[str]:
    pairs = list(proof_lines(result, page.bounds))
    if page.verbose and result.server:
        server = f"{result.server} ({result.revision})" if result.revision else result.server
        pairs.insert(0, ("server", show(server, NAME)))
    previous = ""
    for label, text in pairs:
        shown = f"{label}:" if label != previous else ""
        previous = label
        # The command that repeats a test is for copying, so it stays in one piece.
        whole = label == "repeat"
        room = len(page.margin) + _LABEL
        for piece in [text] if whole else _fitted(text, page, room):
            painted = page.style.paint(f"{shown:<{_LABEL}}", "dim")
            yield page.margin + painted + (page.style.paint(piece, "bold") if whole else piece)
            shown = ""


def _fitted(text: str, page: _Page, taken: int) -> list[str]:
    return columns.wrap(text, page.width - taken) if page.style.colour else [text]


def _reliability_lines(page: _Page) -> Iterator[str]:
    if page.report.trials == 1:
        return
    measured = reliability(page.report)
    names = [show(test.name, NAME) for test in measured.tests]
    room = max([9, *(columns.cells(name) for name in names)])
    if page.style.colour:
        room = min(room, max(20, page.width - 42))
    header = f"{'Assertion':<{room}}  Trials  Passed  pass@k  pass^k"
    yield page.style.paint(header, "bold")
    for name, test in zip(names, measured.tests, strict=True):
        row = f"{columns.pad(columns.cut(name, room), room)}  {test.trials:>6}  {test.passed:>6}"
        row += f"  {_yes(test.capable):>6}  {_yes(test.reliable):>6}"
        yield row + (page.style.paint("  flaky", "yellow") if test.flaky else "")
    yield f"  {measured}"
    yield ""


def _yes(value: bool) -> str:
    return "YES" if value else "NO"


def regression_lines(report: RunReport, style: Style) -> Iterator[str]:
    regressions = report.regressions
    if not regressions:
        return
    yield style.paint(f"Regressions detected ({len(regressions)}):", "red")
    for regression in regressions:
        language = f" [{regression.language}]" if regression.language else ""
        name = show(regression.name + language, NAME)
        yield f"  {name}: was {show(regression.was)}, now {show(regression.now)}"
    yield ""


def note_lines(report: RunReport, style: Style) -> Iterator[str]:
    notes = report.notes
    for note in notes[:NOTES_SHOWN]:
        yield f"{style.paint('note:', 'yellow')} {show(note, 500)}"
    if len(notes) > NOTES_SHOWN:
        yield f"note: and {len(notes) - NOTES_SHOWN} more"
    if notes:
        yield ""


def _summary_lines(page: _Page) -> Iterator[str]:
    if page.report.interrupted:
        yield page.style.paint("interrupted: only what had finished by then is told here", "yellow")
    yield summary(page.report, page.style)


def summary(report: RunReport, style: Style) -> str:
    """`4 tests, 2 passed, 1 failed, 1 skipped in 1.2s`"""
    counts = [
        (report.passed, "passed", Status.PASS),
        (report.failed, "failed", Status.FAIL),
        (report.skipped, "skipped", Status.SKIP),
    ]
    told = [
        style.paint(f"{count} {word}", _COLOURS[status]) for count, word, status in counts if count
    ]
    told.insert(0, _counted(report))
    return f"{', '.join(told)} in {columns.duration(report.duration_ms)}"


def _counted(report: RunReport) -> str:
    number = len(report.results)
    if report.trials == 1:
        return "no tests ran" if number == 0 else f"{number} test{'s' if number > 1 else ''}"
    tests = len(trials_of_each_test(report.results))
    return f"{number} trial{'s' if number != 1 else ''} of {tests} test{'s' if tests != 1 else ''}"
