"""The stateless era over HTTP: one POST is one request, and its headers repeat what it says."""

from __future__ import annotations

from mcptest.peer.demo.exchange import Exchange
from mcptest.peer.demo.protocol import (
    HEADER_MISMATCH,
    INTERNAL_ERROR,
    METHOD_NOT_FOUND,
    Refusal,
    encode,
)
from mcptest.peer.demo.stateless import VERSION, is_stateless, serve

TYPE_CHECKING = False  # see protocol
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from mcptest.peer.demo.http_connection import HttpConnection
    from mcptest.peer.demo.http_requests import Request
    from mcptest.peer.demo.protocol import Obj
    from mcptest.peer.demo.world import World

VERSION_HEADER = "mcp-protocol-version"
_NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_STATUS = {METHOD_NOT_FOUND: 404, INTERNAL_ERROR: 500}


class StatelessPost(Exchange):
    """One POST. It is answered with JSON, or with a stream once there is more than an answer."""

    __slots__ = ("_connection", "_mode", "_streaming")

    def __init__(self, identifier: Any, connection: HttpConnection, mode: str) -> None:
        super().__init__(identifier, {})
        self._connection = connection
        self._mode = mode
        self._streaming = False
        connection.on_gone = self.cancel  # closing the stream is how this era cancels

    @property
    def can_notify(self) -> bool:  # type: ignore[override]  # decided when the server starts
        return self._mode != "json"

    def send(self, message: Obj) -> None:
        if not self._streaming:
            self._streaming = True
            self._connection.start_stream({})
        self._connection.stream(b"event: message\ndata: %b\n\n" % encode(message))

    def deliver(self, message: Obj | list[Obj]) -> None:
        assert isinstance(message, dict), "this era has no batches"
        if self._streaming or (self._mode == "sse" and "result" in message):
            self.send(message)
            self._connection.end_stream()
            return
        status = 200
        if "error" in message:
            status = _STATUS.get(message["error"]["code"], 400)
        self._connection.respond(status, encode(message))

    def drop(self) -> None:
        self._connection.close()


def serve_post(message: Obj, request: Request, connection: HttpConnection, world: World) -> None:
    """Serve one request of this era, if its headers agree with it."""
    exchange = StatelessPost(message["id"], connection, world.options.response)
    try:
        if message["method"] != "initialize" or is_stateless(message):
            check_headers(message, request, world)
    except Refusal as refusal:
        exchange.refuse(refusal)
    else:
        serve(message, world, exchange)


def check_headers(message: Obj, request: Request, world: World) -> None:
    """Each header says what the body says. Raises Refusal."""
    params = message.get("params", {})
    meta = params.get("_meta")
    if isinstance(meta, dict) and isinstance(meta.get(VERSION), str):
        _compare("MCP-Protocol-Version", request, meta[VERSION])
    _compare("Mcp-Method", request, message["method"])
    named_by = _NAMED_BY.get(message["method"])
    if named_by is not None and isinstance(params.get(named_by), str):
        _compare("Mcp-Name", request, params[named_by])
    if message["method"] == "tools/call" and isinstance(params.get("arguments", {}), dict):
        for header, name in _param_headers(params.get("name"), world):
            _compare_param(header, request, params.get("arguments", {}).get(name))


def _compare(header: str, request: Request, expected: str) -> None:
    given = request.header(header.lower())
    if given is None:
        raise Refusal(HEADER_MISMATCH, f"Header mismatch: {header} is missing")
    if decode_header(header, given) != expected:
        raise Refusal(HEADER_MISMATCH, f"Header mismatch: {header} differs from the body")


def _compare_param(header: str, request: Request, value: Any) -> None:
    given = request.header(header.lower())
    if value is None:
        if given is not None:
            raise Refusal(HEADER_MISMATCH, f"Header mismatch: {header} has no value in the body")
    elif isinstance(value, str):
        _compare(header, request, value)
    elif given is None:
        raise Refusal(HEADER_MISMATCH, f"Header mismatch: {header} is missing")
    elif type(value) is int and not _is_number(decode_header(header, given), value):
        raise Refusal(HEADER_MISMATCH, f"Header mismatch: {header} differs from the body")
    # A value of another type is for the check of the arguments to refuse.


def _is_number(text: str, expected: int) -> bool:
    """42 and 42.0 are the same number."""
    whole, _, fraction = text.partition(".")
    digits = whole.removeprefix("-")
    return (
        digits.isascii()
        and digits.isdigit()
        and len(digits) < 20
        and int(whole) == expected
        and not fraction.strip("0")
    )


def _param_headers(tool_name: Any, world: World) -> Iterator[tuple[str, str]]:
    tool = world.content.tool_named(tool_name) if isinstance(tool_name, str) else None
    for name, header in tool.header.items() if tool is not None else ():
        yield f"Mcp-Param-{header}", name


def decode_header(header: str, value: str) -> str:
    """What a header stands for: itself, or UTF-8 in base64 between `=?base64?` and `?=`."""
    if not all(" " <= letter <= "~" or letter == "\t" for letter in value):
        raise Refusal(HEADER_MISMATCH, f"Header mismatch: {header} has invalid characters")
    if not (value.startswith("=?base64?") and value.endswith("?=") and len(value) >= 11):
        return value
    import binascii

    try:
        return binascii.a2b_base64(value[9:-2], strict_mode=True).decode()
    except ValueError:
        raise Refusal(HEADER_MISMATCH, f"Header mismatch: {header} is not valid base64") from None
