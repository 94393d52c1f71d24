"""Whose large message is taken in now."""

from __future__ import annotations

import pytest

from mcptest.transport import base
from mcptest.transport.base import LargeMessages


def test_one_reader_at_a_time_reads_on() -> None:
    turns = LargeMessages()
    assert turns.may_read("one")
    assert turns.may_read("one")
    assert not turns.may_read("other")
    turns.leave("one")
    assert turns.may_read("other")
    assert not turns.may_read("one")


def test_who_has_no_turn_takes_none_away_by_leaving() -> None:
    turns = LargeMessages()
    assert turns.may_read("one")
    turns.leave("other")
    assert not turns.may_read("other")


def test_a_reader_that_reads_no_further_keeps_nobody_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(base, "LARGE_IDLE_SECONDS", 0.0)
    turns = LargeMessages()
    assert turns.may_read("one")
    assert turns.may_read("other")
