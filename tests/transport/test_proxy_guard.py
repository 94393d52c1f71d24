"""Where a proxy may listen, and which URLs of a server lead through it."""

from __future__ import annotations

import pytest

from mcptest.core.errors import UsageError
from mcptest.transport.egress import Origin
from mcptest.transport.proxy.exchange_record import listening_address, through_us

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
