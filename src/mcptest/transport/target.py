"""A peer by what it takes to reach it, and the transport that does."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from mcptest.core.redaction import (
    inherited_secrets,
    redaction,
    secrets_of_command,
    secrets_of_environment,
    secrets_of_headers,
    secrets_of_url,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcptest.core.capture import TransportName
    from mcptest.transport.base import Sink, Transport
    from mcptest.transport.egress import Origin
    from mcptest.transport.http.socket_connection import SocketConnection
    from mcptest.transport.process import ServerProcess

_NOT_ALLOWED = 405
Way: TypeAlias = Literal["stdio", "http", "sse"]


class Target(msgspec.Struct, frozen=True):
    """One server: a command for stdio, a URL for the others."""

    way: Way
    label: str
    command: tuple[str, ...] = ()
    url: str = ""
    env: Mapping[str, str] = {}
    cwd: str | None = None
    clean_env: bool = False
    """It does not see all of our environment, but what programs need and what `env` names."""
    headers: Mapping[str, str] = {}
    referenced: tuple[str, ...] = ()
    """Secrets of our environment that a configuration put into the command or URL."""

    def __post_init__(self) -> None:
        given = (self.command, self.url, self.env, self.headers, self.referenced)
        redaction.learn(self._secrets_around, given)

    @property
    def peer(self) -> str:
        return shlex.join(self.command) if self.way == "stdio" else self.url

    @property
    def secrets(self) -> tuple[str, ...]:
        """Values that must not be written anywhere."""
        if self.way != "stdio" or self.clean_env:
            return self._given_secrets()
        return self._secrets_around()

    def _secrets_around(self) -> tuple[str, ...]:
        """Also those of ours that the server may know from elsewhere."""
        return (*inherited_secrets(os.environ), *self._given_secrets())

    def _given_secrets(self) -> tuple[str, ...]:
        return (
            *secrets_of_environment(self.env),
            *secrets_of_headers(self.headers),
            *secrets_of_command(self.command),
            *secrets_of_url(self.url),
            *self.referenced,
        )


def in_container(target: Target, image: str, fixture: str) -> Target:
    """The same server in a container of that image, if there is one."""
    if not image:
        return target
    mount = ("-v", f"{fixture}:{fixture}") if fixture else ()
    passed = tuple(word for pair in target.env.items() for word in ("-e", "=".join(pair)))
    command = ("docker", "run", "--rm", "-i", *mount, *passed, image, *target.command)
    return replace(target, command=command, label=f"{image}: {target.label}")


# -P: no module of the current folder takes the place of one of ours.
DEMO = Target(
    way="stdio", label="demo", command=(sys.executable, "-P", "-m", "mcptest.servers.demo")
)


class KeptAlive:
    """What sessions over HTTP that follow one another leave to the next one.

    Only sessions that are never open at the same time may share it: a server that serves one
    connection after the other would wait for the idle one.
    """

    def __init__(self) -> None:
        self.without_stream: set[str] = set()
        """URLs that refused a GET with 405: there is no stream of the server's own."""
        self._idle: dict[Origin, list[SocketConnection]] = {}
        self._is_over = False

    def learn(self, url: str, status: int) -> None:
        """A GET of this URL, for the stream of the server's own, got that status."""
        if status == _NOT_ALLOWED:
            self.without_stream.add(url)

    def take(self, origin: Origin) -> SocketConnection | None:
        """The one that was used last, which the server may have closed meanwhile."""
        idle = self._idle.get(origin)
        return idle.pop() if idle else None

    def give(self, origin: Origin, connection: SocketConnection) -> None:
        self._idle.setdefault(origin, []).append(connection)
        if self._is_over:
            self.close()

    def close(self) -> None:
        self._is_over = True
        for idle in self._idle.values():
            while idle:
                idle.pop().close()


def transport_for(
    target: Target,
    sink: Sink,
    way: TransportName | None = None,
    process: ServerProcess | None = None,
    kept: KeptAlive | None = None,
) -> Transport:
    """A transport to the target, not opened yet.

    `way` overrides the target's own; `process` is its server, if it runs already; `kept` is what
    earlier sessions left.
    """
    chosen = way or target.way
    if chosen == "stdio":
        from mcptest.transport.stdio import Stdio

        return Stdio(
            target.command,
            sink=sink,
            env=target.env,
            cwd=target.cwd,
            clean_env=target.clean_env,
            process=process,
        )
    from mcptest.transport.http.transports import LegacySse, StreamableHttp

    if chosen == "sse":
        return LegacySse(target.url, sink=sink, headers=target.headers)
    return StreamableHttp(target.url, sink=sink, headers=target.headers, kept=kept)


def reach_of(
    target: Target, process: ServerProcess | None = None, kept: KeptAlive | None = None
) -> Callable[[TransportName | None, Sink], Transport]:
    """How to make connections to a target.

    `process` is the server of the first one, `kept` what earlier sessions left.
    """
    running = [process] if process is not None else []

    def reach(way: TransportName | None, sink: Sink) -> Transport:
        first = running.pop() if running else None
        return transport_for(target, sink, way=way, process=first, kept=kept)

    return reach
