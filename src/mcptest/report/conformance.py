"""A run of scenarios, `mcptest.conformance/1`, and its views."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

from msgspec.structs import replace

from mcptest.core.errors import ExitCode
from mcptest.core.results import FailedCheck, Proof, RunReport, TestResult, always, derive
from mcptest.core.results import Status as RunStatus
from mcptest.core.safe_text import show, some_of
from mcptest.core.scenario_outcome import CheckResult, CheckStatus, Compared, ScenarioResult
from mcptest.core.verdict import Side
from mcptest.report.compliance.text import TextPage
from mcptest.report.head import Report, code_of
from mcptest.report.markdown import code, table_head
from mcptest.report.problems import NAME, ReportedProblem, ReportedRule, facts_of
from mcptest.report.terminal import Style, counted, duration, why_revision

_VERDICTS: Mapping[int, Literal["pass", "fail", "nothing", "interrupted"]] = {
    ExitCode.OK: "pass",
    ExitCode.FAILED: "fail",
    ExitCode.NOTHING_MATCHED: "nothing",
    ExitCode.INTERRUPTED: "interrupted",
}
_RULE = re.compile(r"[A-Z]{3,8}-\d{3}")
"""The id of a rule of the registry, in contrast to that of a check."""


class ConformanceReport(Report, frozen=True, omit_defaults=True, tag="mcptest.conformance/1"):
    """A run of scenarios on one client or server."""

    side: Side
    subject: str
    """The client's command, or the server as it was named; without secrets."""
    results: tuple[ScenarioResult, ...]
    compared: Compared | None = None
    """With the list of expected failures, if there was one."""
    scored: tuple[str, ...] = ()
    """Of a requirement set: what counts. Empty: everything does."""
    tool: str = ""
    started: str = ""
    duration_ms: float = 0.0
    notes: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    """Lists of the server that could not be read to their end."""
    interrupted: bool = False
    revision_reason: str = ""
    """Why a server was spoken to in this revision."""
    verdict: Literal["pass", "fail", "nothing", "interrupted"] = always("nothing")
    warnings_fail: Literal["none", "own", "all"] = "none"
    """Which warnings count as failures: those of the scenarios' own checks, as the official suite
    has it for clients, or also those of the registry's rules."""

    def __post_init__(self) -> None:
        derive(self, verdict=_VERDICTS[self.code])

    @property
    def code(self) -> ExitCode:
        return code_of(self.observed, failed=self.failed, interrupted=self.interrupted)

    def counts(self, result: ScenarioResult) -> bool:
        return not self.scored or result.scenario in self.scored

    @property
    def failed(self) -> bool:
        """A failure that counts; with a list of expected failures, anything new or stale."""
        if self.problems:
            return True
        if self.compared is not None:
            return not self.compared.holds
        return any(self.fails(one) for one in self.results if self.counts(one))

    def fails(self, result: ScenarioResult) -> bool:
        """It failed, or was warned of something that counts as a failure here."""
        if result.failed or self.warnings_fail == "none":
            return result.failed
        return any(
            self.warnings_fail == "all" or _RULE.fullmatch(check.id) is None
            for check in result.checks
            if check.status is CheckStatus.WARNING
        )

    def outcome(self, result: ScenarioResult) -> Literal["failed", "warned", "passed", "unseen"]:
        """What a scenario came to, whether it counts or not."""
        if self.fails(result):
            return "failed"
        if result.warned:
            return "warned"
        return "passed" if result.observed else "unseen"

    @property
    def observed(self) -> bool:
        """Something was judged at all."""
        return any(one.observed or one.cause for one in self.results)

    # -- views ---------------------------------------------------------------------------------

    def lines(self, style: Style) -> Iterator[str]:
        page = TextPage.like(style)
        yield style.paint(show(self.subject, 200), "bold")
        revisions = ", ".join(sorted({one.revision.value for one in self.results}))
        transports = ", ".join(sorted({one.transport for one in self.results}))
        scope = [f"{self.side.value} scenarios: {len(self.results)}", revisions, transports]
        scope += [f"{len(self.scored)} of them count"] if self.scored else []
        yield style.paint(f" {style.dot} ".join(filter(None, scope)), "dim")
        if self.revision_reason and self.results:
            why = why_revision(self.results[0].revision, self.revision_reason)
            yield style.paint(why, "dim")
        yield ""
        told: dict[str, str] = {}
        for result in self.results:
            if not style.quiet or result.failed or result.warned:
                yield from _scenario(result, self, page, told)
        yield from _untestable(self.results, page)
        if self.compared is not None:
            yield from page.heading("Expected failures")
            for names, words, colour in (
                (self.compared.new, "new: fails but is not listed", "red"),
                (self.compared.stale, "stale: listed but passes (remove the entry)", "red"),
                (self.compared.expected, "fails as expected", "dim"),
                (self.compared.tolerated, "listed, but flaky or not observed in this run", "dim"),
            ):
                if names:
                    yield f"  {style.paint(words, colour)}"
                for name in names:
                    yield from page.prose(show(name, 300), 4)
        for problem in self.problems:
            yield from page.prose(show(problem, 400), 0, "red")
        for note in self.notes:
            yield from page.prose(show(note, 400), 0, "yellow")
        yield ""
        yield style.paint(
            self.in_words(), "red" if self.failed or self.interrupted else "green", "bold"
        )

    def in_words(self) -> str:
        """One line that could be pasted anywhere. Only what fails the run is called failed."""
        scored = [one for one in self.results if self.counts(one)]
        bad = [one for one in scored if self.fails(one)]
        warned = sum(one.warned and not self.fails(one) for one in scored)
        unseen = sum(not one.failed and not one.observed for one in scored)
        known = 0
        if self.compared is not None:
            new = self.compared.new
            known = sum(not any(_is_about(name, one.scenario) for name in new) for one in bad)
        by_warnings = sum(not one.failed for one in bad)
        because = f" ({by_warnings} for warnings, see --no-fail-on-warning)" if by_warnings else ""
        stale = len(self.compared.stale) if self.compared is not None else 0
        told = {
            "passed with warnings": warned,
            f"failed{because}": len(bad) - known,
            "failed as expected": known,
            "not testable": unseen,
        }
        parts = [f"{len(scored) - len(bad) - warned - unseen} passed"]
        parts += [f"{count} {words}" for words, count in told.items() if count]
        text = f"{', '.join(parts)} of {counted(len(scored), 'scenario')}"
        if stale:
            text += f", {counted(stale, 'expected failure')} passed (remove from the list)"
        if self.problems:
            text += f", {counted(len(self.problems), 'list')} not read to the end"
        tally = _tally(check for one in scored for check in one.checks) or "none"
        text += f" in {duration(round(self.duration_ms))} (checks: {tally})"
        return f"interrupted: {text}" if self.interrupted else text

    def markdown_lines(self) -> Iterator[str]:
        yield from (f"## Conformance: {code(self.subject)}", "", self.in_words(), "")
        yield from table_head(
            "| | scenario | revision | transport | passed | warned | failed | skipped |"
        )
        columns = (CheckStatus.SUCCESS, CheckStatus.WARNING, CheckStatus.FAILURE)
        for result in self.results:
            counts = Counter(check.status for check in result.checks)
            mark, name = _MARKS[self.outcome(result)], code(result.scenario)
            unseen = counts[CheckStatus.SKIPPED] + counts[CheckStatus.UNTESTABLE]
            numbers = (*(counts[status] for status in columns), unseen)
            cells = (mark, name, result.revision.value, code(result.transport), *map(str, numbers))
            yield f"| {' | '.join(cells)} |"
        told: dict[str, str] = {}
        for result in self.results:
            if not (result.failed or result.warned):
                continue
            yield from ("", f"### {code(result.scenario)}", "")
            why, first = _cause(result, told, result.scenario)
            if why:
                yield f"- {code(why)}" if first else f"- same cause as {code(told[why])}"
            for check in result.told:
                word = check.status.value.lower()
                said = code(check.message or check.description, 600)
                yield f"- {code(check.id)} ({word}) {code(check.name)}: {said}"
        compared = self.compared or Compared()
        for title, names in (
            ("New failures", compared.new),
            ("Stale entries", compared.stale),
            ("Failing as expected", compared.expected),
        ):
            if names:
                yield from ("", f"### {title}", "")
                yield from (f"- {code(name)}" for name in names)

    def as_run(self) -> RunReport:
        return self.run_of((_result(one, self) for one in self.results), self.problems)

    def run_and_excuses(self) -> tuple[RunReport, Mapping[str, str]]:
        """Whatever makes the list of expected failures not hold is a failure, also a warning."""
        run = self.as_run()
        if self.compared is None:
            return run, {}
        new = set(self.compared.new)
        excused: dict[str, str] = {}
        shown: set[str] = set()
        for scenario, result in zip(self.results, run.results, strict=True):
            names = {name for name in new if _is_about(name, scenario.scenario)}
            if result.status is RunStatus.FAIL and not names:
                excused[result.name] = _LISTED
            elif result.status is RunStatus.FAIL:
                shown |= names
        unlisted = sorted(new - shown)
        more = [_failed(name, "not listed as an expected failure", self) for name in unlisted]
        more += [_failed(name, _STALE, self) for name in self.compared.stale]
        return replace(run, results=(*run.results, *more)), excused

    def found_problems(self, run: RunReport) -> Iterator[ReportedProblem]:
        for result in self.results:
            yield from _of_scenario(result, self)
        rule = ReportedRule("conformance/stale", "every listed failure still fails")
        for name in self.compared.stale if self.compared is not None else ():
            subject = show(name, NAME)
            yield ReportedProblem(rule, f"{subject}: {_STALE}", subject=subject)


ROWS_SHOWN = 4
MISSING_SHOWN = 4
_NAME = 60
_TALLY = {
    CheckStatus.FAILURE: "failed",
    CheckStatus.WARNING: "warned",
    CheckStatus.SUCCESS: "passed",
    CheckStatus.SKIPPED: "skipped",
    CheckStatus.UNTESTABLE: "untestable",
}


def _tally(checks: Iterable[CheckResult]) -> str:
    counts = Counter(check.status for check in checks)
    return ", ".join(f"{counts[one]} {word}" for one, word in _TALLY.items() if counts[one])


def _cause(result: ScenarioResult, told: dict[str, str], name: str) -> tuple[str, bool]:
    """Why a scenario could not be judged, and whether no earlier one has the same cause.

    `told`: the first scenario with each cause.
    """
    why = "; ".join(filter(None, (result.cause, result.unreached)))
    return why, told.setdefault(why, name) == name


def _scenario(
    result: ScenarioResult, report: ConformanceReport, page: TextPage, told: dict[str, str]
) -> Iterator[str]:
    unseen = page.paint("-", "dim")
    marks = {"failed": page.cross, "warned": page.warning, "passed": page.tick}
    mark = marks.get(report.outcome(result), unseen)
    several = len({one.revision for one in report.results}) > 1
    where = f" {result.revision}" if several else ""
    uncounted = "" if report.counts(result) else "  (not counted)"
    tally = _tally(result.checks)
    took = duration(round(result.duration_ms))
    name = f"{result.scenario}{where}"
    yield f"{mark} {name:<50} {page.paint(f'{tally}  {took}{uncounted}', 'dim')}".rstrip()
    why, first = _cause(result, told, name)
    is_new = bool(why) and (first or page.verbose)
    if is_new:
        yield from page.prose(show(why, 1_000), 4, "red")
    elif why:
        yield from page.prose(f"same cause as {told[why]}", 4, "dim")
    rows = (
        [check for check in result.checks if check.status.is_bad] if page.verbose else result.told
    )
    shown = rows if page.verbose else rows[:ROWS_SHOWN]
    for check in shown:
        yield from _text_row(check, page, result.capture)
    if len(rows) > len(shown):
        more = f"and {len(rows) - len(shown)} more (--verbose shows all)"
        yield from page.prose(more, 4, "dim")
    if rows or is_new:
        telling = [line for line in result.stderr.splitlines() if any(map(str.isalpha, line))]
        said = (
            telling[-1].strip() if telling and (is_new or not why) and not result.unreached else ""
        )
        facts = {
            "stderr": show(said, 200),
            "capture": show(result.capture, 300),
            "repeat": result.repeat,
        }
        yield from page.labelled(facts.items(), 6)
    if page.verbose and not rows:
        for check in result.checks:
            passed = check.status is CheckStatus.SUCCESS
            sign = page.tick if passed else unseen
            why = f": {show(check.message, 200)}" if check.message else ""
            yield f"    {sign} {page.paint(f'{show(check.name, _NAME)}{why}', 'dim')}"


def _text_row(check: CheckResult, page: TextPage, capture: str) -> Iterator[str]:
    colour = "red" if check.status is CheckStatus.FAILURE else "yellow"
    named = "" if check.name == check.id else f" ({show(check.name, 80)})"
    yield from page.prose(f"{show(check.id, 80)}{named}: {show(check.description, 200)}", 4, colour)
    wire = show(check.excerpt, 400 if page.verbose else 160)
    pairs = [("seen", show(check.message, 600)), ("message", wire)]
    if check.record is not None:
        where = check.details.get("capture") or (capture and "the capture")
        kept = f"record {check.record} of {where}" if where else ""
        pairs.append(("at", kept or f"record {check.record} (keep the capture with -o DIR)"))
    pairs += [("spec", one.url) for one in check.references[:1]]
    yield from page.labelled(pairs, 6)


def _untestable(results: Sequence[ScenarioResult], page: TextPage) -> Iterator[str]:
    """What is missing so that more could be seen, each said once."""
    missing: dict[str, list[str]] = {}
    for result in results:
        for check in result.checks:
            if check.status is CheckStatus.UNTESTABLE:
                names = missing.setdefault(check.message, [])
                names += [] if result.scenario in names else [result.scenario]
    if not missing:
        return
    on_servers = results[0].side is Side.SERVER
    remedy = "--strict-fixtures counts these as failures" if on_servers else ""
    yield from page.heading("Not testable", remedy)
    shown = len(missing) if page.verbose else MISSING_SHOWN
    for message, names in list(missing.items())[:shown]:
        yield from page.prose(f"{show(message, 300)}: {some_of(names, 1)}", 2)
    if len(missing) > shown:
        yield from page.prose(f"and {len(missing) - shown} more (--verbose shows all)", 2, "dim")


_MARKS = {"failed": "❌", "warned": "⚠️", "passed": "✅", "unseen": "…"}


def _result(result: ScenarioResult, report: ConformanceReport) -> TestResult:
    """One test for each scenario; its bad rows are what failed in it."""
    warned = [check for check in result.checks if check.status is CheckStatus.WARNING]
    bad = [check for check in result.told if check.status is CheckStatus.FAILURE]
    if not result.failed:
        bad = warned  # they are what it fails for, where it fails at all
    failures = tuple(FailedCheck(check=check.id, message=_said(check)) for check in bad)
    if report.fails(result) and report.counts(result):
        status = RunStatus.FAIL
    else:
        status = RunStatus.PASS if result.observed else RunStatus.SKIP
    detail = result.cause or result.unreached or (failures[0].message if failures else "")
    excerpt = next((check.excerpt for check in bad if check.excerpt), "")
    stderr = tuple(result.stderr.splitlines()[-5:])
    failed = status is RunStatus.FAIL
    return TestResult(
        name=f"{result.scenario} [{result.revision}, {result.transport}]",
        status=status,
        detail=detail if status is not RunStatus.PASS else "",
        duration_ms=round(result.duration_ms),
        kind="check" if failed else "",
        failures=failures if failed else (),
        proof=Proof(excerpt, stderr=stderr, repeat=result.repeat) if failed else None,
        revision=result.revision.value,
        note="; ".join(f"warning: {_said(check)}" for check in warned),
    )


def _said(check: CheckResult) -> str:
    return f"{check.id} ({check.name}): {check.message or check.description}"


_LISTED = "listed as an expected failure"
_STALE = "listed as an expected failure but passes: remove the entry"


def _failed(name: str, why: str, report: ConformanceReport) -> TestResult:
    about = (one.repeat for one in report.results if _is_about(name, one.scenario))
    proof = Proof(repeat=next(about, ""))
    return TestResult(name=name, status=RunStatus.FAIL, detail=why, kind="check", proof=proof)


def _is_about(name: str, scenario: str) -> bool:
    return name == scenario or name.startswith(f"{scenario}:")


def _of_scenario(result: ScenarioResult, report: ConformanceReport) -> Iterator[ReportedProblem]:
    subject = show(f"{result.scenario} [{result.revision}, {result.transport}]", NAME)
    counts = report.counts(result)
    facts = facts_of(repeat=result.repeat, capture=result.capture)
    for identifier, title, why in (
        ("conformance/judged", "the scenario can be judged", result.cause),
        (
            "conformance/reached",
            "the client reaches the step that the scenario tests",
            result.unreached,
        ),
    ):
        if why:
            yield ReportedProblem(
                ReportedRule(identifier, title),
                f"{subject}: {show(why, 1_000)}",
                "error" if counts else "note",
                subject=subject,
                excused=_excuse_of_all(result, report),
                grave=bool(result.cause),
                facts=facts,
            )
    for check in result.told:
        rule = ReportedRule(
            id=show(check.id, 100) or "(no id)",
            title=show(check.description, NAME),
            url=check.references[0].url if check.references else "",
            level="error" if check.status is CheckStatus.FAILURE else "warning",
        )
        excerpt = f"\n  seen: {show(check.excerpt, 500)}" if check.excerpt else ""
        said = show(check.message or check.description, 1_000)
        yield ReportedProblem(
            rule,
            f"{subject}: {show(check.name, NAME)}: {said}{excerpt}",
            rule.level if counts else "note",
            subject=f"{subject} {show(check.name, NAME)}",
            page=rule.url,
            excused=_excuse(result.scenario, check.id, report),
            facts=facts,
        )


def _excuse_of_all(result: ScenarioResult, report: ConformanceReport) -> str:
    """One problem stands for the scenario, or for all of its rows that say no more than it."""
    silent = {check.id for check in result.checks if check.status.is_bad}
    silent -= {check.id for check in result.told}
    if result.cause or not silent:
        return _excuse(result.scenario, "", report)
    excuses = [_excuse(result.scenario, check, report) for check in sorted(silent)]
    return excuses[0] if all(excuses) else ""


def _excuse(scenario: str, check: str, report: ConformanceReport) -> str:
    compared = report.compared or Compared()
    listed = {*compared.expected, *compared.tolerated}
    return _LISTED if {scenario, f"{scenario}:{check}"} & listed else ""
