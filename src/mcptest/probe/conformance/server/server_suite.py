"""The scenario suite for a server: it is met once, and every scenario is run over as few
connections as can be.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from mcptest.core.capture import Frame
from mcptest.core.errors import PeerError
from mcptest.core.message import Kind
from mcptest.core.revision import Revision
from mcptest.core.safe_text import show, show_lines
from mcptest.core.scenario_outcome import (
    WIRE_SCHEMA,
    CheckResult,
    CheckStatus,
    Reference,
    ScenarioResult,
)
from mcptest.core.verdict import Side
from mcptest.probe.compliance.conversation import Conversation
from mcptest.probe.compliance.course import is_usable
from mcptest.probe.compliance.learning import list_through
from mcptest.probe.compliance.site import Order, Site
from mcptest.probe.conformance.scenario import (
    Scenario,
    bad,
    every_check,
    inside,
    judged,
    skipped,
    untestable,
)
from mcptest.probe.conformance.scenario_catalogue import scenario_named
from mcptest.probe.conformance.scenario_runs import ScenarioRuns
from mcptest.probe.conformance.server.scene import ScenarioStage, Scene, ServerOffer
from mcptest.rules.declaration import specification_url
from mcptest.rules.session import NO_MESSAGE, AnswerMismatch, Session, Step, follow
from mcptest.schema.message_shapes import shape_problems
from mcptest.session.answers import EVERYTHING
from mcptest.session.connection import Stopped
from mcptest.session.pages import LIST_CAPABILITIES, is_declared
from mcptest.session.tape import Tape
from mcptest.wire.capture_forms import SessionSource
from mcptest.wire.envelope import answer_problems, is_tolerable

_METHOD_NOT_FOUND = -32601


def missing_for(scenario: Scenario[Scene], offered: ServerOffer, names: Mapping[str, str]) -> str:
    """Why it can't be run at all; empty when it can."""
    needs = scenario.needs
    lacking = [one for one in needs.capabilities if not offered.declares(one)]
    if lacking:
        return f"the server does not declare {' and '.join(lacking)}"
    for kind, fixtures in (("tool", needs.tools), ("prompt", needs.prompts)):
        for official in fixtures:
            if not offered.has(kind, names.get(official, official)):
                return _not_offered(kind, official, names)
    return ""


def unserved(scenario: Scenario[Scene], scene: Scene) -> str:
    """Resources need not be listed, so only asking shows that one is not there."""
    refused = any(
        heard.exchange.answer == "error" and heard.code != _METHOD_NOT_FOUND
        for heard in scene.heard.values()
    )
    templates = [inside(one, "uriTemplate") for one in scene.offered.templates]
    for official in scenario.needs.resources if refused else ():
        uri = scene.fixture(official)
        if not scene.offered.has("resource", uri) and uri not in templates:
            return _not_offered("resource", official, scene.names)
    return ""


def _not_offered(kind: str, official: str, names: Mapping[str, str]) -> str:
    given = names.get(official)
    if given is not None:
        return f"the {kind} {given}, which stands for {official}, is not there"
    return (
        f"the {kind} {official} is not there: offer it, or name one of yours with "
        f"--map {official}=NAME"
    )


_MOST_PROBLEMS = 5
_EXCERPT = 400


def wire_schema_row(tape: Tape, begins: int, revision: Revision) -> CheckResult | None:
    """None when the server sent nothing: what only we sent says nothing of it."""
    said = list(_said(tape, begins, revision))
    if not said:
        return None
    wrong = [(step, problem) for step in said for problem in _problems(step, revision)]
    status = CheckStatus.FAILURE if wrong else CheckStatus.SUCCESS
    if not wrong:
        wrong = [(step, doubt) for step in said for doubt in _doubts(step, revision)]
        status = CheckStatus.WARNING if wrong else status
    first = wrong[0][0] if wrong else None
    raw = b""
    if first is not None:
        raw = first.record.raw if isinstance(first.record, Frame) else first.message.raw
    messages = [problem for _, problem in wrong[:_MOST_PROBLEMS]]
    if len(wrong) > _MOST_PROBLEMS:
        messages.append(f"and {len(wrong) - _MOST_PROBLEMS} more")
    return CheckResult(
        id=WIRE_SCHEMA,
        name="WireSchemaValid",
        description="every message of the server conforms to the revision",
        status=status,
        message="; ".join(messages),
        record=None if first is None else first.place + 1,
        excerpt=show(raw, _EXCERPT) if raw else "",
        details={"messages": len(said)},
        references=(Reference("MCP-Schema", specification_url("schema", revision)),),
    )


def _said(tape: Tape, begins: int, revision: Revision) -> Iterator[Step]:
    """Every message of the server, with the request that it answers."""
    source = SessionSource(
        label="",
        file="",
        form="full",
        records=iter(enumerate(tape.records[begins:], begins)),
        transport=tape.transport,
        spec_version=revision.value,
    )
    for step in follow(source.records, Session(source, revision)):
        is_line = tape.transport == "stdio" and type(step.record) is Frame
        if step.sender == "server" and (is_line or step.message is not NO_MESSAGE):
            yield step


def _doubts(step: Step, revision: Revision) -> Iterator[str]:
    """What fails nothing, and is worth a word: see docs/answers.md."""
    what = show(step.method or step.kind.value, 80)
    if step.mismatch is AnswerMismatch.AGAIN:
        yield f"{what}: {step.mismatch.value}"
    elif step.message.is_answer and not step.in_batch:
        for problem in answer_problems(step.message, revision):
            yield f"{what}: {show(problem.reason, 200)}"


def _problems(step: Step, revision: Revision) -> Iterator[str]:
    if step.message is NO_MESSAGE:
        yield "the server wrote a line to stdout that is not a message"
        return
    if step.kind is Kind.BATCH:
        if revision is not Revision.V2025_03_26:
            yield "the server sent messages in an array, which this revision does not allow"
        return
    # What is wrong with it as JSON text; what JSON allows is no fault, and in a batch the text is
    # that of the whole.
    faults = () if step.in_batch else answer_problems(step.message, revision)
    if fault := next((one for one in faults if not is_tolerable(one)), None):
        yield f"{show(step.method or step.kind.value, 80)}: {show(fault.reason, 200)}"
        return
    if step.kind is Kind.INVALID:
        return
    asked = step.method if step.kind is Kind.RESULT else None
    found = shape_problems(step.message.value, step.kind, step.sender, revision, asked)
    for problem in found or ():
        what = show(step.method or step.kind.value, 80)
        actual = show(problem.actual, 120)
        yield f"{what}: {show(problem.pointer, 120)} is {actual}, not {problem.expected}"


_VAIN_STARTS = 2
"""After so many connections in a row that failed, a server is given up."""
_STDERR = 4_000


class Lost:
    """What all lanes know of a server that does not come back."""

    def __init__(self) -> None:
        self.vain = 0
        self.error: PeerError | None = None
        """Of the last connection that failed."""
        self.opening = threading.Lock()


class ScenarioLane(msgspec.Struct):
    """Runs one scenario after the other. A lane belongs to one thread."""

    site: Site
    scenarios: Sequence[Scenario[Scene]]
    offered: ServerOffer
    order: ConformanceOrder
    lost: Lost
    shared: Conversation | None
    """The connection of those scenarios that need none of their own."""

    def run(self, place: int) -> ScenarioResult:
        begun = time.monotonic()
        site, order, scenario = self.site, self.order, self.scenarios[place]
        if not order.strict_fixtures:
            why = missing_for(scenario, self.offered, order.fixtures)
            if why:
                rows = every_check(scenario, site.revision, site.transport, untestable(why))
                return _result(scenario, site, rows, begun)
        try:
            conversation = self._connection(scenario)
        except PeerError as error:
            return unmet(scenario, site, show(error.message, 600), begun)
        stage = ScenarioStage(site, conversation, self.offered, scenario)
        try:
            scenario.script(stage)
            return self._judged(scenario, stage, begun)
        finally:
            if scenario.isolated:
                site.leave(conversation)

    def _connection(self, scenario: Scenario[Scene]) -> Conversation:
        if scenario.isolated:
            return self._open()
        if self.shared is None or not is_usable(self.shared):
            if self.shared is not None:
                self.site.leave(self.shared)
            self.shared = self._open()
        return self.shared

    def _open(self) -> Conversation:
        """Raises PeerError when there is no connection to be had."""
        lost, site = self.lost, self.site
        try:
            with lost.opening:
                if lost.error is not None and lost.vain >= _VAIN_STARTS:
                    raise lost.error
                launched = site.launch(declare=EVERYTHING)
            made = site.ready(launched)
        except PeerError as error:
            if lost.vain < _VAIN_STARTS:  # otherwise it was given up before
                lost.vain += 1
                why = f"the server did not restart: {error.message}"
                lost.error = PeerError(error.kind, why)
            raise
        lost.vain = 0
        return made

    def _judged(
        self, scenario: Scenario[Scene], stage: ScenarioStage, begun: float
    ) -> ScenarioResult:
        scene, site, tape = stage.scene, self.site, stage.main.tape
        strict = self.order.strict_fixtures
        why = "" if strict else unserved(scenario, scene)
        if why:
            rows = [*every_check(scenario, site.revision, site.transport, untestable(why))]
        else:
            rows = [*judged(scenario, scene, site.revision, site.transport, strict)]
        schema = wire_schema_row(tape, stage.begins, site.revision)
        rows += [] if schema is None else [schema]
        recorder, stderr = tape.recorder, ""
        capture = str(recorder.written_to) if recorder is not None and recorder.kept else ""
        if tape.exited is not None:  # what a server that died had to say
            stderr = show_lines(site.masker.text("\n".join(tape.stderr)), _STDERR)
        known = {"capture": capture, "stderr": stderr}
        return _result(scenario, site, rows, begun, **known)


def _result(
    scenario: Scenario[Scene],
    site: Site,
    checks: Iterable[CheckResult],
    begun: float | None = None,
    **known: Any,
) -> ScenarioResult:
    repeat = site.order.repeat
    spent = 0.0 if begun is None else (time.monotonic() - begun) * 1000
    return ScenarioResult(
        scenario=scenario.name,
        side=Side.SERVER,
        revision=site.revision,
        transport=site.transport,
        checks=tuple(checks),
        duration_ms=round(spent, 3),
        repeat=f"{repeat} --scenario {scenario.name}" if repeat else "",
        **known,
    )


def unmet(
    scenario: Scenario[Scene], site: Site, cause: str, begun: float | None = None
) -> ScenarioResult:
    """One cause, and nothing green: every check fails of a server that could not be reached."""
    rows = every_check(scenario, site.revision, site.transport, bad(cause))
    return _result(scenario, site, rows, begun, cause=cause)


def learn(site: Site, conversation: Conversation) -> ServerOffer:
    """Every list that the server declares; what it does not show is not there."""
    lists = {
        method: list_through(conversation.ask, method, site.order.timeout)
        for method, capability in LIST_CAPABILITIES.items()
        if is_declared(capability, site.capabilities)
    }
    problems = {method: one.endless for method, one in lists.items() if one.endless}
    items = {method: one.items for method, one in lists.items()}
    # Whoever calls a tool may have to repeat its arguments as headers.
    site.header_schemas.learn("tools/list", {"tools": items.get("tools/list", [])})
    return ServerOffer.of(items, capabilities=site.capabilities, problems=problems)


_MOST_LANES = 16
_STOPPED = "stopped before it ran"


class ConformanceOrder(Order, frozen=True, kw_only=True):
    """One server, and the scenarios that it is to be put through."""

    revision: Revision
    scenarios: tuple[str, ...]
    strict_fixtures: bool = False
    """What can't be tested fails, as the official suite has it."""
    jobs: int = 1
    """How many scenarios run side by side."""


def run_server_scenarios(
    order: ConformanceOrder,
    *,
    tell: Callable[[ScenarioResult], None],
    tell_problem: Callable[[str], None] = lambda _: None,
    should_stop: Callable[[], bool] | None = None,
) -> list[ScenarioResult]:
    """Run them all; `tell` hears of each as it ends, the list has the order's order. `tell_problem`
    hears of lists that could not be read to their end.

    A server that can't be met fails every scenario with one cause. Raises UsageError for a
    scenario that there is not.
    """
    scenarios = [scenario_named(Side.SERVER, name) for name in order.scenarios]
    patience = min(order.patience, order.timeout)
    site = Site(replace(order, patience=patience, should_stop=should_stop))
    runs = ScenarioRuns(tell)
    fitting: list[int] = []
    try:
        for place, scenario in enumerate(scenarios):
            why = ""
            if order.revision not in scenario.revisions:
                why = f"the scenario does not exist in {order.revision}"
            elif order.target.way not in scenario.transports:
                why = f"the scenario does not apply to {order.target.way}"
            if why:
                rows = [check.row(skipped(why)) for check in scenario.checks]
                runs.note(place, _result(scenario, site, rows))
            else:
                fitting.append(place)
        if fitting:
            with contextlib.suppress(Stopped):  # those that are not done are told to be so
                _run_fitting(order, site, scenarios, fitting, runs, tell_problem)
    finally:
        site.close()
    return [
        runs.results.get(place) or unmet(one, site, _STOPPED) for place, one in enumerate(scenarios)
    ]


def _run_fitting(
    order: ConformanceOrder,
    site: Site,
    scenarios: Sequence[Scenario[Scene]],
    fitting: Sequence[int],
    runs: ScenarioRuns,
    tell_problem: Callable[[str], None],
) -> None:
    try:
        first = site.meet(warm=any(scenarios[one].isolated for one in fitting))
        offered = learn(site, first)
    except PeerError as error:
        cause = show(error.message, 600)
        for place in fitting:
            runs.note(place, unmet(scenarios[place], site, cause))
        return
    for problem in offered.problems.values():
        tell_problem(problem)
    lost = Lost()
    wanted = max(1, min(order.jobs, len(fitting), _MOST_LANES))
    lanes = [  # the first has the connection over which the server was met
        ScenarioLane(site, scenarios, offered, order, lost, None if n else first).run
        for n in range(wanted)
    ]
    runs.run([one for one in fitting if not scenarios[one].disturbs], lanes)
    runs.run([one for one in fitting if scenarios[one].disturbs], lanes[:1])
