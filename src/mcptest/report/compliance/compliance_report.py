"""A judged server, `mcptest.compliance/1`: every rule with its proof, the grade and the gates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mcptest.core.errors import ExitCode
from mcptest.core.judgement import GateResult, Judgement, RuleResult
from mcptest.core.results import RunReport, always
from mcptest.core.safe_text import in_one_line, show
from mcptest.core.verdict import Severity
from mcptest.report.compliance.facts import counted, gate_line, letter_of
from mcptest.report.compliance.judged_results import (
    COMPLIANCE,
    last_exchange,
    result_of_gate,
    results_of_judgement,
)
from mcptest.report.compliance.markdown_page import markdown_lines
from mcptest.report.compliance.text import compliance_lines
from mcptest.report.head import Report, stated_code
from mcptest.report.problems import NAME, Level, ReportedProblem, ReportedRule, facts_of
from mcptest.report.terminal import Style
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

    @property
    def code(self) -> ExitCode:
        """`--strict` and known failures decided when it was judged: the code says how."""
        stated = stated_code(self.exit_code)
        if stated is ExitCode.OK and not all(gate.passed for gate in self.gates):
            return ExitCode.FAILED
        if stated is ExitCode.OK and not any(one.observed for one in self.judgements):
            return ExitCode.NOTHING_MATCHED
        return stated

    @property
    def interrupted(self) -> bool:
        return self.exit_code == ExitCode.INTERRUPTED

    def as_run(self, file: str = "", *, strict: bool | None = None) -> RunReport:
        """`file` is the suite that asked for it, if one did.

        A report that failed without a broken MUST or gate was judged with --strict.
        """
        if strict is None:
            mild = self.as_run(file, strict=False)
            judged_strictly = self.code is ExitCode.FAILED and not mild.failed
            return self.as_run(file, strict=True) if judged_strictly else mild
        results = [
            result
            for one in self.judgements
            for result in results_of_judgement(
                one, Place(file), lane=self._lane(one), strict=strict, server=self.server
            )
        ]
        results += [result_of_gate(gate, Place(file)) for gate in self.gates]
        return self.run_of(results)

    def _lane(self, judgement: Judgement) -> str:
        several = len(self.judgements) > 1
        return f"{COMPLIANCE} {judgement.revision.label}" if several else COMPLIANCE

    def lines(
        self, style: Style, *, verbose: bool = False, quiet: bool = False, width: int = 100
    ) -> Iterator[str]:
        if quiet:
            return self._brief_lines()
        return compliance_lines(self, style, verbose=verbose, width=width)

    def _brief_lines(self) -> Iterator[str]:
        """The grade, what is broken, the gates."""
        for judgement in self.judgements:
            letter = f"{letter_of(judgement.grade)}, " if judgement.grade is not None else ""
            broken = [result.id for result in judgement.failures]
            ids = f": {', '.join(broken)}" if broken else ""
            yield f"{judgement.revision.label}: {letter}{counted(len(broken), 'rule')} failed{ids}"
            for cause in filter(lambda one: one.kept_from_judging, judgement.causes):
                yield f"{show(cause.id, 60)}: {in_one_line(cause.message, 300)}"
        yield from map(gate_line, self.gates)

    def as_markdown(self) -> str:
        return "".join(f"{line}\n" for line in markdown_lines(self))

    def headline(self) -> str:
        return ", ".join(
            f"{one.revision.label} grade {letter_of(one.grade)}"
            for one in self.judgements
            if one.grade is not None
        )

    def run_and_excuses(
        self, file: str = "", *, strict: bool | None = None
    ) -> tuple[RunReport, Mapping[str, str]]:
        return self.as_run(file, strict=strict), {
            f"{self._lane(one)} {name}": why
            for one in self.judgements
            for name, why in excused_in(one, self).items()
        }

    def found_problems(self, run: RunReport, file: str = "") -> Iterator[ReportedProblem]:
        failures = [result for one in self.judgements for result in one.failures]
        rules = {result.id: _rule(result) for result in failures}
        for judgement in self.judgements:
            yield from self._problems_in(judgement, rules, file)
        for gate in self.gates:
            if not gate.passed:
                name = show(gate.name, 60)
                rule = ReportedRule(f"gate/{name}", f"the gate {name} holds")
                lines = [show(line, 600) for line in (gate.detail, *gate.lines[:20]) if line]
                said = "\n".join(lines) or f"{name} failed"
                yield ReportedProblem(rule, said, subject=show(self.server, NAME), file=file)

    def _problems_in(
        self, judgement: Judgement, rules: Mapping[str, ReportedRule], file: str
    ) -> Iterator[ReportedProblem]:
        subject = f"{show(self.server, NAME)} ({judgement.revision.label})"
        excused = excused_in(judgement, self)
        for cause in judgement.causes:
            if cause.kept_from_judging:
                hint = f"\n{show(cause.hint, 600)}" if cause.hint else ""
                kept = f"{cause.kept_from_judging} rules could not be judged"
                yield ReportedProblem(
                    ReportedRule("judging/complete", "every rule can be judged"),
                    f"{in_one_line(cause.message, 600)}; {kept}{hint}",
                    subject=subject,
                    file=file,
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
                file=file,
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
    excused = [one.id for one in judgement.failures if not _counts(one.id, gate.lines)]
    excused += [cause.id for cause in judgement.causes if gate.passed]
    return dict.fromkeys(excused, "the baseline lists it")


def _counts(rule: str, lines: tuple[str, ...]) -> bool:
    marks = tuple(f"{mark}{show(rule, 60)} " for mark in _COUNTS_ALL_THE_SAME)
    return any(line.startswith(marks) for line in lines)


def _rule(result: RuleResult) -> ReportedRule:
    return ReportedRule(
        id=show(result.id, 60) or "(no id)",
        title=show(result.title, NAME),
        text=show(result.requirement, 2_000),
        help=show(result.fix, 2_000),
        url=result.url,
        level=LEVELS[result.severity],
        tags=(show(result.section, 60),) if result.section else (),
    )


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
