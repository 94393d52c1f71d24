"""Properties in worker processes: the same examples and verdicts, and nobody left behind."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from mcptest.core.revision import Revision
from mcptest.probe.counterexamples import Examples, SavedExample, read_example
from mcptest.probe.properties.engine import run_properties
from mcptest.probe.properties.property_catalogue import PropertyOrder
from mcptest.probe.properties.steps import Send
from mcptest.report.property import PropertyReport, PropertyResult
from mcptest.transport.descendants import tree_of
from mcptest.transport.target import DEMO, Target
from tests.e2e.driving import is_alive, wait_until

ROOT = Path(__file__).parents[2]
FAULTY = Target(
    way="stdio",
    label="faulty",
    command=(sys.executable, "-m", "tests.properties.faulty", "invalid-request-code"),
    cwd=str(ROOT),
)
NAMES = ("same-lists", "messages-invalid", "arguments-almost-valid")
ONLY_ONE = """\
import fcntl, sys
lock = open(sys.argv[1], "w")
try:
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
except OSError:
    sys.exit("there is one of us already")
from mcptest.servers.demo.__main__ import run
from mcptest.servers.demo.start_options import parse_options
from tests.e2e.driving import is_alive, wait_until
sys.exit(run(parse_options([])))
"""


def nothing(name: str) -> None:
    """Nobody listens."""


def tried(
    target: Target,
    jobs: int,
    names: tuple[str, ...] = NAMES,
    begins: Callable[[str], None] = nothing,
    **more: object,
) -> PropertyReport:
    order = PropertyOrder(
        target=target,
        revision=Revision.V2025_11_25,
        properties=names,
        jobs=jobs,
        **{"examples": 40, "seed": 1, "timeout": 2.0, **more},  # type: ignore[arg-type]  # as given
    )
    return run_properties(order, begins)


def without_times(report: PropertyReport) -> list[PropertyResult]:
    return [
        msgspec.structs.replace(one, duration_ms=0, generating_ms=0.0) for one in report.properties
    ]


def test_the_same_is_found_and_told_whatever_the_number_of_jobs(tmp_path: Path) -> None:
    alone, together = (tried(FAULTY, jobs, database=tmp_path / str(jobs)) for jobs in (1, 3))
    assert without_times(alone) == without_times(together)
    assert [one.name for one in together.properties] == list(NAMES)
    assert [one.rule for one in together.counterexamples] == ["JSONRPC-003"]
    assert alone.restarts == together.restarts
    kept = [
        sorted((path.name, path.read_bytes()) for path in (tmp_path / jobs).rglob("*.json"))
        for jobs in ("1", "3")
    ]
    assert kept[0] == kept[1] != []


def test_a_server_that_can_be_there_once_only_is_tried_all_the_same(tmp_path: Path) -> None:
    command = (sys.executable, "-c", ONLY_ONE, str(tmp_path / "lock"))
    names = ("messages-invalid", "arguments-almost-valid")
    report = tried(Target(way="stdio", label="one", command=command), 2, names, examples=10)
    assert [one.ended_early for one in report.properties] == ["", ""]
    assert not report.failed
    assert [note for note in report.notes if "another server for --jobs did not start" in note]


def test_a_worker_that_is_killed_costs_its_property_and_nothing_else() -> None:
    before = set(tree_of(os.getpid()))

    def begins(name: str) -> None:
        if name == "messages-invalid":
            (worker,) = [pid for pid in tree_of(os.getpid()) if pid not in before][-1:]
            os.kill(worker, signal.SIGKILL)

    names = ("messages-invalid", "same-lists")
    report = tried(DEMO, 2, names, begins)
    killed, other = report.properties
    assert killed.ended_early == "the process that ran it was killed"
    assert report.untried == ("messages-invalid",)
    assert report.failed
    assert other.examples == 1


def await_the_end_of_all_but(before: set[int]) -> None:
    """The lifelines of the workers end by themselves, a moment after them."""
    wait_until(
        lambda: not any(map(is_alive, set(tree_of(os.getpid())) - before)),
        "the end of all processes",
    )


def test_an_interrupted_run_ends_its_workers_and_says_how_far_they_came() -> None:
    before = set(tree_of(os.getpid()))
    begun: list[str] = []
    report = tried(
        DEMO, 2, begins=begun.append, examples=100_000, should_stop=lambda: len(begun) == 2
    )
    assert report.interrupted
    assert {one.ended_early for one in report.properties} == {"interrupted"}
    assert {one.name for one in report.properties} == set(begun)
    await_the_end_of_all_but(before)


def test_a_defect_in_a_worker_is_told_where_it_can_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    before = set(tree_of(os.getpid()))

    def broken(*_: object, **__: object) -> None:
        raise LookupError("lost in thought")

    monkeypatch.setattr("mcptest.probe.properties.engine.PropertyRun.result", broken)
    with pytest.raises(RuntimeError, match="LookupError: lost in thought"):
        tried(DEMO, 2)
    await_the_end_of_all_but(before)


def test_many_writers_keep_the_same_example_and_leave_nothing_else(tmp_path: Path) -> None:
    example = SavedExample(
        of_property="messages-valid", rule="MSG-001", steps=[Send("{}" * 10_000)]
    )
    kept = Examples(tmp_path, DEMO)
    writers = [threading.Thread(target=kept.keep, args=(example,)) for _ in range(8)]
    for one in writers:
        one.start()
    for one in writers:
        one.join()
    assert kept.troubles == []
    assert kept.folder is not None
    (path,) = kept.folder.iterdir()
    assert read_example(path) == example
