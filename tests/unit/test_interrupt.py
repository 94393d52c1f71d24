"""Signals: the first sets a flag, and only that."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from mcptest.run import temporary
from mcptest.run.interrupt import Stop, end_everything, stopping_on_signals
from mcptest.transport.descendants import live_servers


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


def test_the_end_of_everything_reaches_servers_and_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(temporary, "_making", threading.RLock())  # it is never let go again
    home = tmp_path / "copy"
    (home / "sub").mkdir(parents=True)
    temporary.live_folders.add(str(home))
    deaf = "import signal; signal.signal(15, signal.SIG_IGN); print(flush=True); signal.pause()"
    with subprocess.Popen([sys.executable, "-c", deaf], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        live_servers.add(process.pid)
        try:
            end_everything()
            assert process.wait(10) == -signal.SIGKILL
        finally:
            live_servers.discard(process.pid)
    assert not home.exists()
    assert str(home) not in temporary.live_folders
