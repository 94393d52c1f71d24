"""Real SDK clients in the scenarios, over stdio and HTTP, in both eras."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from mcptest.core.revision import Revision
from mcptest.core.verdict import Side
from mcptest.probe.conformance.client.runner import ClientOrder, run_client, run_clients
from mcptest.probe.conformance.scenario_catalogue import scenario_table
from tests.peers.warm_peers import warm_peer

HERE = Path(__file__).parent
PYTHON = (sys.executable, str(HERE / "python_sdk_client.py"))
TYPESCRIPT = ("node", str(HERE / "typescript_client.mjs"))
ERAS = (Revision.V2025_11_25, Revision.V2026_07_28)


def order(
    command: tuple[str, ...], scenario: str, revision: Revision, transport: str = "http"
) -> ClientOrder:
    return ClientOrder(
        command=command,
        scenario=scenario_table(Side.CLIENT)[scenario],
        revision=revision,
        transport=transport,
    )


def warmed(command: tuple[str, ...]) -> tuple[str, ...]:
    return warm_peer(*command) if command == PYTHON else command


@pytest.mark.parametrize("revision", ERAS, ids=str)
@pytest.mark.parametrize("command", [PYTHON, TYPESCRIPT], ids=["python", "typescript"])
def test_a_client_that_launches_its_server_is_tested_for_real(
    command: tuple[str, ...], revision: Revision
) -> None:
    result = run_client(order(command, "tools_call", revision, "stdio"), lambda: False)
    assert not result.cause, result.stderr
    assert [check.id for check in result.checks if check.status.is_bad] == [], result.stderr
    assert result.observed


@pytest.mark.parametrize("revision", ERAS, ids=str)
@pytest.mark.parametrize("transport", ["http", "stdio"])
@pytest.mark.parametrize("command", [PYTHON, TYPESCRIPT], ids=["python", "typescript"])
def test_a_client_of_both_eras_finds_out_which_one_the_server_speaks(
    command: tuple[str, ...], transport: str, revision: Revision
) -> None:
    """As the newest revision tells it to: `server/discover` first, then `initialize`."""
    wanted = order(warmed(command), "tools_call", revision, transport)
    result = run_client(replace(wanted, env={"BOTH_ERAS": "1"}), lambda: False)
    assert [check.id for check in result.checks if check.status.is_bad] == [], result.stderr
    assert (result.revision, result.observed) == (revision, True)


KNOWN = {
    ("python", "unknown-response"): {"unknown-response-survived", "client-exit"},
    ("python", "disconnect-mid-call"): {"disconnect-mid-call-survived", "client-exit"},
}
"""The Python SDK takes the first response on a call's stream for its answer, whatever its id, and a
connection that breaks ends the whole client."""


@pytest.mark.parametrize(
    ("name", "command"), [("python", PYTHON), ("typescript", TYPESCRIPT)], ids=["py", "ts"]
)
def test_sdk_clients_fail_what_they_are_known_to_fail(name: str, command: tuple[str, ...]) -> None:
    chosen = ("client-capabilities", "unknown-response", "disconnect-mid-call")
    orders = [order(warmed(command), scenario, Revision.V2026_07_28) for scenario in chosen]
    for result in run_clients(orders, jobs=2, tell=lambda one: None, should_stop=lambda: False):
        found = {check.id for check in result.checks if check.status.is_bad}
        assert found == KNOWN.get((name, result.scenario), set()), (result.scenario, result.stderr)
