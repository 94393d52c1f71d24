"""Client libraries that are put through the scenarios: which, in which version, by which driver.

`make client-peers` installs them, each in its own environment; nothing of it is needed for `make
test`, which judges the captures that were recorded.
"""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from mcptest.probe.conformance.client.driver import driver_named

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
INSTALLED = ROOT / ".cache" / "clients"
NPM = INSTALLED / "npm"


@dataclass(frozen=True)
class Library:
    name: str
    """Of its folder, its requirements and its captures."""
    title: str
    package: str
    """As its registry has it."""
    driver: str
    language: str = "python"

    @property
    def pins(self) -> Path:
        if self.language == "python":
            return HERE / "requirements" / f"{self.name}.txt"
        return HERE / "npm" / self.name / "package.json"

    @property
    def version(self) -> str:
        """The one that is pinned."""
        pinned = rf"^{re.escape(self.package)}==(.+)$"
        if self.language != "python":
            pinned = rf'"{re.escape(self.package)}": "(.+)"'
        found = re.search(pinned, self.pins.read_text(), re.MULTILINE)
        assert found is not None, f"{self.package} is not pinned in {self.pins}"
        return found[1]

    @property
    def home(self) -> Path:
        return (INSTALLED if self.language == "python" else NPM) / self.name

    @property
    def captures(self) -> Path:
        return HERE / "captures" / f"{self.name}.zip"

    def command(self) -> list[str]:
        """What runs its driver, which is copied to where the library is found."""
        driver = driver_named(self.driver)
        program = self.home / driver.file
        program.write_text(driver.program)
        if self.language == "python":
            return [str(self.home / "bin" / "python"), str(program)]
        return [shutil.which("node") or "node", str(program)]


LIBRARIES = (
    Library("mcp-1.9", "Python SDK 1.9", "mcp", "python-sdk-1"),
    Library("mcp-1.12", "Python SDK 1.12", "mcp", "python-sdk-1"),
    Library("mcp-1.20", "Python SDK 1.20", "mcp", "python-sdk-1"),
    Library("mcp-1.30", "Python SDK 1.30", "mcp", "python-sdk-1"),
    Library("fastmcp-2", "FastMCP 2", "fastmcp", "fastmcp"),
    Library("fastmcp-3", "FastMCP 3", "fastmcp", "fastmcp"),
    Library("agno", "Agno", "agno", "agno"),
    Library("autogen", "AutoGen", "autogen-ext", "autogen"),
    Library("chuk-mcp", "chuk-mcp", "chuk-mcp", "chuk-mcp"),
    Library("langchain", "LangChain", "langchain-mcp-adapters", "langchain"),
    Library("llama-index", "LlamaIndex", "llama-index-tools-mcp", "llama-index"),
    Library("mcp-use", "mcp-use", "mcp-use", "mcp-use"),
    Library("openai-agents", "OpenAI Agents SDK", "openai-agents", "openai-agents"),
    Library("pydantic-ai", "Pydantic AI", "pydantic-ai-slim", "pydantic-ai"),
    Library("smolagents", "smolagents", "smolagents", "smolagents"),
    Library("strands", "Strands Agents", "strands-agents", "strands"),
    Library(
        "sdk-1.10", "TypeScript SDK 1.10", "@modelcontextprotocol/sdk", "typescript-sdk-1", "node"
    ),
    Library(
        "sdk-1.17", "TypeScript SDK 1.17", "@modelcontextprotocol/sdk", "typescript-sdk-1", "node"
    ),
    Library(
        "sdk-1.22", "TypeScript SDK 1.22", "@modelcontextprotocol/sdk", "typescript-sdk-1", "node"
    ),
    Library(
        "sdk-1.32", "TypeScript SDK 1.32", "@modelcontextprotocol/sdk", "typescript-sdk-1", "node"
    ),
    Library("ai-sdk", "AI SDK", "@ai-sdk/mcp", "ai-sdk", "node"),
    Library("langchain-js", "LangChain.js", "@langchain/mcp-adapters", "langchain-js", "node"),
    Library("mastra", "Mastra", "@mastra/mcp", "mastra", "node"),
    Library("mcp-client", "mcp-client", "mcp-client", "mcp-client", "node"),
    Library("mcporter", "MCPorter", "mcporter", "mcporter", "node"),
    Library(
        "openai-agents-js", "OpenAI Agents SDK (TypeScript)", "@openai/agents", "openai-agents-js",
        "node",
    ),
)  # fmt: skip
