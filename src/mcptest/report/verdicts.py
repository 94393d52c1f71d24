"""Sessions of captures that were judged by the rules, `mcptest.report/1`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import msgspec

from mcptest import __version__
from mcptest.core.errors import ExitCode
from mcptest.core.results import FailedCheck, Proof, RunReport, Status, TestResult, derive
from mcptest.core.safe_text import show
from mcptest.core.verdict import Finding, Outcome, Severity, Verdict
from mcptest.report.compliance.facts import is_broken, sign_of
from mcptest.report.compliance.judged_results import failed_checks
from mcptest.report.head import Report, stated_code
from mcptest.report.terminal import Style, counted, why_revision
from mcptest.rules.composition import Hazard, labels_of
from mcptest.rules.declaration import RULES
from mcptest.rules.judge import JudgedSession

FINDINGS_SHOWN = 3
HAZARDS_SHOWN = 20
_QUIET = {Outcome.NOT_OBSERVED, Outcome.NOT_APPLICABLE}


class RuleVerdict(msgspec.Struct, frozen=True, omit_defaults=True):
    """What one rule says about one session, with what the rule is."""

    id: str = msgspec.field(name="rule")
    title: str
    section: str = msgspec.field(name="category")
    severity: Severity
    side: str
    outcome: Outcome
    reason: str
    observed: int
    findings: tuple[Finding, ...]
    findings_total: int
    url: str = msgspec.field(name="specification")
    unchecked: bool = False
    """Inconclusive because it costs too much to look at what was sent: that is no success."""

    @property
    def failed(self) -> bool:
        return self.outcome is Outcome.FAIL

    @property
    def requirement(self) -> str:
        return RULES[self.id].explanation if self.id in RULES else ""


class SessionReport(msgspec.Struct, frozen=True):
    label: str
    file: str
    form: Literal["full", "exchanges"]
    transport: str | None
    revision: str | None
    era: Literal["handshake", "stateless"]
    messages: int
    complete: bool
    verdicts: tuple[RuleVerdict, ...]
    revision_reason: str = ""


class Summary(msgspec.Struct, frozen=True, kw_only=True, rename={"passed": "pass"}):
    """How many verdicts of each outcome; `fail` counts MUST rules, `warn` the others."""

    passed: int = 0
    fail: int = 0
    warn: int = 0
    not_observed: int = 0
    not_applicable: int = 0
    inconclusive: int = 0
    hazards: int = 0

    def in_words(self, style: Style) -> str:
        parts = [
            (self.fail, "failed", "red"),
            (self.hazards, "composition hazards", "red"),
            (self.warn, "warnings", "yellow"),
            (self.passed, "passed", "green"),
            (self.inconclusive, "inconclusive", "yellow"),
            (self.not_observed, "not observed", "dim"),
            (self.not_applicable, "not applicable", "dim"),
        ]
        return ", ".join(
            style.paint(f"{n} {word.removesuffix('s') if n == 1 else word}", colour)
            for n, word, colour in parts
            if n or word in {"failed", "passed"}
        )


class SessionsReport(Report, frozen=True, kw_only=True, tag="mcptest.report/1"):
    """Sessions that the rules were held against, and what is wrong between them."""

    tool: str
    command: str
    exit_code: int
    summary: Summary = Summary()
    sessions: tuple[SessionReport, ...]
    composition: tuple[Hazard, ...]
    strict: bool | None = None
    """A broken SHOULD fails as well. None, in a file that does not say: as the code has it."""

    def __post_init__(self) -> None:
        verdicts = [verdict for session in self.sessions for verdict in session.verdicts]
        counts = Counter(
            "warn" if one.failed and not is_broken(one) else one.outcome.value for one in verdicts
        )
        passed, hazards = counts.pop("pass", 0), len(self.composition)
        summary = Summary(passed=passed, hazards=hazards, **counts)
        derive(self, summary=summary)

    @property
    def code(self) -> ExitCode:
        stated = stated_code(self.exit_code)
        broken = self.summary.fail or self.composition
        return ExitCode.FAILED if stated is ExitCode.OK and broken else stated

    def as_run(self) -> RunReport:
        """What does not apply to a session is left out."""
        strict = self.strict
        if strict is None:  # one that failed without a broken MUST or a hazard was strict
            explained = self.summary.fail or self.composition
            strict = self.code is ExitCode.FAILED and not explained
        hazards = []
        for one in self.composition:
            name, failures = f"{one.id}: {one.title}", (FailedCheck(one.id, one.message),)
            result = TestResult(name, Status.FAIL, one.message, kind="protocol", failures=failures)
            hazards.append(result)
        verdicts = [
            _result(verdict, session, strict)
            for session in self.sessions
            for verdict in session.verdicts
            if verdict.outcome is not Outcome.NOT_APPLICABLE
        ]
        return self.run_of((*hazards, *verdicts))

    def in_words(self) -> str:
        return self._summary(Style())

    def _summary(self, style: Style) -> str:
        """The counts, and why it failed where they do not show it."""
        counts = self.summary.in_words(style)
        if self.code is not ExitCode.FAILED or self.summary.fail or self.composition:
            return counts
        unchecked = sum(one.unchecked for each in self.sessions for one in each.verdicts)
        why = f"{counted(unchecked, 'rule')} could not be checked"
        return f"{counts} (failed: {why if unchecked else 'warnings count with --strict'})"

    def lines(self, style: Style) -> Iterator[str]:
        for session in self.sessions:
            yield from _session_lines(session, style)
        hazards = self.composition
        if len(self.sessions) > 1:
            yield style.paint(f"composition of {len(self.sessions)} sessions", "cyan")
            if not hazards:
                yield f"  {style.tick} no hazard found"
            for hazard in hazards[:HAZARDS_SHOWN]:
                yield f"  {style.cross} {style.paint(hazard.id, 'bold')}  {hazard.message}"
            if len(hazards) > HAZARDS_SHOWN:
                yield f"    and {len(hazards) - HAZARDS_SHOWN} more"
            yield ""
        yield self._summary(style)
        silent = any(v.outcome in _QUIET for session in self.sessions for v in session.verdicts)
        if silent and not style.verbose:
            yield style.paint("--verbose lists what was not observed, and why", "dim")


def is_failure(verdict: Verdict, session: JudgedSession, strict: bool = False) -> bool:
    """A broken MUST decides; a broken SHOULD is a warning unless `strict`. What could not be
    looked at is no success whatever the rule says."""
    if verdict.outcome is not Outcome.FAIL:
        return verdict.unchecked
    return strict or RULES[verdict.rule].severity_in(session.revision) is Severity.MUST


def _exit_code(
    sessions: Sequence[JudgedSession], hazards: Sequence[Hazard], strict: bool
) -> ExitCode:
    """0 only if something was judged in each session and nothing that counts is broken."""
    for session in sessions:
        if any(is_failure(verdict, session, strict) for verdict in session.verdicts):
            return ExitCode.FAILED
    if hazards:
        return ExitCode.FAILED
    decided = {Outcome.PASS, Outcome.FAIL}
    if all(any(v.outcome in decided for v in session.verdicts) for session in sessions):
        return ExitCode.OK
    return ExitCode.NOTHING_MATCHED


def build_report(
    sessions: Sequence[JudgedSession],
    hazards: Sequence[Hazard],
    command: str,
    *,
    strict: bool = False,
) -> SessionsReport:
    return SessionsReport(
        tool=f"mcptest {__version__}",
        command=command,
        exit_code=int(_exit_code(sessions, hazards, strict)),
        sessions=tuple(map(_session_report, sessions, labels_of(sessions))),
        composition=tuple(hazards),
        strict=strict,
    )


def _session_report(session: JudgedSession, label: str) -> SessionReport:
    same = ("file", "form", "transport", "messages", "complete", "revision_reason")
    return SessionReport(
        label=label,
        revision=session.revision.value if session.revision else None,
        era=session.era.value,
        verdicts=tuple(_rule_verdict(verdict, session) for verdict in session.verdicts),
        **{name: getattr(session, name) for name in same},
    )


def _rule_verdict(verdict: Verdict, session: JudgedSession) -> RuleVerdict:
    rule = RULES[verdict.rule]
    same = ("outcome", "reason", "observed", "findings", "findings_total", "unchecked")
    return RuleVerdict(
        id=rule.id,
        title=rule.title,
        section=rule.category,
        severity=rule.severity_in(session.revision),
        side=rule.side.value,
        url=rule.url(session.revision),
        **{name: getattr(verdict, name) for name in same},
    )


def _session_lines(session: SessionReport, style: Style) -> Iterator[str]:
    revision = session.revision or "revision unknown"
    facts = [show(session.file, 120), f"{revision}, {session.era}"]
    facts += [session.transport] if session.transport else []
    facts.append(counted(session.messages, "message"))
    facts += [] if session.complete else ["cut short"]
    yield style.paint(show(session.label, 120), "bold")
    yield style.paint("  " + f" {style.dot} ".join(facts), "dim")
    if session.revision_reason:
        yield style.paint("  " + why_revision(revision, session.revision_reason), "dim")
    yield ""
    by_category: dict[str, list[RuleVerdict]] = {}
    hidden = set() if style.verbose else _QUIET | ({Outcome.PASS} if style.quiet else set())
    for verdict in session.verdicts:
        if verdict.outcome not in hidden:
            by_category.setdefault(verdict.section, []).append(verdict)
    unit = "record" if session.form == "full" else "exchange"
    for category, verdicts in by_category.items():
        yield style.paint(category, "cyan")
        for verdict in verdicts:
            yield from _verdict_lines(verdict, unit, style)
        yield ""


def _verdict_lines(verdict: RuleVerdict, unit: str, style: Style) -> Iterator[str]:
    name = style.paint(f"{verdict.id:<12}", *(["bold"] if verdict.failed else []))
    yield f"  {sign_of(verdict, style)} {name} {verdict.title}"
    if verdict.reason:
        yield style.paint(f"      {show(verdict.reason, 300)}", "dim")
    colour = "red" if is_broken(verdict) else "yellow"
    for finding in verdict.findings[:FINDINGS_SHOWN]:
        yield "      " + style.paint(finding.message, colour)
        if finding.expected is not None:
            yield f"        expected: {finding.expected}"
        if finding.actual is not None:
            yield f"        actual:   {finding.actual}"
        if finding.record is not None:
            sender = f", from the {finding.sender}" if finding.sender else ""
            pointer = f" at {finding.pointer}" if finding.pointer else ""
            yield f"        where:    {unit} {finding.record}{sender}{pointer}"
        if finding.excerpt is not None:
            yield style.paint(f"        message:  {finding.excerpt}", "dim")
    more = verdict.findings_total - min(len(verdict.findings), FINDINGS_SHOWN)
    if more > 0:
        yield f"      and {more} more like this"
    if verdict.findings:
        why = f"{verdict.severity.value}; details and fix: mcptest explain {verdict.id}"
        yield style.paint(f"      {why}", "dim")


def _result(verdict: RuleVerdict, session: SessionReport, strict: bool) -> TestResult:
    said = verdict.findings[0].message if verdict.findings else verdict.reason
    counts = strict or verdict.severity is Severity.MUST
    failed = (verdict.failed and counts) or verdict.unchecked
    held = verdict.outcome is Outcome.PASS or verdict.failed
    status = Status.FAIL if failed else Status.PASS if held else Status.SKIP
    messages = ((one.sender, one.excerpt) for one in verdict.findings if one.excerpt)
    sender, excerpt = next(messages, ("", ""))
    shown: dict[str, Any] = {"request" if sender == "client" else "response": excerpt}
    return TestResult(
        name=f"{session.label} {verdict.id}: {verdict.title}",
        status=status,
        detail=said if status is not Status.PASS else "",
        file=session.file,
        kind="protocol" if failed else "",
        failures=failed_checks(verdict.findings, verdict.id) if failed else (),
        proof=Proof(**shown, capture=session.file) if failed else None,
        revision=session.revision or "",
        note=f"{verdict.severity.value}: {said}" if verdict.failed and not failed else "",
    )
