"""The check that every scenario has: whatever the server sent has the shape of its revision."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from mcptest.model.capture import AnyRecord, TransportName
from mcptest.model.conformance import CheckResult, Reference, Status
from mcptest.model.message import Kind
from mcptest.model.revision import Revision
from mcptest.model.show import show
from mcptest.rules.declare import specification_url
from mcptest.rules.session import NO_MESSAGE, Session, Step, steps_of
from mcptest.schema.shapes import problems_if_known
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
    first = wrong[0][0] if wrong else None
    messages = [problem for _, problem in wrong[:_TOLD]]
    if len(wrong) > _TOLD:
        messages.append(f"and {len(wrong) - _TOLD} more")
    return CheckResult(
        id=WIRE_SCHEMA,
        name="WireSchemaValid",
        description="every message of the server has the shape of the revision",
        status=Status.FAILURE if wrong else Status.SUCCESS,
        message="; ".join(messages),
        record=None if first is None else first.place + 1,
        excerpt="" if first is None else show(first.message.raw, _EXCERPT),
        details={"messages": len(said)},
        references=(Reference("MCP-Schema", specification_url("schema", revision)),),
    )


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
        if step.sender == "server" and step.message is not NO_MESSAGE:
            yield step


def _problems(step: Step, revision: Revision) -> Iterator[str]:
    if step.kind is Kind.BATCH:
        if revision is not Revision.V2025_03_26:
            yield "messages come in an array, which the revision does not have"
        return
    if step.kind is Kind.INVALID:
        yield from (f"{show(one.reason, 200)}" for one in step.message.problems[:1])
        return
    asked = step.method if step.kind is Kind.RESULT else None
    found = problems_if_known(step.message.value, step.kind, step.sender, revision, asked)
    for problem in found or ():
        what = show(step.method or step.kind.value, 80)
        actual = show(problem.actual, 120)
        yield f"{what}: {show(problem.pointer, 120)} is {actual}, not {problem.expected}"
