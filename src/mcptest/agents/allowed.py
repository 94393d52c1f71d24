"""What the person who started the server allows agents to do. It never grows while it runs."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from mcptest.model.errors import UsageError
from mcptest.model.show import show
from mcptest.run.naming import DEFAULT_CONFIG, ServerWords, target_of
from mcptest.transport.input_file import read_input
from mcptest.transport.target import Target

_VARIABLE = re.compile(r"\$\{(\w+)(?::-[^}]*)?\}")
_PLAIN_NAME = re.compile(r"[\w.@-]+")
_MAX_SERVERS = 50
_MAX_NAME = 200


class AllowedServer(msgspec.Struct, frozen=True):
    """One server that agents may have tested, by the name that they call it by."""

    name: str
    target: Target
    entry: Mapping[str, Any] | None = None
    """As the configuration had it when we started; None where the name says everything."""

    @property
    def folder(self) -> str:
        """Where it is started: as its configuration says, or where we were."""
        return str(Path(self.target.cwd or ".").absolute())

    @property
    def variables(self) -> dict[str, str]:
        """What the entry takes from our environment, and nothing else of it."""
        if self.entry is None:
            return {}
        names = _VARIABLE.findall(json.dumps(self.entry))
        return {name: os.environ[name] for name in names if name in os.environ}


class Allowed(msgspec.Struct, frozen=True):
    roots: tuple[str, ...]
    """Folders, as real paths. Nothing else is read."""
    servers: tuple[AllowedServer, ...] = ()
    """Empty: nothing is started."""
    write: bool = False

    @property
    def server_names(self) -> list[str]:
        return [server.name for server in self.servers]

    def server(self, name: str) -> AllowedServer:
        return next(server for server in self.servers if server.name == name)


def allowed_of(
    roots: Sequence[str], *, run: bool, servers: Sequence[str], config: Path | None, write: bool
) -> Allowed:
    """Understand the words of the command line, or say what is wrong with them."""
    if servers and not run:
        raise UsageError(
            "--allow-server names what may be started, but nothing may",
            hint="add --allow-run to allow it",
        )
    if run and not servers:
        raise UsageError(
            "--allow-run needs to know which servers may be started",
            hint='add --allow-server NAME or --allow-server "COMMAND …"; it may repeat',
        )
    if len(servers) > _MAX_SERVERS:
        raise UsageError(f"at most {_MAX_SERVERS} servers can be allowed")
    return Allowed(
        roots=tuple(_real_folder(root) for root in (roots or ["."])),
        servers=tuple(_allowed_server(name, config) for name in dict.fromkeys(servers)),
        write=write,
    )


def _real_folder(path: str) -> str:
    if not Path(path).is_dir():
        raise UsageError(f"--root is not a folder: {show(path, 200)}")
    return os.path.realpath(path)


def _allowed_server(name: str, config: Path | None) -> AllowedServer:
    if not name.strip() or len(name) > _MAX_NAME or not name.isprintable():
        raise UsageError(f"--allow-server is no name or command: {show(name, 80)!r}")
    entry = _entry(name, config)
    if entry is not None and not _PLAIN_NAME.fullmatch(name):
        raise UsageError(
            f"--allow-server: {show(name, 80)!r} can't be told from a command",
            hint="give it a name of letters, digits, dots and dashes in the configuration",
        )
    known = config if entry is not None else None
    target = target_of(ServerWords(server=name, config=known))
    return AllowedServer(name, target, entry)


def _entry(name: str, config: Path | None) -> Mapping[str, Any] | None:
    """The entry of the configuration with this name. Read once: who edits it later is not heard."""
    path = config
    if path is None:
        path = Path(DEFAULT_CONFIG)
        if not path.is_file():
            return None
    data = read_input(path, "the configuration")
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is not JSON: {error}") from None
    servers = document.get("mcpServers") if isinstance(document, dict) else None
    entry = servers.get(name) if isinstance(servers, dict) else None
    return entry if isinstance(entry, dict) else None
