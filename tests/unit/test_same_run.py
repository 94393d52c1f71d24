"""What is remembered of a run, whose memory is trusted, and the server that is started by it."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from mcptest.model.deadline import Deadline
from mcptest.run import same_run
from mcptest.run.remembering import _write
from mcptest.run.same_run import Remembered, folder_of_memory, key_of, place_in, recall
from mcptest.transport.base import discard
from mcptest.transport.descendants import look_at
from mcptest.transport.early_spawn import EarlyProcess, spawn_early
from mcptest.transport.process import ServerProcess
from mcptest.transport.stdio import Stdio

WORDS = ("run", "suite", "--fixture", "data")
KNOWN = Remembered(("node", "a b", "", "{{fixture}}/\udcff"), "data", "d1", ("Dsuite", "Fsuite/a"))


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    folder = folder_of_memory()
    assert folder is not None
    key = key_of(WORDS)
    assert key is not None
    _write(folder, key, KNOWN.written(key))
    return Path(place_in(folder, key))


def test_what_was_written_is_recalled(memory: Path) -> None:
    found = recall(WORDS)
    assert found is not None
    assert vars(found) == vars(KNOWN)
    assert memory.stat().st_mode & 0o777 == 0o600
    assert memory.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("warm", [True, False])
def test_it_is_known_whether_node_was_to_find_what_it_compiled(warm: bool) -> None:
    known = Remembered(("c",), None, "d", ("Fs",), warm=warm)
    found = Remembered.read(known.written("k"), "k")
    assert found is not None
    assert vars(found) == vars(known)


def test_a_run_without_a_fixture_is_told_from_one_with_an_empty_name() -> None:
    for fixture in (None, "", "x"):
        known = Remembered(("c",), fixture, "d", ("Fs",))
        found = Remembered.read(known.written("k"), "k")
        assert found is not None
        assert found.fixture == fixture


def test_other_words_and_another_folder_are_another_run(
    memory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert recall((*WORDS, "-x")) is None
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert recall(WORDS) is None
    monkeypatch.chdir(tmp_path)
    assert recall(WORDS) is not None
    monkeypatch.setattr(same_run, "__version__", "0.0.0")
    assert recall(WORDS) is None


@pytest.mark.parametrize("content", [b"", b"\0", b"x\0y\0z\0\0nan\0c", bytes(range(256))])
def test_a_torn_memory_is_none(memory: Path, content: bytes) -> None:
    memory.write_bytes(content)
    assert recall(WORDS) is None


def test_a_memory_that_others_may_have_written_is_not_trusted(memory: Path) -> None:
    memory.chmod(0o620)
    assert recall(WORDS) is None
    memory.chmod(0o600)
    memory.parent.chmod(0o702)
    assert recall(WORDS) is None
    memory.parent.chmod(0o700)
    assert recall(WORDS) is not None
    memory.rename(memory.with_name("real"))
    memory.symlink_to(memory.with_name("real"))
    assert recall(WORDS) is None


def test_it_is_kept_in_the_users_cache_and_nowhere_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/someone")
    for named in ("", "relative"):
        monkeypatch.setenv("XDG_CACHE_HOME", named)
        assert folder_of_memory() == "/someone/.cache/mcptest/first-servers-2"
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    assert folder_of_memory() == "/cache/mcptest/first-servers-2"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.delenv("HOME")
    assert folder_of_memory() is None


def test_the_memory_has_at_most_256_files() -> None:
    keys = [key_of(("run", str(number))) for number in range(2_000)]
    assert len({place_in("", key) for key in keys if key is not None}) <= 256


# -- the process ---------------------------------------------------------------------------------

REPORT = """
import json, os, sys
print(json.dumps({
    "descriptors": sorted(int(name) for name in os.listdir("/proc/self/fd"))[:-1],
    "session": os.getsid(0) == os.getpid(),
    "environment": sorted(each for each in os.environ.items() if each[0] != "MCPTEST_SESSION"),
}), flush=True)
sys.stdin.read()
sys.exit(3)
"""


def taken_over(early: EarlyProcess) -> Stdio:
    transport = Stdio(["early"], sink=discard, process=ServerProcess([], {}, early=early))
    transport.open(Deadline.after(30))
    return transport


def test_it_sees_what_it_would_see_if_it_was_started_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OF_THE_CALLER", "as it is now")
    left_open = os.dup(0)
    os.set_inheritable(left_open, True)
    command = [sys.executable, "-I", "-S", "-c", REPORT]
    try:
        early = spawn_early(command, {"NAMED": "y"})
        assert early is not None
        with taken_over(early) as first, Stdio(command, sink=discard, env={"NAMED": "y"}) as second:
            second.open(Deadline.after(30))
            seen = [transport.receive(Deadline.after(30))[0] for transport in (first, second)]
    finally:
        os.close(left_open)
    one, other = (getattr(record, "raw", b"") for record in seen)
    assert one == other
    assert b'"descriptors": [0, 1, 2]' in one
    assert b'"session": true' in one
    assert b"NAMED" in one
    assert b"as it is now" in one


def test_it_ignores_no_signal_that_only_python_ignores() -> None:
    early = spawn_early(["grep", "SigIgn", "/proc/self/status"], {})
    assert early is not None
    with taken_over(early) as transport:
        line = getattr(transport.receive(Deadline.after(30))[0], "raw", b"")
    ignored = int(line.split()[1], 16)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        assert not ignored >> (number - 1) & 1


def test_it_is_watched_and_ended_like_any_other() -> None:
    early = spawn_early([sys.executable, "-I", "-S", "-c", REPORT], {})
    assert early is not None
    process = ServerProcess([], {}, early=early)
    transport = Stdio(["early"], sink=discard, process=process)
    transport.open(Deadline.after(30))
    transport.close(Deadline.after(30))
    assert str(process.status()) == "exited with code 3"
    assert look_at(early.pid) is None  # it was reaped, too


def test_its_death_is_told_by_its_signal() -> None:
    early = spawn_early([sys.executable, "-I", "-S", "-c", REPORT], {})
    assert early is not None
    process = ServerProcess([], {}, early=early)
    os.kill(early.pid, signal.SIGKILL)
    process.release(Deadline.after(30), politely=False)
    assert str(process.status()) == "was ended by SIGKILL"


def test_what_can_not_be_started_is_left_to_the_regular_way(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("no program")
    before = len(list(Path("/proc/self/fd").iterdir()))
    for program in ("no-such-program-of-ours", str(text), str(tmp_path), str(tmp_path / "none")):
        assert spawn_early([program], {}) is None
    assert spawn_early(["x"], {"PATH": str(tmp_path)}) is None
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_the_path_of_the_server_decides_where_its_program_is(tmp_path: Path) -> None:
    program = tmp_path / "program-of-ours"
    program.write_text("#!/bin/sh\nread line\n")
    program.chmod(0o755)
    early = spawn_early([program.name], {"PATH": str(tmp_path)})
    assert early is not None
    taken_over(early).close(Deadline.after(30))
