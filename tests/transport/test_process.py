"""Starting a server, watching it, and ending it without touching anyone else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mcptest.core.errors import ErrorKind, PeerError
from mcptest.core.limits import Deadline
from mcptest.transport import descendants
from mcptest.transport.base import discard
from mcptest.transport.lifeline import server_environment
from mcptest.transport.process import ExitStatus, ServerProcess
from mcptest.transport.stdio import Stdio
from tests.rogues.gallery import ROGUE

PYTHON = (sys.executable, "-I", "-S")
linux = pytest.mark.skipif(sys.platform != "linux", reason="sub-reapers are a thing of Linux")


def spawn_error(command: list[str], cwd: str | None = None, path: str | None = None) -> PeerError:
    with pytest.raises(PeerError) as caught:
        ServerProcess(command, {} if path is None else {"PATH": path}, cwd)
    assert caught.value.kind is ErrorKind.SPAWN_FAILED
    return caught.value


def script(path: Path, text: str, mode: int = 0o755) -> Path:
    path.write_text(text)
    path.chmod(mode)
    return path


def test_a_missing_command_is_named_with_the_nearest_one(tmp_path: Path) -> None:
    script(tmp_path / "my-server", "#!/bin/sh\n")
    error = spawn_error(["my-srver"], path=str(tmp_path))
    assert error.message == "command not found on the PATH: 'my-srver'"
    assert error.hint == "did you mean my-server?"


def test_a_folder_and_a_file_that_can_not_be_run_are_never_what_was_meant(tmp_path: Path) -> None:
    (tmp_path / "my-serve").mkdir()
    script(tmp_path / "my-server.md", "", mode=0o644)
    assert "did you mean" not in spawn_error(["my-srver"], path=str(tmp_path)).hint
    assert "did you mean" not in spawn_error([str(tmp_path / "my-srve")]).hint


def test_a_missing_path_is_named_with_its_nearest_neighbour(tmp_path: Path) -> None:
    script(tmp_path / "server.py", "")
    error = spawn_error([str(tmp_path / "servr.py")])
    assert "command not found" in error.message
    assert error.hint == f"did you mean {tmp_path / 'server.py'}?"


def test_a_command_line_in_one_word_is_explained() -> None:
    error = spawn_error(["npx my-server /data"])
    assert "command not found" in error.message
    assert "separate words" in error.hint


def test_a_file_that_is_not_executable_is_said_to_be_so(tmp_path: Path) -> None:
    target = script(tmp_path / "server", "#!/bin/sh\n", 0o644)
    error = spawn_error([str(target)])
    assert "is not executable" in error.message
    assert "chmod +x" in error.hint


def test_a_directory_is_no_program(tmp_path: Path) -> None:
    assert "is a directory" in spawn_error([str(tmp_path)]).message


@pytest.mark.parametrize("first", ["#!/no/such/interpreter -x", "#! /no/such/interpreter"])
def test_a_missing_interpreter_is_named(tmp_path: Path, first: str) -> None:
    target = script(tmp_path / "server", f"{first}\n")
    assert "its interpreter '/no/such/interpreter' does not exist" in (
        spawn_error([str(target)]).message
    )


def test_an_interpreter_with_a_carriage_return_shows_it(tmp_path: Path) -> None:
    target = script(tmp_path / "server", "#!/bin/sh\r\n")
    assert "'/bin/sh\\r'" in spawn_error([str(target)]).message


def test_a_script_without_a_first_line_is_explained(tmp_path: Path) -> None:
    target = script(tmp_path / "server", "print('hello')\n")
    error = spawn_error([str(target)])
    assert "not a program this system can run" in error.message


def test_a_missing_working_directory_is_named_and_not_the_command() -> None:
    error = spawn_error([*PYTHON, "-c", ""], cwd="/no/such/folder")
    assert error.message == "the working directory '/no/such/folder' does not exist"


@pytest.mark.parametrize("command", [[], [""]])
def test_an_empty_command_is_refused(command: list[str]) -> None:
    assert "empty" in spawn_error(command).message


def test_a_nul_byte_in_the_command_is_refused() -> None:
    assert "invalid server command" in spawn_error([*PYTHON, "-c", "\0"]).message


OURS = {
    "HOME": "/h",
    "LC_ALL": "C",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "NODE_OPTIONS": "--require x",
    "SHELL": "() { :;}; echo pwned",
    "LD_PRELOAD": "x",
}


def test_a_server_sees_our_environment_and_over_it_what_is_named() -> None:
    named = {"TOKEN": "t", "HOME": "/mine"}
    assert server_environment(named, OURS) == {**OURS, **named}


def test_a_clean_environment_is_an_allow_list_and_what_is_named() -> None:
    assert server_environment({"TOKEN": "t", "HOME": "/mine"}, OURS, clean=True) == {
        "HOME": "/mine",
        "LC_ALL": "C",
        "TOKEN": "t",
    }


def test_a_server_has_a_session_of_its_own_and_its_end_is_told() -> None:
    process = ServerProcess([*PYTHON, "-c", "import os; os.read(0, 1); os._exit(5)"], {})
    try:
        assert os.getsid(process.pid) == process.pid
        assert process.status() is None
        process.hang_up()
        deadline = Deadline.after(10)
        while process.status() is None:
            assert not deadline.expired
            if process.pidfd is not None:
                os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert process.status() == ExitStatus(code=5)
    finally:
        process.kill()
        process.release(Deadline.after(5), politely=False)
    assert not Path(f"/proc/{process.pid}").exists()


def test_signals_have_names() -> None:
    assert str(ExitStatus(signal=signal.SIGSEGV)) == "was killed by SIGSEGV"
    assert str(ExitStatus(signal=61)) == "was killed by signal 61"
    assert str(ExitStatus(code=2)) == "exited with code 2"


def start_rogue(name: str, pids: Path) -> tuple[Stdio, list[int]]:
    """The server and its family, once it has one."""
    pids.touch()
    server = Stdio([*PYTHON, str(ROGUE), name], sink=discard, env={"ROGUE_PIDS": str(pids)})
    server.open(Deadline.after(10))
    server.send(b'{"jsonrpc":"2.0","id":1,"method":"ping"}', Deadline.after(10))
    assert server.receive(Deadline.after(10))
    return server, [int(pid) for pid in pids.read_text().split()]


def alive(pids: list[int]) -> list[int]:
    return [pid for pid in pids if Path(f"/proc/{pid}").exists()]


@linux
def test_ending_one_server_leaves_the_family_of_another_alone(tmp_path: Path) -> None:
    first, family = start_rogue("grandchild-in-its-own-session", tmp_path / "first")
    second, others = start_rogue("daemon", tmp_path / "second")
    try:
        first.close(Deadline.after(5))
        assert alive(family) == []
        # the daemon's middle process is gone by its own will
        assert {others[0], others[-1]} <= set(alive(others))
    finally:
        second.close(Deadline.after(5))
        first.close(Deadline.after(5))
    assert alive(others) == []


@linux
def test_ending_a_server_leaves_other_children_of_this_program_alone(tmp_path: Path) -> None:
    command = [*PYTHON, "-c", "import os; os.read(0, 1); os._exit(6)"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True) as stranger:
        server, family = start_rogue("daemon", tmp_path / "pids")
        server.close(Deadline.after(5))
        assert alive(family) == []
        assert stranger.poll() is None
    assert stranger.returncode == 6


@linux
def test_many_servers_at_once_end_without_hurting_each_other(tmp_path: Path) -> None:
    def live(number: int) -> list[int]:
        server, family = start_rogue("grandchild-in-its-own-group", tmp_path / str(number))
        server.send(b'{"jsonrpc":"2.0","id":2,"method":"ping"}', Deadline.after(10))
        assert server.receive(Deadline.after(10))
        server.close(Deadline.after(5))
        return family

    with ThreadPoolExecutor(8) as pool:
        families = list(pool.map(live, range(24)))
    assert alive([pid for family in families for pid in family]) == []
    assert descendants.live_servers == set()
