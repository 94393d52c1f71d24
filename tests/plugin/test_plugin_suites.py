"""Suites as test items of pytest: which files, which items, what a failure shows."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.driving import is_alive, mcptest, wait_until
from tests.plugin.folders import PLUGIN, Folder, check, folder_for, quick_server

pytest_plugins = ["pytester"]


@pytest.fixture
def folder(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Folder:
    return folder_for(pytester, monkeypatch)


# -- which files -----------------------------------------------------------------------------------


def test_yaml_that_nobody_asked_for_is_no_test(folder: Folder) -> None:
    folder.suite(check("passes"))
    assert folder.run().ret == pytest.ExitCode.NO_TESTS_COLLECTED
    folder.suite(check("foreign"), name="deploy/values.yaml")
    assert [item.name for item in folder.items("--mcptest", "evals")] == ["passes"]


def test_the_option_adds_its_folder_to_the_paths(folder: Folder) -> None:
    folder.suite(check("passes"))
    folder.pytester.makepyfile(test_python="def test_nothing(): pass")
    result = folder.run("test_python.py", "--mcptest", "evals")
    result.assert_outcomes(passed=2)


def test_the_configured_folder_is_run_beside_the_test_paths(folder: Folder) -> None:
    folder.configure(mcptest_suites="evals/", testpaths="tests")
    folder.suite(check("passes"))
    (folder.path / "tests").mkdir()
    (folder.path / "tests/test_python.py").write_text("def test_nothing(): pass")
    names = {"passes", "test_nothing"}
    assert {item.name for item in folder.items()} == names
    assert {item.name for item in folder.items("tests")} == {"test_nothing"}
    assert {item.name for item in folder.items(".")} == names
    assert {item.name for item in folder.items("evals")} == {"passes"}


def test_a_path_within_the_folder_chooses_a_part_of_it(folder: Folder) -> None:
    folder.suite(check("one"), check("two"))
    folder.suite(check("three"), name="evals/other.yaml")
    chosen = folder.items("--mcptest", "evals", "evals/suite.yaml::two")
    assert [item.name for item in chosen] == ["two"]


@pytest.mark.parametrize("place", ["evals/fixtures", "evals/.hidden", "evals/deep/__snapshots__"])
def test_data_of_tests_is_no_suite(folder: Folder, place: str) -> None:
    folder.suite(check("passes"))
    folder.suite(check("data"), name=f"{place}/data.yaml")
    assert [item.name for item in folder.items("--mcptest", "evals")] == ["passes"]


def test_the_fixture_is_no_suite(folder: Folder) -> None:
    folder.configure(mcptest_suites="evals", mcptest_fixture="evals/data")
    folder.suite(check("passes"))
    folder.suite(check("data"), name="evals/data/data.yaml")
    assert [item.name for item in folder.items()] == ["passes"]


@pytest.mark.parametrize("place", ["missing", "empty"])
def test_a_folder_without_a_suite_is_not_green_by_accident(folder: Folder, place: str) -> None:
    (folder.path / "empty").mkdir()
    folder.pytester.makepyfile(test_python="def test_nothing(): pass")
    result = folder.run("--mcptest", place)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: mcptest: */{place}: *"])


def test_a_broken_suite_is_an_error_of_the_collection(folder: Folder) -> None:
    folder.suite({"name": "typo", "asert": {}})
    result = folder.run("--mcptest", "evals")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["*evals/suite.yaml:3:*: unknown key asert*", "*^^^^*"])


# -- which items -----------------------------------------------------------------------------------


def test_an_item_stands_at_its_line(folder: Folder) -> None:
    folder.suite(check("first"), check("second"))
    places = [item.location for item in folder.items("--mcptest", "evals")]
    file = os.path.join("evals", "suite.yaml")  # noqa: PTH118 - as pytest writes it
    assert places == [(file, 2, "first"), (file, 3, "second")]


def test_tests_of_one_name_are_told_apart(folder: Folder) -> None:
    folder.suite(check("same"), check("same"), check("same (2)"), check("a::b"))
    names = [item.name for item in folder.items("--mcptest", "evals", "-W", "ignore")]
    assert names == ["same", "same (2)", "same (2) (2)", "a:b"]
    result = folder.run("--mcptest", "evals", "evals/suite.yaml::a:b")
    result.assert_outcomes(passed=1)


def test_tags_are_marks_and_keywords(folder: Folder) -> None:
    folder.suite(check("one", tags=["smoke"]), check("two", tags=["not-a-name"]))
    folder.pytester.makepyfile(test_python="def test_nothing(): pass")
    argv = ("--mcptest", "evals", "--strict-markers", "--collect-only", "-q")
    assert "::one" in folder.run(*argv, "-m", "smoke").outlines[0]
    assert "::two" in folder.run(*argv, "-k", "not-a-name").outlines[0]
    folder.run(*argv, "-m", "mcptest").stdout.fnmatch_lines(["2/3 tests collected*"])


@pytest.mark.parametrize("tag", ["xfail", "skip"])
def test_a_tag_excuses_no_failure(folder: Folder, tag: str) -> None:
    folder.suite(check("fails", expect={"equals": "else"}, tags=[tag]))
    folder.run("--mcptest", "evals").assert_outcomes(failed=1)


def test_a_skip_has_its_reason_and_starts_no_server(folder: Folder) -> None:
    folder.suite(check("later", skip=True), check("elsewhere", skip_unless_env="NO_SUCH_NAME"))
    result = folder.run("--mcptest", "evals", "-rs")
    result.assert_outcomes(skipped=2)
    result.stdout.fnmatch_lines(["SKIPPED*evals/suite.yaml: *NO_SUCH_NAME not set"])
    assert not folder.log.exists()


def test_a_session_in_which_every_test_of_the_suites_was_skipped_is_not_green(
    folder: Folder,
) -> None:
    folder.suite(check("later", skip=True), check("elsewhere", skip_unless_env="NO_SUCH_NAME"))
    result = folder.run("--mcptest", "evals")
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    result.stdout.fnmatch_lines(["mcptest: nothing was run: all 2 tests were skipped"])
    folder.suite(check("later", skip=True), check("runs"))
    assert folder.run("--mcptest", "evals").ret == pytest.ExitCode.OK


def test_a_file_of_mcp_assert_is_a_test(folder: Folder) -> None:
    (folder.path / "evals").mkdir()
    (folder.path / "evals/read.yaml").write_text(
        f"""\
name: "it echoes"
server:
  command: {sys.executable}
  args: {quick_server()["args"]}
assert:
  tool: echo
  args: {{text: hello}}
  expect:
    not_error: true
    contains: ["hello"]
timeout: 20s
"""
    )
    result = folder.run("--mcptest", "evals", "-v")
    result.stdout.fnmatch_lines(["evals/read.yaml::it echoes PASSED*"])


# -- running ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("isolation", "started"), [("fresh", 3 + 1), ("shared", 1 + 1)])
def test_servers_are_fresh_or_shared_and_gone_at_the_end(
    folder: Folder, isolation: str, started: int
) -> None:
    folder.configure(mcptest_suites="evals", mcptest_isolation=isolation)
    folder.suite(check("one"), check("two"), check("three"))
    folder.run().assert_outcomes(passed=3)
    # One more is asked what the server speaks, and has no part in any test.
    assert (folder.noted("start"), folder.noted("end")) == (started, started)


def whoami(name: str, **more: Any) -> dict[str, Any]:
    return check("who", tool="whoami", expect={"equals": name}, **more)


def test_the_configuration_names_the_server_of_tests_that_name_none(folder: Folder) -> None:
    own, configured = quick_server("name=own"), quick_server("name=configured")
    command = shlex.join([configured["command"], *configured["args"]])
    folder.configure(mcptest_suites="evals", mcptest_server=command)
    folder.suite(whoami("configured"), server=None)
    folder.suite(whoami("own"), name="evals/own.yaml", server=own)
    folder.run().assert_outcomes(passed=2)


def test_the_option_names_the_server_of_every_test(folder: Folder) -> None:
    given = quick_server("name=given")
    command = shlex.join([given["command"], *given["args"]])
    folder.suite(whoami("given"), server=quick_server("name=own"))
    folder.run("--mcptest", "evals", "--mcptest-server", command).assert_outcomes(passed=1)


def test_commands_are_meant_from_the_folder_of_the_configuration(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.configure(mcptest_suites="evals", mcptest_fixture="data")
    (folder.path / "data").mkdir()
    (folder.path / "data/hello.txt").write_text("from the fixture")
    script = folder.path / "here.py"
    script.write_text(Path(quick_server()["args"][-1]).read_text())
    server = {"command": sys.executable, "args": ["-I", "-S", "here.py"]}
    args = {"path": "{{fixture}}/hello.txt"}
    expect = {"equals": "from the fixture"}
    folder.suite(check("reads", tool="read", args=args, expect=expect), server=server)
    monkeypatch.chdir(folder.path / "evals")
    folder.run().assert_outcomes(passed=1)


def test_captures_are_kept_where_asked(folder: Folder) -> None:
    folder.suite(check("one"), check("fails", expect={"equals": "else"}))
    result = folder.run("--mcptest", "evals", "--mcptest-capture", "kept")
    kept = sorted(path.name for path in (folder.path / "kept").iterdir())
    assert kept == ["0001-one.jsonl", "0002-fails.jsonl"]
    result.stdout.fnmatch_lines(["capture:*kept/0002-fails.jsonl"])


def test_a_test_that_needs_a_variable_says_so_as_a_warning(folder: Folder) -> None:
    server = {**quick_server(), "env": {"TOKEN": "${NO_SUCH_NAME}"}}
    folder.suite(check("one"), check("two"), server=server)
    result = folder.run("--mcptest", "evals")
    said = [line for line in result.outlines if "McptestWarning" in line]
    assert len(said) <= 1
    assert "NO_SUCH_NAME" in result.stdout.str()


# -- what a failure shows --------------------------------------------------------------------------


def test_a_failure_shows_the_proof_that_the_command_shows(folder: Folder) -> None:
    folder.suite(check("fails", expect={"equals": "else", "contains": ["more"]}))
    out = folder.run("--mcptest", "evals").stdout.str()
    shown = mcptest("run", "evals", "--all-failures", cwd=folder.path).out.splitlines()
    labels = ("where:", "request:", "response:", "1.", "2.")
    proof = [line.strip() for line in shown if line.strip().startswith(labels)]
    assert len(proof) == len(labels)
    assert [line for line in proof if line not in out.splitlines()] == []


def test_the_reason_is_in_the_summary_and_in_junit(folder: Folder) -> None:
    folder.suite(check("fails", expect={"equals": "else"}))
    result = folder.run("--mcptest", "evals", "--junit-xml", "r.xml", "--tb=line")
    result.stdout.fnmatch_lines(
        ["evals/suite.yaml:3: *", "FAILED evals/suite.yaml::fails - *else*"]
    )
    assert "request:" not in result.stdout.str()
    xml = (folder.path / "r.xml").read_text()
    assert '<failure message="expected exact match: want: else got: hello"' in xml
    assert 'name="mcp_revision"' in xml


def test_the_command_that_repeats_a_test_runs_just_that(folder: Folder) -> None:
    folder.suite(check("passes"), check("it's [1] of 2", expect={"equals": "else"}))
    out = folder.run("--mcptest", "evals").outlines
    (repeat,) = (line.partition(":")[2] for line in out if line.startswith("repeat:"))
    program, *argv = shlex.split(repeat)
    assert program == "pytest"
    folder.run(*argv).assert_outcomes(failed=1)


def test_a_crash_shows_how_the_server_ended(folder: Folder) -> None:
    folder.suite(check("dies", tool="exit", args={"code": 7}))
    result = folder.run("--mcptest", "evals")
    result.stdout.fnmatch_lines(["  stderr: I was told to", "exit:     exit code 7"])


def test_text_of_a_server_steers_nothing(folder: Folder) -> None:
    hostile = "\x1b[2J\u202e::error::x"
    folder.suite(check("echoes", args={"text": hostile}, expect={"equals": "else"}))
    out = folder.run("--mcptest", "evals").stdout.str()
    assert "FAILED" in out
    assert not {"\x1b", "\u202e"} & set(out)


def test_secrets_are_masked(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLUGIN_TOKEN", "hunter2-hunter2")
    server = {**quick_server(), "env": {"TOKEN": "${PLUGIN_TOKEN}"}}
    folder.suite(
        check("tells", tool="env", args={"name": "TOKEN"}, expect={"equals": "else"}), server=server
    )
    out = folder.run("--mcptest", "evals").stdout.str()
    assert "***" in out
    assert "hunter2" not in out


# -- lanes -----------------------------------------------------------------------------------------


def test_lanes_are_items_too(folder: Folder) -> None:
    block = {"spec_version": "v2025-11-25", "tests": [{"name": "PROTO-002"}]}
    folder.suite(check("passes"), compliance=block, invariants={"rules": ["MSG-002"]})
    result = folder.run("--mcptest", "evals", "-v")
    result.stdout.fnmatch_lines(
        ["*::passes PASSED*", "*::the compliance lane PASSED*", "*::the invariants lane PASSED*"]
    )


def test_the_properties_lane_is_an_item_too(folder: Folder) -> None:
    folder.suite(check("passes"), properties={"names": ["messages-invalid"], "examples": 2})
    result = folder.run("--mcptest", "evals", "-v")
    result.stdout.fnmatch_lines(
        ["*::passes PASSED*", "*::the properties lane FAILED*", "property messages-invalid: *"]
    )


def test_a_lane_that_fails_names_every_check(folder: Folder) -> None:
    wrong = {
        "name": "wrong",
        "check": "tools/list",
        "expect": [{"target": "result.tools", "matcher": {"exact": []}}],
    }
    block = {"spec_version": "v2025-11-25", "tests": [{"name": "PROTO-002"}, wrong]}
    folder.suite(compliance=block)
    result = folder.run("--mcptest", "evals")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["compliance wrong", "repeat:   mcptest compliance run *"])
    assert "compliance PROTO-002" not in result.stdout.str()


def test_a_lane_with_a_name_that_does_not_exist_is_an_error(folder: Folder) -> None:
    folder.suite(check("passes"), invariants={"rules": ["MSG-999"]})
    result = folder.run("--mcptest", "evals")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["*unknown session rule MSG-999"])


def test_a_lane_that_can_not_be_run_fails_without_our_own_code(folder: Folder) -> None:
    block = {"spec_version": "v2025-11-25", "grade_delta": {"against": "card.json"}}
    (folder.path / "card.json").write_text("nonsense")
    folder.suite(compliance=block)
    result = folder.run("--mcptest", "evals")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["card.json*"])
    assert "Traceback" not in result.stdout.str()
    assert "running.py" not in result.stdout.str()


# -- the end ---------------------------------------------------------------------------------------


def test_an_interrupt_leaves_no_server(folder: Folder) -> None:
    folder.suite(check("hangs", tool="hang", args={}))
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", *PLUGIN, "--mcptest", "evals"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    wait_until(lambda: folder.noted("call hang"), "the call")
    process.send_signal(signal.SIGINT)
    assert process.wait(240) == pytest.ExitCode.INTERRUPTED
    assert [is_alive(pid) for pid in folder.pids()] == [False, False]  # one was asked first


def patient_server(folder: Folder) -> dict[str, Any]:
    """Its `nap` lasts until there is another server."""
    text = Path(quick_server()["args"][-1]).read_text()
    nap = 'time.sleep(args["seconds"])'
    assert nap in text
    until = 'while whole(WORDS["log"]).count(" start\\n") < 2: time.sleep(0.01)'
    script = folder.path / "patient.py"
    script.write_text(text.replace(nap, until))
    return {"command": sys.executable, "args": ["-I", "-S", str(script), f"log={folder.log}"]}


def test_the_next_server_starts_while_a_test_runs(folder: Folder) -> None:
    naps = check("naps", tool="nap", timeout="20s")
    folder.suite(naps, check("next"), server=patient_server(folder))
    folder.run("--mcptest", "evals").assert_outcomes(passed=2)


def test_a_server_that_was_started_ahead_for_nothing_is_ended(folder: Folder) -> None:
    naps = check("naps", "nap", {"equals": "else"}, timeout="20s")
    folder.suite(naps, check("next"), server=patient_server(folder))
    folder.run("--mcptest", "evals", "-x").assert_outcomes(failed=1)
    assert [is_alive(pid) for pid in folder.pids()] == [False] * 3  # one was asked first


# -- xdist -----------------------------------------------------------------------------------------


def test_workers_of_xdist_run_the_same_items(folder: Folder) -> None:
    folder.suite(check("one"), check("fails", expect={"equals": "else"}))
    result = folder.run("-p", "xdist", "-n", "2", "--mcptest", "evals")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["repeat:   pytest *", "FAILED evals/suite.yaml::fails - *else*"])
