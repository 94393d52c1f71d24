"""Virtual time for unit tests."""

from __future__ import annotations

import pytest

from mcptest.model import deadline
from tests.unit.scripted import VirtualTime


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> VirtualTime:
    """The time that deadlines see. It moves only when a scripted transport is waited for."""
    virtual = VirtualTime()
    monkeypatch.setattr(deadline, "time", virtual)
    return virtual
