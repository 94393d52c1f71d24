"""One test on one session: setup, block, verdict, proof."""

from __future__ import annotations

import time
from functools import partial
from typing import Any, Self

from mcptest.model.deadline import Deadline
from mcptest.model.masking import Masker
from mcptest.model.results import FailedCheck, Proof, Status, TestResult
from mcptest.model.show import show
from mcptest.peer.connection import NOTHING_CAME
from mcptest.run.blocks import CallUnderWay, Stage, begin_call, perform, run_setup
from mcptest.run.call_failed import CallFailed
from mcptest.run.disk import open_file
from mcptest.run.server_session import ServerSession
from mcptest.run.settings import Numbered, Settings
from mcptest.suite.failure import Evaluation
from mcptest.suite.model import ToolBlock, TrajectoryBlock
from mcptest.suite.templates import fill_block, variables_of

_SHOWN = 600
_LOOKED_AT = 64 * 1024
"""How much of a peer's text is searched for secrets before it is cut to what is shown."""


def skipped(item: Numbered, reason: str) -> TestResult:
    return _result(item, Status.SKIP, detail=reason)


class Attempt:
    """One test on a session that was launched. With `begin`, its call may share the line."""

    def __init__(self, item: Numbered, session: ServerSession, settings: Settings) -> None:
        self.item = item
        self.session = session
        self._settings = settings
        self._started = time.monotonic()
        self._deadline = Deadline.after(item.test.timeout or settings.timeout)
        self._stage: Stage | None = None
        self._under_way: CallUnderWay | None = None
        self._failed: CallFailed | None = None
        settings.on_begin(item)

    @property
    def is_answered(self) -> bool:
        """Whether `finish` has all it needs."""
        return self._under_way is not None and self._under_way.is_answered

    @property
    def could_not_begin(self) -> bool:
        return self._failed is not None

    @property
    def has_lost_the_server(self) -> bool:
        """After `finish`: whether it was the connection that failed."""
        return self._failed is not None and self._failed.lost

    def begin(self) -> Self:
        """Send a plain call, so that others can be sent before it is answered."""
        try:
            block = fill_block(self.item.test.block, variables_of(self.session.fixture, {}))
            assert isinstance(block, ToolBlock)
            self._under_way = begin_call(block, self._take_stage())
        except CallFailed as failed:
            self._failed = failed
        return self

    def finish(self) -> TestResult:
        try:
            evaluation = self._evaluate()
        except CallFailed as failed:
            self._failed = failed
            detail = failed.detail + self._what_came_before(failed)
            return self._failure(detail, failed.kind, ())
        if evaluation.passed:
            return self._pass()
        detail = "\n".join(failure.message for failure in evaluation.failures)
        return self._failure(detail, "check", _checks(evaluation, self.session.masker))

    def _take_stage(self) -> Stage:
        served = self.session.connect(self._deadline)
        self._stage = Stage(
            served.client,
            self._deadline,
            all_failures=self._settings.all_failures,
            output_schemas=self.session.output_schemas,
            lenient=self._settings.lenient,
        )
        opinion = self._settings.second_opinion
        if opinion is not None:
            self._stage.second_opinion = partial(opinion, self.item, self.session)
        self._stage.listen()
        return self._stage

    def _evaluate(self) -> Evaluation:
        if self._failed is not None:
            raise self._failed
        if self._under_way is not None:
            return self._under_way.finish()
        test, fixture = self.item.test, self.session.fixture
        stage = self._take_stage()
        captured = run_setup(test.setup, stage, fixture)
        return perform(fill_block(test.block, variables_of(fixture, captured)), stage)

    def _what_came_before(self, failed: CallFailed) -> str:
        """A server that ended most often said why, if only with half a line."""
        served = self.session.served
        if failed.kind != "crash" or served is None:
            return ""
        came = served.client.connection.what_came_instead()
        return "" if came == NOTHING_CAME else f"\n  before that, {came}"

    def _pass(self) -> TestResult:
        kept = self._settings.proof_of_passes
        proof = _proof(self.session, self._stage, "") if kept else None
        return _result(
            self.item,
            Status.PASS,
            begin=self._started,
            session=self.session,
            proof=proof,
            remarks=self._remarks(),
        )

    def _remarks(self) -> tuple[str, ...]:
        said = (*self.session.remarks, *(self._stage.remarks if self._stage is not None else ()))
        return tuple(self.session.masker.cut_text(one) for one in dict.fromkeys(said))

    def _failure(self, detail: str, kind: str, checks: tuple[FailedCheck, ...]) -> TestResult:
        return _result(
            self.item,
            Status.FAIL,
            begin=self._started,
            session=self.session,
            detail=self.session.masker.cut_text(detail),
            kind=kind,
            failures=checks,
            proof=_proof(self.session, self._stage, self._settings.repeat(self.item)),
            remarks=self._remarks(),
        )


def check_trace(item: Numbered, settings: Settings) -> TestResult:
    """A trajectory needs no server."""
    from mcptest.suite.trajectory import AuditLogError, check_trajectory, read_audit_log

    begin = time.monotonic()
    block = item.test.block
    assert isinstance(block, TrajectoryBlock)
    fixture = str(settings.fixture) if settings.fixture is not None else ""
    block = fill_block(block, variables_of(fixture, {}))
    assert isinstance(block, TrajectoryBlock)
    try:
        trace = block.trace
        if block.audit_log:
            with open_file(block.audit_log) as lines:
                trace = read_audit_log(lines)
    except (OSError, AuditLogError) as error:
        return _result(
            item,
            Status.FAIL,
            begin=begin,
            detail=f"audit_log: {show(str(error), 300)}",
            kind="call",
        )
    evaluation = check_trajectory(block.checks, trace, all_failures=settings.all_failures)
    if evaluation.passed:
        return _result(item, Status.PASS, begin=begin)
    detail = "\n".join(failure.message for failure in evaluation.failures)
    return _result(
        item,
        Status.FAIL,
        begin=begin,
        detail=detail,
        kind="check",
        failures=_checks(evaluation, Masker()),
        proof=Proof(repeat=settings.repeat(item)),
    )


def broken(item: Numbered, error: Exception) -> TestResult:
    """A defect of ours: said as one, and never a pass."""
    detail = f"internal error of mcptest: {type(error).__name__}: {show(str(error), 300)}"
    return _result(item, Status.FAIL, detail=detail, kind="internal")


def _checks(evaluation: Evaluation, masker: Masker) -> tuple[FailedCheck, ...]:
    return tuple(
        FailedCheck(
            check=failure.check,
            message=masker.cut_text(failure.message),
            expected=_words(failure.expected, masker),
            actual=_words(failure.actual, masker),
            pointer=masker.text(failure.pointer) or None,
        )
        for failure in evaluation.failures
    )


def _words(value: Any, masker: Masker) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str | bytes):
        import json

        value = json.dumps(value, ensure_ascii=False, default=repr)
    return _safe(value, masker)


def _safe(text: str | bytes, masker: Masker, limit: int = _SHOWN) -> str:
    """Hide what is secret, then cut: half a secret would not be recognised."""
    text = text[:_LOOKED_AT]
    if isinstance(text, bytes):
        text = text.decode("utf-8", "backslashreplace")
    return show(masker.cut_text(text), limit)


def _proof(session: ServerSession, stage: Stage | None, repeat: str) -> Proof:
    served, masker = session.served, session.masker
    if served is None:
        return Proof(repeat=repeat)
    witness = served.witness
    request, response = witness.last_request, witness.last_answer
    if stage is not None and stage.exchange is not None:
        identifier, response = stage.exchange
        request = witness.request_with(identifier) or request
    exited = witness.exited
    how = ""
    if exited is not None and not exited.after:
        how = f"exit code {exited.code}" if exited.signal is None else f"signal {exited.signal}"
    recorder = witness.recorder
    return Proof(
        request=_safe(request, masker),
        response=_safe(response, masker),
        stderr=tuple(_safe(line, masker, 300) for line in list(witness.stderr)),
        exit=how,
        repeat=masker.text(repeat),
        capture=str(recorder.path) if recorder is not None else "",
    )


def _result(
    item: Numbered,
    status: Status,
    *,
    begin: float | None = None,
    session: ServerSession | None = None,
    detail: str = "",
    kind: str = "",
    failures: tuple[FailedCheck, ...] = (),
    proof: Proof | None = None,
    remarks: tuple[str, ...] = (),
) -> TestResult:
    test = item.test
    client = session.served.client if session is not None and session.served else None
    met = client.met if client is not None and client.has_begun else None
    return TestResult(
        name=test.name,
        status=status,
        detail=detail,
        duration_ms=round((time.monotonic() - begin) * 1000) if begin is not None else 0,
        language=item.language,
        trial=item.trial,
        file=test.place.file,
        line=test.place.line,
        kind=kind,
        failures=failures,
        proof=proof,
        tags=test.tags,
        server=session.label if session is not None else "",
        revision=str(met.revision) if met is not None else "",
        revision_reason=session.masker.text(met.reason) if session and met is not None else "",
        note="; ".join(filter(None, (session.note if session is not None else "", *remarks))),
    )
