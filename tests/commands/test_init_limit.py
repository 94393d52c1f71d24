"""`init` at the end of its time."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import pytest

from mcptest.commands.init import run
from mcptest.core.errors import ExitCode
from mcptest.core.limits import Deadline
from mcptest.suite.starters import WrittenServer
from mcptest.transport.target import Target


def test_no_answers_are_asked_for_when_the_time_is_over(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Reading hundreds of files again would take what is left for the end."""
    monkeypatch.setattr(run, "keep_first_answers", lambda *_: pytest.fail("asked again"))
    arguments = argparse.Namespace(
        folder=Path("made"), snapshots=True, timeout="3s", max_time="15s", quiet=False, fixture=None
    )
    target = Target(way="stdio", label="x", command=("server",))
    over = Deadline(time.monotonic() - 1, 15.0)
    code = run._keep_answers(arguments, target, WrittenServer({"command": "server"}), over)
    assert code == ExitCode.FAILED
    assert "stopped after 15s of --max-time" in capsys.readouterr().err
