"""Rules by revisions: one server that was judged in several of them, side by side.

Only the rows that fail somewhere, or that do not come to the same everywhere, are worth a line.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mcptest.model.compliance import ComplianceReport, Judgement, RuleResult
from mcptest.model.show import show
from mcptest.model.verdict import Outcome
from mcptest.report import columns
from mcptest.report.compliance_facts import TITLE, letter_of, percent, score
from mcptest.report.compliance_text_page import Page, grade_colour

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
    rows = [MatrixRow(name, _title(cells), tuple(cells)) for name, cells in found.items()]
    shown = [row for row in rows if row.fails or row.differs]
    return sorted(shown, key=lambda row: (not row.fails, row.id))


def _title(cells: list[RuleResult | None]) -> str:
    return next((one.title for one in reversed(cells) if one is not None), "")


def matrix_facts(judgement: Judgement) -> dict[str, str]:
    """What stands above the rules in the column of a revision."""
    grade = judgement.grade
    letter = letter_of(grade)
    return {
        "grade": letter or "-",
        "score": score(grade.score) if grade is not None and letter else "-",
        "coverage": percent(judgement.coverage).replace(" ", ""),
        "failed": str(judgement.count(Outcome.FAIL)),
    }


def matrix_lines(report: ComplianceReport, page: Page) -> Iterator[str]:
    """The table for a terminal."""
    yield from _header(report, page)
    facts = [matrix_facts(judgement) for judgement in report.judgements]
    for name in facts[0] if facts else ():
        cells = (_fact(name, column[name], page) for column in facts)
        yield (f"{name:<{_NAME}}" + "".join(cells)).rstrip()
    rows = matrix_rows(report)
    yield from [""] if rows else []
    shown = rows if page.verbose else rows[:ROWS_SHOWN]
    for row in shown:
        yield _row(row, page)
    if len(rows) > len(shown):
        more = f"{page.ellipsis} and {len(rows) - len(shown)} more; --verbose shows all"
        yield page.style.paint(more, "dim")
    yield ""
    yield from page.prose(_legend(page, bool(rows)), 0, "dim")


def _header(report: ComplianceReport, page: Page) -> Iterator[str]:
    """A date takes two lines, so that six revisions fit a narrow terminal."""
    names = [str(one.revision).partition("-") for one in report.judgements]
    above = "".join(f"{name if dash else '':^{_COLUMN}}" for name, dash, _ in names)
    below = "".join(f"{rest if dash else name:^{_COLUMN}}" for name, dash, rest in names)
    yield page.style.paint((" " * _NAME + above).rstrip(), "bold")
    yield page.style.paint((" " * _NAME + below).rstrip(), "bold")


def _fact(name: str, text: str, page: Page) -> str:
    if name == "grade":
        return page.style.paint(f"{text:^{_COLUMN}}", grade_colour(text), "bold")
    return page.style.paint(f"{text:^{_COLUMN}}", *(["dim"] if name != "score" else []))


def _row(row: MatrixRow, page: Page) -> str:
    name = columns.pad(columns.cut(show(row.id, 40), _NAME - 1), _NAME)
    cells = "".join(_cell(one, page) for one in row.cells)
    room = page.room - _NAME - _COLUMN * len(row.cells) - 2
    title = columns.cut(show(row.title, TITLE), room) if room >= 20 else ""
    if not page.style.unicode:
        title = title.replace("…", "~")
    painted = page.style.paint(name, *(["bold"] if row.fails else []))
    return f"{painted}{cells}  {title}".rstrip()


def _cell(result: RuleResult | None, page: Page) -> str:
    symbol = " " if result is None else page.symbol(result)
    left = (_COLUMN - 1) // 2
    return " " * left + symbol + " " * (_COLUMN - 1 - left)


def _legend(page: Page, rows: bool) -> str:
    if not rows:
        return "every rule came to the same in each revision that has it"
    style = page.style
    plain = type(style)(colour=False, unicode=style.unicode)
    return (
        f"{plain.tick} passed, {plain.cross} MUST failed, {plain.warning} SHOULD or MAY failed, "
        f"{plain.unsure} inconclusive, {plain.dash} not observed or not applicable; blank: the "
        "revision has no such rule"
    )
