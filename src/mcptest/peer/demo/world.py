"""What all connections to one server share: content, options, counter and folder."""

from __future__ import annotations

import os

from mcptest.peer.demo import versions
from mcptest.peer.demo.files import Folder

TYPE_CHECKING = False  # see protocol
if TYPE_CHECKING:
    from collections.abc import Callable

    from mcptest.peer.demo.content import Content
    from mcptest.peer.demo.loop import Loop
    from mcptest.peer.demo.options import Options
    from mcptest.peer.demo.protocol import Obj
    from mcptest.peer.demo.stateless import Listening
    from mcptest.peer.demo.tasks import Task

LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")

LIST_CHANGED: Obj = {"listChanged": True}
TASKS_EXTENSION = "io.modelcontextprotocol/tasks"
CORE_TASKS: Obj = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
_SUBSCRIPTIONS = ("resources/subscribe", "resources/unsubscribe")
_METHODS_OF = {
    "tools": ("tools/list", "tools/call"),
    "resources": ("resources/list", "resources/templates/list", "resources/read", *_SUBSCRIPTIONS),
    "prompts": ("prompts/list", "prompts/get"),
    "completions": ("completion/complete",),
    "logging": ("logging/setLevel",),
    "subscribe": _SUBSCRIPTIONS,
}


def hidden_methods(parts: frozenset[str]) -> frozenset[str]:
    """The methods of the parts that the server does without."""
    return frozenset(method for part in parts for method in _METHODS_OF.get(part, ()))


class World:
    """Made once per process. Sessions and subscriptions register to hear of changed resources."""

    def __init__(self, options: Options, loop: Loop, content: Content | None = None) -> None:
        self.options = options
        self.handshake = options.handshake
        self.stateless = options.stateless
        """The revisions of each era that are spoken."""
        self.loop = loop
        self.folder = Folder(options.root)
        self.counter: int = 0
        self._last_number = 0
        self.secret = os.urandom(32)
        """Signs `requestState`; a state of another process is refused like a forged one."""
        self.tasks: dict[str, Task] = {}
        """Those of the stateless era, which belong to nobody's session."""
        self.hidden = hidden_methods(options.hide)
        if content is None:
            from mcptest.peer.demo.offers import demo_content

            content = demo_content(options.offer)
        self.content = content
        self.listening: dict[Listening, None] = {}
        self._watchers: dict[object, Callable[[str], None]] = {}

    def watch(self, watcher: object, updated: Callable[[str], None]) -> None:
        self._watchers[watcher] = updated

    def unwatch(self, watcher: object) -> None:
        self._watchers.pop(watcher, None)

    def declared(self, version: str) -> Obj:
        """The capabilities that are told to a client of this revision."""
        stateless = versions.since(version, versions.V2026_07_28)
        # Only a fixture ever tells of a changed list where nothing may change on the side.
        quiet = stateless and "fixtures" not in self.options.offer
        changes: Obj = {} if quiet or "list-changed" in self.options.hide else LIST_CHANGED
        some: Obj = {
            "completions": {} if versions.since(version, versions.V2025_03_26) else None,
            "logging": {},
            "prompts": changes if "prompts" in self.content.changing else {},
            "resources": {} if "subscribe" in self.options.hide else {"subscribe": True},
            "tools": changes if "tools" in self.content.changing else {},
        }
        if "tasks" in self.options.offer:
            some["tasks"] = CORE_TASKS if version == versions.V2025_11_25 else None
            some["extensions"] = {TASKS_EXTENSION: {}} if stateless else None
        return {
            name: value
            for name, value in some.items()
            if value is not None and name not in self.options.hide
        }

    def next_number(self) -> int:
        """A number that nobody else gets."""
        self._last_number += 1
        return self._last_number

    def bump(self) -> int:
        self.counter += 1
        for updated in tuple(self._watchers.values()):
            updated("demo://counter")
        return self.counter

    def announce(self, what: str) -> None:
        """Tell every subscription of the stateless era that a list changed, if it wants to know."""
        for listening in tuple(self.listening):
            listening.changed(what)

    def end_subscriptions(self) -> None:
        """Tell every open subscription of the stateless era that it is over."""
        for listening in tuple(self.listening):
            listening.end()

    def close(self) -> None:
        self.content.close()
        self.folder.close()
