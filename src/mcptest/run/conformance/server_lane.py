"""One lane of the suite for servers: scenarios one after the other, over one connection where none
of them minds. A server that is lost is met again; one that does not come back is given up.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping

from mcptest.clients.scenario import Row
from mcptest.model.conformance import CheckResult, ScenarioResult, Status
from mcptest.model.errors import ErrorKind, PeerError
from mcptest.model.show import show, show_lines
from mcptest.model.verdict import Side
from mcptest.run.compliance.conversation import Conversation
from mcptest.run.compliance.declared import EVERYTHING
from mcptest.run.compliance.probe_connections import is_usable
from mcptest.run.compliance.site import Site
from mcptest.run.conformance.scenarios.scenario import (
    ServerScenario,
    every_check,
    judged,
    untestable,
)
from mcptest.run.conformance.scenarios.scene import Offered
from mcptest.run.conformance.scenarios.stage import Stage
from mcptest.run.conformance.server_gating import missing_for, unserved
from mcptest.run.conformance.server_wire_schema import Span, wire_schema_row

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


class Lane:
    """Runs one scenario after the other. A lane belongs to one thread."""

    def __init__(
        self,
        site: Site,
        offered: Offered,
        *,
        names: Mapping[str, str],
        strict: bool,
        repeat: str,
        lost: Lost,
        first: Conversation | None = None,
    ) -> None:
        self._site = site
        self._offered = offered
        self._names = names
        self._strict = strict
        self._repeat = repeat
        self._lost = lost
        self._shared = first

    def run(self, scenario: ServerScenario) -> ScenarioResult:
        begun = time.monotonic()
        missing = "" if self._strict else missing_for(scenario, self._offered, self._names)
        if missing:
            site = self._site
            rows = untestable(scenario, site.revision, site.transport, missing)
            return self._result(scenario, tuple(rows), begun)
        try:
            conversation = self._connection(scenario)
        except PeerError as error:
            return self._not_met(scenario, error, begun)
        return self._played(scenario, conversation, begun)

    def _not_met(self, scenario: ServerScenario, error: PeerError, begun: float) -> ScenarioResult:
        return unmet(scenario, self._site, show(error.message, 600), self._repeat, begun)

    # -- connections -----------------------------------------------------------------------

    def _connection(self, scenario: ServerScenario) -> Conversation:
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
        self, scenario: ServerScenario, conversation: Conversation, begun: float
    ) -> ScenarioResult:
        stage = Stage(
            self._site,
            conversation,
            scenario=scenario.name,
            offered=self._offered,
            names=self._names,
            whole=scenario.isolated,
        )
        try:
            scenario.script(stage)
            return self._judged(scenario, stage, begun)
        finally:
            if scenario.isolated:
                self._site.leave(conversation)

    def _judged(self, scenario: ServerScenario, stage: Stage, begun: float) -> ScenarioResult:
        scene = stage.scene()
        site = self._site
        missing = "" if self._strict else unserved(scenario, scene)
        if missing:
            rows = tuple(untestable(scenario, site.revision, site.transport, missing))
        else:
            rows = tuple(judged(scenario, scene, strict=self._strict))
        spans = [Span(one.tape.records, begins, one.tape.transport) for one, begins in stage.spans]
        schema = wire_schema_row(spans, site.revision)
        whole = rows if schema is None else (*rows, schema)
        return self._result(scenario, whole, begun, stage.main)

    def _result(
        self,
        scenario: ServerScenario,
        rows: tuple[CheckResult, ...],
        begun: float,
        main: Conversation | None = None,
    ) -> ScenarioResult:
        recorder = main.tape.recorder if main is not None else None
        kept = recorder is not None and recorder.kept
        return ScenarioResult(
            scenario=scenario.name,
            side=Side.SERVER,
            revision=self._site.revision,
            transport=self._site.transport,
            checks=rows,
            duration_ms=round((time.monotonic() - begun) * 1000, 3),
            stderr=self._stderr(main),
            capture=str(recorder.written_to) if recorder is not None and kept else "",
            repeat=repeat_of(self._repeat, scenario),
        )

    def _stderr(self, main: Conversation | None) -> str:
        """What a server that died had to say."""
        if main is None or main.tape.exited is None:
            return ""
        return show_lines(self._site.masker.text("\n".join(main.tape.stderr)), _STDERR)


def unmet(
    scenario: ServerScenario, site: Site, cause: str, repeat: str, begun: float | None = None
) -> ScenarioResult:
    """One cause, and nothing green: every check fails of a server that could not be reached."""
    rows = _failing(scenario, site, cause)
    spent = 0.0 if begun is None else (time.monotonic() - begun) * 1000
    return ScenarioResult(
        scenario=scenario.name,
        side=Side.SERVER,
        revision=site.revision,
        transport=site.transport,
        checks=tuple(rows),
        duration_ms=round(spent, 3),
        cause=cause,
        repeat=repeat_of(repeat, scenario),
    )


def _failing(scenario: ServerScenario, site: Site, cause: str) -> Iterator[CheckResult]:
    row = Row(Status.FAILURE, cause)
    yield from every_check(scenario, site.revision, site.transport, row)


def repeat_of(repeat: str, scenario: ServerScenario) -> str:
    return f"{repeat} --scenario {scenario.name}" if repeat else ""
