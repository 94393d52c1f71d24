"""What stands behind the grade of a judged server: score, caps, sections, what was not judged."""

from __future__ import annotations

from collections.abc import Iterator

from mcptest.model.compliance import ComplianceReport, Judgement
from mcptest.report.compliance_facts import (
    coverage_in_words,
    inconclusive,
    letter_of,
    not_applicable,
    not_observed,
    scope_in_words,
    score_in_words,
    server_in_words,
    why_no_letter,
)
from mcptest.report.explored_text import why_revision
from mcptest.report.html.facts import Column, Section, Unjudged

IDS_NAMED = 400


def name_of_column(report: ComplianceReport, judgement: Judgement) -> str:
    return f"{judgement.server_name or report.server} {judgement.revision.value}"


def column_of(report: ComplianceReport, judgement: Judgement) -> Column:
    return Column(
        name=name_of_column(report, judgement),
        server=judgement.server_name or report.server,
        revision=judgement.revision.value,
        grade=letter_of(judgement.grade),
        graded=True,
        about=tuple(_about(report, judgement)),
        sections=tuple(_sections(judgement)),
        unjudged=tuple(_unjudged(judgement)),
    )


def _about(report: ComplianceReport, judgement: Judgement) -> Iterator[str]:
    yield " · ".join(filter(None, (report.server, server_in_words(judgement))))
    yield " · ".join(scope_in_words(judgement))
    if judgement.revision_reason:
        yield why_revision(judgement.revision, judgement.revision_reason)
    grade = judgement.grade
    if grade is not None and letter_of(grade):
        yield f"{score_in_words(grade)} · {coverage_in_words(judgement)}"
    else:
        yield f"{why_no_letter(judgement)} · {coverage_in_words(judgement)}"
    yield from (f"capped: {cap}" for cap in (grade.caps if grade is not None else ()))
    yield f"profile {judgement.profile.id}"


def _sections(judgement: Judgement) -> Iterator[Section]:
    for one in judgement.grade.sections if judgement.grade is not None else ():
        yield Section(one.section, one.grade, one.score, one.passed, one.failed, one.not_observed)


def _unjudged(judgement: Judgement) -> Iterator[Unjudged]:
    for group in not_observed(judgement):
        yield Unjudged("not_observed", group.why, group.ids[:IDS_NAMED])
    for group in inconclusive(judgement):
        yield Unjudged("inconclusive", group.why, group.ids[:IDS_NAMED])
    for group in not_applicable(judgement):
        yield Unjudged("not_applicable", group.why, group.ids[:IDS_NAMED])
