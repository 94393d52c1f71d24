"""URLs and the egress guard: what may be connected to, and what is refused at once."""

from __future__ import annotations

import socket
import threading
import time
from typing import Any

import pytest

from mcptest.core.errors import ErrorKind, PeerError, UsageError
from mcptest.core.limits import Deadline
from mcptest.transport import egress
from mcptest.transport.egress import Egress, Origin, parse_url
from mcptest.transport.http.transports import StreamableHttp


@pytest.mark.parametrize(
    ("text", "origin", "target"),
    [
        ("http://a/mcp", Origin("http", "a", 80), "/mcp"),
        ("https://A.Example", Origin("https", "a.example", 443), "/"),
        ("http://a:81/x?y=z#f", Origin("http", "a", 81), "/x?y=z"),
        ("http://[::1]:8000/mcp", Origin("http", "::1", 8000), "/mcp"),
        ("http://a/ż%20", Origin("http", "a", 80), "/%C5%BC%20"),
        ("http://bücher.example/", Origin("http", "xn--bcher-kva.example", 80), "/"),
    ],
)
def test_a_url_is_read_into_origin_and_target(text: str, origin: Origin, target: str) -> None:
    url = parse_url(text)
    assert (url.origin, url.target) == (origin, target)


@pytest.mark.parametrize(
    ("origin", "authority"),
    [
        (Origin("http", "a", 80), "a"),
        (Origin("https", "a", 80), "a:80"),
        (Origin("http", "::1", 8000), "[::1]:8000"),
    ],
)
def test_the_host_header_names_the_port_only_where_it_is_needed(
    origin: Origin, authority: str
) -> None:
    assert origin.authority == authority


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("ftp://a/", "only http and https"),
        ("file:///etc/passwd", "only http and https"),
        ("a/mcp", "only http and https"),
        ("http:///mcp", "no host"),
        ("http://a:99999/", "invalid URL"),
        ("http://a:b/", "invalid URL"),
        ("http://[::1/", "invalid URL"),
        ("http://a/b c", "space or control"),
        ("http://a/\r\nX: y", "space or control"),
        ("http://user:secret@a/", "user name or password"),
    ],
)
def test_a_url_that_can_not_be_used_is_explained(text: str, why: str) -> None:
    with pytest.raises(UsageError, match=why) as caught:
        StreamableHttp(text, sink=lambda record: None)
    assert caught.value.hint
    assert "secret" not in caught.value.message


def resolving_to(monkeypatch: pytest.MonkeyPatch, *addresses: str, port: int = 80) -> None:
    def answer(host: str, port_: int, **_: Any) -> list[Any]:
        return [
            (
                socket.AF_INET6 if ":" in each else socket.AF_INET,
                socket.SOCK_STREAM,
                6,
                "",
                (each, port, 0, 0) if ":" in each else (each, port),
            )
            for each in addresses
        ]

    monkeypatch.setattr(egress.socket, "getaddrinfo", answer)


@pytest.mark.parametrize(
    "address",
    [
        "169.254.169.254",
        "169.254.1.1",
        "fe80::1",
        "::ffff:169.254.169.254",
        "fd00:ec2::254",
        "100.100.100.200",
    ],
)
def test_a_name_that_leads_to_metadata_or_link_local_is_refused(
    monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    resolving_to(monkeypatch, address)
    url = parse_url("http://rebind.example/mcp")
    with pytest.raises(PeerError, match="link-local or metadata") as caught:
        Egress(url.origin).connect(Deadline.after(5))
    assert caught.value.kind is ErrorKind.ADDRESS_REFUSED


def test_a_forbidden_address_beside_a_good_one_is_passed_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        resolving_to(monkeypatch, "169.254.169.254", "127.0.0.1", port=port)
        url = parse_url(f"http://both.example:{port}/")
        guard = Egress(url.origin)
        with guard.connect(Deadline.after(5)) as sock:
            assert sock.getpeername() == ("127.0.0.1", port)


def test_an_address_that_the_user_wrote_is_the_users_decision() -> None:
    url = parse_url("http://169.254.169.254/")
    (address,) = egress.usable_addresses(url.origin, Deadline.after(5))
    assert address.sockaddr == ("169.254.169.254", 80)


def test_a_name_is_resolved_once_and_its_address_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        resolving_to(monkeypatch, "127.0.0.1", port=port)
        url = parse_url(f"http://rebind.example:{port}/")
        guard = Egress(url.origin)
        guard.connect(Deadline.after(5)).close()
        resolving_to(monkeypatch, "169.254.169.254", port=port)
        with guard.connect(Deadline.after(5)) as sock:
            assert sock.getpeername()[0] == "127.0.0.1"


def test_an_address_that_refuses_leaves_the_next_to_try(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        resolving_to(monkeypatch, "127.0.0.2", "127.0.0.1", port=port)
        url = parse_url(f"http://two.example:{port}/")
        with Egress(url.origin).connect(Deadline.after(5)) as sock:
            assert sock.getpeername()[0] == "127.0.0.1"


def test_an_unknown_name_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: Any, **__: Any) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(egress.socket, "getaddrinfo", unknown)
    url = parse_url("http://nowhere.invalid/")
    with pytest.raises(PeerError, match=r"nowhere\.invalid can't be resolved: Name or") as caught:
        Egress(url.origin).connect(Deadline.after(5))
    assert caught.value.kind is ErrorKind.NAME_NOT_FOUND


def test_a_resolver_that_hangs_is_left_at_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    over = threading.Event()
    monkeypatch.setattr(egress.socket, "getaddrinfo", lambda *_, **__: over.wait(600) and [])
    url = parse_url("http://slow.example/")
    started = time.monotonic()
    with pytest.raises(PeerError, match="could not resolve the name") as caught:
        Egress(url.origin).connect(Deadline.after(0.2))
    assert time.monotonic() - started < 300
    assert caught.value.kind is ErrorKind.TIMEOUT
    over.set()
