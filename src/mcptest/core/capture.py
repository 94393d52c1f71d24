"""What a capture holds: everything both sides sent, in order, with the transport's own facts.

These records are also what a transport hands to the client, so there is one account of what
happened and nothing can be used that was not recorded. `t` is seconds on the monotonic clock
since the capture began. A message's bytes are kept exactly as they came.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

CAPTURE_FORMAT = 1
"""The version in the first record of a full capture. Readers refuse a higher one."""

Sender: TypeAlias = Literal["client", "server"]
Headers: TypeAlias = tuple[tuple[str, str], ...]
TransportName: TypeAlias = Literal["stdio", "http", "sse", "memory", "replay"]


class Sse(msgspec.Struct, frozen=True, omit_defaults=True):
    """The fields of a server-sent event besides its data."""

    event: str | None = None
    id: str | None = None
    retry: int | None = None


class Record(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", kw_only=True):
    """One thing that happened."""

    t: float = 0.0


class Opened(Record, tag="capture", frozen=True, kw_only=True):
    """The first record of a session: which peer, over which transport, by which tool."""

    format: int = CAPTURE_FORMAT
    server_label: str
    transport: TransportName | None = None
    channel: str | None = None
    """Names the connection. Two sessions share a transport when they share a channel."""
    peer: str = ""
    """The command line or URL, with secrets masked."""
    spec_version: str = ""
    """The revision that was asked for: `auto`, or a revision's name."""
    revision_reason: str = ""
    """Why the session has the revision that it has, where the client knows."""
    tool: str = ""
    started: str = ""
    """Wall clock in ISO 8601, for people; nothing is judged by it."""


class Frame(Record, tag="message", frozen=True, kw_only=True):
    """One message as bytes: a stdio line without its newline, an HTTP body, an SSE event's data."""

    sender: Sender
    raw: bytes
    stream: int | None = None
    """The HTTP exchange that carried it; None where the transport has one stream only."""
    sse: Sse | None = None


class HttpRequest(Record, tag="http-request", frozen=True, kw_only=True):
    stream: int
    method: str
    url: str
    headers: Headers = ()


class HttpResponse(Record, tag="http-response", frozen=True, kw_only=True):
    stream: int
    status: int
    headers: Headers = ()

    def header(self, name: str) -> str | None:
        wanted = name.lower()
        return next((value for key, value in self.headers if key.lower() == wanted), None)


class SseEvent(Record, tag="sse", frozen=True, kw_only=True):
    """An event or comment that carried no message: a priming event, `endpoint`, a keep-alive."""

    stream: int
    sse: Sse = Sse()
    data: str = ""
    comment: str | None = None


class StreamEnd(Record, tag="stream-end", frozen=True, kw_only=True):
    """An HTTP response body came to its end; `complete` is False when it was cut off."""

    stream: int
    complete: bool = True


class Leftover(Record, tag="leftover", frozen=True, kw_only=True):
    """What the server was still saying when the session was ended for it: kept, never judged.

    Part of a message that we cut off, or what came after our SIGTERM: it was not left to the server
    to say it whole.
    """

    text: str
    """How it begins."""
    size: int
    """How many bytes it has in all."""
    stream: int | None = None


class Stderr(Record, tag="stderr", frozen=True, kw_only=True):
    text: str


Step: TypeAlias = Literal["", "stdin-closed", "terminate", "kill"]
"""How far the ending of a server process has gone from our side; "" while nobody has asked."""
FORCED: frozenset[str] = frozenset({"terminate", "kill"})
"""What comes after these was not left to the server."""


class Exited(Record, tag="exit", frozen=True, kw_only=True):
    """The server process is gone. Exactly one of `code` and `signal` is set."""

    code: int | None = None
    signal: int | None = None
    after: str = ""
    """The `Step` that we, or the client behind a proxy, had taken by then; "": by itself."""


class Trouble(Record, tag="trouble", frozen=True, kw_only=True):
    """Something the transport refused or could not do; `error` is the value of an ErrorKind."""

    error: str
    detail: str
    stream: int | None = None
    excerpt: str = ""
    sender: Sender = "server"
    """Whose bytes it is about, where it is about bytes."""

    @property
    def in_words(self) -> str:
        """With what came, where that is worth showing."""
        return f"{self.detail}: {self.excerpt!r}" if self.excerpt else self.detail


class Note(Record, tag="note", frozen=True, kw_only=True):
    """A remark of the tool on what it was about to do."""

    text: str


class Closed(Record, tag="end", frozen=True, kw_only=True):
    """The last record. A capture without it was cut short, and is still readable."""

    records: int = 0
    interrupted: bool = False
    dropped: int = 0
    """Records that were not kept because the capture had reached its size limit."""


FactRecord: TypeAlias = (
    Opened
    | HttpRequest
    | HttpResponse
    | SseEvent
    | StreamEnd
    | Leftover
    | Stderr
    | Exited
    | Trouble
    | Note
    | Closed
)
"""All that is no message."""
AnyRecord: TypeAlias = FactRecord | Frame
