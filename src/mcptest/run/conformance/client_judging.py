"""From what was captured of a client to rows: the scenario's checks, the rules, and how it ended.

Pure. A capture that was kept is judged again by the same functions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from mcptest.clients.by_rules import rows_by_rules
from mcptest.clients.scenario import Scenario, judged
from mcptest.clients.seen import Seen
from mcptest.model.capture import AnyRecord, Closed, Frame, HttpRequest, Opened
from mcptest.model.conformance import CheckResult, Ended, Status
from mcptest.model.revision import Revision
from mcptest.transport.process import signal_name

CLIENT_EXIT = "client-exit"
CLIENT_SPOKE = "client-spoke"
CAPTURE_COMPLETE = "capture-complete"
SERVER_LAUNCHED = "server-launched"
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


def rows_of(scenario: Scenario, evidence: Evidence, timeout: float) -> Iterator[CheckResult]:
    """Every row on this client in this scenario."""
    yield from judged(scenario, _seen(evidence, evidence.records))
    yield from _rows_by_rules(evidence)
    if not evidence.launched:
        yield _never_launched()
    elif not any(_is_of_the_client(record) for record in evidence.records):
        yield _said_nothing(evidence.transport)
    yield from _rows_on_the_capture(evidence)
    if evidence.ended is not None:
        yield exit_row(scenario, evidence.ended, evidence.was_settled, timeout)


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


def exit_row(
    scenario: Scenario, ended: Ended, was_settled: bool, timeout: float = 0.0
) -> CheckResult:
    """How the client ended. The official suite counts that only for a single scenario."""
    status, message = Status.FAILURE, ""
    if ended.timed_out:
        message = f"the client did not end within {timeout:g} s; its whole process group was ended"
    elif was_settled:
        status = Status.INFO
        message = "the client stayed after all was done, and was ended"
    elif ended.signal is not None:
        message = f"the client was ended by {signal_name(ended.signal)}"
    elif ended.code == 0:
        status = Status.SUCCESS
    elif scenario.client_may_fail:
        status = Status.SUCCESS
        message = f"exit code {ended.code} is fine here: the right thing was to give up"
    else:
        message = f"the client exited with code {ended.code}"
    return CheckResult(
        id=CLIENT_EXIT,
        name="ClientExit",
        description="the client ends by itself, in time, and with exit code 0",
        status=status,
        message=message,
    )
