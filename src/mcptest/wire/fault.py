"""Why bytes from a peer can't be read on: found in `wire`, recorded by the transport.

The demo reads with what raises this, and starts without what describes it.
"""

from __future__ import annotations

TYPE_CHECKING = False  # `typing` would cost the demo a tenth of its start
if TYPE_CHECKING:
    from mcptest.core.errors import ErrorKind

EXCERPT = 200


class WireError(Exception):
    """The stream is unusable from here: which kind of fault, why, and the bytes that show it."""

    def __init__(self, kind: ErrorKind | str, detail: str, excerpt: bytes = b"") -> None:
        from mcptest.core.errors import ErrorKind
        from mcptest.core.safe_text import show

        super().__init__(detail)
        self.kind = ErrorKind(kind)
        self.detail = detail
        self.excerpt = show(excerpt, EXCERPT)
