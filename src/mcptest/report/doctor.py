"""What a doctor found: what will break when a server moves to another revision, item by item.

Plain data that any report can be made from, also later.
"""

from __future__ import annotations

import enum
import textwrap
from collections.abc import Iterator, Mapping

import msgspec

from mcptest.core.errors import ExitCode
from mcptest.core.judgement import Evidence
from mcptest.core.results import (
    Count,
    FailedCheck,
    Proof,
    RunReport,
    Status,
    TestResult,
    always,
    derive,
)
from mcptest.core.revision import Revision
from mcptest.core.safe_text import show
from mcptest.report.evidence import without_boilerplate
from mcptest.report.head import Report
from mcptest.report.markdown import code
from mcptest.report.problems import ReportedProblem, problems_in_run
from mcptest.report.terminal import Style, fact_lines, remark_lines, why_revision
from mcptest.report.upgrade_guide import plain


class DoctorVerdict(enum.Enum):
    """What the move means for one thing that changes on the way."""

    BREAKS = "breaks"
    READY = "ready"
    NOT_USED = "not used"
    UNKNOWN = "unknown"
    """It could not be observed; the detail says why and what would help."""


class Judged(msgspec.Struct, frozen=True, omit_defaults=True):
    """What one probe concluded, before it is known by which item it was asked."""

    verdict: DoctorVerdict
    detail: str
    evidence: tuple[Evidence, ...] = ()
    advice: str = ""
    """What the specification recommends and the server does not do: it breaks nothing."""
    unchecked: bool = False
    """Unknown because it costs too much to look at what the server offers."""


class MovedRule(msgspec.Struct, frozen=True):
    """A rule that an item rests on, and what becomes of it on the way."""

    id: str
    bucket: str
    """`changed`, `added`, `removed` or `unchanged`."""


class Diagnosis(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that changes on the way, judged on one server."""

    id: str
    title: str
    since: Revision
    """The revision that changed it."""
    change: str
    """What was, and what is now."""
    verdict: DoctorVerdict
    detail: str
    evidence: tuple[Evidence, ...] = always(())
    rules: tuple[MovedRule, ...] = always(())
    fix: str = always("")
    advice: str = always("")
    unchecked: bool = False

    @property
    def breaks(self) -> bool:
        return self.verdict is DoctorVerdict.BREAKS


class RulesOnTheWay(msgspec.Struct, frozen=True):
    """How many rules of the corpora move between the two revisions."""

    changed: int
    added: int
    removed: int


class ServerInfo(msgspec.Struct, frozen=True):
    """As the server calls itself."""

    name: str = ""
    version: str = ""


class DoctorSummary(msgspec.Struct, frozen=True, kw_only=True):
    """How many items came to which verdict."""

    breaks: Count = 0
    ready: Count = 0
    not_used: Count = 0
    unknown: Count = 0


class DoctorReport(Report, frozen=True, kw_only=True, tag="mcptest.doctor/1"):
    """Everything one `mcptest doctor` found."""

    tool: str = ""
    started: str = ""
    server: str
    """How the server was named, with secrets masked."""
    server_info: ServerInfo = ServerInfo()
    transport: str
    older: Revision = msgspec.field(name="from")
    newer: Revision = msgspec.field(name="to")
    spoken: Revision = msgspec.field(name="examined_in")
    """The revision in which the server was examined: `newer`, if it speaks that already."""
    revision_reason: str = ""
    """Why that revision was spoken."""
    speaks_newer: bool = msgspec.field(name="speaks_target", default=False)
    breaks: bool = False
    failed: bool = False
    """It breaks, or could not be examined as it was asked for."""
    summary: DoctorSummary = DoctorSummary()
    rules: RulesOnTheWay | None = msgspec.field(name="rules_on_the_way", default=None)
    items: tuple[Diagnosis, ...]
    notes: tuple[str, ...] = ()
    unreached: Count = 0
    """Items that were not looked at, because we were stopped."""
    unanswered: tuple[str, ...] = ()
    """Methods of a sound session that had no answer, and lists that could not be had whole."""
    requests: Count = 0
    duration_ms: Count = 0

    def __post_init__(self) -> None:
        breaks = any(one.breaks for one in self.items)
        counts = {one.value.replace(" ", "_"): self.count(one) for one in DoctorVerdict}
        derive(
            self,
            speaks_newer=self.spoken.wire_version == self.newer.wire_version,
            breaks=breaks,
            failed=breaks or not self.is_whole,
            summary=DoctorSummary(**counts),
        )

    def count(self, verdict: DoctorVerdict) -> int:
        return sum(one.verdict is verdict for one in self.items)

    @property
    def is_whole(self) -> bool:
        """Whether the server could be examined as it was asked for."""
        unchecked = any(one.unchecked for one in self.items)
        return not self.unreached and not self.unanswered and not unchecked

    @property
    def code(self) -> ExitCode:
        return ExitCode.FAILED if self.failed else ExitCode.OK

    # -- views ---------------------------------------------------------------------------------

    def lines(self, style: Style) -> Iterator[str]:
        name = self.server_info.name or self.server
        version = f" {self.server_info.version}" if self.server_info.version else ""
        named = f"{show(name, 80)}{show(version, 40)} over {self.transport}"
        yield style.paint(f"{named}: {self.older} -> {self.newer}", "bold")
        yield f"  {how_it_was_met(self)}"
        if self.revision_reason:
            yield f"  {why_revision(self.spoken, self.revision_reason)}"
        if self.rules is not None:
            counts = f"{self.rules.changed} changed, {self.rules.added} added"
            again = f"mcptest compliance diff {self.older.label} {self.newer.label}"
            yield f"  rules that change: {counts}, {self.rules.removed} removed ({again})"
        yield from remark_lines(style.warning, self.notes, "  ")
        for verdict in ORDER:
            found = [one for one in self.items if one.verdict is verdict]
            if found:
                yield ""
            for one in found:
                yield from _item_lines(one, style)
        yield ""
        entries = [(mark, text) for mark, text in map(checklist_entry, self.items) if mark]
        if entries:
            yield style.paint(f"Checklist for {self.newer}", "bold")
            for mark, text in entries:
                first, *rest = textwrap.wrap(show(text, 1_000), _WIDTH - 4) or [""]
                yield f"  [{mark}] {first}"
                yield from (f"      {line}" for line in rest)
            yield ""
        yield style.paint(self.in_words(), "bold")

    def in_words(self) -> str:
        if not any(item.since > self.older for item in self.items):
            return f"nothing changes for servers from {self.older} to {self.newer}"
        words = {**{one: one.value for one in ORDER}, DoctorVerdict.BREAKS: "breaking"}
        counts = [f"{self.count(one)} {words[one]}" for one in ORDER]
        advised = sum(bool(one.advice) for one in self.items)
        unchecked = sum(one.unchecked for one in self.items)
        told = {
            "with a recommendation": advised,
            "not reached": self.unreached,
            "too expensive to check": unchecked,
            "requests without a usable response": len(self.unanswered),
        }
        counts += [f"{count} {word}" for word, count in told.items() if count]
        return ", ".join(counts)

    def markdown_lines(self) -> Iterator[str]:
        name = self.server_info.name or self.server
        yield f"# {plain(name)}: {self.older} → {self.newer}"
        yield ""
        yield f"{_sentence(how_it_was_met(self))} {_sentence(self.in_words())}"
        yield from (line for note in self.notes for line in ("", f"> {plain(note)}"))
        if not self.items:
            return
        yield from ("", "| item | verdict | observation |", "|---|---|---|")
        for item in sorted(self.items, key=lambda one: ORDER.index(one.verdict)):
            yield f"| {item.id} | {item.verdict.value} | {plain(item.detail)} |"
        for item in self.items:
            if item.breaks:
                yield from ("", f"## {plain(item.title)} ({item.id})", "")
                yield f"{_sentence(item.detail)} Since {item.since}: {plain(item.change)}."
                yield ""
                for one in item.evidence:
                    if one.sent:
                        yield f"- sent: {code(one.sent)}"
                    yield f"- received: {code(one.received) if one.received else 'no response'}"
                yield f"- fix: {plain(item.fix)}"
                yield f"- rules: {rules_in_words(item)}"
        yield from ("", "## Checklist", "")
        for item in self.items:
            mark, text = checklist_entry(item)
            if mark:
                # A question mark is no box that markdown knows: what is unknown is not done.
                yield f"- [{'x' if mark == 'x' else ' '}] {plain(text)}"

    def as_run(self) -> RunReport:
        return self.run_of(_result(one, self) for one in self.items)

    def found_problems(self, run: RunReport) -> Iterator[ReportedProblem]:
        """Each with the fix of its item."""
        fixes = {f"{one.id}: {one.title}": one.fix for one in self.items}
        for problem in problems_in_run(run):
            rule = msgspec.structs.replace(problem.rule, help=fixes.get(problem.subject, ""))
            yield msgspec.structs.replace(problem, rule=rule)

    def run_and_excuses(self) -> tuple[RunReport, Mapping[str, str]]:
        """What is unknown is no failure, and still something to look at."""
        unsure = [one for one in self.items if one.verdict is DoctorVerdict.UNKNOWN]
        notes = (f"{one.title}: unknown: {one.detail}" for one in unsure if not one.unchecked)
        return self.run_of(self.as_run().results, notes), {}

    def headline(self) -> str:
        return f"from {self.older.value} to {self.newer.value}"


_WIDTH = 96
ORDER = (DoctorVerdict.BREAKS, DoctorVerdict.UNKNOWN, DoctorVerdict.READY, DoctorVerdict.NOT_USED)


def how_it_was_met(report: DoctorReport) -> str:
    if report.speaks_newer:
        return f"the server speaks {report.newer}: each item was tested live in that revision"
    return (
        f"the server does not speak {report.newer}: it was examined in {report.spoken}, "
        f"and its response to {report.newer} was tested"
    )


def _item_lines(item: Diagnosis, style: Style) -> Iterator[str]:
    signs = (style.cross, style.unsure, style.tick, style.dash)
    sign = signs[ORDER.index(item.verdict)]
    name = style.paint(f"{item.id:<18}", "bold")
    yield f"{sign} {item.verdict.value:<8}  {name} {item.title}"
    if item.verdict is DoctorVerdict.NOT_USED and not style.verbose:
        return
    yield from _fact("", item.detail, style)
    yield from _fact("advice", item.advice, style)
    if item.verdict in {DoctorVerdict.BREAKS, DoctorVerdict.UNKNOWN} or style.verbose:
        for one in item.evidence:  # in one piece, so that it can be copied
            sent, received = without_boilerplate(one.sent), one.received or "(no response)"
            facts = (("sent", sent), ("received", received))
            yield from fact_lines(facts, " " * 6, style, 100_000)
    if item.breaks or style.verbose:
        yield from _fact("since", f"{item.since}: {item.change}", style)
        yield from _fact("fix", item.fix, style)
        yield from _fact("rules", rules_in_words(item), style)


def rules_in_words(item: Diagnosis) -> str:
    return ", ".join(f"{rule.id} ({rule.bucket})" for rule in item.rules)


def _fact(label: str, text: str, style: Style) -> Iterator[str]:
    margin = 10 if label else 0
    for place, line in enumerate(textwrap.wrap(show(text, 1_000), _WIDTH - margin)):
        told = f"{f'{label}:' if label and not place else '':<{margin}}{line}"
        yield style.paint(f"      {told}", *(("dim",) if label == "rules" else ()))


def checklist_entry(item: Diagnosis) -> tuple[str, str]:
    """The mark in the box and what stands behind it; no mark and no box for what is not used."""
    if item.verdict is DoctorVerdict.NOT_USED:
        return "", ""
    if item.breaks:
        return " ", f"{item.title}: {item.fix}"
    if item.verdict is DoctorVerdict.UNKNOWN:
        return "?", f"{item.title}: check this yourself. {item.fix}"
    if item.advice:
        return " ", f"{item.title} (recommended): {item.fix}"
    return "x", item.title


def _sentence(text: str) -> str:
    return plain(text[:1].upper() + text[1:] + ".")


_STATUS = {
    DoctorVerdict.BREAKS: Status.FAIL,
    DoctorVerdict.READY: Status.PASS,
    DoctorVerdict.NOT_USED: Status.SKIP,
    DoctorVerdict.UNKNOWN: Status.SKIP,
}


def _result(item: Diagnosis, report: DoctorReport) -> TestResult:
    status = Status.FAIL if item.unchecked else _STATUS[item.verdict]
    failed = status is Status.FAIL
    proof = next((Proof(one.sent, one.received) for one in item.evidence), None)
    return TestResult(
        name=f"{item.id}: {item.title}",
        status=status,
        detail=item.detail if status is not Status.PASS else "",
        kind="check" if failed else "",
        failures=(FailedCheck(item.id, f"{item.detail} {item.fix}".strip()),) if failed else (),
        proof=proof if failed else None,
        server=report.server,
        revision=report.newer.value,
        note=item.advice,
    )
