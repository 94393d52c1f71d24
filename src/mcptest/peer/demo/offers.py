"""The content of the demo: what it always has, and what it has only when it is asked to."""

from __future__ import annotations

from mcptest.peer.demo.content import Content
from mcptest.peer.demo.prompts import PROMPTS
from mcptest.peer.demo.resources import NOTE, RESOURCES
from mcptest.peer.demo.tools import TOOLS

TYPE_CHECKING = False  # see protocol
if TYPE_CHECKING:
    from mcptest.peer.demo.resources import Template

INSTRUCTIONS = (
    "This server demonstrates every feature of MCP. Start with the tools add and echo; "
    "bump changes the resource demo://counter, which can be subscribed to."
)


def demo_content(parts: frozenset[str]) -> Content:
    """The demo, with the tools, prompts and resources of these parts."""
    tools, prompts, resources = TOOLS, PROMPTS, RESOURCES
    templates: tuple[Template, ...] = (NOTE,)
    if "fixtures" in parts:
        from mcptest.peer.demo import fixtures

        tools += fixtures.TOOLS
        prompts += fixtures.PROMPTS
        resources += fixtures.RESOURCES
        templates += fixtures.TEMPLATES
    if "tasks" in parts:
        from mcptest.peer.demo import tasks

        tools += tasks.TOOLS
    changing = frozenset({"tools", "prompts"} if "fixtures" in parts else {"tools"})
    return Content(
        "mcptest-demo",
        "mcptest demo server",
        "A small server that conforms to every revision of MCP.",
        INSTRUCTIONS,
        tools,
        prompts,
        resources,
        templates,
        changing,
    )
