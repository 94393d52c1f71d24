"""Newline-delimited frames out of a stream of bytes, however it was cut up on the way."""

from __future__ import annotations

HEAD_BYTES = 200


class LineTooLong:  # the demo reads its input with this, which is why nothing is imported here
    """Stands where a refused line would have been."""

    __slots__ = ("head", "size")

    def __init__(self, size: int, head: bytes) -> None:
        self.size = size
        """Bytes seen when it was refused. The line itself may go on, even for ever."""
        self.head = head


Line = bytes | LineTooLong


class LineReader:
    """Collects bytes and gives out lines without their newline; a carriage return stays."""

    __slots__ = ("_head_bytes", "_limit", "_rest", "_skipping")

    def __init__(self, limit: int, head_bytes: int = HEAD_BYTES) -> None:
        self._limit = limit
        self._head_bytes = head_bytes
        self._rest = bytearray()
        self._skipping = False

    def feed(self, chunk: bytes) -> list[Line]:
        """The lines that `chunk` completed, in order. A line that is refused comes at once."""
        pieces: list[Line] = chunk.split(b"\n")  # type: ignore[assignment]  # a list of bytes
        rest: bytes = pieces.pop()  # type: ignore[assignment]  # still bytes
        if pieces and (self._rest or self._skipping):
            self._complete_first(pieces)
        if len(chunk) > self._limit:
            pieces = [self._bounded(piece) for piece in pieces]
        if b"" in pieces or b"\r" in pieces:  # blank lines are harmless
            pieces = [piece for piece in pieces if piece not in (b"", b"\r")]
        if rest and not self._skipping:
            self._rest += rest
            if len(self._rest) > self._limit:
                pieces.append(LineTooLong(len(self._rest), bytes(self._rest[: self._head_bytes])))
                self._rest = bytearray()
                self._skipping = True
        return pieces

    @property
    def held(self) -> int:
        """How many bytes have come of a line whose newline is still missing."""
        return len(self._rest)

    def beginning(self, size: int) -> bytes:
        """How that line begins."""
        return bytes(self._rest[:size])

    def finish(self) -> bytes:
        """What was left at the end of the stream without a newline, or nothing."""
        rest, self._rest = bytes(self._rest), bytearray()
        self._skipping = False
        return rest

    def _complete_first(self, pieces: list[Line]) -> None:
        if self._skipping:
            self._skipping = False
            del pieces[0]
            return
        self._rest += pieces[0]  # type: ignore[arg-type]  # fresh from split
        pieces[0] = self._bounded(bytes(self._rest))
        self._rest = bytearray()

    def _bounded(self, piece: Line) -> Line:
        if isinstance(piece, LineTooLong) or len(piece) <= self._limit:
            return piece
        return LineTooLong(len(piece), piece[: self._head_bytes])
