"""A judged server for a person at a terminal: the grade, what is broken and why, what to do.

What matters most stands first: the grade, what kept rules from being judged, what failed with its
proof, the gates; then how each section fared and what this run could not see.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mcptest.model.compliance import (
    ComplianceReport,
    GateResult,
    Judgement,
    RuleResult,
    SectionScore,
)
from mcptest.model.show import show
from mcptest.model.verdict import Outcome
from mcptest.report import columns
from mcptest.report.compliance_facts import (
    CAUSES_SHOWN,
    NOTES_SHOWN,
    TITLE,
    Group,
    counted,
    coverage_in_words,
    exchanges_of,
    failures_first,
    faults_of_sdk,
    gate_line,
    inconclusive,
    is_broken,
    letter_of,
    newest_failures,
    not_applicable,
    not_observed,
    own_faults,
    proof_of,
    scope_in_words,
    score,
    score_in_words,
    server_in_words,
    tally,
    why_no_letter,
)
from mcptest.report.compliance_matrix import matrix_lines
from mcptest.report.compliance_text_page import Page, grade_colour, score_colour
from mcptest.report.explored_text import why_revision
from mcptest.report.terminal import Style

GROUPS_SHOWN = 5
IDS_SHOWN = 8
_BAR = 20
_BOX_ROOM = 64


def compliance_lines(
    report: ComplianceReport, style: Style, *, verbose: bool = False, width: int = 100
) -> Iterator[str]:
    """The whole report, line by line."""
    page = Page(style, verbose, width)
    if len(report.judgements) > 1:
        yield from _several(report, page)
        return
    for judgement in report.judgements:
        yield from _head(report, judgement, page)
        yield from _causes(judgement, page)
        yield from _failures(judgement, page)
        yield from _not_repeated(judgement, page)
        if not judgement.whole_corpus:
            yield from _asked_for(judgement, page)
    if not report.judgements:
        yield style.paint(show(report.server, TITLE), "bold")
    yield from _gates(report.gates, page)
    for judgement in report.judgements:
        yield from _sections(judgement, page)
        yield from _coverage(judgement, page)
        if verbose and judgement.whole_corpus:
            yield from _passed(judgement, page)
    yield from _notes(report, page)
    for judgement in report.judgements:
        yield ""
        yield from _summary(judgement, page)


# -- the grade -----------------------------------------------------------------------------


def _head(report: ComplianceReport, judgement: Judgement, page: Page) -> Iterator[str]:
    lines = _head_lines(report, judgement, page)
    letter = letter_of(judgement.grade)
    if page.style.colour and letter and page.room >= _BOX_ROOM:
        yield from _boxed(letter, lines, page)
    else:
        for line, *paints in lines:
            yield from page.prose(line, 0, *paints)
    if judgement.revision_reason:
        why = why_revision(judgement.revision, judgement.revision_reason)
        yield from page.prose(why, 0, "dim")
    for cap in judgement.grade.caps if judgement.grade is not None else ():
        yield from page.prose(f"capped: {show(cap, 300)}", 0, "yellow")


def _head_lines(report: ComplianceReport, judgement: Judgement, page: Page) -> list[list[str]]:
    dot = f" {page.style.dot} "
    names = [show(report.server, TITLE), server_in_words(judgement)]
    grade = judgement.grade
    letter = letter_of(grade)
    third = [f"grade {letter}" if letter else why_no_letter(judgement)]
    third += [score_in_words(grade)] if grade is not None and letter else []
    third.append(f"profile {show(judgement.profile.id, TITLE)}")
    return [
        [dot.join(filter(None, names)), "bold"],
        [dot.join(scope_in_words(judgement)), "dim"],
        [dot.join(third), grade_colour(letter)],
    ]


def _boxed(letter: str, lines: list[list[str]], page: Page) -> Iterator[str]:
    across, side = ("─", "│") if page.style.unicode else ("-", "|")
    corners = "╭╮╰╯" if page.style.unicode else "++++"
    inside = columns.pad(letter, 2).center(6)
    colour = grade_colour(letter)
    box = [
        f"{corners[0]}{across * 6}{corners[1]}",
        f"{side}{inside}{side}",
        f"{corners[2]}{across * 6}{corners[3]}",
    ]
    room = page.room - 10
    for drawn, (line, *paints) in zip(box, lines, strict=True):
        fitted = _cut(line, room, page)
        yield f"{page.style.paint(drawn, colour, 'bold')}  {page.style.paint(fitted, *paints)}"


def _cut(text: str, room: int, page: Page) -> str:
    cut = columns.cut(text, room)
    return cut if page.style.unicode or cut == text else columns.cut(text, room - 2)[:-1] + "..."


# -- what is broken ------------------------------------------------------------------------


def _causes(judgement: Judgement, page: Page, note: str = "") -> Iterator[str]:
    if not judgement.causes:
        return
    yield from page.heading("Root cause" if len(judgement.causes) == 1 else "Root causes", note)
    for cause in judgement.causes[:CAUSES_SHOWN]:
        message, *quoted = cause.message[:600].split("\n")
        said = f"{show(cause.id, 40)}: {show(message, 600)}"
        first, *rest = page.wrapped(said, 4)
        yield f"  {page.style.cross} {page.style.paint(first, 'red')}"
        yield from (f"    {page.style.paint(line, 'red')}" for line in rest)
        for line in quoted:
            yield from page.prose(show(line, 600), 4)
        if cause.kept_from_judging:
            kept = f"kept {counted(cause.kept_from_judging, 'rule')} from being judged"
            yield from page.prose(kept, 4, "dim")
        pairs = [*exchanges_of(cause.evidence, page.bounds)]
        pairs += [("fix", show(cause.hint, 600))] if cause.hint else []
        yield from page.labelled(pairs, 4)
    yield from _and_more(len(judgement.causes) - CAUSES_SHOWN)


def _and_more(number: int) -> Iterator[str]:
    if number > 0:
        yield f"    and {number} more"


def _failures(judgement: Judgement, page: Page) -> Iterator[str]:
    failed = failures_first(judgement)
    own, known = own_faults(failed), faults_of_sdk(failed)
    for title, results in (("Failing", own), (f"From the {show(judgement.sdk, 60)}", known)):
        if results:
            yield from page.heading(title, _keywords(results))
        for place, result in enumerate(results):
            yield from [""] if place else []
            yield from _rule(result, page)


def _not_repeated(judgement: Judgement, page: Page) -> Iterator[str]:
    """What failed once only, with what came each time."""
    once = [one for one in judgement.results if one.failed_once]
    if once:
        yield from page.heading("Failed once and not again", _keywords(once))
    for place, result in enumerate(once):
        yield from [""] if place else []
        yield from _rule(result, page)


def _keywords(results: Sequence[RuleResult]) -> str:
    words = [one.severity.value for one in results]
    return ", ".join(f"{words.count(word)} {word}" for word in dict.fromkeys(words))


def _rule(result: RuleResult, page: Page, also: str = "") -> Iterator[str]:
    name = page.style.paint(show(result.id, 40), "bold")
    keyword = page.style.paint(result.severity.value, "red" if is_broken(result) else "yellow")
    symbol = page.symbol(result)
    taken = 4 + columns.cells(show(result.id, 40)) + 2 + len(result.severity.value) + 2
    first, *rest = page.wrapped(show(result.title, TITLE), taken)
    yield f"  {symbol} {name}  {keyword}  {first}"
    yield from (" " * taken + line for line in rest)
    pairs = [*([("in", also)] if also else []), *proof_of(result, page.bounds)]
    yield from page.labelled(pairs, 4, "red" if is_broken(result) else "yellow")


def _asked_for(judgement: Judgement, page: Page) -> Iterator[str]:
    """Who asked for some rules wants to know about each of them."""
    others = [one for one in judgement.results if not one.failed]
    if others:
        yield ""
    for result in others:
        yield _short(result, page)
        if result.outcome is not Outcome.PASS:
            pairs = [p for p in proof_of(result, page.bounds) if p[0] in {"why", "needs"}]
            yield from page.labelled(pairs, 4, "dim")


def _short(result: RuleResult, page: Page) -> str:
    name = f"{show(result.id, 40):<12}"
    return f"  {page.symbol(result)} {name} {_cut(show(result.title, TITLE), page.room - 18, page)}"


# -- gates, sections, coverage -------------------------------------------------------------


def _gates(gates: Sequence[GateResult], page: Page) -> Iterator[str]:
    yield from [""] if gates else []
    for gate in gates:
        yield page.style.paint(gate_line(gate), "green" if gate.passed else "red")
        for line in gate.lines[: 200 if page.verbose else 20]:
            yield from page.prose(show(line, 600), 2)
        yield from _and_more(len(gate.lines) - (200 if page.verbose else 20))


def _sections(judgement: Judgement, page: Page) -> Iterator[str]:
    grade = judgement.grade
    if grade is None or not grade.sections:
        return
    yield from page.heading("Sections")
    column = max(columns.cells(show(one.section, 24)) for one in grade.sections)
    for one in grade.sections:
        yield from _section(one, column, page)


def _section(one: SectionScore, column: int, page: Page) -> Iterator[str]:
    seen = one.passed + one.failed
    name = columns.pad(show(one.section, 24), column)
    colour = score_colour(one.score, one.failed)
    bar = page.bar(one.score / 100 if seen else 0.0, _bar(page), colour)
    mark = f"{score(one.score) if seen else '-':>5}  {show(one.grade, 4):<2}"
    told = [
        (one.passed, "passed", ""),
        (one.failed, "failed", "red"),
        (one.not_observed, "not observed", ""),
    ]
    parts = [(f"{number} {word}", colour) for number, word, colour in told if number]
    taken = column + _bar(page) + len(mark) + 7
    # The bar is painted, so it is put in place of blanks of the same width.
    lines = list(page.flow(" " * taken, parts))
    head = f"  {name}  {bar} {mark}  "
    yield (head + lines[0][taken:]).rstrip()
    yield from lines[1:]


def _bar(page: Page) -> int:
    return _BAR if page.room >= 80 else 8


def _coverage(judgement: Judgement, page: Page, where: str = "") -> Iterator[str]:
    yield from page.heading(f"Coverage{where}", coverage_in_words(judgement))
    unseen, unsure = not_observed(judgement), inconclusive(judgement)
    yield from _groups("not observed, by what would unlock them", unseen, page)
    yield from _groups("inconclusive, by cause", unsure, page)
    if page.verbose:
        yield from _groups("not applicable, by reason", not_applicable(judgement), page)


def _groups(title: str, groups: Sequence[Group], page: Page) -> Iterator[str]:
    if not groups:
        return
    rules = sum(len(group.rules) for group in groups)
    yield from page.prose(f"{rules} {title}", 2)
    shown = groups if page.verbose else groups[:GROUPS_SHOWN]
    for group in shown:
        yield from page.prose(f"{group.why} ({len(group.rules)})", 4)
        yield from page.prose(_ids(group, page), 6, "dim")
    left = sum(len(group.rules) for group in groups[len(shown) :])
    if left:
        more = f"{page.ellipsis} and {counted(left, 'more rule')}; --verbose shows all"
        yield from page.prose(more, 4, "dim")


def _ids(group: Group, page: Page) -> str:
    ids = group.ids if page.verbose else group.ids[:IDS_SHOWN]
    more = len(group.ids) - len(ids)
    return ", ".join(ids) + (f" and {more} more" if more else "")


def _passed(judgement: Judgement, page: Page) -> Iterator[str]:
    passed = [one for one in judgement.results if one.outcome is Outcome.PASS]
    if not passed:
        return
    yield from page.heading("Passed")
    section = None
    for result in passed:
        if result.section != section:
            section = result.section
            yield page.style.paint(f"  {show(section, 60)}", "cyan")
        yield f"  {_short(result, page)}"


def _notes(report: ComplianceReport, page: Page) -> Iterator[str]:
    notes = [*report.notes, *(note for one in report.judgements for note in one.notes)]
    captures = [path for one in report.judgements for path in one.captures]
    told = [f"note: {show(note, 600)}" for note in dict.fromkeys(notes)]
    told += [f"capture: {show(path, 600)}" for path in captures]
    yield from [""] if told else []
    for line in told[:NOTES_SHOWN]:
        yield from page.prose(line, 0, "dim")
    yield from _and_more(len(told) - NOTES_SHOWN)


def _summary(judgement: Judgement, page: Page, where: str = "") -> Iterator[str]:
    shown = [
        (f"{number} {word}", colour)
        for number, word, colour in tally(judgement)
        if number or word in {"failed", "passed"}
    ]
    yield from page.flow(f"{where}{counted(len(judgement.results), 'rule')}: ", shown)


# -- several revisions ---------------------------------------------------------------------


def _several(report: ComplianceReport, page: Page) -> Iterator[str]:
    names = [show(report.server, TITLE)]
    names += dict.fromkeys(filter(None, map(server_in_words, report.judgements)))
    transports = dict.fromkeys(show(one.transport, 40) for one in report.judgements)
    dot = f" {page.style.dot} "
    yield from page.prose(dot.join(names), 0, "bold")
    revisions = counted(len(report.judgements), "revision")
    yield from page.prose(f"{revisions} over {', '.join(transports)}", 0, "dim")
    yield ""
    yield from matrix_lines(report, page)
    for judgement in report.judgements:
        yield from _causes(judgement, page, str(judgement.revision))
    failed = newest_failures(report)
    if failed:
        yield from page.heading("Failing", "each as it failed in the newest revision")
    for place, (result, where) in enumerate(failed):
        yield from [""] if place else []
        yield from _rule(result, page, ", ".join(str(one.revision) for one in where))
    yield from _gates(report.gates, page)
    for judgement in report.judgements if page.verbose else report.judgements[-1:]:
        yield from _coverage(judgement, page, f" in {judgement.revision}")
    if not page.verbose:
        yield from page.prose("--verbose lists it for every revision", 2, "dim")
    yield from _notes(report, page)
    yield ""
    for judgement in report.judgements:
        profile = show(judgement.profile.id, TITLE)
        yield from page.prose(f"{judgement.revision}: profile {profile}", 0, "dim")
    for judgement in report.judgements:
        yield from _summary(judgement, page, f"{judgement.revision}: ")
