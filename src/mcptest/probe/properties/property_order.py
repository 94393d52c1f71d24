"""What is to be tried on which server, and how far it may go."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from mcptest.core.limits import Deadline
from mcptest.core.revision import Revision
from mcptest.transport.target import Target


class PropertyOrder(msgspec.Struct, frozen=True, kw_only=True):
    target: Target
    revision: Revision | None = None
    """None: the newest that the server speaks."""
    properties: tuple[str, ...] = ()
    """Empty: all of them."""
    examples: int = 100
    seed: int = 0
    max_time: float = 120.0
    """For all of it together, in seconds: starts, calls, and making counterexamples small."""
    limit: Deadline | None = None
    """When that time is up; set where the run begins."""
    allow_tools: tuple[str, ...] = ()
    """Tools that may be called beside those that say they only read; `*` is every tool."""
    database: Path | None = None
    """Where counterexamples are kept; None: nowhere."""
    captures: Path | None = None
    timeout: float = 5.0
    startup: float = 30.0
    strict: bool = False
    fail_fast: bool = False
    """One counterexample to a property is enough."""
    jobs: int = 1
    """So many properties at once, each on a server of its own; of a URL there is only one."""
    repeat: str = ""
    """The command that runs this again; ` --replay NAME` is added."""
    should_stop: Callable[[], bool] | None = None
    """Whether somebody interrupts us."""

    @property
    def is_interrupted(self) -> bool:
        return self.should_stop is not None and self.should_stop()

    @property
    def is_out_of_time(self) -> bool:
        return self.limit is not None and self.limit.expired

    def is_over(self) -> bool:
        """Whether to end at once, whatever is under way."""
        return self.is_interrupted or self.is_out_of_time

    @property
    def out_of_time(self) -> str:
        """Why it ended, in words."""
        return f"stopped after {self.max_time:g}s of --max-time"
