"""The official Python SDK's client uses the demo, in both eras, over pipes and over HTTP."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.demo_peer import BOUND, D, E, http_demo

# Looked for, not imported: every worker collects these tests, and few run them.
pytestmark = pytest.mark.skipif(
    find_spec("mcp") is None, reason="the SDK client is one of the pinned peers"
)

MODES = [("legacy", D), ("auto", E)]


async def use(target: Any, mode: str) -> tuple[str, list[str], dict[str, Any], list[float]]:
    from mcp import Client, types

    async def sample(context: Any, params: Any) -> Any:
        content = types.TextContent(type="text", text="42")
        return types.CreateMessageResult(role="assistant", content=content, model="none")

    async def elicit(context: Any, params: Any) -> Any:
        return types.ElicitResult(action="accept", content={"answer": "yes"})

    async def roots(context: Any) -> Any:
        return types.ListRootsResult(roots=[types.Root(uri="file:///somewhere")])

    steps: list[float] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        steps.append(done)

    names: list[str] = []
    said: dict[str, Any] = {}
    async with Client(
        target,
        mode=mode,
        sampling_callback=sample,
        elicitation_callback=elicit,
        list_roots_callback=roots,
    ) as client:
        page = await client.list_tools()
        names += [tool.name for tool in page.tools]
        while page.next_cursor:
            page = await client.list_tools(cursor=page.next_cursor)
            names += [tool.name for tool in page.tools]
        for name, arguments in CALLS.items():
            callback = progress if name == "countdown" else None
            result = await client.call_tool(name, arguments, progress_callback=callback)
            said[name] = (result.is_error, result.content[0])
        read = await client.read_resource("demo://greeting")
        said["greeting"] = read.contents[0].text
        prompt = await client.get_prompt("greet", {"name": "Ada"})
        said["prompt"] = prompt.messages[0].content.text
        return client.protocol_version, names, said, steps


CALLS: dict[str, dict[str, Any]] = {
    "add": {"a": 1, "b": 2},
    "weather": {"city": "Zürich"},
    "fail": {},
    "countdown": {"steps": 3},
    "ask_model": {"question": "?"},
    "ask_user": {"question": "?"},
    "list_roots": {},
    "image": {},
    "link": {},
    "list_files": {},
}


def run(target: Any, mode: str, version: str) -> None:
    import anyio

    async def bounded() -> None:
        with anyio.fail_after(BOUND * 2):
            agreed, names, said, steps = await use(target, mode)
        assert agreed == version
        assert set(CALLS) <= set(names)
        assert ("toggle_tool" in names) is (version != E)
        for name in CALLS:
            assert said[name][0] is (name == "fail"), said[name]
        assert said["ask_model"][1].text == "The model answered: 42"
        assert said["ask_user"][1].text.startswith("The user answered: yes")
        assert said["list_roots"][1].text == "file:///somewhere"
        assert said["link"][1].type == "resource_link"
        assert said["greeting"].startswith("Hello")
        assert "Ada" in said["prompt"]
        assert steps == [1, 2, 3]

    anyio.run(bounded)


@pytest.mark.peer
@pytest.mark.parametrize(("mode", "version"), MODES)
def test_the_sdk_client_uses_the_demo_on_stdio(mode: str, version: str) -> None:
    from mcp import StdioServerParameters

    target = StdioServerParameters(command=sys.executable, args=["-m", "mcptest.servers.demo"])
    run(target, mode, version)


@pytest.mark.peer
@pytest.mark.parametrize("response", ["auto", "sse"])
@pytest.mark.parametrize(("mode", "version"), MODES)
def test_the_sdk_client_uses_the_demo_over_http(
    mode: str, version: str, response: str, tmp_path: Path
) -> None:
    with http_demo(tmp_path, "--response", response) as demo:
        run(f"http://127.0.0.1:{demo.port}/mcp", mode, version)
