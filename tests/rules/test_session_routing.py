"""Sessions of one capture are told apart, over every transport: ids, order and state are its own"""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcptest.core.capture import AnyRecord, Exited, HttpRequest, Sse, SseEvent
from mcptest.core.revision import Revision
from mcptest.core.verdict import Outcome
from mcptest.rules import judge as judging
from mcptest.rules.catalogue import all_rules
from mcptest.rules.judge import judge
from tests.rules.captures import (
    answer,
    ask,
    complete,
    event,
    fail,
    flat,
    full,
    got,
    handshake,
    initialize,
    initialized,
    modern,
    posted,
    replied,
)

TOOLS = {"tools": {}}
LISTED = {"tools": []}


def failed(*parts: Any, transport: str, revision: Revision | None = None) -> dict[str, list[int]]:
    """By rule that is broken, the places."""
    judged = judge(full(*parts, transport=transport), all_rules(), revision)
    return {
        one.rule: [finding.record or 0 for finding in one.findings]
        for one in judged.verdicts
        if one.outcome is Outcome.FAIL
    }


class Http:
    """A session over streamable HTTP, exchange by exchange."""

    streams = 0

    def __init__(self, identifier: str | None) -> None:
        self.headers: dict[str, str] = {"mcp-protocol-version": "2025-11-25"}
        self.given = {} if identifier is None else {"mcp-session-id": identifier}

    def exchange(self, asked: Any, answered: Any, sent: Any, came: Any = ()) -> list[AnyRecord]:
        Http.streams += 1
        status = 202 if answered is None else 200
        return [*posted(Http.streams, asked, sent), *replied(Http.streams, answered, status, came)]

    def begin(self) -> list[AnyRecord]:
        first, agreed = initialize(server=TOOLS)
        headers = {**self.headers, **self.given}
        return [
            *self.exchange(first, agreed, {}, self.given),
            *self.exchange(initialized(), None, headers),
        ]

    def call(self, identifier: Any) -> list[AnyRecord]:
        headers = {**self.headers, **self.given}
        return self.exchange(ask(identifier, "tools/list"), answer(identifier, LISTED), headers)

    def listen(self) -> list[AnyRecord]:
        Http.streams += 1
        return [got(Http.streams, {**self.headers, **self.given})]

    def delete(self) -> list[AnyRecord]:
        Http.streams += 1
        headers = tuple({**self.headers, **self.given}.items())
        url = "http://127.0.0.1/mcp"
        request = HttpRequest(stream=Http.streams, method="DELETE", url=url, headers=headers)
        return [request, *replied(Http.streams)]


@pytest.mark.parametrize("revision", [None, Revision.V2025_11_25], ids=str)
@pytest.mark.parametrize("ids", [("s1", "s2"), (None, None)], ids=["with ids", "without"])
def test_a_second_session_over_http_starts_its_ids_again(
    ids: tuple[str | None, str | None], revision: Revision | None
) -> None:
    one, two = map(Http, ids)
    ends = one.delete() if ids[0] is not None else []
    parts = [one.begin(), one.listen(), one.call(1), ends, two.begin(), two.listen(), two.call(1)]
    assert failed(*parts, transport="http", revision=revision) == {}


def test_sessions_over_http_go_on_side_by_side() -> None:
    one, two = Http("s1"), Http("s2")
    parts = [one.begin(), two.begin(), one.call(1), two.call(1), one.call(2), two.call(2)]
    assert failed(*parts, transport="http") == {}


def test_an_id_that_is_used_twice_in_one_session_is_found_among_several() -> None:
    one, two = Http("s1"), Http("s2")
    parts = [one.begin(), two.begin(), one.call(1), two.call(1), one.call(1)]
    places = 1 + sum(1 for _ in flat(parts[:-1]))
    assert failed(*parts, transport="http") == {"MSG-005": [places + 1]}


def test_a_second_session_that_forgets_its_notification_is_found() -> None:
    one, two = Http("s1"), Http("s2")
    hasty = two.begin()[: len(one.begin()) // 2]
    found = failed(one.begin(), one.call(1), hasty, two.call(1), transport="http")
    assert set(found) == {"INV-002"}


def test_a_capture_that_begins_in_the_middle_is_told_apart_by_the_ids() -> None:
    one, two = Http("s1"), Http("s2")
    found = failed(one.call(1), two.call(1), transport="http", revision=Revision.V2025_11_25)
    assert "MSG-005" not in found


def test_the_session_begins_with_initialize_so_the_id_of_a_settled_probe_is_free_again() -> None:
    probe = [*posted(900, modern(1, "server/discover")), *replied(900, fail(1, -32601), 404)]
    first, agreed = initialize(server=TOOLS)
    again = ask(1, "initialize", json.loads(first.raw)["params"])
    agreed = answer(1, json.loads(agreed.raw)["result"])
    begin = [*posted(901, again), *replied(901, agreed)]
    assert failed(probe, begin, transport="http") == {}
    unanswered = posted(900, modern(1, "server/discover"))
    assert "MSG-005" in failed(unanswered, begin, transport="http")


def test_a_server_that_was_started_again_has_a_session_of_its_own() -> None:
    one = [handshake(server=TOOLS), ask(1, "tools/list"), answer(1, LISTED)]
    assert failed(*one, Exited(code=0), *one, transport="stdio") == {}
    assert "MSG-005" in failed(*one, *one, transport="stdio")


def _over_sse(number: int, name: str, *parts: Any) -> list[AnyRecord]:
    """The client's messages are posted, the server's come on the session's event stream."""
    url = f"http://127.0.0.1/messages?session={name}"
    records: list[AnyRecord] = []
    for place, part in enumerate(flat(parts)):
        if part.sender == "client":
            stream = number * 100 + place
            request = HttpRequest(stream=stream, method="POST", url=url)
            body = type(part)(sender="client", raw=part.raw, stream=stream)
            records += [request, body, *replied(stream, status=202)]
        else:
            records.append(event(number, part, f"{name}-{place}"))
    return records


def test_sessions_over_sse_are_told_apart_by_their_endpoint() -> None:
    begun = []
    for number, name in ((1, "a"), (2, "b")):
        endpoint = SseEvent(
            stream=number, sse=Sse(event="endpoint"), data=f"/messages?session={name}"
        )
        begun += [got(number), endpoint]
    shaken = handshake("2024-11-05", server=TOOLS)
    listing = [ask(1, "tools/list"), answer(1, LISTED)]
    parts = [_over_sse(1, "a", shaken), _over_sse(2, "b", shaken)]
    more = [_over_sse(3, "a", listing[0]), _over_sse(4, "b", listing[0])]
    answers = [event(1, listing[1], "a-9"), event(2, listing[1], "b-9")]
    assert failed(begun, parts, more, answers, transport="sse") == {}


def test_requests_of_the_stateless_era_are_told_apart_by_their_streams() -> None:
    headers = {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/list"}
    result = complete(tools=[], ttlMs=0, cacheScope="private")
    both = [posted(one, modern(1, "tools/list"), headers) for one in (1, 2)]
    answers = [replied(one, answer(1, result)) for one in (2, 1)]
    assert failed(both, answers, transport="http") == {}
    lines = [modern(1, "tools/list"), modern(1, "tools/list")]
    assert "MSG-005" in failed(lines, answer(1, result), answer(1, result), transport="stdio")


def test_very_many_sessions_are_followed_in_bounded_memory(monkeypatch: Any) -> None:
    monkeypatch.setattr(judging, "MOST_SESSIONS", 3)
    sessions = [Http(f"s{number}") for number in range(10)]
    parts = [[one.begin(), one.call(1), one.call(2)] for one in sessions]
    assert failed(parts, transport="http") == {}
    judged = judge(full(parts, transport="http"), all_rules())
    assert judged.complete
    assert judged.messages == 10 * 7
    late = judge(full(parts, sessions[0].call(3), transport="http"), all_rules())
    assert not late.complete


def test_an_endpoint_that_is_no_url_is_no_reason_to_fail() -> None:
    session = Http("s1")
    named = SseEvent(stream=1, sse=Sse(event="endpoint"), data="http://[::1")
    failed(session.begin(), named, session.call(1), transport="sse")
