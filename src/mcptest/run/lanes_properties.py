"""The `properties:` lane: the server of the file, tried with generated examples or kept ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from mcptest.model.errors import McptestError, PeerError, UsageError
from mcptest.model.property import PropertyReport
from mcptest.model.redaction import redaction
from mcptest.model.results import TestResult
from mcptest.peer.connection import Stopped
from mcptest.run.lanes import LaneSettings, fixture_copy
from mcptest.run.lanes_results import failed_lane
from mcptest.run.lanes_target import SuiteServer, server_of_suite
from mcptest.suite.lanes import Lanes
from mcptest.suite.properties_block import PropertiesBlock

if TYPE_CHECKING:
    from mcptest.run.properties.order import PropertyOrder

PROPERTIES_LANE = "properties"
_TIMEOUT = 5.0
"""For one request: there are many, and silence is waited for."""


def run_properties_lane(
    lanes: Lanes, how: LaneSettings, results_of: Callable[[PropertyReport], Iterable[TestResult]]
) -> Iterator[TestResult]:
    """What `results_of` makes of each report. A server that can't be reached is a failure."""
    block = lanes.properties
    assert block is not None  # whoever calls has looked
    try:
        for report in _reports(block, lanes, how):
            for result in results_of(report):
                yield msgspec.structs.replace(result, file=block.place.file, line=block.place.line)
    except Stopped:
        return
    except McptestError as error:
        kind = "call" if isinstance(error, PeerError) else "start"
        detail = f"the server could not be tried: {error.message}"
        yield failed_lane(PROPERTIES_LANE, detail, block.place, kind=kind, repeat="")


def _reports(block: PropertiesBlock, lanes: Lanes, how: LaneSettings) -> Iterator[PropertyReport]:
    if find_spec("hypothesis") is None:
        raise UsageError(
            "property tests need Hypothesis, which is not installed",
            hint="pip install 'mcptest[property]'",
        )
    from mcptest.run.properties.engine import replay_example, run_properties
    from mcptest.run.properties.examples import read_example

    with fixture_copy(how.fixture) as fixture:
        server = server_of_suite(lanes.server, how.choice, fixture)
        order = _order(block, how, server)
        try:
            if not block.replay:
                yield run_properties(order)
            for file in block.replay:
                yield replay_example(order, read_example(Path(lanes.file).parent / file))
        except McptestError as error:
            raise error.masked(redaction.text) from None


def _order(block: PropertiesBlock, how: LaneSettings, server: SuiteServer) -> PropertyOrder:
    from mcptest.run.properties.order import PropertyOrder

    return PropertyOrder(
        target=server.target,
        revision=server.revision,
        properties=block.names,
        examples=block.examples,
        seed=block.seed,
        max_time=block.max_time,
        allow_tools=block.allow_tools,
        captures=how.choice.captures,
        timeout=min(how.timeout, _TIMEOUT),
        startup=how.timeout,
        strict=block.strict,
        should_stop=how.should_stop,
    )
