"""Walking through lists, page by page, to an end."""

from __future__ import annotations

from typing import Any

import pytest

from mcptest.core import limits
from mcptest.core.errors import ErrorKind, PeerError
from mcptest.core.limits import Limits
from mcptest.core.revision import Revision
from mcptest.session.client import Client
from mcptest.session.pages import EndlessPages, distinct, list_items, walk_pages
from tests.support.scripted import Scripted, Sent, VirtualTime, discovered, error, in_turn, result

LIMITS = Limits(pages=5, items=50)


def client_of(clock: VirtualTime, *pages: Any) -> tuple[Client, Scripted]:
    reactions = {"server/discover": discovered(), "tools/list": in_turn(*pages)}
    server = Scripted(clock, reactions)
    client = Client(server, revision=Revision.V2026_07_28, limits=LIMITS)
    return client.connect(), server


def page(*names: str, cursor: Any = ...) -> Any:
    body: dict[str, Any] = {"tools": [{"name": name} for name in names]}
    return result(body if cursor is ... else {**body, "nextCursor": cursor})


def cursors(server: Scripted) -> list[Any]:
    """The cursors as they were sent; `...` where there was none."""
    return [
        sent.message["params"].get("cursor", ...)
        for sent in server.sent
        if sent.method == "tools/list"
    ]


def test_pages_of_any_size_are_walked_until_no_cursor_comes(clock: VirtualTime) -> None:
    client, server = client_of(clock, page("a", "b", cursor="1"), page(cursor="2"), page("c"))
    assert [tool["name"] for tool in client.list_all("tools/list")] == ["a", "b", "c"]
    assert cursors(server) == [..., "1", "2"]


@pytest.mark.parametrize("cursor", ["", " ", "0", "null", "é\n\u202e", "x" * 10_000, "\ud800"])
def test_a_cursor_goes_back_unchanged_whatever_it_holds(clock: VirtualTime, cursor: str) -> None:
    client, server = client_of(clock, page("a", cursor=cursor), page("b"))
    client.list_all("tools/list")
    assert cursors(server) == [..., cursor]


@pytest.mark.parametrize("cursor", [None, 7, False, [], {}])
def test_a_cursor_that_is_no_string_is_the_end(clock: VirtualTime, cursor: Any) -> None:
    client, server = client_of(clock, page("a", cursor=cursor))
    assert len(client.list_all("tools/list")) == 1
    assert cursors(server) == [...]


def test_a_walk_without_an_end_ends_at_the_limit_of_pages(clock: VirtualTime) -> None:
    client, server = client_of(clock, *(page("a", cursor=str(n)) for n in range(9)))
    with pytest.raises(PeerError, match="did not end after 5 pages") as caught:
        client.list_all("tools/list")
    assert caught.value.kind is ErrorKind.PAGES_EXCEEDED
    assert len(cursors(server)) == 5


def test_a_list_of_exactly_the_limit_of_pages_is_walked_whole(clock: VirtualTime) -> None:
    more = [page("a", cursor=str(n)) for n in range(4)]
    client, _ = client_of(clock, *more, page("last"))
    assert len(client.list_all("tools/list")) == 5


def test_a_list_with_too_many_items_is_refused(clock: VirtualTime) -> None:
    client, _ = client_of(clock, page(*map(str, range(51))))
    with pytest.raises(PeerError, match="more than 50 items") as caught:
        client.list_all("tools/list")
    assert caught.value.kind is ErrorKind.PAGES_EXCEEDED


def test_an_error_in_the_middle_ends_the_walk_with_that_page(clock: VirtualTime) -> None:
    client, _ = client_of(clock, page("a", cursor="1"), error(-32602, "Invalid cursor"))
    replies = list(client.pages("tools/list"))
    assert [reply.ok for reply in replies] == [True, False]
    assert replies[-1].error_code == -32602


@pytest.mark.parametrize("tools", [None, 5, {}, "tools", [1, None, "x"]])
def test_items_of_a_wrong_shape_are_no_reason_to_fail(clock: VirtualTime, tools: Any) -> None:
    client, _ = client_of(clock, result({"tools": tools}))
    assert client.list_all("tools/list") == (tools if isinstance(tools, list) else [])


def test_a_reply_is_never_more_than_what_came(clock: VirtualTime) -> None:
    client, _ = client_of(clock, result(7))
    reply = client.request("tools/list")
    assert reply.ok
    assert reply.result == {}
    assert reply.error_code is None


def test_the_methods_of_mcp_send_what_they_are_named_for(clock: VirtualTime) -> None:
    def echo(sent: Sent) -> list[Any]:
        return result({})(sent)

    methods = ("resources/read", "prompts/get", "completion/complete")
    server = Scripted(clock, {"server/discover": discovered(), **dict.fromkeys(methods, echo)})
    client = Client(server, revision=Revision.V2026_07_28).connect()
    client.read_resource("file:///a")
    client.get_prompt("p", {"x": "1"})
    client.get_prompt("q")
    client.complete({"type": "ref/prompt", "name": "p"}, {"name": "x", "value": ""})
    sent = [(each.method, {**each.message["params"]}) for each in server.sent[1:]]
    for _, params in sent:
        del params["_meta"]
    assert sent == [
        ("resources/read", {"uri": "file:///a"}),
        ("prompts/get", {"name": "p", "arguments": {"x": "1"}}),
        ("prompts/get", {"name": "q"}),
        (
            "completion/complete",
            {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "x", "value": ""}},
        ),
    ]


@pytest.mark.parametrize("circle", [("1", "1"), ("1", "2", "1"), ("1", "2", "3", "1")])
def test_a_cursor_that_comes_again_ends_the_walk_at_once(
    clock: VirtualTime, circle: tuple[str, ...]
) -> None:
    client, server = client_of(clock, *(page("a", cursor=one) for one in circle))
    with pytest.raises(EndlessPages, match="sent the cursor '1' again") as caught:
        client.list_all("tools/list")
    assert caught.value.kind is ErrorKind.PAGES_REPEATED
    assert cursors(server) == [..., *circle[:-1]]


def test_a_cursor_that_grows_without_end_is_not_sent_back(clock: VirtualTime) -> None:
    client, server = client_of(clock, page("a", cursor="c"), page("b", cursor="c" * 2_000_000))
    with pytest.raises(EndlessPages, match="a cursor of 2000000 characters"):
        client.list_all("tools/list")
    assert cursors(server) == [..., "c"]


def test_a_walk_that_begins_at_a_cursor_notices_when_it_is_back() -> None:
    answers = iter([{"nextCursor": "b"}, {"nextCursor": "a"}])
    pages = walk_pages(
        "tools/list", lambda _: next(answers), lambda one: one, seconds=60, cursor="a"
    )
    assert next(pages) == {"nextCursor": "b"}
    assert next(pages) == {"nextCursor": "a"}
    with pytest.raises(EndlessPages):
        next(pages)


def test_a_list_without_an_end_keeps_each_item_once() -> None:
    numbers = iter(range(5_000))

    def ask(params: Any) -> Any:
        return {"tools": [{"name": "a"}, {"name": "b"}], "nextCursor": str(next(numbers))}

    listed = list_items("tools/list", "tools", ask, lambda one: one, seconds=60)
    assert listed.items == [{"name": "a"}, {"name": "b"}]
    assert listed.endless == "tools/list did not end after 1000 pages"


def test_a_list_that_ends_is_kept_as_it_came() -> None:
    answers = iter([{"tools": [1, 1], "nextCursor": ""}, {"tools": [1]}])
    listed = list_items("tools/list", "tools", lambda _: next(answers), lambda one: one, seconds=60)
    assert listed.items == [1, 1, 1]
    assert listed.endless == ""


def test_a_list_takes_no_longer_than_its_time_however_quickly_the_pages_come(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = iter(range(1000))
    monkeypatch.setattr(limits.time, "monotonic", lambda: float(next(clock)))
    numbers = iter(range(1000))
    pages = walk_pages(
        "tools/list", lambda _: {"nextCursor": str(next(numbers))}, lambda one: one, seconds=5
    )
    with pytest.raises(EndlessPages, match=r"did not end within 5s, after \d pages"):
        list(pages)


def test_items_with_half_a_surrogate_pair_are_told_apart() -> None:
    half = {"name": "\ud800", "b": 1}
    assert distinct([half, {"name": "x"}, {"b": 1, "name": "\ud800"}]) == [half, {"name": "x"}]
