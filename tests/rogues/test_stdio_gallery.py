"""Every misbehaving stdio server, over the transport alone."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from mcptest.core.capture import AnyRecord, Exited, Frame, Leftover, Note, Stderr, Trouble
from mcptest.core.errors import ErrorKind, PeerError
from mcptest.core.limits import Deadline
from mcptest.transport.stdio import Stdio
from mcptest.wire.envelope import decode
from tests.rogues.gallery import CASES, Case, command
from tests.rogues.stdio import rogue

INITIALIZE = (
    b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",'
    b'"capabilities":{},"clientInfo":{"name":"gallery","version":"1"}}}'
)
INITIALIZED = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
LIST = b'{"jsonrpc":"2.0","id":2,"method":"tools/list"}'

BOUND = 60.0
"""No case may take longer to show what it does, also on a busy machine."""
SILENCE = 0.15
CLOSE = 1.2
KEPT = 2_000


@dataclass
class Witness:
    """A sink that keeps the first records, and counts all."""

    frames: int = 0
    distinct: set[bytes] = field(default_factory=set)
    others: list[AnyRecord] = field(default_factory=list)

    def __call__(self, record: AnyRecord) -> None:
        if not isinstance(record, Frame):
            if not isinstance(record, Stderr) or len(self.others) < KEPT:
                self.others.append(record)
        elif record.sender == "server":
            self.frames += 1
            if len(self.distinct) < KEPT:
                self.distinct.add(record.raw)

    def texts(self) -> list[str]:
        return [record.text for record in self.others if isinstance(record, Stderr)]

    def troubles(self) -> list[Trouble]:
        return [record for record in self.others if isinstance(record, Trouble)]

    def cut_off(self) -> list[str]:
        return [record.text for record in self.others if isinstance(record, Leftover)]

    def exits(self) -> list[Exited]:
        return [record for record in self.others if isinstance(record, Exited)]


def wait_for_answer(server: Stdio, wanted: int) -> bool:
    """False when the server said that it is ready to be silent, and then was."""
    deadline = Deadline.after(BOUND)
    while records := server.receive(deadline):
        for record in records:
            if isinstance(record, Stderr) and record.text.endswith("ready"):
                deadline = Deadline.after(SILENCE)
            elif isinstance(record, Frame) and b'"id":%d' % wanted in record.raw[:100]:
                value = decode(record.raw).value
                if isinstance(value, dict) and value.get("id") == wanted and "result" in value:
                    return True
        if deadline.limit == SILENCE and deadline.expired:
            return False
    assert deadline.limit == SILENCE, "nothing happened in time"
    return False


def talk(server: Stdio, case: Case) -> str:
    if case.payload_bytes:
        filler = b'{"jsonrpc":"2.0","method":"notifications/x","params":{"x":"%s"}}'
        patience = 0.3 if case.outcome is ErrorKind.TIMEOUT else BOUND
        server.send(filler % (b"x" * case.payload_bytes), Deadline.after(patience))
    server.send(INITIALIZE, Deadline.after(BOUND))
    if not wait_for_answer(server, 1):
        return "silence"
    server.send(INITIALIZED, Deadline.after(BOUND))
    server.send(LIST, Deadline.after(BOUND))
    return "answered" if wait_for_answer(server, 2) else "silence"


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError as error:
        return error.errno != errno.ESRCH
    return True


@pytest.fixture
def pids(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "pids"
    path.touch()
    yield path
    for pid in map(int, path.read_text().split()):  # a failed test leaves nothing either
        if is_alive(pid):
            os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_rogue_is_seen_for_what_it_is_and_leaves_nothing(case: Case, pids: Path) -> None:
    seen = Witness()
    server = Stdio(command(case), sink=seen, env={"ROGUE_PIDS": str(pids)})
    message = ""
    outcome: str | ErrorKind
    try:
        server.open(Deadline.after(BOUND))
        outcome = talk(server, case)
    except PeerError as error:
        outcome, message = error.kind, error.message
    finally:
        started = time.monotonic()
        server.close(Deadline.after(CLOSE))
        took = time.monotonic() - started

    assert outcome == case.outcome, message
    assert took < CLOSE + BOUND
    check_records(case, seen, message)
    written = [int(pid) for pid in pids.read_text().split()]
    assert written, "the rogue did not note its process id"
    assert [pid for pid in written if is_alive(pid)] == []


def check_records(case: Case, seen: Witness, message: str) -> None:
    said = [message, *(trouble.detail for trouble in seen.troubles())]
    assert any(case.phrase in text for text in said), said
    assert not case.cut_off or seen.cut_off() == [case.cut_off]
    assert [frame for frame in case.frames if frame not in seen.distinct] == []
    assert seen.frames >= case.count
    if case.trouble:
        assert case.trouble.value in {trouble.error for trouble in seen.troubles()}
    if case.stderr:
        assert any(case.stderr in text for text in seen.texts()), seen.texts()[-5:]
    (end,) = seen.exits()
    assert (end.code is None) != (end.signal is None)
    if case.exit is not None:
        name = signal.Signals(end.signal).name if end.signal else end.code
        assert name == case.exit
    if case.after is not None:
        assert end.after == case.after


def test_every_rogue_is_in_the_table_once() -> None:
    assert sorted(case.name for case in CASES) == sorted(rogue.CASES)
    assert len(CASES) >= 40


def test_a_flood_on_stderr_is_counted_where_it_is_not_recorded(pids: Path) -> None:
    case = next(case for case in CASES if case.name == "stderr-flood")
    seen = Witness()
    server = Stdio(command(case), sink=seen, env={"ROGUE_PIDS": str(pids)})
    try:
        server.open(Deadline.after(BOUND))
        assert talk(server, case) == "answered"
    finally:
        server.close(Deadline.after(CLOSE))
    (note,) = [record for record in seen.others if isinstance(record, Note)]
    left_out = int(note.text.split()[0])
    assert 98 << 20 < left_out < 100 << 20


MEASURED = """
import sys
from mcptest.core.limits import Deadline
from mcptest.transport.base import discard
from mcptest.transport.stdio import Stdio
import mcptest.core.message

def peak():
    status = open("/proc/self/status").read()
    return int(status.split("VmHWM:")[1].split()[0]) // 1024

before = peak()
server = Stdio(sys.argv[2:], sink=discard)
server.open(Deadline.after(10))
server.send(%r, Deadline.after(10))
deadline = Deadline.after(float(sys.argv[1]))
while records := server.receive(deadline):
    del records
    if deadline.expired:
        break
server.close(Deadline.after(0.4))
print(peak() - before)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads memory from /proc")
@pytest.mark.parametrize(
    ("name", "mebibytes"),
    [
        ("endless-line", 60),
        ("endless-notifications", 15),
        ("tiny-lines", 40),
        ("stderr-endless", 15),
        ("huge-line", 60),
    ],
)
def test_a_flood_is_taken_in_bounded_memory(name: str, mebibytes: int) -> None:
    case = next(case for case in CASES if case.name == name)
    script = MEASURED % INITIALIZE
    result = subprocess.run(
        [sys.executable, "-c", script, "0.7", *command(case)],
        capture_output=True,
        text=True,
        timeout=BOUND,
    )
    assert result.returncode == 0, result.stderr
    assert int(result.stdout) < mebibytes
