"""The scripted server over HTTP: what it records, who may come in, what a script can do."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator

import pytest

from mcptest.core.capture import (
    Frame,
    HttpRequest,
    HttpResponse,
    Note,
    Sse,
    SseEvent,
    StreamEnd,
    Trouble,
)
from mcptest.core.verdict import Outcome, Side
from mcptest.rules.catalogue import all_rules
from mcptest.rules.judge import judge
from mcptest.servers.scripted.recording import KEPT_BYTES, SiteTape, origins_of
from mcptest.servers.scripted.script import Obj, Script, ScriptedCall, Visit
from mcptest.wire.capture_forms import SessionSource
from tests.support.playing import (
    BOUND,
    Adder,
    D,
    E,
    Http,
    Play,
    good_session,
    playing,
    raw,
    read_until,
)


class Talkative(Adder):
    """Answers in all the ways that there are."""

    def call_tool(self, call: ScriptedCall, name: str, arguments: Obj) -> None:
        getattr(self, name)(call)

    def streamed(self, call: ScriptedCall) -> None:
        call.begin_stream(Sse(id="1", retry=250))
        call.notify("notifications/message", {"level": "info", "data": "x"})
        self.text(call, "done")

    def twice(self, call: ScriptedCall) -> None:
        self.text(call, "one")
        self.text(call, "two")

    def twice_on_a_stream(self, call: ScriptedCall) -> None:
        events = call.begin_stream()
        call.keep_open()
        self.text(call, "one")
        self.text(call, "two")
        assert events is not None
        events.end()

    def late(self, call: ScriptedCall) -> None:
        self.stage.after(0.01, lambda: self.text(call, "late"))

    def dropped(self, call: ScriptedCall) -> None:
        call.cut()

    def halfway(self, call: ScriptedCall) -> None:
        events = call.begin_stream()
        assert events is not None
        events.event(Sse(event="greeting"), "hello")
        events.event(Sse(), comment="still here")
        events.cut()

    def raw_bytes(self, call: ScriptedCall) -> None:
        call.reply(b'{"jsonrpc":"2.0",\n"id":', status=200)

    def defective(self, call: ScriptedCall) -> None:
        raise RuntimeError("the script is broken")


@pytest.fixture
def play() -> Iterator[Play]:
    with playing(Talkative(), D) as play:
        yield play


def called(play: Play, name: str) -> bytes:
    client = Http(play.port)
    client.initialize()
    body = json.dumps(
        {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": name}}
    ).encode()
    session = client.headers["Mcp-Session-Id"]
    head = f"POST /mcp HTTP/1.1\r\nHost: localhost\r\nMcp-Session-Id: {session}\r\n"
    head += f"Connection: close\r\nContent-Length: {len(body)}\r\n\r\n"
    return raw(play.port, head.encode() + body)


# -- records -----------------------------------------------------------------------------------


def test_a_request_is_recorded_as_it_came(play: Play) -> None:
    raw(
        play.port,
        b"PUT /other?a=1 HTTP/1.1\r\nhOsT: LOCALHOST:1\r\nX-Two: b\r\nx-two: a\r\n"
        b"Content-Length: 2\r\nConnection: close\r\n\r\n\xff\x00",
    )
    [request] = play.of(HttpRequest)
    assert request.method == "PUT"
    assert request.url == f"{play.site.url()}/other?a=1"
    assert request.headers[:3] == (("hOsT", "LOCALHOST:1"), ("X-Two", "b"), ("x-two", "a"))
    mine, theirs = play.of(Frame)
    assert (mine.sender, mine.raw, mine.stream) == ("client", b"\xff\x00", request.stream)
    assert (theirs.sender, theirs.stream) == ("server", request.stream)
    [response] = play.of(HttpResponse)
    assert (response.status, response.header("connection")) == (404, "close")
    assert response.header("content-length") == str(len(theirs.raw))
    assert play.of(StreamEnd)[0].complete


def test_events_are_recorded_with_their_fields(play: Play) -> None:
    said = called(play, "streamed")
    assert b"id: 1\nretry: 250\ndata: \n\n" in said
    assert play.of(SseEvent)[0].sse == Sse(id="1", retry=250)
    events = [frame for frame in play.of(Frame) if frame.sse is not None]
    assert [json.loads(frame.raw).get("method", "result") for frame in events] == [
        "notifications/message",
        "result",
    ]
    assert said.count(b"event: message\n") == 2
    assert said.endswith(b"0\r\n\r\n")


def test_a_whole_session_breaks_no_rule_about_servers() -> None:
    for revision in (D, E):
        with playing(Adder(), revision) as play:
            client = Http(play.port)
            if play.site.stateless:
                client.ask_on_its_own("server/discover")
                client.ask_on_its_own("tools/list")
                client.ask_on_its_own("no/such")
                client.send("GET")
            else:
                good_session(play.port)
                client.ask("tools/list")
        rules = [rule for rule in all_rules() if rule.side in {Side.SERVER, Side.BOTH}]
        source = SessionSource(
            label="x",
            file="",
            form="full",
            records=iter(list(enumerate(play.tape.records))),
            transport="http",
        )
        findings = [
            (verdict.rule, finding.message)
            for verdict in judge(source, rules, revision).verdicts
            if verdict.outcome is Outcome.FAIL
            for finding in verdict.findings
            if finding.sender == "server"
        ]
        assert findings == []


def test_the_addresses_can_be_read_from_the_capture(play: Play) -> None:
    assert origins_of(play.tape.records) == {"mcp": play.site.url()}


def test_a_tape_has_an_end() -> None:
    told = []
    tape = SiteTape(told.append)
    large = bytes(KEPT_BYTES // 2)
    for _ in range(4):
        tape.frame("client", large)
    assert (len(tape.records), tape.dropped, len(told)) == (2, 2, 4)


# -- who may come in ---------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "10.0.0.1:80"])
def test_a_foreign_host_is_refused_and_recorded(play: Play, host: str) -> None:
    assert Http(play.port).send("POST", headers={"Host": host}).status == 403
    assert ("Host", host) in play.of(HttpRequest)[0].headers
    assert play.of(HttpResponse)[0].status == 403
    assert any("unknown Host" in note.text for note in play.of(Note))


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://localhost.evil"])
def test_a_foreign_origin_is_refused_and_recorded(play: Play, origin: str) -> None:
    assert Http(play.port).send("POST", headers={"Origin": origin}).status == 403
    assert any("unknown Origin" in note.text for note in play.of(Note))


def test_our_own_origin_is_welcome(play: Play) -> None:
    client = Http(play.port, {"Origin": play.site.url()})
    assert client.initialize().status == 200


def test_localhost_is_either_loopback_address(play: Play) -> None:
    ask = b"GET /x HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    assert raw(play.port, ask).startswith(b"HTTP/1.1 404")
    try:
        there_is_ipv6 = socket.create_server(("::1", 0), family=socket.AF_INET6).close() is None
    except OSError:
        there_is_ipv6 = False
    if there_is_ipv6:
        assert raw(play.port, ask, host="::1").startswith(b"HTTP/1.1 404")


# -- what a script can do ----------------------------------------------------------------------


def test_an_answer_can_come_late(play: Play) -> None:
    assert b'"late"' in called(play, "late")


def test_a_second_answer_over_http_is_not_sent_and_is_noted(play: Play) -> None:
    assert b'"two"' not in called(play, "twice")
    assert any("a second answer was not sent" in note.text for note in play.of(Note))


def test_a_second_answer_on_a_stream_that_was_kept_open_is_sent(play: Play) -> None:
    said = called(play, "twice_on_a_stream")
    assert said.index(b'"one"') < said.index(b'"two"')


@pytest.mark.parametrize("name", ["dropped", "halfway"])
def test_a_connection_can_be_cut(play: Play, name: str) -> None:
    said = called(play, name)
    assert not said.endswith(b"0\r\n\r\n")
    assert [end.complete for end in play.of(StreamEnd)] == [True, False]
    assert any("closed on purpose" in note.text for note in play.of(Note))
    assert not any("hung up" in note.text for note in play.of(Note))


def test_events_of_every_kind_can_be_sent(play: Play) -> None:
    said = called(play, "halfway")
    assert b"event: greeting\ndata: hello\n\n" in said
    assert b": still here\n\n" in said
    assert [event.comment for event in play.of(SseEvent)] == [None, "still here"]


def test_any_bytes_can_be_the_answer(play: Play) -> None:
    assert called(play, "raw_bytes").endswith(b'{"jsonrpc":"2.0",\n"id":')


def test_a_defect_of_the_script_ends_it_and_is_said_as_ours() -> None:
    play = Play(Talkative(), D)
    caller = threading.Thread(target=called, args=(play, "defective"))
    caller.start()
    play.wait()
    play.stop()
    caller.join(BOUND)
    assert not caller.is_alive(), "the connection is still open"
    assert "Talkative failed: RuntimeError: the script is broken" in play.site.defect
    assert any("a defect of mcptest" in note.text for note in play.of(Note))


def test_a_script_hears_of_a_client_that_hangs_up() -> None:
    heard: list[Visit] = []
    told = threading.Event()

    class Waiting(Adder):
        def call_tool(self, call: ScriptedCall, name: str, arguments: Obj) -> None:
            call.begin_stream(Sse(id="1"))

        def hung_up(self, visit: Visit) -> None:
            heard.append(visit)
            told.set()

    body = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}'
    with playing(Waiting(), D) as play:
        client = Http(play.port)
        session = client.initialize().headers["Mcp-Session-Id"].encode()
        head = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nMcp-Session-Id: %b\r\n" % session
        head += b"Content-Length: %d\r\n\r\n" % len(body)
        with socket.create_connection(("127.0.0.1", play.port), timeout=BOUND) as connection:
            connection.sendall(head + body)
            read_until(connection, b"id: 1")
        assert told.wait(BOUND)
    assert heard[0].body == body
    assert any("hung up" in note.text for note in play.of(Note))
    assert not play.of(StreamEnd)[-1].complete


def test_a_script_hears_of_notifications_answers_and_broken_bytes() -> None:
    heard: list[object] = []

    class Listening(Adder):
        has_sessions = False

        def notified(self, message: Obj) -> None:
            heard.append(message["method"])

        def answered(self, message: Obj) -> None:
            heard.append(message["result"])

        def broken(self, raw: bytes) -> bool:
            heard.append(raw)
            return raw == b"mine"

    with playing(Listening(), D) as play:
        client = Http(play.port)
        client.post({"jsonrpc": "2.0", "method": "notifications/progress"})
        client.post({"jsonrpc": "2.0", "id": 1, "result": {"roots": []}})
        assert client.send("POST", body=b"mine").status == 202
        answer = client.send("POST", body=b"{")
        assert (answer.status, answer.message["error"]["code"]) == (400, -32700)
    assert heard == ["notifications/progress", {"roots": []}, b"mine", b"{"]


def test_several_origins_have_addresses_of_their_own() -> None:
    class TwoSites(Script):
        origins = ("mcp", "as")

        def visit(self, visit: Visit) -> bool:
            body = {"origin": visit.origin, "query": dict(visit.query)}
            visit.respond(207, body, headers={"X-Seen": visit.headers["user-agent"]})
            return True

    with playing(TwoSites(), D) as play:
        urls = play.site.urls
        assert set(urls) == {"mcp", "as"}
        for origin, url in urls.items():
            client = Http(int(url.rpartition(":")[2]), {"User-Agent": origin})
            answer = client.send("GET", "/x?a=1&a=2&b=")
            assert (answer.status, answer.headers["X-Seen"]) == (207, origin)
            assert answer.message == {"origin": origin, "query": {"a": "2", "b": ""}}
    assert [request.url for request in play.of(HttpRequest)] == [
        f"{url}/x?a=1&a=2&b=" for url in urls.values()
    ]


def test_what_a_script_gives_back_in_a_header_can_not_end_it() -> None:
    class Redirecting(Script):
        def visit(self, visit: Visit) -> bool:
            visit.respond(302, headers={"Location": visit.query["to"]})
            return True

    with playing(Redirecting(), D) as play:
        answer = Http(play.port).send("GET", "/authorize?to=x%0d%0aX-Evil:%201%e2%82%ac%00")
        assert answer.headers["Location"] == "x%0D%0AX-Evil: 1%E2%82%AC%00"
        assert "X-Evil" not in answer.headers
        assert play.site.defect == ""


def test_a_script_that_is_settled_says_so_once() -> None:
    settled = []

    class Short(Adder):
        def settled(self) -> bool:
            return self.was_initialized

    with playing(Short(), D) as play:
        play.site.on_settled = lambda: settled.append(1)
        good_session(play.port)
    assert settled == [1]


# -- bytes that are no request -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("sent", "status", "error"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", 400, "bad-http"),
        (b"POST /mcp HTTP/9.9\r\nHost: x\r\n\r\n", 505, "bad-http"),
        (b"POST /mcp HTTP/1.1\r\n\r\n", 400, "bad-http"),
        (b"GET http://evil.example/ HTTP/1.1\r\nHost: x\r\n\r\n", 400, "bad-http"),
        (b"POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", 400, "bad-http"),
        (
            b"POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Length: 999999999\r\n\r\n",
            413,
            "body-too-large",
        ),
        (b"POST /mcp HTTP/1.1\r\nX: " + b"x" * 70_000, 431, "headers-too-large"),
    ],
)
def test_malformed_http_is_answered_and_recorded(
    play: Play, sent: bytes, status: int, error: str
) -> None:
    assert raw(play.port, sent).startswith(b"HTTP/1.1 %d" % status)
    assert Http(play.port).initialize().status == 200
    [trouble] = play.of(Trouble)
    assert trouble.error == error
    assert len(trouble.excerpt) <= 200
