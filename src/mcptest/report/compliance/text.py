"""A judged server for a person at a terminal: the grade, what is broken and why, what to do.

What matters most stands first: the grade, what kept rules from being judged, what failed with its
proof, the gates; then how each section fared and what this run could not see.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from msgspec.structs import astuple

from mcptest.core import safe_text
from mcptest.core.judgement import (
    Event,
    GateResult,
    Judgement,
    JudgingBegan,
    JudgingWaits,
    RuleResult,
    SectionScore,
)
from mcptest.core.safe_text import show, some_of
from mcptest.core.verdict import Outcome
from mcptest.report import terminal
from mcptest.report.compliance import facts
from mcptest.report.progress import Progress
from mcptest.report.terminal import Style, counted, why_revision

if TYPE_CHECKING:
    from mcptest.report.compliance.compliance_report import ComplianceReport

# -- How a compliance report is laid out on a terminal -------------------------------------------

NARROWEST = 40
_LABEL = 10
_GRADES = {"A": "green", "B": "green", "C": "yellow", "D": "red", "F": "red"}
# Words of ours are wrapped. Bytes and commands of a pipe stay whole, so that they can be searched.
_BYTES = frozenset({"sent", "received", "message", "actual", "expected", "at"})
_FOR_COPYING = frozenset({"repeat", "spec"})


class TextPage(Style, frozen=True):
    """What is written in lines that fit."""

    @classmethod
    def like(cls, style: Style) -> TextPage:
        return cls(*astuple(style))

    @property
    def bounds(self) -> facts.FactBounds:
        return facts.FULL if self.verbose else facts.BRIEF

    @property
    def room(self) -> int:
        return max(self.width, NARROWEST)

    @property
    def ellipsis(self) -> str:
        return "…" if self.unicode else "..."

    def cut(self, text: str, room: int) -> str:
        cut = terminal.cut(text, room)
        if self.unicode or cut == text:
            return cut
        return terminal.cut(text, room - 2)[:-1] + "..."

    def heading(self, text: str, note: str = "") -> Iterator[str]:
        """A note that does not fit beside it stands below."""
        yield ""
        beside = note and len(text) + 2 + len(note) <= self.room
        painted = self.paint(text, "bold")
        yield f"{painted}  {self.paint(note, 'dim')}" if beside else painted
        yield from [] if beside or not note else self.prose(note, 2, "dim")

    def flow(self, start: str, parts: Iterable[tuple[str, str]]) -> Iterator[str]:
        """Parts after a start, with commas; the next line begins where there is no more room.

        A part is a text of ours with its colour, or with none.
        """
        line, used, comma = start, safe_text.cells(start), ""
        for text, colour in parts:
            # A comma may follow.
            if used + len(comma) + len(text) >= self.room and used > 4:
                yield (line + comma).rstrip()
                line, used, comma = "    ", 4, ""
            line += comma + self.paint(text, *filter(None, [colour]))
            used += len(comma) + len(text)
            comma = ", "
        yield line.rstrip()

    def prose(self, text: str, margin: int, *paints: str) -> Iterator[str]:
        """Words in lines that fit, none of which a CI system takes for a command."""
        for line in self.wrapped(text, margin):
            yield " " * margin + self.paint(line, *paints)

    def wrapped(self, text: str, taken: int) -> list[str]:
        room = max(self.room - taken, 16)
        lines = textwrap.wrap(text, room, break_on_hyphens=False) or [""]
        pieces = [piece for line in lines for piece in terminal.wrap(line, room)]
        return [show(piece, 2 * len(piece) + 2) for piece in pieces]

    def labelled(
        self, pairs: Iterable[tuple[str, str]], margin: int, why: str = "red"
    ) -> Iterator[str]:
        """`requires: The server …`; without what is empty, and without labels that repeat."""
        paints = {"repeat": ("bold",), "spec": ("cyan",), "why": (why,), "": ("dim",)}
        previous = ""
        for label, text in ((label, text) for label, text in pairs if text):
            shown = f"{label}:" if label and (label != previous or label in {"sent", "why"}) else ""
            previous = label
            taken = margin + _LABEL
            pieces = [text]
            if label in _BYTES and self.colour:
                pieces = terminal.wrap(text, max(self.room - taken, 16))
            elif label not in _BYTES | _FOR_COPYING:
                pieces = self.wrapped(text, taken)
            for piece in pieces:
                painted = self.paint(f"{shown:<{_LABEL}}", "dim")
                yield " " * margin + painted + self.paint(piece, *paints.get(label, ()))
                shown = ""

    def bar(self, share: float, cells: int, colour: str) -> str:
        """How full it is, rounded down: only a full mark fills it."""
        full = min(cells, max(0, int(share * cells)))
        on, off = ("█", "░") if self.unicode else ("=", ".")
        parts = ((on * full, colour), (off * (cells - full), "dim"))
        return "".join(self.paint(part, paint) for part, paint in parts if part)


def grade_colour(letter: str) -> str:
    return _GRADES.get(letter[:1], "yellow")


# -- Rules by revisions --------------------------------------------------------------------------

_COLUMN = 7
_NAME = 14
ROWS_SHOWN = 60


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """One rule over all revisions. None where a revision does not have it."""

    id: str
    title: str
    cells: tuple[RuleResult | None, ...]

    @property
    def fails(self) -> bool:
        return any(one is not None and one.failed for one in self.cells)

    @property
    def differs(self) -> bool:
        """Among the revisions that ask for it; one that does not says nothing about the server."""
        asked = {one.outcome for one in self.cells if one is not None}
        return len(asked - {Outcome.NOT_APPLICABLE}) > 1


def matrix_rows(report: ComplianceReport) -> list[MatrixRow]:
    """The rows that are worth a look: failures first, then what differs; each by rule id."""
    found: dict[str, list[RuleResult | None]] = {}
    for place, judgement in enumerate(report.judgements):
        for result in judgement.results:
            empty: list[RuleResult | None] = [None] * len(report.judgements)
            found.setdefault(result.id, empty)[place] = result
    rows = [
        MatrixRow(name, next(one.title for one in reversed(cells) if one), tuple(cells))
        for name, cells in found.items()
    ]
    shown = [row for row in rows if row.fails or row.differs]
    return sorted(shown, key=lambda row: (not row.fails, row.id))


def matrix_facts(judgement: Judgement) -> dict[str, str]:
    """What stands above the rules in the column of a revision."""
    grade = judgement.grade
    letter = facts.letter_of(grade)
    return {
        "grade": letter or "-",
        "score": facts.score(grade.score) if grade is not None and letter else "-",
        "coverage": facts.percent(judgement.coverage),
        "failed": str(judgement.count(Outcome.FAIL)),
    }


def matrix_lines(report: ComplianceReport, page: TextPage) -> Iterator[str]:
    """The table for a terminal. A date takes two lines, so that six revisions fit a narrow one."""
    names = [str(one.revision).partition("-") for one in report.judgements]
    above = "".join(f"{name if dash else '':^{_COLUMN}}" for name, dash, _ in names)
    below = "".join(f"{rest if dash else name:^{_COLUMN}}" for name, dash, rest in names)
    for line in (above, below):
        yield page.paint((" " * _NAME + line).rstrip(), "bold")
    columns = [matrix_facts(judgement) for judgement in report.judgements]
    for name in columns[0] if columns else ():
        cells = ""
        for text in (column[name] for column in columns):
            paints = (grade_colour(text), "bold") if name == "grade" else ("dim",)
            cells += page.paint(f"{text:^{_COLUMN}}", *(() if name == "score" else paints))
        yield f"{name:<{_NAME}}{cells}".rstrip()
    rows = matrix_rows(report)
    yield from [""] if rows else []
    shown = rows if page.verbose else rows[:ROWS_SHOWN]
    for row in shown:
        yield _row(row, page)
    if len(rows) > len(shown):
        more = f"{page.ellipsis} and {len(rows) - len(shown)} more (--verbose shows all)"
        yield page.paint(more, "dim")
    yield ""
    plain = Style(unicode=page.unicode)
    legend = (
        f"{plain.tick} passed, {plain.cross} MUST failed, {plain.warning} SHOULD or MAY failed, "
        f"{plain.unsure} inconclusive, {plain.dash} not observed or not applicable, blank: not a "
        "rule of this revision"
    )
    same = "every rule has the same result in each revision"
    yield from page.prose(legend if rows else same, 0, "dim")


def _row(row: MatrixRow, page: TextPage) -> str:
    name = terminal.pad(terminal.cut(show(row.id, 40), _NAME - 1), _NAME)
    left, right = " " * ((_COLUMN - 1) // 2), " " * (_COLUMN // 2)
    cells = "".join(f"{left}{facts.sign_of(one, page) if one else ' '}{right}" for one in row.cells)
    room = page.room - _NAME - _COLUMN * len(row.cells) - 2
    title = terminal.cut(show(row.title, facts.TITLE), room) if room >= 20 else ""
    if not page.unicode:
        title = title.replace("…", "~")
    painted = page.paint(name, *(["bold"] if row.fails else []))
    return f"{painted}{cells}  {title}".rstrip()


# -- A judged server for a person at a terminal --------------------------------------------------

GROUPS_SHOWN = 5
IDS_SHOWN = 8
_BAR = 20
_BOX_ROOM = 64


def compliance_lines(report: ComplianceReport, style: Style) -> Iterator[str]:
    """The whole report, line by line."""
    page = TextPage.like(style)
    several = len(report.judgements) > 1
    yield from (_several if several else _one)(report, page)
    yield from _notes(report, page)
    yield ""
    for judgement in report.judgements if several else ():
        profile = show(judgement.profile.id, facts.TITLE)
        yield from page.prose(f"{judgement.revision}: profile {profile}", 0, "dim")
    for judgement in report.judgements:
        yield from _summary(judgement, page, f"{judgement.revision}: " if several else "")
    # The last line says what the exit code says, and why.
    colour = "red" if report.failed else "green"
    yield from page.prose(report.verdict_in_words(), 0, colour, "bold")


def _one(report: ComplianceReport, page: TextPage) -> Iterator[str]:
    for judgement in report.judgements:
        yield from _head(report, judgement, page)
        yield from _causes(judgement, page)
        yield from _failures(judgement, page)
        if not judgement.whole_corpus:
            yield from _asked_for(judgement, page)
    if not report.judgements:
        yield page.paint(show(report.server, facts.TITLE), "bold")
    yield from _gates(report.gates, page)
    for judgement in report.judgements:
        yield from _sections(judgement, page)
        yield from _coverage(judgement, page)
        passed = [one for one in judgement.results if one.outcome is Outcome.PASS]
        if page.verbose and judgement.whole_corpus and passed:
            yield from page.heading("Passed")
            for section, results in groupby(passed, key=lambda one: one.section):
                yield page.paint(f"  {show(section, 60)}", "cyan")
                yield from (f"  {_short(result, page)}" for result in results)


# -- the grade -----------------------------------------------------------------------------


def _head(report: ComplianceReport, judgement: Judgement, page: TextPage) -> Iterator[str]:
    dot, grade = f" {page.dot} ", judgement.grade
    names = [show(report.server, facts.TITLE), facts.server_in_words(judgement)]
    letter = facts.letter_of(grade)
    third = [f"grade {letter}" if letter else facts.why_no_letter(judgement)]
    third += [facts.score_in_words(grade)] if grade is not None and letter else []
    third.append(f"profile {show(judgement.profile.id, facts.TITLE)}")
    lines = [
        [dot.join(filter(None, names)), "bold"],
        [dot.join(facts.scope_in_words(judgement)), "dim"],
        [dot.join(third), grade_colour(letter)],
    ]
    if page.colour and letter and page.room >= _BOX_ROOM:
        yield from _boxed(letter, lines, page)
    else:
        for line, *paints in lines:
            yield from page.prose(line, 0, *paints)
    if judgement.revision_reason:
        why = why_revision(judgement.revision, judgement.revision_reason)
        yield from page.prose(why, 0, "dim")
    for cap in facts.caps_in_words(grade):
        yield from page.prose(cap, 0, "yellow")


def _boxed(letter: str, lines: list[list[str]], page: TextPage) -> Iterator[str]:
    across, side = ("─", "│") if page.unicode else ("-", "|")
    corners = "╭╮╰╯" if page.unicode else "++++"
    inside = terminal.pad(letter, 2).center(6)
    colour = grade_colour(letter)
    edges = [f"{corners[at]}{across * 6}{corners[at + 1]}" for at in (0, 2)]
    box = (edges[0], f"{side}{inside}{side}", edges[1])
    for drawn, (line, *paints) in zip(box, lines, strict=True):
        fitted = page.cut(line, page.room - 10)
        yield f"{page.paint(drawn, colour, 'bold')}  {page.paint(fitted, *paints)}"


# -- what is broken ------------------------------------------------------------------------


def _causes(judgement: Judgement, page: TextPage, note: str = "") -> Iterator[str]:
    if not judgement.causes:
        return
    yield from page.heading("Root cause" if len(judgement.causes) == 1 else "Root causes", note)
    for cause in judgement.causes[: facts.CAUSES_SHOWN]:
        message, *quoted = cause.message[:600].split("\n")
        said = f"{show(cause.id, 40)}: {show(message, 600)}"
        first, *rest = page.wrapped(said, 4)
        yield f"  {page.cross} {page.paint(first, 'red')}"
        yield from (f"    {page.paint(line, 'red')}" for line in rest)
        for line in quoted:
            yield from page.prose(show(line.removeprefix("  "), 600), 6)
        if cause.kept_from_judging:
            kept = f"{counted(cause.kept_from_judging, 'rule')} could not be judged"
            yield from page.prose(kept, 4, "dim")
        exchanges = facts.exchanges_of(cause.evidence, page.bounds)
        yield from page.labelled([*exchanges, ("fix", show(cause.hint, 600))], 4)
    yield from _and_more(len(judgement.causes) - facts.CAUSES_SHOWN)


def _and_more(number: int) -> Iterator[str]:
    if number > 0:
        yield f"    and {number} more"


def _failures(judgement: Judgement, page: TextPage) -> Iterator[str]:
    failed = facts.failures_first(judgement)
    once = [one for one in judgement.results if one.failed_once]
    for title, results in (
        ("Failing", [one for one in failed if one.from_sdk is None]),
        (f"From the {show(judgement.sdk, 60)}", [one for one in failed if one.from_sdk]),
        ("Failed once, not confirmed", once),
    ):
        words = Counter(one.severity.value for one in results)
        if results:
            keywords = ", ".join(f"{count} {word}" for word, count in words.items())
            yield from page.heading(title, keywords)
        for place, result in enumerate(results):
            yield from [""] if place else []
            yield from _rule(result, page)


def _rule(result: RuleResult, page: TextPage, also: str = "") -> Iterator[str]:
    name = page.paint(show(result.id, 40), "bold")
    colour = "red" if facts.is_broken(result) else "yellow"
    keyword = page.paint(result.severity.value, colour)
    taken = 4 + safe_text.cells(show(result.id, 40)) + 2 + len(result.severity.value) + 2
    first, *rest = page.wrapped(show(result.title, facts.TITLE), taken)
    yield f"  {facts.sign_of(result, page)} {name}  {keyword}  {first}"
    yield from (" " * taken + line for line in rest)
    yield from page.labelled([("in", also), *facts.proof_of(result, page.bounds)], 4, colour)


def _asked_for(judgement: Judgement, page: TextPage) -> Iterator[str]:
    """Who asked for some rules wants to know about each of them."""
    others = [one for one in judgement.results if not one.failed]
    if others:
        yield ""
    for result in others:
        yield _short(result, page)
        if result.outcome is not Outcome.PASS:
            pairs = [p for p in facts.proof_of(result, page.bounds) if p[0] in {"why", "needs"}]
            yield from page.labelled(pairs, 4, "dim")


def _short(result: RuleResult, page: TextPage) -> str:
    title = page.cut(show(result.title, facts.TITLE), page.room - 18)
    return f"  {facts.sign_of(result, page)} {show(result.id, 40):<12} {title}"


# -- gates, sections, coverage -------------------------------------------------------------


def _gates(gates: Sequence[GateResult], page: TextPage) -> Iterator[str]:
    yield from [""] if gates else []
    for gate in gates:
        yield page.paint(facts.gate_line(gate), "green" if gate.passed else "red")
        for line in gate.lines[: 200 if page.verbose else 20]:
            yield from page.prose(show(line, 600), 2)
        yield from _and_more(len(gate.lines) - (200 if page.verbose else 20))


def _sections(judgement: Judgement, page: TextPage) -> Iterator[str]:
    grade = judgement.grade
    if grade is None or not grade.sections:
        return
    yield from page.heading("Sections")
    column = max(safe_text.cells(show(one.section, 24)) for one in grade.sections)
    for one in grade.sections:
        yield from _section(one, column, page)


def _section(one: SectionScore, column: int, page: TextPage) -> Iterator[str]:
    seen = one.passed + one.failed
    width = _BAR if page.room >= 80 else 8
    name = terminal.pad(show(one.section, 24), column)
    colour = "green" if not one.failed else "yellow" if one.score >= 70 else "red"
    bar = page.bar(one.score / 100 if seen else 0.0, width, colour)
    mark = f"{facts.score(one.score) if seen else '-':>5}  {show(one.grade, 4):<2}"
    told = [
        (one.passed, "passed", ""),
        (one.failed, "failed", "red"),
        (one.not_observed, "not observed", ""),
    ]
    parts = [(f"{number} {word}", colour) for number, word, colour in told if number]
    taken = column + width + len(mark) + 7
    # The bar is painted, so it is put in place of blanks of the same width.
    lines = list(page.flow(" " * taken, parts))
    head = f"  {name}  {bar} {mark}  "
    yield (head + lines[0][taken:]).rstrip()
    yield from lines[1:]


def _coverage(judgement: Judgement, page: TextPage, where: str = "") -> Iterator[str]:
    yield from page.heading(f"Coverage{where}", facts.coverage_in_words(judgement))
    unseen, unsure = facts.not_observed(judgement), facts.inconclusive(judgement)
    yield from _groups("not observed, by what is needed to observe them", unseen, page)
    yield from _groups("inconclusive, by cause", unsure, page)
    if page.verbose:
        yield from _groups("not applicable, by reason", facts.not_applicable(judgement), page)


def _groups(title: str, groups: Sequence[facts.Group], page: TextPage) -> Iterator[str]:
    if not groups:
        return
    rules = sum(len(group.rules) for group in groups)
    yield from page.prose(f"{rules} {title}", 2)
    shown = groups if page.verbose else groups[:GROUPS_SHOWN]
    for group in shown:
        yield from page.prose(f"{group.why} ({len(group.rules)})", 4)
        most = len(group.ids) if page.verbose else IDS_SHOWN
        yield from page.prose(some_of(group.ids, most), 6, "dim")
    left = sum(len(group.rules) for group in groups[len(shown) :])
    if left:
        more = f"{page.ellipsis} and {counted(left, 'more rule')} (--verbose shows all)"
        yield from page.prose(more, 4, "dim")


def _notes(report: ComplianceReport, page: TextPage) -> Iterator[str]:
    notes = [*report.notes, *(note for one in report.judgements for note in one.notes)]
    captures = [path for one in report.judgements for path in one.captures]
    told = [f"note: {show(note, 600)}" for note in dict.fromkeys(notes)]
    told += [f"capture: {show(path, 600)}" for path in captures]
    yield from [""] if told else []
    for line in told[: facts.NOTES_SHOWN]:
        yield from page.prose(line, 0, "dim")
    yield from _and_more(len(told) - facts.NOTES_SHOWN)


def _summary(judgement: Judgement, page: TextPage, where: str) -> Iterator[str]:
    shown = [
        (f"{number} {word}", colour)
        for number, word, colour in facts.tally(judgement)
        if number or word in {"failed", "passed"}
    ]
    yield from page.flow(f"{where}{counted(len(judgement.results), 'rule')}: ", shown)


# -- several revisions ---------------------------------------------------------------------


def _several(report: ComplianceReport, page: TextPage) -> Iterator[str]:
    names = [show(report.server, facts.TITLE)]
    names += dict.fromkeys(filter(None, map(facts.server_in_words, report.judgements)))
    transports = dict.fromkeys(show(one.transport, 40) for one in report.judgements)
    dot = f" {page.dot} "
    yield from page.prose(dot.join(names), 0, "bold")
    revisions = counted(len(report.judgements), "revision")
    yield from page.prose(f"{revisions} over {', '.join(transports)}", 0, "dim")
    yield ""
    yield from matrix_lines(report, page)
    for judgement in report.judgements:
        yield from _causes(judgement, page, str(judgement.revision))
    failed = facts.newest_failures(report)
    if failed:
        yield from page.heading("Failing", "each as seen in the newest revision")
    for place, (result, where) in enumerate(failed):
        yield from [""] if place else []
        yield from _rule(result, page, ", ".join(str(one.revision) for one in where))
    yield from _gates(report.gates, page)
    for judgement in report.judgements if page.verbose else report.judgements[-1:]:
        yield from _coverage(judgement, page, f" in {judgement.revision}")
    if not page.verbose:
        yield from page.prose("--verbose shows every revision", 2, "dim")


# -- How far judging has come, for the live display ----------------------------------------------


class JudgingProgress:
    """Give it to whoever judges as the listener of events."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._revision = ""
        self._reached = 0, 0

    def __call__(self, event: Event) -> None:
        if isinstance(event, JudgingBegan):
            self._revision, self._reached = str(event.revision), (0, event.rules)
            self._progress.reach(*self._reached, f"{event.server} {self._revision}")
            return
        if isinstance(event, JudgingWaits):
            self._progress.reach(*self._reached, event.what)
            return
        self._reached = event.done, event.total
        self._progress.reach(*self._reached, f"{event.id} {self._revision}")
        if event.failed:
            self._progress.fail(f"{event.id} {self._revision}", event.title)
