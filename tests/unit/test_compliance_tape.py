"""The tape of a conversation, causes that are told once, and verdicts over many sessions."""

from __future__ import annotations

import pytest

from mcptest.model.capture import (
    Exited,
    Frame,
    HttpRequest,
    HttpResponse,
    Stderr,
    StreamEnd,
    Trouble,
)
from mcptest.model.compliance import RuleResult
from mcptest.model.errors import ErrorKind, PeerError
from mcptest.model.masking import Masker
from mcptest.model.verdict import Finding, Outcome, Severity, Verdict
from mcptest.rules.catalogue import all_rules
from mcptest.run.compliance.asked import http_facts, input_requests
from mcptest.run.compliance.causes import Causes
from mcptest.run.compliance.sessions import ALSO_WHEN_RUDE, ON_THE_TOUR_ONLY, about_the_server
from mcptest.run.compliance.tape import Room, Tape
from mcptest.run.compliance.wire_text import received_text, sent_text
from mcptest.wire.envelope import decode


def server(raw: bytes, stream: int | None = None) -> Frame:
    return Frame(sender="server", raw=raw, stream=stream)


def test_what_is_no_message_is_counted_as_it_comes() -> None:
    tape = Tape("a")
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
    assert tape.stderr == ["small"]


def test_all_tapes_of_a_run_share_their_room() -> None:
    room = Room(1_000)
    first, second = Tape("a", room=room), Tape("a", room=room)
    first(server(b"x" * 700))
    second(server(b"x" * 700))
    assert (first.dropped, second.dropped) == (0, 1)


def test_a_server_that_was_started_over_begins_with_an_empty_tape() -> None:
    tape = Tape("a")
    tape(server(b"no"))
    tape(Exited(code=1))
    assert tape.unusable
    tape.begin_again("sse")
    assert (tape.records, tape.exited, tape.unusable, tape.transport) == ([], None, [], "sse")


def test_a_session_ends_with_its_conversation() -> None:
    tape = Tape("a")
    tape(server(b"{}"))
    tape.end()
    source = tape.as_session("2025-06-18")
    assert [type(record).__name__ for _, record in source.records] == ["Frame", "Closed"]


# -- http ----------------------------------------------------------------------------------------


def posted() -> Tape:
    tape = Tape("a")
    headers = (("Authorization", "Bearer abcdefgh"), ("Host", "h"), ("Origin", "o"))
    tape(HttpRequest(stream=1, method="POST", url="http://h/mcp", headers=headers))
    tape(Frame(sender="client", raw=b'{"id":1}', stream=1))
    tape(HttpResponse(stream=1, status=403, headers=(("Content-Type", "text/plain"),)))
    tape(Trouble(error=ErrorKind.HTTP_STATUS.value, detail="HTTP 403", stream=1, excerpt="go away"))
    tape(StreamEnd(stream=1))
    return tape


def test_an_http_exchange_is_found_by_what_was_sent() -> None:
    tape = posted()
    assert tape.stream_of(b'{"id":1}', 0) == 1
    assert tape.stream_of(b'{"id":1}', 2) is None


def test_an_http_answer_has_status_headers_and_body() -> None:
    assert http_facts(posted(), 1) == {
        "status": 403,
        "headers": {"content-type": "text/plain"},
        "body": "go away",
    }


def test_what_is_shown_of_http_holds_its_headers_but_no_credentials() -> None:
    tape, masker = posted(), Masker(["abcdefgh"])
    sent = sent_text(tape, 1, b'{"id":1}', masker)
    assert sent == b'POST http://h/mcp (Authorization: Bearer ***; Origin: o) {"id":1}'
    assert received_text(tape, 1, (), masker) == b"HTTP 403 (Content-Type: text/plain) go away"


def test_over_a_pipe_the_messages_are_shown() -> None:
    answer = decode(b'{"jsonrpc":"2.0","id":1,"result":{"a":"abcdefgh"}}')
    shown = received_text(Tape("a"), None, (answer,), Masker(["abcdefgh"]))
    assert shown == b'{"jsonrpc":"2.0","id":1,"result":{"a":"***"}}'


def test_what_a_result_asks_for_counts_as_asked() -> None:
    asked = {"method": "roots/list"}
    result = {"resultType": "input_required", "inputRequests": {"one": asked}}
    assert input_requests(result) == (asked,)
    assert input_requests({"inputRequests": {"one": asked}}) == ()
    assert input_requests({"resultType": "input_required", "inputRequests": 7}) == ()


# -- causes --------------------------------------------------------------------------------------


def outcome(name: str, cause: str = "", **more: object) -> RuleResult:
    kept = Outcome.INCONCLUSIVE if cause else Outcome.FAIL
    return RuleResult(name, name, "s", Severity.MUST, kept, cause=cause, **more)  # type: ignore[arg-type]  # as given


def test_a_cause_is_told_once_with_what_it_held_up_and_without_secrets() -> None:
    causes = Causes(Masker(["abcdefgh"]))
    gone = PeerError(ErrorKind.EXITED, "exited, stderr: abcdefgh")
    assert causes.note_error(gone) == "exited"
    assert causes.note_error(PeerError(ErrorKind.EXITED, "again")) == "exited"
    assert causes.note_error(PeerError(ErrorKind.TIMEOUT, "nothing")) == "silence"
    held = causes.counted([outcome("A", "exited"), outcome("B", "exited"), outcome("C")])
    assert [(one.id, one.kept_from_judging) for one in held] == [("exited", 2), ("silence", 0)]
    assert held[0].message == "exited, stderr: ***"
    assert held[0].hint


def test_a_cause_keeps_the_lines_of_what_the_server_said() -> None:
    causes = Causes(Masker())
    causes.note_error(PeerError(ErrorKind.EXITED, "exited\n  stderr: one\x1b\n  stderr: two"))
    (cause,) = causes.counted([])
    assert cause.message == "exited\n  stderr: one\\x1b\n  stderr: two"


# -- sessions ------------------------------------------------------------------------------------


def verdict(*senders: str, observed: int) -> Verdict:
    found = tuple(Finding("wrong", sender=one) for one in senders)
    return Verdict("MSG-001", Outcome.FAIL, "", observed, found, len(found))


@pytest.mark.parametrize(
    ("senders", "of_server", "expected"),
    [
        (("client", "server"), 1, Outcome.FAIL),
        (("client",), 4, Outcome.PASS),
        (("client", "client"), 0, Outcome.NOT_OBSERVED),
    ],
)
def test_what_we_did_ourselves_is_not_held_against_the_server(
    senders: tuple[str, ...], of_server: int, expected: Outcome
) -> None:
    judged = about_the_server(verdict(*senders, observed=5), of_server)
    assert judged.outcome is expected
    assert all(one.sender == "server" for one in judged.findings)


def test_the_rules_with_a_session_of_their_own_exist() -> None:
    known = {rule.id for rule in all_rules()}
    assert known >= ALSO_WHEN_RUDE
    assert known >= ON_THE_TOUR_ONLY
    assert not ALSO_WHEN_RUDE & ON_THE_TOUR_ONLY


def test_a_flood_on_stderr_leaves_room_for_messages() -> None:
    tape = Tape("a", room=Room(400_000))
    for number in range(10_000):
        tape(Stderr(text=f"line {number}"))
    tape(server(b"{}"))
    assert tape.dropped == 0
    assert tape.records[-1] == server(b"{}")
    assert tape.stderr[-1] == "line 9999"
