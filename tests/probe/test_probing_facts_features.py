"""Facts about what servers offer: content, sampling, elicitation, subscriptions, tasks."""

from __future__ import annotations

from typing import Any

import pytest

from mcptest.core.capture import AnyRecord, Frame
from mcptest.probe.compliance.course import Taken, Unobserved
from mcptest.suite.observed import SeenExchange
from tests.support.probe_sightings import answer, came, fact, gave, notice, refused, saw

ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
RELATED = "io.modelcontextprotocol/related-task"


def test_structured_content_is_repeated_by_a_text_with_the_same_json() -> None:
    def repeated(text: Any) -> Any:
        result = {"structuredContent": {"a": 1}, "content": [{"type": "text", "text": text}]}
        return fact("structured_text", "repeated", call=gave(result))

    assert repeated('{ "a": 1.0 }') is True
    assert repeated("a is 1") is False
    assert repeated({"a": 1}) is False
    with pytest.raises(Unobserved):
        fact("structured_text", "repeated", call=gave({"content": []}))


USE = {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "t"}]}
RESULT = {"type": "tool_result", "toolUseId": "1", "content": []}


def sampling(*messages: Any) -> Taken:
    asked = {"method": "sampling/createMessage", "params": {"messages": list(messages)}}
    return Taken(exchange=SeenExchange(asked=(asked, "no request")))


def test_tool_results_stand_alone_and_answer_every_use() -> None:
    good = sampling(USE, {"role": "user", "content": [RESULT]})
    assert fact("sampling_with_tools", "mixed", call=good) == []
    assert fact("sampling_with_tools", "unanswered", call=good) == []


def test_a_mixed_message_and_an_unanswered_use_are_told() -> None:
    text = {"type": "text", "text": "please"}
    mixed = sampling(USE, {"role": "user", "content": [RESULT, text]})
    assert len(fact("sampling_with_tools", "mixed", call=mixed)) == 1
    assert fact("sampling_with_tools", "unanswered", call=sampling(USE)) == ["1"]
    other = sampling(USE, {"role": "user", "content": text})
    assert fact("sampling_with_tools", "unanswered", call=other) == ["1"]
    with pytest.raises(Unobserved):
        fact("sampling_with_tools", "mixed", call=sampling({"role": "user", "content": text}))


def elicited(identifier: str) -> Frame:
    message = {"method": "elicitation/create", "params": {"elicitationId": identifier}}
    return came({"jsonrpc": "2.0", "id": 9, **message})


def test_completions_are_for_elicitations_that_were_given_out() -> None:
    done = notice("notifications/elicitation/complete", {"elicitationId": "a"})
    assert fact("url_elicitation", "unknown_completions", call=saw(elicited("a"), done)) == []
    assert fact("url_elicitation", "unknown_completions", call=saw(elicited("b"), done)) == ["a"]
    with pytest.raises(Unobserved):
        fact("url_elicitation", "unknown_completions", call=saw(elicited("a")))


def test_an_error_that_asks_for_a_url_lists_it_with_its_id() -> None:
    def incomplete(data: Any) -> Any:
        error = {"code": -32042, "message": "go there", "data": data}
        return fact(
            "url_elicitation",
            "incomplete_errors",
            call=saw(came({"jsonrpc": "2.0", "id": 1, "error": error})),
        )

    whole = {"mode": "url", "elicitationId": "a", "url": "https://a", "message": "m"}
    assert incomplete({"elicitations": [whole]}) == []
    assert incomplete({"elicitations": [{**whole, "elicitationId": None}]}) == ["go there"]
    assert incomplete({"elicitations": []}) == ["go there"]
    assert incomplete(None) == ["go there"]
    with pytest.raises(Unobserved):
        fact("url_elicitation", "incomplete_errors", call=saw(answer(1)))


def acknowledgement(name: Any, kinds: Any = None) -> Frame:
    return notice(ACKNOWLEDGED, {"_meta": {SUBSCRIPTION: name}, "notifications": kinds or {}})


def test_subscriptions_are_acknowledged_in_the_type_of_their_id() -> None:
    def acknowledged(*records: AnyRecord) -> Any:
        return fact(
            "listen_with_both_ids",
            "acknowledged",
            {"tools": {"listChanged": True}},
            number=saw(*records, identifier=7002),
            text=saw(*records, identifier="7002"),
        )

    assert acknowledged(acknowledgement(7002), acknowledgement("7002")) == [7002, "7002"]
    assert acknowledged(acknowledgement("7002"), acknowledgement("7002")) == ["7002"]
    assert acknowledged() == []


def test_a_server_without_changes_need_not_know_subscriptions() -> None:
    both = {"number": refused(-32601, identifier=1), "text": refused(-32601, identifier="1")}
    with pytest.raises(Unobserved):
        fact("listen_with_both_ids", "acknowledged", {}, **both)
    declared = {"resources": {"subscribe": True}}
    assert fact("listen_with_both_ids", "acknowledged", declared, **both) == []


def test_the_headers_of_a_stream_are_told() -> None:
    http = {"status": 200, "headers": {"x": "y"}}
    number = Taken(exchange=SeenExchange(http=http))
    assert fact("listen_with_both_ids", "streamed_with", number=number) == {"x": "y"}
    assert fact("listen_with_both_ids", "streamed_with", number=Taken()) == {}


def test_what_is_agreed_to_beyond_what_is_declared_is_told() -> None:
    def beyond(kinds: Any, declared: Any) -> Any:
        taken = saw(acknowledgement(1, kinds))
        return fact("listen_for_everything", "beyond_declared", declared, listen=taken)

    kinds = {"toolsListChanged": True, "promptsListChanged": False, "resourceSubscriptions": []}
    assert beyond(kinds, {"tools": {"listChanged": True}}) == []
    assert beyond(kinds, {"tools": {}}) == ["toolsListChanged"]
    assert beyond({"invented": True}, {}) == ["invented"]
    with pytest.raises(Unobserved):
        fact("listen_for_everything", "beyond_declared", listen=saw())


# -- tasks


def task(status: str, name: str = "t1", **more: Any) -> dict[str, Any]:
    times = {
        "createdAt": "2025-11-25T10:30:00Z",
        "lastUpdatedAt": "2025-11-25T10:30:00.123456+01:00",
    }
    return {"taskId": name, "status": status, "ttl": None, **times, **more}


def lifecycle(*sighted: dict[str, Any]) -> Taken:
    records = [answer(number, one) for number, one in enumerate(sighted)]
    return Taken(exchange=SeenExchange(result={"task": task("working")}), records=records)


def test_task_ids_are_texts_and_differ() -> None:
    first, second = gave({"task": task("working")}), gave({"task": task("working", "t2")})
    assert fact("task_lifecycle", "ids_are_distinct", create=first, second=second) is True
    assert fact("task_lifecycle", "ids_are_distinct", create=first, second=first) is False
    number = gave({"task": {"taskId": 7}})
    assert fact("task_lifecycle", "ids_are_distinct", create=first, second=number) is False


def test_a_task_keeps_to_its_course() -> None:
    good = lifecycle({"task": task("working")}, task("input_required"), task("completed"))
    assert fact("task_lifecycle", "illegal_transitions", create=good) == []


@pytest.mark.parametrize(
    ("sighted", "told"),
    [
        ([task("completed")], "created -> completed"),
        ([task("working"), task("completed"), task("working")], "completed -> working"),
        ([task("working"), task("cancelled"), task("completed")], "cancelled -> completed"),
        ([task("working"), task("paused")], "working -> paused"),
    ],
)
def test_a_change_of_status_that_is_not_allowed_is_told(sighted: Any, told: str) -> None:
    assert fact("task_lifecycle", "illegal_transitions", create=lifecycle(*sighted)) == [told]


def test_times_are_iso_8601_and_a_ttl_is_there() -> None:
    assert fact("task_lifecycle", "bad_times", create=lifecycle(task("working"))) == []
    bad = task("working", createdAt="yesterday", lastUpdatedAt=7)
    del bad["ttl"]
    assert len(fact("task_lifecycle", "bad_times", create=lifecycle(bad))) == 3


def test_a_result_names_its_task() -> None:
    create = gave({"task": task("working")})

    def related(result: Any) -> Any:
        return fact("task_lifecycle", "result_is_related", create=create, result=gave(result))

    assert related({"_meta": {RELATED: {"taskId": "t1"}}}) is True
    assert related({"_meta": {RELATED: {"taskId": "t2"}}}) is False
    assert related({}) is False


def test_a_result_waits_for_the_end_of_its_task() -> None:
    def waited(status: str) -> Any:
        return fact("task_lifecycle", "result_waited", result=gave({}), ended=gave(task(status)))

    assert waited("failed") is True
    assert waited("working") is False
    with pytest.raises(Unobserved):
        fact("task_lifecycle", "result_waited", result=Taken(), ended=gave(task("completed")))


def test_what_can_be_found_is_listed() -> None:
    create, ended = gave({"task": task("working")}), gave(task("completed"))
    declared: dict[str, Any] = {"tasks": {"list": {}}}

    def listed(*tasks: Any) -> Any:
        taken = Taken(lists={"tasks/list": tasks})
        return fact("task_lifecycle", "listed", declared, create=create, ended=ended, list=taken)

    assert listed(task("completed"), "no task") is True
    assert listed(task("completed", "t2")) is False
    with pytest.raises(Unobserved):
        fact("task_lifecycle", "listed", {}, create=create, ended=ended)


def test_a_cancelled_task_stays_cancelled() -> None:
    declared: dict[str, Any] = {"tasks": {"cancel": {}}}

    def for_good(cancel: Taken, later: str) -> Any:
        taken = {"cancel": cancel, "later": gave(task(later))}
        return fact("task_lifecycle", "cancelled_for_good", declared, **taken)

    assert for_good(gave(task("cancelled")), "cancelled") is True
    assert for_good(gave(task("cancelled")), "completed") is False
    assert for_good(gave(task("working")), "cancelled") is False
    assert for_good(refused(-32602), "working") is False
    with pytest.raises(Unobserved):
        for_good(refused(-32602), "completed")
