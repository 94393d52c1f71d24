"""What one HTTP response says, as records: its head, then messages, events or an excerpt.

Bytes come in as the connection reads them. Every stream that was begun ends with exactly one
StreamEnd, after any Trouble.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from functools import partial

import msgspec

from mcptest.core.capture import Frame, HttpResponse, Note, Sse, SseEvent, StreamEnd, Trouble
from mcptest.core.errors import ErrorKind
from mcptest.core.limits import Limits
from mcptest.core.safe_text import show
from mcptest.transport.base import Clock, Sink
from mcptest.transport.recorder import leftover
from mcptest.wire.http1 import EXCERPT, ResponseHead, WireError
from mcptest.wire.mcp_headers import Body, classify_response, media_type, refusal_in_words
from mcptest.wire.sse import Event, SseDecoder

_TEXT_KEPT = 4 * EXCERPT
_TEXT_READ = 256 * 1024
"""How much of a body that is only worth an excerpt is read before the connection is given up."""
_REDIRECTS = frozenset({301, 302, 303, 307, 308})


class EnoughError(Exception):
    """All that there is to say about the response has been said; the rest is not worth reading."""


class Answer(msgspec.Struct, eq=False):
    """Turns one response into records. WireError means: say so with `fail` and hang up."""

    stream: int
    method: str
    say: Sink
    clock: Clock
    limits: Limits
    only_acknowledges: bool = False
    """The body carries no message whatever it says, as in the old HTTP+SSE transport."""
    body: _Json | _Text | _Events | None = None
    unpacker: Unpacker | None = None
    location: str | None = None
    """Where a redirect leads, once its head has come."""
    status: int | None = None

    @property
    def held(self) -> int:
        """Bytes kept for a body or event that is not complete yet."""
        return self.body.held if self.body is not None else 0

    @property
    def is_events(self) -> bool:
        return isinstance(self.body, _Events)

    def head(self, head: ResponseHead) -> None:
        if head.status < 200:
            self.note(f"interim response {head.status}")
            return
        self.status = head.status
        response = HttpResponse(
            t=self.clock(), stream=self.stream, status=head.status, headers=head.headers
        )
        self.say(response)
        coding = content_type = None
        for name, value in head.headers:
            key = name.lower()
            if key == "content-type":
                content_type = value
            elif key == "content-encoding":
                coding = value.strip().lower()
            elif key == "location" and head.status in _REDIRECTS:
                self.location = value
        self.body = self._reader(head, content_type)
        if coding and coding != "identity":
            self.unpacker = Unpacker(coding, None if self.is_events else self.limits.message_bytes)

    def data(self, data: bytes) -> None:
        assert self.body is not None  # a body comes after its head
        if self.unpacker is None:
            self.body.add(data)
            return
        for piece in self.unpacker.feed(data):
            self.body.add(piece)

    def end(self, rest: bytes = b"") -> None:
        """The body came to its proper end; `rest` is what the server sent beyond it."""
        if self.unpacker is not None:
            self.unpacker.finish()
        if self.body is not None:
            self.body.finish()
        if rest:
            why = f"the server sent {len(rest)} bytes after the end of the response"
            self.trouble(ErrorKind.BAD_HTTP, why, show(rest, EXCERPT))
        self.end_stream(complete=True)

    def cut(self, why: str) -> None:
        """We hang up ourselves."""
        self.note(why)
        rest = self.body.unfinished() if self.body is not None else b""
        if rest:
            self.say(leftover(rest, self.clock(), stream=self.stream))
        self.end_stream(complete=False)

    def begin_again(self) -> None:
        """Forget a redirect: the answer proper is still to come."""
        self.body = self.unpacker = self.location = self.status = None

    def fail(self, kind: ErrorKind, detail: str, excerpt: str = "") -> None:
        """The response can't be read on; nothing more comes on this stream."""
        rest = self.body.unfinished() if self.body is not None and self.is_events else b""
        if rest:
            detail += f"; {len(rest)} bytes of an unfinished event: {show(rest, 80)!r}"
        self.trouble(kind, detail, excerpt)
        self.end_stream(complete=False)

    def end_stream(self, *, complete: bool) -> None:
        self.body = self.unpacker = None  # what it holds may be large, and it holds us
        self.say(StreamEnd(t=self.clock(), stream=self.stream, complete=complete))

    def trouble(self, kind: ErrorKind, detail: str, excerpt: str = "") -> None:
        self.say(
            Trouble(
                t=self.clock(), error=kind.value, detail=detail, stream=self.stream, excerpt=excerpt
            )
        )

    def message(self, raw: bytes, sse: Sse | None = None) -> None:
        self.say(Frame(t=self.clock(), sender="server", raw=raw, stream=self.stream, sse=sse))

    def event(self, sse: Sse, data: bytes = b"", comment: str | None = None) -> None:
        text = data.decode("utf-8", "backslashreplace")
        self.say(SseEvent(t=self.clock(), stream=self.stream, sse=sse, data=text, comment=comment))

    def note(self, text: str) -> None:
        self.say(Note(t=self.clock(), text=f"stream {self.stream}: {text}"))

    def _reader(self, head: ResponseHead, content_type: str | None) -> _Json | _Text | _Events:
        if self.location is not None:
            return _Text(lambda excerpt: None)  # what counts about a redirect is where it leads
        if self.only_acknowledges and 200 <= head.status < 300:
            return _Text(self._acknowledged)
        kind = classify_response(self.method, head.status, content_type)
        if kind is Body.JSON:
            return _Json(self, self.limits.message_bytes)
        refused = partial(self._error_status, head, content_type)
        if kind is Body.EVENTS:
            return _Events(self, self.limits.message_bytes, refused if head.status >= 400 else None)
        if kind is Body.NOTHING:
            return _Text(partial(self._not_empty, head.status))
        if kind is Body.WRONG_TYPE:
            return _Text(partial(self._wrong_type, head.status, content_type))
        return _Text(refused)

    def _acknowledged(self, excerpt: str) -> None:
        if excerpt:
            self.note(f"the acknowledgement says {excerpt!r}")

    def _not_empty(self, status: int, excerpt: str) -> None:
        if excerpt and 200 <= status < 300:
            why = f"a {status} that should be empty has a body"
            self.trouble(ErrorKind.BAD_CONTENT_TYPE, why, excerpt)

    def _wrong_type(self, status: int, content_type: str | None, excerpt: str) -> None:
        if not excerpt and content_type is None:
            return  # an empty success: there is nothing to misread
        kind = show(media_type(content_type), 80) or "no content type"
        why = f"HTTP {status} with {kind}, neither application/json nor text/event-stream"
        self.trouble(ErrorKind.BAD_CONTENT_TYPE, why, excerpt)

    def _error_status(self, head: ResponseHead, content_type: str | None, excerpt: str) -> None:
        detail = refusal_in_words(head.status, head.headers, head.reason)
        kind = show(media_type(content_type), 80)
        detail += f" ({kind})" if kind and excerpt else "" if excerpt else ", without a body"
        self.trouble(ErrorKind.HTTP_STATUS, detail, excerpt)


class _Json:
    """A body that is one message. Nothing is decoded here."""

    def __init__(self, answer: Answer, limit: int) -> None:
        self._answer = answer
        self._limit = limit
        self._came = bytearray()
        self.held = 0

    def add(self, data: bytes) -> None:
        self.held += len(data)
        if self.held > self._limit:
            raise WireError(
                ErrorKind.BODY_TOO_LARGE,
                f"the body is larger than {self._limit} bytes",
                bytes(self._came[:1000]),
            )
        self._came += data

    def finish(self) -> None:
        if self.held:
            whole, self._came = bytes(self._came), bytearray()
            self._answer.message(whole)

    def unfinished(self) -> bytes:
        return bytes(self._came)


class _Text:
    """A body that is only worth an excerpt."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._start = b""
        self._read = 0
        self.held = 0

    def add(self, data: bytes) -> None:
        self._read += len(data)
        if len(self._start) < _TEXT_KEPT:
            self._start += data[:_TEXT_KEPT]
        if self._read > _TEXT_READ:
            self.finish()
            raise EnoughError

    def finish(self) -> None:
        self._tell(show(self._start, EXCERPT))

    def unfinished(self) -> bytes:
        return b""  # no message would have come of it


class _Events:
    def __init__(
        self, answer: Answer, limit: int, refused: Callable[[str], None] | None = None
    ) -> None:
        """`refused` is told where the status refuses the request and no event says why."""
        self._answer = answer
        self._decoder = SseDecoder(limit)
        self._refused = refused
        self.held = 0

    def add(self, data: bytes) -> None:
        for item in self._decoder.feed(data):
            if item.comment is None:
                self._take(item)
            else:
                comment = item.comment.decode("utf-8", "backslashreplace")
                self._answer.event(Sse(), comment=comment)
        if self._decoder.fault is not None:
            raise self._decoder.fault
        self.held = self._decoder.held

    def _take(self, item: Event) -> None:
        sse = item.sse
        # An event of another type than `message` is not for the message handler.
        if item.data and (sse is None or sse.event in {None, "", "message"}):
            self._refused = None
            self._answer.message(item.data, sse)
        else:
            self._answer.event(sse or Sse(), item.data or b"")

    def finish(self) -> None:
        unfinished = self._decoder.finish()
        if self._refused is not None:
            self._refused(show(unfinished or b"", EXCERPT))
        elif unfinished is not None:
            self._answer.trouble(
                ErrorKind.BAD_SSE,
                f"the stream ended inside an event: {len(unfinished)} bytes are discarded",
                show(unfinished, EXCERPT),
            )

    def unfinished(self) -> bytes:
        return self._decoder.finish() or b""


# -- Undoing gzip and deflate piece by piece -----------------------------------------------------

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
                ErrorKind.BAD_HTTP,
                f"the server used Content-Encoding {show(coding, 40)!r}, which was not requested",
            )
        self._coding = coding
        self._limit = limit
        self._decoder = zlib.decompressobj(_GZIP_OR_ZLIB)
        self._packed = 0
        self._unpacked = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        self._packed += len(data)
        allowed = self._limit
        if allowed is None:
            allowed = max(_STREAM_START, self._packed * _STREAM_RATIO)
        more = True
        while more and not self._decoder.eof:
            try:
                piece = self._decoder.decompress(data, _PIECE)
            except zlib.error as error:
                why = f"the {self._coding} body is corrupt: {error}"
                raise WireError(ErrorKind.BAD_HTTP, why, data) from None
            self._unpacked += len(piece)
            if self._unpacked > allowed:
                why = f"{self._packed} bytes of {self._coding} unpack to more than {allowed} bytes"
                raise WireError(ErrorKind.DECOMPRESSION_BOMB, why)
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
