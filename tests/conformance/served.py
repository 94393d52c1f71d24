"""A server of ours for as long as it is looked at: the demo, or one of the broken servers."""

from __future__ import annotations

import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mcptest.core.revision import Revision
from mcptest.core.scenario_outcome import CheckResult, ScenarioResult
from mcptest.core.verdict import Side
from mcptest.probe.conformance.scenario_catalogue import scenarios
from mcptest.probe.conformance.server.server_suite import ConformanceOrder, run_server_scenarios
from mcptest.transport.target import Target

ROOT = Path(__file__).parents[2]
OFFERED = ("--offer", "fixtures", "--page-size", "1000")
DEMO = (sys.executable, "-m", "mcptest.servers.demo")
STARTING = 30.0


@contextmanager
def served(command: tuple[str, ...], over: str) -> Iterator[Target]:
    """A way to the server; over HTTP it is started here."""
    if over == "stdio":
        yield Target(way="stdio", label="it", command=command, cwd=str(ROOT))
        return
    process = subprocess.Popen(
        [*command, "--transport", "http"], cwd=ROOT, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    try:
        ready, _, _ = select.select([process.stderr], [], [], STARTING)
        line = process.stderr.readline() if ready else ""
        assert line.startswith("listening on http://"), line
        yield Target(way="http", label="it", url=line.removeprefix("listening on ").strip())
    finally:
        process.terminate()
        process.wait()
        process.stderr.close()


def run_all(
    target: Target,
    revision: Revision,
    *,
    names: tuple[str, ...] = (),
    jobs: int = 1,
    strict: bool = False,
    timeout: float = 10.0,
    captures: Path | None = None,
) -> list[ScenarioResult]:
    """Every scenario that there is for it, or those that are named."""
    every = tuple(one.name for one in scenarios(Side.SERVER, "all", revision, target.way))
    order = ConformanceOrder(
        target=target,
        revision=revision,
        scenarios=names or every,
        jobs=jobs,
        strict_fixtures=strict,
        timeout=timeout,
        startup=STARTING,
        captures=captures,
        repeat="mcptest conformance server",
    )
    return run_server_scenarios(order, tell=lambda result: None)


def rows_of(results: list[ScenarioResult]) -> list[CheckResult]:
    return [check for result in results for check in result.checks]
