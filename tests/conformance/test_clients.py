"""Clients in the scenarios: the sound one passes everything, a broken one what it does right."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from mcptest.core.revision import Era, Revision
from mcptest.core.scenario_outcome import CheckStatus, ScenarioResult
from mcptest.core.verdict import Side
from mcptest.probe.conformance.client.runner import ClientOrder, run_client
from mcptest.probe.conformance.scenario_catalogue import scenario_table
from tests.conformance.broken_clients import BROKEN_CLIENTS, Broken
from tests.peers.warm_peers import warm_peer

RAW = (sys.executable, str(Path(__file__).with_name("raw_client.py")))
OURS = [name for name in scenario_table(Side.CLIENT) if not name.startswith("auth/")]


def ran(
    scenario: str,
    revision: Revision,
    *way: str,
    transport: str = "http",
    command: tuple[str, ...] = (),
    timeout: float = 30.0,
) -> ScenarioResult:
    order = ClientOrder(
        command=(*(command or warm_peer(*RAW)), *(("--break", *way) if way else ())),
        scenario=scenario_table(Side.CLIENT)[scenario],
        revision=revision,
        transport=transport,
        timeout=timeout,
    )
    return run_client(order, lambda: False)


def bad_rows(result: ScenarioResult) -> dict[str, str]:
    return {check.id: check.message for check in result.checks if check.status.is_bad}


@pytest.mark.parametrize("name", OURS)
def test_a_sound_client_passes_over_http_in_every_revision(name: str) -> None:
    for revision in scenario_table(Side.CLIENT)[name].revisions:
        result = ran(name, revision)
        assert not result.cause, result.stderr
        assert bad_rows(result) == {}, (revision, result.stderr)
        assert any(check.status is CheckStatus.SUCCESS for check in result.checks)


@pytest.mark.parametrize("era", Era)
@pytest.mark.parametrize(
    "name", [name for name in OURS if "stdio" in scenario_table(Side.CLIENT)[name].transports]
)
def test_a_sound_client_passes_over_stdio(name: str, era: Era) -> None:
    spoken = [one for one in scenario_table(Side.CLIENT)[name].revisions if one.era is era]
    if not spoken:
        assert name in ONE_ERA_ONLY
        return
    result = ran(name, max(spoken), transport="stdio")
    assert not result.cause, result.stderr
    assert bad_rows(result) == {}, result.stderr


def test_a_client_that_declines_shows_no_defaults_and_fails_nothing() -> None:
    result = ran("elicitation-sep1034-client-defaults", Revision.V2025_11_25, "declines")
    assert bad_rows(result) == {}, result.stderr
    told = {check.message for check in result.checks if check.status is CheckStatus.UNTESTABLE}
    assert told == {"the client answered the elicitation with decline, so it showed no defaults"}


ONE_ERA_ONLY = {
    *("initialize", "elicitation-sep1034-client-defaults", "sep-2322-client-request-state"),
    *("server-requests", "version-unknown", "era-fallback"),
}


@pytest.mark.parametrize(
    "broken", BROKEN_CLIENTS, ids=lambda one: f"{one.way}-{one.scenario}-{one.version}"
)
def test_a_broken_client_fails_what_it_does_wrong_and_nothing_else(broken: Broken) -> None:
    short = 1.0 if broken.way == "hangs" else 30.0
    result = ran(broken.scenario, Revision(broken.version), broken.way, timeout=short)
    found = bad_rows(result)
    assert set(found) == {*broken.fails, *broken.warns, *broken.also}, (found, result.stderr)
    assert all(found.values()), "each says why"


def test_the_gallery_is_large_enough() -> None:
    assert len({broken.way for broken in BROKEN_CLIENTS}) >= 30


@pytest.mark.parametrize("name", list(scenario_table(Side.CLIENT)))
def test_a_client_that_does_nothing_passes_nothing(name: str) -> None:
    revision = max(scenario_table(Side.CLIENT)[name].revisions)
    result = ran(name, revision, command=("true",))
    assert not any(
        check.status is CheckStatus.SUCCESS for check in result.checks if check.id != "client-exit"
    )
    assert result.failed
