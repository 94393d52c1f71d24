"""The clients of the official SDKs use `mcptest mcp`, in both eras, over pipes and over HTTP."""

from __future__ import annotations

import json
import os
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.agents.asking import COMMAND
from tests.agents.listening import listening_server
from tests.e2e.demo_peer import BOUND, D, E
from tests.e2e.driving import mcptest

# Looked for, not imported: every worker collects these tests, and few run them.
pytestmark = pytest.mark.skipif(
    find_spec("mcp") is None, reason="the SDK client is one of the pinned peers"
)
NODE = Path(__file__).with_name("node_client.mjs")
ERAS = [("legacy", D), ("auto", E)]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("captures")
    done = mcptest("record", "--server", "demo", "--out", "session.jsonl", cwd=folder)
    assert done.code == 0, done.said
    return folder


async def use(target: Any, mode: str, version: str) -> None:
    from mcp import Client

    async with Client(target, mode=mode) as client:
        assert client.protocol_version == version
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert {"judge_capture", "explain_rule"} <= names
        assert "run_suite" not in names
        # The client checks structured content against the output schema by itself.
        judged = await client.call_tool("judge_capture", {"path": "session.jsonl"})
        assert judged.is_error is False
        assert judged.structured_content["verdict"] == "passed"
        refused = await client.call_tool("judge_capture", {"path": "../x"})
        assert refused.is_error is True
        page = await client.read_resource("mcptest://rules/INV-003")
        assert page.contents[0].text.startswith("INV-003")
        prompt = await client.get_prompt("explain_failure", {"failure": "it broke"})
        assert "it broke" in prompt.messages[0].content.text


def run(target: Any, mode: str, version: str) -> None:
    import anyio

    async def bounded() -> None:
        with anyio.fail_after(BOUND * 2):
            await use(target, mode, version)

    anyio.run(bounded)


@pytest.mark.peer
@pytest.mark.parametrize(("mode", "version"), ERAS)
def test_the_python_client_uses_it_on_stdio(root: Path, mode: str, version: str) -> None:
    from mcp import StdioServerParameters

    words = [*COMMAND[1:], "--root", str(root)]
    run(StdioServerParameters(command=COMMAND[0], args=words), mode, version)


@pytest.mark.peer
def test_the_python_client_uses_it_over_http(root: Path, tmp_path: Path) -> None:
    with listening_server(tmp_path, "--root", str(root)) as server:
        run(server.url, "auto", E)


@pytest.mark.npm
@pytest.mark.parametrize("version", [D, E])
def test_the_node_client_uses_it_on_stdio(root: Path, version: str) -> None:
    words = ["node", str(NODE), version, *COMMAND, "--root", str(root)]
    done = subprocess.run(words, capture_output=True, timeout=BOUND * 2, env=dict(os.environ))
    assert done.returncode == 0, done.stderr.decode()
    seen = json.loads(done.stdout)
    assert "judge_capture" in seen["tools"]
    assert seen["verdict"] == "passed"
    assert seen["page"].startswith("INV-003")
