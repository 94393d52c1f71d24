"""A peer by what it takes to reach it, and the transport that does."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from mcptest.model.capture import TransportName
from mcptest.model.limits import DEFAULT_LIMITS, Limits
from mcptest.model.masking import secrets_of_environment, secrets_of_header
from mcptest.transport.base import Sink, Transport

Way: TypeAlias = Literal["stdio", "http", "sse"]


@dataclass(frozen=True, slots=True)
class Target:
    """One server: a command for stdio, a URL for the others."""

    way: Way
    label: str
    command: tuple[str, ...] = ()
    url: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    referenced: tuple[str, ...] = ()
    """Values of our environment that a configuration put into the command or URL."""

    @property
    def peer(self) -> str:
        return shlex.join(self.command) if self.way == "stdio" else self.url

    @property
    def secrets(self) -> tuple[str, ...]:
        """Values that must not be written anywhere."""
        headers = (part for value in self.headers.values() for part in secrets_of_header(value))
        return (*secrets_of_environment(self.env), *headers, *self.referenced)


DEMO = Target(way="stdio", label="demo", command=(sys.executable, "-m", "mcptest.peer.demo"))


def transport_for(
    target: Target,
    sink: Sink,
    limits: Limits = DEFAULT_LIMITS,
    way: TransportName | None = None,
) -> Transport:
    """A transport to the target, not opened yet. `way` overrides the target's own."""
    chosen = way or target.way
    if chosen == "stdio":
        from mcptest.transport.stdio import Stdio

        return Stdio(target.command, sink=sink, env=target.env, cwd=target.cwd, limits=limits)
    if chosen == "sse":
        from mcptest.transport.legacy_sse import LegacySse

        return LegacySse(target.url, sink=sink, headers=target.headers, limits=limits)
    from mcptest.transport.streamable import StreamableHttp

    return StreamableHttp(target.url, sink=sink, headers=target.headers, limits=limits)
