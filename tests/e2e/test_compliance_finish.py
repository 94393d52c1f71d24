"""A run to its end, whatever happens on the way: silence, Ctrl-C, one rule alone, many at once."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec

from mcptest.core.judgement import Event, JudgingWaits, RuleJudged
from mcptest.core.revision import Revision
from mcptest.core.verdict import Outcome, Severity
from mcptest.probe.compliance.judging import judge_server
from mcptest.probe.compliance.site import Order
from mcptest.rules.corpus.reader import SHIPPED, corpus_of
from mcptest.transport.descendants import live_servers
from mcptest.transport.target import DEMO
from tests.e2e.demo_peer import BOUND
from tests.e2e.driving import awkward, interrupted_in_a_call, mcptest
from tests.e2e.probing import OFFERED, SOUND, demo
from tests.e2e.test_compliance_live import OLD, judged, misbehaving, quiet, result

# -- silence -------------------------------------------------------------------------------------


def test_a_tool_that_hangs_is_called_once_and_is_one_cause(tmp_path: Path) -> None:
    judgement = judged("hangs-on-call", tmp_path, timeout=1.5, patience=0.5)
    calls = (tmp_path / "called").read_text().splitlines()
    assert calls.count("look") == 1
    (cause,) = judgement.causes
    assert cause.id == "silence"
    assert "look" in cause.message
    assert cause.kept_from_judging > 0
    assert result(judgement, "PROTO-003").outcome is Outcome.PASS


def test_a_server_that_begins_only_once_is_one_cause(tmp_path: Path) -> None:
    judgement = judged("begins-once", tmp_path, startup=2.0, patience=0.2)
    assert [one.id for one in judgement.causes] == ["silence"]
    assert judgement.causes[0].kept_from_judging > 0


SLOW_ONCE_CANCELLED = """\
import json, pathlib, sys, time
starts = pathlib.Path(sys.argv[1])
(starts / str(time.monotonic_ns())).touch()
for line in sys.stdin:
    asked = json.loads(line) if line.startswith("{") else {}
    if asked.get("method") == "notifications/cancelled":
        before = len(list(starts.iterdir()))
        while len(list(starts.iterdir())) == before:
            time.sleep(0.01)
    if "id" not in asked:
        continue
    answer = {"error": {"code": -32601, "message": "Method not found"}}
    if asked.get("method") == "initialize":
        result = {"protocolVersion": asked["params"]["protocolVersion"]}
        result |= {"capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
        answer = {"result": result}
    elif asked.get("method") == "ping":
        answer = {"result": {}}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **answer}), flush=True)
"""


def test_a_probe_that_a_busy_machine_answers_late_fails_nobody(tmp_path: Path) -> None:
    """It answers once a process that was started later has: as long as a start takes here."""
    server, starts = tmp_path / "server.py", tmp_path / "starts"
    server.write_text(SLOW_ONCE_CANCELLED)
    starts.mkdir()
    command = (sys.executable, str(server), str(starts))
    target = msgspec.structs.replace(DEMO, command=command, label="slow")
    settings = {"timeout": 0.5, "startup": BOUND, "patience": 0.5, "revision": OLD}
    order = Order(target=target, rules=("CANCEL-102",), **settings)
    (one,) = judge_server(order, lambda event: None).results
    assert one.outcome is Outcome.INCONCLUSIVE
    assert "answered after the timeout" in one.reason


STATELESS = """
import json, sys
open(sys.argv[1], "a").write("started\\n")
ABOUT = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "ttlMs": 0}
TOOL = {"name": "look", "inputSchema": {"type": "object"}}
RESULTS = {
    "server/discover": {**ABOUT, "cacheScope": "private"},
    "tools/list": {"tools": [TOOL], "ttlMs": 0, "cacheScope": "private"},
}
for line in sys.stdin:
    try:
        asked = json.loads(line)
        identifier = asked["id"]
    except (ValueError, TypeError, KeyError):
        continue
    answer = {"error": {"code": -32601, "message": "Method not found"}}
    params = asked.get("params") or {}
    said = params.get("_meta") or {}
    version = said.get("io.modelcontextprotocol/protocolVersion", params.get("protocolVersion"))
    is_whole = isinstance(said.get("io.modelcontextprotocol/clientCapabilities"), dict)
    if not version or not (is_whole or version != "2026-07-28"):
        answer = {"error": {"code": -32602, "message": "Invalid params"}}
    elif version != "2026-07-28":
        data = {"supported": ["2026-07-28"], "requested": version}
        answer = {"error": {"code": -32022, "message": "Unsupported", "data": data}}
    elif asked.get("method") in RESULTS:
        about = {"io.modelcontextprotocol/serverInfo": {"name": "s", "version": "1"}}
        answer = {"result": {"resultType": "complete", "_meta": about, **RESULTS[asked["method"]]}}
    print(json.dumps({"jsonrpc": "2.0", "id": identifier, **answer}), flush=True)
"""


def test_a_server_that_only_breaks_advice_is_started_four_times(tmp_path: Path) -> None:
    """Met and asked, asked for the handshake, asked rudely, and asked again: starts take long."""
    server, starts = tmp_path / "server.py", tmp_path / "starts"
    server.write_text(STATELESS)
    command = (sys.executable, str(server), str(starts))
    target = msgspec.structs.replace(DEMO, command=command, label="stateless")
    events: list[Event] = []
    judgement = judge_server(Order(target=target, timeout=BOUND, startup=BOUND), events.append)
    advice = {one.id for one in judgement.results if one.outcome is Outcome.FAIL}
    assert {"PAGE-101", "JSONRPC-002"} <= advice
    broken = [one.id for one in judgement.results if one.failed and one.severity is Severity.MUST]
    assert not broken
    assert starts.read_text().count("started") == 4
    waits = [one.what for one in events if isinstance(one, JudgingWaits)]
    assert waits[0] == "waiting for 2 more server processes to start"
    assert waits[1].endswith("on another server process")


# -- being told to stop --------------------------------------------------------------------------


def test_who_is_stopped_tells_what_was_judged_by_then(tmp_path: Path) -> None:
    seen: list[RuleJudged] = []

    def tell(event: Event) -> None:
        if isinstance(event, RuleJudged):
            seen.append(event)

    def is_enough() -> bool:
        return any(one.outcome is Outcome.PASS for one in seen)

    order = Order(target=DEMO, revision=OLD, timeout=BOUND, should_stop=is_enough)
    judgement = judge_server(order, tell)
    outcomes = {one.id: one for one in judgement.results}
    assert judgement.count(Outcome.PASS) >= 1
    left = [one for one in judgement.results if one.outcome is Outcome.INCONCLUSIVE]
    assert left
    assert {one.reason for one in left} == {"interrupted"}
    assert judgement.grade is None
    assert not judgement.whole_corpus
    assert [note for note in judgement.notes if note.startswith("interrupted")]
    assert len(outcomes) == len(seen)
    assert not live_servers


def test_an_interrupted_run_has_every_rule_in_its_report(tmp_path: Path) -> None:
    out, page = tmp_path / "part.json", tmp_path / "part.html"
    words = ["compliance", "run", "--min-grade", "A", "--spec-version", "2025-11-25"]
    words += ["--json-file", str(out), "--html", str(page)]
    done = interrupted_in_a_call(tmp_path, *words, peculiarity="slow-call")
    assert done.code == 130
    report = json.loads(out.read_text())
    (judgement,) = report["judgements"]
    reasons = {
        one.get("reason") for one in judgement["results"] if one["outcome"] == "inconclusive"
    }
    assert reasons == {"interrupted"}
    assert report["gates"] == []
    assert "interrupted" in done.out
    assert page.is_file()


# -- one rule again ------------------------------------------------------------------------------


def test_rules_over_sessions_come_to_the_same_verdicts_alone(tmp_path: Path) -> None:
    corpus = corpus_of(OLD)
    assert corpus is not None
    whole = judge_server(Order(target=DEMO, revision=OLD, timeout=BOUND), quiet)
    over_sessions = [one for one in whole.results if corpus.rules[one.id].session is not None]
    names = tuple(one.id for one in over_sessions)
    order = Order(target=DEMO, revision=OLD, timeout=BOUND, rules=names)
    told: list[Event] = []
    alone = judge_server(order, told.append)
    assert {one.id: one.outcome for one in alone.results} == {
        one.id: one.outcome for one in over_sessions
    }
    assert {one.id for one in told if isinstance(one, RuleJudged)} == {*names}


def test_the_command_that_is_shown_can_be_pasted(tmp_path: Path) -> None:
    server = tmp_path / "with space's"
    server.symlink_to(Path(awkward("banner")[1]).resolve())
    command = [awkward("banner")[0], str(server), *awkward("banner")[2:]]
    done = mcptest("compliance", "run", "--json", "--rule", "STDIO-001", "--", *command)
    (found,) = json.loads(done.out)["judgements"][0]["results"]
    assert found["outcome"] == "fail"
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    again = subprocess.run(
        ["/bin/sh", "-c", f"{found['repeat']} --json"],
        env={**os.environ, "PATH": path},
        capture_output=True,
        timeout=2 * BOUND,
        check=False,
    )
    (repeated,) = json.loads(again.stdout)["judgements"][0]["results"]
    assert (repeated["id"], repeated["outcome"]) == ("STDIO-001", "fail")
    assert repeated["repeat"] == found["repeat"]


def test_a_plain_command_is_repeated_without_quotes_around_its_words() -> None:
    command = ("mcptest", "compliance", "run", "--json", "--rule", "PROTO-002", "--")
    done = mcptest(*command[1:], *awkward("ordinary"))
    (found,) = json.loads(done.out)["judgements"][0]["results"]
    words = shlex.split(found["repeat"])
    assert words[words.index("--server") + 1] == shlex.join(awkward("ordinary"))


# -- many at once --------------------------------------------------------------------------------


def test_two_runs_keep_their_captures_in_one_folder(tmp_path: Path) -> None:
    order = Order(target=DEMO, revision=OLD, timeout=BOUND, captures=tmp_path)
    kept = [*judge_server(order, quiet).captures, *judge_server(order, quiet).captures]
    assert len(kept) == len({*kept})
    assert {*map(str, tmp_path.iterdir())} == {*kept}


def test_nothing_runs_any_more_after_a_run(tmp_path: Path) -> None:
    order = Order(target=misbehaving("dies-on-list", tmp_path), revision=OLD, patience=0.5)
    judge_server(order, quiet)
    assert not live_servers


def test_a_slow_tool_is_cancelled_before_the_newest_revision_too(tmp_path: Path) -> None:
    with demo("stdio", (*SOUND, *OFFERED), tmp_path) as target:
        order = Order(
            target=target,
            revision=Revision.V2025_06_18,
            rules=("CANCEL-001", "CANCEL-002"),
            timeout=BOUND,
        )
        judgement = judge_server(order, quiet)
    # That our own cancellation was in order says nothing about the server.
    assert [one.outcome for one in judgement.results] == [Outcome.NOT_OBSERVED, Outcome.PASS]


# -- the rules -----------------------------------------------------------------------------------


def test_the_rules_of_the_corpora_are_listed() -> None:
    listed = json.loads(mcptest("compliance", "rules", "--json").out)["rules"]
    names = {one["id"] for one in listed}
    corpus = corpus_of(Revision.V2026_07_28)
    assert corpus is not None
    assert names >= {"PROTO-002", "INV-004", *corpus.rules}


def test_a_corpus_with_an_error_is_told_with_its_place_and_nothing_else(tmp_path: Path) -> None:
    corpora = tmp_path / "corpora"
    shutil.copytree(SHIPPED, corpora)
    broken = corpora / "v2026-07-28" / "lifecycle.yml"
    broken.write_text(broken.read_text().replace("- rule_id:", "- rule_idd:", 1))
    words = ["compliance", "run", "--server", "demo", "--registry", str(corpora / "registry.yml")]
    done = mcptest(*words)
    assert done.code == 2
    assert f"{broken}:1:3: unknown key rule_idd" in done.err
    assert "--spec-version" not in done.err


HANDSHAKE_ONLY = """\
import json, sys
for line in sys.stdin:
    asked = json.loads(line) if line.startswith("{") else {}
    if asked.get("method") == "initialize":
        result = {"protocolVersion": asked["params"]["protocolVersion"]}
        result |= {"capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""


def test_what_only_we_sent_passes_no_rule_about_the_server(tmp_path: Path) -> None:
    """It answers `initialize` and nothing else: it never asked, cancelled or notified."""
    server = tmp_path / "handshake_only.py"
    server.write_text(HANDSHAKE_ONLY)
    target = msgspec.structs.replace(DEMO, command=(sys.executable, str(server)), label="quiet")
    order = Order(target=target, revision=Revision.V2025_11_25, timeout=1.0, patience=0.3)
    results = {one.id: one for one in judge_server(order, lambda event: None).results}
    about_own_messages = ("MSG-004", "MSG-005", "MSG-017", "PROG-004", "CANCEL-001", "CANCEL-002")
    passed = [name for name in about_own_messages if results[name].outcome is Outcome.PASS]
    assert passed == []
    assert results["MSG-012"].outcome is Outcome.PASS  # it did send a result
