"""The URLs a transport talks to: checked once, then only values."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import quote, urljoin, urlsplit

from mcptest.model.errors import UsageError
from mcptest.model.show import show

_PORTS = {"http": 80, "https": 443}
_UNSAFE = re.compile(r"[\x00-\x20\x7f]")
_KEPT = "%/:=&?~#+!$,;'@()*[]-._"


@dataclass(frozen=True, slots=True)
class Origin:
    scheme: str
    host: str
    port: int

    @property
    def authority(self) -> str:
        """As the Host header names it: the port only where it is not the scheme's own."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}"


@dataclass(frozen=True, slots=True)
class Url:
    origin: Origin
    target: str
    """Path and query, as the request line carries them."""

    def __str__(self) -> str:
        return f"{self.origin}{self.target}"

    def join(self, reference: str) -> Url:
        """Another URL, as written by a server, seen from this one. ValueError if it is none."""
        if len(reference) > 8192:
            raise ValueError("longer than 8192 characters")
        try:
            return parse_url(urljoin(str(self), reference.strip()))
        except UsageError as error:
            raise ValueError(error.message) from None


def parse_url(text: str) -> Url:
    """Read an http or https URL; UsageError says what is wrong with any other."""
    try:
        parts = urlsplit(text)
        port, host = parts.port, parts.hostname
    except ValueError as error:
        raise _unusable(text, str(error)) from None
    if parts.scheme not in _PORTS:
        raise _unusable(text, "only http and https are spoken")
    if parts.username is not None or parts.password is not None:
        raise UsageError(
            f"the URL for {show(host or '', 80)} contains a user name or password",
            hint="send it as a header instead: --header 'Authorization=...'",
        )
    if not host:
        raise _unusable(text, "it names no host")
    if _UNSAFE.search(text):
        raise _unusable(text, "it contains a space or control character")
    path = quote(parts.path or "/", safe=_KEPT)
    query = f"?{quote(parts.query, safe=_KEPT)}" if parts.query else ""
    origin = Origin(parts.scheme, _ascii_host(text, host), port or _PORTS[parts.scheme])
    return Url(origin, path + query)


def _ascii_host(text: str, host: str) -> str:
    if host.isascii():
        return host.lower()
    try:
        return host.encode("idna").decode("ascii").lower()
    except UnicodeError as error:
        raise _unusable(text, f"its host is no name: {error}") from None


def _unusable(text: str, why: str) -> UsageError:
    hint = "write it like http://127.0.0.1:8000/mcp"
    return UsageError(f"not a usable URL: {show(text, 120)!r}: {why}", hint=hint)
