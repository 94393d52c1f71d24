"""The small parts of the demo: versions, options, lines, headers, timers, JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcptest.core.revision import HANDSHAKE_REVISIONS, TIMELINE, Revision
from mcptest.servers.demo import stdio_server, versions
from mcptest.servers.demo.http_server import decode_header
from mcptest.servers.demo.jsonrpc import MAX_MESSAGE_BYTES, Refusal, encode, read_text
from mcptest.servers.demo.start_options import BadOption, Options, parse_options
from mcptest.servers.demo.stdio_server import StdioPipes
from mcptest.servers.http_connection import Rejected, Request, check_accept, check_sender
from mcptest.transport.loop import Loop
from mcptest.wire.http1 import RequestHead


def test_the_demo_knows_the_same_revisions_as_the_model() -> None:
    dated = [revision.value for revision in TIMELINE if revision is not Revision.DRAFT]
    assert list(versions.ALL) == dated
    assert list(versions.HANDSHAKE) == [revision.value for revision in HANDSHAKE_REVISIONS]


COSTLY = {
    *("argparse", "asyncio", "dataclasses", "hashlib", "hmac", "inspect", "logging", "pathlib"),
    *("subprocess", "tempfile", "threading", "typing"),
}
"""Each of these modules would cost milliseconds at every start."""


@pytest.mark.parametrize(
    ("server", "costly"), [("stdio_server", COSTLY | {"http", "socket"}), ("http_server", COSTLY)]
)
def test_the_demo_starts_with_little_of_the_standard_library_only(
    server: str, costly: set[str]
) -> None:
    code = (
        f"import sys; before = set(sys.modules); import mcptest.servers.demo.{server};"
        "print(*sorted({name.partition('.')[0] for name in set(sys.modules) - before}))"
    )
    command = [sys.executable, "-S", "-c", code]
    env = {"PYTHONPATH": ":".join(path for path in sys.path if path)}
    output = subprocess.run(command, capture_output=True, text=True, check=True, env=env).stdout
    loaded = set(output.split()) - {"mcptest"}
    assert loaded <= set(sys.stdlib_module_names)
    assert not loaded & costly


def test_options_are_read_in_both_forms() -> None:
    options = parse_options(["--port=8080", "--transport", "http", "--spec-version", "v2025-06-18"])
    assert (options.port, options.transport) == (8080, "http")
    assert options.spoken == ("2025-06-18",)
    assert options.stateless == ()


@pytest.mark.parametrize(
    ("arguments", "spoken"),
    [
        ([], versions.ALL),
        (["--era", "handshake"], versions.HANDSHAKE),
        (["--era", "stateless"], versions.STATELESS),
        (["--spec-version", "draft"], versions.STATELESS),
        (["--spec-version", "auto"], versions.ALL),
    ],
)
def test_revisions_are_chosen_by_era_and_name(arguments: list[str], spoken: tuple[str]) -> None:
    assert parse_options(arguments).spoken == spoken


@pytest.mark.parametrize(
    "arguments",
    [
        ["--port"],
        ["--port", "x"],
        ["--port", "65536"],
        ["--port", "-1"],
        ["--era", "old"],
        ["--page-size", "0"],
        ["--root", "/no/such/folder"],
        ["--spec-version", "2025-06-17"],
        ["--spec-version", "2025-06-18", "--era", "stateless"],
        ["--nope", "1"],
        ["demo"],
    ],
)
def test_a_bad_option_is_refused_with_its_name(arguments: list[str]) -> None:
    with pytest.raises(BadOption):
        parse_options(arguments)


def lines_read(*pieces: bytes) -> list[bytes | None]:
    """What is taken from standard input that comes in these pieces; blank lines are no matter."""
    found: list[bytes | None] = []
    reader, writer = os.pipe()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stdio_server, "STDIN", reader)
        entry = StdioPipes(Loop(), found.append)
        for piece in filter(None, pieces):
            os.write(writer, piece)
            entry._readable(0)
        os.close(writer)
        entry._readable(0)
    os.close(reader)
    assert entry.ended
    return [line for line in found if line is None or line.strip()]


@settings(deadline=None)
@given(st.binary(max_size=200), st.lists(st.integers(0, 200), max_size=5))
def test_lines_do_not_depend_on_how_they_come(data: bytes, cuts: list[int]) -> None:
    places = [0, *sorted(cut for cut in cuts if cut < len(data)), len(data)]
    found = lines_read(*(data[start:end] for start, end in pairwise(places)))
    assert found == [line for line in data.split(b"\n") if line.strip()]


def test_a_line_that_is_too_long_is_skipped_and_told_once() -> None:
    long = [b"x" * 1024] * (MAX_MESSAGE_BYTES // 1024 + 10)
    assert lines_read(*long, b"\nnext\n") == [None, b"next"]
    assert lines_read(*long) == [None]


@settings(deadline=None)
@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists))
def test_what_can_be_read_can_be_written(value: Any) -> None:
    for ascii_only in (True, False):
        text = json.dumps(value, ensure_ascii=ascii_only).encode(errors="surrogatepass")
        try:
            read = read_text(text)
        except Refusal:
            continue  # a lone surrogate
        assert json.loads(encode(read)) == read


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("plain", "plain"),
        ("", ""),
        ("=?base64?WsO8cmljaA==?=", "Zürich"),
        ("=?base64??=", ""),
        ("=?base64?", "=?base64?"),
        ("=?BASE64?WA==?=", "=?BASE64?WA==?="),
    ],
)
def test_a_header_is_decoded(given: str, meant: str) -> None:
    assert decode_header("Mcp-Name", given) == meant


@pytest.mark.parametrize(
    "given", ["=?base64?!?=", "=?base64?/w==?=", "=?base64?WA?=", "é", "a\x7f"]
)
def test_a_header_that_can_not_be_decoded_is_refused(given: str) -> None:
    with pytest.raises(Refusal):
        decode_header("Mcp-Name", given)


@pytest.mark.parametrize(
    ("bound_to", "host", "allowed"),
    [
        ("127.0.0.1", "localhost:1", True),
        ("127.0.0.1", "[::1]:1", True),
        ("127.0.0.1", "10.0.0.1", False),
        ("demo.local", "demo.local:80", True),
        ("0.0.0.0", "10.0.0.1:80", True),
        ("0.0.0.0", "evil.example", False),
        ("0.0.0.0", "user@10.0.0.1", False),
        ("127.0.0.1", "user@localhost", False),
        ("127.0.0.1", "localhost:80@evil.example", False),
        ("::", "[fe80::1]", True),
    ],
)
def test_only_known_hosts_are_served(bound_to: str, host: str, allowed: bool) -> None:
    request = Request(RequestHead("GET", "/mcp", (("Host", host),), modern=True))
    if allowed:
        check_sender(request, bound_to)
    else:
        with pytest.raises(Rejected):
            check_sender(request, bound_to)


@pytest.mark.parametrize(
    ("accept", "allowed"),
    [
        ("application/json, text/event-stream", True),
        ("TEXT/EVENT-STREAM;q=0.5 , application/*", True),
        ("*/*", True),
        ("application/json", False),
        ("", False),
    ],
)
def test_both_kinds_of_answers_must_be_accepted(accept: str, allowed: bool) -> None:
    request = Request(RequestHead("POST", "/mcp", (("Accept", accept),), modern=True))
    if allowed:
        check_accept(request, "application/json", "text/event-stream")
    else:
        with pytest.raises(Rejected):
            check_accept(request, "application/json", "text/event-stream")


def test_timers_run_in_order_and_cancelled_ones_do_not() -> None:
    loop = Loop()
    ran: list[str] = []
    loop.after(0.02, loop.stop)
    loop.after(0.01, lambda: ran.append("second"))
    loop.after(0.0, lambda: ran.append("first"))
    loop.after(0.005, lambda: ran.append("never")).cancel()
    loop.run()
    assert ran == ["first", "second"]


def test_the_defaults_are_those_of_the_help() -> None:
    options = Options()
    assert (options.host, options.port, options.page_size) == ("127.0.0.1", 0, 10)
