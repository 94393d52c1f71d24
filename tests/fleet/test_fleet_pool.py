"""Servers judged by processes of ours: whatever becomes of one costs its own row."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import msgspec
import pytest

from mcptest.commands.fleet import worker, worker_pool
from mcptest.commands.fleet.worker_pool import (
    FleetServerOrder,
    Found,
    WorkerFinished,
    WorkerProgress,
    encoded,
    judge_in_process,
    judging_here,
    message_of,
)
from mcptest.report.fleet import FleetServer, ServerOutcome
from mcptest.transport.descendants import become_subreaper
from mcptest.transport.interrupt import Stop
from mcptest.transport.target import Target
from mcptest.wire.lines import LineReader
from tests.e2e.driving import BOUND, is_alive, wait_until
from tests.fleet.configured import parent_of, stuck_once
from tests.fleet.test_fleet_verdict import WELL, judged

NOT_JUDGED, UNREACHABLE = ServerOutcome.NOT_JUDGED, ServerOutcome.UNREACHABLE
GONE = Target(way="stdio", label="gone", command=("/nonexistent/server",))


def target(entry: dict[str, object]) -> Target:
    arguments = entry["args"]
    assert isinstance(arguments, list)
    return Target(way="stdio", label="x", command=(str(entry["command"]), *arguments))


def all_of(orders: list[FleetServerOrder], jobs: int) -> dict[int, Found]:
    with judging_here(orders, Stop(), jobs) as results:
        return dict(results)


def test_frames_come_whole_however_they_are_cut() -> None:
    half = Found.nothing("a", NOT_JUDGED, "half \udc00 a character")
    sent = [WorkerProgress("1 of 2"), WorkerFinished(half)]
    lines = LineReader(worker_pool.LARGEST)
    said = b"".join(map(encoded, sent))
    got = [message_of(line) for byte in said for line in lines.feed(bytes([byte]))]
    assert got[0] == sent[0]
    assert isinstance(got[1], WorkerFinished)
    assert "\\udc00" in got[1].found.server.reason


def test_what_is_no_frame_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match=r".+"):
        message_of(b"{}")
    monkeypatch.setattr("mcptest.commands.fleet.worker_pool.LARGEST", 10)
    with pytest.raises(ValueError, match="more than 10 bytes"):
        message_of(LineReader(10).feed(b"x" * 11)[0])


def test_each_row_comes_with_its_number_and_an_order_of_any_size_arrives() -> None:
    large = msgspec.structs.replace(GONE, env={"LARGE": "/x" * 150_000})
    orders = [FleetServerOrder(name="a", target=GONE), FleetServerOrder(name="b", target=large)]
    found = all_of(orders, 2)
    assert [found[number].server.name for number in (0, 1)] == ["a", "b"]
    assert {one.server.outcome for one in found.values()} == {UNREACHABLE}
    assert "command not found" in found[0].server.reason


def test_a_server_that_says_nothing_is_left_at_its_limit_and_the_others_go_on(
    tmp_path: Path,
) -> None:
    entry, mark = stuck_once(tmp_path)
    orders = [
        FleetServerOrder(name="stuck", target=target(entry), limit=5.0),
        FleetServerOrder(name="gone", target=GONE),
    ]
    found = all_of(orders, 1)
    assert found[0].server.outcome is NOT_JUDGED
    assert "5s" in found[0].server.reason
    assert found[1].server.outcome is UNREACHABLE
    assert not is_alive(int(mark.read_text()))


def test_the_start_of_a_process_is_part_of_the_time_for_its_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(worker_pool, "GRACE", BOUND)  # it is to say so itself
    order = FleetServerOrder(name="over", target=GONE, limit=0.01)
    found = judge_in_process(order)
    assert found.server.outcome is NOT_JUDGED
    assert found.server.reason == "not judged to the end within 0.01s"


def test_a_process_that_does_not_heed_its_limit_is_killed_with_its_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_pool, "GRACE", 2.0)
    entry, mark = stuck_once(tmp_path)
    stuck = FleetServerOrder(name="stuck", target=target(entry), limit=0.0)
    # Its own limit never comes: the order says a later one than we keep.
    monkeypatch.setattr(
        worker_pool,
        "encoded",
        lambda one: encoded(msgspec.structs.replace(one, limit=600.0, until=0.0)),
    )
    found = judge_in_process(stuck)
    assert found.server.outcome is NOT_JUDGED
    assert found.server.reason == "not judged within 0s"
    if mark.exists():
        assert not is_alive(int(mark.read_text()))


def test_a_process_that_is_killed_by_others_is_a_row_and_leaves_no_server(tmp_path: Path) -> None:
    entry, mark = stuck_once(tmp_path)
    killed: list[int] = []

    def kill_who_judges() -> bool:
        if mark.exists() and not killed:  # then the server becomes our own child
            killed.append(parent_of(int(mark.read_text())))
            os.kill(killed[0], signal.SIGKILL)
        return False

    become_subreaper()
    order = FleetServerOrder(name="struck", target=target(entry), startup=BOUND, timeout=BOUND)
    found = judge_in_process(order, kill_who_judges)
    assert found.server.outcome is NOT_JUDGED
    assert "SIGKILL" in found.server.reason
    wait_until(lambda: not is_alive(int(mark.read_text())), "the end of the server")


def test_a_stop_ends_everything_and_every_order_has_its_row(tmp_path: Path) -> None:
    entry, mark = stuck_once(tmp_path)
    stop = Stop()
    orders = [
        FleetServerOrder(name="gone", target=GONE),
        FleetServerOrder(name="stuck", target=target(entry)),
        FleetServerOrder(name="later", target=GONE),
    ]
    rows = {}
    with judging_here(orders, stop, 1) as results:
        for number, found in results:
            rows[number] = found
            if number == 0:
                stop.set()
    assert [rows[number].server.outcome for number in range(3)] == [
        UNREACHABLE,
        ServerOutcome.INTERRUPTED,
        ServerOutcome.INTERRUPTED,
    ]
    assert not mark.exists() or not is_alive(int(mark.read_text()))


def test_a_defect_of_ours_is_said_without_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    from mcptest.commands.fleet import worker

    def break_down(*_: object) -> Found:
        raise RuntimeError("no such thing as hush-hush-1")

    monkeypatch.setattr(worker, "judge_one", break_down)
    order = FleetServerOrder(
        name="a", target=msgspec.structs.replace(GONE, env={"TOKEN": "hush-hush-1"})
    )
    found = worker._found(order, lambda text: None, lambda found: None)
    assert found.server.outcome is NOT_JUDGED
    assert found.server.reason == "a defect of mcptest: RuntimeError: no such thing as ***"


SAYS_NOTHING_AND_STAYS = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
sys.stdin.readline()
os.close(1)
time.sleep(100)
"""


def test_a_process_that_stays_after_its_last_word_is_ended_at_its_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    words = (sys.executable, "-c", SAYS_NOTHING_AND_STAYS)
    monkeypatch.setattr(worker_pool, "_COMMAND", words)
    monkeypatch.setattr(worker_pool, "_PATIENCE", BOUND)
    began = time.monotonic()
    found = judge_in_process(FleetServerOrder(name="a", target=GONE, limit=1.0))
    assert time.monotonic() - began < BOUND
    assert found.server.outcome is NOT_JUDGED
    assert "SIGKILL" in found.server.reason


def test_a_report_has_its_share_of_the_seconds_after_a_limit() -> None:
    """A command ends five seconds after its limit, and the report takes some of them."""
    assert worker_pool.GRACE + worker_pool._KILLING <= 3.0


TELLS_AND_HANGS = """
import os, pathlib, sys, time
sys.stdin.readline()
folder = pathlib.Path(sys.argv[1])
(folder / "s.jsonl.partial").write_text('{"kind":"capture"}\\n{"kind":"stderr"}\\n{"kin')
print(sys.argv[2], flush=True)
time.sleep(100)
"""


def test_what_was_found_by_then_is_told_and_its_captures_are_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    so_far = WorkerFinished(Found(FleetServer("a", NOT_JUDGED, audit=WELL)), is_all=False)
    said = encoded(so_far).decode().strip()
    words = (sys.executable, "-c", TELLS_AND_HANGS, str(tmp_path), said)
    monkeypatch.setattr(worker_pool, "_COMMAND", words)
    monkeypatch.setattr(worker_pool, "GRACE", 0.5)
    order = FleetServerOrder(name="a", target=GONE, limit=1.5, captures=str(tmp_path))
    found = judge_in_process(order)
    assert found.server.outcome is NOT_JUDGED
    assert found.server.reason == "not judged within 1.5s"
    assert found.server.audit == WELL
    assert [path.name for path in tmp_path.iterdir()] == ["s.jsonl"]
    last = (tmp_path / "s.jsonl").read_text().splitlines()[-1]
    assert '"interrupted":true' in last


def test_a_server_is_not_audited_when_the_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """Meeting it once more would take what is left for the report."""
    over = time.monotonic() - 1
    order = FleetServerOrder(name="a", target=GONE, limit=10.0, until=over)
    monkeypatch.setattr(worker, "_judged", lambda order, tell, is_over: judged())
    monkeypatch.setattr(worker, "_audited", lambda *_: pytest.fail("audited"))
    kept: list[Found] = []
    found = worker.judge_one(order, lambda text: None, kept.append)
    assert found.server.outcome is NOT_JUDGED
    assert found.server.reason == "not judged to the end within 10s"
    assert found.server.compliance == judged()
    assert kept[0].server.compliance == judged()
