"""Who may use a proxy, and what of a request and an answer has to be said differently on the way.

A proxy on loopback can be reached by every page in a browser of the same machine. So a request
that names another host, or that a page from elsewhere sent, is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from mcptest.model.capture import Headers
from mcptest.model.errors import UsageError
from mcptest.model.show import show
from mcptest.transport.proxy_requests import FRAMING, RefusedRequest, RequestHead
from mcptest.transport.url import Origin

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_HOP_BY_HOP = frozenset(
    {"connection", "keep-alive", "proxy-connection", "te", "trailer", "upgrade", "host", "origin"}
)
_FROM_NEAR = frozenset({"same-origin", "same-site", "none"})
_PORT = re.compile(r"[0-9]{1,5}")


def listening_address(words: str) -> tuple[str, int]:
    """`HOST:PORT` of --listen; only on this machine, since whoever reaches it reaches the server"""
    host, separator, port = words.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not separator or not _PORT.fullmatch(port) or int(port) > 65535:
        raise UsageError(f"--listen takes HOST:PORT, not {show(words, 80)!r}")
    if host not in LOOPBACK:
        raise UsageError(
            f"--listen is for this machine only, not {show(host, 80)!r}",
            hint="use 127.0.0.1, ::1 or localhost; port 0 takes any that is free",
        )
    return host, int(port)


def check_sender(head: RequestHead) -> None:
    """Raises RefusedRequest unless the request came from this machine and no foreign page."""
    hosts = [value for name, value in head.headers if name.lower() == "host"]
    if len(hosts) != 1:
        raise RefusedRequest(400, f"there are {len(hosts)} Host headers")
    if _host_of(f"//{hosts[0]}") not in LOOPBACK:
        raise RefusedRequest(403, f"Host {show(hosts[0], 80)!r} is not this machine")
    origin = head.header("origin")
    if origin is not None and _host_of(origin) not in LOOPBACK:
        raise RefusedRequest(403, f"Origin {show(origin, 80)!r} is not this machine")
    site = head.header("sec-fetch-site")
    if origin is None and site is not None and site not in _FROM_NEAR:
        raise RefusedRequest(403, "a page from another site sent this")


def upstream_head(
    head: RequestHead, server: Origin, ours: Origin, extra: Mapping[str, str]
) -> bytes:
    """The head as the server gets it: one connection for this request, everything else kept."""
    dropped = _HOP_BY_HOP | {name.lower() for name in extra}
    fields = [("Host", server.authority)]
    origin = head.header("origin")
    if origin is not None:
        # A page that came through us is at home on the server.
        fields.append(("Origin", str(server) if origin == str(ours) else origin))
    fields += [(name, value) for name, value in head.headers if name.lower() not in dropped]
    # What a client sent is held as latin-1, what the user wrote is text.
    fields += [(name, value.encode().decode("latin-1")) for name, value in extra.items()]
    fields.append(("Connection", "close"))
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields)
    return f"{head.method} {head.target} HTTP/1.1\r\n{lines}\r\n".encode("latin-1")


def downstream_fields(headers: Headers, server: Origin) -> list[tuple[str, str]]:
    """The headers of an answer without those of its connection; the caller frames the body."""
    fields = []
    for name, value in headers:
        key = name.lower()
        if key in FRAMING or key in _HOP_BY_HOP:
            continue
        fields.append((name, through_us(value, server) if key == "location" else value))
    return fields


def through_us(url: str, server: Origin) -> str:
    """A URL that the server gave. One of its own is cut to its path, which leads here."""
    try:
        parts = urlsplit(url.strip())
        port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    except ValueError:
        return url
    if parts.scheme not in {"http", "https"} or port != server.port:
        return url
    host = (parts.hostname or "").lower()
    if host != server.host and not {host, server.host} <= LOOPBACK:
        return url
    query = f"?{parts.query}" if parts.query else ""
    return f"{parts.path or '/'}{query}"


def _host_of(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None
