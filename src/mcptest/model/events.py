"""What a drive through a server tells while it happens. Reporters only read these."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from mcptest.model.revision import Revision

StepOutcome: TypeAlias = Literal["done", "refused", "skipped", "doubtful", "malformed", "failed"]


@dataclass(frozen=True, slots=True)
class SessionBegan:
    """The handshake or discovery went well."""

    revision: Revision
    server: str
    capabilities: tuple[str, ...]
    reason: str = ""
    """Why this revision is spoken."""


@dataclass(frozen=True, slots=True)
class StepTaken:
    """One thing was asked of the server.

    `refused` is an error answer, which a server may well give; `malformed` is one whose form no
    client should accept, `doubtful` one that clients may read in different ways; `failed` means
    that there was no usable answer, or no way to ask.
    """

    what: str
    outcome: StepOutcome
    detail: str = ""


Event: TypeAlias = SessionBegan | StepTaken


@dataclass(frozen=True, slots=True)
class RecordingSummary:
    """What became of a recording."""

    path: Path
    messages: int
    written: bool
    problem: str = ""
    older_kept: bool = False
    """An earlier capture of that name was left as it was."""
