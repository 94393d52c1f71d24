"""Undoing gzip and deflate piece by piece. A bomb is refused before it has been unpacked."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from mcptest.model.errors import ErrorKind
from mcptest.model.show import show
from mcptest.wire.fault import WireError

_CODINGS = frozenset({"gzip", "x-gzip", "deflate"})
_GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS
_PIECE = 256 * 1024
_STREAM_RATIO = 30
_STREAM_START = 1024 * 1024


class Unpacker:
    """For one body. `limit` bounds the whole of it, or is None for a stream without an end.

    A stream is held to a ratio instead: what one read of the socket unpacks to is all in memory.
    """

    def __init__(self, coding: str, limit: int | None) -> None:
        if coding not in _CODINGS:
            raise WireError(
                ErrorKind.BAD_HTTP, f"Content-Encoding {show(coding, 40)!r} was not asked for"
            )
        self._coding = coding
        self._limit = limit
        self._decoder = zlib.decompressobj(_GZIP_OR_ZLIB)
        self._packed = 0
        self._unpacked = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        self._packed += len(data)
        more = True
        while more and not self._decoder.eof:
            piece = self._decompress(data)
            if piece:
                yield piece
            data = self._decoder.unconsumed_tail
            more = bool(data) or len(piece) == _PIECE

    def finish(self) -> None:
        """Raises WireError when the packed data stops before its own end."""
        if self._packed and not self._decoder.eof:
            raise WireError(
                ErrorKind.TRUNCATED, f"the {self._coding} body stops before its own end"
            )

    def _decompress(self, data: bytes) -> bytes:
        try:
            piece = self._decoder.decompress(data, _PIECE)
        except zlib.error as error:
            why = f"the {self._coding} body is broken: {error}"
            raise WireError(ErrorKind.BAD_HTTP, why, data) from None
        self._unpacked += len(piece)
        allowed = self._limit
        if allowed is None:
            allowed = max(_STREAM_START, self._packed * _STREAM_RATIO)
        if self._unpacked > allowed:
            raise WireError(
                ErrorKind.DECOMPRESSION_BOMB,
                f"{self._packed} bytes of {self._coding} unpack to more than {allowed} bytes",
            )
        return piece
