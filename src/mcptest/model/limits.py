"""How much a peer may send before we stop listening. Every limit has its own error kind."""

from __future__ import annotations

import msgspec

MEBIBYTE = 1024 * 1024


class Limits(msgspec.Struct, frozen=True):
    message_bytes: int = 16 * MEBIBYTE
    """One stdio line, one SSE event or one decoded HTTP body."""
    header_bytes: int = 64 * 1024
    depth: int = 512
    pages: int = 1_000
    items: int = 100_000
    findings: int = 1_000
    stderr_tail_bytes: int = 64 * 1024
    capture_bytes: int = 1024 * MEBIBYTE


DEFAULT_LIMITS = Limits()
