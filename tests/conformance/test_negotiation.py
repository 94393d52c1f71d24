"""A scenario runs in the newest revision that client and server share; a client is never blamed for
what it does not speak or declare, and is told one cause where it never got to the point."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest

from mcptest.core.revision import Era, Revision
from mcptest.core.scenario_outcome import CheckStatus, ScenarioResult
from mcptest.core.verdict import Side
from mcptest.probe.conformance.client.runner import ClientOrder, run_client
from mcptest.probe.conformance.client.seen import offered_revisions
from mcptest.probe.conformance.scenario_catalogue import scenario_table
from tests.e2e.driving import mcptest, messages_of
from tests.peers.warm_peers import warm_peer

RAW = (sys.executable, str(Path(__file__).with_name("raw_client.py")))
OLD, NEW = Revision.V2025_11_25, Revision.V2026_07_28


def ran(
    scenario: str,
    *way: str,
    revision: Revision | None = None,
    transport: str = "http",
    command: tuple[str, ...] = (),
    **more: str,
) -> ScenarioResult:
    """Without a revision, the client chooses."""
    found = scenario_table(Side.CLIENT)[scenario]
    order = ClientOrder(
        command=(*(command or warm_peer(*RAW)), *(("--break", *way) if way else ())),
        scenario=found,
        revision=revision or max(found.revisions),
        negotiates=revision is None,
        transport=transport,
        **more,  # type: ignore[arg-type]  # options of the order
    )
    return run_client(order, lambda: False)


def bad(result: ScenarioResult) -> dict[str, str]:
    return {check.id: check.message for check in result.checks if check.status.is_bad}


def statuses(result: ScenarioResult) -> dict[str, CheckStatus]:
    return {check.id: check.status for check in result.checks}


# -- which revision -------------------------------------------------------------------------------


@pytest.mark.parametrize("transport", ["http", "stdio"])
@pytest.mark.parametrize("spoken", [one for one in Revision if one is not Revision.DRAFT], ids=str)
def test_without_a_wish_the_newest_that_the_client_speaks_is_spoken(
    spoken: Revision, transport: str
) -> None:
    result = ran("tools_call", f"speaks-only-{spoken}", transport=transport)
    assert (result.revision, bad(result)) == (spoken, {}), result.stderr
    assert statuses(result)["tool-add-numbers"] is CheckStatus.SUCCESS


@pytest.mark.parametrize("transport", ["http", "stdio"])
def test_a_client_that_proposes_an_older_revision_is_answered_in_it(transport: str) -> None:
    result = ran("tools_call", "speaks-only-2025-03-26", revision=OLD, transport=transport)
    assert (result.revision, bad(result)) == (Revision.V2025_03_26, {})


@pytest.mark.parametrize("transport", ["http", "stdio"])
@pytest.mark.parametrize(
    ("scenario", "spoken", "wanted"),
    [
        ("json-schema-2020-12-preservation", "2025-06-18", OLD),
        ("json-schema-2020-12-preservation", "2025-06-18", NEW),
        ("initialize", "2026-07-28", OLD),
    ],
)
def test_a_client_that_speaks_none_of_them_is_told_one_cause(
    scenario: str, spoken: str, wanted: Revision, transport: str
) -> None:
    told = ran(scenario, f"speaks-only-{spoken}", revision=wanted, transport=transport)
    assert told.unreached.startswith(f"the client supports only {spoken}: "), told.checks
    assert (told.failed, told.told, set(bad(told).values())) == (True, (), {told.unreached})
    free = ran(scenario, f"speaks-only-{spoken}", transport=transport)
    assert {row.status for row in free.checks} == {CheckStatus.UNTESTABLE}
    assert (free.failed, free.observed) == (False, False)


def test_a_client_that_speaks_no_older_revision_may_leave() -> None:
    result = ran("version-older", "speaks-only-2025-11-25", revision=OLD)
    assert (result.failed, result.observed) == (False, False)
    assert ran("version-older", revision=OLD).revision is Revision.V2025_06_18


def test_a_wish_includes_the_older_revisions_of_the_handshake_only() -> None:
    scenario = scenario_table(Side.CLIENT)["tools_call"]
    assert offered_revisions(scenario, NEW) == (NEW,)
    assert offered_revisions(scenario, OLD)[-1] is OLD
    assert len(offered_revisions(scenario, OLD)) == 4
    assert offered_revisions(scenario, None)[-1] is NEW


HANDSHAKE_SCENARIOS = [
    name
    for name, one in scenario_table(Side.CLIENT).items()
    if OLD in one.revisions and not name.startswith("auth/")
]


@pytest.mark.parametrize("name", HANDSHAKE_SCENARIOS)
def test_a_client_of_both_eras_is_not_blamed_for_asking_which_one_it_is(name: str) -> None:
    result = ran(name, "asks-discover-first", revision=OLD)
    assert bad(result) == {}, result.stderr


def test_a_client_of_both_eras_is_not_blamed_over_stdio_either() -> None:
    for name in ("tools_call", "era-fallback"):
        result = ran(name, "asks-discover-first", revision=OLD, transport="stdio")
        assert bad(result) == {}, result.stderr


@pytest.mark.parametrize("transport", ["http", "stdio"])
@pytest.mark.parametrize("revision", [OLD, NEW], ids=str)
def test_a_client_that_connects_twice_starts_its_ids_again(
    revision: Revision, transport: str
) -> None:
    result = ran("tools_call", "connects-twice", revision=revision, transport=transport)
    assert bad(result) == {}, result.stderr


def test_scenarios_exist_in_the_older_revisions_wherever_their_subject_does() -> None:
    table = scenario_table(Side.CLIENT)
    oldest = {name: min(one.revisions) for name, one in table.items()}
    assert oldest["tools_call"] is oldest["initialize"] is oldest["slow-call"]
    assert oldest["tools_call"] is oldest["client-capabilities"] is Revision.V2024_11_05
    assert oldest["sse-retry"] is oldest["elicitation-sep1034-client-defaults"] is OLD
    assert all(max(one.revisions).era in Era for one in table.values())


# -- what is declared -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scenario", "revision"),
    [("elicitation-sep1034-client-defaults", OLD), ("sep-2322-client-request-state", NEW)],
)
def test_a_client_that_declares_no_elicitation_is_asked_nothing(
    scenario: str, revision: Revision
) -> None:
    result = ran(scenario, "hides-elicitation", revision=revision)
    assert bad(result) == {}, result.stderr
    untested = {row.message for row in result.checks if row.status is CheckStatus.UNTESTABLE}
    assert untested == {"the client does not declare elicitation, so it was asked nothing"}


@pytest.mark.parametrize("revision", [OLD, NEW], ids=str)
def test_cancel_neither_proves_nor_disproves_elicitation(revision: Revision) -> None:
    declared = ran("client-capabilities", "cancels", revision=revision)
    assert statuses(declared)["capability-elicitation-form"] is CheckStatus.UNTESTABLE
    assert bad(declared) == {}
    silent = "cancels-undeclared-elicitation"
    undeclared = ran("client-capabilities-undeclared", silent, revision=revision)
    assert bad(undeclared) == {}
    assert statuses(undeclared)["undeclared-elicitation-form"] is CheckStatus.SUCCESS


def test_capabilities_may_differ_from_request_to_request() -> None:
    result = ran("client-capabilities", "declares-for-some-requests", revision=NEW)
    assert bad(result) == {}
    assert statuses(result)["capabilities-on-every-request"] is CheckStatus.SUCCESS


@pytest.mark.parametrize("transport", ["http", "stdio"])
@pytest.mark.parametrize("revision", [OLD, NEW], ids=str)
def test_only_probing_asks_and_only_strict_wants_declarations(
    revision: Revision, transport: str
) -> None:
    for mode, lies, hides in (("strict", False, True), ("permissive", False, False)):
        both = {"revision": revision, "transport": transport, "capabilities": mode}
        liar = ran("client-capabilities", "lies-about-roots", **both)  # type: ignore[arg-type]
        assert ("capability-roots" in bad(liar)) is lies
        modest = ran("client-capabilities", "hides-roots", **both)  # type: ignore[arg-type]
        assert ("capability-roots" in bad(modest)) is hides
        secret = ran("client-capabilities-undeclared", "undeclared-roots", **both)  # type: ignore[arg-type]
        assert bad(secret) == {}


@pytest.mark.parametrize("transport", ["http", "stdio"])
@pytest.mark.parametrize("revision", [OLD, NEW], ids=str)
@pytest.mark.parametrize("scenario", ["client-capabilities", "client-capabilities-undeclared"])
def test_only_the_scenario_that_says_so_asks_for_what_is_not_declared(
    scenario: str, revision: Revision, transport: str, tmp_path: Path
) -> None:
    capture = tmp_path / "session.jsonl"
    both = {"revision": revision, "transport": transport, "capture": capture}
    result = ran(scenario, "hides-roots", **both)  # type: ignore[arg-type]
    assert bad(result) == {}, result.stderr
    said = json.dumps(messages_of(capture, "server"))
    is_legal = scenario == "client-capabilities"
    assert ("roots/list" in said) is not is_legal
    assert ("sampling/createMessage" in said) is is_legal


def client(*options: str, breaks: str = "", command: str = "") -> tuple[int, str, str]:
    words = command or shlex.join((*warm_peer(*RAW), *(("--break", breaks) if breaks else ())))
    done = mcptest("conformance", "client", "--command", words, *options)
    return done.code, done.out, done.err


def test_strict_catches_the_liar_by_its_stale_entry(tmp_path: Path) -> None:
    """Whoever lacks a capability lists it; once it is declared all the same, the run is red."""
    known = tmp_path / "baseline.yml"
    known.write_text("client:\n  - client-capabilities:capability-roots\n")
    options = ("--scenario", "client-capabilities", "--capabilities", "strict")
    options = (*options, "--expected-failures", str(known))
    assert client(*options, breaks="hides-roots")[0] == 0
    code, said, _ = client(*options, breaks="lies-about-roots")
    assert code == 1
    assert "stale" in said


# -- never got to the point -----------------------------------------------------------------------


@pytest.mark.parametrize("transport", ["http", "stdio"])
def test_a_client_that_never_got_to_the_point_is_told_once_with_its_stderr(
    transport: str, tmp_path: Path
) -> None:
    script = tmp_path / "client.py"
    script.write_text("import sys\nsys.exit('no module named mcp')\n")
    command = f"{sys.executable} {script}"
    options = ("--scenario", "client-capabilities", "--transport", transport)
    code, said, _ = client(*options, command=command)
    assert code == 1
    said = " ".join(said.split())
    assert said.count("no module named mcp") == 1
    assert "the client exited with code 1" in said
    assert "not observed" not in said
    assert "capability-roots" not in said


def test_a_client_that_stops_on_the_way_is_told_where() -> None:
    result = ran("tools_call", "calls-nothing", revision=OLD)
    assert result.unreached == (
        "the client did not call add_numbers; its last message was tools/list; "
        "it exited with code 0"
    )


# -- warnings and captures ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "expected"), [((), 1), (("--fail-on-warning",), 1), (("--no-fail-on-warning",), 0)]
)
def test_a_warning_of_a_scenario_fails_a_client_as_in_the_official_suite(
    options: tuple[str, ...], expected: int
) -> None:
    code, said, _ = client("--scenario", "tools-paging", *options, breaks="reads-one-page")
    assert code == expected
    assert ("1 failed (1 for warnings" in said) is bool(expected)


def test_a_capture_that_a_failure_names_exists(tmp_path: Path) -> None:
    options = ("--scenario", "tools_call", "-o", str(tmp_path / "out"))
    _, said, _ = client(*options, "--json", breaks="sends-text")
    assert Path(json.loads(said)["results"][0]["capture"]).exists()
    for more in ((), ("--html", str(tmp_path / "page.html"))):
        _, said, _ = client("--scenario", "tools_call", *more, breaks="sends-text")
        assert "of the capture" not in said
        assert "keep the capture with -o DIR" in said
        _, said, _ = client("--scenario", "tools_call", *more, "--json", breaks="sends-text")
        assert not json.loads(said)["results"][0].get("capture")
