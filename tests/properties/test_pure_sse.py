"""Server-sent events: messages that travel in them arrive as they are, however they are cut."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mcptest.core.capture import Sse
from mcptest.strategies import Crafted, notifications, requests, responses
from mcptest.wire.sse import Event, SseDecoder
from tests.properties.pace import few
from tests.properties.test_pure_framing import CUTS, pieces

ENDS = st.sampled_from((b"\n", b"\r\n", b"\r"))
IDS = st.none() | st.text("abc0123é", min_size=1, max_size=5)
MESSAGES = requests() | notifications() | responses()
COMMENTS = st.none() | st.sampled_from((b"", b"keep-alive", b" twice  spaced"))


@few(50)
@given(st.lists(st.tuples(MESSAGES, IDS, COMMENTS), max_size=4), ENDS, CUTS, st.booleans())
def test_messages_arrive_as_they_are(
    sent: list[tuple[Crafted, str | None, bytes | None]], end: bytes, sizes: list[int], bom: bool
) -> None:
    stream = b"\xef\xbb\xbf" if bom else b""
    expected: list[Event] = []
    for message, identifier, comment in sent:
        if comment is not None:
            stream += b":" + comment + end
            expected.append(Event(comment=comment.removeprefix(b" ")))
        if identifier is not None:
            stream += b"id: " + identifier.encode() + end
        stream += b"event: message" + end + b"data: " + message.raw + end + end
        expected.append(Event(message.raw, Sse("message", identifier)))
    decoder = SseDecoder()
    items = [item for piece in pieces(stream, sizes) for item in decoder.feed(piece)]
    assert decoder.fault is None
    assert items == expected
    assert decoder.finish() is None


@few(50)
@given(MESSAGES, st.integers(1, 400), CUTS)
def test_an_event_that_breaks_off_is_told_and_not_given_out(
    message: Crafted, kept: int, sizes: list[int]
) -> None:
    stream = (b"data: " + message.raw)[: kept + 6]
    decoder = SseDecoder()
    assert [item for piece in pieces(stream, sizes) for item in decoder.feed(piece)] == []
    assert decoder.finish() == stream


@few(50)
@given(st.binary(max_size=120), CUTS, st.integers(8, 60))
def test_any_bytes_cost_no_more_than_the_limit(stream: bytes, sizes: list[int], limit: int) -> None:
    decoder = SseDecoder(limit)
    whole = SseDecoder(limit)
    items = [item for piece in pieces(stream, sizes) for item in decoder.feed(piece)]
    assert decoder.held <= limit + max([*sizes, len(stream)])
    if decoder.fault is None:
        assert items == whole.feed(stream)
