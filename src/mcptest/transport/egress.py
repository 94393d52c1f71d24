"""The one guard that every connection passes: which hosts may be reached, and at which address.

Only the host the user named, and those the user allowed besides, are ever connected to. A name is
resolved once and its address is kept, so that a second answer of the name server can't lead
somewhere else. A name that leads to a link-local or cloud-metadata address is refused: nobody
serves MCP there, and much can be stolen there.
"""

from __future__ import annotations

import errno
import ipaddress
import os
import selectors
import socket
import threading
from collections.abc import Collection
from typing import Any, NamedTuple, TypeAlias

from mcptest.model.deadline import Deadline
from mcptest.model.errors import ErrorKind, PeerError
from mcptest.model.show import show
from mcptest.transport.url import Origin, Url

_METADATA = frozenset(
    map(ipaddress.ip_address, ("169.254.169.254", "fd00:ec2::254", "100.100.100.200"))
)
_IP: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address


class Address(NamedTuple):
    """Where a socket connects to, as the resolver gave it."""

    family: socket.AddressFamily
    sockaddr: tuple[Any, ...]

    def __str__(self) -> str:
        host, port = self.sockaddr[:2]
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class Egress:
    """Answers one question: may we connect there, and if so, to which address?"""

    def __init__(self, url: Url, allow_hosts: Collection[str] = ()) -> None:
        self._home = url.origin
        self._allowed = frozenset(host.lower() for host in allow_hosts)
        self._pinned: dict[Origin, Address] = {}

    def permits(self, origin: Origin) -> bool:
        """Is this the origin the user named, or a host (or host:port) the user allowed?"""
        return (
            origin == self._home
            or origin.host in self._allowed
            or f"{origin.host}:{origin.port}" in self._allowed
        )

    def address(self, origin: Origin) -> Address | None:
        """The address that worked before."""
        return self._pinned.get(origin)

    def connect(self, origin: Origin, deadline: Deadline) -> socket.socket:
        """The first connection to an origin: tries its addresses and keeps the one that answers."""
        if not self.permits(origin):
            raise PeerError(
                ErrorKind.ADDRESS_REFUSED,
                f"{show(str(origin), 120)} is not the server that was named",
                hint="allow the host if you trust it",
            )
        pinned = self._pinned.get(origin)
        addresses = [pinned] if pinned else usable_addresses(origin, deadline)
        failures: list[tuple[Address, int]] = []
        for place, address in enumerate(addresses):
            # An address that swallows packets must leave time for the next.
            share = deadline.within(deadline.remaining() / (len(addresses) - place))
            sock, code = _connect(address, share)
            if sock is not None:
                self._pinned[origin] = address
                return sock
            failures.append((address, code))
        raise connect_error(origin, failures, deadline)


def usable_addresses(origin: Origin, deadline: Deadline) -> list[Address]:
    """What the name stands for, without the addresses that no name may lead to."""
    literal = _literal(origin.host)
    found = _resolve(origin, deadline) if literal is None else [_address(literal, origin.port)]
    if literal is not None:
        return found  # the user wrote this very address
    usable = [each for each in found if not _is_forbidden(each)]
    if not usable:
        raise PeerError(
            ErrorKind.ADDRESS_REFUSED,
            f"{show(origin.host, 80)} leads to {found[0]}, a link-local or metadata address",
            hint="write the address itself in the URL if you mean it",
        )
    return usable


def start_connect(address: Address) -> tuple[socket.socket, int]:
    """A non-blocking socket on its way; 0 when it is connected already, else an error number."""
    sock = socket.socket(address.family, socket.SOCK_STREAM)
    sock.setblocking(False)
    # Without this a small request waits for the acknowledgement of the one before.
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock, sock.connect_ex(address.sockaddr)


def connect_error(
    origin: Origin, failures: list[tuple[Address, int]], deadline: Deadline
) -> PeerError:
    """Why no address took the connection, in the words of the last one that was tried."""
    address, code = failures[-1]
    where = str(origin) if origin.host in str(address) else f"{origin} ({address})"
    if code in {errno.ETIMEDOUT, errno.EINPROGRESS}:
        message = f"no connection to {where} within {deadline.limit:g} s"
        return PeerError(ErrorKind.TIMEOUT, message, hint="is the host right, and reachable?")
    kind = ErrorKind.CONNECTION_REFUSED
    hint = "is the server running, and is the port right?"
    return PeerError(kind, f"can't connect to {where}: {os.strerror(code)}", hint=hint)


def _connect(address: Address, deadline: Deadline) -> tuple[socket.socket | None, int]:
    try:
        sock, code = start_connect(address)
    except OSError as error:
        return None, error.errno or errno.EAFNOSUPPORT
    if code == errno.EINPROGRESS:
        with selectors.DefaultSelector() as selector:
            selector.register(sock, selectors.EVENT_WRITE)
            ready = selector.select(deadline.remaining())
        code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) if ready else errno.ETIMEDOUT
    if code:
        sock.close()
        return None, code
    return sock, 0


def _literal(host: str) -> _IP | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _address(ip: _IP, port: int) -> Address:
    if ip.version == 4:
        return Address(socket.AF_INET, (str(ip), port))
    # The scope of a link-local address (fe80::1%eth0) is for the resolver to read.
    family, _, _, _, sockaddr = socket.getaddrinfo(str(ip), port, flags=socket.AI_NUMERICHOST)[0]
    return Address(family, sockaddr)


def _is_forbidden(address: Address) -> bool:
    ip = ipaddress.ip_address(str(address.sockaddr[0]))
    mapped = ip.ipv4_mapped if ip.version == 6 else None
    ip = mapped or ip
    return ip.is_link_local or ip in _METADATA


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
        message = f"the name {name} was not resolved within {deadline.limit:g} s"
        raise PeerError(ErrorKind.TIMEOUT, message, hint="is the name server reachable?")
    if isinstance(answers[0], Exception):
        why = getattr(answers[0], "strerror", None) or str(answers[0])
        message = f"the name {name} can't be resolved: {why}"
        raise PeerError(ErrorKind.NAME_NOT_FOUND, message, hint="is the host spelled right?")
    unique = dict.fromkeys(Address(family, addr) for family, _, _, _, addr in answers[0])
    return list(unique)
