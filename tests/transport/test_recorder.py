"""The recorder: nothing that was good is lost, whatever happens."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mcptest.core.capture import AnyRecord, Exited, Frame, Note, Opened, Stderr
from mcptest.core.errors import ErrorKind, PeerError, UsageError
from mcptest.core.limits import Limits
from mcptest.core.masking import Masker
from mcptest.transport.capture_file import open_capture
from mcptest.transport.recorder import Recorder, finish_captures

HELLO = Frame(t=0.5, sender="server", raw=b'{"jsonrpc":"2.0","method":"hello"}')


def recorded(path: Path, *records: AnyRecord, **options: Any) -> Recorder:
    with Recorder(path, **options) as recorder:
        recorder.begin(label="server", transport="stdio", peer="server --flag")
        for record in records:
            recorder(record)
    return recorder


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def test_a_capture_begins_and_ends_with_its_own_records(tmp_path: Path) -> None:
    path = tmp_path / "capture.jsonl"
    recorder = recorded(path, HELLO, Stderr(t=0.75, text="log"))
    first, *middle, last = lines_of(path)
    assert first["kind"] == "capture"
    assert first["server_label"] == "server"
    assert first["transport"] == "stdio"
    assert first["tool"].startswith("mcptest ")
    assert [each["kind"] for each in middle] == ["message", "stderr"]
    assert last == {"kind": "end", "t": 0.75, "records": 3}
    assert (recorder.messages, recorder.kept, recorder.error) == (1, True, None)


def test_a_capture_is_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "capture.jsonl"
    recorded(path, HELLO)
    assert path.stat().st_mode & 0o077 == 0


def test_what_was_flushed_is_readable_while_the_session_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "capture.jsonl"
    with Recorder(path) as recorder:
        recorder.begin(label="s", transport="stdio", peer="s")
        recorder(HELLO)
        recorder.flush()
        partial = path.with_name("capture.jsonl.partial")
        kinds = [[type(each) for _, each in s.records] for s in open_capture(str(partial))]
        assert kinds == [[Opened, Frame]]
        assert not path.exists()
    assert not partial.exists()
    assert path.exists()


def test_a_killed_writer_leaves_what_it_flushed(tmp_path: Path) -> None:
    path = tmp_path / "capture.jsonl"
    script = (
        "import os, signal, sys, pathlib\n"
        "from mcptest.transport.recorder import Recorder\n"
        "from mcptest.core.capture import Frame\n"
        "recorder = Recorder(pathlib.Path(sys.argv[1]))\n"
        "recorder.begin(label='s', transport='stdio', peer='s')\n"
        "recorder(Frame(sender='server', raw=b'{}'))\n"
        "recorder.flush()\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    subprocess.run([sys.executable, "-c", script, str(path)], timeout=240)
    partial = path.with_name("capture.jsonl.partial")
    assert [each["kind"] for each in lines_of(partial)] == ["capture", "message"]
    recorded(path, HELLO)  # and its lock went with it
    assert path.exists()


def test_a_session_in_which_nothing_happened_leaves_no_file(tmp_path: Path) -> None:
    path = tmp_path / "capture.jsonl"
    recorder = recorded(path, Note(text="about to start"))
    assert not recorder.kept
    assert list(tmp_path.iterdir()) == []


def test_a_session_in_which_nothing_happened_leaves_an_older_capture_alone(tmp_path: Path) -> None:
    path = tmp_path / "capture.jsonl"
    path.write_bytes(b"older")
    recorded(path)
    assert path.read_bytes() == b"older"
    assert list(tmp_path.iterdir()) == [path]


def test_a_session_that_never_began_spares_an_older_capture(tmp_path: Path) -> None:
    path = tmp_path / "capture.jsonl"
    for exists in (False, True):
        with Recorder(path) as recorder:
            recorder.spare_older = True
            recorder(Exited(code=int(exists) + 1))
        assert recorder.kept is not exists
        assert lines_of(path)[0]["code"] == 1
    assert list(tmp_path.iterdir()) == [path]


def test_a_new_capture_replaces_an_older_one_whole(tmp_path: Path) -> None:
    path = tmp_path / "capture.jsonl"
    recorded(path, *[HELLO] * 50)
    recorded(path, HELLO)
    assert len(lines_of(path)) == 3


@pytest.mark.parametrize(
    ("error", "interrupted"),
    [
        (None, False),
        (PeerError(ErrorKind.EXITED, "gone"), False),
        (KeyboardInterrupt(), True),
        (RuntimeError("a defect"), True),
    ],
)
def test_an_interruption_is_noted_and_what_a_peer_did_is_none(
    tmp_path: Path, error: BaseException | None, interrupted: bool
) -> None:
    path = tmp_path / "capture.jsonl"
    with contextlib.suppress(BaseException), Recorder(path) as recorder:
        recorder(HELLO)
        if error is not None:
            raise error
    assert lines_of(path)[-1].get("interrupted", False) is interrupted


def test_two_recordings_of_one_name_do_not_mix(tmp_path: Path) -> None:
    path = tmp_path / "capture.jsonl"
    with Recorder(path) as first:
        first(HELLO)
        with pytest.raises(UsageError, match="another mcptest is writing") as caught:
            Recorder(path)
        assert caught.value.hint
    assert [each["kind"] for each in lines_of(path)] == ["message", "end"]
    recorded(path, HELLO)


def test_a_full_disk_keeps_the_older_capture_and_what_was_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "capture.jsonl"
    path.write_bytes(b"older")
    write = os.write
    room = [1]

    def full(descriptor: int, data: Any) -> int:
        if not room[0]:
            raise OSError(28, "No space left on device")
        room[0] -= 1
        return write(descriptor, data)

    with Recorder(path) as recorder:
        recorder(HELLO)
        monkeypatch.setattr(os, "write", full)
        recorder.flush()
        for _ in range(3):
            recorder(HELLO)
            recorder.flush()
        monkeypatch.undo()
    assert recorder.error is not None
    assert recorder.error.strerror == "No space left on device"
    assert path.read_bytes() == b"older"
    assert recorder.written_to == path.with_name("capture.jsonl.partial")
    assert lines_of(recorder.written_to)[0]["kind"] == "message"


def test_a_capture_over_the_size_limit_says_how_much_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "capture.jsonl"
    recorder = recorded(path, *[HELLO] * 100, limits=Limits(capture_bytes=2000))
    records = lines_of(path)
    assert recorder.dropped > 0
    assert records[-1]["dropped"] == recorder.dropped
    assert records[-1]["records"] + recorder.dropped == 101
    assert path.stat().st_size < 3100


def test_many_records_are_written_before_anybody_waits(tmp_path: Path) -> None:
    path = tmp_path / "capture.jsonl"
    frame = Frame(sender="server", raw=b'{"x":"' + b"x" * 1_000 + b'"}')
    with Recorder(path) as recorder:
        for _ in range(1_000):
            recorder(frame)
        assert path.with_name("capture.jsonl.partial").stat().st_size > 500_000
    assert len(lines_of(path)) == 1_001


def test_secrets_are_masked_before_they_are_written(tmp_path: Path) -> None:
    path = tmp_path / "capture.jsonl"
    with Recorder(path, masker=Masker(["hidden-value"])) as recorder:
        recorder.begin(label="hidden-value", transport="stdio", peer="server hidden-value")
        recorder(Frame(sender="server", raw=b'{"a":"hidden-value"}'))
        recorder(Stderr(text="hidden-value"))
    assert b"hidden-value" not in path.read_bytes()
    assert path.read_bytes().count(b"***") == 4


def test_a_command_that_is_no_text_can_be_written(tmp_path: Path) -> None:
    path = tmp_path / "capture.jsonl"
    with Recorder(path) as recorder:
        recorder.begin(label="s", transport="stdio", peer="server \udcff")
        recorder(HELLO)
    assert lines_of(path)[0]["peer"] == "server \\udcff"


def test_a_link_keeps_pointing_where_it_does(tmp_path: Path) -> None:
    real = tmp_path / "real.jsonl"
    real.write_bytes(b"older")
    link = tmp_path / "link.jsonl"
    link.symlink_to(real)
    recorded(link, HELLO)
    assert link.is_symlink()
    assert len(lines_of(real)) == 3


@pytest.mark.parametrize("place", ["folder", "file/below"])
def test_a_place_that_can_not_be_written_is_a_usage_error(tmp_path: Path, place: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(UsageError, match="can't write the capture"):
        Recorder(tmp_path / place)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_a_device_is_written_as_it_is_and_its_refusal_is_kept() -> None:
    recorder = recorded(Path("/dev/full"), HELLO)
    assert recorder.error is not None
    assert not Path("/dev/full.partial").exists()


def test_an_interrupt_while_records_are_prepared_loses_none_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(records: list[AnyRecord]) -> list[bytes]:
        monkeypatch.undo()
        raise KeyboardInterrupt

    path = tmp_path / "capture.jsonl"
    with Recorder(path) as recorder:
        recorder(HELLO)
        monkeypatch.setattr("mcptest.transport.recorder.encode_records", interrupted)
        with pytest.raises(KeyboardInterrupt):
            recorder.flush()
    assert [(one["kind"], one.get("records")) for one in lines_of(path)] == [
        ("message", None),
        ("end", 1),
    ]


def test_closing_twice_does_no_harm(tmp_path: Path) -> None:
    recorder = recorded(tmp_path / "capture.jsonl", HELLO)
    recorder.close()
    assert len(lines_of(recorder.path)) == 3


def test_large_messages_are_not_held_back(tmp_path: Path) -> None:
    path = tmp_path / "capture.jsonl"
    with Recorder(path) as recorder:
        recorder.begin(label="server", transport="stdio", peer="server")
        recorder(HELLO)
        recorder(Frame(sender="server", raw=b'{"data":"%b"}' % (b"x" * 2_000_000)))
        assert path.with_name(path.name + ".partial").stat().st_size > 2_000_000


def test_a_recorder_that_nobody_holds_any_more_leaves_nothing_half_written(tmp_path: Path) -> None:
    Recorder(tmp_path / "idle.jsonl")
    assert list(tmp_path.iterdir()) == []
    Recorder(tmp_path / "capture.jsonl")(HELLO)
    assert lines_of(tmp_path / "capture.jsonl")[-1]["interrupted"] is True


OPENED = b'{"kind":"capture","t":0}\n'
SAID = b'{"kind":"stderr","t":0,"text":"hello"}\n'


def test_captures_of_a_writer_that_was_killed_are_finished_or_removed(tmp_path: Path) -> None:
    below = tmp_path / "below"
    below.mkdir()
    (below / "torn.jsonl.partial").write_bytes(OPENED + SAID + SAID[:10])
    (below / "empty.jsonl.partial").write_bytes(OPENED)
    (tmp_path / "whole.jsonl.partial").write_bytes(OPENED + SAID)
    (tmp_path / "other.partial").write_bytes(b"is no capture")
    with Recorder(tmp_path / "at-work.jsonl") as recorder:
        finish_captures(tmp_path)
        assert (tmp_path / "at-work.jsonl.partial").exists()
        recorder.kept = False
    names = sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.*"))
    assert names == ["below/torn.jsonl", "other.partial", "whole.jsonl"]
    for name in ("below/torn.jsonl", "whole.jsonl"):
        *kept, last = (tmp_path / name).read_bytes().splitlines(keepends=True)
        assert kept == [OPENED, SAID]
        assert json.loads(last) | {"t": 0} == {
            "kind": "end", "t": 0, "records": 2, "interrupted": True,
        }  # fmt: skip
