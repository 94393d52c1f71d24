"""A judged server as GitHub-flavoured Markdown, small enough for a step summary.

What may be the peer's becomes inline code without meaning to Markdown, or stands in a fence that
is longer than any in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from mcptest.core.judgement import GateResult, Judgement, RuleResult
from mcptest.core.safe_text import show, show_lines
from mcptest.core.verdict import Outcome
from mcptest.report.compliance.facts import (
    BRIEF,
    CAUSES_SHOWN,
    Group,
    counted,
    coverage_in_words,
    exchanges_of,
    failures_first,
    inconclusive,
    is_broken,
    letter_of,
    newest_failures,
    not_observed,
    proof_of,
    score,
    score_in_words,
    server_in_words,
    tally,
    why_no_letter,
)
from mcptest.report.compliance.text import matrix_facts, matrix_rows
from mcptest.report.markdown import code, fenced, table_head, within
from mcptest.report.terminal import why_revision

if TYPE_CHECKING:
    from mcptest.report.compliance.compliance_report import ComplianceReport

ROOM = 150_000
"""Characters for each of the parts that can grow; GitHub refuses a summary beyond 1 MiB."""
_CELLS = {
    Outcome.PASS: "✅",
    Outcome.INCONCLUSIVE: "❔",
    Outcome.NOT_OBSERVED: "–",  # noqa: RUF001 - a dash is meant
    Outcome.NOT_APPLICABLE: "–",  # noqa: RUF001 - a dash is meant
}


def markdown_lines(report: ComplianceReport) -> Iterator[str]:
    yield f"### mcptest compliance: {_headline(report)}"
    yield ""
    yield from _facts(report)
    yield from _gates(report.gates)
    if len(report.judgements) > 1:
        yield from _matrix(report)
        yield from _failing(
            (result, "fails in " + ", ".join(str(one.revision) for one in where))
            for result, where in newest_failures(report)
        )
    for judgement in report.judgements:
        several = len(report.judgements) > 1
        yield from [f"#### {judgement.revision}", ""] if several else []
        if judgement.revision_reason:
            yield from (code(why_revision(judgement.revision, judgement.revision_reason), 300), "")
        yield from _causes(judgement)
        yield from [] if several else _failing((one, "") for one in failures_first(judgement))
        yield from _sections(judgement)
        yield from _groups("Not observed, by what would unlock them", not_observed(judgement))
        yield from _groups("Inconclusive, by cause", inconclusive(judgement))
    for note in [*report.notes, *(n for one in report.judgements for n in one.notes)][:20]:
        yield from (f"**Note:** {code(note, 500)}", "")


def _headline(report: ComplianceReport) -> str:
    grades = [letter_of(one.grade) for one in report.judgements]
    known = [f"grade {_letter(letter)}" for letter in dict.fromkeys(grades) if letter]
    broken = len({rule.id for one in report.judgements for rule in one.failures if is_broken(rule)})
    red = sum(not gate.passed for gate in report.gates)
    parts = known if len(known) == 1 else []
    parts.append(f"{counted(broken, 'MUST rule')} broken" if broken else "no MUST broken")
    parts += [f"{counted(red, 'gate')} red"] if red else []
    return ", ".join(parts)


def _letter(letter: str) -> str:
    """A letter that we gave stands as it is; anything else is code."""
    ours = letter.strip("+-") in {"A", "B", "C", "D", "E", "F"}
    return letter if ours else code(letter, 4)


def _facts(report: ComplianceReport) -> Iterator[str]:
    yield from table_head("| Server | Revision | Transport | Grade | Score | Coverage | Profile |")
    for one in report.judgements:
        letter = letter_of(one.grade)
        named = server_in_words(one)
        server = code(report.server) + (f"<br>{code(named)}" if named else "")
        mark = score_in_words(one.grade) if one.grade is not None and letter else ""
        cells = [server, str(one.revision), code(one.transport, 40)]
        cells += [f"**{_letter(letter)}**" if letter else why_no_letter(one), mark]
        cells += [coverage_in_words(one), code(one.profile.id)]
        yield f"| {' | '.join(cells)} |"
    yield ""
    caps = [cap for one in report.judgements if one.grade is not None for cap in one.grade.caps]
    for cap in dict.fromkeys(caps):
        yield from (f"Capped: {code(cap, 300)}", "")
    for one in report.judgements:
        shown = [f"{number} {word}" for number, word, _ in tally(one) if number]
        yield from (f"{one.revision}: {', '.join(shown) or 'no rules'}", "")


def _gates(gates: Sequence[GateResult]) -> Iterator[str]:
    if not gates:
        return
    yield from table_head("| Gate | | |")
    for gate in gates:
        told = "<br>".join(code(text, 400) for text in (gate.detail, *gate.lines[:20]) if text)
        yield f"| {code(gate.name, 60)} | {'✅ PASS' if gate.passed else '❌ FAIL'} | {told} |"
    yield ""


def _causes(judgement: Judgement) -> Iterator[str]:
    for cause in judgement.causes[:CAUSES_SHOWN]:
        kept = f", which kept {counted(cause.kept_from_judging, 'rule')} from being judged"
        yield f"**Root cause** {code(cause.id, 40)}{kept if cause.kept_from_judging else ''}"
        yield ""
        lines = [
            *show_lines(cause.message, 600).split("\n"),
            *_labelled(exchanges_of(cause.evidence, BRIEF)),
        ]
        lines += [f"fix: {show(cause.hint, 600)}"] if cause.hint else []
        yield from (*fenced(lines), "")


def _labelled(pairs: Iterable[tuple[str, str]]) -> list[str]:
    return [f"{label}: {text}" if label else text for label, text in pairs]


# -- failing rules -------------------------------------------------------------------------


def _failing(rules: Iterable[tuple[RuleResult, str]]) -> Iterator[str]:
    failed = list(rules)
    if not failed:
        return
    yield from table_head("| | Rule | | What must hold |")
    rows = (
        f"| {_sign(one)} | {code(one.id, 40)} | {one.severity.value} | {code(one.title)} |"
        for one, _ in failed
    )
    yield from within(rows, ROOM, len(failed), "| | and {} more | | |")
    yield from ("", "<details><summary>Proof, and what to do</summary>", "")
    blocks = (_block(result, where) for result, where in failed)
    yield from within(blocks, ROOM, len(failed), "and {} more\n")
    yield from ("</details>", "")


def _sign(result: RuleResult | None) -> str:
    if result is None:
        return " "
    if result.failed:
        return "❌" if is_broken(result) else "⚠️"
    return _CELLS[result.outcome]


def _block(result: RuleResult, where: str) -> str:
    lines = [where] if where else []
    lines += _labelled(proof_of(result, BRIEF))
    title = f"**{code(result.id, 40)}** {result.severity.value} {code(result.title)}"
    return "\n".join([title, "", *fenced(lines), ""])


# -- sections, coverage, matrix ------------------------------------------------------------


def _sections(judgement: Judgement) -> Iterator[str]:
    sections = judgement.grade.sections if judgement.grade is not None else ()
    if not sections:
        return
    yield from ("<details><summary>Sections</summary>", "")
    yield from table_head("| Section | Grade | Score | Passed | Failed | Not observed |")
    rows = (
        f"| {code(one.section, 60)} | {_letter(show(one.grade, 4)) if one.grade else ''} "
        f"| {score(one.score) if one.passed + one.failed else ''} "
        f"| {one.passed} | {one.failed} | {one.not_observed} |"
        for one in sections
    )
    yield from within(rows, ROOM, len(sections), "| and {} more | | | | | |")
    yield from ("", "</details>", "")


def _groups(title: str, groups: Sequence[Group]) -> Iterator[str]:
    if not groups:
        return
    number = sum(len(group.rules) for group in groups)
    yield from (f"<details><summary>{title} ({number})</summary>", "")
    rows = (f"- {code(group.why, 400)}: {', '.join(map(code, group.ids))}" for group in groups)
    yield from within(rows, ROOM // 2, len(groups), "- and {} more")
    yield from ("", "</details>", "")


def _matrix(report: ComplianceReport) -> Iterator[str]:
    rows = matrix_rows(report)
    yield from table_head(f"| | {' | '.join(str(one.revision) for one in report.judgements)} | |")
    facts = [matrix_facts(one) for one in report.judgements]
    for name in facts[0]:
        cells = (_letter(one[name]) if name == "grade" else one[name] for one in facts)
        yield f"| {name} | {' | '.join(cells)} | |"
    lines = (
        f"| {code(row.id, 40)} | {' | '.join(map(_sign, row.cells))} | {code(row.title)} |"
        for row in rows
    )
    yield from within(lines, ROOM, len(rows), "| and {} more |" + " |" * (len(facts) + 1))
    yield ""
