"""What judging a server tells while it happens. Reporters only read these."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from mcptest.model.revision import Revision
from mcptest.model.verdict import Outcome


class JudgingBegan(msgspec.Struct, frozen=True):
    """The server was met."""

    revision: Revision
    transport: str
    server: str
    """How it calls itself, made safe to show."""
    rules: int


class RuleJudged(msgspec.Struct, frozen=True):
    done: int
    total: int
    id: str
    outcome: Outcome
    title: str = ""
    failed: bool = False
    """Whether a MUST was broken: that is worth telling at once."""


Event: TypeAlias = JudgingBegan | RuleJudged
