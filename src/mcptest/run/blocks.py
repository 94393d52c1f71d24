"""Carrying out what a test asks of a server: setup, then one block, then its expectations.

What the server answered is handed to the pure checkers of `suite`; nothing is decided here but
whether there was an answer at all.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import msgspec
from msgspec.structs import replace

from mcptest.model.deadline import Deadline
from mcptest.model.errors import PeerError
from mcptest.model.message import Kind, Message
from mcptest.peer.client import Client, Reply
from mcptest.peer.pending import Pending
from mcptest.run.call_failed import CallFailed, kind_of, remarks_on
from mcptest.run.disk import DISK
from mcptest.suite.expectations import evaluate
from mcptest.suite.failure import Evaluation, Failure
from mcptest.suite.logging_checks import check_logging
from mcptest.suite.model import (
    Block,
    CompletionBlock,
    Expect,
    LoggingBlock,
    NotificationsBlock,
    PromptsBlock,
    ResourcesBlock,
    SamplingBlock,
    SetupStep,
    ToolBlock,
    TrajectoryBlock,
)
from mcptest.suite.notification_checks import check_notifications
from mcptest.suite.observed import Observed, failing_call, observe
from mcptest.suite.rpc_errors import error_text
from mcptest.suite.templates import CaptureError, capture, fill_step, variables_of
from mcptest.suite.text_under_test import merge_pages, text_of
from mcptest.wire.jsontext import write_json

GRACE = 0.1
"""How long notifications that belong to a call may trail behind its answer."""
_NOTIFICATIONS_KEPT = 10_000
_NOTIFICATION_BYTES_KEPT = 8 * 1024 * 1024


class Stage(msgspec.Struct):
    """A running session, as one test uses it."""

    client: Client
    deadline: Deadline
    all_failures: bool = False
    output_schemas: dict[str, Any] = {}
    """By tool, once they were listed; shared by all tests of a server."""
    notifications: list[Mapping[str, Any]] = []
    exchange: tuple[Any, bytes] | None = None
    """The id of the last request and the answer to it, if it came, for the proof of a failure."""
    second_opinion: Callable[[Observed, Evaluation], Evaluation] = lambda observed, own: own
    """Has the last word on an answer that the test's own expectations were held against."""
    snapshots: Mapping[str, bytes | None] = {}
    """Files that the test may not change, as they were before its request."""
    lenient: bool = False
    """Malformed answers are remarked upon and used, as far as they can be."""
    remarks: list[str] = []
    """What is odd about the answers, and does not fail the test."""
    _bytes_left: int = _NOTIFICATION_BYTES_KEPT

    def remember_files(self, expect: Expect) -> None:
        """Before the request whose effect on files is looked at."""
        self.snapshots = {path: DISK.read(path) for path in expect.file_unchanged}

    def judge(self, expect: Expect, observed: Observed) -> Evaluation:
        """Hold an answer of any method, and what happened around it, against expectations."""
        observed = replace(
            observed,
            files=DISK,
            snapshots=self.snapshots,
            notifications=tuple(self.notifications),
        )
        own = evaluate(expect, observed, all_failures=self.all_failures)
        return self.second_opinion(observed, own)

    def listen(self) -> None:
        self.client.connection.on_notification = self._keep

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
        self.exchange = (pending.id, b"")  # also for the proof that no answer came
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
        self.exchange = (answer.id, answer.raw or write_json(answer.value))
        self.remarks += remarks_on(reply, failing, lenient=self.lenient)


@contextmanager
def failing_as(what: str) -> Iterator[None]:
    """An error of the peer becomes the failure of this call."""
    try:
        yield
    except PeerError as error:
        raise CallFailed(f"{what}: {error.message}", kind_of(error), lost=True) from None


# -- setup -----------------------------------------------------------------------------------


def run_setup(steps: tuple[SetupStep, ...], stage: Stage, fixture: str) -> dict[str, str]:
    """Call every step in order; gives what they captured. An isError answer is no failure."""
    captured: dict[str, str] = {}
    for step in steps:
        filled = fill_step(step, variables_of(fixture, captured))
        what = f"setup step {step.tool}"
        params = {"name": step.tool, "arguments": filled.args}
        reply = stage.ask(f"{what} failed", "tools/call", params)
        if not reply.ok:
            raise CallFailed(f"{what} failed: {error_text(reply.message.error)}", "setup")
        try:
            captured |= capture(filled, text_of("tools/call", reply.message.result))
        except CaptureError as error:
            raise CallFailed(f"{what}: {error}", "setup") from None
    return captured


# -- blocks ----------------------------------------------------------------------------------


def perform(block: Block, stage: Stage) -> Evaluation:
    """Carry out a block and check what came of it."""
    if not isinstance(block, LoggingBlock | NotificationsBlock | TrajectoryBlock):
        stage.remember_files(block.expect)
    return _PERFORMED_BY[type(block)](block, stage)


def _perform_tool(block: ToolBlock, stage: Stage) -> Evaluation:
    return begin_call(block, stage).finish()


def _perform_sampling(block: SamplingBlock, stage: Stage) -> Evaluation:
    return begin_call(ToolBlock(block.tool, block.args, block.expect), stage).finish()


class CallUnderWay(msgspec.Struct, frozen=True):
    """A tool call that was sent; several may be on their way at once."""

    block: ToolBlock
    stage: Stage
    params: Mapping[str, Any]
    pending: Pending
    begun: float

    @property
    def is_answered(self) -> bool:
        return self.pending.answer is not None

    def finish(self) -> Evaluation:
        """Wait for the answer and check it."""
        block, stage = self.block, self.stage
        failing = failing_call("tools/call", block.tool)
        reply = stage.answer_to(self.pending, failing, self.params)
        duration = time.monotonic() - self.begun
        if block.capture_progress and block.expect.min_progress:
            _await(stage, lambda: _progress(stage) >= (block.expect.min_progress or 0))
        observed = _observe(
            reply,
            block.tool,
            duration,
            progress=_progress(stage) if block.capture_progress else None,
            output_schema=_output_schema(stage, block.tool, reply),
        )
        return stage.judge(block.expect, observed)


def begin_call(block: ToolBlock, stage: Stage) -> CallUnderWay:
    params: dict[str, Any] = {"name": block.tool, "arguments": block.args}
    if block.capture_progress:
        params["_meta"] = {"progressToken": f"mcptest-{block.tool}"}
    begun = time.monotonic()
    with failing_as(failing_call("tools/call", block.tool)):
        pending = stage.client.start("tools/call", params, stage.deadline)
    return CallUnderWay(block, stage, params, pending, begun)


def _observe(reply: Reply, subject: str, duration: float, **around: Any) -> Observed:
    error = reply.message.error if reply.message.kind is Kind.ERROR else None
    return observe(
        reply.method,
        result=reply.message.result,
        error=error,
        subject=subject,
        duration=duration,
        **around,
    )


def _answered(stage: Stage, method: str, subject: str, params: Mapping[str, Any]) -> Observed:
    begin = time.monotonic()
    reply = stage.ask(failing_call(method, subject), method, params)
    return _observe(reply, subject, time.monotonic() - begin)


def _progress(stage: Stage) -> int:
    return sum(each.get("method") == "notifications/progress" for each in stage.notifications)


def _output_schema(stage: Stage, tool: str, reply: Reply) -> Any:
    """Asked for only when there is structured content that it could say something about."""
    if "structuredContent" not in reply.result:
        return None
    if not stage.output_schemas:
        with failing_as("tools/list failed"):
            tools = stage.client.list_all("tools/list", stage.deadline)
        known = {
            str(each.get("name")): each.get("outputSchema") for each in tools if type(each) is dict
        }
        # In one step, because others look at them; the empty name says that they are known.
        stage.output_schemas.update({"": None, **known})
    return stage.output_schemas.get(tool)


def _perform_prompts(block: PromptsBlock, stage: Stage) -> Evaluation:
    if block.get is None:
        observed = _listed(stage, "prompts/list", block.cursor)
    else:
        params: dict[str, Any] = {"name": block.get}
        if block.arguments:
            params["arguments"] = block.arguments
        observed = _answered(stage, "prompts/get", block.get, params)
    return stage.judge(block.expect, observed)


def _listed(stage: Stage, method: str, cursor: str | None) -> Observed:
    """All pages of a list, from `cursor` on, as one answer."""
    begin = time.monotonic()
    pages: list[Mapping[str, Any]] = []
    with failing_as(failing_call(method)):
        for reply in stage.client.pages(method, stage.deadline, cursor=cursor):
            stage.accept(reply, failing_call(method))
            if not reply.ok:
                return _observe(reply, "", time.monotonic() - begin)
            pages.append(reply.result)
    result = merge_pages(method, pages)
    return observe(method, result=result, duration=time.monotonic() - begin)


def _perform_completion(block: CompletionBlock, stage: Stage) -> Evaluation:
    kind = block.ref.get("type", "")
    target = "uri" if kind == "ref/resource" else "name"
    reference = {"type": kind, target: block.ref.get("uri") or block.ref.get("name", "")}
    params = {"ref": reference, "argument": dict(block.argument)}
    observed = _answered(stage, "completion/complete", "", params)
    return stage.judge(block.expect, observed)


# -- resources -------------------------------------------------------------------------------


def _perform_resources(block: ResourcesBlock, stage: Stage) -> Evaluation:
    stage.listen()
    subscription = _subscribe(block, stage) if block.subscribe is not None else None
    observed = _read_or_list(block, stage)
    if observed is None:
        observed = observe("resources/subscribe", result={}, subject=block.subscribe or "")
    evaluation = stage.judge(block.expect, observed)
    if block.expect_notification:
        evaluation = _with_update(evaluation, block, stage)
    if block.unsubscribe is not None and subscription is not None:
        failing = failing_call("resources/unsubscribe", block.unsubscribe)
        with failing_as(failing):
            _accept(stage, stage.client.unsubscribe(subscription, stage.deadline), failing)
    return evaluation


def _with_update(evaluation: Evaluation, block: ResourcesBlock, stage: Stage) -> Evaluation:
    """Wait for the update, which may be the only thing that the block asks for."""
    failures = evaluation.failures if evaluation.checked else ()
    if failures and not stage.all_failures:
        return evaluation
    wanted = block.subscribe or block.read
    if not _await(stage, lambda: _updated(stage, wanted), stage.deadline):
        message = "expected resource update notification but received none"
        failures = (*failures, Failure("expect_notification", message))
    return Evaluation(failures, evaluation.checked + 1)


def _read_or_list(block: ResourcesBlock, stage: Stage) -> Observed | None:
    if block.list:
        return _listed(stage, "resources/list", block.cursor)
    if block.templates:
        return _listed(stage, "resources/templates/list", block.cursor)
    if block.read is None:
        return None
    return _answered(stage, "resources/read", block.read, {"uri": block.read})


def _subscribe(block: ResourcesBlock, stage: Stage) -> Pending:
    assert block.subscribe is not None
    failing = failing_call("resources/subscribe", block.subscribe)
    with failing_as(failing):
        subscription = stage.client.subscribe(block.subscribe, stage.deadline)
    _accept(stage, subscription.answer, failing)
    return subscription


def _accept(stage: Stage, answer: Message | None, failing: str) -> None:
    if answer is not None:
        stage.accept(Reply("", answer, revision=stage.client.revision), failing)
        _refuse_error(answer, failing)


def _refuse_error(answer: Message, failing: str) -> None:
    if answer.kind is Kind.ERROR:
        raise CallFailed(f"{failing}: {error_text(answer.error)}", "call")


def _updated(stage: Stage, uri: str | None) -> bool:
    return any(
        each.get("method") == "notifications/resources/updated"
        and (uri is None or (each.get("params") or {}).get("uri") == uri)
        for each in stage.notifications
    )


# -- notifications ---------------------------------------------------------------------------


def _perform_logging(block: LoggingBlock, stage: Stage) -> Evaluation:
    stage.listen()
    failing = "logging/setLevel failed"
    with failing_as(failing):
        _accept(stage, stage.client.log_level(block.set_level, stage.deadline), failing)
    _expect_result(stage, block.tool, {"name": block.tool, "arguments": block.args})

    def judge() -> Evaluation:
        return check_logging(block.expect, stage.notifications, all_failures=stage.all_failures)

    _await(stage, lambda: judge().passed)
    return judge()


def _perform_notifications(block: NotificationsBlock, stage: Stage) -> Evaluation:
    stage.listen()
    params = {
        "name": block.tool,
        "arguments": block.args,
        "_meta": {"progressToken": f"mcptest-{block.tool}"},
    }
    _expect_result(stage, block.tool, params)
    expect = block.expect

    def judge() -> Evaluation:
        return check_notifications(expect, stage.notifications, all_failures=stage.all_failures)

    # What must not come can only be told after a while; what must come ends the wait.
    forbids = expect.max_count is not None or expect.not_methods or expect.not_contains_data
    _await(stage, lambda: not forbids and judge().passed)
    return judge()


def _expect_result(stage: Stage, tool: str, params: Mapping[str, Any]) -> None:
    failing = failing_call("tools/call", tool)
    _refuse_error(stage.ask(failing, "tools/call", params).message, failing)


def _await(stage: Stage, satisfied: Callable[[], bool], deadline: Deadline | None = None) -> bool:
    """Take in notifications until it is enough; by default only for the moment of grace."""
    until = deadline or stage.deadline.within(GRACE)
    while not satisfied():
        try:
            if not stage.client.connection.pump(until) or until.expired:
                return satisfied()
        except PeerError:
            return satisfied()  # the server left after its answer: no more can come
    return True


_PERFORMED_BY: dict[type, Callable[[Any, Stage], Evaluation]] = {
    ToolBlock: _perform_tool,
    SamplingBlock: _perform_sampling,
    PromptsBlock: _perform_prompts,
    CompletionBlock: _perform_completion,
    ResourcesBlock: _perform_resources,
    LoggingBlock: _perform_logging,
    NotificationsBlock: _perform_notifications,
}
