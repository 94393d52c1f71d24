"""`mcptest mcp` as a child process, asked as an agent asks."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.e2e.demo_peer import D, StdioDemo

Obj = dict[str, Any]
COMMAND = (sys.executable, "-m", "mcptest", "mcp")
ALLOWED = ("--allow-run", "--allow-server", "demo")


class Agent(StdioDemo):
    """One session with the server."""

    def __init__(
        self,
        root: Path,
        *flags: str,
        env: dict[str, str] | None = None,
        command: Sequence[str] = COMMAND,
        revision: str = D,
    ) -> None:
        super().__init__(command=(*command, "--root", str(root), *flags), cwd=root, env=env)
        self.welcome = self.initialize(revision, {})["result"]

    def use(self, tool: str, arguments: Obj | None = None, **params: Any) -> Obj:
        """The result of a tool; fails on an error of the protocol."""
        asked = {"name": tool, "arguments": arguments or {}, **params}
        response = self.request("tools/call", asked)
        assert "result" in response, response
        result: Obj = response["result"]
        return result

    def tools(self) -> list[Obj]:
        tools: list[Obj] = self.request("tools/list")["result"]["tools"]
        return tools


def words_of(result: Obj) -> str:
    """The first text: what a model reads."""
    text: str = result["content"][0]["text"]
    return text


def refused(result: Obj) -> str:
    assert result.get("isError") is True, result
    return words_of(result)


def outcome(result: Obj) -> Obj:
    """The data of a result that is no error."""
    assert not result.get("isError"), words_of(result)
    data: Obj = result["structuredContent"]
    return data
