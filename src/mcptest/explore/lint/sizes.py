"""What tools cost a model: how many there are, how large and how deep they are."""

from __future__ import annotations

from collections.abc import Iterator

from mcptest.explore.lint.declare import lint_rule
from mcptest.explore.lint.finding import ALL_TOOLS, SERVER, Limits, Remark, Severity
from mcptest.explore.lint.surface import Surface, Tool, nodes_of


@lint_rule(
    "W106",
    "tools that cost too much context",
    Severity.WARNING,
    "surface",
    why="All definitions stand in the context of every request.",
    fix="Shorten descriptions, drop tools, or split the server. --max-tokens sets the budget.",
)
def whole_budget(surface: Surface, limits: Limits) -> Iterator[Remark]:
    tokens = surface.size // 4
    if tokens > limits.max_tokens:
        message = f"the tools take about {tokens} tokens (at most {limits.max_tokens})"
        yield Remark(message, "schema_size", item=ALL_TOOLS, kind="server")


@lint_rule(
    "W112",
    "too many tools",
    Severity.WARNING,
    "surface",
    why="The more tools there are, the more often a model picks the wrong one.",
    fix="Merge or drop tools, or split the server. --max-tools sets the number.",
)
def too_many_tools(surface: Surface, limits: Limits) -> Iterator[Remark]:
    count = len(surface.tools)
    if count > limits.max_tools:
        message = f"offers {count} tools (at most {limits.max_tools})"
        yield Remark(message, "tool_count", item=SERVER, kind="server")


@lint_rule(
    "W114",
    "input schema that is nested too deep",
    Severity.WARNING,
    "tool",
    why="Models lose track of where they are in deep objects.",
    fix="Flatten it: members of inner objects as parameters. --max-depth sets the depth.",
)
def deep_schema(tool: Tool, limits: Limits) -> Iterator[Remark]:
    if tool.is_flat and limits.max_depth:
        return
    depth = max((node.depth for node in nodes_of(tool.schema)), default=0)
    if depth > limits.max_depth:
        message = f"the input schema is {depth} levels deep (at most {limits.max_depth})"
        yield Remark(message, "schema")


@lint_rule(
    "W115",
    "tool that costs too much context",
    Severity.WARNING,
    "tool",
    why="The definition stands in the context of every request, whether it is called or not.",
    fix="Shorten the description or the schema. --max-tool-tokens sets the budget.",
)
def tool_budget(tool: Tool, limits: Limits) -> Iterator[Remark]:
    if tool.tokens > limits.max_tool_tokens:
        message = f"takes about {tool.tokens} tokens (at most {limits.max_tool_tokens})"
        yield Remark(message, "token_cost")


@lint_rule(
    "L219",
    "too many parameters",
    Severity.WARNING,
    "tool",
    why="The more there are, the more of them a model gets wrong.",
    fix="Split the tool, or group what belongs together. --max-parameters sets the number.",
)
def too_many_parameters(tool: Tool, limits: Limits) -> Iterator[Remark]:
    count = len(tool.parameters)
    if count > limits.max_parameters:
        yield Remark(f"has {count} parameters (at most {limits.max_parameters})", "schema")
