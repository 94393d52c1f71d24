"""The stdio transport, where the gallery of misbehaving servers does not look."""

from __future__ import annotations

import errno
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from mcptest.core.capture import AnyRecord, Exited, Frame, Stderr, Trouble
from mcptest.core.errors import ErrorKind, PeerError
from mcptest.core.limits import Deadline, Limits
from mcptest.transport import stdio
from mcptest.transport.base import Transport, discard
from mcptest.transport.stdio import Stdio
from mcptest.transport.target import Target

ECHO = "import os\nwhile d := os.read(0, 65536): os.write(1, d)"


def soon() -> Deadline:
    return Deadline.after(15)


class Closing(Stdio):
    """One that is closed at the end of a block."""

    def __enter__(self) -> Closing:
        return self

    def __exit__(self, *error: object) -> None:
        self.close(Deadline.after(5))


def python(code: str, sink: Callable[[AnyRecord], None] = discard, **options: object) -> Closing:
    server = Closing([sys.executable, "-I", "-S", "-c", code], sink=sink, **options)  # type: ignore[arg-type]  # passed on
    server.open(soon())
    return server


def frames(records: list[AnyRecord]) -> list[bytes]:
    return [record.raw for record in records if isinstance(record, Frame)]


def receive_frames(server: Stdio, count: int) -> list[bytes]:
    got: list[bytes] = []
    while len(got) < count:
        records = server.receive(soon())
        assert records, "nothing came in time"
        got += frames(records)
    return got


def receive_until_error(server: Stdio) -> tuple[list[AnyRecord], PeerError]:
    records: list[AnyRecord] = []
    try:
        while batch := server.receive(soon()):
            records += batch
    except PeerError as error:
        return records, error
    pytest.fail("nothing came in time")


def send_for_ever(server: Stdio) -> None:
    deadline = soon()
    while not deadline.expired:
        server.send(b"x" * 1000, deadline)


def test_both_sides_are_recorded_in_order_with_their_time() -> None:
    kept: list[AnyRecord] = []
    with python(ECHO, kept.append) as server:
        transport: Transport = server
        assert transport.name == "stdio"
        server.send(b"one", soon())
        assert receive_frames(server, 1) == [b"one"]
        server.send_many([b"two", b"three"], soon())
        assert receive_frames(server, 2) == [b"two", b"three"]
    seen = [(record.sender, record.raw) for record in kept if isinstance(record, Frame)]
    assert seen[:2] == [("client", b"one"), ("server", b"one")]
    assert sorted(seen[2:]) == [
        ("client", b"three"),
        ("client", b"two"),
        ("server", b"three"),
        ("server", b"two"),
    ]
    assert [record.t for record in kept] == sorted(record.t for record in kept)
    assert isinstance(kept[-1], Exited)
    assert kept[-1].after == "stdin-closed"


def test_the_command_line_is_shown_as_a_person_would_type_it() -> None:
    assert Target(way="stdio", label="", command=("a b", "c")).peer == "'a b' c"


def test_waiting_ends_with_the_deadline() -> None:
    with python(ECHO) as server:
        started = time.monotonic()
        assert server.receive(Deadline.after(0.1)) == []
        assert 0.09 < time.monotonic() - started < 300


def test_closing_is_safe_before_opening_after_a_failure_and_twice() -> None:
    never = Stdio([sys.executable], sink=discard)
    never.close(soon())
    failed = Stdio(["/no/such/program"], sink=discard)
    with pytest.raises(PeerError):
        failed.open(soon())
    failed.close(soon())
    server = python(ECHO)
    server.close(soon())
    server.close(soon())
    for use in (lambda: server.send(b"x", soon()), lambda: never.receive(soon())):
        with pytest.raises(PeerError) as caught:
            use()
        assert caught.value.kind is ErrorKind.CLOSED


def test_a_server_that_takes_its_leave_in_time_is_not_signalled() -> None:
    kept: list[AnyRecord] = []
    server = python("import os; os.read(0, 1); os._exit(3)", kept.append)
    server.close(soon())
    assert kept == [Exited(t=kept[0].t, code=3, after="stdin-closed")]


def test_an_expired_deadline_still_ends_the_server() -> None:
    kept: list[AnyRecord] = []
    server = python("import signal; signal.pause()", kept.append)
    server.close(Deadline.after(0))
    assert isinstance(kept[-1], Exited)
    assert server.pid is not None
    assert not Path(f"/proc/{server.pid}").exists()


@pytest.mark.parametrize(("clean", "seen"), [(False, "s3cret"), (True, None)])
def test_the_environment_and_folder_are_the_ones_that_were_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clean: bool, seen: str | None
) -> None:
    monkeypatch.setenv("MY_SECRET", "s3cret")
    code = (
        "import os\n"
        "told = os.getcwd(), os.environ.get('MY_SECRET'), os.environ['X']\n"
        "os.write(1, repr(told).encode() + b'\\n')"
    )
    with python(code, env={"X": "named"}, cwd=str(tmp_path), clean_env=clean) as server:
        assert receive_frames(server, 1) == [repr((str(tmp_path), seen, "named")).encode()]


def test_what_was_said_before_death_is_handed_out_before_the_error() -> None:
    server = python(
        "import os; os.write(1, b'last words\\n'); os.write(2, b'oops\\n'); os._exit(4)"
    )
    with server:
        records, error = receive_until_error(server)
        assert frames(records) == [b"last words"]
        assert [record.text for record in records if isinstance(record, Stderr)] == ["oops"]
        assert isinstance(records[-1], Exited)
        assert records[-1].code == 4
        assert error.kind is ErrorKind.EXITED
        assert error.message == "the server exited with code 4\n  stderr: oops"
        with pytest.raises(PeerError, match="exited with code 4"):
            server.send(b"anyone?", soon())


def test_writing_to_a_dead_server_tells_of_its_death_and_loses_nothing() -> None:
    server = python("import os; os.write(1, b'bye\\n'); os._exit(2)")
    with server:
        with pytest.raises(PeerError) as caught:
            send_for_ever(server)
        assert caught.value.kind is ErrorKind.EXITED
        assert "exited with code 2 and wrote nothing to stderr" in caught.value.message
        records, _ = receive_until_error(server)
        assert frames(records) == [b"bye"]


def test_a_message_that_was_cut_by_the_deadline_is_finished_before_the_next_one() -> None:
    code = (
        "import os, signal, sys\n"
        "signal.signal(signal.SIGUSR1, lambda *_: None)\n"
        "os.write(1, b'asleep\\n')\n"
        "signal.pause()\n"
        "for line in sys.stdin.buffer: os.write(1, b'%d %s\\n' % (len(line), line[:1]))"
    )
    with python(code) as server:
        assert receive_frames(server, 1) == [b"asleep"]
        with pytest.raises(PeerError) as caught:
            server.send(b"a" * 1_000_000, Deadline.after(0.1))
        assert caught.value.kind is ErrorKind.TIMEOUT
        with pytest.raises(PeerError, match="does not read its stdin"):
            server.send(b"never", Deadline.after(0.1))
        assert server.pid is not None
        os.kill(server.pid, signal.SIGUSR1)
        server.send(b"bb", soon())
        assert receive_frames(server, 2) == [b"1000001 a", b"3 b"]


def test_output_piles_up_only_so_far_while_we_wait_to_write(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stdio, "INBOX_RECORDS", 1000)
    code = "import os\nfor n in range(100_000): os.write(1, b'%d\\n' % n)\nos.read(0, 1)"
    with python(code) as server:
        with pytest.raises(PeerError) as caught:
            server.send(b"x" * 1_000_000, Deadline.after(5))
        assert caught.value.kind is ErrorKind.TIMEOUT
        waiting = server.receive(soon())
        assert 1000 < len(waiting) < 50_000
        rest = receive_frames(server, 100_000 - len(frames(waiting)))
        assert rest[-1] == b"99999"


def test_a_stopped_server_is_said_to_be_stopped() -> None:
    code = "import os, signal\nos.write(2, b'going\\n')\nos.kill(os.getpid(), signal.SIGSTOP)"
    with python(code) as server:
        assert server.receive(soon())
        deadline = soon()
        while "is stopped" not in server.partial():
            assert not deadline.expired
            server.receive(Deadline.after(0.01))
        assert "stderr: going" in server.condition()


def test_the_limit_of_a_line_can_be_set() -> None:
    with python("print('x' * 100); print('ok')", limits=Limits(message_bytes=50)) as server:
        records, _ = receive_until_error(server)
    trouble = next(record for record in records if isinstance(record, Trouble))
    assert trouble.error == "line-too-long"
    assert trouble.excerpt == "x" * 100
    assert frames(records) == [b"ok"]


def test_blank_lines_are_no_records() -> None:
    with python("print(); print('a'); print()") as server:
        records, _ = receive_until_error(server)
    assert [type(record) for record in records] == [Frame, Exited]


def test_a_sink_that_fails_while_closing_leaves_no_process() -> None:
    def full(record: AnyRecord) -> None:
        if isinstance(record, Exited):
            raise OSError(errno.ENOSPC, "disk full")

    server = python(ECHO, full)
    with pytest.raises(OSError, match="disk full"):
        server.close(soon())
    assert not Path(f"/proc/{server.pid}").exists()


def test_death_is_noticed_without_process_descriptors(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(pid: int) -> int:
        raise OSError(errno.ENOSYS, "not on this kernel")

    monkeypatch.setattr(os, "pidfd_open", missing, raising=False)
    # the child keeps the pipes open, so there is no end of file to go by
    code = "import os, signal\nif os.fork() == 0: signal.pause()\nos._exit(8)"
    with python(code) as server:
        records, error = receive_until_error(server)
    assert [record.code for record in records if isinstance(record, Exited)] == [8]
    assert error.kind is ErrorKind.EXITED


def test_the_tail_of_stderr_is_safe_to_show_and_short() -> None:
    code = (
        "import os\n"
        "os.write(2, b'\\x1b[31m::error::x\\n' + b'line\\n' * 50 + b'\\x07end')\n"
        "os._exit(1)"
    )
    with python(code) as server:
        _, error = receive_until_error(server)
    lines = error.message.splitlines()
    assert lines[0] == "the server exited with code 1"
    assert lines[-1] == "  stderr: \\x07end"
    assert len(lines) == 13


def test_a_flood_while_closing_is_not_read_for_as_long_as_there_is_time() -> None:
    read, ends = 0, []

    def count(record: AnyRecord) -> None:
        nonlocal read
        if isinstance(record, Frame):
            read += len(record.raw)
        elif isinstance(record, Exited):
            ends.append(record)

    server = python("import os\nwhile True: os.write(1, b'x' * 60000 + b'\\n')", count)
    server.close(Deadline.after(600))
    assert read < 2 * stdio.CLOSE_BYTES
    assert [(one.signal, one.after) for one in ends] == [(signal.SIGTERM, "terminate")]


def test_a_server_that_does_not_read_is_not_waited_for_at_the_end_of_its_stdin() -> None:
    """It can't see that end: SIGTERM comes at once."""
    ends: list[Exited] = []

    def keep(record: AnyRecord) -> None:
        if isinstance(record, Exited):
            ends.append(record)

    server = python("import signal\nsignal.pause()", keep)
    with pytest.raises(PeerError):
        server.send(b"x" * 1_000_000, Deadline.after(0.1))
    assert server.is_clogged
    begun = time.monotonic()
    server.close(Deadline.after(1_200))
    assert time.monotonic() - begun < 120
    assert [(one.signal, one.after) for one in ends] == [(signal.SIGTERM, "terminate")]


def test_a_flood_of_short_messages_while_closing_counts_by_its_messages() -> None:
    """Each of them is a record, however few its bytes are."""
    frames = 0

    def count(record: AnyRecord) -> None:
        nonlocal frames
        frames += isinstance(record, Frame)

    server = python("import os\nwhile True: os.write(1, b'1\\n' * 1000)", count)
    server.close(Deadline.after(600))
    assert frames < 2 * stdio.CLOSE_BYTES / stdio.MESSAGE_BYTES


def test_of_two_large_messages_one_waits_until_the_other_is_done_with() -> None:
    """Both come to their end, also in one thread that reads now here and now there."""
    code = "import os\nfor _ in range(96): os.write(1, b'1' * 65536)\n"
    code += "os.write(1, b'\\n')\nos.read(0, 1)"
    with python(code) as one, python(code) as other:
        came: dict[Stdio, list[bytes]] = {one: [], other: []}
        deadline = Deadline.after(60)
        while not all(came.values()) and not deadline.expired:
            for server, got in came.items():
                got.extend(frames(server.receive(Deadline.after(0.05))))
    assert [[len(raw) for raw in got] for got in came.values()] == [[96 * 65536]] * 2
