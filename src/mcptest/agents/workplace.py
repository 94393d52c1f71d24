"""A private folder for one call: copies of what the agent named, and the servers it may have."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from mcptest.agents.allowed import AllowedServer
from mcptest.agents.rooted import Roots
from mcptest.model.show import show
from mcptest.peer.demo.exchange import ToolFailure
from mcptest.run.naming import DEFAULT_CONFIG
from mcptest.run.temporary import new_folder, remove_folder
from mcptest.transport.environment import server_environment

REPORT = ".mcptest-report.json"
"""Hidden: what is copied from the roots is not, so nothing can stand in its place."""


class Workplace:
    """Where a command runs. A suite or a configuration that changes meanwhile changes nothing."""

    def __init__(self, roots: Roots) -> None:
        self._roots = roots
        self.in_use = False
        """Whether a command is still ending in it."""
        self.folder = new_folder("mcptest-mcp-")

    def close(self) -> None:
        remove_folder(self.folder)

    def bring(self, path: str) -> str:
        """Copy it in; the word for the command line that names the copy, never an option."""
        try:
            return f"./{self._roots.copy(path, self.folder)}"
        except OSError as error:  # ours: the disk is full, or a name is too long for it
            raise ToolFailure(f"can't copy {show(path, 200)}: {error.strerror}") from None

    def put(self, name: str, text: str) -> str:
        (Path(self.folder) / name).write_text(text, encoding="utf-8")
        return f"./{name}"

    def name_server(self, server: AllowedServer) -> list[str]:
        """The words that name a server, whose configuration is the one of when we started."""
        entries = {} if server.entry is None else {server.name: dict(server.entry)}
        config = Path(self.folder) / DEFAULT_CONFIG
        config.touch(mode=0o600)
        config.write_text(json.dumps({"mcpServers": entries}))  # in any case: no other is heard
        words = [f"--server={server.name}"]
        # The demo is a module of ours: started in a folder of others it might find theirs instead.
        if server.target.way == "stdio" and server.name != "demo":
            words.append(f"--cwd={server.folder}")
        return words

    def report(self) -> bytes:
        """The JSON report that the command left; empty where there is none."""
        try:
            return (Path(self.folder) / REPORT).read_bytes()
        except OSError:
            return b""


def interpreter() -> list[str]:
    """Our own Python. With -P no module of the folder that it runs in takes the place of ours."""
    return [sys.executable, "-P"]


def environment_for(server: AllowedServer | None, place: Workplace) -> dict[str, str]:
    """What a command sees: no secret of ours, but what its server's configuration refers to.

    What it would remember for its next run goes when the folder goes.
    """
    named = server.variables if server is not None else {}
    own = {"NO_COLOR": "1", "XDG_CACHE_HOME": f"{place.folder}/.cache"}
    return {**server_environment(named, os.environ, clean=True), **own}
