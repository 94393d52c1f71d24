"""A judged server as one HTML file: no script, nothing from the network, everything escaped.

The page says so to the browser as well: its policy allows its own style sheet and nothing else.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Sequence

from mcptest.model.compliance import ComplianceReport, Judgement, RootCause, RuleResult
from mcptest.model.show import show
from mcptest.model.verdict import Outcome
from mcptest.report.compliance_facts import (
    BRIEF,
    CAUSES_SHOWN,
    FULL,
    LINE,
    NOTES_SHOWN,
    OUTCOMES,
    TITLE,
    Bounds,
    Group,
    counted,
    coverage_in_words,
    exchanges_of,
    failures_first,
    inconclusive,
    is_broken,
    letter_of,
    not_applicable,
    not_observed,
    proof_of,
    scope_in_words,
    score,
    score_in_words,
    server_in_words,
    tally,
    why_no_letter,
)
from mcptest.report.compliance_html_style import STYLE
from mcptest.report.compliance_matrix import MatrixRow, matrix_facts, matrix_rows
from mcptest.report.compliance_text_page import grade_colour, score_colour

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_PREFORMATTED = frozenset({"sent", "received", "message", "repeat", "expected", "actual"})
_SIGNS = {
    Outcome.PASS: ("✓", "green"),
    Outcome.INCONCLUSIVE: ("?", "yellow"),
    Outcome.NOT_OBSERVED: ("·", "soft"),
    Outcome.NOT_APPLICABLE: ("·", "soft"),
}
_SPECIFICATION = "https://modelcontextprotocol.io/"


def compliance_as_html(report: ComplianceReport) -> str:
    """The whole page."""
    return "".join(f"{line}\n" for line in _lines(report))


def safe(text: str, limit: int = TITLE) -> str:
    """A text as it may stand anywhere in HTML, in an attribute too."""
    return html.escape(show(text, limit), quote=True)


def _lines(report: ComplianceReport) -> Iterator[str]:
    several = len(report.judgements) > 1
    title = safe(f"mcptest compliance: {report.server}")
    yield '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
    yield '<meta name="viewport" content="width=device-width,initial-scale=1">'
    yield '<meta name="referrer" content="no-referrer">'
    yield f"<title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>"
    for judgement in report.judgements:
        yield from _card(report, judgement)
    if not report.judgements:
        yield f"<h1>{safe(report.server)}</h1>"
    yield from _gates(report)
    if several:
        yield from _matrix(report)
    for judgement in report.judgements:
        yield from _judgement(judgement, several)
    yield from _notes(report)
    parts = [report.tool, report.started]
    yield f'<footer class="soft">{safe(" · ".join(filter(None, parts)))}</footer>'
    yield "</main>\n</body>\n</html>"


def _card(report: ComplianceReport, judgement: Judgement) -> Iterator[str]:
    letter = letter_of(judgement.grade)
    colour = grade_colour(letter)
    grade = judgement.grade
    marks = [score_in_words(grade)] if grade is not None and letter else [why_no_letter(judgement)]
    marks.append(coverage_in_words(judgement))
    counts = [
        f'<span class="{"soft" if paint == "dim" else paint}">{number} {word}</span>'
        for number, word, paint in tally(judgement)
        if number
    ]
    names = " · ".join(filter(None, [safe(report.server), html.escape(server_in_words(judgement))]))
    yield '<section class="card">'
    yield f'<div class="grade {colour}">{html.escape(letter) or "–"}</div>'  # noqa: RUF001 - a dash
    scope = html.escape(" · ".join(scope_in_words(judgement)))
    yield f'<div><h1>{names}</h1><p class="soft">{scope}</p>'
    yield f"<p>{html.escape(' · '.join(marks))}</p><p>{', '.join(counts)}</p>"
    for cap in grade.caps if grade is not None else ():
        yield f'<p class="yellow">capped: {safe(cap, 300)}</p>'
    profile = safe(judgement.profile.id)
    yield f'<p class="soft">profile <code>{profile}</code></p></div>\n</section>'


def _gates(report: ComplianceReport) -> Iterator[str]:
    if not report.gates:
        return
    yield "<h2>Gates</h2>\n<table>"
    for gate in report.gates:
        word, colour = ("PASS", "green") if gate.passed else ("FAIL", "red")
        told = [gate.detail, *gate.lines[:200]]
        cell = "<br>".join(safe(text, LINE) for text in told if text)
        yield (
            f'<tr><td class="id">{safe(gate.name, 60)}</td><td class="{colour}">{word}</td>'
            f"<td>{cell}</td></tr>"
        )
    yield "</table>"


def _judgement(judgement: Judgement, several: bool) -> Iterator[str]:
    where = f" in {judgement.revision}" if several else ""
    if judgement.causes:
        yield f"<h2>Root causes{where}</h2>"
    for cause in judgement.causes[:CAUSES_SHOWN]:
        yield from _cause(cause)
    failed = failures_first(judgement)
    if failed:
        yield f"<h2>Failing{where}</h2>"
    for result in failed:
        yield from _rule(result, FULL, is_open=is_broken(result) and not several)
    yield from _sections(judgement, where)
    yield f'<h2>Coverage{where}</h2>\n<p class="soft">{coverage_in_words(judgement)}</p>'
    yield from _groups("not observed, by what would unlock them", not_observed(judgement))
    yield from _groups("inconclusive, by cause", inconclusive(judgement))
    yield from _groups("not applicable, by reason", not_applicable(judgement))
    yield from _all_rules(judgement, where)


def _cause(cause: RootCause) -> Iterator[str]:
    kept = counted(cause.kept_from_judging, "rule")
    yield f'<div class="cause"><p><span class="id">{safe(cause.id, 40)}</span> '
    yield f"{safe(cause.message, LINE)}</p>"
    if cause.kept_from_judging:
        yield f'<p class="soft">kept {kept} from being judged</p>'
    pairs = [*exchanges_of(cause.evidence, FULL)]
    pairs += [("fix", show(cause.hint, LINE))] if cause.hint else []
    yield from _pairs(pairs)
    yield "</div>"


# -- rules ---------------------------------------------------------------------------------


def _rule(result: RuleResult, bounds: Bounds, *, is_open: bool = False) -> Iterator[str]:
    sign, colour = _sign(result)
    yield (
        f'<details class="rule"{" open" if is_open else ""}><summary>'
        f'<span class="{colour}">{sign}</span> <span class="id">{safe(result.id, 40)}</span>'
        f'<span class="keyword {colour}">{result.severity.value}</span>'
        f"{safe(result.title)}</summary>"
    )
    yield from _pairs(proof_of(result, bounds))
    yield "</details>"


def _sign(result: RuleResult) -> tuple[str, str]:
    if result.failed:
        return ("✗", "red") if is_broken(result) else ("!", "yellow")
    return _SIGNS[result.outcome]


def _pairs(pairs: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Labels and texts that are safe for a terminal already; here they are made safe for HTML."""
    found = list(pairs)
    if not found:
        return
    yield "<dl>"
    for label, text in found:
        yield f"<dt>{label}</dt><dd>{_value(label, text)}</dd>"
    yield "</dl>"


def _value(label: str, text: str) -> str:
    escaped = html.escape(text, quote=True)
    if label in _PREFORMATTED:
        return f"<pre>{escaped}</pre>"
    if label == "spec" and text.startswith(_SPECIFICATION):
        return f'<a href="{escaped}" rel="noopener noreferrer">{escaped}</a>'
    return f'<span class="red">{escaped}</span>' if label == "why" else escaped


def _all_rules(judgement: Judgement, where: str) -> Iterator[str]:
    yield f"<h2>Every rule{where}</h2>"
    sections: dict[str, list[RuleResult]] = {}
    for result in judgement.results:
        sections.setdefault(result.section, []).append(result)
    for section, results in sections.items():
        outcomes = [one.outcome for one in results]
        counts = [
            f"{outcomes.count(outcome)} {word}"
            for outcome, word in OUTCOMES.items()
            if outcome in outcomes
        ]
        yield '<details class="group"><summary>'
        yield f'{safe(section, 60)} <span class="soft">{", ".join(counts)}</span></summary>'
        for result in results:
            yield from _rule(result, BRIEF)
        yield "</details>"


# -- sections, coverage, matrix, notes -----------------------------------------------------


def _sections(judgement: Judgement, where: str) -> Iterator[str]:
    sections = judgement.grade.sections if judgement.grade is not None else ()
    if not sections:
        return
    yield f'<h2>Sections{where}</h2>\n<div class="scroll"><table>'
    yield "<tr><th>section</th><th></th><th>score</th><th>grade</th><th>passed</th>"
    yield "<th>failed</th><th>not observed</th></tr>"
    for one in sections:
        seen = one.passed + one.failed
        share = min(100.0, max(0.0, one.score)) if seen else 0.0
        colour = score_colour(one.score, one.failed)
        yield (
            f"<tr><td>{safe(one.section, 60)}</td>"
            f'<td><span class="bar {colour}"><i style="width:{share:.1f}%"></i></span></td>'
            f'<td class="cell">{score(one.score) if seen else ""}</td>'
            f'<td class="cell">{safe(one.grade, 4)}</td><td class="cell">{one.passed}</td>'
            f'<td class="cell">{one.failed}</td><td class="cell">{one.not_observed}</td></tr>'
        )
    yield "</table></div>"


def _groups(title: str, groups: Sequence[Group]) -> Iterator[str]:
    if not groups:
        return
    number = sum(len(group.rules) for group in groups)
    yield f'<details class="group"><summary>{number} {title}</summary>\n<ul>'
    for group in groups:
        ids = ", ".join(f"<code>{html.escape(name)}</code>" for name in group.ids)
        yield f"<li>{html.escape(group.why)} ({len(group.rules)}): {ids}</li>"
    yield "</ul></details>"


def _matrix(report: ComplianceReport) -> Iterator[str]:
    yield '<h2>Revisions</h2>\n<div class="scroll"><table>\n<tr><th></th>'
    yield "".join(f'<th class="cell">{one.revision}</th>' for one in report.judgements)
    yield "<th></th></tr>"
    facts = [matrix_facts(one) for one in report.judgements]
    for name in facts[0]:
        cells = "".join(f'<td class="cell">{html.escape(one[name])}</td>' for one in facts)
        yield f"<tr><th>{name}</th>{cells}<td></td></tr>"
    for row in matrix_rows(report):
        yield _matrix_row(row)
    yield "</table></div>"


def _matrix_row(row: MatrixRow) -> str:
    cells = "".join(_cell(one) for one in row.cells)
    return f'<tr><td class="id">{safe(row.id, 40)}</td>{cells}<td>{safe(row.title)}</td></tr>'


def _cell(result: RuleResult | None) -> str:
    if result is None:
        return "<td></td>"
    sign, colour = _sign(result)
    word = OUTCOMES[result.outcome]
    return f'<td class="cell {colour}" title="{word}">{sign}</td>'


def _notes(report: ComplianceReport) -> Iterator[str]:
    notes = [*report.notes, *(note for one in report.judgements for note in one.notes)]
    captures = [f"capture: {path}" for one in report.judgements for path in one.captures]
    told = [*dict.fromkeys(notes), *captures][:NOTES_SHOWN]
    if told:
        yield "<h2>Notes</h2>\n<ul>"
        yield from (f"<li>{safe(note, LINE)}</li>" for note in told)
        yield "</ul>"
