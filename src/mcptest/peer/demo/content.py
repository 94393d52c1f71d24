"""What a server offers, and who it says it is. How that is spoken is the business of the rest.

The demo is one content (see `offers`); the same eras and transports serve any other.
"""

from __future__ import annotations

from mcptest import __version__
from mcptest.peer.demo import versions

TYPE_CHECKING = False  # see protocol
if TYPE_CHECKING:
    from mcptest.peer.demo.prompts import Prompt
    from mcptest.peer.demo.protocol import Obj
    from mcptest.peer.demo.resources import Resource, Template
    from mcptest.peer.demo.tools import Tool


class Content:
    """The tools, prompts and resources of one server, with its name."""

    def __init__(
        self,
        name: str,
        title: str,
        description: str,
        instructions: str,
        tools: tuple[Tool, ...] = (),
        prompts: tuple[Prompt, ...] = (),
        resources: tuple[Resource, ...] = (),
        templates: tuple[Template, ...] = (),
        changing: frozenset[str] = frozenset(),
        version: str = __version__,
    ) -> None:
        self.name = name
        self.title = title
        self.description = description
        self.instructions = instructions
        self.tools = tools
        self.prompts = prompts
        self.resources = resources
        self.templates = templates
        self.changing = changing
        """Which of the lists `tools` and `prompts` may change while the server runs."""
        self.version = version
        self.logger = name.removeprefix("mcptest-")
        """Who writes the log messages."""
        self._tool_named = {tool.name: tool for tool in tools}
        self._resource_at = {resource.uri: resource for resource in resources}

    def tool_named(self, name: str) -> Tool | None:
        return self._tool_named.get(name)

    def resource_at(self, uri: str) -> Resource | None:
        return self._resource_at.get(uri)

    def server_info(self, version: str) -> Obj:
        """Our name, with the members that this revision knows."""
        info: Obj = {"name": self.name, "version": self.version}
        if versions.since(version, versions.V2025_06_18):
            info["title"] = self.title
        if versions.since(version, versions.V2025_11_25):
            info["description"] = self.description
        return info

    def close(self) -> None:
        """The server ends: whatever the tools still do ends with it."""
