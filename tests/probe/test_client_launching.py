"""The captures of servers that a client launched, read back: bounded, and nothing left unsaid."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcptest.core.capture import Closed, Frame
from mcptest.probe.conformance.client import runner
from mcptest.probe.conformance.client.runner import launched_captures, records_of
from mcptest.transport.recorder import Recorder


def captured(folder: Path, messages: int) -> None:
    with Recorder(folder / "session.jsonl") as recorder:
        recorder.begin(label="client", transport="stdio", peer="client")
        for _ in range(messages):
            recorder(Frame(sender="client", raw=b'{"jsonrpc":"2.0","id":1,"method":"ping"}'))


@pytest.mark.parametrize(("messages", "dropped"), [(3, 0), (40, 32)])
def test_what_of_a_flood_is_not_judged_is_counted_as_dropped(
    messages: int, dropped: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "KEPT_RECORDS", 10)
    captured(tmp_path, messages)
    records = records_of(launched_captures(tmp_path))
    assert len(records) <= 11
    assert sum(one.dropped for one in records if isinstance(one, Closed)) == dropped
