"""Every server of a client configuration: what is to be judged, what was found, and the verdict.

Plain data: it travels between processes and machines, and any report can be made of it, also later.
"""

from __future__ import annotations

import enum
import shlex
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from mcptest.core import safe_text
from mcptest.core.errors import ExitCode
from mcptest.core.judgement import Judgement
from mcptest.core.results import Count, Proof, RunReport, Status, TestResult, derive
from mcptest.core.safe_text import in_one_line, show
from mcptest.report.audit import WORDS, AuditReport
from mcptest.report.compliance.compliance_report import ComplianceReport
from mcptest.report.compliance.facts import failures_first, gate_line, letter_of
from mcptest.report.compliance.judged_results import status_of
from mcptest.report.head import Percent, Report, stated_code
from mcptest.report.markdown import code, table_head
from mcptest.report.problems import NAME, ReportedProblem, ReportedRule, facts_of, problems_in_run
from mcptest.report.terminal import Style, counted, duration, remark_lines
from mcptest.rules.composition import COMPOSITION_RULES, Hazard


class ServerOutcome(enum.Enum):
    """What one server came to. Only the first is a success."""

    PASSED = "passed"
    FAILED = "failed"
    UNREACHABLE = "unreachable"
    NOT_JUDGED = "not judged"
    INTERRUPTED = "interrupted"
    DISABLED = "disabled"
    """The configuration says so: neither a success nor a failure."""

    @property
    def is_bad(self) -> bool:
        return self not in (ServerOutcome.PASSED, ServerOutcome.DISABLED)


class FleetServer(msgspec.Struct, frozen=True):
    """One row of the report. What is not known of a server is null."""

    name: str
    outcome: ServerOutcome
    reason: str = ""
    """Why it is neither passed nor failed, or what is wrong beside the rules and the items."""
    hint: str = ""
    revision: str | None = None
    revision_reason: str = ""
    transport: str | None = None
    grade: str | None = None
    broken_musts: Count | None = None
    audit_score: Percent | None = None
    tools: Count | None = None
    duration_ms: Count = 0
    worker: str = ""
    repeat: str = ""
    """The command that judges just this server again."""
    compliance: ComplianceReport | None = None
    audit: AuditReport | None = None

    def __post_init__(self) -> None:
        judged, audit = self.judgement, self.audit
        if judged is not None:
            derive(
                self,
                revision=judged.revision.value,
                revision_reason=judged.revision_reason,
                transport=judged.transport,
                grade=letter_of(judged.grade) or None,
                broken_musts=judged.broken_musts,
            )
        if audit is not None:
            derive(self, audit_score=audit.score, tools=audit.tool_count)

    @property
    def is_cut_short(self) -> bool:
        """A judged server without an audit was not judged to the end."""
        return self.outcome is ServerOutcome.FAILED and self.audit is None

    @property
    def judgement(self) -> Judgement | None:
        judged = self.compliance.judgements if self.compliance is not None else ()
        return judged[0] if judged else None


class FleetSummary(msgspec.Struct, frozen=True):
    servers: Count = 0
    passed: Count = 0
    failed: Count = 0
    unreachable: Count = 0
    not_judged: Count = 0
    interrupted: Count = 0
    disabled: Count = 0
    hazards: Count = 0


class FleetReport(Report, frozen=True, kw_only=True, tag="mcptest.fleet/1"):
    """A whole fleet, in the order of its configuration."""

    tool: str = ""
    started: str = ""
    duration_ms: Count = 0
    config: str
    exit_code: int = 0
    interrupted: bool = False
    strict: bool = False
    """A SHOULD that is not followed is a failure as well."""
    summary: FleetSummary = FleetSummary()
    servers: tuple[FleetServer, ...] = msgspec.field(name="fleet")
    hazards: tuple[Hazard, ...] = ()
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        counts = {one.value.replace(" ", "_"): self.count(one) for one in ServerOutcome}
        totals = {"servers": len(self.servers), "hazards": len(self.hazards)}
        derive(self, summary=FleetSummary(**totals, **counts))

    @property
    def code(self) -> ExitCode:
        return stated_code(self.exit_code)

    @property
    def failed(self) -> bool:
        """Whether anything that was asked for was not reached, not judged or not passed."""
        return self.exit_code != 0

    def count(self, outcome: ServerOutcome) -> int:
        return sum(one.outcome is outcome for one in self.servers)

    # -- views ---------------------------------------------------------------------------------

    def in_words(self) -> str:
        counts = [f"{n} {outcome.value}" for outcome in ServerOutcome if (n := self.count(outcome))]
        judged = f"{counted(len(self.servers), 'server')}: "
        judged += ", ".join(counts) or "nothing to judge"
        hazards = f", {counted(len(self.hazards), 'hazard')} between them" if self.hazards else ""
        early = "interrupted, " if self.interrupted else ""
        return f"{early}{judged}{hazards} in {duration(self.duration_ms)}"

    def lines(self, style: Style) -> Iterator[str]:
        rows = [one for one in self.servers if one.outcome.is_bad or not style.quiet]
        if rows:
            yield from _table(rows, style)
            yield ""
        for server in rows:
            yield from _text_details(server, style, strict=self.strict)
        yield from _hazards(self, style)
        yield from remark_lines(style.warning, self.notes, "")
        yield style.paint(self.in_words(), "bold")

    def markdown_lines(self) -> Iterator[str]:
        yield from (f"### Servers of {code(self.config)}", "", f"**{code(self.in_words())}**", "")
        yield from table_head(f"| {' | '.join(HEADINGS)} |")
        for server in self.servers[:_ROWS]:
            yield "| " + " | ".join(code(cell) if cell else "" for cell in cells_of(server)) + " |"
        if len(self.servers) > _ROWS:
            yield from ("", f"And {len(self.servers) - _ROWS} more.")
        for server in self.servers[:_ROWS]:
            yield from _details(server, strict=self.strict)
        if self.hazards:
            yield from ("", "#### Between the servers", "")
            yield from (f"- {one.id}: {code(one.message, 600)}" for one in self.hazards[:_SHOWN])
            if len(self.hazards) > _SHOWN:
                yield f"- and {len(self.hazards) - _SHOWN} more"
        if self.notes:
            yield from ("", *(f"- {code(note, 300)}" for note in self.notes))

    def as_run(self) -> RunReport:
        """Each server is what a language is in a matrix: the same tests are run on all of them."""
        results = [one for server in self.servers for one in _results(server, self)]
        return self.run_of((*results, *results_of_hazards(self)))

    def found_problems(self, run: RunReport) -> Iterator[ReportedProblem]:
        for server in self.servers:
            yield from _of_server(server, self)
        for hazard in self.hazards:
            known = COMPOSITION_RULES.get(hazard.id)
            text = known.explanation if known is not None else ""
            yield ReportedProblem(
                ReportedRule(show(hazard.id, 60), show(hazard.title, NAME), text),
                show(hazard.message, 1_000),
                subject=", ".join(show(one, 80) for one in hazard.servers),
                file=self.config,
                facts=facts_of(repeat=repeat_of_hazard(self, hazard)),
            )


HEADINGS = ("server", "revision", "grade", "audit", "tools", "MUST", "time", "outcome")
LINE = 300


class Wrong(msgspec.Struct, frozen=True):
    """One thing that is wrong with a server, safe to show."""

    what: str
    repeat: str = ""
    counts: bool = True
    """False: worth knowing, and no failure."""


def cells_of(server: FleetServer) -> tuple[str, ...]:
    """One for each heading; empty where there is nothing to tell."""
    judged = server.judgement
    return (
        show(server.name, 60),
        str(judged.revision) if judged is not None else "",
        server.grade or "",
        "" if server.audit_score is None else f"{server.audit_score}%",
        "" if server.tools is None else str(server.tools),
        "" if server.broken_musts is None else str(server.broken_musts),
        duration(server.duration_ms) if server.outcome is not ServerOutcome.DISABLED else "",
        server.outcome.value,
    )


def wrong_with(server: FleetServer, *, strict: bool = False) -> Iterator[Wrong]:
    """What is wrong, the gravest first."""
    if server.reason and server.outcome is not ServerOutcome.DISABLED:
        hint = f" ({show(server.hint, LINE)})" if server.hint else ""
        yield Wrong(f"{show(server.reason, 600)}{hint}", server.repeat)
    yield from _by_the_specification(server, strict=strict)
    if server.audit is not None:
        for method, reason in server.audit.problems.items():
            yield Wrong(
                f"{show(method, 60)} could not be read: {show(reason, LINE)}", server.repeat
            )
        for item in server.audit.items:
            if item.is_bad:
                said = f": {show(item.detail if item.health.is_broken else item.findings[0], LINE)}"
                ended = f" {WORDS[item.health]}" if item.health.is_broken else ""
                name = f"{item.kind} {show(item.name, 120)}"
                yield Wrong(f"{name}{ended}{said}", show(item.repeat, 4_000))
        if server.audit.failed and server.audit.min_score is not None:
            score, demanded = server.audit.score, server.audit.min_score
            yield Wrong(f"audit score {score}% is below the required {demanded}%", server.repeat)


def _by_the_specification(server: FleetServer, *, strict: bool) -> Iterator[Wrong]:
    judged = server.judgement
    if judged is None or server.compliance is None:
        return
    for cause in judged.causes:
        if cause.kept_from_judging:
            kept = f"{counted(cause.kept_from_judging, 'rule')} could not be judged"
            yield Wrong(f"{in_one_line(cause.message, 600)}; {kept}", server.repeat)
    for rule in failures_first(judged):
        status = status_of(rule.outcome, rule.severity, strict=strict)
        found = rule.findings[0].message if rule.findings else ""
        said = f": {show(found, LINE)}" if found and found != rule.title else ""
        what = f"{rule.severity.value} {show(rule.id, 60)} {show(rule.title, 200)}{said}"
        yield Wrong(what, show(rule.repeat, 4_000), status is Status.FAIL)
    for gate in server.compliance.gates:
        if not gate.passed:
            yield Wrong(gate_line(gate), server.repeat)


def repeat_of_hazard(report: FleetReport, hazard: Hazard) -> str:
    """The command that looks at just these servers again."""
    servers = [word for name in hazard.servers for word in ("--server", name)]
    return f"mcptest fleet {shlex.join((report.config, *servers))}"


_SHOWN = 50
_ROWS = 1_000


def _details(server: FleetServer, *, strict: bool) -> Iterator[str]:
    wrong = [one for one in wrong_with(server, strict=strict) if one.counts]
    if not wrong:
        return
    yield from ("", f"#### {code(server.name)}", "")
    for one in wrong[:_SHOWN]:
        again = f"<br>repeat: {code(one.repeat, 4_000)}" if one.repeat else ""
        yield f"- {code(one.what, 1_000)}{again}"
    if len(wrong) > _SHOWN:
        yield f"- and {len(wrong) - _SHOWN} more"


_KEPT = {
    ServerOutcome.UNREACHABLE: ReportedRule(
        "fleet/reachable", "every server of the configuration can be reached"
    ),
    ServerOutcome.NOT_JUDGED: ReportedRule(
        "fleet/judged", "every server of the configuration can be judged"
    ),
}


def _of_server(server: FleetServer, report: FleetReport) -> Iterator[ReportedProblem]:
    name = show(server.name, NAME)
    kept = _KEPT.get(ServerOutcome.NOT_JUDGED if server.is_cut_short else server.outcome)
    if kept is not None:
        hint = f"\n{show(server.hint, 600)}" if server.hint else ""
        said = f"{name}: {show(server.reason, 600)}{hint}"
        facts = facts_of(repeat=server.repeat)
        yield ReportedProblem(kept, said, subject=name, file=report.config, grave=True, facts=facts)
    if server.compliance is not None:
        yield from replace(server.compliance, suite=report.config).found_problems(RunReport())
    if server.audit is not None:
        for one in problems_in_run(server.audit.as_run()):
            yield replace(
                one,
                subject=f"{name}: {one.subject}",
                message=f"{name}: {one.message}",
                file=report.config,
            )


# -- A fleet as results of tests -----------------------------------------------------------------


def _results(server: FleetServer, report: FleetReport) -> Iterator[TestResult]:
    for one in results_beside_the_rules(server):
        yield replace(one, file=report.config)
    if server.compliance is not None:
        judged = replace(server.compliance, suite=report.config, strict=report.strict).as_run()
        around = {"language": server.name, "server": server.name}
        yield from (replace(one, **around) for one in judged.results)


def results_beside_the_rules(server: FleetServer) -> Iterator[TestResult]:
    """Whether it was judged at all, and its audit, in the revision that it was judged in."""
    name = server.name
    around: dict[str, Any] = {"language": name, "server": name, "revision": server.revision or ""}
    proof = Proof(repeat=server.repeat) if server.repeat else None
    failed = server.outcome is ServerOutcome.FAILED
    bad = server.is_cut_short if failed else server.outcome.is_bad
    status = Status.FAIL if bad else Status.PASS
    if server.outcome is ServerOutcome.DISABLED:
        status = Status.SKIP
    hint = f" ({server.hint})" if server.hint else ""
    kind = "start" if server.outcome is ServerOutcome.UNREACHABLE else "call"
    yield TestResult(
        name="judged and audited",
        status=status,
        detail=f"{server.reason}{hint}" if status is not Status.PASS else "",
        duration_ms=server.duration_ms,
        kind=kind if bad else "",
        proof=proof if bad else None,
        **around,
    )
    if server.audit is None:
        return
    for one in server.audit.as_run().results:
        yield replace(one, name=f"audit {one.name}", **around)
    if server.audit.failed and server.audit.min_score is not None:
        score, demanded = server.audit.score, server.audit.min_score
        said = f"score {score}% is below the required {demanded}%"
        yield TestResult("audit score", Status.FAIL, said, kind="check", proof=proof, **around)


def results_of_hazards(report: FleetReport) -> Iterator[TestResult]:
    for hazard in report.hazards:
        yield TestResult(
            name=f"{hazard.id} between {' and '.join(hazard.servers)}",
            status=Status.FAIL,
            detail=f"{hazard.title}: {hazard.message}",
            file=report.config,
            kind="check",
            proof=Proof(repeat=repeat_of_hazard(report, hazard)),
        )


_TEXT_SHOWN = 10
_SHOWN_VERBOSE = 1_000
_HAZARDS_SHOWN = 20
_COLOURS = {ServerOutcome.PASSED: "green", ServerOutcome.DISABLED: "dim"}
_RIGHT = frozenset({"audit", "tools", "MUST", "time"})


def _table(rows: Sequence[FleetServer], style: Style) -> Iterator[str]:
    cells = [cells_of(one) for one in rows]
    widths = [max(map(safe_text.cells, column)) for column in zip(HEADINGS, *cells, strict=True)]
    yield style.paint(f"  {_padded(HEADINGS, widths)}  {HEADINGS[-1]}", "bold")
    for server, row in zip(rows, cells, strict=True):
        outcome = style.paint(row[-1], _COLOURS.get(server.outcome, "red"))
        signs = {ServerOutcome.PASSED: style.tick, ServerOutcome.DISABLED: style.dash}
        sign = signs.get(server.outcome, style.cross)
        yield f"{sign} {_padded(row, widths)}  {outcome}"


def _padded(row: Sequence[str], widths: Sequence[int]) -> str:
    """All but the outcome, which stands last."""
    cells = []
    for heading, text, width in list(zip(HEADINGS, row, widths, strict=True))[:-1]:
        blanks = " " * (width - safe_text.cells(text))
        cells.append(blanks + text if heading in _RIGHT else text + blanks)
    return "  ".join(cells)


def _text_details(server: FleetServer, style: Style, *, strict: bool) -> Iterator[str]:
    found = list(wrong_with(server, strict=strict))
    wrong = [one for one in found if one.counts or style.verbose]
    left = len(found) - len(wrong)
    if not wrong and not (left and server.outcome.is_bad):
        return
    sign = style.cross if server.outcome.is_bad else style.warning
    yield f"{sign} {style.paint(show(server.name, 120), 'bold')}"
    shown = _SHOWN_VERBOSE if style.verbose else _TEXT_SHOWN
    for one in wrong[:shown]:
        mark = style.cross if one.counts else style.warning
        yield f"    {mark} {one.what}"
        if one.repeat:
            yield f"        {style.paint('repeat:', 'dim')}  {one.repeat}"
    if len(wrong) > shown:
        yield f"    and {len(wrong) - shown} more (--verbose shows all)"
    if left:
        missed = f"{counted(left, 'recommendation')} not followed"
        yield f"    {style.warning} {missed} (--verbose shows them)"
    yield ""


def _hazards(report: FleetReport, style: Style) -> Iterator[str]:
    if not report.hazards:
        return
    yield style.paint("Between the servers", "bold")
    shown = _SHOWN_VERBOSE if style.verbose else _HAZARDS_SHOWN
    for hazard in report.hazards[:shown]:
        yield f"    {style.cross} {hazard.id} {show(hazard.message, 1_000)}"
        again = show(repeat_of_hazard(report, hazard), 4_000)
        yield f"        {style.paint('repeat:', 'dim')}  {again}"
        if style.verbose and len(hazard.names) > 1:
            yield from (f"        {show(name, 300)}" for name in hazard.names[:_SHOWN_VERBOSE])
    if len(report.hazards) > shown:
        yield f"    and {len(report.hazards) - shown} more (--verbose shows all)"
    rules = dict.fromkeys(hazard.id for hazard in report.hazards)
    for rule in rules:
        yield f"        {style.paint('details:', 'dim')} mcptest explain {show(rule, 60)}"
    yield ""
