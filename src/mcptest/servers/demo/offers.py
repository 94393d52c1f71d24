"""What a server offers, and who it says it is. How that is spoken is the business of the rest.

The demo is one content (see `offers`); the same eras and transports serve any other.
"""

from __future__ import annotations

from mcptest import __version__
from mcptest.servers.demo import versions
from mcptest.servers.demo.jsonrpc import Declared
from mcptest.servers.demo.prompts import PROMPTS
from mcptest.servers.demo.resources import DEMO, RESOURCES, TEMPLATES
from mcptest.servers.demo.tool_list import TOOLS

TYPE_CHECKING = False

if TYPE_CHECKING:
    from mcptest.servers.demo.jsonrpc import Obj
    from mcptest.servers.demo.prompts import Prompt
    from mcptest.servers.demo.resources import Resource, Template
    from mcptest.servers.demo.tool_list import Tool


class Content(Declared):
    """The tools, prompts and resources of one server, with its name."""

    name: str
    title: str
    description: str
    instructions: str
    tools: tuple[Tool, ...] = ()
    prompts: tuple[Prompt, ...] = ()
    resources: tuple[Resource, ...] = ()
    templates: tuple[Template, ...] = ()
    changing: frozenset[str] = frozenset()
    """Which of the lists `tools` and `prompts` may change while the server runs."""
    version: str = __version__

    def __post_init__(self) -> None:
        self.logger = self.name.removeprefix("mcptest-")
        """Who writes the log messages."""
        self.tool_named = {tool.name: tool for tool in self.tools}
        self.resource_at = {resource.uri: resource for resource in self.resources}

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


def demo_content(parts: frozenset[str]) -> Content:
    """The demo, with the tools, prompts and resources of these parts."""
    tools, prompts, resources, templates = TOOLS, PROMPTS, RESOURCES, TEMPLATES
    if "fixtures" in parts:
        from mcptest.servers.demo import fixtures

        tools += fixtures.TOOLS
        prompts += fixtures.PROMPTS
        resources += fixtures.RESOURCES
        templates += fixtures.TEMPLATES
    if "tasks" in parts:
        from mcptest.servers.demo import tasks

        tools += tasks.TOOLS
    changing = frozenset({"tools", "prompts"} if "fixtures" in parts else {"tools"})
    return Content(
        **DEMO["server"],
        tools=tools,
        prompts=prompts,
        resources=resources,
        templates=templates,
        changing=changing,
    )
