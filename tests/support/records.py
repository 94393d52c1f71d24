"""Records as the lines of a capture, one at a time."""

from __future__ import annotations

from mcptest.core.capture import AnyRecord
from mcptest.wire.capture_forms import encode_records


def encode_record(record: AnyRecord) -> bytes:
    """One line with its newline."""
    return encode_records((record,))[0]
