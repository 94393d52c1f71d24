"""What a server still says while it is being ended, and what that is worth.

A line that our own SIGTERM cut, or that a server broke off because the client left, shows nothing
about the server. Three things still do: bytes that no message can begin with, a whole message that
only lacks its newline, and whatever came before anyone asked the server to end.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from mcptest.model.capture import AnyRecord, Frame, Leftover, Step, Trouble
from mcptest.model.errors import ErrorKind
from mcptest.model.show import show
from mcptest.wire.jsontext import Beginning, beginning_of

KEPT_BYTES = 4096


def leftover(
    raw: bytes, t: float, *, size: int | None = None, stream: int | None = None
) -> Leftover:
    text = raw[:KEPT_BYTES].decode("utf-8", "backslashreplace")
    return Leftover(t=t, text=text, size=len(raw) if size is None else size, stream=stream)


def last_line(rest: bytes, step: Step, t: float, detail: str) -> Iterator[AnyRecord]:
    """The records of a line of the server whose newline never came, at the end of its output.

    `detail` says so, for a server that is to blame for it.
    """
    if not rest:
        return
    kind = beginning_of(rest)
    if step and kind is Beginning.OF_A_MESSAGE:
        yield leftover(rest, t)
        return
    yield Frame(t=t, sender="server", raw=rest)
    if not step or kind is Beginning.WHOLE:
        yield Trouble(t=t, error=ErrorKind.TRUNCATED.value, detail=detail, excerpt=show(rest))


class LateOutput(msgspec.Struct):
    """What comes after the server was told to end by a signal: counted, its beginning kept."""

    head: bytes = b""
    size: int = 0

    def add(self, chunk: bytes) -> None:
        self.size += len(chunk)
        self.head += chunk[: KEPT_BYTES - len(self.head)]

    def records(self, t: float) -> Iterator[AnyRecord]:
        if self.size:
            yield leftover(self.head, t, size=self.size)
        self.head, self.size = b"", 0
