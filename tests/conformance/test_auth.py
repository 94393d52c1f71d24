"""Authorization: the sound client passes everything, a broken one what it does right.

The clients run in the test's own process, against a scripted server beside it: that is fast. A few
runs are as a user would have them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from mcptest.core.capture import AnyRecord
from mcptest.core.revision import Revision
from mcptest.core.scenario_outcome import CheckResult, CheckStatus, Ended
from mcptest.core.verdict import Side
from mcptest.probe.conformance.client.judged_client import judge_client
from mcptest.probe.conformance.client.runner import ClientOrder, run_client
from mcptest.probe.conformance.client.seen import SeenSession
from mcptest.probe.conformance.scenario_catalogue import scenario_table
from mcptest.servers.scripted.recording import origins_of
from mcptest.wire.capture_forms import decode_records
from tests.conformance.auth_client import AuthClient, StoppedError
from tests.conformance.broken_auth_clients import BROKEN_AUTH_CLIENTS
from tests.conformance.broken_clients import Broken
from tests.support.playing import playing

AUTH_SCENARIOS = {
    name: scenario
    for name, scenario in scenario_table(Side.CLIENT).items()
    if name.startswith("auth/")
}

NEW, OLD = Revision.V2026_07_28, Revision.V2025_11_25
RAW = (sys.executable, "-S", str(Path(__file__).with_name("auth_client.py")))
EVERYWHERE = [
    pytest.param(name, revision, id=f"{name.removeprefix('auth/')}-{revision}")
    for name, scenario in AUTH_SCENARIOS.items()
    for revision in sorted(scenario.revisions, key=lambda one: one.place)
]
REJECTING = [name for name, scenario in AUTH_SCENARIOS.items() if scenario.client_may_fail]

Run = Callable[[str, Revision, Mapping[str, Any]], int]
"""Plays a client at a URL, and says its exit code."""


def played(name: str, revision: Revision, run: Run) -> list[CheckResult]:
    """What is found about a client in a scenario."""
    scenario = AUTH_SCENARIOS[name]
    script = scenario.script()
    with playing(script, revision) as play:
        code = run(play.site.url() + scenario.path, revision, script.context)
        urls = play.site.urls
        play.stop()
        assert play.site.defect == ""
        seen = SeenSession(
            records=play.tape.records,
            revision=revision,
            transport="http",
            urls=urls,
            ended=Ended(code=code),
        )
        return list(judge_client(scenario, seen, 30.0).rows)


def raw(name: str, wrong: str = "") -> Run:
    def run(url: str, revision: Revision, context: Mapping[str, Any]) -> int:
        client = AuthClient(url, revision.wire_version, name, dict(context), wrong)
        try:
            client.play()
        except StoppedError:
            return 1
        return 0

    return run


def of_status(rows: list[CheckResult], *statuses: CheckStatus) -> dict[str, str]:
    return {row.id: row.message for row in rows if row.status in statuses}


def bad_rows(rows: list[CheckResult]) -> dict[str, str]:
    return of_status(rows, CheckStatus.FAILURE, CheckStatus.WARNING)


# -- our own clients ------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "revision"), EVERYWHERE)
def test_a_sound_client_passes_every_check(name: str, revision: Revision) -> None:
    rows = played(name, revision, raw(name))
    assert bad_rows(rows) == {}
    assert of_status(rows, CheckStatus.SUCCESS).keys() >= {AUTH_SCENARIOS[name].checks[0].id}


@pytest.mark.parametrize(
    "broken", BROKEN_AUTH_CLIENTS, ids=lambda one: f"{one.way}-{one.scenario[5:]}-{one.version}"
)
def test_a_broken_client_fails_what_it_does_wrong_and_nothing_else(broken: Broken) -> None:
    rows = played(broken.scenario, Revision(broken.version), raw(broken.scenario, broken.way))
    found, also = bad_rows(rows), set(broken.also)
    assert set(of_status(rows, CheckStatus.FAILURE)) - also == set(broken.fails), found
    assert set(of_status(rows, CheckStatus.WARNING)) - also == set(broken.warns), found
    assert set(found) >= also, found
    assert all(found.values()), "each says why"


def test_the_gallery_is_large_enough() -> None:
    assert len({broken.way for broken in BROKEN_AUTH_CLIENTS}) >= 30


def test_each_check_is_failed_by_some_client() -> None:
    """Whatever nobody fails might as well not be there; a few are only failed by doing nothing."""
    failed = {row for one in BROKEN_AUTH_CLIENTS for row in (*one.fails, *one.warns, *one.also)}
    checks = {check.id for scenario in AUTH_SCENARIOS.values() for check in scenario.checks}
    assert checks - failed == {
        "prm-pathbased-requested",
        "sep-2207-offline-access-requested",
        "sep-2468-client-proceed-no-iss",
        "valid-bearer-token",
    }


@pytest.mark.parametrize("name", AUTH_SCENARIOS)
def test_a_client_that_does_nothing_fails_every_check_that_is_expected(name: str) -> None:
    scenario = AUTH_SCENARIOS[name]
    revision = max(scenario.revisions, key=lambda one: one.place)
    rows = played(name, revision, raw(name, "does-nothing"))
    expected = {
        check.id
        for check in scenario.checks
        if check.silence is CheckStatus.FAILURE
        and (check.revisions is None or revision in check.revisions)
    }
    assert set(of_status(rows, CheckStatus.FAILURE)) == {*expected, "client-spoke"}
    assert set(of_status(rows, CheckStatus.SUCCESS)) == {"client-exit"}


@pytest.mark.parametrize("name", REJECTING)
def test_a_client_that_stops_too_early_has_rejected_nothing(name: str) -> None:
    """It knocks once and leaves: it was never told what it should have rejected."""

    class Knocking(AuthClient):
        def authorize(self, told: dict[str, str], *, step_up: bool = False) -> None:
            raise StoppedError("no")

    def run(url: str, revision: Revision, context: Mapping[str, Any]) -> int:
        with pytest.raises(StoppedError):
            Knocking(url, revision.wire_version, name).play()
        return 1

    rows = played(name, NEW, run)
    deciding = AUTH_SCENARIOS[name].checks[-1].id
    assert deciding in of_status(rows, CheckStatus.FAILURE)


# -- as a user would ------------------------------------------------------------------------------


def order(name: str, *way: str, capture: Path | None = None) -> ClientOrder:
    return ClientOrder(
        command=(*RAW, *(("--break", *way) if way else ())),
        scenario=AUTH_SCENARIOS[name],
        revision=NEW,
        capture=capture,
    )


def test_a_program_passes_with_what_its_context_says() -> None:
    result = run_client(order("auth/pre-registration"), lambda: False)
    assert (result.cause, bad_rows(list(result.checks))) == ("", {}), result.stderr


@pytest.mark.parametrize("way", ["", "sends-another-verifier", "secret-in-the-form"])
def test_a_capture_that_was_kept_is_judged_the_same_again(way: str, tmp_path: Path) -> None:
    path = tmp_path / "capture.jsonl"
    name = "auth/token-endpoint-auth-basic"
    result = run_client(order(name, *([way] if way else []), capture=path), lambda: False)
    records: list[AnyRecord] = list(decode_records(path.read_bytes().splitlines(keepends=True)))
    seen = SeenSession(
        records=records,
        revision=NEW,
        transport="http",
        urls=origins_of(records),
        ended=result.ended,
    )
    again = list(judge_client(AUTH_SCENARIOS[name], seen, 30.0).rows)
    assert [(row.id, row.status) for row in again] == [
        (row.id, row.status) for row in result.checks
    ]
    assert bool(bad_rows(again)) is bool(way)


# -- the client of the Python SDK -----------------------------------------------------------------

KNOWN_OF_THE_SDK = {"auth/pkce-unsupported": {"pkce-unsupported-rejected"}}
"""Seen with 2.3.0: it goes on where the authorization server does not say that it does PKCE."""


def sdk(url: str, revision: Revision, context: Mapping[str, Any]) -> int:
    import anyio

    from tests.peers.python_sdk_auth_client import play

    async def bounded() -> None:
        with anyio.fail_after(20.0):
            await play(url, revision.wire_version, dict(context))

    try:
        anyio.run(bounded)
    except Exception:  # noqa: BLE001 - whatever it is: a program would end with it
        return 1
    return 0


@pytest.mark.parametrize(("name", "revision"), EVERYWHERE)
def test_the_python_client_does_as_it_was_seen_to_do(name: str, revision: Revision) -> None:
    pytest.importorskip("mcp", reason="the SDK client is one of the pinned peers")
    rows = played(name, revision, sdk)
    assert set(bad_rows(rows)) == KNOWN_OF_THE_SDK.get(name, set())
