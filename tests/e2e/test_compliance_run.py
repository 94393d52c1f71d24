"""`mcptest compliance run` on real servers: exit codes, reports, gates, and what repeats a rule."""

from __future__ import annotations

import json
import shlex
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.driving import Done, awkward, interrupted_in_a_call, listening, mcptest, wait_until

DEMO = f"server: {{command: {json.dumps(sys.executable)}, args: [-m, mcptest, serve, demo]}}\n"
OLD = ("--spec-version", "2025-11-25")
ORDINARY = shlex.join(awkward("ordinary"))


def judge(*argv: str, **options: Any) -> Done:
    return mcptest("compliance", "run", *argv, **options)


def suite(folder: Path, block: str, server: str = DEMO) -> str:
    path = folder / "suite.yml"
    path.write_text(server + block)
    return str(path)


# -- one server --------------------------------------------------------------------------------


def test_a_rule_of_the_demo_passes() -> None:
    done = judge("--server", "demo", *OLD, "--rule", "PROTO-002", "--rule", "TOOL-003")
    assert done.code == 0, done.said
    assert "PROTO-002" in done.out
    assert "2 rules: 0 failed, 2 passed" in done.out


def test_the_command_may_stand_after_dashes() -> None:
    done = judge("--rule", "PROTO-002", *OLD, "--", *awkward("ordinary"))
    assert done.code == 0, done.said


def test_a_whole_corpus_is_judged_graded_and_reported_everywhere(tmp_path: Path) -> None:
    files = {name: tmp_path / f"r.{name}" for name in ("json-file", "markdown", "html", "junit")}
    card, captures = tmp_path / "card.json", tmp_path / "captures"
    options = [word for name, path in files.items() for word in (f"--{name}", str(path))]
    done = judge(
        "--server", ORDINARY, *options, "--save-scorecard", str(card), "--server-label", "mine",
        "--save-capture", str(captures), "--min-grade", "F",
    )  # fmt: skip
    assert done.code in {0, 1}, done.said
    report = json.loads(files["json-file"].read_text())
    assert report["exit_code"] == done.code
    (judgement,) = report["judgements"]
    assert judgement["revision"] == "2025-11-25"
    assert judgement["grade"]["letter"]
    assert "min_grade: PASS" in done.out
    names = [case.get("name") for case in ET.parse(files["junit"]).iter("testcase")]
    assert "compliance PROTO-002" in names
    assert "compliance min_grade" in names
    assert "mcptest compliance: grade" in files["markdown"].read_text()
    assert files["html"].read_text().startswith("<!")
    assert json.loads(card.read_text())["server"] == "mine"
    assert any(captures.iterdir())


def test_json_goes_to_stdout_alone() -> None:
    done = judge("--server", ORDINARY, "--rule", "PROTO-002", "--json")
    report = json.loads(done.out)
    assert report["format"] == "mcptest.compliance/1"
    assert done.err == ""
    assert json.loads(judge("--server", ORDINARY, "--rule", "PROTO-002", "--format", "json").out)


@pytest.mark.parametrize(
    ("form", "begin"), [("markdown", "### mcptest"), ("md", "### mcptest"), ("html", "<!doctype")]
)
def test_other_forms_go_to_stdout_too(form: str, begin: str) -> None:
    done = judge("--server", ORDINARY, "--rule", "PROTO-002", "--format", form)
    assert done.code == 0, done.said
    assert done.out.lower().startswith(begin)


def test_quiet_says_the_grade_and_what_is_broken() -> None:
    done = judge("--server", ORDINARY, "--rule", "JSONRPC-002", "--quiet")
    assert done.out == "v2025-11-25: 0 rules failed, 1 warning: JSONRPC-002\n"


def test_a_broken_should_fails_only_with_strict() -> None:
    wanted = ("--server", ORDINARY, "--rule", "JSONRPC-002", "--rule", "PROTO-002")
    assert judge(*wanted).code == 0
    assert judge(*wanted, "--strict").code == 1


def test_a_broken_must_fails_and_the_command_shown_repeats_it(tmp_path: Path) -> None:
    server = shlex.join(awkward("banner"))
    done = judge("--rule", "STDIO-001", "--json", "--server", server, cwd=tmp_path)
    assert done.code == 1
    (result,) = json.loads(done.out)["judgements"][0]["results"]
    assert result["outcome"] == "fail"
    program, *words = shlex.split(result["repeat"])
    assert program == "mcptest"
    again = mcptest(*words, cwd=tmp_path)
    assert again.code == 1
    assert "STDIO-001" in again.out


def test_several_revisions_stand_beside_each_other(tmp_path: Path) -> None:
    out = tmp_path / "all.json"
    wanted = ("--spec-version", "all", "--rule", "MSG-002", "--json-file", str(out))
    done = judge("--server", "demo", *wanted)
    assert done.code == 0, done.said
    revisions = [one["revision"] for one in json.loads(out.read_text())["judgements"]]
    assert revisions == ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]


def test_a_server_with_a_url_is_judged(tmp_path: Path) -> None:
    port_file = tmp_path / "port"
    serve = [sys.executable, "-m", "mcptest", "serve", "demo", "--transport", "http"]
    with listening([*serve, "--port-file", str(port_file)], "listening"):
        port = wait_until(lambda: port_file.is_file() and port_file.read_text(), "the port")
        url = f"http://127.0.0.1:{int(port)}/mcp"
        done = judge("--server", url, "--rule", "TOOL-003", "--header", "X-Key=hunter2-secret")
    assert done.code == 0, done.said
    assert "hunter2-secret" not in done.said


# -- what can not be judged --------------------------------------------------------------------


def test_a_server_that_does_not_start_is_exit_3_and_no_score(tmp_path: Path) -> None:
    out = tmp_path / "r.json"
    done = judge("--json-file", str(out), "--", *awkward("exits"))
    assert done.code == 3
    assert "cannot find the database" in done.err
    assert done.out == ""
    assert not out.exists()
    assert judge("--server", "no-such-program-here").code == 3


def test_secrets_of_the_environment_are_not_shown(tmp_path: Path) -> None:
    out = tmp_path / "r.html"
    secret = "hunter2-is-secret"
    wanted = ("--env", f"AWKWARD_SECRET={secret}", "--html", str(out), "--rule", "PROTO-002")
    done = judge("--server", shlex.join(awkward("tells_all")), *wanted)
    assert secret not in done.said + out.read_text()


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        ((), "no server is named"),
        (("--server", "demo", "--rule", "PROTO-222"), "unknown rule PROTO-222"),
        (("--server", "demo", *OLD, "--rule", "PROTO-010"), "v2025-11-25 has no rule PROTO-010"),
        (("--server", "demo", "--rule", "PROTO-002"), "name the revision that has it"),
        (("--server", "demo", "--map", "slow=x"), "unknown fixture slow"),
        (("--server", "demo", "--map", "slow_tool"), "--map takes K=V"),
        (("--server", "demo", "--registry", "nowhere/registry.yml"), "no such registry"),
        (("--server", "demo", "--baseline", "nowhere.yml"), "nowhere.yml"),
        (("--server", "demo", "--spec-version", "2025-6-18"), "unknown spec version"),
        (("--from-suite", "nowhere.yml"), "nowhere.yml"),
    ],
)
def test_what_can_not_be_understood_is_exit_2(argv: tuple[str, ...], told: str) -> None:
    done = judge(*argv)
    assert done.code == 2, done.said
    assert told in done.err
    assert done.out == ""


def test_nothing_observed_is_exit_4() -> None:
    done = judge("--server", ORDINARY, "--rule", "SAMPLE-001")
    assert done.code == 4, done.said
    assert "nothing was judged" in done.err


def test_an_interrupted_run_reports_and_leaves_nothing_behind(tmp_path: Path) -> None:
    out = tmp_path / "part.json"
    done = interrupted_in_a_call(tmp_path, "compliance", "run", "--json-file", str(out), *OLD)
    assert done.code == 130, done.err
    assert "interrupted" in done.err
    report = json.loads(out.read_text())
    assert report["exit_code"] == 130
    assert any("interrupted" in note for note in report["notes"])


def test_a_report_that_can_not_be_written_is_said_and_fails_when_strict(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    wanted = ("--server", ORDINARY, "--rule", "PROTO-002", "--html", str(tmp_path / "file" / "r"))
    done = judge(*wanted)
    assert done.code == 0
    assert "report not written" in done.err
    assert judge(*wanted, "--strict-reports").code == 1


# -- a baseline --------------------------------------------------------------------------------


def test_a_baseline_is_written_holds_and_goes_stale(tmp_path: Path) -> None:
    known = tmp_path / "known.yml"
    banner = ("--server", shlex.join(awkward("banner")), "--rule", "STDIO-001")
    assert judge(*banner).code == 1
    assert judge(*banner, "--baseline", str(known), "--update-baseline").code == 0
    assert "STDIO-001" in known.read_text()
    held = judge(*banner, "--baseline", str(known))
    assert held.code == 0, held.said
    assert "baseline: PASS" in held.out
    repaired = judge("--server", ORDINARY, "--rule", "STDIO-001", "--baseline", str(known))
    assert repaired.code == 1
    assert "stale" in repaired.out


# -- a suite -----------------------------------------------------------------------------------

TWO = """\
compliance:
  spec_version: v2025-11-25
  tests:
    - name: PROTO-002
    - name: it lists tools
      check: tools/list
      expect:
        - target: result.tools
          matcher: {min_length: LEAST}
"""


def test_a_suite_runs_rules_of_the_pinned_corpus_and_checks_of_its_own(tmp_path: Path) -> None:
    out = tmp_path / "r.json"
    path = suite(tmp_path, TWO.replace("LEAST", "1"))
    done = judge("--from-suite", path, "--json-file", str(out))
    assert done.code == 0, done.said
    (judgement,) = json.loads(out.read_text())["judgements"]
    assert judgement["revision"] == "2025-11-25"
    assert [one["id"] for one in judgement["results"]] == ["PROTO-002", "it lists tools"]


def test_an_expectation_of_the_suite_that_does_not_hold_fails(tmp_path: Path) -> None:
    done = judge("--from-suite", suite(tmp_path, TWO.replace("LEAST", "1000")))
    assert done.code == 1, done.said
    assert "it lists tools" in done.out


def test_one_test_of_the_suite_can_be_repeated(tmp_path: Path) -> None:
    path = suite(tmp_path, TWO.replace("LEAST", "1000"))
    done = judge("--from-suite", path, "--rule", "PROTO-002")
    assert done.code == 0, done.said
    assert "it lists tools" not in done.out
    failed = json.loads(judge("--from-suite", path, "--json").out)["judgements"][0]["results"][1]
    again = mcptest(*shlex.split(failed["repeat"])[1:])
    assert again.code == 1, again.said
    assert "it lists tools" in again.out
    wrong = judge("--from-suite", path, "--rule", "PROTO-001")
    assert wrong.code == 2
    assert "the suite has no test PROTO-001" in wrong.err


def test_a_bare_list_is_judged_in_the_revision_that_is_spoken(tmp_path: Path) -> None:
    server = f"server: {{command: {sys.executable}, args: {json.dumps(awkward('ordinary')[1:])}}}\n"
    done = judge("--from-suite", suite(tmp_path, "compliance: [{name: PROTO-002}]\n", server))
    assert done.code == 0, done.said
    assert "2025-11-25" in done.out


def test_an_empty_list_is_the_gates_alone_and_starts_no_server(tmp_path: Path) -> None:
    block = """\
compliance:
  spec_version: v2025-06-18
  spec_version_check: {against: AGAINST}
  tests: []
"""
    server = "server: {command: no-such-program-here}\n"
    clean = judge("--from-suite", suite(tmp_path, block.replace("AGAINST", "v2025-06-18"), server))
    assert clean.code == 0, clean.said
    assert "spec_version_check: PASS (v2025-06-18 -> v2025-06-18: 0 changed" in clean.out
    red = judge("--from-suite", suite(tmp_path, block.replace("AGAINST", "v2026-07-28"), server))
    assert red.code == 1, red.said
    assert red.out.count("spec_version_check: FAIL (v2025-06-18 -> v2026-07-28") == 1


def test_a_block_that_asks_for_nothing_at_all_is_exit_4(tmp_path: Path) -> None:
    assert judge("--from-suite", suite(tmp_path, "compliance: []\n")).code == 4


def test_an_unknown_rule_is_exit_2_with_its_place_and_what_was_meant(tmp_path: Path) -> None:
    path = suite(tmp_path, "compliance:\n  - name: PROTO-002\n  - name: PROTO-2\n    check: ping\n")
    done = judge("--from-suite", path)
    assert done.code == 2, done.said
    path = suite(tmp_path, "compliance:\n  - name: PROTO-002\n  - name: PROTO-202\n")
    done = judge("--from-suite", path)
    assert done.code == 2, done.said
    assert f"{path}:4:5: unknown rule PROTO-202" in done.err
    assert "did you mean PROTO-" in done.err


def test_a_suite_without_the_block_or_with_another_pin_is_exit_2(tmp_path: Path) -> None:
    tests = "tests: [{name: a, assert: {tool: t, expect: {not_error: true}}}]\n"
    done = judge("--from-suite", suite(tmp_path, tests))
    assert done.code == 2
    assert "has no compliance block" in done.err
    done = judge("--from-suite", suite(tmp_path, TWO), "--spec-version", "draft")
    assert done.code == 2


def test_the_grade_gate_passes_with_a_note_first_and_then_compares(tmp_path: Path) -> None:
    ordinary = json.dumps(awkward("ordinary")[1:])
    banner = ordinary.replace("ordinary", "banner")
    block = "compliance: {tests: [], grade_delta: {against: card.json}}\n"
    good = f"server: {{command: {sys.executable}, args: {ordinary}}}\n"
    bad = f"server: {{command: {sys.executable}, args: {banner}}}\n"
    first = judge(
        "--from-suite", suite(tmp_path, block, good), "--save-scorecard", "card.json", cwd=tmp_path
    )
    assert first.code == 0, first.said
    assert "grade_delta: PASS" in first.out
    assert "no scorecard to compare with yet" in first.out
    worse = judge("--from-suite", suite(tmp_path, block, bad), cwd=tmp_path)
    assert worse.code == 1, worse.said
    assert "grade_delta: FAIL" in worse.out
    (tmp_path / "card.json").write_text("{}")
    assert judge("--from-suite", suite(tmp_path, block, good), cwd=tmp_path).code == 2


def test_the_server_of_the_command_line_goes_before_that_of_the_suite(tmp_path: Path) -> None:
    path = suite(tmp_path, "compliance: [{name: PROTO-002}]\n", "server: {command: nothing-here}\n")
    assert judge("--from-suite", path).code == 3
    assert judge("--from-suite", path, "--server", ORDINARY).code == 0


def test_fixtures_of_the_suite_reach_the_probes(tmp_path: Path) -> None:
    block = "compliance:\n  fixtures: {slow_tool: SLOW}\n  tests: [{name: PROTO-008}]\n"
    path = suite(tmp_path, block.replace("SLOW", "wait"))
    assert judge("--from-suite", path).code == 0
    path = suite(tmp_path, block.replace("slow_tool", "slo_tool"))
    done = judge("--from-suite", path)
    assert done.code == 2
    assert "did you mean slow_tool?" in done.err
