"""One session of a capture, whichever form it was stored in: a label and its records in order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from mcptest.model.capture import AnyRecord, TransportName
from mcptest.model.message import ABSENT

CaptureForm: TypeAlias = Literal["full", "exchanges"]


@dataclass(frozen=True, slots=True)
class SessionSource:
    """`records` can be read once. In the public form the place is that of the exchange."""

    label: str
    file: str
    form: CaptureForm
    records: Iterator[tuple[int, AnyRecord]]
    transport: TransportName | None = None
    channel: str | None = None
    spec_version: str = ""
    revision_reason: str = ""
    """Why the client that recorded it spoke the revision that it did."""
    server_capabilities: Any = ABSENT
    """What the public form says beside its exchanges; ABSENT in the full form."""

    @property
    def unit(self) -> str:
        """What a place in this session counts, for people."""
        return "exchange" if self.form == "exchanges" else "record"
