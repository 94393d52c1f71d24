"""What the linter found. Its JSON has the members that mcp-assert prints, and ours."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import ClassVar

from mcptest.core.results import Count, FailedCheck, RunReport, Status, TestResult, derive
from mcptest.core.safe_text import show
from mcptest.report import markdown
from mcptest.report.head import ReportHead
from mcptest.report.problems import NAME, Level, ReportedProblem, ReportedRule
from mcptest.report.terminal import Style, counted
from mcptest.rules.lint.finding import (
    OWN_PROFILE,
    LintFinding,
    LintRule,
    LintSeverity,
    LintSuggestion,
)
from mcptest.rules.lint.linter import rules_of_profile


class LintReport(ReportHead, frozen=True, kw_only=True, tag="mcptest.lint/1"):
    """Everything that was found about one server, or one file."""

    title: ClassVar[str] = "Lint"
    tools: Count = 0
    prompts: Count = 0
    resources: Count = 0
    templates: Count = 0
    tokens: Count = 0
    findings: tuple[LintFinding, ...] = ()
    errors: Count = 0
    warnings: Count = 0
    noted: Count = 0
    profile: str = OWN_PROFILE
    strict: bool = False
    threshold: int | None = None
    problems: Mapping[str, str] = {}
    """Lists that could not be read, by their method."""

    def __post_init__(self) -> None:
        ReportHead.__post_init__(self)
        counts = Counter(one.severity for one in self.findings)
        derive(
            self,
            errors=counts[LintSeverity.ERROR],
            warnings=counts[LintSeverity.WARNING],
            noted=counts[LintSeverity.NOTE],
        )
        most = 0 if self.strict else self.threshold
        too_many = most is not None and len(self.serious) > most
        derive(self, failed=bool(self.problems or self.interrupted or self.errors) or too_many)

    @property
    def counts(self) -> dict[str, int]:
        """How many items of each kind were looked at."""
        return {name: getattr(self, name) for name in _KINDS}

    def of(self, severity: LintSeverity) -> Iterator[LintFinding]:
        return (one for one in self.findings if one.severity is severity)

    @property
    def serious(self) -> tuple[LintFinding, ...]:
        """Errors and warnings: what is worth acting on."""
        return tuple(one for one in self.findings if one.severity is not LintSeverity.NOTE)

    @property
    def looked_at(self) -> bool:
        return bool(any(self.counts.values()) or self.problems)

    # -- views ---------------------------------------------------------------------------------

    def lines(self, style: Style, *, fix: bool = False, notes: bool = False) -> Iterator[str]:
        """`notes`: list them too, instead of counting them."""
        yield style.paint(self.heading(), "bold")
        findings = self.findings if notes else self.serious
        shown = gravest(findings)
        for (kind, item), those in groupby(shown, key=lambda one: (one.kind, one.item)):
            yield ""
            name = show(item, _NAME)
            named = name if kind in ("tool", "server") else f"{kind} {name}"
            yield style.paint(named, "bold")
            for one in those:
                yield f"  {sign_of(one.severity, style)} {one.code}  {show(one.message, 400)}"
                if style.verbose and one.field:
                    yield style.paint(f"           at {show(one.field, 200)}", "dim")
                if fix:
                    yield style.paint(f"           {fix_in_words(one)}", "cyan")
        yield ""
        if len(findings) > SHOWN:
            left_out = self.errors - sum(one.severity is LintSeverity.ERROR for one in shown)
            errors = f", {left_out} of them errors" if left_out else ""
            yield f"… and {len(findings) - SHOWN} more findings{errors}: --json has them all"
        yield from self.closing_lines(style)
        if len(findings) < len(self.findings):
            yield f"--verbose lists the notes, too ({codes_in_words(self.of(LintSeverity.NOTE))})"
        if findings and not fix:
            yield "--fix shows a change for each finding, mcptest lint --list explains the codes"

    def heading(self) -> str:
        version = f" {show(self.server_version, 40)}" if self.server_version else ""
        parts = [
            counted(count, _KINDS[kind])
            for kind, count in self.counts.items()
            if count or kind == "tools"
        ]
        listed = f"{', '.join(parts)}, about {self.tokens} tokens of tools"
        return f"{show(self.server_name, 80)}{version}: {listed}"

    def in_words(self) -> str:
        return f"{self.heading()}: {self.totals()}"

    def totals(self) -> str:
        noted = counted(self.noted, "note") if self.noted else ""
        if not self.serious and not self.problems:
            return f"no errors, no warnings, {noted}" if noted else "no findings"
        codes = codes_in_words(self.serious)
        early = "interrupted, " if self.interrupted else ""
        total = f"{early}{counted(self.errors, 'error')}, {counted(self.warnings, 'warning')}"
        if self.problems:
            total += f", {counted(len(self.problems), 'list')} not read"
        if self.threshold is not None and len(self.serious) > self.threshold:
            total += f", more than the {self.threshold} allowed"
        total = f"{total} ({codes})" if codes else total
        if self.strict and self.warnings and not self.errors:
            total += ", failed with --strict"
        return f"{total}, {noted}" if noted else total

    @property
    def unread(self) -> Mapping[str, str]:
        return self.problems

    def found_markdown(self) -> Iterator[str]:
        if self.serious:
            yield from ("| | code | item | finding | fix |", "|---|---|---|---|---|")
        for one in gravest(self.serious):
            cells = (one.severity.value, one.code, one.item, one.message, fix_in_words(one))
            yield markdown.row(*cells)
        if len(self.serious) > SHOWN:
            yield from ("", f"{len(self.serious) - SHOWN} more findings are in the JSON report.")

    def as_run(self) -> RunReport:
        """Items without a finding are counted in one test, so that an empty report is none."""
        gathered: dict[tuple[str, str, str], list[LintFinding]] = {}
        for one in self.serious:
            gathered.setdefault((one.kind, one.item, one.code), []).append(one)
        results = tuple(_result(findings, strict=self.strict) for findings in gathered.values())
        clean = TestResult("everything else that was checked", Status.PASS)
        return self.run_of((*self.unread_results(), *results, clean))

    def found_problems(self, run: RunReport) -> Iterator[ReportedProblem]:
        file = self.server if not self.transport else ""  # what was linted is no server then
        unread = ReportedRule("lint/unread", "every list of the server can be read")
        for method, reason in self.problems.items():
            said = f"{show(method, 60)}: {show(reason, 1_000)}"
            yield ReportedProblem(unread, said, file=file, grave=True)
        rules = {rule.code: _reported(rule) for rule in rules_of_profile(self.profile)}
        for finding in self.serious:
            item = f"{show(finding.kind, 40)}/{show(finding.item, NAME)}"
            member = f" ({show(finding.field, 100)})" if finding.field else ""
            yield ReportedProblem(
                rules[finding.code],
                f"{item}{member}: {show(finding.message, 1_000)}",
                _LEVELS[finding.severity],
                subject=item,
                file=file,
            )


SHOWN = 1_000
"""Findings beyond are counted; --json holds them all."""
_NAME = 120
_CODES = 8
_KINDS = {"tools": "tool", "prompts": "prompt", "resources": "resource", "templates": "template"}


def gravest(findings: Sequence[LintFinding]) -> Sequence[LintFinding]:
    """As many as are shown, in their order: a note never takes the place of an error."""
    if len(findings) <= SHOWN:
        return findings
    grades = list(LintSeverity)
    places = sorted(range(len(findings)), key=lambda at: grades.index(findings[at].severity))
    return [findings[at] for at in sorted(places[:SHOWN])]


def sign_of(severity: LintSeverity, style: Style) -> str:
    signs = {LintSeverity.ERROR: style.cross, LintSeverity.WARNING: style.warning}
    return signs.get(severity, style.dash)


def fix_in_words(finding: LintFinding) -> str:
    if finding.suggestion is None:
        return finding.fix
    return f"{finding.fix} {suggestion_in_words(finding.suggestion)}"


def suggestion_in_words(suggestion: LintSuggestion) -> str:
    value = json.dumps(suggestion.value, ensure_ascii=False)
    return f"Set {show(suggestion.pointer, 200)} to {show(value, 400)}"


def codes_in_words(findings: Iterable[LintFinding]) -> str:
    """How often each code, the most frequent first."""
    counts = Counter(one.code for one in findings)
    more = ", …" if len(counts) > _CODES else ""
    return ", ".join(f"{count} {code}" for code, count in counts.most_common(_CODES)) + more


def rule_lines(rules: list[LintRule], style: Style) -> Iterator[str]:
    for rule in rules:
        yield f"{style.paint(rule.code, 'bold')}  {rule.severity.value:<7}  {rule.title}"
        yield f"      {rule.why}"
        yield f"      {rule.fix}"


def _result(findings: list[LintFinding], *, strict: bool) -> TestResult:
    first = findings[0]
    bad = strict or first.severity is LintSeverity.ERROR
    text = "; ".join(one.message for one in findings)
    name = f"{first.kind} {first.item} {first.code}"
    if not bad:
        return TestResult(name, Status.PASS, note=text)
    failures = tuple(FailedCheck(one.code, one.message) for one in findings)
    return TestResult(name, Status.FAIL, text, kind="lint", failures=failures)


_LEVELS: dict[LintSeverity, Level] = {
    LintSeverity.ERROR: "error",
    LintSeverity.WARNING: "warning",
    LintSeverity.NOTE: "note",
}


def _reported(rule: LintRule) -> ReportedRule:
    return ReportedRule(
        id=rule.code,
        title=rule.title,
        text=rule.why,
        help=f"{rule.fix}\nSee `mcptest explain {rule.code}`.",
        level=_LEVELS[rule.severity],
        tags=(rule.scope,),
    )
