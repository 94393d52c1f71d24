"""From what was captured of a client to rows: the scenario's checks, the rules, and how it ended.

Pure. A capture that was kept is judged again by the same functions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from mcptest.clients.by_rules import rows_by_rules
from mcptest.clients.negotiation import speaks_only, was_denied
from mcptest.clients.scenario import Scenario, judged
from mcptest.clients.seen import Seen
from mcptest.model.capture import AnyRecord, Closed, Frame, HttpRequest, Opened, Trouble
from mcptest.model.conformance import CheckResult, Ended, Status
from mcptest.model.revision import Revision
from mcptest.model.show import show
from mcptest.transport.process import signal_name

CLIENT_EXIT = "client-exit"
CLIENT_SPOKE = "client-spoke"
CAPTURE_COMPLETE = "capture-complete"
SERVER_LAUNCHED = "server-launched"
_TAIL = 3
"""Lines of a client's stderr that are told where it never got to the point."""
_WORST = (
    Status.FAILURE,
    Status.WARNING,
    Status.UNTESTABLE,
    Status.SKIPPED,
    Status.SUCCESS,
    Status.INFO,
)


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """All that there is to judge a client by, in one scenario."""

    records: Sequence[AnyRecord]
    revision: Revision
    transport: str
    urls: dict[str, str] = {}
    endpoint: str = "/mcp"
    context: dict[str, Any] = {}
    ended: Ended | None = None
    """None when nobody knows: the capture was kept, and the client is long gone."""
    was_settled: bool = False
    launched: bool = True
    unwritten: str = ""
    """Why the capture could not be written, if it could not."""
    mode: str = "probe"
    claims: frozenset[str] = frozenset()
    offered: tuple[Revision, ...] = ()
    is_demanded: bool = True
    """Somebody asked for this revision. Otherwise it is the newest that the client speaks, and a
    scenario that it speaks in no revision says nothing about it."""
    stderr: str = ""
    """The last of what the client wrote, without secrets."""


class Judged(msgspec.Struct, frozen=True):
    """Every row on a client in a scenario, and why it never got there, if it did not."""

    rows: tuple[CheckResult, ...]
    unreached: str = ""


def judge_client(scenario: Scenario, evidence: Evidence, timeout: float) -> Judged:
    seen = _seen(evidence, evidence.records)
    why = speaks_only(seen)
    if why:
        failed = evidence.is_demanded and not was_denied(seen)
        status = Status.FAILURE if failed else Status.UNTESTABLE
        rows = tuple(_not_spoken(scenario, seen.revision, status, why))
        return Judged(rows, why if failed else "")
    own = tuple(judged(scenario, seen))
    how = exit_row(scenario, evidence, timeout) if evidence.ended is not None else None
    rows = (*own, *_other_rows(evidence), *([how] if how is not None else []))
    broke_off = how is not None and how.status is Status.FAILURE
    return Judged(rows, _unreached(own, evidence, seen, timeout, broke_off=broke_off))


def _not_spoken(
    scenario: Scenario, revision: Revision, status: Status, why: str
) -> Iterator[CheckResult]:
    for check in scenario.checks:
        if check.revisions is None or revision in check.revisions:
            yield CheckResult(
                id=check.id,
                name=check.title,
                description=check.description,
                status=status,
                message=why,
                references=check.references,
                unseen=True,
            )


def _other_rows(evidence: Evidence) -> Iterator[CheckResult]:
    yield from _rows_by_rules(evidence)
    if not evidence.launched:
        yield _never_launched()
    elif not any(_is_of_the_client(record) for record in evidence.records):
        yield _said_nothing(evidence.transport)
    yield from _rows_on_the_capture(evidence)


def _unreached(
    own: Sequence[CheckResult],
    evidence: Evidence,
    seen: Seen,
    timeout: float,
    *,
    broke_off: bool,
) -> str:
    """One cause instead of a list of what was not seen."""
    unseen = [row for row in own if row.unseen and row.status is Status.FAILURE]
    got_there = any(row.status is Status.SUCCESS for row in own)
    if not unseen or (got_there and not broke_off):
        return ""
    sent = [one.method for one in seen.said if one.sender == "client" and one.method]
    if not evidence.launched:
        parts = ["the client did not launch the server"]
    elif not sent:
        parts = [_what_it_sent_instead(evidence.records)]
    else:
        parts = [unseen[0].message, f"the last that it sent was {show(sent[-1], 80)}"]
    if evidence.ended is not None:
        parts.append(_how_it_ended(evidence, timeout) or "it ended with exit code 0")
    lines = [line.strip() for line in evidence.stderr.splitlines() if any(map(str.isalpha, line))]
    parts += [f"its stderr ends: {show(' | '.join(lines[-_TAIL:]), 400)}"] if lines else []
    return "; ".join(parts)


def _what_it_sent_instead(records: Sequence[AnyRecord]) -> str:
    """Of a client that sent no message."""
    trouble = next((one for one in records if isinstance(one, Trouble)), None)
    if trouble is None:
        return "the client sent nothing"
    return f"the client sent no message: {show(trouble.detail, 200)}"


def _seen(evidence: Evidence, records: Sequence[AnyRecord]) -> Seen:
    return Seen(
        records,
        revision=evidence.revision,
        transport=evidence.transport,
        urls=evidence.urls,
        ended=evidence.ended,
        context=evidence.context,
        mode=evidence.mode,
        claims=evidence.claims,
        endpoint=evidence.endpoint,
        offered=evidence.offered,
    )


def _rows_by_rules(evidence: Evidence) -> Iterator[CheckResult]:
    """By session: a client that launches its server twice uses its ids twice."""
    worst: dict[tuple[str, str], CheckResult] = {}
    for offset, records in _sessions(evidence.records):
        for row in rows_by_rules(_seen(evidence, records)):
            placed = row if row.record is None else replace(row, record=row.record + offset)
            known = worst.setdefault((row.id, row.name), placed)
            if _WORST.index(placed.status) < _WORST.index(known.status):
                worst[row.id, row.name] = placed
    yield from worst.values()


def _sessions(records: Sequence[AnyRecord]) -> Iterator[tuple[int, Sequence[AnyRecord]]]:
    begins = [place for place, record in enumerate(records) if isinstance(record, Opened)]
    if len(begins) < 2:
        yield 0, records
        return
    for begin, end in zip(begins, [*begins[1:], len(records)], strict=True):
        yield begin, records[begin:end]


def _rows_on_the_capture(evidence: Evidence) -> Iterator[CheckResult]:
    """What was not kept was not judged: that is never passed over."""
    ends = [record for record in evidence.records if isinstance(record, Closed)]
    dropped = sum(end.dropped for end in ends)
    if dropped:
        message = f"{dropped} records were too many to be kept, and could not be judged"
        yield _on_the_capture(Status.FAILURE, message)
    elif evidence.unwritten:
        message = f"the capture could not be written: {evidence.unwritten}"
        yield _on_the_capture(Status.WARNING, message)


def _on_the_capture(status: Status, message: str) -> CheckResult:
    return CheckResult(
        id=CAPTURE_COMPLETE,
        name="CaptureComplete",
        description="all that went over the wire is kept",
        status=status,
        message=message,
    )


def _is_of_the_client(record: AnyRecord) -> bool:
    return isinstance(record, HttpRequest) or (
        isinstance(record, Frame) and record.sender == "client"
    )


def _never_launched() -> CheckResult:
    return CheckResult(
        id=SERVER_LAUNCHED,
        name="ServerLaunched",
        description="the client launches the server that it was given",
        status=Status.FAILURE,
        message="no launch of the server was seen; its command is in the last arguments and, "
        "as a JSON array, in MCP_CONFORMANCE_SERVER_COMMAND",
    )


def _said_nothing(transport: str) -> CheckResult:
    to = "launched the server and sent it nothing" if transport == "stdio" else "sent no request"
    return CheckResult(
        id=CLIENT_SPOKE,
        name="ClientSpoke",
        description="the client talks to the server",
        status=Status.FAILURE,
        message=f"the client {to}: nothing could be observed",
    )


def exit_row(scenario: Scenario, evidence: Evidence, timeout: float = 0.0) -> CheckResult:
    """How the client ended. The official suite counts that only for a single scenario."""
    ended = evidence.ended or Ended()
    status, message = Status.FAILURE, _how_it_ended(evidence, timeout)
    by_itself = ended.signal is None and not ended.timed_out and not evidence.was_settled
    if evidence.was_settled and not ended.timed_out:
        status = Status.INFO
    elif by_itself and ended.code == 0:
        status = Status.SUCCESS
    elif by_itself and scenario.client_may_fail:
        status = Status.SUCCESS
        message = f"exit code {ended.code} is fine here: the right thing was to give up"
    return CheckResult(
        id=CLIENT_EXIT,
        name="ClientExit",
        description="the client ends by itself, in time, and with exit code 0",
        status=status,
        message=message,
    )


def _how_it_ended(evidence: Evidence, timeout: float) -> str:
    """Empty for a client that ended by itself with exit code 0."""
    ended = evidence.ended or Ended()
    if ended.timed_out:
        return (
            f"the client did not end within {timeout:g} s, and its whole process group was ended; "
            "--timeout gives it longer"
        )
    if evidence.was_settled:
        return "the client stayed after all was done, and was ended"
    if ended.signal is not None:
        return f"the client was ended by {signal_name(ended.signal)}"
    return "" if ended.code == 0 else f"the client exited with code {ended.code}"
