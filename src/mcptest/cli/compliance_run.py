"""`mcptest compliance run`: judge a live server, hold the gates, write the reports."""

from __future__ import annotations

import argparse
import contextlib
import datetime
import sys
import time

from mcptest import __version__
from mcptest.cli.compliance_case import Case, case_of
from mcptest.cli.compliance_listening import listening
from mcptest.cli.compliance_options import check, corpora_of
from mcptest.cli.compliance_publish import publish
from mcptest.cli.compliance_standards import Standards, standards_of
from mcptest.cli.report_forms import captures_for_html
from mcptest.model.compliance import ComplianceReport, Judgement
from mcptest.model.errors import ExitCode, McptestError, PeerError
from mcptest.model.redaction import redaction
from mcptest.peer.connection import Stopped
from mcptest.run.compliance.order import Order
from mcptest.run.interrupt import Stop, stopping_on_signals
from mcptest.run.lanes_compliance import JudgedBlock, Tell, exit_code_for, judge_block

_INTERRUPTED = "interrupted: only what was judged by then is told here"


def judge_live(arguments: argparse.Namespace) -> int:
    check(arguments)
    wants_page = arguments.html is not None or arguments.format == "html"
    with captures_for_html(arguments, wanted=wants_page) as lent:
        return _judge_and_tell(arguments, captures_lent=lent)


def _judge_and_tell(arguments: argparse.Namespace, *, captures_lent: bool) -> int:
    case = case_of(arguments, corpora_of(arguments))
    standards = standards_of(arguments, case)
    mask = redaction.text
    # Until the reports are written: a signal must not cost them.
    with stopping_on_signals() as stop:
        try:
            report, graded = _judged(arguments, case, standards, stop)
        except McptestError as error:
            raise error.masked(mask) from None
        lost = [*standards.keep(report, graded)] if not stop.is_set() else []
        code = publish(arguments, report, lost, captures_lent=captures_lent)
    if code == ExitCode.INTERRUPTED:
        sys.stderr.write("mcptest: interrupted\n")
    elif code == ExitCode.NOTHING_MATCHED:
        sys.stderr.write("mcptest: nothing was judged: no rule was observed, and no gate asked\n")
    return code


def _judged(
    arguments: argparse.Namespace, case: Case, standards: Standards, stop: Stop
) -> tuple[ComplianceReport, Judgement | None]:
    began = time.monotonic()
    started = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    with listening(arguments) as tell:
        found, notes = _judge_all(case, standards, stop, tell)
    judgements = tuple(one for block in found for one in block.judgements)
    graded = next((block.graded for block in found if block.graded is not None), None)
    gates = tuple(gate for one in found for gate in one.gates)
    if not stop.is_set():  # half a run is not held against anything
        gates += tuple(standards.gates(judgements, graded))
    code = exit_code_for(
        judgements, gates, strict=arguments.strict, excused=standards.baseline is not None
    )
    if stop.is_set():
        code, notes = ExitCode.INTERRUPTED, [*notes, _INTERRUPTED]
    report = ComplianceReport(
        server=case.label,
        judgements=judgements,
        gates=gates,
        tool=f"mcptest {__version__}",
        started=started,
        duration_ms=round((time.monotonic() - began) * 1000),
        notes=(*case.notes, *notes, *(note for one in found for note in one.notes)),
        exit_code=code,
    )
    return report, graded


def _judge_all(
    case: Case, standards: Standards, stop: Stop, tell: Tell
) -> tuple[list[JudgedBlock], list[str]]:
    """Once for every revision that was asked for. One that fails leaves what was found before."""
    found: list[JudgedBlock] = []
    notes: list[str] = []
    unreachable: PeerError | None = None
    with contextlib.suppress(Stopped):  # what was found before it is told
        for order in case.orders(stop.is_set):
            try:
                found.append(_judge_once(case, standards, order, tell))
            except PeerError as error:
                unreachable = unreachable or error
                notes.append(f"{_named(order)} was not judged: {error.message}")
    if unreachable is not None and not any(one.judgements for one in found):
        raise unreachable
    return found, notes


def _judge_once(case: Case, standards: Standards, order: Order | None, tell: Tell) -> JudgedBlock:
    return judge_block(
        case.block,
        order,
        tell,
        corpora=case.corpora,
        before=standards.before,
        needs_grade=standards.needs_grade,
    )


def _named(order: Order | None) -> str:
    return "the server" if order is None or order.revision is None else order.revision.label
