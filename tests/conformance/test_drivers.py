"""The programs that `mcptest conformance driver` prints: each runs, and takes part in scenarios."""

from __future__ import annotations

import ast
import json
import re
import shutil
import sys
from pathlib import Path

import pytest

from mcptest.core.revision import Revision
from mcptest.core.scenario_outcome import ScenarioResult
from mcptest.core.verdict import Side
from mcptest.probe.conformance.client.driver import Driver, driver_named, drivers
from mcptest.probe.conformance.client.runner import ClientOrder, run_clients
from mcptest.probe.conformance.scenario_catalogue import scenario_table
from tests.conftest import NPM_PEERS
from tests.e2e.driving import mcptest
from tests.peers.warm_peers import warm_peer

INSTALLED = ("python-sdk", "fastmcp", pytest.param("typescript-sdk", marks=pytest.mark.npm))
"""Those whose libraries are among the pinned peers; tests/peers/clients has the others."""
OLD, NEW = Revision.V2025_11_25, Revision.V2026_07_28
CHOSEN = (
    ("tools_call", OLD, "http"),
    ("tools_call", NEW, "http"),
    ("tools_call", OLD, "stdio"),
    ("tools_call", NEW, "stdio"),
    ("elicitation-sep1034-client-defaults", OLD, "http"),
    ("json-schema-2020-12-preservation", NEW, "http"),
    ("http-standard-headers", NEW, "http"),
    ("tools-paging", OLD, "stdio"),
)


def command_of(driver: Driver, folder: Path) -> tuple[str, ...]:
    """As a person would have it: beside the library, under another name than the library's."""
    program = folder / driver.file
    program.write_text(mcptest("conformance", "driver", driver.name).out)
    if driver.path.suffix == ".py":
        return (sys.executable, str(program))
    (folder / "node_modules").symlink_to(NPM_PEERS)
    return (shutil.which("node") or "node", str(program))


def failures(result: ScenarioResult) -> list[str]:
    return [f"{row.id}: {row.message}" for row in result.checks if row.status.is_bad]


@pytest.mark.parametrize("name", INSTALLED)
def test_a_driver_takes_part_in_both_eras_and_over_both_transports(
    name: str, tmp_path: Path
) -> None:
    command = command_of(driver_named(name), tmp_path)
    if command[0] == sys.executable:
        command = warm_peer(*command)
    table = scenario_table(Side.CLIENT)
    orders = [
        ClientOrder(
            command=command, scenario=table[scenario], revision=revision, transport=transport
        )
        for scenario, revision, transport in CHOSEN
    ]
    results = run_clients(orders, jobs=2, tell=lambda one: None, should_stop=lambda: False)
    for result in results:
        assert failures(result) == [], (result.scenario, result.transport, result.stderr)
        assert result.observed, result.scenario


def test_every_call_of_the_context_is_made(tmp_path: Path) -> None:
    driver = driver_named("python-sdk")
    capture = tmp_path / "kept.jsonl"
    order = ClientOrder(
        command=command_of(driver, tmp_path),
        scenario=scenario_table(Side.CLIENT)["http-standard-headers"],
        revision=NEW,
        capture=capture,
    )
    run_clients([order], jobs=1, tell=lambda one: None, should_stop=lambda: False)
    asked = re.findall(r'"sender":"client".*?"method":"([^"]+)"', capture.read_text())
    for method in ("tools/call", "resources/read"):
        assert asked.count(method) == 2, asked
    assert asked.count("prompts/get") == 1, asked


@pytest.mark.parametrize("driver", drivers(), ids=lambda one: one.name)
def test_a_driver_is_short_and_imports_nothing_of_ours(driver: Driver) -> None:
    text = driver.program
    assert len(text.splitlines()) <= 90
    assert "import mcptest" not in text
    assert "from mcptest" not in text
    for variable in ("MCP_CONFORMANCE_CONTEXT", "MCP_CONFORMANCE_SERVER_COMMAND"):
        assert variable in text
    for member in ("toolCalls", "schemaArguments"):
        assert member in text
    for name in scenario_table(Side.CLIENT):
        assert f'"{name}"' not in text, "a driver is for every scenario"
    if driver.path.suffix == ".py":
        ast.parse(text)


def test_without_a_name_all_drivers_are_listed_with_what_to_install() -> None:
    for words in ((), ("--list",)):
        done = mcptest("conformance", "driver", *words)
        assert done.code == 0
        for driver in drivers():
            assert re.search(rf"^{driver.name} ", done.out, re.MULTILINE)
            assert driver.install in done.out
    listed = json.loads(mcptest("conformance", "driver", "--json").out)
    assert [one["name"] for one in listed] == [one.name for one in drivers()]
    assert [one["name"] for one in listed[:4]] == [
        *("python-sdk", "python-sdk-1", "typescript-sdk", "typescript-sdk-1")
    ]


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("langchian", "langchain"), ("typescript", "typescript-sdk"), ("Mastra", "mastra")],
)
def test_an_unknown_driver_is_refused_with_the_nearest_names(typed: str, meant: str) -> None:
    done = mcptest("conformance", "driver", typed)
    assert done.code == 2
    assert f"unknown driver: {typed!r}" in done.err
    assert meant in done.err
    assert done.out == ""
