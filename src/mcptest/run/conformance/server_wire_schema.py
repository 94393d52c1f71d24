"""The check that every scenario has: whatever the server sent has the shape of its revision."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from mcptest.model.capture import AnyRecord, Frame, TransportName
from mcptest.model.conformance import CheckResult, Reference, Status
from mcptest.model.message import Kind, Problem
from mcptest.model.revision import Revision
from mcptest.model.show import show
from mcptest.rules.declare import specification_url
from mcptest.rules.session import NO_MESSAGE, Mismatch, Session, Step, steps_of
from mcptest.schema.shapes import problems_if_known
from mcptest.wire.envelope import answer_problems, is_tolerable
from mcptest.wire.session_source import SessionSource

WIRE_SCHEMA = "wire-schema-valid"
_TOLD = 5
_EXCERPT = 400


class Span(msgspec.Struct, frozen=True):
    """What went over one connection during a scenario."""

    records: Sequence[AnyRecord]
    begins: int
    transport: TransportName | None


def wire_schema_row(spans: Sequence[Span], revision: Revision) -> CheckResult | None:
    """None when the server sent nothing: what only we sent says nothing of it."""
    said = [step for span in spans for step in _said(span, revision)]
    if not said:
        return None
    wrong = [(step, problem) for step in said for problem in _problems(step, revision)]
    status = Status.FAILURE if wrong else Status.SUCCESS
    if not wrong:
        wrong = [(step, doubt) for step in said for doubt in _doubts(step, revision)]
        status = Status.WARNING if wrong else status
    first = wrong[0][0] if wrong else None
    messages = [problem for _, problem in wrong[:_TOLD]]
    if len(wrong) > _TOLD:
        messages.append(f"and {len(wrong) - _TOLD} more")
    return CheckResult(
        id=WIRE_SCHEMA,
        name="WireSchemaValid",
        description="every message of the server has the shape of the revision",
        status=status,
        message="; ".join(messages),
        record=None if first is None else first.place + 1,
        excerpt="" if first is None else show(_bytes_of(first), _EXCERPT),
        details={"messages": len(said)},
        references=(Reference("MCP-Schema", specification_url("schema", revision)),),
    )


def _bytes_of(step: Step) -> bytes:
    return step.record.raw if isinstance(step.record, Frame) else step.message.raw


def _said(span: Span, revision: Revision) -> Iterator[Step]:
    """Every message of the server, with the request that it answers."""
    source = SessionSource(
        label="",
        file="",
        form="full",
        records=iter(enumerate(span.records[span.begins :], span.begins)),
        transport=span.transport,
        spec_version=revision.value,
    )
    for step in steps_of(source, Session(source, revision)):
        is_line = span.transport == "stdio" and type(step.record) is Frame
        if step.sender == "server" and (is_line or step.message is not NO_MESSAGE):
            yield step


def _faults_of_form(step: Step, revision: Revision) -> Iterator[Problem]:
    """What is wrong with it as JSON text and as a message; what JSON allows is no fault of form."""
    if step.in_batch:  # its text is that of the whole
        return
    for problem in answer_problems(step.message, revision):
        if not is_tolerable(problem):
            yield problem


def _doubts(step: Step, revision: Revision) -> Iterator[str]:
    """What fails nothing, and is worth a word: see docs/answers.md."""
    what = show(step.method or step.kind.value, 80)
    if step.mismatch is Mismatch.AGAIN:
        yield f"{what}: {step.mismatch.value}"
    elif step.message.is_answer and not step.in_batch:
        for problem in answer_problems(step.message, revision):
            yield f"{what}: {show(problem.reason, 200)}"


def _problems(step: Step, revision: Revision) -> Iterator[str]:
    if step.message is NO_MESSAGE:
        yield "a line on stdout is no message"
        return
    if step.kind is Kind.BATCH:
        if revision is not Revision.V2025_03_26:
            yield "messages come in an array, which the revision does not have"
        return
    for fault in _faults_of_form(step, revision):
        yield f"{show(step.method or step.kind.value, 80)}: {show(fault.reason, 200)}"
        return
    if step.kind is Kind.INVALID:
        return
    asked = step.method if step.kind is Kind.RESULT else None
    found = problems_if_known(step.message.value, step.kind, step.sender, revision, asked)
    for problem in found or ():
        what = show(step.method or step.kind.value, 80)
        actual = show(problem.actual, 120)
        yield f"{what}: {show(problem.pointer, 120)} is {actual}, not {problem.expected}"
