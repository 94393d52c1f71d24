"""A peer that was forked from a warm process does as one that was started."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.driving import BOUND, is_alive, wait_until
from tests.peers.warm_peers import ROOT, warm_peer

PROGRAM = """
import os, signal, sys, time
from pathlib import Path

word = sys.argv[1]
if word == "tells":
    print(sys.argv[1:], os.getcwd(), os.environ["WORD"], __name__, "mcp.server" in sys.modules)
    print(sys.stdin.read(), file=sys.stderr)
    sys.exit(7)
if word == "breaks":
    raise ValueError("broken")
if word == "is killed":
    os.kill(os.getpid(), signal.SIGKILL)
if word == "handles":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(9))
Path(sys.argv[2]).write_text(f"{os.getpid()}\\n")
while True:
    time.sleep(BOUND)
""".replace("BOUND", str(BOUND))


@pytest.fixture
def program(tmp_path: Path) -> str:
    (tmp_path / "program.py").write_text(PROGRAM)
    return str(tmp_path / "program.py")


def started(program: str, word: str, note: Path) -> tuple[subprocess.Popen[bytes], int]:
    command = warm_peer(sys.executable, program, word, str(note))
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
    wait_until(lambda: note.is_file() and note.read_text().endswith("\n"), "the program")
    return process, int(note.read_text())


def test_it_has_the_words_the_folder_the_environment_and_the_pipes(
    program: str, tmp_path: Path
) -> None:
    done = subprocess.run(
        warm_peer(program, "tells", "more"),
        input=b"said",
        capture_output=True,
        cwd=tmp_path,
        env={**os.environ, "WORD": "given"},
        timeout=BOUND,
    )
    is_warm = hasattr(os, "pidfd_open")
    told = f"['tells', 'more'] {tmp_path.resolve()} given __main__ {is_warm}\n"
    assert (done.stdout.decode(), done.stderr, done.returncode) == (told, b"said\n", 7)


def test_it_ends_as_its_program_ends(program: str) -> None:
    broken = subprocess.run(warm_peer(program, "breaks"), capture_output=True, timeout=BOUND)
    assert broken.returncode == 1
    assert broken.stderr.endswith(b"ValueError: broken\n")
    killed = subprocess.run(warm_peer(program, "is killed"), capture_output=True, timeout=BOUND)
    assert killed.returncode == -signal.SIGKILL


@pytest.mark.parametrize(("word", "code"), [("handles", 9), ("waits", -signal.SIGTERM)])
def test_a_signal_is_passed_on(program: str, word: str, code: int, tmp_path: Path) -> None:
    process, pid = started(program, word, tmp_path / "pid")
    process.terminate()
    process.communicate(timeout=BOUND)
    assert process.returncode == code
    assert not is_alive(pid)


def test_it_does_not_outlive_its_launcher(program: str, tmp_path: Path) -> None:
    process, pid = started(program, "waits", tmp_path / "pid")
    process.kill()
    process.communicate(timeout=BOUND)
    wait_until(lambda: not is_alive(pid), "its end")


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="peers are started anew")
def test_the_warm_process_is_shared_and_ends_with_the_last_who_uses_it(tmp_path: Path) -> None:
    program = (
        "from tests.peers.warm_peers import warm_peer\n"
        "print(warm_peer('program')[4], flush=True)\n"
        "input()"
    )
    env = {**os.environ, "TMPDIR": str(tmp_path), "MCPTEST_TESTS_RUN": "shared"}
    path = tmp_path / "mcptest-peers-shared" / "socket"
    with contextlib.ExitStack() as opened:
        users = []
        for _ in range(2):
            user = subprocess.Popen(
                [sys.executable, "-c", program],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=env,
                cwd=ROOT,
            )
            users.append(opened.enter_context(user))
            assert user.stdout is not None
            assert user.stdout.readline().decode() == f"{path}\n"
        users[0].communicate(b"\n")
        assert path.exists()
        users[1].communicate(b"\n")
    wait_until(lambda: not path.parent.exists(), "its end")
