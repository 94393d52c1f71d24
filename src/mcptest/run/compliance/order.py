"""What is to be judged, and how far judging may go."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from mcptest.model.revision import Revision
from mcptest.peer.meeting import ASKED_FOR
from mcptest.transport.target import Target


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """One server to be judged by one corpus."""

    target: Target
    revision: Revision | None = None
    """None: the newest that the server speaks."""
    because: str = ASKED_FOR
    """Why it is the revision that is given."""
    rules: tuple[str, ...] = ()
    """Only these; empty means the whole corpus."""
    allow_tools: tuple[str, ...] = ()
    """Tools that the user allows to be called, beside those that say they only read."""
    fixtures: Mapping[str, str] = {}
    """Fixture to the tool, prompt or resource that is one."""
    timeout: float = 30.0
    startup: float = 30.0
    patience: float = 2.0
    """How long silence is waited for, where silence is possible."""
    corpora: Path | None = None
    """The folder of another registry."""
    captures: Path | None = None
    """The folder in which to keep everything that went over the wire."""
    repeat: str = ""
    """The command that judges this server again; ` --rule ID` is appended."""
    should_stop: Callable[[], bool] | None = None
