"""A judged server, `mcptest.compliance/1`: every rule with its proof, the grade and the gates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from mcptest.core.errors import ExitCode
from mcptest.core.judgement import GateResult, Judgement, RuleResult
from mcptest.core.results import RunReport, always
from mcptest.core.safe_text import in_one_line, show, show_lines
from mcptest.core.verdict import Outcome, Severity
from mcptest.report.compliance import facts
from mcptest.report.compliance.judged_results import (
    COMPLIANCE,
    last_exchange,
    result_of_gate,
    results_of_judgement,
)
from mcptest.report.compliance.text import compliance_lines, matrix_facts, matrix_rows
from mcptest.report.head import Report, stated_code
from mcptest.report.markdown import code, fenced, table_head, within
from mcptest.report.problems import NAME, Level, ReportedProblem, ReportedRule, facts_of
from mcptest.report.terminal import Style, counted, why_revision
from mcptest.suite.reading import Place

LEVELS: Mapping[Severity, Level] = {
    Severity.MUST: "error",
    Severity.SHOULD: "warning",
    Severity.MAY: "note",
}
_BASELINE = "baseline"
_FINDINGS = 10
_COUNTS_ALL_THE_SAME = ("new failure: ", "too often: ")


class ComplianceReport(
    Report, frozen=True, kw_only=True, omit_defaults=True, tag="mcptest.compliance/1"
):
    """Everything one `compliance run` found. Saved as JSON, it can be rendered again."""

    tool: str = always("")
    started: str = always("")
    server: str
    """How the server was named, with secrets masked."""
    duration_ms: int = always(0)
    exit_code: int = always(0)
    gates: tuple[GateResult, ...] = always(())
    judgements: tuple[Judgement, ...] = always(())
    notes: tuple[str, ...] = ()
    suite: str = ""
    """The file whose compliance block was judged, if one was."""
    strict: bool | None = None
    """A broken SHOULD fails as well. None, in a file that does not say: as the code has it."""

    @property
    def code(self) -> ExitCode:
        """`--strict` and known failures decided when it was judged: the code says how."""
        stated = stated_code(self.exit_code)
        if stated is ExitCode.OK and not all(gate.passed for gate in self.gates):
            return ExitCode.FAILED
        judged = any(one.observed for one in self.judgements)
        only_gates = bool(self.gates) and not self.judgements
        if stated is ExitCode.OK and not (judged or only_gates):
            return ExitCode.NOTHING_MATCHED
        return stated

    @property
    def interrupted(self) -> bool:
        return self.exit_code == ExitCode.INTERRUPTED

    def as_run(self) -> RunReport:
        if self.strict is None:  # one that failed without a broken MUST or gate was strict
            mild = replace(self, strict=False).as_run()
            strict = self.code is ExitCode.FAILED and not mild.failed
            return replace(self, strict=True).as_run() if strict else mild
        place = Place(self.suite)
        around: dict[str, Any] = {"strict": self.strict, "server": self.server}
        results = [
            result
            for one in self.judgements
            for result in results_of_judgement(one, place, lane=self._lane(one), **around)
        ]
        return self.run_of((*results, *(result_of_gate(gate, place) for gate in self.gates)))

    def _lane(self, judgement: Judgement) -> str:
        several = len(self.judgements) > 1
        return f"{COMPLIANCE} {judgement.revision.label}" if several else COMPLIANCE

    def lines(self, style: Style) -> Iterator[str]:
        if style.quiet:
            yield from filter(None, [self.in_words()])
        else:
            yield from compliance_lines(self, style)

    def in_words(self) -> str:
        """The grade, what is broken, the gates: a line for each."""
        lines = []
        for judgement in self.judgements:
            broken = [one.id for one in judgement.failures if self._counts(one, judgement)]
            others = [one.id for one in judgement.failures if one.id not in broken]
            ids = f": {', '.join(broken)}" if broken else ""
            kept = sum(cause.kept_from_judging for cause in judgement.causes)
            parts = [
                facts.letter_of(judgement.grade),
                f"{counted(kept, 'rule')} could not be judged" if kept else "",
                f"{counted(len(broken), 'rule')} failed{ids}" if broken or not kept else "",
                f"{counted(len(others), 'warning')}: {', '.join(others)}" if others else "",
            ]
            lines.append(f"{judgement.revision.label}: {', '.join(filter(None, parts))}")
            lines += (
                f"{show(cause.id, 60)}: {in_one_line(cause.message, 300)}"
                for cause in judgement.causes
                if cause.kept_from_judging
            )
        return "\n".join((*lines, *map(facts.gate_line, self.gates)))

    def verdict_in_words(self) -> str:
        """What the exit code says, with its reasons."""
        if self.interrupted:
            return "interrupted: not every rule was judged"
        if self.code is ExitCode.NOTHING_MATCHED:
            return "nothing was judged"
        if self.code is ExitCode.OK:
            return "passed"
        reasons = list(self._reasons())
        return f"failed: {', '.join(reasons)}" if reasons else "failed: not every rule was judged"

    def _counts(self, rule: RuleResult, judgement: Judgement) -> bool:
        """Whether a failing rule fails the run."""
        strict = self.strict
        if strict is None:  # as the exit code has it
            strict = self.code is ExitCode.FAILED and not any(self._other_reasons())
        grave = {Severity.MUST, Severity.SHOULD} if strict else {Severity.MUST}
        return rule.severity in grave and rule.id not in excused_in(judgement, self)

    def _reasons(self) -> Iterator[str]:
        """Why it failed."""
        for severity, option in ((Severity.MUST, ""), (Severity.SHOULD, " (--strict)")):
            rules = {
                rule.id
                for one in self.judgements
                for rule in one.failures
                if rule.severity is severity and self._counts(rule, one)
            }
            if rules:
                yield f"{counted(len(rules), f'{severity.value} rule')} failed{option}"
        yield from self._other_reasons(besides_rules=True)

    def _other_reasons(self, *, besides_rules: bool = False) -> Iterator[str]:
        """Why it failed apart from broken SHOULDs; `besides_rules`: apart from any rule."""
        if not besides_rules and any(one.broken_musts for one in self.judgements):
            yield "a MUST rule failed"
        kept = sum(
            cause.kept_from_judging
            for one in self.judgements
            for cause in one.causes
            if cause.id not in excused_in(one, self)
        )
        yield from [f"{counted(kept, 'rule')} could not be judged"] if kept else []
        red = sum(not gate.passed for gate in self.gates)
        yield from [f"{counted(red, 'gate')} failed"] if red else []

    def markdown_lines(self) -> Iterator[str]:
        """As GitHub-flavoured Markdown, small enough for a step summary.

        What may be the peer's becomes inline code without meaning to Markdown, or stands in a fence
        that is longer than any in it.
        """
        grades = [facts.letter_of(one.grade) for one in self.judgements]
        known = [f"grade {_letter(letter)}" for letter in dict.fromkeys(grades) if letter]
        parts = [*(known if len(known) == 1 else ()), self.verdict_in_words()]
        yield from (f"### mcptest compliance: {', '.join(parts)}", "")
        yield from _facts(self)
        yield from _gates(self.gates)
        several = len(self.judgements) > 1
        if several:
            yield from _matrix(self)
            yield from _failing(
                (result, "fails in " + ", ".join(str(one.revision) for one in where))
                for result, where in facts.newest_failures(self)
            )
        for one in self.judgements:
            yield from (f"#### {one.revision}", "") if several else ()
            if one.revision_reason:
                yield from (code(why_revision(one.revision, one.revision_reason), 300), "")
            yield from _causes(one)
            yield from () if several else _failing((rule, "") for rule in facts.failures_first(one))
            yield from _sections(one)
            yield from _groups(
                "Not observed, by what is needed to observe them", facts.not_observed(one)
            )
            yield from _groups("Inconclusive, by cause", facts.inconclusive(one))
        for note in [*self.notes, *(n for one in self.judgements for n in one.notes)][:20]:
            yield from (f"**Note:** {code(note, 500)}", "")

    def headline(self) -> str:
        return ", ".join(
            f"{one.revision.label} grade {facts.letter_of(one.grade)}"
            for one in self.judgements
            if one.grade is not None
        )

    def run_and_excuses(self) -> tuple[RunReport, Mapping[str, str]]:
        return self.as_run(), {
            f"{self._lane(one)} {name}": why
            for one in self.judgements
            for name, why in excused_in(one, self).items()
        }

    def found_problems(self, run: RunReport) -> Iterator[ReportedProblem]:
        rules = {
            result.id: ReportedRule(
                id=show(result.id, 60) or "(no id)",
                title=show(result.title, NAME),
                text=show(result.requirement, 2_000),
                help=show(result.fix, 2_000),
                url=result.url,
                level=LEVELS[result.severity],
                tags=(show(result.section, 60),) if result.section else (),
            )
            for judgement in self.judgements
            for result in judgement.failures
        }
        for judgement in self.judgements:
            yield from self._problems_in(judgement, rules)
        for gate in self.gates:
            if not gate.passed:
                name = show(gate.name, 60)
                rule = ReportedRule(f"gate/{name}", f"the gate {name} holds")
                lines = [show(line, 600) for line in (gate.detail, *gate.lines[:20]) if line]
                said = "\n".join(lines) or f"{name} failed"
                yield ReportedProblem(rule, said, subject=show(self.server, NAME), file=self.suite)

    def _problems_in(
        self, judgement: Judgement, rules: Mapping[str, ReportedRule]
    ) -> Iterator[ReportedProblem]:
        subject = f"{show(self.server, NAME)} ({judgement.revision.label})"
        excused = excused_in(judgement, self)
        for cause in judgement.causes:
            if cause.kept_from_judging:
                hint = f"\n{show(cause.hint, 600)}" if cause.hint else ""
                kept = f"{counted(cause.kept_from_judging, 'rule')} could not be judged"
                yield ReportedProblem(
                    ReportedRule("judging/complete", "every rule can be judged"),
                    f"{in_one_line(cause.message, 600)}; {kept}{hint}",
                    subject=subject,
                    file=self.suite,
                    excused=excused.get(cause.id, ""),
                    grave=True,
                )
        for result in judgement.failures:
            proof = last_exchange(result)
            yield ReportedProblem(
                rules[result.id],
                _findings_in_words(result),
                LEVELS[result.severity],
                subject=subject,
                file=self.suite,
                page=result.url,
                excused=excused.get(result.id, ""),
                facts=facts_of(repeat=proof.repeat, request=proof.request, response=proof.response),
            )


def excused_in(judgement: Judgement, report: ComplianceReport) -> dict[str, str]:
    """Rules that fail, and causes, that do not count since a baseline says so; with the reason."""
    named = {_BASELINE, f"{_BASELINE} {judgement.revision.label}"}
    gate = next((gate for gate in report.gates if gate.name in named), None)
    if gate is None:
        return {}
    excused = []
    for one in judgement.failures:
        marks = tuple(f"{mark}{show(one.id, 60)} " for mark in _COUNTS_ALL_THE_SAME)
        if not any(line.startswith(marks) for line in gate.lines):
            excused.append(one.id)
    excused += [cause.id for cause in judgement.causes if gate.passed]
    return dict.fromkeys(excused, "listed in the baseline")


def _findings_in_words(result: RuleResult) -> str:
    lines = [f"{show(result.title, NAME)} ({result.severity.value})"]
    for finding in result.findings[:_FINDINGS]:
        lines.append(show(finding.message, 1_000))
        lines += [
            f"  {label}: {show(text, 500)}"
            for label, text in (("expected", finding.expected), ("actual", finding.actual))
            if text is not None
        ]
    more = len(result.findings) - _FINDINGS
    return "\n".join([*lines, f"(and {more} more)"] if more > 0 else lines)


# -- Markdown ------------------------------------------------------------------------------

ROOM = 150_000
"""Characters for each of the parts that can grow; GitHub refuses a summary beyond 1 MiB."""
_CELLS = {
    Outcome.PASS: "✅",
    Outcome.INCONCLUSIVE: "❔",
    Outcome.NOT_OBSERVED: "–",  # noqa: RUF001 - a dash is meant
    Outcome.NOT_APPLICABLE: "–",  # noqa: RUF001 - a dash is meant
}


def _letter(letter: str) -> str:
    """A letter that we gave stands as it is; anything else is code."""
    ours = letter.strip("+-") in {"A", "B", "C", "D", "E", "F"}
    return letter if ours else code(letter, 4)


def _facts(report: ComplianceReport) -> Iterator[str]:
    yield from table_head("| Server | Revision | Transport | Grade | Score | Coverage | Profile |")
    for one in report.judgements:
        letter = facts.letter_of(one.grade)
        named = facts.server_in_words(one)
        server = code(report.server) + (f"<br>{code(named)}" if named else "")
        mark = facts.score_in_words(one.grade) if one.grade is not None and letter else ""
        cells = [server, str(one.revision), code(one.transport, 40)]
        cells += [f"**{_letter(letter)}**" if letter else facts.why_no_letter(one), mark]
        cells += [facts.coverage_in_words(one), code(one.profile.id)]
        yield f"| {' | '.join(cells)} |"
    yield ""
    caps = [cap for one in report.judgements for cap in facts.caps_in_words(one.grade)]
    for cap in dict.fromkeys(caps):
        yield from (code(cap, 300), "")
    for one in report.judgements:
        shown = [f"{number} {word}" for number, word, _ in facts.tally(one) if number]
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
    for cause in judgement.causes[: facts.CAUSES_SHOWN]:
        kept = f": {counted(cause.kept_from_judging, 'rule')} could not be judged"
        yield f"**Root cause** {code(cause.id, 40)}{kept if cause.kept_from_judging else ''}"
        yield ""
        exchanges = facts.exchanges_of(cause.evidence, facts.BRIEF)
        pairs = [*exchanges, ("fix", show(cause.hint, 600))]
        lines = [*show_lines(cause.message, 600).split("\n"), *_labelled(pairs)]
        yield from (*fenced(lines), "")


def _labelled(pairs: Iterable[tuple[str, str]]) -> list[str]:
    return [f"{label}: {text}" if label else text for label, text in pairs if text]


# -- failing rules -------------------------------------------------------------------------


def _failing(rules: Iterable[tuple[RuleResult, str]]) -> Iterator[str]:
    failed = list(rules)
    if not failed:
        return
    yield from table_head("| | Rule | | Requirement |")
    rows = (
        f"| {_sign(one)} | {code(one.id, 40)} | {one.severity.value} | {code(one.title)} |"
        for one, _ in failed
    )
    yield from within(rows, ROOM, len(failed), "| | and {} more | | |")
    yield from ("", "<details><summary>Evidence and fixes</summary>", "")
    blocks = (_block(result, where) for result, where in failed)
    yield from within(blocks, ROOM, len(failed), "and {} more\n")
    yield from ("</details>", "")


def _sign(result: RuleResult | None) -> str:
    if result is None:
        return " "
    if result.failed:
        return "❌" if facts.is_broken(result) else "⚠️"
    return _CELLS[result.outcome]


def _block(result: RuleResult, where: str) -> str:
    lines = _labelled([("", where), *facts.proof_of(result, facts.BRIEF)])
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
        f"| {facts.score(one.score) if one.passed + one.failed else ''} "
        f"| {one.passed} | {one.failed} | {one.not_observed} |"
        for one in sections
    )
    yield from within(rows, ROOM, len(sections), "| and {} more | | | | | |")
    yield from ("", "</details>", "")


def _groups(title: str, groups: Sequence[facts.Group]) -> Iterator[str]:
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
    columns = [matrix_facts(one) for one in report.judgements]
    for name in columns[0]:
        cells = (_letter(one[name]) if name == "grade" else one[name] for one in columns)
        yield f"| {name} | {' | '.join(cells)} | |"
    lines = (
        f"| {code(row.id, 40)} | {' | '.join(map(_sign, row.cells))} | {code(row.title)} |"
        for row in rows
    )
    yield from within(lines, ROOM, len(rows), "| and {} more |" + " |" * (len(columns) + 1))
    yield ""
