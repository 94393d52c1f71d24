"""The client of the official Python SDK is tested for real: both eras, both transports."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import Any

import pytest

from mcptest.core.capture import Frame, Trouble
from mcptest.core.revision import Revision
from mcptest.core.scenario_outcome import CheckStatus
from mcptest.core.verdict import Side
from mcptest.probe.conformance.client.runner import ClientOrder, run_client
from mcptest.probe.conformance.scenario_catalogue import scenario_named
from tests.e2e.driving import PEERS
from tests.support.playing import Adder, D, E, playing

# Looked for, not imported: every worker collects these tests, and few run them.
pytestmark = pytest.mark.skipif(
    find_spec("mcp") is None, reason="the SDK client is one of the pinned peers"
)

SDK = (sys.executable, str(PEERS / "python_sdk_client.py"))


def calls(target: Any, mode: str, tool: str) -> tuple[str, str]:
    """The version that is spoken, and the text of the tool's result."""
    import anyio
    from mcp import Client

    async def call() -> tuple[str, str]:
        async with Client(target, mode=mode) as client:
            listed = await client.list_tools()
            assert [one.name for one in listed.tools] == [tool]
            result = await client.call_tool(tool, {"a": 1, "b": 2})
            return client.protocol_version, result.content[0].text

    return anyio.run(call)


@pytest.mark.parametrize(
    ("revision", "mode"), [(D, "legacy"), (D, "auto"), (E, "auto"), (E, E.value)]
)
def test_the_python_client_is_served_over_http(revision: Revision, mode: str) -> None:
    with playing(Adder(), revision) as play:
        assert calls(f"{play.site.url()}/mcp", mode, "add") == (revision.value, "3")
        assert play.site.defect == ""
        assert play.of(Frame)
        assert play.of(Trouble) == []


@pytest.mark.parametrize(("revision", "mode"), [(D, "auto"), (E, E.value)])
def test_the_python_client_launches_a_scenario(revision: Revision, mode: str) -> None:
    from mcp import StdioServerParameters

    words = ["-m", "mcptest", "serve", "--scenario", "tools_call", "--spec-version", revision.value]
    server = StdioServerParameters(command=sys.executable, args=words)
    version, text = calls(server, mode, "add_numbers")
    assert version == revision.value
    assert "3" in text


def test_the_python_client_passes_as_a_program_of_its_own() -> None:
    order = ClientOrder(
        command=SDK,
        scenario=scenario_named(Side.CLIENT, "tools_call"),
        revision=E,
        transport="stdio",
        timeout=60.0,
    )
    result = run_client(order, lambda: False)
    bad = [check for check in result.checks if check.status is not CheckStatus.SUCCESS]
    assert (result.cause, bad) == ("", []), result.stderr
    assert {check.id for check in result.checks} >= {"tool-add-numbers", "client-exit"}
