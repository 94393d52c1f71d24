"""docs/commands/mcp.md tells of every tool, and of what it needs."""

from __future__ import annotations

import re
from pathlib import Path

from mcptest.commands.mcp.roots import MAX_BYTES, MAX_FILES, Allowed, allowed_of
from mcptest.commands.mcp.run import Toolbox, read_offers, tools_for
from mcptest.commands.mcp.tool_commands import (
    DEFAULT_LIMIT,
    MAX_CHILDREN,
    MAX_FINDINGS,
    MAX_LIMIT,
    MAX_REPORT,
    CommandProcesses,
)

PAGE = (Path(__file__).parents[2] / "docs" / "commands" / "mcp.md").read_text()
WORDS = {1: "one", 2: "two", 3: "three", 4: "four"}


def titles(*, run: bool, write: bool) -> dict[str, str]:
    servers = ["demo"] if run else []
    allowed: Allowed = allowed_of([], run=run, servers=servers, config=None, write=write)
    tools = tools_for(allowed, Toolbox(allowed, CommandProcesses()), read_offers())
    return {tool.name: tool.title for tool in tools}


def test_the_table_is_that_of_the_code() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (?:`([\w-]+)` )?\| (.+) \|$", PAGE, re.MULTILINE)
    always = titles(run=False, write=False)
    running = titles(run=True, write=False)
    everything = titles(run=True, write=True)
    expected = []
    for name, title in everything.items():
        flag = "" if name in always else "--allow-run" if name in running else "--allow-write"
        expected.append((name, flag, title))
    assert rows == expected


def test_the_limits_are_those_of_the_code() -> None:
    assert f"(at most {MAX_FILES:,} files and {MAX_BYTES >> 20} MB)" in PAGE
    limits = f"(default: {DEFAULT_LIMIT} s, maximum: {MAX_LIMIT} s)"
    assert f"{limits}. {WORDS[MAX_CHILDREN].capitalize()} calls run at once" in PAGE
    assert f"at most {MAX_REPORT // 1000} kB" in PAGE
    assert f"up to {MAX_FINDINGS} findings" in PAGE
