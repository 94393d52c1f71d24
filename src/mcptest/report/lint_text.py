"""What the linter found, for a terminal: item by item, with the change that would help."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby

from mcptest.explore.lint.finding import Finding, LintReport, LintRule, Severity, Suggestion
from mcptest.model.show import show
from mcptest.report.terminal import Style

SHOWN = 1_000
"""Findings beyond are counted; --json holds them all."""
_NAME = 120
_CODES = 8
_KINDS = {"tools": "tool", "prompts": "prompt", "resources": "resource", "templates": "template"}


def lint_lines(
    report: LintReport,
    style: Style,
    *,
    fix: bool = False,
    verbose: bool = False,
    notes: bool = False,
) -> Iterator[str]:
    """`notes`: list them too, instead of counting them."""
    yield style.paint(heading(report), "bold")
    findings = report.findings if notes else report.serious
    shown = findings[:SHOWN]
    for (kind, item), those in groupby(shown, key=lambda one: (one.kind, one.item)):
        yield ""
        yield style.paint(_item(kind, item), "bold")
        for finding in those:
            yield from _lines(finding, style, fix=fix, verbose=verbose)
    yield ""
    if len(findings) > SHOWN:
        yield f"… and {len(findings) - SHOWN} more findings: --json has them all"
    for method, reason in report.problems.items():
        yield f"{style.cross} {method} could not be read: {show(reason, 300)}"
    for note in report.notes:
        yield f"{style.warning} {show(note, 300)}"
    yield style.paint(summary_in_words(report), "bold")
    if len(findings) < len(report.findings):
        yield f"--verbose lists the notes too ({codes_in_words(report.of(Severity.NOTE))})"
    if findings and not fix:
        yield "--fix shows a change for each; mcptest lint --list explains the codes"


def heading(report: LintReport) -> str:
    version = f" {show(report.server_version, 40)}" if report.server_version else ""
    return f"{show(report.server, 80)}{version}: {counted(report)}"


def counted(report: LintReport) -> str:
    parts = [
        f"{count} {_KINDS[kind]}{'s' * (count != 1)}"
        for kind, count in report.counts.items()
        if count or kind == "tools"
    ]
    return f"{', '.join(parts)}, about {report.tokens} tokens of tools"


def _item(kind: str, item: str) -> str:
    name = show(item, _NAME)
    return name if kind in ("tool", "server") else f"{kind} {name}"


def _lines(finding: Finding, style: Style, *, fix: bool, verbose: bool) -> Iterator[str]:
    yield f"  {sign_of(finding.severity, style)} {finding.code}  {show(finding.message, 400)}"
    if verbose and finding.field:
        yield style.paint(f"           at {show(finding.field, 200)}", "dim")
    if fix:
        yield style.paint(f"           {fix_in_words(finding)}", "cyan")


def sign_of(severity: Severity, style: Style) -> str:
    signs = {Severity.ERROR: style.cross, Severity.WARNING: style.warning}
    return signs.get(severity, style.dash)


def fix_in_words(finding: Finding) -> str:
    if finding.suggestion is None:
        return finding.fix
    return f"{finding.fix} {suggestion_in_words(finding.suggestion)}"


def suggestion_in_words(suggestion: Suggestion) -> str:
    value = json.dumps(suggestion.value, ensure_ascii=False)
    return f"Set {show(suggestion.pointer, 200)} to {show(value, 400)}"


def summary_in_words(report: LintReport) -> str:
    noted = f"{report.noted} note{'s' * (report.noted != 1)}" if report.noted else ""
    if not report.serious and not report.problems:
        return f"no errors, no warnings, {noted}" if noted else "no findings"
    codes = codes_in_words(report.serious)
    early = "interrupted; " if report.interrupted else ""
    errors, warnings = report.errors, report.warnings
    total = f"{early}{errors} error{'s' * (errors != 1)}, {warnings} warning{'s' * (warnings != 1)}"
    if report.problems:
        total += f", {len(report.problems)} not read"
    if report.threshold is not None and len(report.serious) > report.threshold:
        total += f", more than the {report.threshold} that are allowed"
    total = f"{total} ({codes})" if codes else total
    return f"{total}, {noted}" if noted else total


def codes_in_words(findings: Iterable[Finding]) -> str:
    """How often each code, the most frequent first."""
    counts = Counter(one.code for one in findings)
    more = ", …" if len(counts) > _CODES else ""
    return ", ".join(f"{count} {code}" for code, count in counts.most_common(_CODES)) + more


def rule_lines(rules: list[LintRule], style: Style) -> Iterator[str]:
    for rule in rules:
        yield f"{style.paint(rule.code, 'bold')}  {rule.severity.value:<7}  {rule.title}"
        yield f"      {rule.why}"
        yield f"      {rule.fix}"
