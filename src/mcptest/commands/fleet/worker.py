"""The process that judges one server: `python -m mcptest.commands.fleet.worker`.

Its order comes on stdin, which then stays open: at its end whoever started us is gone, and so are
we, with everything that we started. What is found goes to stdout, one line for each thing.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from mcptest.commands.fleet.worker_pool import (
    FleetServerOrder,
    Found,
    OfferedNames,
    WorkerFinished,
    WorkerProgress,
    encoded,
)
from mcptest.core.errors import ExitCode, McptestError, PeerError
from mcptest.core.judgement import Event, RuleJudged
from mcptest.core.limits import time_to_end
from mcptest.core.masking import Masker
from mcptest.core.redaction import redaction
from mcptest.core.results import made_since
from mcptest.core.revision import parse_revision
from mcptest.core.safe_text import show
from mcptest.probe.audit_run import Audit, AuditOrder
from mcptest.probe.compliance.judging import judge_server
from mcptest.probe.compliance.site import Order
from mcptest.probe.live_server import Subject
from mcptest.report.compliance.compliance_report import ComplianceReport
from mcptest.report.fleet import FleetServer, ServerOutcome
from mcptest.rules.grading import exit_code_for, min_grade_gate
from mcptest.session.connection import Stopped
from mcptest.session.pages import Offer
from mcptest.transport.interrupt import end_everything

# -- The unit of work of a fleet -----------------------------------------------------------------

Tell = Callable[[str], None]
_MOST_NAMES = 10_000
_LONGEST_NAME = 300


def judge_one(
    order: FleetServerOrder, tell: Tell, keep: Callable[[Found], None] = lambda found: None
) -> Found:
    """Whatever the server does is in what is found. What was found before the limit stands.

    `keep` hears of what was found so far, for whoever may not wait for the end of it.
    """
    begun = time.monotonic()
    limit = _Limit((order.until or begun + order.limit) - time_to_end(order.limit))
    found = Found.nothing(order.name, ServerOutcome.NOT_JUDGED, "")
    row, masker = found.server, redaction.masker
    try:
        row = replace(row, compliance=_judged(order, tell, limit.is_over))
        keep(_without_secrets(Found(row), masker))
        if not limit.is_over():
            found = _audited(order, row, tell, limit.is_over)
            row = with_outcome(found.server)
    except Stopped:  # by the limit, which is told below
        row = replace(row, reason="nothing was found")
    except McptestError as error:
        reached = ServerOutcome.NOT_JUDGED
        outcome = ServerOutcome.UNREACHABLE if isinstance(error, PeerError) else reached
        said = error.masked(masker.cut_text)
        row = replace(row, outcome=outcome, reason=said.message, hint=said.hint)
    if limit.was_noticed:
        row = replace(
            row,
            outcome=ServerOutcome.NOT_JUDGED,
            reason=f"not judged to the end within {order.limit:g}s",
            hint="raise --server-timeout",
        )
    spent = round((time.monotonic() - begun) * 1000)
    return _without_secrets(Found(replace(row, duration_ms=spent), found.offered), masker)


def with_outcome(row: FleetServer) -> FleetServer:
    """A server that was not judged and audited to the end is never passed."""
    code = row.compliance.exit_code if row.compliance is not None else ExitCode.NOTHING_MATCHED
    outcome, reason = ServerOutcome.PASSED, ""
    if code == ExitCode.NOTHING_MATCHED:
        outcome, reason = ServerOutcome.NOT_JUDGED, "no rule was observed"
    elif row.audit is None:
        outcome, reason = ServerOutcome.FAILED, "not audited"
    elif code != ExitCode.OK or row.audit.failed:
        outcome = ServerOutcome.FAILED
    return replace(row, outcome=outcome, reason=row.reason or reason)


class _Limit:
    """The end of the time for one server."""

    def __init__(self, until: float) -> None:
        self._until = until
        self.was_noticed = False
        """Whether anyone was stopped by it: what is done before that is whole."""

    def is_over(self) -> bool:
        if time.monotonic() >= self._until:
            self.was_noticed = True
        return self.was_noticed


# -- judged by the specification ---------------------------------------------------------------


def _judged(order: FleetServerOrder, tell: Tell, is_over: Callable[[], bool]) -> ComplianceReport:
    begun = time.monotonic()

    def told(event: Event) -> None:
        if isinstance(event, RuleJudged):
            tell(f"{event.done} of {event.total} rules")

    judgement = judge_server(
        Order(
            target=order.target,
            revision=parse_revision(order.revision) if order.revision else None,
            timeout=order.timeout,
            startup=order.startup,
            captures=_folder(order, "compliance"),
            repeat=order.repeat_compliance,
            should_stop=is_over,
        ),
        told,
    )
    gates = () if not order.min_grade else (min_grade_gate(order.min_grade, judgement),)
    return ComplianceReport(
        server=order.name,
        judgements=(judgement,),
        gates=gates,
        exit_code=exit_code_for((judgement,), gates, strict=order.strict),
        **made_since(begun),
    )


def _folder(order: FleetServerOrder, kind: str) -> Path | None:
    if not order.captures:
        return None
    folder = Path(order.captures) / kind
    folder.mkdir(parents=True, exist_ok=True)
    return folder


# -- audited -----------------------------------------------------------------------------------


def _audited(
    order: FleetServerOrder, row: FleetServer, tell: Tell, is_over: Callable[[], bool]
) -> Found:
    """The audit beside the judgement. A server that can't be met again keeps its judgement."""
    judged = row.judgement
    assert judged is not None  # else there is nothing to stand beside
    subject = Subject(
        order.target,
        revision=judged.revision,
        because=judged.revision_reason,
        timeout=order.audit_timeout,
        startup=order.startup,
        captures=_folder(order, "audit"),
        should_stop=is_over,
    )
    wanted = AuditOrder(
        timeout=order.audit_timeout, min_score=order.min_score, repeat=order.repeat_audit
    )
    audit = Audit(subject, wanted)
    try:
        with subject:
            total = audit.meet()
            for number, _ in enumerate(audit.items(), 1):
                tell(f"{number} of {total} items called")
    except PeerError as error:
        said = error.masked(subject.masker.cut_text)
        return Found(replace(row, reason=f"not audited: {said.message}", hint=said.hint))
    except Stopped:
        return Found(row)
    report = replace(audit.report(), server=order.name)
    return Found(replace(row, audit=report), names_of(audit.offer))


def names_of(offer: Offer) -> OfferedNames:
    """What is compared with other servers: the names, as many as can be kept."""
    kept: list[tuple[str, ...]] = []
    left_out = 0
    for part, member in (("tools", "name"), ("prompts", "name"), ("resources", "uri")):
        names = dict.fromkeys(offer.names(part, member))
        short = tuple(name for name in names if len(name) <= _LONGEST_NAME)[:_MOST_NAMES]
        left_out += len(names) - len(short)
        kept.append(short)
    tools, prompts, resources = kept
    return OfferedNames(tools, prompts, resources, left_out)


# -- what may be told --------------------------------------------------------------------------

_OUR_WORDS = frozenset(
    {"format", "health", "id", "kind", "outcome", "revision"}
    | {"section", "severity", "transport", "letter", "grade", "tool", "started", "corpus"}
)
"""Members whose values are ours: a secret that is spelled like one of them does not change them."""


def _without_secrets(found: Found, masker: Masker) -> Found:
    """Also in what a server says of itself, in names and in descriptions."""
    if masker.idle:
        return found
    masked = msgspec.convert(_masked(msgspec.to_builtins(found), masker), Found)
    return replace(masked, server=replace(masked.server, name=found.server.name))


def _masked(value: Any, masker: Masker) -> Any:
    if isinstance(value, str):
        return masker.text(value)
    if isinstance(value, list | tuple):
        return [_masked(one, masker) for one in value]
    if isinstance(value, dict):
        return {
            key: one if key in _OUR_WORDS and isinstance(one, str) else _masked(one, masker)
            for key, one in value.items()
        }
    return value


# -- The process that judges one server ----------------------------------------------------------

_BETWEEN_NEWS = 0.2


def main() -> int:
    out = os.dup(1)
    os.dup2(2, 1)  # whatever else writes to stdout writes to stderr
    told = b""
    while b"\n" not in told:
        chunk = os.read(0, 1 << 20)
        if not chunk:
            return ExitCode.INTERRUPTED  # whoever started us changed their mind
        told += chunk
    order = msgspec.json.decode(told, type=FleetServerOrder)
    signal.signal(signal.SIGTERM, lambda number, frame: _leave())

    def leave_when_alone() -> None:
        while os.read(0, 4096):
            pass  # nothing is said after the order
        _leave()

    threading.Thread(target=leave_when_alone, daemon=True).start()

    def keep(found: Found) -> None:
        _write(out, encoded(WorkerFinished(found, is_all=False)))

    _write(out, encoded(WorkerFinished(_found(order, _telling(out), keep))))
    return ExitCode.OK


def _found(order: FleetServerOrder, tell: Tell, keep: Callable[[Found], None]) -> Found:
    try:
        return judge_one(order, tell, keep)
    except Exception as error:  # noqa: BLE001 - a defect of ours costs one server, and is said
        said = f"a defect of mcptest: {type(error).__name__}: {show(str(error), 300)}"
        reason = redaction.masker.cut_text(said)
        return Found.nothing(order.name, ServerOutcome.NOT_JUDGED, reason)


def _telling(out: int) -> Callable[[str], None]:
    """News, but not more of it than anyone reads. Several lanes of judging may tell at once."""
    turn = threading.Lock()
    next_at = 0.0

    def tell(text: str) -> None:
        nonlocal next_at
        with turn:
            now = time.monotonic()
            if now < next_at:
                return
            next_at = now + _BETWEEN_NEWS
            _write(out, encoded(WorkerProgress(text)))

    return tell


def _write(out: int, data: bytes) -> None:
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(out, view) :]
    except BrokenPipeError:  # nobody wants to know any more
        _leave()


def _leave() -> None:
    end_everything()
    os._exit(ExitCode.INTERRUPTED)


if __name__ == "__main__":
    sys.exit(main())
