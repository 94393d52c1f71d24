"""One tape: it never holds more than there is room for, and says what it left out."""

from __future__ import annotations

from mcptest.core.capture import Exited, Frame, HttpRequest, Stderr, Trouble
from mcptest.core.errors import ErrorKind
from mcptest.session.tape import Room, Tape

LOG = Frame(sender="server", raw=b'{"jsonrpc":"2.0","method":"notifications/message"}')


def server(raw: bytes, stream: int | None = None) -> Frame:
    return Frame(sender="server", raw=raw, stream=stream)


def test_what_is_no_message_is_counted_as_it_comes() -> None:
    tape = Tape("a", room=Room())
    tape(server(b'{"jsonrpc":"2.0","id":1,"result":{}}'))
    assert tape.unusable == []
    tape(server(b"Welcome!"))
    tape(Trouble(error=ErrorKind.TIMEOUT.value, detail="we gave up"))
    tape(Trouble(error=ErrorKind.LINE_TOO_LONG.value, detail="a line without an end"))
    assert tape.unusable == [b"Welcome!", b"a line without an end"]
    assert tape.unusable == [b"Welcome!", b"a line without an end"]


def test_a_full_tape_keeps_its_beginning_whole() -> None:
    tape = Tape("a", room=Room(1_000))
    for _ in range(10):
        tape(server(b"x" * 200))
    assert (len(tape.records), tape.dropped) == (2, 8)
    tape(Stderr(text="small"))
    assert tape.dropped == 9
    assert list(tape.stderr) == ["small"]


def test_all_tapes_of_a_run_share_their_room() -> None:
    room = Room(1_000)
    first, second = Tape("a", room=room), Tape("a", room=room)
    first(server(b"x" * 700))
    second(server(b"x" * 700))
    assert (first.dropped, second.dropped) == (0, 1)


def test_a_server_that_was_started_over_begins_with_an_empty_tape() -> None:
    tape = Tape("a", room=Room())
    tape(server(b"no"))
    tape(Exited(code=1))
    assert tape.unusable
    tape.begin_again("sse")
    assert (tape.records, tape.exited, tape.unusable, tape.transport) == ([], None, [], "sse")


def test_a_session_ends_with_its_conversation() -> None:
    tape = Tape("a", room=Room())
    tape(server(b"{}"))
    tape.end()
    source = tape.as_session("2025-06-18")
    assert [type(record).__name__ for _, record in source.records] == ["Frame", "Closed"]


def test_an_http_exchange_is_found_by_what_was_sent() -> None:
    tape = Tape(room=Room())
    tape(HttpRequest(stream=1, method="POST", url="http://h/mcp"))
    tape(Frame(sender="client", raw=b'{"id":1}', stream=1))
    assert tape.stream_of(b'{"id":1}', 0) == 1
    assert tape.stream_of(b'{"id":1}', 2) is None


def test_a_flood_on_stderr_leaves_room_for_messages() -> None:
    tape = Tape("a", room=Room(400_000))
    for number in range(10_000):
        tape(Stderr(text=f"line {number}"))
    tape(server(b"{}"))
    assert tape.dropped == 0
    assert tape.records[-1] == server(b"{}")
    assert tape.stderr[-1] == "line 9999"


# -- facts that are always kept -------------------------------------------------------------------


def test_a_tape_finds_a_request_behind_a_flood_of_answers() -> None:
    tape = Tape()
    request = b'{"jsonrpc":"2.0","id":7,"method":"tools/call"}'
    tape(Frame(sender="client", raw=request))
    for number in range(5_000):
        tape(Frame(sender="server", raw=b'{"jsonrpc":"2.0","id":%d,"method":"ping"}' % number))
        tape(Frame(sender="client", raw=b'{"jsonrpc":"2.0","id":%d,"result":{}}' % number))
    assert tape.request_with(7) == request
    assert tape.request_with("7") == b""
    assert tape.last_request == request


def test_a_tape_keeps_little_of_what_is_large() -> None:
    tape = Tape()
    for _ in range(50):
        tape(Frame(sender="server", raw=b"x" * 1_000_000))
        tape(Stderr(text="line"))
    assert len(tape.last_answer) < 100_000
    assert len(tape.stderr) < 50


def test_the_end_of_a_first_process_is_not_that_of_its_successor() -> None:
    tape = Tape()
    tape(Stderr(text="of the first"))
    tape(Exited(code=1))
    tape.begin_again("stdio")
    assert tape.exited is None
    assert not tape.stderr


# -- marks -----------------------------------------------------------------------------------------


def test_a_flood_is_cut_off_and_counted() -> None:
    tape = Tape(room=Room(24_000_000, record_cost=6_000))
    for _ in range(100_000):
        tape(LOG)
    assert len(tape.records) < 10_000
    assert len(tape.records) + tape.dropped == 100_000


def test_nothing_is_kept_after_a_gap() -> None:
    tape = Tape(room=Room(24_000_000, record_cost=6_000))
    large = Frame(sender="server", raw=b'"%b"' % (b"x" * 20_000_000))
    for record in (large, large, LOG):
        tape(record)
    assert (tape.records, tape.dropped) == ([large], 2)


def test_one_message_of_any_size_is_kept() -> None:
    tape = Tape(room=Room(24_000_000, record_cost=6_000))
    tape(Frame(sender="server", raw=b'"%b"' % (b"x" * 40_000_000)))
    assert tape.dropped == 0


def test_the_next_example_has_all_the_room() -> None:
    tape = Tape(room=Room(24_000_000, record_cost=6_000))
    tape.mark()
    for _ in range(3):
        for _ in range(3_000):
            tape(LOG)
        assert (len(tape.since_mark), tape.dropped) == (3_000, 0)
        tape.rewind()


def test_what_was_said_before_the_mark_stays() -> None:
    tape = Tape(room=Room())
    beginning, example = server(b"{}"), server(b'{"id":1}')
    tape(beginning)
    tape.mark()
    tape(example)
    assert tape.since_mark == [example]
    tape.rewind()
    assert (tape.records, tape.since_mark) == ([beginning], [])


def test_a_tape_without_room_keeps_facts_and_no_records() -> None:
    tape = Tape()
    tape(Frame(sender="client", raw=b'{"jsonrpc":"2.0","id":1,"method":"ping"}'))
    tape(server(b"{}"))
    assert (tape.records, tape.dropped) == ([], 0)
    assert (tape.first_request[-7:], tape.last_answer, tape.messages_sent) == (b'"ping"}', b"{}", 1)
    tape.rewind()
    assert (tape.first_request, tape.last_answer) == (b"", b"")


def test_a_tape_that_is_let_go_of_gives_back_its_room_and_keeps_the_facts() -> None:
    room = Room(1_000)
    first, second = Tape("a", room=room), Tape("a", room=room)
    first(server(b"x" * 600))
    first(Exited(code=1))
    first.forget_records()
    second(server(b"x" * 600))
    assert (first.records, second.dropped) == ([], 0)
    assert first.exited is not None
    assert not first.ended_wordless  # it said something, which nobody looks at any more


def test_a_process_that_ended_before_it_said_anything_is_told_apart() -> None:
    tape = Tape("a", room=Room())
    tape(Exited(code=1))
    assert tape.ended_wordless
    tape(server(b"{}"))
    assert not tape.ended_wordless


def test_of_a_flood_of_small_messages_few_are_kept_as_read() -> None:
    tape = Tape("a", room=Room())
    lines = [LOG.raw + b" " * number for number in range(3_000)]
    first, last = tape.read(lines[0]), [tape.read(line) for line in lines][-1]
    assert tape.read(lines[0]) is first
    assert tape.read(lines[-1]) is not last
    assert tape.read(lines[-1]) == last
