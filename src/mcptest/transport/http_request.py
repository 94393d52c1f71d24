"""One HTTP request as values and as bytes. The caller may set, change or drop every header."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from mcptest import __version__
from mcptest.model.capture import Headers
from mcptest.model.errors import UsageError
from mcptest.model.show import show
from mcptest.transport.url import Url
from mcptest.wire.http_rules import JSON_TYPE, POST_ACCEPT, SSE_TYPE

_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_UNSENDABLE = re.compile(r"[\r\n\x00]")
_KEPT_HEADS = 256

_ACCEPT = {"POST": POST_ACCEPT, "GET": SSE_TYPE}


class Request(msgspec.Struct, frozen=True):
    method: str
    url: Url
    headers: Headers
    """Complete and in order, as they are sent."""
    wire: bytes
    body: bytes | None = None


class RequestWriter:
    """Builds requests; remembers the last heads, since a session repeats the same few."""

    def __init__(self, own_headers: Mapping[str, str]) -> None:
        self._own = dict(own_headers)
        self._heads: dict[tuple[object, ...], tuple[Headers, bytes, bool]] = {}

    def write(
        self, method: str, url: Url, headers: Mapping[str, str], body: bytes | None = None
    ) -> Request:
        key = (method, url, *headers.items())
        head = self._heads.get(key)
        if head is None:
            if len(self._heads) >= _KEPT_HEADS:
                self._heads.clear()
            head = self._heads[key] = self._write_head(method, url, headers)
        fields, start, sized = head
        if body is None:
            return Request(method, url, fields, start + b"\r\n")
        if sized:
            return Request(method, url, fields, start + b"\r\n" + body, body)
        size = str(len(body))
        wire = b"%bContent-Length: %d\r\n\r\n%b" % (start, len(body), body)
        return Request(method, url, (*fields, ("Content-Length", size)), wire, body)

    def _write_head(
        self, method: str, url: Url, headers: Mapping[str, str]
    ) -> tuple[Headers, bytes, bool]:
        """The headers, their bytes, and whether the caller has said what the length is."""
        merged: dict[str, tuple[str, str]] = {}
        for name, value in (*_defaults(method, url), *self._own.items(), *headers.items()):
            merged[name.lower()] = (name, value)
        fields = tuple((name, value) for name, value in merged.values() if value != "")
        lines = [f"{method} {url.target} HTTP/1.1\r\n"]
        for name, value in fields:
            _check_field(name, value)
            lines.append(f"{name}: {value}\r\n")
        sized = "content-length" in merged
        return fields, "".join(lines).encode("utf-8", "surrogateescape"), sized


def redirect_target(request: Request, status: int, location: str) -> tuple[Url | None, str]:
    """Where a redirect may be followed to; otherwise None and the reason against it.

    Only to the same origin, so that no header of the user's goes elsewhere; and only where the
    request stays what it is: 301, 302 and 303 would turn a POST into a GET.
    """
    where = f"{status} to {show(location, 120)!r}"
    try:
        url = request.url.join(location)
    except ValueError as error:
        return None, f"{where}: {error}"
    if url.origin != request.url.origin:
        return None, f"{where} leads from {request.url.origin} to another server, {url.origin}"
    if request.method != "GET" and status not in {307, 308}:
        return None, f"{where} asks to turn a {request.method} into a GET"
    return url, ""


def moved(request: Request, target: str) -> Request:
    """The same request, sent to another path of the same server."""
    url = Url(request.url.origin, target)
    _, _, rest = request.wire.partition(b"\r\n")
    line = f"{request.method} {target} HTTP/1.1\r\n".encode()
    return Request(request.method, url, request.headers, line + rest, request.body)


def _defaults(method: str, url: Url) -> list[tuple[str, str]]:
    fields = [("Host", url.origin.authority), ("User-Agent", f"mcptest/{__version__}")]
    if method in _ACCEPT:
        fields.append(("Accept", _ACCEPT[method]))
    fields.append(("Accept-Encoding", "identity"))
    if method == "POST":
        fields.append(("Content-Type", JSON_TYPE))
    return fields


def _check_field(name: str, value: str) -> None:
    if not _NAME.fullmatch(name):
        raise UsageError(f"not a header name: {show(name, 80)!r}")
    if _UNSENDABLE.search(value):
        raise UsageError(
            f"the value of header {name} contains a line break or NUL",
            hint="such a value would end the header and start another",
        )
