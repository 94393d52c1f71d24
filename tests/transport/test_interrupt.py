"""Signals: the first sets a flag, and only that."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mcptest.transport.interrupt import Stop, stopping_on_signals


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_first_signal_tears_nobody_away(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    told = []
    with stopping_on_signals() as stop:
        stop.on_set = lambda: told.append(number)
        assert not stop.is_set()
        os.kill(os.getpid(), number)
        assert stop.is_set()
    assert told == [number]
    assert signal.getsignal(number) is before


def test_an_ignored_signal_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with stopping_on_signals() as stop:
            os.kill(os.getpid(), signal.SIGHUP)
            assert not stop.is_set()
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_stop_is_told_once() -> None:
    told = []
    stop = Stop()
    stop.on_set = lambda: told.append(1)
    stop.set()
    stop.set()
    assert told == [1]


_ENDS_EVERYTHING = """
import subprocess, sys
from mcptest.transport import temporary
from mcptest.transport.descendants import live_servers
from mcptest.transport.interrupt import end_everything

deaf = "import signal; signal.signal(15, signal.SIG_IGN); print(flush=True); signal.pause()"
server = subprocess.Popen([sys.executable, "-c", deaf], stdout=subprocess.PIPE)
server.stdout.readline()
live_servers.add(server.pid)
temporary.live_folders.add(sys.argv[1])
end_everything()
print(server.wait(200), temporary.live_folders)
"""


def test_the_end_of_everything_reaches_servers_and_folders(tmp_path: Path) -> None:
    """In a process of its own: everything below this one would be ended as well."""
    home = tmp_path / "copy"
    (home / "sub").mkdir(parents=True)
    done = subprocess.run(
        [sys.executable, "-c", _ENDS_EVERYTHING, str(home)],
        capture_output=True,
        text=True,
        timeout=240,
        check=True,
    )
    assert done.stdout == f"{-signal.SIGKILL} set()\n"
    assert not home.exists()
