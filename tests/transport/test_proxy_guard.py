"""Where a proxy may listen, and which URLs of a server lead through it."""

from __future__ import annotations

import pytest

from mcptest.core.errors import UsageError
from mcptest.transport.egress import Origin
from mcptest.transport.proxy.exchange_record import (
    RefusedRequest,
    check_sender,
    listening_address,
    through_us,
)
from mcptest.wire.http1 import RequestHead

SERVER = Origin("http", "127.0.0.1", 8000)


@pytest.mark.parametrize(
    ("words", "address"),
    [
        ("127.0.0.1:0", ("127.0.0.1", 0)),
        ("localhost:8080", ("localhost", 8080)),
        ("[::1]:1", ("::1", 1)),
    ],
)
def test_it_listens_on_this_machine(words: str, address: tuple[str, int]) -> None:
    assert listening_address(words) == address


@pytest.mark.parametrize(
    "words",
    [
        "0.0.0.0:80",
        ":80",
        "8080",
        "[::]:80",
        "127.0.0.1:x",
        "127.0.0.1:65536",
        "example.com:80",
        "",
    ],
)
def test_it_listens_nowhere_else(words: str) -> None:
    with pytest.raises(UsageError, match="--listen"):
        listening_address(words)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://127.0.0.1:8000/messages?a=1", "/messages?a=1"),
        ("http://localhost:8000", "/"),
        ("/messages", "/messages"),
        ("messages?x", "messages?x"),
        ("http://127.0.0.1:8001/messages", "http://127.0.0.1:8001/messages"),
        ("http://other:8000/messages", "http://other:8000/messages"),
        ("http://[bad/", "http://[bad/"),
        ("javascript:alert(1)", "javascript:alert(1)"),
    ],
)
def test_a_url_of_the_server_is_cut_to_its_path(url: str, expected: str) -> None:
    assert through_us(url, SERVER) == expected


def _head(*headers: tuple[str, str]) -> RequestHead:
    return RequestHead("POST", "/mcp", headers, modern=True)


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "localhost", "LocalHost:1", "[::1]:80"])
def test_who_names_this_machine_is_served(host: str) -> None:
    check_sender(_head(("Host", host), ("Origin", f"http://{host}")))


@pytest.mark.parametrize(
    "name",
    [
        "evil.example",
        "user@localhost",
        "user:password@127.0.0.1:8000",
        "localhost:80@evil.example",
        "localhost:password@evil.example",
        "user@[::1]:80",
        "[::1]@evil.example",
        "localhost/@evil.example",
        "",
    ],
)
def test_who_names_another_machine_or_a_user_is_refused(name: str) -> None:
    with pytest.raises(RefusedRequest, match=r"Host .* is not this machine") as of_host:
        check_sender(_head(("Host", name)))
    with pytest.raises(RefusedRequest, match=r"Origin .* is not this machine") as of_origin:
        check_sender(_head(("Host", "localhost"), ("Origin", f"http://{name}")))
    assert (of_host.value.status, of_origin.value.status) == (403, 403)


def test_a_second_origin_is_looked_at_too() -> None:
    two = (("Origin", "http://localhost"), ("Origin", "http://evil.example"))
    with pytest.raises(RefusedRequest, match="evil"):
        check_sender(_head(("Host", "localhost"), *two))
