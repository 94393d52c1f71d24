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
    from mcptest.transport.process import ServerProcess

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


def transport_for(
    target: Target,
    sink: Sink,
    way: TransportName | None = None,
    process: ServerProcess | None = None,
) -> Transport:
    """A transport to the target, not opened yet.

    `way` overrides the target's own; `process` is its server, if it runs already.
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

    over_http = LegacySse if chosen == "sse" else StreamableHttp
    return over_http(target.url, sink=sink, headers=target.headers)


def reach_of(
    target: Target, process: ServerProcess | None = None
) -> Callable[[TransportName | None, Sink], Transport]:
    """How to make connections to a target; `process` is the server of the first one."""
    running = [process] if process is not None else []

    def reach(way: TransportName | None, sink: Sink) -> Transport:
        return transport_for(target, sink, way=way, process=running.pop() if running else None)

    return reach
