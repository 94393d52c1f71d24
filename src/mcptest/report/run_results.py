"""A run for a person, and the array of results that mcp-assert prints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from mcptest.core import safe_text
from mcptest.core.results import Count, RunReport, Status, Suggestion, TestResult
from mcptest.core.safe_text import show
from mcptest.report import terminal
from mcptest.report.codec import as_json
from mcptest.report.evidence import (
    BRIEF,
    FULL,
    Bounds,
    detail_lines,
    first_line,
    labelled_once,
    proof_lines,
)
from mcptest.report.reliability import (
    Identity,
    failed_tests,
    identity_of,
    overall,
    reliability,
    titles_of,
    trials_of_each_test,
)
from mcptest.report.terminal import Style, counted, why_revision


class ShortResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One test, key for key as mcp-assert's `--json` writes it."""

    name: str
    status: Status
    detail: str = ""
    duration_ms: int
    language: str = ""
    trial: Count


def mcp_assert_json(report: RunReport) -> bytes:
    """The results as mcp-assert's `--json` writes them."""
    names = ShortResult.__struct_fields__
    return as_json(
        [ShortResult(**{name: getattr(one, name) for name in names}) for one in report.results]
    )


# -- The end of a report on a run, as one would paste it into an issue ---------------------------

SCREEN = 30
"""Lines of a report after which its beginning may have scrolled away."""
SLOWEST_SHOWN = 3
FAILURES_SHOWN = 20
NAME = 300
_REASON = 200
_COMMAND = 4_000


def slowest_lines(report: RunReport, titles: Mapping[Identity, str], style: Style) -> Iterator[str]:
    ran = [result for result in report.results if result.status is not Status.SKIP]
    slowest = sorted(ran, key=lambda result: -result.duration_ms)[:SLOWEST_SHOWN]
    if not slowest:
        return
    yield style.paint("slowest:", "dim")
    for result in slowest:
        name = show(titles[identity_of(result)], NAME)
        yield f"  {terminal.duration(result.duration_ms):>8}  {name}"
    yield ""


def failed_lines(report: RunReport, style: Style) -> Iterator[str]:
    """Of a test with trials, the first that failed."""
    failed = failed_tests(report)
    if not failed:
        return
    yield style.paint("failed:", "red")
    for test in failed[:FAILURES_SHOWN]:
        yield from _failure(show(test.title, NAME), test.first, style)
    if len(failed) > FAILURES_SHOWN:
        yield f"  and {len(failed) - FAILURES_SHOWN} more"
    yield ""


def _failure(name: str, result: TestResult, style: Style) -> Iterator[str]:
    line = f":{result.line}" if result.line else ""
    place = show(f"{result.file}{line}", 500) if result.file else ""
    taken = safe_text.cells(name) + safe_text.cells(place) + 4
    beside = not style.colour or taken <= style.width
    first = _fitted(name, style, 2)
    yield from (f"  {style.paint(piece, 'bold')}" for piece in first[:-1])
    tail = f"  {style.paint(place, 'dim')}" if place and beside else ""
    yield f"  {style.paint(first[-1], 'bold')}{tail}"
    if place and not beside:
        yield from (f"    {style.paint(piece, 'dim')}" for piece in _fitted(place, style, 4))
    if result.detail:
        reason = first_line(result.detail, _REASON)
        yield from (f"    {piece}" for piece in _fitted(reason, style, 4))
    if result.proof is not None and result.proof.repeat:  # for copying, so it stays in one piece
        yield f"    repeat: {show(result.proof.repeat, _COMMAND)}"


# -- A run for a person --------------------------------------------------------------------------

PROOFS_SHOWN = 100
NOTES_SHOWN = 50
_SLOW = 1_000
"""Milliseconds after which it matters which tests were slow."""
_PLAIN_NAME_COLUMN = 60
_LABEL = 10
_COLOURS = {Status.PASS: "green", Status.FAIL: "red", Status.SKIP: "yellow"}


class _Page(Style, frozen=True, kw_only=True):
    """What is being written, and for whom."""

    report: RunReport
    all_failures: bool
    titles: dict[Identity, str]
    stderr_shown: set[tuple[str, ...]] = msgspec.field(default_factory=set)
    """Of tests that share a server: the same lines are shown once."""

    @property
    def bounds(self) -> Bounds:
        return FULL if self.verbose else BRIEF

    @property
    def margin(self) -> str:
        return " " * (4 if self.colour else 6)

    def tests(self) -> list[list[TestResult]]:
        """With trials, the trials of a test stand together; else each result for itself."""
        if self.report.trials > 1:
            return list(trials_of_each_test(self.report.results).values())
        return [[result] for result in self.report.results]


def render(report: RunReport, style: Style, *, all_failures: bool = False) -> str:
    titles = titles_of(map(identity_of, report.results))
    how = msgspec.structs.asdict(style) | {"width": max(style.width, 40)}
    page = _Page(**how, report=report, all_failures=all_failures, titles=titles)
    lines = list(_lines(page))
    lines += _end(page, is_long=len(lines) > SCREEN)
    return "".join(f"{line}\n" for line in lines)


def in_short(report: RunReport, style: Style) -> str:
    """Only what went wrong, and the counts."""
    lines = [*failed_lines(report, style), summary(report, style)]
    return "".join(f"{line}\n" for line in lines)


def _end(page: _Page, *, is_long: bool) -> Iterator[str]:
    """What a person looks for at the end, also when all else has scrolled away."""
    if page.verbose or (is_long and page.report.duration_ms >= _SLOW):
        yield from slowest_lines(page.report, page.titles, page)
    if is_long:
        yield from failed_lines(page.report, page)
    spoken = {
        (result.server, result.revision, result.revision_reason): None
        for result in page.report.results
        if page.verbose and result.revision_reason
    }
    if spoken:  # with each server, and why
        yield "spoken:"
        for server, revision, reason in spoken:
            yield f"  {show(server, NAME)}  {why_revision(revision, reason)}"
        yield ""
    if page.report.interrupted:
        yield page.paint("interrupted: only finished tests are shown", "yellow")
    yield summary(page.report, page)


def _lines(page: _Page) -> Iterator[str]:
    tests = page.tests()
    names = [_name(trials, page) for trials in tests]
    column = _PLAIN_NAME_COLUMN
    if page.colour:
        longest = max(map(safe_text.cells, names), default=0)
        column = max(20, min(longest, page.width - 12))
    failures = 0
    for trials, name in zip(tests, names, strict=True):
        yield _test_line(trials, name, column, page)
        yield from _below(trials, page, with_proof=page.verbose or failures < PROOFS_SHOWN)
        failures += overall(trials) is Status.FAIL
    # On a terminal an empty line follows each failure already.
    if tests and not (page.colour and overall(tests[-1]) is Status.FAIL):
        yield ""
    if failures > PROOFS_SHOWN and not page.verbose:
        yield f"evidence is shown for the first {PROOFS_SHOWN} failures (--verbose shows all)"
    yield from _reliability_lines(page)
    yield from regression_lines(page.report, page)
    yield from note_lines(page.report, page)


def _name(trials: Sequence[TestResult], page: _Page) -> str:
    title = show(page.titles[identity_of(trials[0])], NAME)
    ran = [trial for trial in trials if trial.status is not Status.SKIP]
    if page.report.trials == 1 or not ran:
        return title
    passed = sum(trial.status is Status.PASS for trial in ran)
    flaky = " flaky" if 0 < passed < len(ran) else ""
    return f"{title} ({passed}/{len(ran)}){flaky}"


def _test_line(trials: Sequence[TestResult], name: str, column: int, page: _Page) -> str:
    status = overall(trials)
    average = sum(max(0, trial.duration_ms) for trial in trials) // len(trials)
    if not page.colour:
        return f"{status.value}  {terminal.pad(name, column)} {terminal.duration(average):>6}"
    if status is not Status.FAIL:
        name = terminal.cut(name, column)  # a failure is named in full, whatever that does
    took = page.paint(f"{terminal.duration(average):>8}", "dim")
    weight = ("bold",) if status is Status.FAIL else ()
    shown = page.paint(terminal.pad(name, column), *weight)
    skipped = page.paint("○" if page.unicode else "o", "yellow")
    signs = {Status.PASS: page.tick, Status.FAIL: page.cross}
    return f"{signs.get(status, skipped)} {shown}  {took}"


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
    if page.colour:
        yield ""


def _told(line: str, page: _Page, colour: str) -> Iterator[str]:
    for piece in _fitted(line, page, len(page.margin)):
        yield page.margin + page.paint(piece, colour)


def _proof(result: TestResult, page: _Page) -> Iterator[str]:
    pairs = list(_shown_once(result, page))
    if page.verbose and result.server:
        server = f"{result.server} ({result.revision})" if result.revision else result.server
        pairs.insert(0, ("server", show(server, NAME)))
    for label, text in labelled_once(pairs):
        # The command that repeats a test is for copying, so it stays in one piece.
        shown, whole = label, label == "repeat:"
        room = len(page.margin) + _LABEL
        for piece in [text] if whole else _fitted(text, page, room):
            painted = page.paint(f"{shown:<{_LABEL}}", "dim")
            yield page.margin + painted + (page.paint(piece, "bold") if whole else piece)
            shown = ""


def _shown_once(result: TestResult, page: _Page) -> Iterator[tuple[str, str]]:
    stderr = result.proof.stderr if result.proof is not None else ()
    is_repeated = bool(stderr) and stderr in page.stderr_shown
    page.stderr_shown.add(stderr)
    told = False
    for label, text in proof_lines(result, page.bounds):
        if label == "stderr" and is_repeated:
            yield from [] if told else [("stderr", "(same as above)")]
            told = True
        else:
            yield label, text


def _fitted(text: str, style: Style, taken: int) -> list[str]:
    """Only a terminal has a width."""
    return terminal.wrap(text, max(10, style.width - taken)) if style.colour else [text]


def _reliability_lines(page: _Page) -> Iterator[str]:
    if page.report.trials == 1:
        return
    measured = reliability(page.report)
    names = [show(test.name, NAME) for test in measured.tests]
    room = max([9, *(safe_text.cells(name) for name in names)])
    if page.colour:
        room = min(room, max(20, page.width - 42))
    header = f"{'Assertion':<{room}}  Trials  Passed  pass@k  pass^k"
    yield page.paint(header, "bold")
    for name, test in zip(names, measured.tests, strict=True):
        row = f"{terminal.pad(terminal.cut(name, room), room)}  {test.trials:>6}  {test.passed:>6}"
        row += "".join(f"  {'YES' if one else 'NO':>6}" for one in (test.capable, test.reliable))
        yield row + (page.paint("  flaky", "yellow") if test.flaky else "")
    yield f"  {measured}"
    yield ""


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
    number = len(report.results)
    ran = counted(number, "test") if number else "no tests ran"
    if report.trials > 1:
        tests = len(trials_of_each_test(report.results))
        ran = f"{counted(number, 'trial')} of {counted(tests, 'test')}"
    if report.regressions:
        told.append(style.paint(counted(len(report.regressions), "regression"), "red"))
    share = report.demand.threshold if report.demand is not None else 100
    required = f" ({share}% required)" if share < 100 else ""
    return f"{', '.join((ran, *told))}{required} in {terminal.duration(report.duration_ms)}"


# -- What `--fix` found --------------------------------------------------------------------------


def render_suggestions(found: Sequence[Suggestion]) -> str:
    lines = ["--fix suggestions (no file was changed):"]
    for each in found:
        lines += ["", f"  {show(f'{each.file}:{each.line}', 500)}: {show(each.name, 300)}"]
        lines.append(f"    passes at {_position(each.now)} (it has {_position(each.was)})")
        lines += (f"    {show(line, 500)}" for line in each.patch)
    none = ["--fix: no position nearby makes a failing test pass"]
    return "".join(f"{line}\n" for line in (lines if found else none))


def _position(position: tuple[tuple[str, int], ...]) -> str:
    return ", ".join(f"{show(name, 40)} {value}" for name, value in position)
