"""The scenario suite for a server: it is met once, and every scenario is run over as few
connections as can be.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from mcptest.core.capture import Frame
from mcptest.core.errors import ErrorKind, PeerError
from mcptest.core.message import Kind, Problem
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
from mcptest.probe.compliance.conversation import EVERYTHING, Conversation
from mcptest.probe.compliance.course import is_usable
from mcptest.probe.compliance.learning import list_through
from mcptest.probe.compliance.site import Order, Site
from mcptest.probe.conformance.scenario import (
    Scenario,
    bad,
    every_check,
    judged,
    skipped,
    untestable,
)
from mcptest.probe.conformance.scenario_catalogue import scenario_named
from mcptest.probe.conformance.scenario_runs import Lane, ScenarioRuns
from mcptest.probe.conformance.server.scene import ScenarioStage, Scene, ServerOffer
from mcptest.rules.declaration import specification_url
from mcptest.rules.session import NO_MESSAGE, AnswerMismatch, Session, Step, steps_of
from mcptest.schema.shapes.checker import problems_if_known
from mcptest.session.connection import Stopped
from mcptest.session.meeting import ASKED_FOR
from mcptest.session.pages import LIST_CAPABILITIES
from mcptest.session.tape import Tape
from mcptest.transport.target import Target
from mcptest.wire.capture_forms import SessionSource
from mcptest.wire.envelope import answer_problems, is_tolerable

# -- What a server lacks for a scenario, in words that say what would unlock it ------------------

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
    refused = [
        heard
        for heard in scene.heard.values()
        if heard.exchange.answer == "error" and heard.code != _METHOD_NOT_FOUND
    ]
    for official in scenario.needs.resources if refused else ():
        if not _is_listed(official, scene):
            return _not_offered("resource", official, scene.names)
    return ""


def _is_listed(official: str, scene: Scene) -> bool:
    uri = scene.fixture(official)
    templates = (one.get("uriTemplate") for one in scene.offered.templates if isinstance(one, dict))
    return scene.offered.has("resource", uri) or uri in templates


def _not_offered(kind: str, official: str, names: Mapping[str, str]) -> str:
    given = names.get(official)
    if given is not None:
        return f"the {kind} {given}, which stands for {official}, is not there"
    return (
        f"the {kind} {official} is not there: offer it, or name one of yours with "
        f"--fixture {official}=NAME"
    )


# -- The check that every scenario has -----------------------------------------------------------

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
        description="every message of the server has the shape of the revision",
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
    for step in steps_of(source, Session(source, revision)):
        is_line = tape.transport == "stdio" and type(step.record) is Frame
        if step.sender == "server" and (is_line or step.message is not NO_MESSAGE):
            yield step


def _faults_of_form(step: Step, revision: Revision) -> Iterator[Problem]:
    """What is wrong with it as JSON text and as a message; what JSON allows is no fault of form."""
    if step.in_batch:  # its text is that of the whole
        return
    for problem in answer_problems(step.message, revision):
        if not is_tolerable(problem):
            yield problem


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
        yield "a line on stdout is no message"
        return
    if step.kind is Kind.BATCH:
        if revision is not Revision.V2025_03_26:
            yield "messages come in an array, which the revision does not have"
        return
    for fault in _faults_of_form(step, revision):
        yield f"{show(step.method or step.kind.value, 80)}: {show(fault.reason, 200)}"
        return
    if step.kind is Kind.INVALID:
        return
    asked = step.method if step.kind is Kind.RESULT else None
    found = problems_if_known(step.message.value, step.kind, step.sender, revision, asked)
    for problem in found or ():
        what = show(step.method or step.kind.value, 80)
        actual = show(problem.actual, 120)
        yield f"{what}: {show(problem.pointer, 120)} is {actual}, not {problem.expected}"


# -- One lane of the suite for servers -----------------------------------------------------------

_VAIN_STARTS = 2
"""After so many connections in a row that failed, a server is given up."""
_STDERR = 4_000


class Lost:
    """What all lanes know of a server that does not come back."""

    def __init__(self) -> None:
        self.vain = 0
        self.why = ""
        self.kind = ErrorKind.CLOSED
        self.opening = threading.Lock()

    @property
    def for_good(self) -> bool:
        return self.vain >= _VAIN_STARTS


class ScenarioLane:
    """Runs one scenario after the other. A lane belongs to one thread."""

    def __init__(
        self,
        site: Site,
        offered: ServerOffer,
        order: ConformanceOrder,
        lost: Lost,
        first: Conversation | None,
    ) -> None:
        self._site = site
        self._offered = offered
        self._order = order
        self._strict = order.strict_fixtures
        self._lost = lost
        self._shared = first

    def run(self, scenario: Scenario[Scene]) -> ScenarioResult:
        begun = time.monotonic()
        names = self._order.fixtures
        why = "" if self._strict else missing_for(scenario, self._offered, names)
        if why:
            rows = self._untestable(scenario, why)
            return _result(scenario, self._site, self._order.repeat, rows, begun)
        try:
            conversation = self._connection(scenario)
        except PeerError as error:
            cause = show(error.message, 600)
            return unmet(scenario, self._site, self._order.repeat, cause, begun)
        return self._played(scenario, conversation, begun)

    def _untestable(self, scenario: Scenario[Scene], why: str) -> tuple[CheckResult, ...]:
        site = self._site
        return tuple(every_check(scenario, site.revision, site.transport, untestable(why)))

    # -- connections -----------------------------------------------------------------------

    def _connection(self, scenario: Scenario[Scene]) -> Conversation:
        if scenario.isolated:
            return self._open()
        if self._shared is None or not is_usable(self._shared):
            if self._shared is not None:
                self._site.leave(self._shared)
            self._shared = self._open()
        return self._shared

    def _open(self) -> Conversation:
        """Raises PeerError when there is no connection to be had."""
        lost, site = self._lost, self._site
        with lost.opening:
            if lost.for_good:
                raise PeerError(lost.kind, lost.why)
            try:
                launched = site.launch(declare=EVERYTHING)
            except PeerError as error:
                self._note_vain(error)
                raise
        try:
            made = site.ready(launched)
        except PeerError as error:
            self._note_vain(error)
            raise
        lost.vain = 0
        return made

    def _note_vain(self, error: PeerError) -> None:
        self._lost.vain += 1
        self._lost.why = f"the server did not come back: {error.message}"
        self._lost.kind = error.kind

    # -- one scenario ----------------------------------------------------------------------

    def _played(
        self, scenario: Scenario[Scene], conversation: Conversation, begun: float
    ) -> ScenarioResult:
        stage = ScenarioStage(
            self._site,
            conversation,
            scenario=scenario.name,
            offered=self._offered,
            names=self._order.fixtures,
            whole=scenario.isolated,
        )
        try:
            scenario.script(stage)
            return self._judged(scenario, stage, begun)
        finally:
            if scenario.isolated:
                self._site.leave(conversation)

    def _judged(
        self, scenario: Scenario[Scene], stage: ScenarioStage, begun: float
    ) -> ScenarioResult:
        scene = stage.scene()
        site = self._site
        why = "" if self._strict else unserved(scenario, scene)
        rows = self._untestable(scenario, why)
        if not why:
            rows = tuple(judged(scenario, scene, site.revision, site.transport, self._strict))
        schema = wire_schema_row(stage.main.tape, stage.begins, site.revision)
        whole = rows if schema is None else (*rows, schema)
        recorder = stage.main.tape.recorder
        capture = str(recorder.written_to) if recorder is not None and recorder.kept else ""
        known = {"capture": capture, "stderr": self._stderr(stage.main)}
        return _result(scenario, site, self._order.repeat, whole, begun, **known)

    def _stderr(self, main: Conversation) -> str:
        """What a server that died had to say."""
        if main.tape.exited is None:
            return ""
        return show_lines(self._site.masker.text("\n".join(main.tape.stderr)), _STDERR)


def _result(
    scenario: Scenario[Scene],
    site: Site,
    repeat: str,
    checks: Iterable[CheckResult],
    begun: float | None = None,
    **known: Any,
) -> ScenarioResult:
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
    scenario: Scenario[Scene], site: Site, repeat: str, cause: str, begun: float | None = None
) -> ScenarioResult:
    """One cause, and nothing green: every check fails of a server that could not be reached."""
    rows = every_check(scenario, site.revision, site.transport, bad(cause))
    return _result(scenario, site, repeat, rows, begun, cause=cause)


# -- What a server offers, learned once before any scenario --------------------------------------


def learn(site: Site, conversation: Conversation) -> ServerOffer:
    """Every list that the server declares; what it does not show is not there."""
    declared = ServerOffer(capabilities=site.capabilities)
    found: dict[str, list[Any]] = {}
    endless: list[str] = []
    for method, capability in LIST_CAPABILITIES.items():
        found[method] = []
        if declared.declares(capability):
            listed = list_through(conversation.ask, method, site.order.timeout)
            found[method] = listed.items
            endless += [listed.endless] if listed.endless else []
    # Whoever calls a tool may have to repeat its arguments as headers.
    site.header_schemas.learn("tools/list", {"tools": found["tools/list"]})
    return ServerOffer(
        capabilities=site.capabilities,
        tools=tuple(found["tools/list"]),
        prompts=tuple(found["prompts/list"]),
        resources=tuple(found["resources/list"]),
        templates=tuple(found["resources/templates/list"]),
        endless=tuple(endless),
    )


# -- The scenario suite for a server -------------------------------------------------------------

_PATIENCE = 2.0
_MOST_LANES = 16
_STOPPED = "stopped before it was run"


class ConformanceOrder(msgspec.Struct, frozen=True, kw_only=True):
    """One server, and the scenarios that it is to be put through."""

    target: Target
    revision: Revision
    because: str = ASKED_FOR
    """Why that revision."""
    scenarios: tuple[str, ...]
    fixtures: Mapping[str, str] = {}
    """What the user calls a fixture, by its official name."""
    strict_fixtures: bool = False
    """What can't be tested fails, as the official suite has it."""
    timeout: float = 30.0
    """For one answer."""
    startup: float = 30.0
    captures: Path | None = None
    """The folder in which to keep everything that went over the wire."""
    repeat: str = ""
    """The command that runs this suite again; ` --scenario NAME` is appended."""
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
    site = Site(
        Order(
            target=order.target,
            revision=order.revision,
            because=order.because,
            timeout=order.timeout,
            startup=order.startup,
            patience=min(_PATIENCE, order.timeout),
            captures=order.captures,
            should_stop=should_stop,
        )
    )
    try:
        return _ServerSuite(order, site, scenarios, tell, tell_problem).run()
    finally:
        site.close()


class _ServerSuite:
    def __init__(
        self,
        order: ConformanceOrder,
        site: Site,
        scenarios: Sequence[Scenario[Scene]],
        tell: Callable[[ScenarioResult], None],
        tell_problem: Callable[[str], None],
    ) -> None:
        self._order = order
        self._site = site
        self._scenarios = scenarios
        self._runs = ScenarioRuns(tell)
        self._tell_problem = tell_problem

    def run(self) -> list[ScenarioResult]:
        fitting: list[int] = []
        for place, scenario in enumerate(self._scenarios):
            why = self._why_skipped(scenario)
            if why:
                rows = [check.row(skipped(why)) for check in scenario.checks]
                self._runs.note(place, _result(scenario, self._site, self._order.repeat, rows))
            else:
                fitting.append(place)
        if fitting:
            with contextlib.suppress(Stopped):  # those that are not done are told to be so
                self._run_fitting(fitting)
        return [
            self._runs.results.get(place) or unmet(one, self._site, self._order.repeat, _STOPPED)
            for place, one in enumerate(self._scenarios)
        ]

    def _run_fitting(self, fitting: list[int]) -> None:
        scenarios = self._scenarios
        try:
            lanes = self._lanes(len(fitting), any(scenarios[one].isolated for one in fitting))
        except PeerError as error:
            cause = show(error.message, 600)
            for place in fitting:
                result = unmet(scenarios[place], self._site, self._order.repeat, cause)
                self._runs.note(place, result)
            return
        self._runs.run([one for one in fitting if not scenarios[one].disturbs], lanes)
        self._runs.run([one for one in fitting if scenarios[one].disturbs], lanes[:1])

    def _lanes(self, scenarios: int, isolated: bool) -> list[Lane]:
        """The first lane has the connection over which the server was met."""
        order, site = self._order, self._site
        first = site.meet(warm=isolated)
        offered = learn(site, first)
        for problem in offered.endless:
            self._tell_problem(problem)
        lost = Lost()
        wanted = max(1, min(order.jobs, scenarios, _MOST_LANES))
        lanes = [
            ScenarioLane(site, offered, order, lost, None if n else first) for n in range(wanted)
        ]
        return [partial(self._run_on, lane) for lane in lanes]

    def _run_on(self, lane: ScenarioLane, place: int) -> ScenarioResult:
        return lane.run(self._scenarios[place])

    def _why_skipped(self, scenario: Scenario[Scene]) -> str:
        order = self._order
        if order.revision not in scenario.revisions:
            return f"there is no such scenario in {order.revision}"
        return (
            "" if order.target.way in scenario.transports else f"it is not about {order.target.way}"
        )
