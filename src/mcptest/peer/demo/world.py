"""What all connections to one demo server share: its options, its counter and its folder."""

from __future__ import annotations

import os

from mcptest import __version__
from mcptest.peer.demo import versions
from mcptest.peer.demo.files import Folder

TYPE_CHECKING = False  # see protocol
if TYPE_CHECKING:
    from collections.abc import Callable

    from mcptest.peer.demo.loop import Loop
    from mcptest.peer.demo.options import Options
    from mcptest.peer.demo.protocol import Obj
    from mcptest.peer.demo.stateless import Listening

LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")

INSTRUCTIONS = (
    "This server demonstrates every feature of MCP. Start with the tools add and echo; "
    "bump changes the resource demo://counter, which can be subscribed to."
)


class World:
    """Made once per process. Sessions and subscriptions register to hear of changed resources."""

    def __init__(self, options: Options, loop: Loop) -> None:
        self.options = options
        self.handshake = options.handshake
        self.stateless = options.stateless
        """The revisions of each era that are spoken."""
        self.loop = loop
        self.folder = Folder(options.root)
        self.counter = 0
        self.secret = os.urandom(32)
        """Signs `requestState`; a state of another process is refused like a forged one."""
        self.listening: dict[Listening, None] = {}
        self._watchers: dict[object, Callable[[str], None]] = {}

    def watch(self, watcher: object, updated: Callable[[str], None]) -> None:
        self._watchers[watcher] = updated

    def unwatch(self, watcher: object) -> None:
        self._watchers.pop(watcher, None)

    def bump(self) -> int:
        self.counter += 1
        for updated in tuple(self._watchers.values()):
            updated("demo://counter")
        return self.counter

    def end_subscriptions(self) -> None:
        """Tell every open subscription of the stateless era that it is over."""
        for listening in tuple(self.listening):
            listening.end()

    def close(self) -> None:
        self.folder.close()


def server_info(version: str) -> Obj:
    """The demo's name, with the members that this revision knows."""
    info: Obj = {"name": "mcptest-demo", "version": __version__}
    if versions.since(version, versions.V2025_06_18):
        info["title"] = "mcptest demo server"
    if versions.since(version, versions.V2025_11_25):
        info["description"] = "A small server that conforms to every revision of MCP."
    return info
