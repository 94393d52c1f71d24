"""The tape of a conversation, causes that are told once, and verdicts over many sessions."""

from __future__ import annotations

import pytest

from mcptest.core.capture import Frame, HttpRequest, HttpResponse, StreamEnd, Trouble
from mcptest.core.errors import ErrorKind, PeerError
from mcptest.core.judgement import RuleResult
from mcptest.core.masking import Masker
from mcptest.core.message import ABSENT, Flaw, Message
from mcptest.core.verdict import Finding, Outcome, Severity, Verdict
from mcptest.probe.compliance.conversation import (
    http_facts,
    input_requests,
    received_text,
    sent_text,
)
from mcptest.probe.compliance.questions import Causes
from mcptest.probe.compliance.rule_results import about_the_server
from mcptest.probe.compliance.site import LargeAnswers
from mcptest.session.tape import Room, Tape
from mcptest.wire.envelope import decode
from mcptest.wire.json_text import write_json


def server(raw: bytes, stream: int | None = None) -> Frame:
    return Frame(sender="server", raw=raw, stream=stream)


# -- http ----------------------------------------------------------------------------------------


def posted() -> Tape:
    tape = Tape("a", room=Room())
    headers = (("Authorization", "Bearer abcdefgh"), ("Host", "h"), ("Origin", "o"))
    tape(HttpRequest(stream=1, method="POST", url="http://h/mcp", headers=headers))
    tape(Frame(sender="client", raw=b'{"id":1}', stream=1))
    tape(HttpResponse(stream=1, status=403, headers=(("Content-Type", "text/plain"),)))
    tape(Trouble(error=ErrorKind.HTTP_STATUS.value, detail="HTTP 403", stream=1, excerpt="go away"))
    tape(StreamEnd(stream=1))
    return tape


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
    shown = received_text(Tape("a", room=Room()), None, (answer,), Masker(["abcdefgh"]))
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


def test_the_end_of_a_long_traceback_is_kept_in_the_cause() -> None:
    causes = Causes(Masker(()))
    lines = "".join(f"\n  stderr:   line {number}, in somewhere" for number in range(40))
    causes.note_error(PeerError(ErrorKind.EXITED, f"exited{lines}\n  stderr: ValueError: no"))
    (cause,) = causes.counted(())
    assert cause.message.startswith("exited\n  stderr:   line ")
    assert cause.message.endswith("line 39, in somewhere\n  stderr: ValueError: no")
    assert len(cause.message) <= 600


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


def test_of_large_answers_an_excerpt_is_kept_and_the_same_one_only_once() -> None:
    kept = LargeAnswers().kept
    tools = [{"name": f"tool-{number}", "description": "words"} for number in range(30_000)]
    result = {"tools": tools, "instructions": "do " * 100_000}
    raws = [write_json({"jsonrpc": "2.0", "id": number, "result": result}) for number in (1, 2)]
    first, second = (kept(decode(raw)) for raw in raws)
    assert (first.id, second.id) == (1, 2)
    assert first.result is second.result
    assert first.result["tools"] == tools
    assert len(first.result["instructions"]) < 100_000
    assert len(first.raw) < len(raws[0])


def test_small_answers_are_kept_as_they_are() -> None:
    answer = decode(b'{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}')
    assert LargeAnswers().kept(answer) is answer


def answer_with(number: int, **members: object) -> Message:
    return decode(write_json({"jsonrpc": "2.0", "id": number, "result": members}))


def test_large_answers_that_differ_in_little_share_the_rest() -> None:
    kept = LargeAnswers().kept
    declared = {f"capability {number}": {"listChanged": True} for number in range(40_000)}
    first = kept(answer_with(1, protocolVersion="a", capabilities=declared))
    second = kept(answer_with(2, protocolVersion="b", capabilities=declared))
    assert first.result["capabilities"] is second.result["capabilities"]
    assert (first.result["protocolVersion"], second.result["protocolVersion"]) == ("a", "b")


def test_what_is_sent_back_to_a_server_is_never_cut() -> None:
    cursor = "c" * 2_000_000
    assert LargeAnswers().kept(answer_with(1, tools=[], nextCursor=cursor)).result == {
        "tools": [],
        "nextCursor": cursor,
    }


def test_of_large_answers_that_all_differ_as_many_are_kept_as_there_is_room_for() -> None:
    kept = LargeAnswers().kept
    answers = [
        kept(answer_with(one, _meta={f"{one}/{number}": number for number in range(80_000)}))
        for one in (1, 2, 3)
    ]
    assert answers[0].result["_meta"]["1/7"] == 7
    assert answers[2].result is ABSENT
    assert answers[2].id == 3
    assert [problem.flaw for problem in answers[2].problems] == [Flaw.TOO_MANY_VALUES]
