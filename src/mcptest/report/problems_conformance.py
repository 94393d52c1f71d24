"""What the scenario suite found, as problems, and as results that agree with its verdict."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from mcptest.model.conformance import CheckResult, ConformanceReport, ScenarioResult, Status
from mcptest.model.results import Proof, RunReport, TestResult
from mcptest.model.results import Status as RunStatus
from mcptest.model.show import show
from mcptest.report.conformance_run import conformance_as_run
from mcptest.report.problems import (
    NAME,
    Level,
    Problem,
    Problems,
    ReportedRule,
    facts_of,
    shown_notes,
)

_LISTED = "listed as an expected failure"
_STALE = "it is listed as an expected failure and passes: take it off the list"


def problems_of_conformance(report: ConformanceReport) -> Problems:
    rules: dict[str, ReportedRule] = {}
    found = [one for result in report.results for one in _of_scenario(result, report, rules)]
    for name in report.compared.stale if report.compared is not None else ():
        rule = ReportedRule("conformance/stale", "what is listed as failing does fail")
        rules[rule.id] = rule
        found.append(Problem(rule.id, f"{show(name, NAME)}: {_STALE}", subject=show(name, NAME)))
    return Problems(
        command="conformance",
        found=tuple(found),
        rules=rules,
        tool=report.tool,
        started=report.started,
        interrupted=report.interrupted,
        notes=shown_notes(report.notes),
    )


def conformance_for_readers(report: ConformanceReport) -> tuple[RunReport, dict[str, str]]:
    """As a run with the failures that are expected, for forms that can tell these apart.

    Whatever makes the list of expected failures not hold is a failure, also a warning.
    """
    run = conformance_as_run(report)
    if report.compared is None:
        return run, {}
    new = set(report.compared.new)
    excused: dict[str, str] = {}
    shown: set[str] = set()
    for result, told in zip(report.results, run.results, strict=True):
        names = {name for name in new if _is_about(name, result.scenario)}
        if told.status is RunStatus.FAIL and not names:
            excused[told.name] = _LISTED
        elif told.status is RunStatus.FAIL:
            shown |= names
    unlisted = sorted(new - shown)
    more = [_failed(name, "it is not listed as an expected failure", report) for name in unlisted]
    more += [_failed(name, _STALE, report) for name in report.compared.stale]
    return replace(run, results=(*run.results, *more)), excused


def _failed(name: str, why: str, report: ConformanceReport) -> TestResult:
    about = (one.repeat for one in report.results if _is_about(name, one.scenario))
    proof = Proof(repeat=next(about, ""))
    return TestResult(name=name, status=RunStatus.FAIL, detail=why, kind="check", proof=proof)


def _is_about(name: str, scenario: str) -> bool:
    return name == scenario or name.startswith(f"{scenario}:")


def _of_scenario(
    result: ScenarioResult, report: ConformanceReport, rules: dict[str, ReportedRule]
) -> Iterator[Problem]:
    subject = show(f"{result.scenario} [{result.revision}, {result.transport}]", NAME)
    counts = report.counts(result)
    for identifier, title, why in (
        ("conformance/judged", "the scenario can be judged", result.cause),
        ("conformance/reached", "the client gets to what the scenario is about", result.unreached),
    ):
        if why:
            rule = ReportedRule(identifier, title)
            rules[rule.id] = rule
            yield Problem(
                rule.id,
                f"{subject}: {show(why, 1_000)}",
                "error" if counts else "note",
                subject=subject,
                excused=_excuse_of_all(result, report),
                grave=bool(result.cause),
                facts=facts_of(repeat=result.repeat, capture=result.capture),
            )
    for check in result.told:
        rule = _rule(check)
        rules.setdefault(rule.id, rule)
        level: Level = rule.level if counts else "note"
        yield _problem(result, check, level, subject, rule, report)


def _problem(
    result: ScenarioResult,
    check: CheckResult,
    level: Level,
    subject: str,
    rule: ReportedRule,
    report: ConformanceReport,
) -> Problem:
    excerpt = f"\n  seen: {show(check.excerpt, 500)}" if check.excerpt else ""
    said = show(check.message or check.description, 1_000)
    return Problem(
        rule.id,
        f"{subject}: {show(check.name, NAME)}: {said}{excerpt}",
        level,
        subject=f"{subject} {show(check.name, NAME)}",
        page=rule.url,
        excused=_excuse(result.scenario, check.id, report),
        facts=facts_of(repeat=result.repeat, capture=result.capture),
    )


def _rule(check: CheckResult) -> ReportedRule:
    return ReportedRule(
        id=show(check.id, 100) or "(no id)",
        title=show(check.description, NAME),
        url=check.references[0].url if check.references else "",
        level="error" if check.status is Status.FAILURE else "warning",
    )


def _excuse_of_all(result: ScenarioResult, report: ConformanceReport) -> str:
    """One problem stands for the scenario, or for all of its rows that say no more than it."""
    silent = {check.id for check in result.checks if check.status.is_bad} - {
        check.id for check in result.told
    }
    if result.cause or not silent:
        return _excuse(result.scenario, "", report)
    excuses = [_excuse(result.scenario, check, report) for check in sorted(silent)]
    return excuses[0] if all(excuses) else ""


def _excuse(scenario: str, check: str, report: ConformanceReport) -> str:
    if report.compared is None:
        return ""
    listed = {*report.compared.expected, *report.compared.tolerated}
    return _LISTED if {scenario, f"{scenario}:{check}"} & listed else ""
