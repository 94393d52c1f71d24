"""Who an answer is for, what came unasked, and how that is told."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from mcptest.core.capture import Frame, HttpResponse, StreamEnd, Trouble
from mcptest.core.errors import ErrorKind, PeerError
from mcptest.core.limits import Deadline
from mcptest.core.message import Kind
from mcptest.session.connection import Connection, encode
from mcptest.wire.mcp_headers import hint_for_status
from tests.support.scripted import (
    Later,
    Scripted,
    VirtualTime,
    http,
    in_turn,
    nothing,
    notification,
    raw,
    result,
)


def connected(clock: VirtualTime, name: Any = "stdio", **reactions: Any) -> Connection:
    table = {key.replace("__", "/"): reaction for key, reaction in reactions.items()}
    return Connection(Scripted(clock, table, name=name))


def ask(connection: Connection, method: str = "m", seconds: float = 5.0) -> Any:
    deadline = Deadline.after(seconds)
    return connection.settle(connection.request(method, None, deadline), deadline)


def failure(connection: Connection, method: str = "m", seconds: float = 5.0) -> PeerError:
    with pytest.raises(PeerError) as caught:
        ask(connection, method, seconds)
    return caught.value


# -- matching ------------------------------------------------------------------------------


def test_answers_may_come_in_any_order(clock: VirtualTime) -> None:
    connection = connected(clock)
    deadline = Deadline.after(5)
    pending = [connection.request("m", {"n": n}, deadline) for n in range(3)]
    assert len({each.id for each in pending}) == 3
    for each in reversed(pending):
        connection.transport.deliver({"jsonrpc": "2.0", "id": each.id, "result": each.id})
    assert [connection.settle(each, deadline).result for each in pending] == [1, 2, 3]


@pytest.mark.parametrize(
    ("asked", "answered"),
    [(1, "true"), (1, "null"), (1, "[1]"), (1, "1.5"), ("a", '{"a":1}'), ("a", '"A"')],
)
def test_an_id_of_another_type_is_another_id(clock: VirtualTime, asked: Any, answered: str) -> None:
    wrong = f'{{"jsonrpc":"2.0","id":{answered},"result":{{}}}}'.encode()
    connection = connected(clock, m=raw(wrong))
    deadline = Deadline.after(5)
    pending = connection.request("m", None, deadline, identifier=asked)
    with pytest.raises(PeerError) as caught:
        connection.settle(pending, deadline)
    assert caught.value.kind is ErrorKind.TIMEOUT
    assert "it sent only a response with the unknown id" in caught.value.message


@pytest.mark.parametrize("name", ["stdio", "http"])
@pytest.mark.parametrize(("asked", "answered"), [(1, '"1"'), ("1", "1"), ("1", "1.0")])
def test_a_number_that_comes_back_as_a_string_is_told_at_once(
    clock: VirtualTime, name: str, asked: Any, answered: str
) -> None:
    wrong = f'{{"jsonrpc":"2.0","id":{answered},"result":{{}}}}'.encode()
    answering = http(200, raw(wrong)) if name == "http" else raw(wrong)
    connection = connected(clock, name, m=answering)
    deadline = Deadline.after(5)
    pending = connection.request("m", None, deadline, identifier=asked)
    with pytest.raises(
        PeerError, match=r"m: the response has the id .*; the request has"
    ) as caught:
        connection.settle(pending, deadline)
    assert caught.value.kind is ErrorKind.PROTOCOL
    assert deadline.remaining() == 5


def test_a_number_may_be_written_with_a_fraction_of_zero(clock: VirtualTime) -> None:
    answer = ask(connected(clock, m=raw(b'{"jsonrpc":"2.0","id":1.0,"result":{"a":1}}')))
    assert answer.result == {"a": 1}


def test_a_late_second_answer_does_not_fail_a_request_with_a_like_id(clock: VirtualTime) -> None:
    twice = lambda sent: [*result(1)(sent), *result(2)(sent)]  # noqa: E731 - a script
    connection = connected(clock, m=twice, n=nothing)
    deadline = Deadline.after(5)
    like = connection.request("n", None, deadline, identifier="1")
    assert ask(connection).result == 1
    with pytest.raises(PeerError) as caught:
        connection.settle(like, deadline)
    assert caught.value.kind is ErrorKind.TIMEOUT
    assert [one.result for one in connection.second_answers()] == [2]


def test_an_answer_without_result_and_error_is_not_waited_beyond(clock: VirtualTime) -> None:
    answer = ask(connected(clock, m=raw(b'{"jsonrpc":"2.0","id":1}')))
    assert answer.kind is Kind.INVALID


@pytest.mark.parametrize(
    "line", [b'{"id":1,"msg":"accepted"}', b'{"level":"info","id":1,"result":"ok"}', b"1"]
)
def test_a_log_line_with_the_id_of_a_request_is_not_its_answer(
    clock: VirtualTime, line: bytes
) -> None:
    log_first = lambda sent: [line, *result("good")(sent)]  # noqa: E731 - a script
    assert ask(connected(clock, m=log_first)).result == "good"


def test_two_answers_to_one_id_leave_the_first_and_tell_of_the_second(clock: VirtualTime) -> None:
    twice = lambda sent: [*result("first")(sent), *result("second")(sent)]  # noqa: E731 - a script
    connection = connected(clock, m=twice)
    assert ask(connection).result == "first"
    assert [answer.result for answer in connection.second_answers()] == ["second"]


def test_the_answers_of_a_batch_find_their_requests(clock: VirtualTime) -> None:
    def both(sent: Any) -> list[Any]:
        return [
            [
                {"jsonrpc": "2.0", "id": each["id"], "result": each["method"]}
                for each in sent.message
            ]
        ]

    connection = connected(clock, batch=both)
    deadline = Deadline.after(5)
    pending = connection.batch([("a", None), ("b", {"x": 1})], deadline)
    assert [connection.settle(each, deadline).result for each in pending] == ["a", "b"]
    (sent,) = connection.transport.sent
    assert [each["method"] for each in sent.message] == ["a", "b"]


def test_a_batch_that_is_refused_fails_every_request_in_it_at_once(clock: VirtualTime) -> None:
    refusal = Trouble(stream=1, error="http-status", detail="HTTP 400 Bad Request")
    connection = connected(clock, "http", batch=http(400, lambda sent: [refusal]))
    deadline = Deadline.after(30)
    for pending in connection.batch([("a", None), ("b", None)], deadline):
        with pytest.raises(PeerError, match="HTTP 400 Bad Request") as caught:
            connection.settle(pending, deadline)
        assert caught.value.kind is ErrorKind.HTTP_STATUS
    assert deadline.remaining() == 30


def test_half_a_surrogate_pair_goes_back_as_it_came() -> None:
    assert json.loads(encode({"cursor": "\ud800"})) == {"cursor": "\ud800"}
    assert encode({"id": 10**30}) == b'{"id":1000000000000000000000000000000}'


# -- what came instead ---------------------------------------------------------------------


def test_a_timeout_says_that_nothing_came_when_nothing_came(clock: VirtualTime) -> None:
    error_ = failure(connected(clock), seconds=2.5)
    assert error_.kind is ErrorKind.TIMEOUT
    assert error_.message.startswith("the server did not answer m within 2.5s; it sent nothing")


def test_a_timeout_names_what_came_instead(clock: VirtualTime) -> None:
    def banner(sent: Any) -> list[Any]:
        return [b"Server v1.0 is ready!\x1b[0m", notification("a"), notification("b")]

    message = failure(connected(clock, m=banner)).message
    assert "'Server v1.0 is ready!\\\\x1b[0m'" in message
    assert "it sent 2 notifications" in message


def test_many_unusable_messages_are_counted_and_the_last_is_shown(clock: VirtualTime) -> None:
    noise = lambda sent: [f"line {n}".encode() for n in range(1000)]  # noqa: E731 - a script
    message = failure(connected(clock, m=noise)).message
    assert "it sent 1000 unusable messages, the last one 'line 999'" in message


def test_what_came_before_a_request_did_not_come_in_place_of_its_answer(clock: VirtualTime) -> None:
    connection = connected(clock, a=raw(b'data: {"jsonrpc":"2.0"}'), b=nothing)
    errors = []
    for method in ("a", "b"):
        pending = connection.request(method, None, Deadline.after(2))
        with pytest.raises(PeerError) as caught:
            connection.settle(pending, Deadline.after(2))
        errors.append(caught.value)
    assert [error.unusable for error in errors] == [True, False]
    assert (
        "the server gave no usable answer to a within 2s: it is a server-sent event"
        in errors[0].message
    )
    assert errors[1].message == "the server did not answer b within 2s; it sent nothing"


def test_an_answer_that_comes_after_a_timeout_does_not_answer_the_next_request(
    clock: VirtualTime,
) -> None:
    late = in_turn(lambda sent: [Later(10, result("late")(sent)[0])], nothing)
    connection = connected(clock, m=late)
    assert failure(connection, seconds=5).kind is ErrorKind.TIMEOUT
    assert "a late response with id 1" in failure(connection, seconds=20).message


@pytest.mark.parametrize(
    "body",
    [
        '"result":{},"error":{"code":1,"message":"x"}',
        '"method":"m","result":{}',
        '"error":{},"method":1',
    ],
)
def test_an_invalid_message_with_a_pending_id_is_its_answer(clock: VirtualTime, body: str) -> None:
    answer = ask(connected(clock, m=raw(f'{{"jsonrpc":"2.0","id":1,{body}}}'.encode())))
    assert answer.kind is Kind.INVALID


def test_a_message_without_its_version_is_still_taken(clock: VirtualTime) -> None:
    assert ask(connected(clock, m=raw(b'{"id":1,"result":5}'))).result == 5


def test_members_of_a_batch_that_are_no_messages_are_told(clock: VirtualTime) -> None:
    message = failure(connected(clock, m=raw(b'[17,{"nothing":"here"}]'))).message
    assert '{"nothing":"here"}' in message


def test_an_exit_is_passed_on_as_it_is(clock: VirtualTime) -> None:
    gone = PeerError(ErrorKind.EXITED, "the server exited with code 3")
    error_ = failure(connected(clock, m=lambda sent: [gone]))
    assert error_.kind is ErrorKind.EXITED


def test_what_came_before_the_exit_is_used_first(clock: VirtualTime) -> None:
    gone = PeerError(ErrorKind.EXITED, "the server exited with code 3")
    connection = connected(clock, m=lambda sent: [*result(1)(sent), gone])
    assert ask(connection).result == 1
    assert failure(connection).kind is ErrorKind.EXITED


# -- streams of HTTP -----------------------------------------------------------------------


@pytest.mark.parametrize("identifier", ["", '"id":null,'])
def test_an_error_without_an_id_belongs_to_the_request_of_its_stream(
    clock: VirtualTime, identifier: str
) -> None:
    body = f'{{"jsonrpc":"2.0",{identifier}"error":{{"code":-32600,"message":"x"}}}}'.encode()
    connection = connected(clock, "http", m=http(400, raw(body)))
    assert ask(connection).error["code"] == -32600
    assert connection.last_status == 400


def test_an_error_without_an_id_on_stdio_answers_nobody(clock: VirtualTime) -> None:
    body = b'{"jsonrpc":"2.0","error":{"code":-32700,"message":"x"}}'
    assert "a response without an id" in failure(connected(clock, m=raw(body))).message


def test_the_status_and_headers_of_a_response_are_known_with_its_answer(clock: VirtualTime) -> None:
    connection = connected(clock, "http", m=http(200, result(1), headers={"Mcp-Session-Id": "s"}))
    deadline = Deadline.after(5)
    pending = connection.request("m", None, deadline)
    connection.settle(pending, deadline)
    assert pending.status == 200
    assert pending.header("mcp-session-id") == "s"


def test_a_response_that_ends_without_an_answer_is_not_waited_for(clock: VirtualTime) -> None:
    error_ = failure(connected(clock, "http", m=http(200)), seconds=60)
    assert error_.kind is ErrorKind.PROTOCOL
    assert "(HTTP 200)" in error_.message
    assert "ended without a message" in error_.message
    assert clock.now == 1000


def test_a_response_that_is_cut_off_says_so(clock: VirtualTime) -> None:
    cut = lambda sent: [StreamEnd(stream=sent.stream, complete=False)]  # noqa: E731 - a script
    error_ = failure(connected(clock, "http", m=cut))
    assert error_.kind is ErrorKind.TRUNCATED
    assert "was cut off" in error_.message


def test_a_body_that_is_no_message_is_named(clock: VirtualTime) -> None:
    error_ = failure(connected(clock, "http", m=http(200, raw(b'{"message":"hello"}'))))
    assert error_.kind is ErrorKind.NOT_A_MESSAGE
    assert '{"message":"hello"}' in error_.message


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (gzip.compress(b'{"jsonrpc":"2.0","id":1,"result":{}}', mtime=0), "compressed with gzip"),
        ('{"jsonrpc":"2.0","id":1,"result":{}}'.encode("utf-16"), "it is UTF-16"),
        (b"{'jsonrpc': '2.0', 'id': 1, 'result': {}}", "a Python object"),
    ],
)
def test_a_body_that_is_encoded_wrongly_is_called_what_it_is(
    clock: VirtualTime, body: bytes, words: str
) -> None:
    error_ = failure(connected(clock, "http", m=http(200, raw(body))))
    assert error_.kind is ErrorKind.NOT_A_MESSAGE
    assert words in error_.message


def test_a_spoiled_event_does_not_cost_the_answer_behind_it(clock: VirtualTime) -> None:
    connection = connected(clock, "http", m=http(200, raw(b"garbage"), result("good")))
    assert ask(connection).result == "good"


def test_an_answer_with_a_wrong_id_on_the_stream_of_a_request_is_not_its_answer(
    clock: VirtualTime,
) -> None:
    wrong = raw(b'{"jsonrpc":"2.0","id":"x","result":{}}')
    error_ = failure(connected(clock, "http", m=http(200, wrong)))
    assert error_.kind is ErrorKind.PROTOCOL
    assert "a response with the unknown id 'x'" in error_.message


def test_a_result_without_an_id_belongs_to_the_request_of_its_stream(clock: VirtualTime) -> None:
    connection = connected(clock, "http", m=http(200, raw(b'{"jsonrpc":"2.0","result":{"a":1}}')))
    assert ask(connection).result == {"a": 1}


def test_a_refusal_is_told_with_its_body(clock: VirtualTime) -> None:
    refusal = Trouble(stream=1, error="http-status", detail="HTTP 403 Forbidden", excerpt="go away")
    error_ = failure(connected(clock, "http", m=http(403, lambda sent: [refusal])))
    assert error_.message == "m: HTTP 403 Forbidden: 'go away'"


def test_a_refusal_with_any_json_as_its_body_is_a_status(clock: VirtualTime) -> None:
    error_ = failure(connected(clock, "http", m=http(404, raw(b'{"detail":"Not Found"}'))))
    assert error_.kind is ErrorKind.HTTP_STATUS
    assert "(HTTP 404)" in error_.message
    assert '{"detail":"Not Found"}' in error_.message


@pytest.mark.parametrize(
    "body",
    [
        b'{"error":"invalid_token","error_description":"Missing header"}',
        b'{"error":{"code":401,"message":"Unauthorized"}}',
        b'{"result":null,"success":false}',
    ],
)
def test_the_body_of_a_refusal_is_no_malformed_answer(clock: VirtualTime, body: bytes) -> None:
    challenge = {"WWW-Authenticate": "Bearer"}
    error_ = failure(connected(clock, "http", m=http(401, raw(body), headers=challenge)))
    assert error_.kind is ErrorKind.HTTP_STATUS
    assert not error_.unusable
    assert error_.message == (
        f"m was refused (HTTP 401; the server requires authorization: Bearer): {body.decode()!r}"
    )
    assert error_.hint == hint_for_status(401)


def test_what_is_meant_as_an_answer_is_one_below_any_status(clock: VirtualTime) -> None:
    body = b'{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"no"}}'
    assert ask(connected(clock, "http", m=http(401, raw(body)))).error["code"] == -32000


def test_what_a_refused_post_says_over_sse_is_told(clock: VirtualTime) -> None:
    connection = connected(clock, "sse", m=nothing)
    head = HttpResponse(stream=9, status=401, headers=(("content-type", "application/json"),))
    body = Frame(sender="server", raw=b'{"error":"invalid_token"}', stream=9)
    for record in (head, body, StreamEnd(stream=9)):
        connection.transport.deliver(record)
    assert failure(connection).message == (
        "the server gave no usable answer to m within 5s; it sent only "
        """a POST was refused (HTTP 401): '{"error":"invalid_token"}'"""
    )


@pytest.mark.parametrize("body", [b"null", b'{"detail":"Method Not Allowed"}'])
def test_a_body_that_nobody_waits_for_is_not_told_of(clock: VirtualTime, body: bytes) -> None:
    connection = connected(clock, "http", m=nothing)
    head = HttpResponse(stream=77, status=405, headers=(("content-type", "application/json"),))
    for record in (head, Frame(sender="server", raw=body, stream=77), StreamEnd(stream=77)):
        connection.transport.deliver(record)
    assert failure(connection).message.startswith(
        "the server did not answer m within 5s; it sent nothing"
    )


LISTED = {"jsonrpc": "2.0", "id": 1, "result": {"tools": []}}
LINE = json.dumps(LISTED).encode()
LONG = json.dumps({**LISTED, "result": {"tools": ["x" * 100] * 2000}}, indent=2)
FRAMED = b"Content-Length: %d\r" % len(LINE)
TOLD = {
    "several lines": (json.dumps(LISTED, indent=2).encode().split(b"\n"), b""),
    "over several lines": (LONG.encode().split(b"\n"), b""),
    "as LSP messages are": ([FRAMED], LINE),
    "UTF-16": ([json.dumps(LISTED).encode("utf-16")], b""),
    "UTF-16;": ([json.dumps(LISTED).encode("utf-16-be")], b""),
    "gzip": ([gzip.compress(LINE, mtime=0)], b""),
    "there are several messages on one line": ([LINE + LINE], b""),
    "carriage return alone": ([], LINE + b"\r" + LINE + b"\r"),
    "a carriage return alone": ([], LINE + b"\r"),
    "without a newline at its end": ([], LINE),
    "server-sent event": ([b"event: message", b"data: " + LINE], b""),
    "web page": ([b"<!DOCTYPE html><title>x</title>"], b""),
    "Python object": ([repr(LISTED).encode()], b""),
    "other text before": ([b"[INFO] sending " + LINE], b""),
}


@pytest.mark.parametrize(("words", "came"), TOLD.items(), ids=TOLD)
def test_a_timeout_says_what_the_bytes_are_that_came(
    clock: VirtualTime, words: str, came: tuple[list[bytes], bytes]
) -> None:
    lines, unfinished = came
    connection = connected(clock, m=lambda sent: lines)
    connection.transport.unfinished = unfinished
    error_ = failure(connection)
    assert error_.kind is ErrorKind.TIMEOUT
    assert words in error_.message
    assert "raise --timeout" not in (error_.hint or "")


@pytest.mark.parametrize("line", [b"Server is ready", b"\x00\x01", b"{", b'{"a":1}', b"\xff\xfd"])
def test_a_timeout_does_not_guess(clock: VirtualTime, line: bytes) -> None:
    error_ = failure(connected(clock, m=raw(line)))
    assert "; it is" not in error_.message
    assert error_.hint == "raise --timeout if the server is only slow"


@pytest.mark.parametrize(("startup", "option"), [(5.0, "--timeout"), (9.0, "--startup-timeout")])
def test_the_hint_names_the_limit_that_ended_the_wait(
    clock: VirtualTime, startup: float, option: str
) -> None:
    connection = connected(clock, m=raw(b"Server is ready"))
    deadline = Deadline.for_start(startup, 5.0)
    with pytest.raises(PeerError) as raised:
        connection.settle(connection.request("m", None, deadline), deadline)
    assert raised.value.hint == f"raise {option} if the server is only slow"


def test_trouble_on_a_stream_fails_the_request_of_that_stream_only(clock: VirtualTime) -> None:
    trouble = Trouble(stream=1, error="bad-http", detail="no HTTP at all")
    connection = connected(clock, "http", m=lambda sent: [trouble], n=http(200, result(2)))
    deadline = Deadline.after(5)
    first = connection.request("m", None, deadline)
    second = connection.request("n", None, deadline)
    assert connection.settle(second, deadline).result == 2
    with pytest.raises(PeerError, match="m: no HTTP at all") as caught:
        connection.settle(first, deadline)
    assert caught.value.kind is ErrorKind.BAD_HTTP


# -- keeping -------------------------------------------------------------------------------


def test_notifications_are_kept_up_to_a_number_and_counted_all(clock: VirtualTime) -> None:
    flood = lambda sent: [notification("n", {"i": i}) for i in range(1500)] + result(1)(sent)  # noqa: E731
    connection = connected(clock, m=flood)
    ask(connection)
    assert connection.notifications_seen == 1500
    assert len(connection.notifications) == 1000
    assert connection.notifications[-1].params == {"i": 1499}


def test_large_notifications_are_kept_up_to_a_size(clock: VirtualTime) -> None:
    large = notification("n", {"x": "x" * 3_000_000})
    connection = connected(clock, m=lambda sent: [large] * 10 + result(1)(sent))
    ask(connection)
    assert sum(len(each.raw) for each in connection.notifications) <= 8 * 1024 * 1024
    assert connection.notifications_seen == 10


def test_a_notification_is_claimed_once(clock: VirtualTime) -> None:
    connection = connected(
        clock, m=lambda sent: [notification("a"), notification("b"), *result(1)(sent)]
    )
    ask(connection)
    assert connection.claim(lambda message: message.method == "b") is not None
    assert connection.claim(lambda message: message.method == "b") is None
    assert [message.method for message in connection.notifications] == ["a"]


def test_listeners_hear_notifications_in_order(clock: VirtualTime) -> None:
    connection = connected(
        clock, m=lambda sent: [notification("a"), notification("b"), *result(1)(sent)]
    )
    heard: list[str | None] = []
    connection.on_notification = lambda message: heard.append(message.method)
    ask(connection)
    assert heard == ["a", "b"]


def test_the_recorder_is_told_before_every_wait(clock: VirtualTime) -> None:
    waits: list[int] = []
    transport = Scripted(clock, {"m": result(1)})
    connection = Connection(transport, before_waiting=lambda: waits.append(len(transport.sent)))
    ask(connection)
    assert waits == [1]


def test_facts_of_streams_that_nobody_follows_are_survived(clock: VirtualTime) -> None:
    def stray(sent: Any) -> list[Any]:
        return [HttpResponse(stream=99, status=500), StreamEnd(stream=99), *result(1)(sent)]

    assert ask(connected(clock, "http", m=stray)).result == 1


# -- requests of the server ----------------------------------------------------------------

ASKED = {"jsonrpc": "2.0", "id": "s", "method": "ping"}


def answering(connection: Connection, clock: VirtualTime, seconds: float) -> None:
    """Answer what the server asks; each answer takes so long."""

    def answer(request: Any) -> None:
        connection.answer(request.id, {"result": {}})
        clock.now += seconds

    connection.on_request = answer


def test_answers_take_from_the_time_for_what_we_wait_for(clock: VirtualTime) -> None:
    connection = connected(clock, m=nothing)
    answering(connection, clock, 2.0)
    for _ in range(50):
        connection.transport.deliver(ASKED)
    begun = clock.now
    assert failure(connection, seconds=5.0).kind is ErrorKind.TIMEOUT
    answers = [one for one in connection.transport.sent if one.method is None]
    assert len(answers) == 3, "then the time is up"
    assert clock.now - begun == 3 * 2.0, "nobody is asked for the rest of the answers"


def test_a_look_at_what_came_still_answers_it(clock: VirtualTime) -> None:
    connection = connected(clock)
    answering(connection, clock, 0.0)
    connection.transport.deliver(ASKED)
    connection.pump(Deadline.after(0))
    assert [one.message["id"] for one in connection.transport.sent] == ["s"]
