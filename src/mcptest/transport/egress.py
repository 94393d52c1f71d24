"""The one guard that every connection passes: which server may be reached, and at which address.

Only the server that the user named is ever connected to. A name is resolved once and its address is
kept, so that a second answer of the name server can't lead somewhere else. A name that leads to a
link-local or cloud-metadata address is refused: nobody serves MCP there, and much can be stolen
there.
"""

from __future__ import annotations

import errno
import functools
import ipaddress
import os
import re
import socket
import threading
from typing import Any, NamedTuple
from urllib.parse import quote, urljoin, urlsplit

import msgspec

from mcptest.core.errors import ErrorKind, PeerError, UsageError
from mcptest.core.limits import Deadline
from mcptest.core.safe_text import show
from mcptest.transport.loop import WRITE, wait_for

# -- The URLs a transport talks to ---------------------------------------------------------------

_KEPT_URLS = 64
"""Each session with a server reads its URL again."""
_PORTS = {"http": 80, "https": 443}
_UNSAFE = re.compile(r"[\x00-\x20\x7f]")
_KEPT = "%/:=&?~#+!$,;'@()*[]-._"


class Origin(msgspec.Struct, frozen=True):
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


class Url(msgspec.Struct, frozen=True):
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


@functools.lru_cache(_KEPT_URLS)
def parse_url(text: str) -> Url:
    """Read an http or https URL; UsageError says what is wrong with any other."""
    try:
        parts = urlsplit(text)
        port, host = parts.port, parts.hostname
    except ValueError as error:
        raise _unusable(text, str(error)) from None
    if parts.scheme not in _PORTS:
        raise _unusable(text, "only http and https are supported")
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
        raise _unusable(text, f"its host name is invalid: {error}") from None


def _unusable(text: str, why: str) -> UsageError:
    hint = "write it like http://127.0.0.1:8000/mcp"
    return UsageError(f"invalid URL {show(text, 120)!r}: {why}", hint=hint)


# -- The one guard that every connection passes --------------------------------------------------

_METADATA = frozenset(
    map(ipaddress.ip_address, ("169.254.169.254", "fd00:ec2::254", "100.100.100.200"))
)


class Address(NamedTuple):
    """Where a socket connects to, as the resolver gave it."""

    family: socket.AddressFamily
    sockaddr: tuple[Any, ...]

    def __str__(self) -> str:
        host, port = self.sockaddr[:2]
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class Egress(msgspec.Struct):
    """The way to one server."""

    origin: Origin
    address: Address | None = None
    """The one that worked before."""

    def connect(self, deadline: Deadline) -> socket.socket:
        """The first connection: tries the addresses and keeps the one that answers."""
        addresses = [self.address] if self.address else usable_addresses(self.origin, deadline)
        failures: list[tuple[Address, int]] = []
        for place, address in enumerate(addresses):
            # An address that swallows packets must leave time for the next.
            share = deadline.within(deadline.remaining() / (len(addresses) - place))
            sock, code = _connect(address, share)
            if sock is not None:
                self.address = address
                return sock
            failures.append((address, code))
        raise connect_error(self.origin, failures, deadline)


def usable_addresses(origin: Origin, deadline: Deadline) -> list[Address]:
    """What the name stands for, without the addresses that no name may lead to."""
    try:
        written = str(ipaddress.ip_address(origin.host))
    except ValueError:
        found = _resolve(origin, deadline)
    else:  # the user wrote this very address; its scope (fe80::1%eth0) is for the resolver to read
        # As bytes: a text is looked at as an international name, whose tables take 4 ms to load.
        host, flags = written.encode("ascii"), socket.AI_NUMERICHOST
        numeric = socket.getaddrinfo(host, origin.port, flags=flags)
        return [Address(numeric[0][0], numeric[0][4])]
    usable = []
    for address in found:
        ip = ipaddress.ip_address(str(address.sockaddr[0]))
        ip = (ip.ipv4_mapped if ip.version == 6 else None) or ip
        if not ip.is_link_local and ip not in _METADATA:
            usable.append(address)
    if not usable:
        raise PeerError(
            ErrorKind.ADDRESS_REFUSED,
            f"{show(origin.host, 80)} resolves to {found[0]}, a link-local or metadata address",
            hint="use the address in the URL if you mean it",
        )
    return usable


def start_connect(address: Address) -> tuple[socket.socket, bool]:
    """A non-blocking socket on its way, and whether it is connected already. Raises OSError."""
    sock = socket.socket(address.family, socket.SOCK_STREAM)
    sock.setblocking(False)
    # Without this a small request waits for the acknowledgement of the one before.
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    code = sock.connect_ex(address.sockaddr)
    if code not in {0, errno.EINPROGRESS}:
        sock.close()
        raise OSError(code, os.strerror(code))
    return sock, code == 0


def connect_error(
    origin: Origin, failures: list[tuple[Address, int]], deadline: Deadline
) -> PeerError:
    """Why no address took the connection, in the words of the last one that was tried."""
    address, code = failures[-1]
    where = str(origin) if origin.host in str(address) else f"{origin} ({address})"
    if code in {errno.ETIMEDOUT, errno.EINPROGRESS}:
        message = f"could not connect to {where} within {deadline.limit:g}s"
        return PeerError(
            ErrorKind.TIMEOUT, message, hint="check that the host is correct and reachable"
        )
    kind = ErrorKind.CONNECTION_REFUSED
    hint = "check that the server is running and the port is correct"
    return PeerError(kind, f"can't connect to {where}: {os.strerror(code)}", hint=hint)


def _connect(address: Address, deadline: Deadline) -> tuple[socket.socket | None, int]:
    try:
        sock, connected = start_connect(address)
    except OSError as error:
        return None, error.errno or errno.EAFNOSUPPORT
    if connected:
        return sock, 0
    ready = wait_for(sock.fileno(), WRITE, deadline.remaining())
    code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) if ready else errno.ETIMEDOUT
    if code:
        sock.close()
        return None, code
    return sock, 0


def _resolve(origin: Origin, deadline: Deadline) -> list[Address]:
    """Ask the resolver from a thread: it has no time limit of its own that we could set."""
    answers: list[Any] = []

    def ask() -> None:
        try:
            answers.append(socket.getaddrinfo(origin.host, origin.port, type=socket.SOCK_STREAM))
        except (OSError, UnicodeError) as error:
            answers.append(error)

    thread = threading.Thread(target=ask, name="resolve", daemon=True)
    thread.start()
    thread.join(deadline.remaining())
    name = show(origin.host, 80)
    if not answers:
        message = f"could not resolve the name {name} within {deadline.limit:g}s"
        raise PeerError(ErrorKind.TIMEOUT, message, hint="check that the name server is reachable")
    if isinstance(answers[0], Exception):
        why = getattr(answers[0], "strerror", None) or str(answers[0])
        message = f"the name {name} can't be resolved: {why}"
        raise PeerError(ErrorKind.NAME_NOT_FOUND, message, hint="check the spelling of the host")
    unique = dict.fromkeys(Address(family, addr) for family, _, _, _, addr in answers[0])
    return list(unique)
