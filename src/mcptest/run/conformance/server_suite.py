"""The scenario suite for a server: it is met once, and every scenario is run over as few
connections as can be.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from mcptest.clients.scenario import Row
from mcptest.model.conformance import ScenarioResult, Status
from mcptest.model.errors import PeerError
from mcptest.model.revision import Revision
from mcptest.model.show import show
from mcptest.model.verdict import Side
from mcptest.peer.connection import Stopped
from mcptest.peer.meeting import ASKED_FOR
from mcptest.run.compliance.order import Order
from mcptest.run.compliance.side_by_side import side_by_side
from mcptest.run.compliance.site import Site
from mcptest.run.conformance.scenarios.catalogue import server_scenario
from mcptest.run.conformance.scenarios.scenario import ServerScenario, row_of
from mcptest.run.conformance.server_lane import Lane, Lost, repeat_of, unmet
from mcptest.run.conformance.server_learning import learn
from mcptest.transport.target import Target

_PATIENCE = 2.0
_MOST_LANES = 16
_STOPPED = "stopped before it was run"


class ServerOrder(msgspec.Struct, frozen=True, kw_only=True):
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
    order: ServerOrder,
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
    scenarios = [server_scenario(name) for name in order.scenarios]
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
        return _Suite(order, site, scenarios, tell, tell_problem).run()
    finally:
        site.close()


class _Suite:
    """The results so far, by the place of their scenario."""

    def __init__(
        self,
        order: ServerOrder,
        site: Site,
        scenarios: Sequence[ServerScenario],
        tell: Callable[[ScenarioResult], None],
        tell_problem: Callable[[str], None],
    ) -> None:
        self._order = order
        self._site = site
        self._scenarios = scenarios
        self._tell = tell
        self._tell_problem = tell_problem
        self._results: dict[int, ScenarioResult] = {}
        self._telling = threading.Lock()

    def run(self) -> list[ScenarioResult]:
        fitting = [place for place, one in enumerate(self._scenarios) if self._fits(one)]
        for place, scenario in enumerate(self._scenarios):
            if place not in fitting:
                self._note(place, self._not_offered(scenario))
        if fitting:
            with contextlib.suppress(Stopped):  # those that are not done are told to be so
                self._run_fitting(fitting)
        return [
            self._results.get(place) or unmet(one, self._site, _STOPPED, self._order.repeat)
            for place, one in enumerate(self._scenarios)
        ]

    def _fits(self, scenario: ServerScenario) -> bool:
        order = self._order
        return order.revision in scenario.revisions and order.target.way in scenario.transports

    def _run_fitting(self, fitting: list[int]) -> None:
        scenarios = self._scenarios
        try:
            lanes = self._lanes(len(fitting), any(scenarios[one].isolated for one in fitting))
        except PeerError as error:
            for place in fitting:
                cause = show(error.message, 600)
                self._note(place, unmet(scenarios[place], self._site, cause, self._order.repeat))
            return
        beside = deque(place for place in fitting if not scenarios[place].disturbs)
        acts = [lambda lane=lane: self._drain(lane, beside) for lane in lanes]
        if len(acts) == 1:
            acts[0]()
        else:
            side_by_side(acts)
        alone = deque(place for place in fitting if scenarios[place].disturbs)
        self._drain(lanes[0], alone)

    def _lanes(self, scenarios: int, isolated: bool) -> list[Lane]:
        """The first lane has the connection over which the server was met."""
        order, site = self._order, self._site
        first = site.meet(warm=isolated)
        offered = learn(site, first)
        for problem in offered.endless:
            self._tell_problem(problem)
        lost = Lost()
        wanted = max(1, min(order.jobs, scenarios, _MOST_LANES))
        return [
            Lane(
                site,
                offered,
                names=order.fixtures,
                strict=order.strict_fixtures,
                repeat=order.repeat,
                lost=lost,
                first=first if number == 0 else None,
            )
            for number in range(wanted)
        ]

    def _drain(self, lane: Lane, waiting: deque[int]) -> None:
        """Take scenarios from the front until none is left; lanes share what is waiting."""
        while True:
            try:
                place = waiting.popleft()
            except IndexError:
                return
            self._note(place, lane.run(self._scenarios[place]))

    def _note(self, place: int, result: ScenarioResult) -> None:
        with self._telling:
            self._results[place] = result
            self._tell(result)

    def _not_offered(self, scenario: ServerScenario) -> ScenarioResult:
        order = self._order
        if order.revision not in scenario.revisions:
            why = f"there is no such scenario in {order.revision}"
        else:
            why = f"it is not about {order.target.way}"
        row = Row(Status.SKIPPED, why)
        return ScenarioResult(
            scenario=scenario.name,
            side=Side.SERVER,
            revision=order.revision,
            transport=order.target.way,
            checks=tuple(row_of(check, row) for check in scenario.checks),
            repeat=repeat_of(order.repeat, scenario),
        )
