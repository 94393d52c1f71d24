"""The lanes of a suite beside its tests: each ends in results like those of tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from mcptest.model.errors import McptestError, PeerError
from mcptest.model.redaction import redaction
from mcptest.model.results import TestResult
from mcptest.model.scorecard import Scorecard
from mcptest.model.show import show
from mcptest.peer.connection import Stopped
from mcptest.run.choosing import ServerChoice
from mcptest.run.compliance.order import Order
from mcptest.run.fixture import isolate_fixture
from mcptest.run.lanes_compliance import Tell, judge_block
from mcptest.run.lanes_results import COMPLIANCE, failed_lane, result_of_gate, results_of_judgement
from mcptest.run.lanes_target import SuiteServer, server_of_suite
from mcptest.suite.compliance_block import ComplianceBlock
from mcptest.suite.lanes import Lanes


@dataclass(frozen=True, slots=True)
class LaneSettings:
    """How lanes are run, whatever they judge."""

    timeout: float = 30.0
    fixture: str | Path | None = None
    choice: ServerChoice = field(default_factory=ServerChoice)
    scorecards: Mapping[str, Scorecard | None] = field(default_factory=dict)
    """What `grade_delta` of each file compares with."""
    repeat: Callable[[str], str] = lambda file: ""
    """The command that judges the server of a file again."""
    should_stop: Callable[[], bool] = lambda: False


def run_compliance_lane(lanes: Lanes, how: LaneSettings, tell: Tell) -> Iterator[TestResult]:
    """Judge the server of a file as its block says. One that can't be reached is a failure."""
    block = lanes.compliance
    assert block is not None  # whoever calls has looked
    try:
        yield from _judged(block, lanes, how, tell)
    except Stopped:
        return
    except McptestError as error:
        yield from _results(replace(block, tests=(), grade_delta=None), lanes, how, None, tell)
        kind = "call" if isinstance(error, PeerError) else "start"
        detail = f"the server could not be judged: {error.message}"
        repeat = how.repeat(lanes.file)
        yield failed_lane(COMPLIANCE, detail, block.place, kind=kind, repeat=repeat)


def _judged(
    block: ComplianceBlock, lanes: Lanes, how: LaneSettings, tell: Tell
) -> Iterator[TestResult]:
    if not block.needs_server:
        yield from _results(block, lanes, how, None, tell)
        return
    with fixture_copy(how.fixture) as fixture:
        server = server_of_suite(lanes.server, how.choice, fixture)
        mask = redaction.text
        try:
            yield from _results(block, lanes, how, server, tell)
        except McptestError as error:
            raise error.masked(mask) from None


@contextmanager
def fixture_copy(source: str | Path | None) -> Iterator[str]:
    """The path of a copy of the fixture, for as long as it is needed; empty without one."""
    if source is None:
        yield ""
        return
    copy = isolate_fixture(source)
    try:
        yield copy.folder
    finally:
        copy.remove()


def _results(
    block: ComplianceBlock,
    lanes: Lanes,
    how: LaneSettings,
    server: SuiteServer | None,
    tell: Tell,
) -> Iterator[TestResult]:
    order = None if server is None else _order(block, lanes, how, server)
    judged = judge_block(block, order, tell, before=how.scorecards.get(lanes.file))
    label = ""
    if server is not None:
        label = show(redaction.text(server.target.label), 120)
    places = {test.name: test.place for test in block.tests or ()}
    for judgement in judged.judgements:
        for result in results_of_judgement(judgement, block.place, server=label):
            place = places.get(result.name.removeprefix(f"{COMPLIANCE} "), block.place)
            yield msgspec.structs.replace(result, line=place.line)
    for gate in judged.gates:
        gate_block = getattr(block, gate.name, None)
        yield result_of_gate(gate, gate_block.place if gate_block is not None else block.place)


def _order(block: ComplianceBlock, lanes: Lanes, how: LaneSettings, server: SuiteServer) -> Order:
    masker = redaction.masker
    return Order(
        target=server.target,
        revision=block.spec_version or server.revision,
        fixtures=block.fixtures,
        timeout=how.timeout,
        startup=how.timeout,
        captures=how.choice.captures,
        repeat=masker.text(how.repeat(lanes.file)),
        should_stop=how.should_stop,
    )
