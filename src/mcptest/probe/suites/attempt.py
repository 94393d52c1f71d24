"""One test on one session: setup, block, verdict, proof."""

from __future__ import annotations

import errno
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Self

from msgspec.structs import replace

from mcptest.core.errors import PeerError
from mcptest.core.limits import Deadline
from mcptest.core.masking import Masker
from mcptest.core.message import Kind, Message
from mcptest.core.results import FailedCheck, Proof, Status, TestResult
from mcptest.core.safe_text import show
from mcptest.probe.suites.server_session import CallFailed, ServerSession, kind_of, remarks_on
from mcptest.probe.suites.settings import Numbered, Settings
from mcptest.session.client import Client, Reply
from mcptest.session.connection import NOTHING_CAME, Pending
from mcptest.session.tape import Tape
from mcptest.suite.expectations import (
    check_logging,
    check_notifications,
    check_trajectory,
    evaluate,
    read_audit_log,
)
from mcptest.suite.matching import Failure, error_text
from mcptest.suite.model import (
    Block,
    CompletionBlock,
    Expect,
    ListRequest,
    LoggingBlock,
    NotificationsBlock,
    PromptsBlock,
    ResourcesBlock,
    SamplingBlock,
    SetupStep,
    ToolBlock,
    TrajectoryBlock,
)
from mcptest.suite.observed import Evaluation, Observed, failing_call, merge_pages, text_of
from mcptest.suite.templates import CaptureError, capture, fill_block, fill_declared, variables_of
from mcptest.transport.files import read_bounded
from mcptest.wire.json_text import write_json

# -- The files that a test looks at --------------------------------------------------------------

LARGEST_FILE = 64 * 1024 * 1024
_ABSENT = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG})


class DiskFiles:
    """The files of the test, as they are now."""

    def read(self, path: str) -> bytes | None:
        try:
            return read_bounded(path, LARGEST_FILE, pipes=False)
        except (OSError, ValueError):  # the latter for a NUL: no file can have that name
            return None

    def exists(self, path: str) -> bool:
        """Whether anything is there. What may not be looked at can't be said to be absent."""
        try:
            os.lstat(path)
        except OSError as error:
            return error.errno not in _ABSENT
        except ValueError:  # a NUL: no file can have that name
            return False
        return True


DISK = DiskFiles()


# -- Carrying out what a test asks of a server ---------------------------------------------------

GRACE = 0.1
"""How long notifications that belong to a call may trail behind its answer."""
_UPDATED = "notifications/resources/updated"
_NOTIFICATIONS_KEPT = 10_000
_NOTIFICATION_BYTES_KEPT = 8 * 1024 * 1024


class Attempt:
    """One test on a session that was launched. With `begin`, its call may share the line."""

    client: Client
    """Of the session, once it has begun."""

    def __init__(self, item: Numbered, session: ServerSession, settings: Settings) -> None:
        self.item = item
        self.session = session
        self.settings = settings
        self.deadline = Deadline.after(item.test.timeout or settings.timeout)
        self.notifications: list[Mapping[str, Any]] = []
        self._bytes_left = _NOTIFICATION_BYTES_KEPT
        self._exchange: tuple[Any, bytes] | None = None
        """The id of the last request and the answer to it, if it came, for the proof."""
        self.snapshots: Mapping[str, bytes | None] = {}
        """Files that the test may not change, as they were before its request."""
        self._remarks: list[str] = []
        """What is odd about the answers, and does not fail the test."""
        self._started = time.monotonic()
        self._under_way: tuple[Pending, Callable[[], Evaluation]] | None = None
        """The call that was begun, of which several may be on their way; and what finishes it."""
        self._failed: CallFailed | None = None
        settings.on_begin(item)

    @property
    def is_answered(self) -> bool:
        """Whether `finish` has all it needs."""
        return self._under_way is not None and self._under_way[0].answer is not None

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
            block = fill_block(self.item.test.block, variables_of(self.session.ground.folder, {}))
            assert isinstance(block, ToolBlock)
            self._connect()
            self._under_way = begin_call(block, self)
        except CallFailed as failed:
            self._failed = failed
        return self

    def finish(self) -> TestResult:
        masker = self.session.masker
        try:
            evaluation = self._evaluate()
        except CallFailed as failed:
            self._failed = failed
            detail, kind, served = failed.detail, failed.kind, self.session.served
            checks: tuple[FailedCheck, ...] = ()
            if kind == "crash" and served is not None:
                # A server that ended most often said why, if only with half a line.
                came = served.client.connection.what_came_instead()
                detail += "" if came == NOTHING_CAME else f"\n  before that, {came}"
        else:
            if evaluation.passed:
                kept = self.settings.proof_of_passes
                return self._result(Status.PASS, proof=self._proof("") if kept else None)
            detail, kind, checks = _in_words(evaluation), "check", _checks(evaluation, masker)
        proof, detail = self._proof(self.settings.repeat(self.item)), masker.cut_text(detail)
        return self._result(Status.FAIL, detail=detail, kind=kind, failures=checks, proof=proof)

    def _connect(self) -> None:
        startup = self.settings.startup
        limit = self.item.test.timeout or self.settings.timeout
        starting = self.deadline if startup is None else Deadline.for_start(startup, limit)
        self.client = self.session.connect(starting).client
        if startup is not None:  # which does not count for the test
            self.deadline = Deadline.after(limit)
        self.client.connection.on_notification = self._keep

    def _evaluate(self) -> Evaluation:
        if self._failed is not None:
            raise self._failed
        if self._under_way is not None:
            return self._under_way[1]()
        test, fixture = self.item.test, self.session.ground.folder
        self._connect()
        captured = run_setup(test.setup, self, fixture)
        return perform(fill_block(test.block, variables_of(fixture, captured)), self)

    # -- what a block does ----------------------------------------------------------------------

    def judge(self, expect: Expect, observed: Observed) -> Evaluation:
        """Hold an answer of any method, and what happened around it, against expectations."""
        came = tuple(self.notifications)
        observed = replace(observed, files=DISK, snapshots=self.snapshots, notifications=came)
        own = evaluate(expect, observed, all_failures=self.settings.all_failures)
        opinion = self.settings.second_opinion
        return own if opinion is None else opinion(self.item, self.session, observed, own)

    def _keep(self, message: Message) -> None:
        room = len(self.notifications) < _NOTIFICATIONS_KEPT and self._bytes_left > 0
        if room and isinstance(message.value, dict):
            self.notifications.append(message.value)
            self._bytes_left -= len(message.raw)

    def ask(self, failing: str, method: str, params: Mapping[str, Any] | None) -> Reply:
        """One request and its answer; CallFailed, which begins with `failing`, without one."""
        with failing_as(failing):
            pending = self.client.start(method, params, self.deadline)
        return self.answer_to(pending, failing, params)

    def answer_to(self, pending: Pending, failing: str, params: Mapping[str, Any] | None) -> Reply:
        """The answer to a request that is on its way."""
        self._exchange = (pending.id, b"")  # also for the proof that no answer came
        with failing_as(failing):
            first = self.client.wait(pending, self.deadline)
        self.accept(first, failing)
        with failing_as(failing):
            reply = self.client.complete_call(first, params, self.deadline)
        if reply is not first:
            self.accept(reply, failing)
        return reply

    def accept(self, reply: Reply, failing: str) -> None:
        """Take an answer for what it says, if its form allows it. CallFailed where it does not."""
        answer = reply.message
        self._exchange = (answer.id, answer.raw or write_json(answer.value))
        self._remarks += remarks_on(reply, failing, lenient=self.settings.lenient)

    # -- what becomes of the test ---------------------------------------------------------------

    def _proof(self, repeat: str) -> Proof:
        served = self.session.served
        if served is None:
            return Proof(repeat=repeat)
        return proof_of_tape(served.tape, self.session.masker, self._exchange, repeat)

    def _result(self, status: Status, **what: Any) -> TestResult:
        session, masker = self.session, self.session.masker
        odd = dict.fromkeys((*session.remarks, *self._remarks))
        note = "; ".join(filter(None, (session.ground.note, *map(masker.cut_text, odd))))
        if (met := session.met) is not None:
            what |= {"revision": str(met.revision), "revision_reason": masker.text(met.reason)}
        return _result(self.item, status, self._started, server=session.label, note=note, **what)


@contextmanager
def failing_as(what: str) -> Iterator[None]:
    """An error of the peer becomes the failure of this call."""
    try:
        yield
    except PeerError as error:
        raise CallFailed(f"{what}: {error.message}", kind_of(error), lost=True) from None


def run_setup(steps: tuple[SetupStep, ...], attempt: Attempt, fixture: str) -> dict[str, str]:
    """Call every step in order; gives what they captured. An isError answer is no failure."""
    captured: dict[str, str] = {}
    for step in steps:
        filled = fill_declared(step, variables_of(fixture, captured))
        what = f"setup step {step.tool}"
        params = {"name": step.tool, "arguments": filled.args}
        reply = attempt.ask(f"{what} failed", "tools/call", params)
        if not reply.ok:
            raise CallFailed(f"{what} failed: {error_text(reply.message.error)}", "setup")
        try:
            captured |= capture(filled, text_of("tools/call", reply.message.result))
        except CaptureError as error:
            raise CallFailed(f"{what}: {error}", "setup") from None
    return captured


def perform(block: Block, attempt: Attempt) -> Evaluation:
    """Carry out a block and check what came of it."""
    if not isinstance(block, LoggingBlock | NotificationsBlock | TrajectoryBlock):
        attempt.snapshots = {path: DISK.read(path) for path in block.expect.file_unchanged}
    return _PERFORMED_BY[type(block)](block, attempt)


def begin_call(block: ToolBlock, attempt: Attempt) -> tuple[Pending, Callable[[], Evaluation]]:
    """A tool call that was sent, and what waits for its answer and checks it."""
    params: dict[str, Any] = {"name": block.tool, "arguments": block.args}
    if block.capture_progress:
        params["_meta"] = {"progressToken": f"mcptest-{block.tool}"}
    begun, failing = time.monotonic(), failing_call("tools/call", block.tool)
    with failing_as(failing):
        pending = attempt.client.start("tools/call", params, attempt.deadline)

    def finish() -> Evaluation:
        reply = attempt.answer_to(pending, failing, params)
        duration = time.monotonic() - begun
        if block.capture_progress and block.expect.min_progress:
            _await(attempt, lambda: _progress(attempt) >= (block.expect.min_progress or 0))
        progress = _progress(attempt) if block.capture_progress else None
        schema = _output_schema(attempt, block.tool, reply)
        around = {"progress": progress, "output_schema": schema}
        return attempt.judge(block.expect, _observe(reply, block.tool, duration, **around))

    return pending, finish


def _perform_call(block: ToolBlock | SamplingBlock, attempt: Attempt) -> Evaluation:
    if isinstance(block, SamplingBlock):
        block = ToolBlock(block.tool, block.args, expect=block.expect)
    _, finish = begin_call(block, attempt)
    return finish()


def _observe(reply: Reply, subject: str, duration: float, **around: Any) -> Observed:
    answer = reply.message
    error = answer.error if answer.kind is Kind.ERROR else None
    return Observed(reply.method, answer.result, error, subject, duration, **around)


def _answered(attempt: Attempt, method: str, subject: str, params: Mapping[str, Any]) -> Observed:
    begin = time.monotonic()
    reply = attempt.ask(failing_call(method, subject), method, params)
    return _observe(reply, subject, time.monotonic() - begin)


def _progress(attempt: Attempt) -> int:
    return sum(each.get("method") == "notifications/progress" for each in attempt.notifications)


def _output_schema(attempt: Attempt, tool: str, reply: Reply) -> Any:
    """Asked for only when there is structured content that it could say something about."""
    if "structuredContent" not in reply.result:
        return None
    if not attempt.session.output_schemas:
        with failing_as("tools/list failed"):
            tools = attempt.client.list_all("tools/list", attempt.deadline)
        named = (each for each in tools if type(each) is dict)
        known = {str(each.get("name")): each.get("outputSchema") for each in named}
        # In one step, because others look at them; the empty name says that they are known.
        attempt.session.output_schemas.update({"": None, **known})
    return attempt.session.output_schemas.get(tool)


def _perform_prompts(block: PromptsBlock, attempt: Attempt) -> Evaluation:
    if block.get is None:
        observed = _listed(attempt, "prompts/list", block.list)
    else:
        params: dict[str, Any] = {"name": block.get.name}
        if block.get.arguments:
            params["arguments"] = block.get.arguments
        observed = _answered(attempt, "prompts/get", block.get.name, params)
    return attempt.judge(block.expect, observed)


def _listed(attempt: Attempt, method: str, asked: ListRequest | None) -> Observed:
    """All pages of a list as one answer."""
    cursor = asked.cursor if asked is not None else None
    begin, failing = time.monotonic(), failing_call(method)
    pages: list[Mapping[str, Any]] = []
    with failing_as(failing):
        for reply in attempt.client.pages(method, attempt.deadline, cursor=cursor):
            attempt.accept(reply, failing)
            if not reply.ok:
                return _observe(reply, "", time.monotonic() - begin)
            pages.append(reply.result)
    return Observed(method, merge_pages(method, pages), duration=time.monotonic() - begin)


def _perform_completion(block: CompletionBlock, attempt: Attempt) -> Evaluation:
    target = "uri" if block.ref.type == "ref/resource" else "name"
    params = {
        "ref": {"type": block.ref.type, target: block.ref.name},
        "argument": {"name": block.argument.name, "value": block.argument.value},
    }
    return attempt.judge(block.expect, _answered(attempt, "completion/complete", "", params))


def _perform_resources(block: ResourcesBlock, attempt: Attempt) -> Evaluation:
    subscription = None
    if block.subscribe is not None:
        failing = failing_call("resources/subscribe", block.subscribe)
        with failing_as(failing):
            subscription = attempt.client.subscribe(block.subscribe, attempt.deadline)
        _accept(attempt, subscription.answer, failing)
    if block.list is not None:
        observed = _listed(attempt, "resources/list", block.list)
    elif block.templates is not None:
        observed = _listed(attempt, "resources/templates/list", block.templates)
    elif block.read is not None:
        observed = _answered(attempt, "resources/read", block.read, {"uri": block.read})
    else:
        observed = Observed("resources/subscribe", result={}, subject=block.subscribe or "")
    evaluation = attempt.judge(block.expect, observed)
    if block.expect_notification:
        evaluation = _with_update(evaluation, block.subscribe, attempt)
    if block.unsubscribe is not None:
        failing = failing_call("resources/unsubscribe", block.unsubscribe)
        if subscription is None or block.unsubscribe != block.subscribe:
            params = {"uri": block.unsubscribe}
            _refuse_error(attempt.ask(failing, "resources/unsubscribe", params).message, failing)
            return evaluation
        with failing_as(failing):
            _accept(attempt, attempt.client.unsubscribe(subscription, attempt.deadline), failing)
    return evaluation


def _with_update(evaluation: Evaluation, uri: str | None, attempt: Attempt) -> Evaluation:
    """Wait for the update, which may be the only thing that the block asks for."""
    failures = evaluation.failures if evaluation.checked else ()
    if failures and not attempt.settings.all_failures:
        return evaluation

    def is_updated() -> bool:
        sent = (each for each in attempt.notifications if each.get("method") == _UPDATED)
        told = (each.get("params") for each in sent)
        return any(isinstance(params, dict) and params.get("uri") == uri for params in told)

    if not _await(attempt, is_updated, attempt.deadline):
        message = "expected resource update notification but received none"
        failures = (*failures, Failure("expect_notification", message))
    return Evaluation(failures, evaluation.checked + 1)


def _accept(attempt: Attempt, answer: Message | None, failing: str) -> None:
    if answer is not None:
        attempt.accept(Reply("", answer, revision=attempt.client.revision), failing)
        _refuse_error(answer, failing)


def _refuse_error(answer: Message, failing: str) -> None:
    if answer.kind is Kind.ERROR:
        raise CallFailed(f"{failing}: {error_text(answer.error)}", "call")


def _perform_logging(block: LoggingBlock, attempt: Attempt) -> Evaluation:
    failing = "logging/setLevel failed"
    with failing_as(failing):
        _accept(attempt, attempt.client.log_level(block.set_level, attempt.deadline), failing)
    if block.tool:
        _expect_result(attempt, block.tool, {"name": block.tool, "arguments": block.args})
    return _beside_the_call(attempt, check_logging, block.expect)


def _perform_notifications(block: NotificationsBlock, attempt: Attempt) -> Evaluation:
    meta = {"progressToken": f"mcptest-{block.tool}"}
    _expect_result(
        attempt, block.tool, {"name": block.tool, "arguments": block.args, "_meta": meta}
    )
    expect = block.expect
    forbids = expect.max_count is not None or expect.not_methods or expect.not_contains_data
    return _beside_the_call(attempt, check_notifications, expect, forbids=bool(forbids))


def _beside_the_call(
    attempt: Attempt, check: Callable[..., Evaluation], expect: Any, *, forbids: bool = False
) -> Evaluation:
    """Judge the notifications. What must not come can only be told after a while; what must come
    ends the wait."""

    def judge() -> Evaluation:
        of_all = attempt.settings.all_failures
        return check(expect, attempt.notifications, all_failures=of_all)

    _await(attempt, lambda: not forbids and judge().passed)
    return judge()


def _expect_result(attempt: Attempt, tool: str, params: Mapping[str, Any]) -> None:
    failing = failing_call("tools/call", tool)
    _refuse_error(attempt.ask(failing, "tools/call", params).message, failing)


def _await(
    attempt: Attempt, satisfied: Callable[[], bool], deadline: Deadline | None = None
) -> bool:
    """Take in notifications until it is enough; by default only for the moment of grace."""
    until = deadline or attempt.deadline.within(GRACE)
    while not satisfied():
        try:
            if not attempt.client.connection.pump(until) or until.expired:
                return satisfied()
        except PeerError:
            return satisfied()  # the server left after its answer: no more can come
    return True


_PERFORMED_BY: dict[type, Callable[[Any, Attempt], Evaluation]] = {
    ToolBlock: _perform_call,
    SamplingBlock: _perform_call,
    PromptsBlock: _perform_prompts,
    CompletionBlock: _perform_completion,
    ResourcesBlock: _perform_resources,
    LoggingBlock: _perform_logging,
    NotificationsBlock: _perform_notifications,
}


_SHOWN = 600
_LOOKED_AT = 64 * 1024
"""How much of a peer's text is searched for secrets before it is cut to what is shown."""


def skipped(item: Numbered, reason: str) -> TestResult:
    return _result(item, Status.SKIP, detail=reason)


def check_trace(item: Numbered, settings: Settings) -> TestResult:
    """A trajectory needs no server."""
    begin = time.monotonic()
    fixture = str(settings.fixture) if settings.fixture is not None else ""
    block = fill_block(item.test.block, variables_of(fixture, {}))
    assert isinstance(block, TrajectoryBlock)
    try:
        trace = block.trace
        if block.audit_log:
            log = read_bounded(block.audit_log, LARGEST_FILE, pipes=False)
            trace = read_audit_log(log.split(b"\n"))
    except (OSError, ValueError) as error:
        detail = f"audit_log: {show(str(error), 300)}"
        return _result(item, Status.FAIL, begin, detail=detail, kind="call")
    evaluation = check_trajectory(block.trajectory, trace, all_failures=settings.all_failures)
    if evaluation.passed:
        return _result(item, Status.PASS, begin)
    detail, checks = _in_words(evaluation), _checks(evaluation, Masker())
    proof = Proof(repeat=settings.repeat(item))
    what = {"detail": detail, "kind": "check", "failures": checks, "proof": proof}
    return _result(item, Status.FAIL, begin, **what)


def broken(item: Numbered, error: Exception) -> TestResult:
    """A defect of ours: said as one, and never a pass."""
    detail = f"internal error of mcptest: {type(error).__name__}: {show(str(error), 300)}"
    return _result(item, Status.FAIL, detail=detail, kind="internal")


def _in_words(evaluation: Evaluation) -> str:
    return "\n".join(failure.message for failure in evaluation.failures)


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
    if not isinstance(value, str | bytes | None):
        value = json.dumps(value, ensure_ascii=False, default=repr)
    return None if value is None else _safe(value, masker)


def _safe(text: str | bytes, masker: Masker, limit: int = _SHOWN) -> str:
    """Hide what is secret, then cut: half a secret would not be recognised."""
    text = text[:_LOOKED_AT]
    if isinstance(text, bytes):
        text = text.decode("utf-8", "backslashreplace")
    return show(masker.cut_text(text), limit)


def proof_of_tape(
    tape: Tape, masker: Masker, exchange: tuple[Any, bytes] | None = None, repeat: str = ""
) -> Proof:
    """What went over the wire last, or in the exchange of a request's id and its answer."""
    request, response = tape.last_request, tape.last_answer
    if exchange is not None:
        identifier, response = exchange
        request = tape.request_with(identifier) or request
    exited, how, recorder = tape.exited, "", tape.recorder
    if exited is not None and not exited.after:
        how = f"exit code {exited.code}" if exited.signal is None else f"signal {exited.signal}"
    return Proof(
        request=_safe(request, masker),
        response=_safe(response, masker),
        stderr=tuple(_safe(line, masker, 300) for line in list(tape.stderr)),
        exit=how,
        repeat=masker.text(repeat),
        capture=str(recorder.path) if recorder is not None else "",
    )


def _result(item: Numbered, status: Status, begin: float | None = None, **what: Any) -> TestResult:
    test = item.test
    return TestResult(
        name=test.name,
        status=status,
        duration_ms=round((time.monotonic() - begin) * 1000) if begin is not None else 0,
        language=item.language,
        trial=item.trial,
        file=test.place.file,
        line=test.place.line,
        tags=test.tags,
        **what,
    )
