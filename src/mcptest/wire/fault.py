"""Why bytes from a peer can't be read on: found in `wire`, recorded by the transport."""

from __future__ import annotations

from mcptest.core.errors import ErrorKind
from mcptest.core.safe_text import show

EXCERPT = 200


class WireError(Exception):
    """The stream is unusable from here: which kind of fault, why, and the bytes that show it."""

    def __init__(self, kind: ErrorKind, detail: str, excerpt: bytes = b"") -> None:
        super().__init__(detail)
        self.kind = kind
        self.detail = detail
        self.excerpt = show(excerpt, EXCERPT)
