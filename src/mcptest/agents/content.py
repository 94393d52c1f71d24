"""mcptest as the content of a server: put together from what is allowed."""

from __future__ import annotations

from mcptest.agents.allowed import Allowed
from mcptest.agents.child import Children
from mcptest.agents.reading_matter import prompts, resources, templates
from mcptest.agents.tool_table import tools_for
from mcptest.agents.toolbox import Toolbox
from mcptest.peer.demo.content import Content
from mcptest.peer.demo.options import Options

NAME = "mcptest"
PAGE_SIZE = 100
_ALWAYS = (
    "mcptest tells with proof whether an MCP server or client works and conforms. Begin with "
    "list_rules and explain_rule; judge_capture, lint_tools, validate_suite and read_report work "
    "on files below the root folder. "
)


class AgentContent(Content):
    """With the server, whatever the tools still run ends."""

    def __init__(self, allowed: Allowed) -> None:
        self._children = Children()
        super().__init__(
            NAME,
            "mcptest",
            "Tests and judges MCP servers and clients.",
            _ALWAYS + _limits(allowed),
            tools_for(allowed, Toolbox(allowed, self._children)),
            prompts(),
            resources(),
            templates(),
        )

    def close(self) -> None:
        self._children.close()


def _limits(allowed: Allowed) -> str:
    """So that an agent does not look for what is not there, and can tell its user."""
    runs = (
        "Servers that may be tested: " + ", ".join(allowed.server_names) + "."
        if allowed.servers
        else "No server may be started: the user allows that with --allow-run --allow-server."
    )
    writes = "" if allowed.write else " Nothing may be written: --allow-write allows that."
    return runs + writes


def options_for(allowed: Allowed) -> Options:
    """Neither logs nor changing lists nor subscriptions: what is there stays as it is."""
    options = Options()
    options.hide = frozenset({"logging", "subscribe", "list-changed"})
    options.page_size = PAGE_SIZE
    return options
