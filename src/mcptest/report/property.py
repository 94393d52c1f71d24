"""What property tests found: for each property how many examples held, and each counterexample."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import msgspec
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
from mcptest.core.verdict import Severity
from mcptest.report import markdown, terminal
from mcptest.report.evidence import without_boilerplate
from mcptest.report.head import ReportHead
from mcptest.report.markdown import code
from mcptest.report.terminal import Style, TextRow, counted, remark_lines, row_lines


class Way(enum.Enum):
    """How a server breaks a property."""

    RULE = "rule"
    """What it said breaks a rule."""
    CRASH = "crash"
    """A dead process, a closed connection, an internal error."""
    HANG = "hang"
    RELATION = "relation"
    """Two things that a tool claims to be the same are not."""


class Line(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of the conversation that shows it."""

    sender: str
    """`client`, `server`, or empty for a remark."""
    text: str
    at_fault: bool = False


class Counterexample(msgspec.Struct, frozen=True, kw_only=True):
    """The smallest conversation that was found to break a property."""

    of_property: str = msgspec.field(name="property")
    way: Way
    rule: str = ""
    """The id of the rule that is broken, where one says so."""
    title: str = ""
    severity: Severity = Severity.MUST
    message: str = ""
    expected: str = ""
    actual: str = ""
    steps: tuple[Mapping[str, Any], ...] = ()
    """What a client does, as data: `--replay` takes it up again."""
    words: tuple[str, ...] = ()
    """The same for people, a line for each step."""
    lines: tuple[Line, ...] = ()
    """What went over the wire."""
    first: int = 0
    """How many steps there were when it was first found."""
    tries: int = 0
    """Examples that were run to make it small."""
    after: int = 0
    """Steps at its beginning that are from earlier examples: it takes what they left behind."""
    again: bool = True
    """Whether it happened again on a fresh server."""
    known: bool = False
    """Whether it was found in an earlier run."""
    stderr: tuple[str, ...] = ()
    repeat: str = ""
    example: str = ""
    """The name under which it is kept."""

    counts: bool = False
    """Whether it fails the run: what breaks only advice does so in a strict one."""
    messages: Count = 0
    """How many messages of ours it takes."""

    def __post_init__(self) -> None:
        derive(self, messages=sum(line.sender == "client" for line in self.lines))


class PropertyResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One property."""

    name: str
    about: str = always("")
    skipped: str = ""
    """Why nothing was tried."""
    examples: Count = always(0)
    replayed: Count = always(0)
    """Examples of earlier runs that were tried again."""
    counterexamples: tuple[Counterexample, ...] = always(())
    notes: tuple[str, ...] = always(())
    ended_early: str = ""
    """Why there were fewer examples than asked for."""
    duration_ms: Count = always(0)
    generating_ms: float = always(0.0)
    """How much of that was spent to make examples, not to run them."""

    @property
    def untried(self) -> bool:
        """Whether it was asked for, and there was no time."""
        return not (self.skipped or self.examples or self.replayed)


class PropertySummary(msgspec.Struct, frozen=True, kw_only=True):
    properties: Count = 0
    skipped: Count = 0
    examples: Count = 0
    counterexamples: Count = 0
    failures: Count = 0


class PropertyReport(ReportHead, frozen=True, kw_only=True, tag="mcptest.property/1"):
    """A whole run."""

    title: ClassVar[str] = "Properties"
    seed: int = 0
    wanted: Count = 0
    """Examples that were asked for, for each property."""
    strict: bool | None = None
    """Broken advice fails as well. None, in a file of 0.1: as the counterexamples say."""
    properties: tuple[PropertyResult, ...] = ()
    summary: PropertySummary = PropertySummary()
    problems: tuple[str, ...] = ()
    """Lists that could not be read to their end, and schemas that can't be checked."""
    restarts: Count = 0

    def __post_init__(self) -> None:
        ReportHead.__post_init__(self)
        if self.strict is None:
            advice = (one for one in self.counterexamples if one.severity is Severity.SHOULD)
            derive(self, strict=any(one.counts for one in advice))
        weighed = []
        grave = {Severity.MUST, Severity.SHOULD} if self.strict else {Severity.MUST}
        for each in self.properties:
            found = (replace(one, counts=one.severity in grave) for one in each.counterexamples)
            weighed.append(replace(each, counterexamples=tuple(found)))
        derive(self, properties=tuple(weighed))
        summary = PropertySummary(
            properties=len(self.properties),
            skipped=sum(bool(one.skipped) for one in self.properties),
            examples=self.examples,
            counterexamples=len(self.counterexamples),
            failures=len(self.failures),
        )
        failed = bool(self.failures or self.untried or self.problems) or self.interrupted
        derive(self, summary=summary, failed=failed)

    @property
    def examples(self) -> int:
        return sum(one.examples + one.replayed for one in self.properties)

    @property
    def counterexamples(self) -> tuple[Counterexample, ...]:
        return tuple(found for one in self.properties for found in one.counterexamples)

    @property
    def failures(self) -> tuple[Counterexample, ...]:
        """Those that count."""
        return tuple(one for one in self.counterexamples if one.counts)

    @property
    def untried(self) -> tuple[str, ...]:
        """Properties that were asked for, and for which there was no time."""
        return tuple(one.name for one in self.properties if one.untried)

    @property
    def looked_at(self) -> bool:
        return bool(self.examples)

    # -- views ---------------------------------------------------------------------------------

    def found_lines(self, style: Style) -> Iterator[str]:
        yield f"seed {self.seed}, about {self.wanted} examples per property"
        yield ""
        yield from row_lines([_row(one, style) for one in self.properties], 24)
        yield from remark_lines(style.cross, self.problems, "  ")

    def in_words(self) -> str:
        early = "interrupted, " if self.interrupted else ""
        untried = self.untried
        tried = [one for one in self.properties if not (one.skipped or one.untried)]
        held = sum(not any(found.counts for found in one.counterexamples) for one in tried)
        parts = [f"{held}/{len(tried)} properties hold", f"{self.examples} examples"]
        failed = len(self.failures)
        told = {
            f"counterexample{'s' * (failed != 1)}": failed,
            "SHOULD rules not followed": len(self.counterexamples) - failed,
            f"not run ({', '.join(untried)})": len(untried),
            f"restart{'s' * (self.restarts != 1)}": self.restarts,
        }
        told["not checked (list or schema)"] = len(self.problems)
        parts += [f"{count} {words}" for words, count in told.items() if count]
        return f"{early}{', '.join(parts)}, seed {self.seed}"

    def found_markdown(self) -> Iterator[str]:
        yield from markdown.table_head("| property | examples | |")
        for one in self.properties:
            number = len(one.counterexamples)
            found = counted(number, "counterexample") if number else one.ended_early
            said = f"skipped: {one.skipped}" if one.skipped else found
            yield markdown.row(one.name, str(one.examples), said)
        for each in self.counterexamples:
            yield from _counterexample(each)
        if self.problems:
            yield ""
            yield from (f"- {code(problem)}" for problem in self.problems)

    def next_steps(self) -> list[str]:
        steps = []
        rules = sorted({one.rule for one in self.counterexamples if one.rule})
        if rules:
            steps.append(f"mcptest explain {rules[0]} explains the rule.")
        if self.counterexamples:
            steps.append(
                "Save each counterexample as a capture, a suite and a pytest file: --output DIR."
            )
        if any(one.skipped and "--allow-tool" in one.skipped for one in self.properties):
            steps.append("Call a tool not marked readOnlyHint: --allow-tool NAME.")
        return steps

    def as_run(self) -> RunReport:
        return self.run_of(property_results(self), notes=(f"seed {self.seed}", *self.problems))


WORDS = {Way.RULE: "BROKEN", Way.CRASH: "CRASH", Way.HANG: "HANG", Way.RELATION: "DIFFERS"}
_LINE = 160
"""Of a message; --verbose shows more of it."""
_ARROWS = {"client": "->", "server": "<-", "": "  "}


def _row(one: PropertyResult, style: Style) -> TextRow:
    if one.skipped:
        row = TextRow(style.dash, one.name, f"skipped: {show(one.skipped, 200)}")
    else:
        counts = any(found.counts for found in one.counterexamples)
        sign = style.cross if counts else style.warning if one.counterexamples else style.tick
        if one.untried:  # it neither holds nor is broken, for all that was seen
            sign = style.unsure
        spent = terminal.duration(one.duration_ms)
        again = f" and {one.replayed} kept" if one.replayed else ""
        found = len(one.counterexamples)
        words = counted(found, "counterexample") if found else ""
        row = TextRow(sign, one.name, f"{one.examples} examples{again}  {spent:>6}  {words}")
    below = [style.paint(f"      {one.about}", "dim")] if style.verbose else []
    below += remark_lines(style.warning, (*one.notes, one.ended_early))
    for each in one.counterexamples:
        below += counterexample_lines(each, style)
    return replace(row, below=below)


def counterexample_lines(found: Counterexample, style: Style) -> Iterator[str]:
    margin = " " * 6
    colour = "red" if found.counts else "yellow"
    word = style.paint(WORDS[found.way], colour)
    rule = f"{found.rule} " if found.rule else ""
    yield f"{margin}{word} {rule}{show(found.title, 200)} ({found.severity.value})"
    inner = margin + "  "
    yield f"{inner}{show(found.message, 400)}"
    if found.expected and found.expected not in found.message:
        yield style.paint(f"{inner}expected: {show(found.expected, 300)}", "dim")
    for number, words in enumerate(found.words, 1):
        yield f"{inner}{number}. {show(words, 400)}"
    for line in found.lines:
        mark = style.paint(" <== here", colour) if line.at_fault else ""
        text = show(without_boilerplate(line.text), 400 if style.verbose else _LINE)
        yield style.paint(f"{inner}   {_ARROWS[line.sender]} {text}", "dim") + mark
    for text in found.stderr[-3:]:
        yield style.paint(f"{inner}stderr: {show(text, 300)}", "dim")
    yield from (f"{inner}{style.warning} {remark}" for remark in _remarks(found))
    if found.repeat:
        yield style.paint(f"{inner}repeat: {show(found.repeat, 4_000)}", "dim")


def _remarks(found: Counterexample) -> Iterator[str]:
    if found.after:
        steps = counted(found.after, "step")
        yield f"only after the first {steps}: the server keeps state between requests"
    if not found.again:
        yield "it did not happen again on a fresh server"
    if found.known:
        yield "found before, still not fixed"


def _counterexample(found: Counterexample) -> Iterator[str]:
    rule = f"{found.rule}: " if found.rule else ""
    title = code(f"{rule}{found.title} ({found.severity.value})")
    yield from ("", f"**{WORDS[found.way]}** {title}", "", code(found.message), "")
    yield from (f"{number}. {code(words)}" for number, words in enumerate(found.words, 1))
    for line in found.lines:
        if line.at_fault:
            yield f"   - {code(f'{line.sender}: {line.text}')}"
    if found.repeat:
        yield from ("", f"repeat: {code(found.repeat)}")


_KINDS = {Way.CRASH: "crash", Way.HANG: "timeout"}


def property_results(report: PropertyReport) -> Iterator[TestResult]:
    """One result for each property that holds, and one for each way in which one does not."""
    for one in report.properties:
        name = f"property {one.name}"
        grave = [found for found in one.counterexamples if found.counts]
        if one.skipped:
            yield TestResult(name, Status.SKIP, one.skipped)
        elif one.untried:
            reason = one.ended_early or "no example was run"
            yield TestResult(name, Status.FAIL, reason, kind="timeout")
        elif not grave:
            advice = len(one.counterexamples)
            against = f"; {advice} not followed (SHOULD)" if advice else ""
            note = f"{one.examples} examples, seed {report.seed}{against}"
            yield TestResult(name, Status.PASS, "", one.duration_ms, note=note)
        yield from map(_of_counterexample, grave)


def _of_counterexample(found: Counterexample) -> TestResult:
    rule = found.rule or found.way.value
    words = f"{found.title}: {found.message}"
    sent = [line.text for line in found.lines if line.sender == "client"]
    fault = next((line.text for line in found.lines if line.at_fault), "")
    return TestResult(
        name=f"property {found.of_property}: {rule}",
        status=Status.FAIL,
        detail=words,
        kind=_KINDS.get(found.way, "check"),
        failures=(FailedCheck("property", words, found.expected or None, found.actual or None),),
        proof=Proof("\n".join(sent), fault, found.stderr, repeat=found.repeat),
    )
