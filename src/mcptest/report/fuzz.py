"""What a fuzz run found: for each tool how many inputs it took, and each failure with its proof."""

from __future__ import annotations

import enum
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

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
from mcptest.core.safe_text import show
from mcptest.report import markdown, terminal
from mcptest.report.audit import unsafe_step
from mcptest.report.head import ReportHead
from mcptest.report.terminal import Style, TextRow, counted, fact_lines, remark_lines, row_lines


class FuzzVerdict(enum.Enum):
    """What became of one input."""

    PASSED = "passed"
    CRASH = "crash"
    """An internal error, a dead process, a connection that was closed."""
    HANG = "hang"
    PROTOCOL = "protocol"
    """An answer that is none."""
    LEAK = "leak"
    """An answer that holds what it must not."""


class FuzzFailure(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Inputs of one tool that fail in the same way. The first one stands for them."""

    tool: str = ""
    label: str
    verdict: FuzzVerdict = msgspec.field(name="status")
    detail: str = always("")
    duration_ms: Count = always(0)
    category: str = always("")
    valid: bool | None = always(None)
    """Whether the tool's own schema accepts the smallest input."""
    misfit: str = always("")
    others: tuple[str, ...] = always((), name="also")
    """Labels of the other inputs that fail so."""
    count: Annotated[int, msgspec.Meta(ge=1)] = always(1)
    again: bool = always(True, name="reproduced")
    """Whether it failed again when it was sent alone."""
    tries: Count = always(0)
    """Calls that it took to make it small."""
    arguments: Any = UNSET
    """As it was sent first; UNSET: without arguments."""
    minimal: Any = UNSET
    """The smallest input that fails in the same way."""
    afterwards: bool = False
    """Whether it was answered, and then the server died or fell silent."""
    pattern: str = ""
    """Of a leak: the regular expression that found it."""
    sent: str = ""
    received: str = ""
    stderr: tuple[str, ...] = ()
    repeat: str = ""

    def __post_init__(self) -> None:
        derive(self, count=1 + len(self.others))


class FuzzedTool(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One tool that was called."""

    name: str = msgspec.field(name="tool")
    runs: Count = always(0)
    passed: Count = always(0)
    failures: tuple[FuzzFailure, ...] = always(())
    categories: Mapping[str, Count] = always({})
    """How many inputs of each category were sent."""
    notes: tuple[str, ...] = always(())
    refuses_as_internal: bool = False
    """Whether it answers malformed requests with the code for internal errors."""
    unchecked: str = ""
    """Why its schema could not be checked: whatever passed, it was not fuzzed as it was asked."""
    duration_ms: Count = always(0)

    def __post_init__(self) -> None:
        derive(self, failures=tuple(replace(one, tool=self.name) for one in self.failures))

    @property
    def failed(self) -> int:
        return sum(failure.count for failure in self.failures)


class SkippedTool(msgspec.Struct, frozen=True, kw_only=True):
    """One tool that was not called, and why."""

    name: str = msgspec.field(name="tool")
    reason: str = ""


class FuzzSummary(msgspec.Struct, frozen=True, kw_only=True):
    tools_tested: Count = 0
    tools_skipped: Count = 0
    total_runs: Count = 0
    total_passed: Count = 0
    total_failures: Count = 0
    crashes: Count = 0
    timeouts: Count = 0
    protocol_errors: Count = 0
    leaks: Count = 0


class FuzzReport(ReportHead, frozen=True, kw_only=True, tag="mcptest.fuzz/1"):
    """A whole run."""

    title: ClassVar[str] = "Fuzz"
    seed: int = 0
    runs_per_tool: Count = 0
    tools: tuple[FuzzedTool, ...] = ()
    skipped: tuple[SkippedTool, ...] = ()
    summary: FuzzSummary = FuzzSummary()
    problem: str = ""
    """Why the list of tools is not complete."""
    unreached: Count = 0
    """Tools for which there was no time."""
    restarts: Count = 0
    calls: Count = 0
    """Everything that was sent, also to replay and to make inputs small."""

    def __post_init__(self) -> None:
        ReportHead.__post_init__(self)
        counts: Counter[FuzzVerdict] = Counter()
        for one in self.failures:
            counts[one.verdict] += one.count
        summary = FuzzSummary(
            tools_tested=len(self.tools),
            tools_skipped=len(self.skipped),
            total_runs=self.runs,
            total_passed=self.passed,
            total_failures=counts.total(),
            crashes=counts[FuzzVerdict.CRASH],
            timeouts=counts[FuzzVerdict.HANG],
            protocol_errors=counts[FuzzVerdict.PROTOCOL],
            leaks=counts[FuzzVerdict.LEAK],
        )
        whole = not (self.problem or self.unreached or self.interrupted)
        unchecked = any(tool.unchecked for tool in self.tools)
        derive(self, summary=summary, failed=bool(self.failures) or not whole or unchecked)

    @property
    def runs(self) -> int:
        return sum(tool.runs for tool in self.tools)

    @property
    def passed(self) -> int:
        return sum(tool.passed for tool in self.tools)

    @property
    def failures(self) -> tuple[FuzzFailure, ...]:
        return tuple(failure for tool in self.tools for failure in tool.failures)

    @property
    def looked_at(self) -> bool:
        return bool(self.runs)

    # -- views ---------------------------------------------------------------------------------

    @property
    def unread(self) -> Mapping[str, str]:
        return {"tools/list": self.problem} if self.problem else {}

    def found_lines(self, style: Style) -> Iterator[str]:
        yield f"seed {self.seed}, {self.runs_per_tool} inputs per tool"
        yield ""
        tools = [_row(tool, style) for tool in self.tools]
        skipped = (
            TextRow(style.dash, one.name, f"skipped: {show(one.reason, 200)}")
            for one in self.skipped
        )
        yield from row_lines([*tools, *skipped])

    def in_words(self) -> str:
        tested = self.tools
        if not tested:
            return f"nothing was fuzzed: {counted(len(self.skipped), 'tool')}, all skipped"
        early = "interrupted, " if self.interrupted else ""
        told = {
            "with a schema too complex to check": sum(bool(tool.unchecked) for tool in tested),
            "skipped": len(self.skipped),
            "not reached": self.unreached,
            f"restart{'s' * (self.restarts != 1)}": self.restarts,
        }
        parts = [f"{self.passed}/{self.runs} inputs passed", *_counts(self.failures)]
        parts += [f"{count} {words}" for words, count in told.items() if count]
        return f"{early}{counted(len(tested), 'tool')}, seed {self.seed}: {', '.join(parts)}"

    def found_markdown(self) -> Iterator[str]:
        yield from markdown.table_head("| tool | passed | |")
        for tool in self.tools:
            said = "; ".join(filter(None, (tool.unchecked, *tool.notes)))
            yield markdown.row(tool.name, f"{tool.passed}/{tool.runs}", said)
        for one in self.skipped:
            yield markdown.row(one.name, "", f"skipped: {one.reason}")
        if self.failures:
            yield from ("", "| | tool | input | response | repeat |", "|---|---|---|---|---|")
        for failure in self.failures:
            word, said = WORDS[failure.verdict], arguments_in_words(failure.minimal)
            named = f"{failure.label}: {said}"
            yield markdown.row(word, failure.tool, named, failure.detail, failure.repeat)

    def next_steps(self) -> list[str]:
        found = {failure.verdict for failure in self.failures}
        steps = [step for verdict, step in _STEPS.items() if verdict in found]
        if found:
            steps.append("Save each failure as a regression test: --output DIR.")
        return [*steps, *unsafe_step("Fuzz", (tool.reason for tool in self.skipped))]

    def as_run(self) -> RunReport:
        results = self.unread_results()
        results += (result for tool in self.tools for result in _of_tool(tool))
        results += (TestResult(f"fuzz {s.name}", Status.SKIP, s.reason) for s in self.skipped)
        return self.run_of(results, notes=(f"seed {self.seed}",))


_LABELS = 5
_STEPS = {
    FuzzVerdict.CRASH: "Crash: validate the arguments before using them, and return a result with "
    "isError: true and a message that a model can act on.",
    FuzzVerdict.HANG: "Hang: limit how long the tool works, or raise --timeout.",
    FuzzVerdict.PROTOCOL: "Invalid response: the server wrote text that is not a protocol message.",
    FuzzVerdict.LEAK: "Leak: describe the problem without stack traces, paths or secrets.",
}
WORDS = {
    FuzzVerdict.CRASH: "CRASH",
    FuzzVerdict.HANG: "HANG",
    FuzzVerdict.PROTOCOL: "PROTO",
    FuzzVerdict.LEAK: "LEAK",
}
MEANINGS = {
    FuzzVerdict.CRASH: ("crash", "crashes"),
    FuzzVerdict.HANG: ("hang", "hangs"),
    FuzzVerdict.PROTOCOL: ("invalid response", "invalid responses"),
    FuzzVerdict.LEAK: ("leak", "leaks"),
}


def _row(tool: FuzzedTool, style: Style) -> TextRow:
    failed = tool.failures or tool.unchecked
    sign = style.cross if failed else style.tick if tool.runs else style.warning
    spent, counts = terminal.duration(tool.duration_ms), ", ".join(_counts(tool.failures))
    below = [*remark_lines(style.cross, [tool.unchecked]), *remark_lines(style.warning, tool.notes)]
    if style.verbose and tool.categories:
        shown = ", ".join(f"{count} {name}" for name, count in tool.categories.items())
        below.append(style.paint(f"      {shown}", "dim"))
    below += (line for failure in tool.failures for line in _failure_lines(failure, style))
    return TextRow(
        sign, tool.name, f"{tool.passed}/{tool.runs} passed  {spent:>6}  {counts}", below
    )


def _counts(failures: tuple[FuzzFailure, ...]) -> Iterator[str]:
    for verdict, (one, many) in MEANINGS.items():
        count = sum(each.count for each in failures if each.verdict is verdict)
        if count:
            yield f"{count} {one if count == 1 else many}"


def _failure_lines(failure: FuzzFailure, style: Style) -> Iterator[str]:
    margin, inner = " " * 6, " " * 8
    word = style.paint(WORDS[failure.verdict], "red")
    yield f"{margin}{word} {show(failure.label, 160)}: {show(failure.detail, 300)}"
    schema = "valid according to the tool's schema" if failure.valid else ""
    if failure.valid is False:
        schema = f"invalid: {show(failure.misfit, 160)}"
    others = "; ".join(show(label, 80) for label in failure.others[:_LABELS])
    if len(failure.others) > _LABELS:
        others += f"; and {len(failure.others) - _LABELS} more"
    facts = {
        "input": arguments_in_words(failure.minimal),
        "schema": schema,
        "received": failure.received or "(no response)",
        "also": others,
    }
    yield from fact_lines(facts.items(), inner, style, 2_000)
    yield from fact_lines((("stderr", line) for line in failure.stderr[-3:]), inner, style, 300)
    yield from fact_lines([("repeat", failure.repeat)], inner, style, 4_000)
    if not failure.again:
        yield f"{inner}{style.warning} it did not happen again when sent alone"


def arguments_in_words(arguments: Any) -> str:
    if arguments is UNSET:
        return "(no arguments)"
    return show(json.dumps(arguments, ensure_ascii=False), 200)


_KINDS = {FuzzVerdict.CRASH: "crash", FuzzVerdict.HANG: "timeout", FuzzVerdict.PROTOCOL: "protocol"}


def _of_tool(tool: FuzzedTool) -> Iterator[TestResult]:
    """One result for the tool, and one for each way in which it fails."""
    if tool.unchecked:
        name = f"fuzz {tool.name}: its schema"
        yield TestResult(name, Status.FAIL, tool.unchecked, kind="check")
    elif not tool.runs:
        reason = "; ".join(tool.notes) or "nothing was sent"
        yield TestResult(f"fuzz {tool.name}", Status.SKIP, reason)
    elif not tool.failures:
        note = "; ".join(tool.notes)
        yield TestResult(f"fuzz {tool.name}", Status.PASS, "", tool.duration_ms, note=note)
    yield from map(_of_failure, tool.failures)


def _of_failure(one: FuzzFailure) -> TestResult:
    words = f"{one.verdict.value}: {one.detail}"
    return TestResult(
        name=f"fuzz {one.tool}: {one.label}",
        status=Status.FAIL,
        detail=words,
        duration_ms=one.duration_ms,
        kind=_KINDS.get(one.verdict, "check"),
        failures=(FailedCheck(check="fuzz", message=words),),
        proof=Proof(one.sent, one.received, one.stderr, repeat=one.repeat),
        note=f"{one.count} inputs fail this way" if one.others else "",
    )
