"""Facts of probes about HTTP: sessions, event streams, challenges."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from mcptest.model.capture import AnyRecord, Frame, HttpResponse, SseEvent, StreamEnd
from mcptest.model.message import id_key
from mcptest.run.compliance.probe_seen import Fact, Seen, Taken, Unobserved, messages_of_server
from mcptest.wire.envelope import decode
from mcptest.wire.http_rules import media_type

_PARAMETER = re.compile(r'([A-Za-z_][A-Za-z0-9_-]*)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s",]+))')
_LOG_MESSAGE = "notifications/message"
STREAMED = ("ask", "call", "log")
"""Steps that may be answered with an event stream, in the order in which they are tried."""


# -- streams


def stream_of(taken: Taken) -> int | None:
    """The HTTP exchange that carried the request of a step."""
    wanted = id_key(taken.identifier)
    for record in taken.since:
        if isinstance(record, Frame) and record.sender == "client" and record.stream is not None:
            message = decode(record.raw)
            if message.method is not None and id_key(message.id) == wanted:
                return record.stream
    return None


def on_stream(taken: Taken, stream: int | None) -> Iterator[AnyRecord]:
    """What came from the server on one stream."""
    for record in taken.since:
        if getattr(record, "stream", None) != stream or stream is None:
            continue
        if not (isinstance(record, Frame) and record.sender == "client"):
            yield record


def is_streamed(taken: Taken) -> bool:
    """Whether the answer came as an event stream."""
    return any(
        isinstance(record, HttpResponse)
        and media_type(record.header("content-type")) == "text/event-stream"
        for record in on_stream(taken, stream_of(taken))
    )


def _streamed(seen: Seen) -> Taken:
    for name in STREAMED:
        taken = seen.taken.get(name)
        if taken is not None and is_streamed(taken):
            return taken
    raise Unobserved(
        "the answers came as JSON, not as event streams", "an answer that is an event stream"
    )


def stream_ended(seen: Seen) -> bool:
    taken = _streamed(seen)
    answered = False
    for record in on_stream(taken, stream_of(taken)):
        if isinstance(record, StreamEnd):
            return answered and record.complete
        if isinstance(record, Frame):
            answered = answered or _answers(record, taken.identifier)
    if not answered:
        raise Unobserved("no response came on the stream")
    return False


def _answers(frame: Frame, identifier: Any) -> bool:
    message = decode(frame.raw)
    return message.is_answer and id_key(message.id) == id_key(identifier)


def stream_primed(seen: Seen) -> bool:
    taken = _streamed(seen)
    for record in on_stream(taken, stream_of(taken)):
        if isinstance(record, Frame):
            return False
        if isinstance(record, SseEvent) and record.comment is None:
            return bool(record.sse.id) and not record.data
    return False


# -- reconnection


def retry_given(seen: Seen) -> bool:
    taken = seen["call"]
    given = False
    for record in on_stream(taken, stream_of(taken)):
        if isinstance(record, Frame) and _answers(record, taken.identifier):
            break
        sse = getattr(record, "sse", None)
        given = given or (sse is not None and sse.retry is not None)
        if isinstance(record, StreamEnd):
            return given
    raise Unobserved("the stream was not closed before the answer", "the fixture reconnecting_tool")


# -- events_by_name


def other_events(seen: Seen) -> list[str]:
    names = dict.fromkeys(
        record.sse.event
        for record in seen["after"].records
        if isinstance(record, SseEvent) and record.comment is None and record.sse.event
    )
    return [name for name in names if name not in {"endpoint", "message"}]


# -- two_sessions


def session_id(records: Any) -> str | None:
    """The session id that the server gave out on a connection."""
    for record in records:
        if isinstance(record, HttpResponse):
            given = record.header("mcp-session-id")
            if given is not None:
                return given
    return None


def sessions_are_distinct(seen: Seen) -> bool:
    first, second = (session_id(seen[name].records) for name in ("first", "second"))
    if first is None or second is None:
        raise Unobserved("the server gave out no session id", "a server with sessions")
    return first != second


# -- logging_beside_silence


def logged_on_the_silent_stream(seen: Seen) -> list[str]:
    loud, silent = seen["loud"], seen["silent"]
    if not _log_messages(loud):
        raise Unobserved("the tool did not log when it was asked to", "the fixture logging_tool")
    return _log_messages(silent)


def _log_messages(taken: Taken) -> list[str]:
    return [
        str(message.params.get("level"))
        for message, _ in messages_of_server(on_stream(taken, stream_of(taken)))
        if message.method == _LOG_MESSAGE
    ]


# -- protected_resource_metadata


def challenge_parameters(records: Any) -> dict[str, str]:
    """The parameters of every WWW-Authenticate header, by lower-case name; the first one counts."""
    found: dict[str, str] = {}
    for record in records:
        if not isinstance(record, HttpResponse) or record.status != 401:
            continue
        for name, value in record.headers:
            if name.lower() == "www-authenticate":
                for key, quoted, plain in _PARAMETER.findall(value):
                    found.setdefault(key.lower(), re.sub(r"\\(.)", r"\1", quoted) or plain)
    return found


def metadata_found(seen: Seen) -> bool:
    return isinstance(seen["metadata"].document, dict)


def named_in_challenge(seen: Seen) -> bool:
    return bool(challenge_parameters(seen["challenge"].since).get("resource_metadata"))


def authorization_servers(seen: Seen) -> list[Any]:
    return _listed_in_metadata(seen, "authorization_servers")


def offered_scopes(seen: Seen) -> list[Any]:
    challenged = challenge_parameters(seen["challenge"].since).get("scope", "").split()
    return list(dict.fromkeys((*challenged, *_listed_in_metadata(seen, "scopes_supported"))))


def _listed_in_metadata(seen: Seen, name: str) -> list[Any]:
    document = seen["metadata"].document
    listed = document.get(name) if isinstance(document, dict) else None
    return [one for one in listed if isinstance(one, str)] if isinstance(listed, list) else []


FACTS: Mapping[tuple[str, str], Fact] = {
    ("two_sessions", "distinct"): sessions_are_distinct,
    ("streamed_answer", "ended"): stream_ended,
    ("streamed_answer", "primed"): stream_primed,
    ("reconnection", "retry_given"): retry_given,
    ("events_by_name", "other_events"): other_events,
    ("logging_beside_silence", "on_the_silent_stream"): logged_on_the_silent_stream,
    ("protected_resource_metadata", "found"): metadata_found,
    ("protected_resource_metadata", "named_in_challenge"): named_in_challenge,
    ("protected_resource_metadata", "authorization_servers"): authorization_servers,
    ("protected_resource_metadata", "offered_scopes"): offered_scopes,
}
