"""Facts about messages, connections, lists and HTTP: one that holds, one that does not, none."""

from __future__ import annotations

from typing import Any

import pytest

from mcptest.core.capture import AnyRecord, Exited, Frame, HttpResponse, Sse, SseEvent, StreamEnd
from mcptest.probe.compliance.course import Taken, Unobserved
from mcptest.probe.compliance.observed_facts import FACTS, unasked_answer
from mcptest.rules.corpus.probes import all_probes
from mcptest.suite.observed import SeenExchange
from mcptest.wire.json_text import write_json
from tests.support.probe_sightings import (
    answer,
    came,
    events,
    fact,
    gave,
    listing,
    notice,
    refused,
    request,
    saw,
)


def test_every_fact_that_a_probe_declares_is_worked_out_and_no_other() -> None:
    declared = {(probe.name, fact) for probe in all_probes().values() for fact in probe.facts}
    assert set(FACTS) == declared


# -- versions, names, ids


def offers(unknown: Any, *accepted: str) -> dict[str, Taken]:
    versions = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
    answers = {
        f"v{one.replace('-', '_')}": gave({"protocolVersion": one if one in accepted else "x"})
        for one in versions
    }
    return {"unknown": gave({"protocolVersion": unknown}), **answers}


def test_the_counter_offer_is_compared_with_the_newest_accepted_version() -> None:
    taken = offers("2025-06-18", "2024-11-05", "2025-06-18")
    assert fact("offer_versions", "accepted", **taken) == ["2024-11-05", "2025-06-18"]
    assert fact("offer_versions", "newest_accepted", **taken) == "2025-06-18"
    assert fact("offer_versions", "counter_offer", **taken) == "2025-06-18"
    assert fact("offer_versions", "counter_offer_is_newest", **taken) is True


@pytest.mark.parametrize("offered", ["2024-11-05", "1999-01-01", None, {}])
def test_any_other_counter_offer_is_not_the_newest(offered: Any) -> None:
    taken = offers(offered, "2024-11-05", "2025-06-18")
    assert fact("offer_versions", "counter_offer_is_newest", **taken) is False


def test_nothing_is_the_newest_where_nothing_was_accepted() -> None:
    assert fact("offer_versions", "counter_offer_is_newest", **offers(None)) is False


def test_what_differs_by_name_is_told_and_what_changes_by_itself_is_not() -> None:
    taken = {
        "ours": gave({"a": 1, "b": 1, "_meta": {"x": 1}}),
        "other": gave({"a": 2, "b": 2, "_meta": {"x": 2}}),
        "again": gave({"a": 1, "b": 3}),
    }
    assert fact("another_client_name", "differing", **taken) == ["a"]


def test_a_refusal_under_another_name_differs() -> None:
    taken = {"ours": gave({}), "other": refused(-32600), "again": gave({})}
    assert fact("another_client_name", "differing", **taken) == ["error"]


def test_ids_that_come_back_in_another_type_differ() -> None:
    records = (answer("7001"), answer("a"), answer(9_007_199_254_740_991.0))
    taken = {
        "number": Taken(records=records, identifier=7001),
        "large": Taken(records=records, identifier=9_007_199_254_740_991),
        "text": Taken(records=records, identifier="a"),
        "digits": Taken(records=records, identifier="7001"),
    }
    assert fact("ids_of_all_kinds", "differing", **taken) == [7001]
    never_sent = {**taken, "digits": Taken(records=records)}
    assert fact("ids_of_all_kinds", "differing", **never_sent) == [7001]


def test_ids_are_not_judged_by_a_server_that_answers_nothing() -> None:
    with pytest.raises(Unobserved):
        fact("ids_of_all_kinds", "differing", number=saw(identifier=7001))


def test_an_id_that_nothing_answers_did_not_come_back_as_another() -> None:
    asked = [write_json({"jsonrpc": "2.0", "id": one, "method": "ping"}) for one in (7001, "a")]
    records = (*(Frame(t=0.0, sender="client", raw=one) for one in asked), answer("a"))
    silent = Taken(records=records, identifier=7001)
    with pytest.raises(Unobserved, match="did not answer some of the requests"):
        fact(
            "ids_of_all_kinds",
            "differing",
            number=silent,
            text=Taken(records=records, identifier="a"),
        )


def test_answers_of_a_batch_are_counted_also_inside_of_an_array() -> None:
    whole = came([{"jsonrpc": "2.0", "id": one, "result": {}} for one in ("b1", "b2")])
    assert fact("batch_of_two", "answered", batch=saw(whole)) == 2
    assert fact("batch_of_two", "answered", batch=saw(answer("b1"))) == 1
    error = came({"jsonrpc": "2.0", "id": "b1", "error": {"code": -32600, "message": ""}})
    assert fact("batch_of_two", "answered", batch=saw(error)) == 0


# -- ends and cancellations


@pytest.mark.parametrize(("after", "left"), [("stdin-closed", True), ("terminate", False)])
def test_a_process_left_by_itself_only_if_nothing_else_made_it(after: str, left: bool) -> None:
    assert fact("close_stdin", "exited", close=saw(Exited(code=0, after=after))) is left


def test_a_process_that_was_gone_before_says_nothing_about_its_stdin() -> None:
    with pytest.raises(Unobserved):
        fact("close_stdin", "exited", close=saw(Exited(code=1)))


DONE = SeenExchange(result={})


def cancelled(*records: AnyRecord, fence: SeenExchange = DONE) -> dict[str, Taken]:
    return {
        "call": Taken(records=records, identifier="slow"),
        "after": Taken(records=records, identifier=2),
        "fence": Taken(exchange=fence, records=records, identifier=3),
    }


def test_what_comes_for_a_cancelled_call_counts_once_the_server_knows() -> None:
    progress = notice("notifications/progress", {"progressToken": "mcptest-slow"})
    taken = cancelled(progress, answer(2), progress, answer("slow"), answer(3))
    assert fact("cancel_slow_call", "after_cancellation", **taken) == 2
    assert fact("cancel_slow_call", "after_cancellation", **cancelled(progress, answer(2))) == 0


def test_silence_after_a_cancellation_counts_only_when_time_went_by() -> None:
    taken = cancelled(answer(2), fence=SeenExchange())
    with pytest.raises(Unobserved, match="did not end"):
        fact("cancel_slow_call", "after_cancellation", **taken)


def test_a_call_that_ended_before_says_nothing_about_cancellation() -> None:
    with pytest.raises(Unobserved):
        fact("cancel_slow_call", "after_cancellation", **cancelled(answer("slow"), answer(2)))


def test_an_answer_to_nothing_that_was_asked_is_found() -> None:
    error = {"jsonrpc": "2.0", "id": None, "error": {"code": -32601, "message": ""}}
    assert unasked_answer(saw(request(1), came(error), answer(1))) is not None
    assert unasked_answer(saw(request(1), answer(1))) is None
    assert unasked_answer(saw(came(error), begins=1)) is None


def test_a_refused_post_is_no_answer_to_its_notification() -> None:
    error = {"jsonrpc": "2.0", "error": {"code": -32601, "message": ""}}
    refusal = HttpResponse(stream=4, status=400)
    assert unasked_answer(saw(refusal, came(error, 4))) is None
    assert unasked_answer(saw(HttpResponse(stream=4, status=200), came(error, 4))) is not None


# -- lists


def test_lists_differ_by_their_names_not_by_their_order() -> None:
    def differing(second: Taken) -> Any:
        return fact("lists_on_two_connections", "differing", first=listing("a", "b"), second=second)

    assert differing(listing("b", "a")) == []
    assert differing(listing("a", "c")) == ["tools/list"]
    assert differing(Taken()) == ["tools/list"]


def test_order_is_compared_among_the_tools_that_are_in_both_lists() -> None:
    def same(first: Taken, second: Taken) -> Any:
        return fact("list_tools_twice", "same_order", first=first, second=second)

    assert same(listing("a", "b", "c"), listing("a", "c")) is True
    assert same(listing("a", "b"), listing("b", "a")) is False
    with pytest.raises(Unobserved):
        same(listing("a"), listing("a"))


def test_a_page_is_the_same_when_its_names_are() -> None:
    def same(second: Taken) -> Any:
        first = gave({"tools": [{"name": "a"}]})
        return fact("cursor_twice", "same_items", first=first, second=second)

    assert same(gave({"tools": [{"name": "a"}], "nextCursor": "x"})) is True
    assert same(gave({"tools": []})) is False
    assert same(refused(-32602)) is False
    assert same(gave({"tools": "none"})) is False


@pytest.mark.parametrize("what", ["tools", "prompts"])
def test_a_change_that_nobody_is_told_of_is_no_announcement(what: str) -> None:
    method = f"{what}/list"

    def announced(later: Taken, *records: AnyRecord) -> Any:
        before = listing("a", method=method)
        return fact(
            f"change_of_{what}", "announced", before=before, change=saw(*records), later=later
        )

    assert announced(Taken(), notice(f"notifications/{what}/list_changed")) is True
    assert announced(listing("a", "b", method=method), notice("notifications/other")) is False
    with pytest.raises(Unobserved):
        announced(listing("a", method=method))


def test_annotations_are_searched_for_problems() -> None:
    def tool(header: Any) -> Taken:
        schema = {"type": "object", "properties": {"a": {"type": "string", "x-mcp-header": header}}}
        return Taken(lists={"tools/list": [{"name": "t", "inputSchema": schema}, "no tool"]})

    assert fact("header_annotations", "problems", lists=tool("A")) == []
    assert len(fact("header_annotations", "problems", lists=tool(""))) == 1
    with pytest.raises(Unobserved):
        fact("header_annotations", "problems", lists=listing("a"))


# -- HTTP


def test_a_stream_has_to_end_after_the_response() -> None:
    ended = StreamEnd(stream=1)
    whole = saw(*events(answer(1, stream=1), ended))
    assert fact("streamed_answer", "ended", ask=whole) is True
    assert fact("streamed_answer", "ended", ask=saw(*events(answer(1, stream=1)))) is False
    cut = StreamEnd(stream=1, complete=False)
    assert fact("streamed_answer", "ended", ask=saw(*events(answer(1, stream=1), cut))) is False


def test_a_stream_is_primed_by_an_event_with_an_id_and_no_data() -> None:
    primed = SseEvent(stream=1, sse=Sse(id="1"))
    other = SseEvent(stream=1, sse=Sse(id="1"), data="x")
    comment = SseEvent(stream=1, comment="hello")
    message = answer(1, stream=1)
    assert fact("streamed_answer", "primed", ask=saw(*events(comment, primed, message))) is True
    assert fact("streamed_answer", "primed", ask=saw(*events(message, primed))) is False
    assert fact("streamed_answer", "primed", ask=saw(*events(other, message))) is False


def test_an_answer_as_json_is_no_stream_and_the_next_step_is_looked_at() -> None:
    as_json = saw(*events(answer(1, stream=1), kind="application/json"))
    with pytest.raises(Unobserved):
        fact("streamed_answer", "ended", ask=as_json)
    streamed = saw(*events(answer(1, stream=1), StreamEnd(stream=1)))
    assert fact("streamed_answer", "ended", ask=as_json, call=streamed) is True


def test_a_stream_that_is_closed_early_needs_a_retry_field() -> None:
    retry = SseEvent(stream=1, sse=Sse(retry=20))
    ended = StreamEnd(stream=1)
    assert fact("reconnection", "retry_given", call=saw(*events(retry, ended))) is True
    assert fact("reconnection", "retry_given", call=saw(*events(ended))) is False
    with pytest.raises(Unobserved):
        fact("reconnection", "retry_given", call=saw(*events(answer(1, stream=1), ended)))


def test_other_events_are_named_once() -> None:
    news = SseEvent(stream=1, sse=Sse(event="news"))
    endpoint = SseEvent(stream=1, sse=Sse(event="endpoint"), data="/x")
    assert fact("events_by_name", "other_events", after=saw(endpoint, news, news)) == ["news"]
    assert fact("events_by_name", "other_events", after=saw(endpoint)) == []


def test_session_ids_have_to_differ() -> None:
    def begun(*headers: tuple[str, str]) -> Taken:
        return saw(HttpResponse(stream=1, status=200, headers=headers))

    one, two = begun(("Mcp-Session-Id", "1")), begun(("mcp-session-id", "2"))
    assert fact("two_sessions", "distinct", first=one, second=two) is True
    assert fact("two_sessions", "distinct", first=one, second=one) is False
    with pytest.raises(Unobserved):
        fact("two_sessions", "distinct", first=one, second=begun())


def test_log_messages_belong_on_the_stream_that_asked() -> None:
    def log(stream: int) -> Frame:
        return notice("notifications/message", {"level": "info"}, stream)

    def silent(*records: AnyRecord) -> Any:
        whole = (request("loud", 1), request("silent", 2), *records)
        return fact(
            "logging_beside_silence",
            "on_the_silent_stream",
            loud=Taken(records=whole, identifier="loud"),
            silent=Taken(records=whole, identifier="silent"),
        )

    assert silent(log(1)) == []
    assert silent(log(1), log(2)) == ["info"]
    with pytest.raises(Unobserved):
        silent(log(2))


def test_a_challenge_and_its_document_are_read() -> None:
    value = 'Bearer realm="a \\"b\\"", scope="read write", resource_metadata="http://x/y"'
    challenge = saw(HttpResponse(stream=1, status=401, headers=(("WWW-Authenticate", value),)))
    document = {"authorization_servers": ["https://a"], "scopes_supported": ["write", "admin", 7]}
    taken = {"challenge": challenge, "metadata": Taken(document=document)}
    probe = "protected_resource_metadata"
    assert fact(probe, "found", **taken) is True
    assert fact(probe, "named_in_challenge", **taken) is True
    assert fact(probe, "authorization_servers", **taken) == ["https://a"]
    assert fact(probe, "offered_scopes", **taken) == ["read", "write", "admin"]


def test_a_challenge_that_names_nothing_and_no_document_are_no_metadata() -> None:
    bare = saw(HttpResponse(stream=1, status=401, headers=(("WWW-Authenticate", "Bearer"),)))
    taken = {"challenge": bare, "metadata": Taken()}
    probe = "protected_resource_metadata"
    assert fact(probe, "found", **taken) is False
    assert fact(probe, "named_in_challenge", **taken) is False
    assert fact(probe, "authorization_servers", **taken) == []
