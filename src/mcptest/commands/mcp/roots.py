"""What an agent may reach: the servers that were allowed, and files below the roots.

Every part of a path is opened on its own, relative to its parent's descriptor and without following
links, so a `..`, a link or a race between a look and a read can't lead out. What a command is to
work on is copied into a private folder first: nobody can change it under its feet.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from mcptest.core.errors import UsageError
from mcptest.core.safe_text import show
from mcptest.servers.demo.exchange import ToolFailure
from mcptest.session.server_spec import (
    DEFAULT_CONFIG,
    ServerWords,
    configured_target,
    servers_in,
    target_of,
)
from mcptest.transport.files import put_file
from mcptest.transport.target import Target

MAX_FILES = 2_000
MAX_BYTES = 64 * 1024 * 1024
MAX_DEPTH = 32
MAX_PATH = 1_000
_CHUNK = 1024 * 1024
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Without O_NONBLOCK, opening a named pipe would wait for its other end.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_LEFT_OUT = frozenset({"node_modules", "__pycache__"})


class _Budget:
    """How much may still be copied for one call."""

    def __init__(self) -> None:
        self.files = MAX_FILES
        self.bytes = MAX_BYTES

    def take(self, size: int) -> None:
        self.files -= 1
        self.bytes -= size
        if self.files < 0 or self.bytes < 0:
            raise ToolFailure(
                f"that is more than {MAX_FILES} files or {MAX_BYTES >> 20} MB; "
                "name a smaller folder, or one file"
            )


class Roots:
    """The folders that an agent may name files in."""

    def __init__(self, roots: tuple[str, ...]) -> None:
        self._roots = roots

    def copy(self, path: str, into: str) -> str:
        """Copy a file, or a folder with all in it, to the same place below `into`.

        Gives the path there, relative to `into`. Hidden entries, links and what is no file are left
        out of a folder.
        """
        with self._opened(path) as (descriptor, parts):
            os.makedirs(os.path.join(into, *parts[:-1]), mode=0o700, exist_ok=True)  # noqa: PTH103, PTH118 - as text
            target = os.path.join(into, *parts)  # noqa: PTH118 - as text
            budget = _Budget()
            if stat.S_ISDIR(os.fstat(descriptor).st_mode):
                _copy_folder(descriptor, target, budget, MAX_DEPTH)
            else:
                _copy_file(descriptor, target, budget)
        return "/".join(parts) or "."

    def write(self, path: str, content: bytes, *, replace: bool) -> str:
        """Write a file below the first root that has its folder; another takes its place whole."""
        *folders, name = self._parts(path)[1] or [""]
        if not name:
            raise ToolFailure("name a file, not the root folder")
        shown = show(name, 200)
        with self._opened("/".join(folders) or ".", folder=True) as (parent, _):
            try:
                put_file(parent, name, content, overwrite=replace, mode=0o600)
            except FileExistsError:
                advice = "pass replace: true to replace it"
                raise ToolFailure(f"{shown} already exists; {advice}") from None
            except OSError as error:
                raise ToolFailure(f"can't write {shown}: {error.strerror}") from None
        return "/".join([*folders, name])

    @contextlib.contextmanager
    def _opened(self, path: str, *, folder: bool = False) -> Iterator[tuple[int, list[str]]]:
        roots, parts = self._parts(path)
        reason = ""
        for root in roots:
            try:
                descriptor = _open_below(root, parts, folder=folder)
            except OSError as error:
                reason = reason or _why(error)
                continue
            try:
                yield descriptor, parts
            finally:
                os.close(descriptor)
            return
        raise ToolFailure(f"can't open {show(path, 200)}: {reason}")

    def _parts(self, path: str) -> tuple[tuple[str, ...], list[str]]:
        """The roots that it may lie in, and its parts below them."""
        if "\0" in path or len(path) > MAX_PATH:
            raise ToolFailure("that is not a path")
        for root in self._roots if path.startswith("/") else ():
            if path == root or path.startswith(root.rstrip("/") + "/"):
                return (root,), _split(path[len(root) :].lstrip("/"), path)
        if path.startswith("/"):
            raise ToolFailure(f"{show(path, 200)} lies outside of the folders that may be read")
        return self._roots, _split(path, path)


def _split(relative: str, path: str) -> list[str]:
    parts = [part for part in relative.split("/") if part not in {"", "."}]
    if ".." in parts:
        raise ToolFailure(f"{show(path, 200)} holds .., which may lead out of the root folder")
    if any(part.startswith(".") for part in parts):
        # Settings and secrets; and a copied .mcp.json would say what a server's name means.
        raise ToolFailure(f"{show(path, 200)} is hidden, and nothing hidden is read or written")
    if len(parts) > MAX_DEPTH:
        raise ToolFailure(f"{show(path, 200)} is too deep")
    return parts


def _open_below(root: str, parts: list[str], *, folder: bool) -> int:
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    for place, name in enumerate(parts):
        last = place == len(parts) - 1
        try:
            inner = os.open(name, _FILE if last and not folder else _FOLDER, dir_fd=descriptor)
        finally:
            os.close(descriptor)
        descriptor = inner
    return descriptor


def _why(error: OSError) -> str:
    if error.errno in {errno.ELOOP, errno.EMLINK, errno.ENOTDIR}:
        return "not a file or folder here; symbolic links are not followed"
    return error.strerror or str(error)


def _copy_folder(source: int, target: str, budget: _Budget, depth: int) -> None:
    os.makedirs(target, mode=0o700, exist_ok=True)  # noqa: PTH103 - as text
    with os.scandir(source) as entries:
        names = sorted(entry.name for entry in entries)
    for name in names:
        if name.startswith(".") or name in _LEFT_OUT:
            continue
        try:
            inner = os.open(name, _FILE, dir_fd=source)
        except OSError:
            continue  # a link, or not ours to read: it is not there for the command either
        try:
            mode = os.fstat(inner).st_mode
            if stat.S_ISDIR(mode) and depth:
                _copy_folder(inner, f"{target}/{name}", budget, depth - 1)
            elif stat.S_ISREG(mode):
                _copy_file(inner, f"{target}/{name}", budget)
        finally:
            os.close(inner)


def _copy_file(source: int, target: str, budget: _Budget) -> None:
    status = os.fstat(source)
    if not stat.S_ISREG(status.st_mode):
        raise ToolFailure("that is neither a file nor a folder")
    budget.take(status.st_size)
    left = status.st_size
    try:
        descriptor = os.open(target, _NEW, 0o600)
    except FileExistsError:
        return  # a fixture may lie in the folder of its suite, which was copied before
    try:
        while left and (chunk := os.read(source, min(left, _CHUNK))):
            left -= len(chunk)
            while chunk:
                chunk = chunk[os.write(descriptor, chunk) :]
    finally:
        os.close(descriptor)


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
            hint='add --allow-server NAME or --allow-server "COMMAND …" (repeatable)',
        )
    if len(servers) > _MAX_SERVERS:
        raise UsageError(f"at most {_MAX_SERVERS} servers can be allowed")
    for root in roots:
        if not Path(root).is_dir():
            raise UsageError(f"--root is not a folder: {show(root, 200)}")
    return Allowed(
        roots=tuple(os.path.realpath(root) for root in (roots or ["."])),
        servers=tuple(_allowed_server(name, config) for name in dict.fromkeys(servers)),
        write=write,
    )


def _allowed_server(name: str, config: Path | None) -> AllowedServer:
    if not name.strip() or len(name) > _MAX_NAME or not name.isprintable():
        raise UsageError(f"--allow-server is no name or command: {show(name, 80)!r}")
    path = config or Path(DEFAULT_CONFIG)
    servers = servers_in(path) if config is not None or path.is_file() else {}
    if name not in servers:
        return AllowedServer(name, target_of(ServerWords(server=name)))
    if not _PLAIN_NAME.fullmatch(name):
        raise UsageError(
            f"--allow-server: {show(name, 80)!r} can't be told from a command",
            hint="give it a name of letters, digits, dots and dashes in the configuration",
        )
    # Read once: who edits the file later is not heard.
    entry = servers[name]
    return AllowedServer(name, configured_target(name, entry, path, ServerWords()), entry)
