"""The display of a run on a real terminal: there while it runs, gone afterwards however it ends."""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path

import pytest

from mcptest.report.progress import ticking
from mcptest.transport import interrupt
from tests.report.test_progress import Terminal, started
from tests.terminal.on_a_terminal import on_terminal

SERVER = Path(__file__).with_name("patient_server.py")
SUITE = """\
server:
  command: {python}
  args: [-I, -S, {server}, {fifo}]
tests:
  - name: fails at once
    assert:
      tool: wait
      args: {{}}
      expect: {{contains: [nothing]}}
  - name: waits \u65e5\u672c
    assert:
      tool: wait
      args: {{patiently: true}}
      expect: {{contains: [done]}}
"""


class Patience:
    """Lets the server of the suite answer."""

    def __init__(self, fifo: Path) -> None:
        self._fifo = fifo

    def end(self) -> None:
        os.close(os.open(self._fifo, os.O_WRONLY))


@pytest.fixture
def patience(tmp_path: Path) -> Patience:
    fifo = tmp_path / "go"
    os.mkfifo(fifo)
    (tmp_path / "suite.yaml").write_text(
        SUITE.format(python=sys.executable, server=SERVER, fifo=fifo), encoding="utf-8"
    )
    return Patience(fifo)


def test_a_run_shows_what_fails_and_what_runs_and_then_only_what_stays(
    tmp_path: Path, patience: Patience
) -> None:
    with on_terminal("run", "suite.yaml", "--jobs", "2", cwd=tmp_path) as run:
        assert "1 failed" in run.wait_for(r"\[1/2\]")
        run.wait_for(r"^ +\ds  waits \u65e5\u672c$")
        assert run.rows[0].startswith("\u2717 fails at once: expected result to contain")
        run.resize(30, 10)
        assert len(run.wait_for(r"^\[1/2\] 1 failed .* \ds")) < 30
        patience.end()
        assert run.end() == 1
        assert [row for row in run.rows if row] == run.rows[:1]
        assert "\x1b[?25" not in run.text  # the cursor was never hidden
        assert "\x1b" not in run.out
        assert run.out.endswith("2 tests, 1 passed, 1 failed in " + run.out.rpartition(" ")[2])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_leaves_whole_lines_and_no_display(
    tmp_path: Path, patience: Patience, number: int
) -> None:
    with on_terminal("run", "suite.yaml", "--jobs", "2", cwd=tmp_path) as run:
        run.wait_for(r"^ +\ds  waits")
        run.process.send_signal(number)
        assert run.end() == 130
        told, last, *rest = run.rows
        assert told.startswith("\u2717 fails at once")
        assert last == "mcptest: interrupted"
        assert not any(rest)
        assert "interrupted: only finished tests" in run.out


def test_a_terminal_in_ci_sees_plain_lines_only(tmp_path: Path, patience: Patience) -> None:
    words = ("run", "suite.yaml", "-k", "fails", "--verbose")
    with on_terminal(*words, cwd=tmp_path, CI="true") as run:
        assert run.end() == 1
        first = run.text.splitlines()[0]
        assert first.startswith("[1/1] FAIL fails at once: expected result to contain")
        assert "\x1b" not in run.text


def test_whoever_leaves_at_once_says_his_last_words(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(interrupt, "last_words", [lambda: said.append("erased")])
    monkeypatch.setattr(interrupt, "end_everything", lambda: said.append("ended"))
    monkeypatch.setattr(interrupt.os, "_exit", lambda code: said.append(f"left with {code}"))
    with interrupt.stopping_on_signals() as stop:
        signal.raise_signal(signal.SIGTERM)
        assert stop.is_set()
        assert said == []
        signal.raise_signal(signal.SIGTERM)
    assert said == ["ended", "erased", "left with 130"]


def test_time_passes_for_a_display_whose_run_waits_deep_down() -> None:
    stream = Terminal()
    progress, clock = started(stream, 3)
    ticked = threading.Event()
    tick = progress.tick

    def counted() -> None:
        clock.now += 1
        tick()
        ticked.set()

    progress.tick = counted  # type: ignore[method-assign]  # to be told, instead of waiting
    with ticking(progress):
        assert ticked.wait(30)
        assert "[0/3]" in stream.getvalue()
    assert stream.getvalue().endswith("\r\x1b[J")
    assert not progress.is_live
