"""What an audit found: for each tool, prompt and resource of a server, whether it works."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from mcptest.core.errors import ExitCode
from mcptest.core.loading import loaded_once
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
from mcptest.report.evidence import without_boilerplate
from mcptest.report.head import ITEM_KINDS, ItemKind, Percent, ReportHead
from mcptest.report.terminal import Style, TextRow, counted, fact_lines, remark_lines, row_lines

ONLY_AS_TASK = "it runs only as a task"


class Health(enum.Enum):
    """The class of one item."""

    HEALTHY = "healthy"
    """It answers: with what was asked for, or with an error of its own."""
    CRASHED = "crash"
    TIMED_OUT = "timeout"
    REFUSED = "refused"
    """A JSON-RPC error to an input that its own schema accepts."""
    PROTOCOL = "protocol"
    """An answer that is none."""
    SKIPPED = "skipped"

    @property
    def is_broken(self) -> bool:
        return self in (Health.CRASHED, Health.TIMED_OUT, Health.PROTOCOL)


class Claim(msgspec.Struct, frozen=True):
    """What a tool says of itself, held against what it did."""

    hint: str
    holds: bool | None
    """None: nothing was visible that could have told."""
    detail: str = ""


class AuditItem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One tool, prompt, resource or template."""

    kind: ClassVar[ItemKind]
    name: str
    description: str = always("")
    health: Health = msgspec.field(name="status")
    error_code: str = always("")
    detail: str = always("")
    is_error: bool = always(False)
    worked: bool = always(False)
    """Whether it gave what it was asked for, and not only a word on why it does not.

    Where its schema can't be checked, nobody knows what it was asked for.
    """
    has_content: bool = always(False)
    has_text: bool = False
    """Whether there is text in it that is not empty, as suites see it."""
    duration_ms: Count = always(0)
    input: Mapping[str, Any] = always({})
    asks_back: bool = False
    """Whether it asks the client for something: roots, a model, the user."""
    claims: tuple[Claim, ...] = ()
    findings: tuple[str, ...] = ()
    """What is wrong though it answers."""
    unchecked: str = ""
    """Why its schema could not be checked; this is one of the findings."""
    notes: tuple[str, ...] = ()
    sent: str = ""
    received: str = ""
    stderr: tuple[str, ...] = ()
    repeat: str = ""
    """The command that audits just this item again."""

    def __post_init__(self) -> None:
        derive(self, error_code=CODE_OF.get(self.health, ""))

    @property
    def tested(self) -> bool:
        return self.health is not Health.SKIPPED

    @property
    def answers(self) -> bool:
        return self.health is Health.HEALTHY

    @property
    def answers_with_error(self) -> bool:
        """A tool says so itself; a prompt or a template refuses a value which we made up."""
        refuses = self.kind != "tool" and not self.worked
        return self.answers and (self.is_error or refuses)

    @property
    def is_bad(self) -> bool:
        return self.health.is_broken or bool(self.findings)

    @property
    def passed(self) -> bool:
        """It worked, and nothing is wrong with what it said or did."""
        return self.worked and not self.is_bad


class AuditedTool(AuditItem, frozen=True, kw_only=True):
    kind: ClassVar[ItemKind] = "tool"
    name: str = msgspec.field(name="tool")


class AuditedPrompt(AuditItem, frozen=True, kw_only=True):
    kind: ClassVar[ItemKind] = "prompt"
    name: str = msgspec.field(name="prompt")


class AuditedResource(AuditItem, frozen=True, kw_only=True):
    kind: ClassVar[ItemKind] = "resource"
    name: str = msgspec.field(name="uri")


class AuditedTemplate(AuditItem, frozen=True, kw_only=True):
    kind: ClassVar[ItemKind] = "template"
    name: str = msgspec.field(name="uri_template")


ITEM_TYPES: Mapping[ItemKind, type[AuditItem]] = {
    one.kind: one for one in (AuditedTool, AuditedPrompt, AuditedResource, AuditedTemplate)
}


class AuditSummary(msgspec.Struct, frozen=True):
    """How many items ended in which way."""

    healthy: Count = 0
    crash: Count = 0
    timeout: Count = 0
    refused: Count = 0
    protocol: Count = 0
    skipped: Count = 0
    answers: Count = 0
    answers_with_errors: Count = 0
    findings: Count = 0


class AuditReport(ReportHead, frozen=True, kw_only=True, tag="mcptest.audit/1"):
    """A whole audit."""

    title: ClassVar[str] = "Audit"
    tool_count: Count = 0
    tools: tuple[AuditedTool, ...] = msgspec.field(name="results", default=())
    prompts: tuple[AuditedPrompt, ...] = ()
    resources: tuple[AuditedResource, ...] = ()
    templates: tuple[AuditedTemplate, ...] = ()
    score: Percent | None = None
    """The share of what was tested that passed, in whole percent; None when nothing was.

    A list that could not be read to its end counts as one thing that did not.
    """
    tool_score: Percent | None = None
    """The same of the tools alone."""
    answered: Percent | None = None
    """The score of mcp-assert: an error counts as an answer."""
    min_score: int | None = None
    summary: AuditSummary = AuditSummary()
    problems: Mapping[str, str] = {}
    """Lists that could not be read, by their method."""
    unreached: Count = 0
    """Items for which there was no time."""
    restarts: Count = 0

    def __post_init__(self) -> None:
        ReportHead.__post_init__(self)
        counts = Counter(item.health.value for item in self.items)
        erred = sum(item.answers_with_error for item in self.items)
        derive(
            self,
            tool_count=len(self.tools),
            score=_share(self.items, "passed", lost=len(self.problems)),
            tool_score=_share(self.tools, "passed"),
            answered=_share(self.items, "answers"),
            summary=AuditSummary(
                **counts,
                answers=counts[Health.HEALTHY.value] - erred,
                answers_with_errors=erred,
                findings=sum(len(item.findings) for item in self.items),
            ),
        )
        # The gate is closed by the score where one is demanded, else by any crash.
        failed = any(item.is_bad for item in self.items)
        if self.min_score is not None:
            failed = self.score is None or self.score < self.min_score
        derive(self, failed=failed or bool(self.problems or self.interrupted or self.unreached))

    @property
    def items(self) -> tuple[AuditItem, ...]:
        return (*self.tools, *self.prompts, *self.resources, *self.templates)

    @property
    def tested(self) -> tuple[AuditItem, ...]:
        return tuple(item for item in self.items if item.tested)

    @property
    def looked_at(self) -> bool:
        return bool(self.tested or self.problems)

    @property
    def code(self) -> ExitCode:
        if self.interrupted:
            return ExitCode.INTERRUPTED
        if not self.looked_at:
            return ExitCode.NOTHING_MATCHED
        return ExitCode.FAILED if self.failed else ExitCode.OK

    # -- views ---------------------------------------------------------------------------------

    @property
    def unread(self) -> Mapping[str, str]:
        return self.problems

    def found_lines(self, style: Style) -> Iterator[str]:
        shown = [one for one in self.items if one.is_bad or not style.quiet]
        for kind, title in ITEM_KINDS.items():
            rows = [_row(one, style) for one in shown if one.kind == kind]
            if rows:
                yield from ("", f"{title.capitalize()} ({len(rows)})")
                yield from row_lines(rows)

    def in_words(self) -> str:
        tested = self.tested
        if not tested:
            return f"nothing was tested: {counted(len(self.items), 'item')}, all skipped"
        passed = sum(item.passed for item in tested)
        counts = Counter(summary_word_of(item) for item in self.items if not item.passed)
        parts = [f"{count} {word}" for word, count in counts.items()]
        parts += [f"{self.unreached} not reached"] if self.unreached else []
        parts += [counted(self.restarts, "restart")] if self.restarts else []
        unread = len(self.problems)
        lists = f", {counted(unread, 'list')} not read to the end" if unread else ""
        share = f"score {self.score}% ({passed} of {len(tested)} passed{lists}){self._required()}"
        early = "interrupted, " if self.interrupted else ""
        return f"{early}{share}{': ' if parts else ''}{', '.join(parts)}"

    def _required(self) -> str:
        if self.min_score is None:
            return ""
        below = self.score is None or self.score < self.min_score
        return (
            f", below the required {self.min_score}%" if below else f", {self.min_score}% required"
        )

    def found_markdown(self) -> Iterator[str]:
        yield from markdown.table_head("| | name | result | time | |")
        for one in self.items:
            said = "; ".join(filter(None, (*one.findings, *one.notes, one.detail)))
            spent = terminal.duration(one.duration_ms) if one.tested else ""
            yield markdown.row(one.kind, one.name, word_of(one), spent, said)

    def next_steps(self) -> list[str]:
        healths = {item.health for item in self.items}
        steps = [_ERROR_STEP] if any(item.answers_with_error for item in self.items) else []
        steps += [step for health, step in _STEPS.items() if health in healths]
        if any(item.findings for item in self.items):
            steps.append("Findings: correct the tool, or its annotations and output schema.")
        steps += unsafe_step("Call", (one.detail for one in self.tools if not one.tested))
        if self.tested:
            steps.append("Write a starter test for each item: --output DIR.")
        return steps

    def as_run(self) -> RunReport:
        return self.run_of((*self.unread_results(), *map(_result, self.items)))


def unsafe_step(verb: str, reasons: Iterable[str]) -> Iterator[str]:
    """What to do about tools that were skipped since nothing says that they only read."""
    number = sum(reason != ONLY_AS_TASK for reason in reasons)
    if number:
        told = f"Skipped: {counted(number, 'tool')} not marked readOnlyHint. {verb} them with "
        yield f"{told}--allow-writes. --docker IMAGE or --fixture DIR protects your data."


def _share(items: Iterable[AuditItem], good: str, *, lost: int = 0) -> int | None:
    tested = [getattr(item, good) for item in items if item.tested]
    return sum(tested) * 100 // (len(tested) + lost) if tested else None


def broken_claims(claims: Iterable[Claim]) -> tuple[str, ...]:
    """The findings that claims give."""
    return tuple(f"{one.hint} is not true: {one.detail}" for one in claims if one.holds is False)


# -- The codes of an audit -----------------------------------------------------------------------


class AuditCode(msgspec.Struct, frozen=True, tag_field="format", tag="mcptest.audit-code/1"):
    """One code of `error_code` in the JSON of `mcptest audit`."""

    code: str
    health: Health = msgspec.field(name="status")
    title: str
    why: str
    fix: str


CODE_OF = {
    Health.HEALTHY: "E000",
    Health.CRASHED: "E201",
    Health.TIMED_OUT: "E202",
    Health.REFUSED: "E203",
    Health.PROTOCOL: "E204",
}


@loaded_once
def audit_codes() -> tuple[AuditCode, ...]:
    """Every code with its page, from `audit_codes.yml`."""
    raw = Path(__file__).with_name("audit_codes.yml").read_bytes()
    return msgspec.yaml.decode(raw, type=tuple[AuditCode, ...])


def find_audit_code(name: str) -> AuditCode | None:
    """The code of this name, in any case."""
    wanted = name.strip().upper()
    return next((one for one in audit_codes() if one.code == wanted), None)


_ERROR_STEP = (
    "Error: the item reports an error. If generated input is the reason, provide real paths with "
    "--fixture DIR. Pass what the server needs (an API key, a backend URL) with --env."
)
_STEPS = {
    Health.CRASHED: "Crashed: catch the exception inside the tool and return a result with "
    "isError: true and a message that a model can act on.",
    Health.TIMED_OUT: "Timed out: limit how long the tool waits, or raise --timeout.",
    Health.PROTOCOL: "Invalid: run mcptest compliance run to see which rule the response breaks.",
    Health.REFUSED: "Refused: the input matches the tool's schema. Restrict the schema, or return "
    "a result with isError: true.",
}
WORDS = {
    Health.HEALTHY: "passed",
    Health.CRASHED: "crashed",
    Health.TIMED_OUT: "timed out",
    Health.REFUSED: "refused",
    Health.PROTOCOL: "invalid",
    Health.SKIPPED: "skipped",
}


def word_of(item: AuditItem) -> str:
    """One word for a table."""
    if item.findings and not item.health.is_broken:
        return counted(len(item.findings), "finding")
    return "error" if item.answers_with_error else WORDS[item.health]


def summary_word_of(item: AuditItem) -> str:
    """What one of several is counted as; each item once."""
    if item.findings and not item.health.is_broken:
        return "with findings"
    words = {"error": "returned an error", "invalid": "returned an invalid response"}
    return words.get(word_of(item), word_of(item))


def _row(item: AuditItem, style: Style) -> TextRow:
    answers = style.tick if item.worked and not item.notes else style.warning
    sign = style.dash if not item.tested else style.cross if item.is_bad else answers
    spent = terminal.duration(item.duration_ms) if item.tested else ""
    said = ": ".join(filter(None, ("isError" if item.is_error else "", item.detail)))
    said = show(said, 160) or ("" if item.has_content else "the result is empty")
    below = [*remark_lines(style.cross, item.findings), *remark_lines(style.warning, item.notes)]
    for claim in item.claims if style.verbose else ():
        if claim.holds is not False:
            mark = style.tick if claim.holds else style.unsure
            below.append(f"      {mark} {claim.hint}: {show(claim.detail, 200)}")
    if item.is_bad or item.health is Health.REFUSED:
        facts = {"sent": without_boilerplate(item.sent), "received": item.received}
        below += fact_lines(facts.items(), " " * 6, style)
        below += fact_lines((("stderr", line) for line in item.stderr[-5:]), " " * 6, style, 300)
        below += fact_lines([("repeat", item.repeat)], " " * 6, style)
    return TextRow(sign, item.name, f"{word_of(item):<10}  {spent:>6}  {said}", below)


_KINDS = {Health.CRASHED: "crash", Health.TIMED_OUT: "timeout", Health.PROTOCOL: "protocol"}


def _result(item: AuditItem) -> TestResult:
    status = Status.SKIP if not item.tested else Status.FAIL if item.is_bad else Status.PASS
    failures = tuple(FailedCheck(check="audit", message=one) for one in item.findings)
    detail = item.detail
    if item.health.is_broken:
        detail = f"{WORDS[item.health]}: {detail}"
    elif failures:
        detail = failures[0].message
    proof = Proof(request=item.sent, response=item.received, stderr=item.stderr, repeat=item.repeat)
    return TestResult(
        name=f"{item.kind} {item.name}",
        status=status,
        detail=detail if status is not Status.PASS else "",
        duration_ms=item.duration_ms,
        kind=_KINDS.get(item.health, "check") if status is Status.FAIL else "",
        failures=failures,
        proof=proof if item.is_bad else None,
        note="; ".join(item.notes) or (detail if item.health is Health.REFUSED else ""),
    )
