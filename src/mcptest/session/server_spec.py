"""From the one string that names a server to a target: command, URL, configured name, demo."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from mcptest.core.errors import UsageError, close_matches
from mcptest.core.limits import MEBIBYTE
from mcptest.core.redaction import secrets_of_environment
from mcptest.core.safe_text import show
from mcptest.transport.files import read_input
from mcptest.transport.target import DEMO, Target, Way

DEFAULT_CONFIG = ".mcp.json"
_LARGEST_CONFIG = 16 * MEBIBYTE
_TOLD = 20
"""So many names of a configuration are told."""
# Compiled when they are needed, because this is on the way to the first server of a run.
_HEADER_NAME = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_HEADER_VALUE = r"[^\x00-\x08\x0a-\x1f\x7f]*"
_URL = r"[A-Za-z][A-Za-z0-9+.-]*://"


class ServerWords(msgspec.Struct, frozen=True):
    """What a command line said about the server, before it is understood."""

    server: str | None = None
    command: Sequence[str] = ()
    """The words after a bare `--`."""
    way: Way | None = None
    headers: Mapping[str, str] = {}
    env: Mapping[str, str] = {}
    cwd: str | None = None
    clean_env: bool = False
    config: Path | None = None


def target_of(words: ServerWords) -> Target:
    """Understand how to reach the server, or say what is wrong with the words."""
    if words.cwd is not None:
        _folder(words.cwd, "--cwd")
    if words.command:
        if words.server is not None:
            raise given_twice()
        return _stdio(tuple(words.command), words)
    if not words.server or not words.server.strip():
        raise UsageError(
            "no server is named",
            hint='add --server demo, --server "npx my-server", --server http://…/mcp, '
            "or the command after --",
        )
    server = words.server.strip()
    config, servers = words.config, {} if words.config is None else servers_in(words.config)
    if config is not None and server in servers:
        return configured_target(server, servers[server], config, words)
    if server == "demo":
        return _demo(words)
    if re.match(_URL, server):
        return _url(server, words)
    if config is not None:
        raise no_such_server(server, servers, config)
    config = Path(DEFAULT_CONFIG)
    is_looked_up = re.fullmatch(r"[\w.@-]+", server) and config.is_file()
    if is_looked_up and server in (servers := servers_in(config)):
        return configured_target(server, servers[server], config, words)
    try:
        command = tuple(shlex.split(server))
    except ValueError as error:
        raise UsageError(f"invalid server command: {error}") from None
    return _stdio(command, words)


def given_twice() -> UsageError:
    return UsageError(
        "the server is given twice",
        hint="name it once: as the first argument, with --server, or after --",
    )


def _demo(words: ServerWords) -> Target:
    if words.way not in {None, "stdio"}:
        raise UsageError(
            "the demo runs over stdio here",
            hint="run `mcptest serve demo --transport http` and pass its URL",
        )
    return replace(_stdio(DEMO.command, words), label="demo")


def _stdio(command: tuple[str, ...], words: ServerWords) -> Target:
    if words.way not in {None, "stdio"}:
        raise UsageError(f"--transport {words.way} needs a URL, not a command")
    if words.headers:
        raise UsageError(
            "--header and --token-env need a server with a URL", hint="use --env for a command"
        )
    label = " ".join(map(_last_part, command))
    return Target(
        way="stdio",
        label=show(label, 120),
        command=command,
        env=words.env,
        cwd=words.cwd,
        clean_env=words.clean_env,
    )


def _last_part(word: str) -> str:
    """The name of what a path leads to; a word that is no path as it is."""
    parts = word.replace(os.sep, "/").split("/")
    return next((part for part in reversed(parts) if part not in {"", "."}), word)


def _url(url: str, words: ServerWords) -> Target:
    if words.way == "stdio":
        raise UsageError("--transport stdio needs a command, not a URL")
    if words.env:
        raise UsageError("--env needs a server command", hint="use --header")
    for name, value in words.headers.items():
        if not re.fullmatch(_HEADER_NAME, name):
            raise UsageError(f"invalid header name: {show(name, 80)!r}")
        if not re.fullmatch(_HEADER_VALUE, value):
            raise UsageError(f"the header {name} has characters that HTTP does not allow")
    if words.cwd is not None:
        raise UsageError("--cwd needs a server command")
    from mcptest.transport.egress import parse_url  # only those who name a URL wait for sockets

    path = parse_url(url).target.partition("?")[0]
    way: Way = words.way or ("sse" if path.rstrip("/").endswith("/sse") else "http")
    return Target(way=way, label=show(url, 120), url=url, headers=words.headers)


# -- The configuration of a client: the one place that reads and understands it ------------------


def servers_in(path: Path) -> dict[str, Any]:
    """The entries of `mcpServers` by name. UsageError, with its place, for what is wrong."""
    import json

    data = read_input(path, "the configuration", largest=_LARGEST_CONFIG)
    try:
        document = json.loads(data, object_pairs_hook=_without_duplicates)
    except json.JSONDecodeError as error:
        place = f"{path}:{error.lineno}:{error.colno}"
        raise UsageError(f"{place}: not JSON: {show(error.msg, 200)}") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}: not JSON: {show(str(error), 200)}") from None
    members = document if isinstance(document, dict) else {}
    servers = members.get("mcpServers")
    if isinstance(servers, dict):
        return servers
    is_of_vs_code = isinstance(members.get("servers"), dict)
    found = "it has servers, the form of another client; " if is_of_vs_code else ""
    hint = found + 'expected {"mcpServers": {"name": {…}}}'
    raise UsageError(f"{path} has no mcpServers map", hint=hint)


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Of two members of one name a client takes either; the other would never be looked at."""
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"the member {name!r} appears twice")
        found[name] = value
    return found


def no_such_server(name: str, servers: Collection[str], path: Path) -> UsageError:
    """With the name that was probably meant, or those that there are."""
    near = close_matches(name, servers, n=1)
    hint = f"did you mean {show(near[0], 80)}? " if near else ""
    names = ", ".join(show(one, 80) for one in list(servers)[:_TOLD]) or "none"
    said = f"{path} has no server named {show(name, 80)!r}"
    return UsageError(said, hint=f"{hint}it has: {names}")


def configured_target(name: str, entry: Any, path: Path, words: ServerWords) -> Target:
    """What an entry of a configuration says, with the words of the command line over it."""
    where = f"{path}: mcpServers.{show(name, 80)}"
    if not isinstance(entry, dict):
        raise UsageError(f"{where} is not an object")
    from mcptest.suite.templates import Expansion  # few servers are configured

    expand = Expansion(os.environ)

    def expanded(value: Any, member: str) -> str:
        text = expand.braced(_text(value, f"{where}.{member}"))
        if expand.unset:
            missing = next(iter(expand.unset))
            raise UsageError(f"{where} needs the variable {missing}, which is not set")
        return text

    def table(member: str) -> dict[str, str]:
        texts = entry.get(member)
        if texts is None:
            return {}
        if not isinstance(texts, dict):
            raise UsageError(f"{where}.{member} is not an object")
        return {key: expanded(value, f"{member}.{key}") for key, value in texts.items()}

    if "url" in entry:
        url = expanded(entry["url"], "url")
        headers = {**table("headers"), **words.headers}
        way = words.way or ("sse" if entry.get("type") == "sse" else None)
        found = _url(url, replace(words, way=way, headers=headers))
    elif "command" in entry:
        arguments = entry.get("args", [])
        if not isinstance(arguments, list):
            raise UsageError(f"{where}.args is not an array")
        command = (expanded(entry["command"], "command"), *(expanded(a, "args") for a in arguments))
        cwd = entry.get("cwd")
        env = {**table("env"), **words.env}
        if words.cwd is None and cwd is not None:
            words = replace(words, cwd=_folder(_text(cwd, f"{where}.cwd"), f"{where}.cwd"))
        found = _stdio(command, replace(words, env=env))
    else:
        raise UsageError(f"{where} has neither command nor url")
    secrets = tuple(secrets_of_environment(expand.used))
    found = replace(found, label=name, referenced=secrets)
    try:
        msgspec.json.encode(found)
    except UnicodeEncodeError:
        raise UsageError(f"{where} has a lone surrogate") from None
    return found


def _folder(path: str, where: str) -> str:
    if not os.path.isdir(path):  # noqa: PTH112 - an empty text is no folder, and `Path('')` is one
        raise UsageError(f"{where} is not a folder: {path}")
    return path


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise UsageError(f"{where} is not a string")
    return value
