"""HTTPS: verified by default, spoken without blocking, and a failure says what it was."""

from __future__ import annotations

import ssl
import time
from pathlib import Path

import pytest

from mcptest.core.errors import ErrorKind, PeerError
from mcptest.core.limits import Deadline
from mcptest.transport.http.transports import StreamableHttp
from tests.rogues.http_script import (
    PING,
    PONG,
    WAIT,
    Script,
    ScriptedServer,
    Wire,
    always,
    messages,
    reply,
    serving,
    until_end,
)

CERTIFICATE = Path(__file__).parents[1] / "data" / "http_localhost.pem"


def over_tls(script: Script) -> Script:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)

    def wrapped(wire: Wire) -> None:
        try:
            wire.sock = context.wrap_socket(wire.sock, server_side=True)
        except ssl.SSLError as error:
            raise ConnectionError(str(error)) from None  # the client did not like us
        with wire.sock:
            script(wire)

    return wrapped


def https(server: ScriptedServer) -> StreamableHttp:
    return StreamableHttp(f"https://127.0.0.1:{server.port}/mcp", sink=lambda record: None)


@pytest.fixture
def _trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))


@pytest.mark.usefixtures("_trusted")
def test_many_calls_pass_over_tls_at_once() -> None:
    body = b'"' + b"x" * 100_000 + b'"'
    with serving(over_tls(always(reply(body)))) as server:
        transport = https(server)
        transport.open(Deadline.after(WAIT))
        streams = [transport.send(PING, Deadline.after(WAIT)) for _ in range(10)]
        seen: list[bytes] = []
        while len(seen) < len(streams):
            came = transport.receive(Deadline.after(WAIT))
            assert came
            seen += messages(came)
        assert seen == [body] * 10
        stream = transport.send(b"y" * 3_000_000, Deadline.after(WAIT))
        assert messages(until_end(transport, stream)) == [body]
        transport.close(Deadline.after(WAIT))


@pytest.mark.parametrize(
    ("script", "why"),
    [
        (over_tls(always(reply(PONG))), "self-signed certificate"),
        (lambda wire: wire.send(b"HTTP/1.1 400 Bad Request\r\n\r\n"), "TLS failed: "),
    ],
    ids=["untrusted certificate", "plain HTTP"],
)
def test_a_server_that_can_not_be_verified_is_refused(script: Script, why: str) -> None:
    with serving(script) as server:
        transport = https(server)
        with pytest.raises(PeerError) as caught:
            transport.open(Deadline.after(WAIT))
        transport.close(Deadline.after(WAIT))
    assert caught.value.kind is ErrorKind.TLS
    assert why in caught.value.message
    assert "check that the server uses TLS" in caught.value.hint


def test_a_handshake_that_never_comes_ends_with_the_deadline() -> None:
    started = time.monotonic()
    with serving(Wire.wait_for_hang_up) as server:
        transport = https(server)
        with pytest.raises(PeerError, match="did not complete within") as caught:
            transport.open(Deadline.after(0.3))
        transport.close(Deadline.after(WAIT))
    assert caught.value.kind is ErrorKind.TIMEOUT
    assert time.monotonic() - started < WAIT
