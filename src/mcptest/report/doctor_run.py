"""What a doctor found as the results of a run, for whatever reads those: JUnit first of all."""

from __future__ import annotations

from mcptest.model.doctor import Diagnosis, DoctorReport, Verdict
from mcptest.model.results import FailedCheck, Proof, RunReport, Status, TestResult

_STATUS = {
    Verdict.BREAKS: Status.FAIL,
    Verdict.READY: Status.PASS,
    Verdict.NOT_USED: Status.SKIP,
    Verdict.UNKNOWN: Status.SKIP,
}


def doctor_as_run(report: DoctorReport) -> RunReport:
    return RunReport(
        results=tuple(_result(one, report) for one in report.items),
        tool=report.tool,
        duration_ms=report.duration_ms,
        notes=report.notes,
    )


def _result(item: Diagnosis, report: DoctorReport) -> TestResult:
    status = Status.FAIL if item.unchecked else _STATUS[item.verdict]
    failed = status is Status.FAIL
    first = item.evidence[0] if item.evidence else None
    proof = Proof(request=first.sent, response=first.received) if first is not None else None
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
