"""An exchange as bytes for people: over HTTP with its status and headers, on one line."""

from __future__ import annotations

from collections.abc import Sequence

from mcptest.model.capture import Headers
from mcptest.model.masking import Masker
from mcptest.model.message import Message
from mcptest.peer.pending import encode
from mcptest.run.compliance.tape import Tape

_DULL = frozenset(
    {"host", "user-agent", "accept-encoding", "content-length", "connection", "date", "server"}
)
"""Headers that no rule is about."""


def sent_text(tape: Tape, stream: int | None, body: bytes, masker: Masker) -> bytes:
    request = tape.posted.get(stream) if stream is not None else None
    if request is None:
        return masker.message(body)
    head = f"{request.method} {masker.text(request.url)}{_headers(request.headers, masker)}"
    return _joined(head, masker.message(body))


def received_text(
    tape: Tape, stream: int | None, answers: Sequence[Message], masker: Masker
) -> bytes:
    bodies = [masker.message(one.raw or encode(one.value)) for one in answers]
    response = tape.responses.get(stream) if stream is not None else None
    if response is None:
        return b" ".join(bodies)
    if not bodies and stream is not None:
        bodies = [masker.message(frame.raw) for frame in tape.bodies.get(stream, ())[:3]]
        trouble = tape.troubles.get(stream)
        if not bodies and trouble is not None and trouble.excerpt:
            bodies = [masker.text(trouble.excerpt).encode("utf-8", "backslashreplace")]
    head = f"HTTP {response.status}{_headers(response.headers, masker)}"
    return _joined(head, b" ".join(bodies))


def _headers(headers: Headers, masker: Masker) -> str:
    told = [f"{name}: {value}" for name, value in masker.headers(headers)]
    kept = [one for one in told if one.partition(":")[0].lower() not in _DULL]
    return f" ({'; '.join(kept)})" if kept else ""


def _joined(head: str, body: bytes) -> bytes:
    start = head.encode("utf-8", "backslashreplace")
    return start + b" " + body if body else start
