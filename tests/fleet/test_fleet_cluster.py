"""A fleet on a real cluster: workers die while they work, and nothing is lost or made up.

What docs/commands/fleet.md says of clusters is done here.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from mcptest.commands.app import run as run_command
from mcptest.commands.fleet import cluster as cluster_module
from mcptest.commands.fleet.cluster import (
    _first_line,
    _fitting_workers,
    _in_words,
    judge_for_a_cluster,
    judging_on_cluster,
)
from mcptest.commands.fleet.worker_pool import FleetServerOrder
from mcptest.core.errors import PeerError, UsageError
from mcptest.report.fleet import ServerOutcome
from mcptest.transport.interrupt import Stop
from mcptest.transport.target import Target
from tests.e2e.driving import BOUND, Done, ended_after, free_port, is_alive, mcptest, wait_until
from tests.fleet.cluster import Cluster, cluster
from tests.fleet.configured import DEMO, GONE, parent_of, script, stuck_once, write_config

# Looked for, not imported: every worker collects these tests, and few run them.
pytestmark = pytest.mark.skipif(
    find_spec("distributed") is None, reason="the extra [fleet] is not installed"
)

PAGE = Path(__file__).parents[2] / "docs" / "commands" / "fleet.md"
SECRET = "hush-hush-0815"
# Whoever judges it is below the worker of the cluster.
MURDEROUS = """\
import os, pathlib, signal
def parent(pid):
    return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
judge_is_below = parent(os.getppid())  # by now that may be somebody else
if b"distributed.Worker(" in pathlib.Path(f"/proc/{judge_is_below}/cmdline").read_bytes():
    os.kill(judge_is_below, signal.SIGKILL)
signal.pause()
"""


@pytest.fixture(scope="module")
def workers() -> Iterator[Cluster]:
    with cluster(2) as started:
        yield started


@contextlib.contextmanager
def fleet(config: Path, address: str, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "mcptest", "fleet", str(config), "--json", "--quiet"]
    process = subprocess.Popen(
        [*command, "--scheduler", address, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def ended(process: subprocess.Popen[bytes]) -> Done:
    out, err = process.communicate(timeout=2 * BOUND)
    return Done(process.returncode, out.decode(), err.decode())


def verdicts(row: dict[str, Any]) -> dict[str, str]:
    """What was judged of one server, without what differs from one run to the next."""
    results = row["compliance"]["judgements"][0]["results"]
    return {one["id"]: one["outcome"] for one in results}


def essence(row: dict[str, Any]) -> Any:
    return row["outcome"], row["grade"], row["audit_score"], row["tools"], verdicts(row)


def test_a_worker_that_is_killed_while_it_works_changes_nothing(
    workers: Cluster, tmp_path: Path
) -> None:
    stuck, mark = stuck_once(tmp_path)
    secret = {"env": {"API_KEY": SECRET}}
    config = write_config(tmp_path, {"struck": {**stuck, **secret}, "steady": {**DEMO, **secret}})
    with fleet(config, workers.address) as process:
        wait_until(mark.exists, "the server on its worker")
        server = int(mark.read_text())
        judge = parent_of(server)
        workers.kill(parent_of(judge))
        done = ended(process)
    wait_until(lambda: not is_alive(judge) and not is_alive(server), "the end of what it started")
    report = json.loads(done.out)
    assert done.err == ""
    # Both are the demo, once it has been struck: as it is judged here, it is judged there.
    here = mcptest("fleet", str(config), "--server", "steady", "--json", "--quiet")
    (expected,) = json.loads(here.out)["fleet"]
    assert [row["name"] for row in report["fleet"]] == ["struck", "steady"]
    assert [essence(row) for row in report["fleet"]] == [essence(expected)] * 2
    assert (here.code, expected["outcome"]) == (0, "passed")
    assert done.code == 1, "the two share their names"
    assert all(row["worker"].startswith("tcp://") for row in report["fleet"])
    assert SECRET not in done.out + workers.logs()


def test_a_server_that_kills_its_workers_is_not_judged_and_the_others_are(
    workers: Cluster, tmp_path: Path
) -> None:
    workers.add_worker()
    workers.add_worker()
    _allow_failures(workers, 0)
    config = write_config(
        tmp_path, {"murderous": script(tmp_path, "murderous", MURDEROUS), "gone": GONE}
    )
    try:
        with fleet(config, workers.address) as process:
            done = ended(process)
    finally:
        _allow_failures(workers, 3)
    murderous, gone = json.loads(done.out)["fleet"]
    assert (done.code, murderous["outcome"], gone["outcome"]) == (1, "not judged", "unreachable")
    assert "every worker that judged it died" in murderous["reason"]


def _allow_failures(workers: Cluster, number: int) -> None:
    import distributed

    with distributed.Client(workers.address, set_as_default=False) as client:
        client.run_on_scheduler(_set_allowed_failures, number=number)


def _set_allowed_failures(dask_scheduler: Any, number: int) -> None:
    dask_scheduler.allowed_failures = number


# By value: the scheduler knows nothing of these tests.
_set_allowed_failures.__module__ = "__main__"


def test_an_interrupt_ends_the_work_on_the_workers_too(workers: Cluster, tmp_path: Path) -> None:
    workers.add_worker()
    stuck, mark = stuck_once(tmp_path)
    config = write_config(tmp_path, {"stuck": stuck})
    with fleet(config, workers.address) as process:
        wait_until(mark.exists, "the server on its worker")
        server = int(mark.read_text())
        judge = parent_of(server)
        process.send_signal(signal.SIGINT)
        done = ended(process)
    assert done.code == 130, done.err
    assert json.loads(done.out)["fleet"][0]["outcome"] == "interrupted"
    wait_until(lambda: not is_alive(judge) and not is_alive(server), "the end of the work")


def test_a_scheduler_that_dies_is_told_and_nothing_goes_on_without_it(tmp_path: Path) -> None:
    stuck, mark = stuck_once(tmp_path)
    config = write_config(tmp_path, {"stuck": stuck})
    with cluster(1) as short_lived, fleet(config, short_lived.address) as process:
        wait_until(mark.exists, "the server on its worker")
        short_lived.kill(short_lived.scheduler)
        done = ended(process)
        wait_until(lambda: not is_alive(int(mark.read_text())), "the end of the work")
    (row,) = json.loads(done.out)["fleet"]
    assert (done.code, row["outcome"]) == (1, "not judged")
    assert "the scheduler is gone" in row["reason"]


class Deserted:
    """A cluster that takes work, and has nobody to do it."""

    status = "running"

    def submit(self, *arguments: Any, **options: Any) -> Deserted:
        return self

    def add_done_callback(self, tell: Any) -> None:
        """It is never done."""

    def nthreads(self) -> dict[str, int]:
        return {"tcp://another": 1}

    def cancel(self) -> None:
        """Nobody was at it."""


def test_work_that_nobody_can_do_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_module, "_WITHOUT_WORKERS", 0.1)
    monkeypatch.setattr(cluster_module, "_LOOKS_UP", 0.05)
    order = FleetServerOrder(name="a", target=Target(way="stdio", label="a", command=("x",)))
    work = cluster_module._Work(Deserted(), [order, order], Stop(), ["tcp://fitting"], 1)
    found = dict(work.results())
    assert {one.server.outcome for one in found.values()} == {ServerOutcome.NOT_JUDGED}
    assert len(found) == 2
    assert "had no worker" in found[0].server.reason


def test_workers_of_another_version_are_not_asked(
    workers: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_module, "__version__", "99.0")
    with (
        pytest.raises(UsageError, match=r"has mcptest 99\.0") as caught,
        judging_on_cluster([], Stop(), workers.address),
    ):
        pass
    assert "mcptest[fleet]==99.0" in caught.value.hint


# -- without a cluster ---------------------------------------------------------------------------


class Told:
    """As much of a client as is asked for versions."""

    def __init__(self, **versions: Any) -> None:
        self._versions = versions

    def wait_for_workers(self, number: int, timeout: float) -> None:
        if not self._versions:
            raise TimeoutError("Only 0/1 workers arrived")

    def run(self, function: Any, *arguments: Any, on_error: str) -> dict[str, Any]:
        return self._versions


def test_only_workers_of_our_version_work_where_there_are_others() -> None:
    from mcptest import __version__

    assert _fitting_workers(Told(a=__version__, b=__version__), "x", Stop()) is None
    assert _fitting_workers(Told(a=__version__, b="0.0.1", c=ImportError()), "x", Stop()) == ["a"]
    with pytest.raises(UsageError, match=r"the 2 there have: 0\.0\.1, none"):
        _fitting_workers(Told(b="0.0.1", c=ImportError()), "x", Stop())
    with pytest.raises(PeerError, match="has no worker that answers"):
        _fitting_workers(Told(), "x", Stop())


def test_a_worker_of_another_version_says_so_in_the_row() -> None:
    order = FleetServerOrder(name="a", target=Target(way="stdio", label="a", command=("x",)))
    found = json.loads(judge_for_a_cluster(order, "99.0"))
    assert found["server"]["outcome"] == "not judged"
    assert "99.0 asked" in found["server"]["reason"]


def test_a_worker_that_breaks_down_says_so_and_raises_nothing() -> None:
    order = FleetServerOrder(name="a", target=Target(way="stdio", label="a", command=("x",)))
    from mcptest import __version__

    found = json.loads(judge_for_a_cluster(order, __version__))  # here is no worker
    assert found["server"]["outcome"] == "not judged"
    assert "ValueError" in found["server"]["reason"]


def test_errors_of_a_cluster_are_told_in_our_words() -> None:
    import distributed

    killed = distributed.KilledWorker("key", None, 3)
    assert _in_words(killed) == "every worker that judged it died"
    assert "MemoryError: no room" in _in_words(MemoryError("no room"))
    late = OSError("Timed out trying to connect after 10 s")
    late.__cause__ = asyncio.CancelledError()
    assert _first_line(late) == "Timed out trying to connect after 10 s"
    assert _first_line(TimeoutError()) == "TimeoutError"


@contextlib.contextmanager
def listener(says: bytes) -> Iterator[tuple[str, threading.Event]]:
    """Somebody who is no scheduler: says one thing to whoever comes, and then nothing."""
    came = threading.Event()
    guests: list[socket.socket] = []

    def welcome() -> None:
        with contextlib.suppress(OSError):  # it was closed
            while True:
                guest, _ = server.accept()
                guests.append(guest)
                guest.sendall(says)
                came.set()

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=welcome, daemon=True).start()
        yield f"tcp://127.0.0.1:{server.getsockname()[1]}", came
        server.shutdown(socket.SHUT_RDWR)
    for guest in guests:
        guest.close()


@pytest.mark.parametrize(
    ("says", "told"),
    [
        (b"", "does not answer: no response within"),
        (b"\xff" * 64, "is not a Dask scheduler"),
        (b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n", "is not a Dask scheduler"),
    ],
    ids=["silent", "garbage", "http"],
)
def test_somebody_else_at_the_address_of_the_scheduler_is_three(
    says: bytes,
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if not says:
        monkeypatch.setattr(cluster_module, "_REACHING", 0.3)
        monkeypatch.setattr(cluster_module, "_CLOSING", 0.2)
    config = write_config(tmp_path, {"gone": GONE})
    with listener(says) as (address, _), ended_after(int(BOUND)):
        assert run_command(["fleet", str(config), "--scheduler", address]) == 3
    said = capsys.readouterr().err
    assert address in said
    assert told in said


def test_waiting_for_a_silent_scheduler_ends_with_a_signal(tmp_path: Path) -> None:
    config = write_config(tmp_path, {"gone": GONE})
    with listener(b"") as (address, came), fleet(config, address) as process:
        assert came.wait(BOUND)
        process.send_signal(signal.SIGTERM)
        assert process.wait(BOUND) == 130


def test_a_scheduler_that_is_not_there_is_three(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cluster_module, "_REACHING", 0.3)
    config = write_config(tmp_path, {"gone": GONE})
    address = f"tcp://127.0.0.1:{free_port()}"
    assert run_command(["fleet", str(config), "--scheduler", address]) == 3
    said = capsys.readouterr().err
    assert f"the scheduler {address} cannot be reached" in said
    assert len(said.splitlines()) <= 3, said


def test_without_the_extra_there_is_one_sentence_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    config = write_config(tmp_path, {"gone": GONE})
    assert run_command(["fleet", str(config), "--scheduler", "tcp://127.0.0.1:1"]) == 2
    said = capsys.readouterr().err
    assert "--scheduler needs the package distributed" in said
    assert 'pip install "mcptest[fleet]"' in said


def test_the_page_warns_of_a_scheduler_that_is_not_ones_own() -> None:
    page = " ".join(PAGE.read_text().split())
    clusters = page[page.index("an existing [Dask]") :]
    assert "**The scheduler is trusted.**" in clusters
    assert "can run code as you" in clusters


@pytest.mark.parametrize("address", ["gopher://x", "tcp://", " "])
def test_what_is_no_address_is_two(tmp_path: Path, address: str) -> None:
    done = mcptest("fleet", str(write_config(tmp_path, {"g": GONE})), "--scheduler", address)
    assert done.code == 2, done.said
    assert "--scheduler takes an address" in done.err
