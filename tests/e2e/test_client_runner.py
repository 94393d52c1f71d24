"""One client in one scenario: whatever it does ends in a result, in time, with nothing left."""

from __future__ import annotations

import json
import sys
import threading
import time
from pathlib import Path

import pytest

from mcptest.commands.conformance.run import write_results
from mcptest.core.revision import Revision
from mcptest.core.scenario_outcome import CheckResult, CheckStatus, ScenarioResult
from mcptest.core.verdict import Side
from mcptest.probe.conformance.client import runner
from mcptest.probe.conformance.client.judged_client import judged_capture
from mcptest.probe.conformance.client.runner import ClientOrder, run_client, run_clients
from mcptest.probe.conformance.client.seen import SeenSession
from mcptest.probe.conformance.scenario import CheckFinding, Scenario, ScenarioCheck
from mcptest.servers.scripted import recording
from mcptest.servers.scripted.script import Obj, Script, ScriptedCall, ScriptStage
from tests.e2e.driving import BOUND, is_alive, records_of, wait_until
from tests.support.playing import Adder, D, E

RAW = Path(__file__).with_name("raw_client.py")


class Sums(Adder):
    tools = ({"name": "add_numbers", "description": "+", "inputSchema": {"type": "object"}},)

    def call_tool(self, call: ScriptedCall, name: str, arguments: Obj) -> None:
        self.text(call, str(arguments["a"] + arguments["b"]))


class Settles(Sums):
    called = False

    def call_tool(self, call: ScriptedCall, name: str, arguments: Obj) -> None:
        super().call_tool(call, name, arguments)
        self.called = True

    def settled(self) -> bool:
        return self.called


class Fails(Sums):
    def call_tool(self, call: ScriptedCall, name: str, arguments: Obj) -> None:
        raise RuntimeError("oh")


class Addressed(Sums):
    def begin(self, stage: ScriptStage) -> None:
        super().begin(stage)
        self.context = {"issuer": stage.url()}


def calls(seen: SeenSession):  # type: ignore[no-untyped-def]  # a judge, as scenarios have them
    for one in seen.requests("tools/call"):
        yield CheckFinding(CheckStatus.SUCCESS, record=one.place)


def scenario(script: type[Script] = Sums, **changed: object) -> Scenario[SeenSession]:
    given = {
        "name": "sums",
        "title": "Sums",
        "description": "The client adds two numbers.",
        "revisions": frozenset({D, E}),
        "suites": frozenset({"ours"}),
        "script": script,
        "checks": (
            ScenarioCheck(id="called", title="Called", description="it calls", judge=calls),
        ),
        **changed,
    }
    return Scenario(**given)  # type: ignore[arg-type]  # as the tests name them


def order(what: str, *words: str, script: type[Script] = Sums, **changed: object) -> ClientOrder:
    given = {
        "command": (sys.executable, "-S", str(RAW), what, *words),
        "scenario": scenario(script),
        "revision": D,
        **changed,
    }
    return ClientOrder(**given)  # type: ignore[arg-type]  # as the tests name them


def run(what: str, *words: str, **changed: object) -> ScenarioResult:
    return run_client(order(what, *words, **changed), lambda: False)  # type: ignore[arg-type]  # as above


def row(result: ScenarioResult, identifier: str) -> CheckResult:
    [found] = [check for check in result.checks if check.id == identifier]
    return found


def statuses(result: ScenarioResult) -> dict[str, CheckStatus]:
    return {check.id: check.status for check in result.checks}


# -- how it ends -------------------------------------------------------------------------------


@pytest.mark.parametrize("revision", [D, E])
def test_a_good_client_passes_every_check(revision: Revision) -> None:
    result = run("good", revision=revision)
    assert set(statuses(result)) == {"called", "wire-schema-valid", "client-exit"}
    assert set(statuses(result).values()) == {CheckStatus.SUCCESS}, result
    assert not result.failed
    assert result.ended is not None
    assert result.ended.well


def test_a_client_that_does_nothing_never_passes() -> None:
    empty = scenario(checks=())
    for changed in (scenario(), empty):
        result = run("nothing", scenario=changed)
        assert result.failed
        assert "sent no request" in row(result, "client-spoke").message
        assert row(result, "client-exit").status is CheckStatus.SUCCESS


@pytest.mark.parametrize(
    ("may_fail", "expected"), [(False, CheckStatus.FAILURE), (True, CheckStatus.SUCCESS)]
)
def test_the_exit_code_counts_unless_giving_up_is_right(
    may_fail: bool, expected: CheckStatus
) -> None:
    result = run("ends_with", "3", scenario=scenario(client_may_fail=may_fail))
    assert row(result, "client-exit").status is expected
    assert "3" in row(result, "client-exit").message
    assert row(result, "called").status is CheckStatus.SUCCESS


def test_a_crash_counts_even_where_giving_up_is_right() -> None:
    result = run("crashes", scenario=scenario(client_may_fail=True))
    assert row(result, "client-exit").message == "the client was killed by SIGSEGV"
    assert row(result, "client-exit").status is CheckStatus.FAILURE


def test_a_client_that_stays_is_ended_at_its_limit() -> None:
    began = time.monotonic()
    result = run("stays", timeout=0.3)
    assert time.monotonic() - began < BOUND
    assert result.ended is not None
    assert result.ended.timed_out
    assert "within 0.3s" in row(result, "client-exit").message
    assert result.failed


def test_a_client_that_ignores_the_polite_signal_is_killed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(runner, "TERMINATE_SECONDS", 0.1)
    is_deaf = tmp_path / "deaf"
    result = run_client(order("deaf", str(is_deaf)), is_deaf.exists)
    assert result.ended is not None
    assert result.ended.signal == 9


def test_a_client_that_stays_after_all_was_seen_is_ended_without_a_failure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(runner, "LEAVE_SECONDS", 0.1)
    result = run("stays", script=Settles)
    assert row(result, "client-exit").status is CheckStatus.INFO
    assert row(result, "called").status is CheckStatus.SUCCESS
    assert not result.failed
    assert result.duration_ms < 25_000


def test_a_client_that_cannot_be_started_is_said_with_its_cause() -> None:
    result = run_client(
        ClientOrder(command=("no-such-client",), scenario=scenario(), revision=D), lambda: False
    )
    assert result.failed
    assert "command not found on the PATH: 'no-such-client'" in result.cause
    assert result.ended is not None
    assert result.ended.not_started


def test_a_run_that_is_stopped_ends_its_client_with_all_that_it_started(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    result = run_client(order("stays_with_children", str(pids)), pids.exists)
    assert result.cause == "interrupted"
    assert [pid for pid in pids.read_text().split() if is_alive(int(pid))] == []


def test_a_defect_of_the_script_is_ours_and_no_verdict() -> None:
    result = run("good", script=Fails)
    assert result.checks == ()
    assert "a defect of mcptest: Fails failed: RuntimeError: oh" in result.cause


def test_a_defect_of_a_check_is_ours_and_no_verdict() -> None:
    def broken(seen: SeenSession):  # type: ignore[no-untyped-def]  # a judge, as scenarios have them
        raise ZeroDivisionError("oh")
        yield

    check = ScenarioCheck(id="broken", title="", description="", judge=broken)
    result = run("good", scenario=scenario(checks=(check,)))
    assert "a defect of mcptest: ZeroDivisionError" in result.cause


# -- what it is given, and what is kept of it --------------------------------------------------


def test_a_client_is_told_what_the_official_suite_tells_it() -> None:
    told = json.loads(run("tell", "more").stdout)
    assert told["argv"][0] == "more"
    assert told["argv"][1].startswith("http://localhost:")
    assert told["argv"][1].endswith("/mcp")
    assert told["MCP_CONFORMANCE_SCENARIO"] == "sums"
    assert told["MCP_CONFORMANCE_PROTOCOL_VERSION"] == "2025-11-25"
    assert "MCP_CONFORMANCE_CONTEXT" not in told


def test_the_context_holds_the_name_and_what_scenario_and_script_have() -> None:
    with_context = scenario(Addressed, context={"client_id": "x"}, path="")
    told = json.loads(run("tell", scenario=with_context).stdout)
    url = told["argv"][-1]
    assert not url.endswith("/")
    assert json.loads(told["MCP_CONFORMANCE_CONTEXT"]) == {
        "name": "sums",
        "client_id": "x",
        "issuer": url,
    }


def test_a_command_for_a_shell_gets_the_url_behind_it() -> None:
    command = ("MORE=1;", "echo", "$MORE", "'a  b'")
    result = run("", command=command, shell=True)
    assert result.stdout.startswith("1 a  b http://localhost:")


def test_what_a_client_writes_is_kept_to_a_limit_and_made_safe() -> None:
    result = run("loud")
    assert len(result.stdout) < 300_000
    assert result.stdout.startswith("(the first ")
    assert "\x1b" not in result.stdout
    assert result.stderr == "the last words\n"


def test_the_capture_is_kept_and_can_be_judged_again(tmp_path: Path) -> None:
    capture = tmp_path / "c.jsonl"
    result = run("good", capture=capture)
    assert result.capture == str(capture)
    records = records_of(capture)
    assert [records[0]["kind"], records[-1]["kind"]] == ["capture", "end"]
    called_at = row(result, "called").record
    assert called_at is not None
    assert records[called_at]["message"]["method"] == "tools/call"
    again = judged_capture(scenario(), [str(capture)])
    assert again.revision is D
    assert again.checks == tuple(check for check in result.checks if check.id != "client-exit")


def test_results_are_written_as_the_official_suite_has_them(tmp_path: Path) -> None:
    result = run(
        "ends_with", "1", capture=tmp_path / "c.jsonl", scenario=scenario(name="auth/sums")
    )
    place = write_results(tmp_path / "out", result)
    again = write_results(tmp_path / "out", result)
    assert place != again
    assert place.parent == tmp_path / "out" / "auth"
    names = {file.name for file in place.iterdir()}
    assert names == {"checks.json", "stdout.txt", "stderr.txt", "capture.jsonl"}
    rows = json.loads((place / "checks.json").read_text())
    assert [entry["status"] for entry in rows if entry["id"] == "client-exit"] == ["FAILURE"]
    assert set(rows[0]) >= {"id", "name", "description", "status", "timestamp", "specReferences"}


def test_a_capture_that_can_not_be_written_is_said() -> None:
    result = run("good", capture=Path("/dev/full"))
    assert "No space left" in row(result, "capture-complete").message
    assert row(result, "capture-complete").status is CheckStatus.WARNING
    assert row(result, "called").status is CheckStatus.SUCCESS


def test_what_was_too_much_to_be_kept_is_no_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "KEPT_RECORDS", 12)
    result = run("good", scenario=scenario(checks=()))
    assert row(result, "capture-complete").status is CheckStatus.FAILURE
    assert result.failed


def test_secrets_that_the_client_was_given_are_not_written(tmp_path: Path) -> None:
    capture = tmp_path / "c.jsonl"
    result = run("whispers", capture=capture, env={"API_TOKEN": "s3cr3t-of-the-user"})
    assert "s3cr3t" not in result.stdout + repr(result.checks) + capture.read_text()
    assert "***" in result.stdout
    assert "***" in capture.read_text()


# -- many --------------------------------------------------------------------------------------


def test_results_come_in_the_order_of_the_orders() -> None:
    whats = ["good", "nothing", "good", "ends_with"]
    orders = [order(what, "1", scenario=scenario(name=f"s{n}")) for n, what in enumerate(whats)]
    told: list[str] = []
    results = run_clients(
        orders, jobs=2, tell=lambda one: told.append(one.scenario), should_stop=lambda: False
    )
    assert [result.scenario for result in results] == ["s0", "s1", "s2", "s3"]
    assert sorted(told) == ["s0", "s1", "s2", "s3"]
    assert [result.failed for result in results] == [False, True, False, True]
    assert run_clients([], jobs=4, tell=lambda one: None, should_stop=lambda: False) == []


def test_an_interrupt_ends_all_clients_and_keeps_what_was_finished(tmp_path: Path) -> None:
    files = [tmp_path / f"pids{n}" for n in range(3)]
    stays = [order("stays_with_children", str(file)) for file in files]
    stop = threading.Event()

    def tell(result: ScenarioResult) -> None:
        wait_until(lambda: files[0].exists() and files[0].read_text(), "the second client")
        stop.set()

    results = run_clients([order("good"), *stays], jobs=2, tell=tell, should_stop=stop.is_set)
    assert [result.failed for result in results] == [False]
    assert not files[2].exists()
    pids = [pid for file in files if file.exists() for pid in file.read_text().split()]
    assert len(pids) >= 3
    assert [pid for pid in pids if is_alive(int(pid))] == []


# -- stdio -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tools_call() -> Scenario:
    from mcptest.probe.conformance.scenario_catalogue import scenario_named

    return scenario_named(Side.CLIENT, "tools_call")


@pytest.mark.parametrize("revision", [D, E])
def test_a_client_launches_its_server_on_stdio(
    tools_call: Scenario, revision: Revision, tmp_path: Path
) -> None:
    capture = tmp_path / "c.jsonl"
    result = run(
        "good_on_stdio", scenario=tools_call, revision=revision, transport="stdio", capture=capture
    )
    assert not result.failed, result
    assert row(result, "client-exit").status is CheckStatus.SUCCESS
    assert [one["kind"] for one in records_of(capture)].count("capture") == 1


def test_every_launch_is_a_session_of_its_own(tools_call: Scenario, tmp_path: Path) -> None:
    capture = tmp_path / "c.jsonl"
    result = run("twice_on_stdio", scenario=tools_call, transport="stdio", capture=capture)
    assert not result.failed, result
    opened = [one for one in records_of(capture) if one["kind"] == "capture"]
    assert [one["server_label"] for one in opened] == ["session", "session-2"]


def test_a_client_that_leaves_its_server_behind_loses_nothing(tools_call: Scenario) -> None:
    result = run("leaves_its_server", scenario=tools_call, transport="stdio")
    assert not result.failed, result


def test_a_server_that_was_never_launched_is_a_failure(tools_call: Scenario) -> None:
    result = run("nothing", scenario=tools_call, transport="stdio")
    assert row(result, "server-launched").status is CheckStatus.FAILURE
