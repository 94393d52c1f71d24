"""`mcptest generate` and `mcptest init` write suites that load; what init writes passes at once."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from mcptest.suite.load import load_suites
from mcptest.suite.model import ToolBlock
from tests.e2e.driving import NPM, PYTHON_SDK, mcptest
from tests.peers.warm_peers import warm_peer

EXPLORED = (sys.executable, "-I", "-S", str(Path(__file__).with_name("explored.py")))
FILESYSTEM = ("node", str(NPM / "server-filesystem" / "dist" / "index.js"))


def tools_in(folder: Path, fixture: str | None = None) -> dict[str, bool]:
    """The tools of a suite, each with whether its test is skipped."""
    suite = load_suites([str(folder)], fixture=fixture).suite
    return {t.block.tool: t.skip for t in suite.tests if isinstance(t.block, ToolBlock)}


# -- generate ------------------------------------------------------------------------------


def test_each_tool_gets_a_test_and_what_may_write_is_skipped(tmp_path: Path) -> None:
    folder = tmp_path / "evals"
    done = mcptest("generate", "--output", str(folder), "--", *EXPLORED, "only=echo,wipe,silent")
    assert done.code == 0
    assert tools_in(folder) == {"echo": False, "wipe": True, "silent": True}
    assert "# skipped: it is marked destructiveHint" in (folder / "wipe.yaml").read_text()
    assert "2 marked skip: true" in done.out


def test_writes_are_not_skipped_when_they_are_asked_for(tmp_path: Path) -> None:
    options = ("--output", str(tmp_path), "--allow-writes")
    mcptest("generate", *options, "--", *EXPLORED, "only=echo,wipe")
    assert tools_in(tmp_path) == {"echo": False, "wipe": False}


@pytest.mark.parametrize("command", ["generate", "init"])
def test_one_tool_that_may_write_is_allowed_by_its_name(command: str, tmp_path: Path) -> None:
    folder = tmp_path / "evals"
    words = (
        ("generate", "--output", str(folder)) if command == "generate" else ("init", str(folder))
    )
    options = (*words, "--allow-tool", "wipe", "--", *EXPLORED, "only=echo,wipe,silent")
    done = mcptest(*options)
    assert done.code == 0, done.said
    assert tools_in(folder) == {"echo": False, "wipe": False, "silent": True}


@pytest.mark.parametrize("command", ["generate", "init"])
def test_a_tool_to_be_allowed_has_to_be_there(command: str, tmp_path: Path) -> None:
    folder = tmp_path / "evals"
    words = (
        ("generate", "--output", str(folder)) if command == "generate" else ("init", str(folder))
    )
    done = mcptest(*words, "--allow-tool", "wpe", "--", *EXPLORED, "only=echo,wipe")
    assert done.code == 2
    assert "the server has no tool named 'wpe'" in done.err
    assert "did you mean wipe?" in done.err
    assert not folder.exists()


def test_nothing_is_called(tmp_path: Path) -> None:
    wire = tmp_path / "wire"
    options = ("--output", str(tmp_path / "evals"), "--save-capture", str(wire))
    assert mcptest("generate", *options, "--", *EXPLORED, "prompts", "resources").code == 0
    said = (wire / "session-001.jsonl").read_text()
    assert "tools/list" in said
    assert "tools/call" not in said
    assert "resources/read" not in said


def test_files_that_exist_are_kept_and_named(tmp_path: Path) -> None:
    command = ("generate", "--output", str(tmp_path), "--", *EXPLORED, "only=echo")
    mcptest(*command)
    (tmp_path / "echo.yaml").write_text("mine")
    done = mcptest(*command)
    assert "kept echo.yaml" in done.out
    assert (tmp_path / "echo.yaml").read_text() == "mine"


def test_an_output_that_is_no_folder_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = mcptest("generate", "--output", str(tmp_path / "file"), "--", *EXPLORED)
    assert done.code == 2
    assert "Traceback" not in done.err


@pytest.mark.npm
def test_paths_lead_into_the_fixture_where_there_is_one(tmp_path: Path) -> None:
    if not NPM.is_dir():
        pytest.skip("the npm servers are not installed")
    data = tmp_path / "data"
    data.mkdir()
    (data / "hello.txt").write_text("Hello")
    folder = tmp_path / "evals"
    options = ("--fixture", str(data), "--output", str(folder))
    assert mcptest("generate", *options, "--", *FILESYSTEM, "{{fixture}}").code == 0
    text = (folder / "read_text_file.yaml").read_text()
    assert 'path: "{{fixture}}/hello.txt"' in text
    assert '"{{fixture}}"]' in text
    assert tools_in(folder, str(data))["write_file"] is True
    assert mcptest("run", str(folder), "--fixture", str(data)).code == 0


# -- init ----------------------------------------------------------------------------------


def test_the_example_passes_at_once(tmp_path: Path) -> None:
    done = mcptest("init", cwd=tmp_path)
    assert done.code == 0
    assert "mcptest run evals --fixture evals/fixtures" in done.out
    run = mcptest("run", "evals", "--fixture", "evals/fixtures", cwd=tmp_path)
    assert run.code == 0, run.said


def test_the_folder_may_stand_before_the_server(tmp_path: Path) -> None:
    folder = tmp_path / "evals"
    server = " ".join((*EXPLORED, "only=echo,complain,wipe"))
    assert mcptest("init", str(folder), "--server", server).code == 0
    assert tools_in(folder) == {"echo": False, "complain": False, "wipe": True}


def test_a_suite_of_a_server_passes_at_once(tmp_path: Path) -> None:
    folder = tmp_path / "evals"
    words = ("only=echo,complain,structured,clock,wipe", "resources")
    done = mcptest("init", str(folder), "--", *EXPLORED, *words)
    assert done.code == 0, done.said
    run = mcptest("run", str(folder), "--json")
    verdicts = {one["name"]: one["status"] for one in json.loads(run.out)}
    broken = verdicts.pop("note://gone can be read")
    assert broken == "FAIL"
    assert "'note://gone' is broken" in done.out
    assert set(verdicts.values()) == {"PASS", "SKIP"}
    assert verdicts["wipe answers"] == "SKIP"


def test_what_a_run_needs_is_said_and_a_run_without_it_is_not_green(tmp_path: Path) -> None:
    folder = tmp_path / "evals"
    argv = ("--env", "API_KEY=k-123456", "--", *EXPLORED, "only=echo,complain")
    done = mcptest("init", str(folder), *argv)
    assert done.code == 0, done.said
    assert "required environment variables: API_KEY" in done.out
    assert "1 expect the observed error" in done.out
    without = mcptest("run", str(folder))
    assert without.code == 4
    assert "all 2 tests were skipped: env var API_KEY not set (2)" in without.err
    assert mcptest("run", str(folder), env={**os.environ, "API_KEY": "k-123456"}).code == 0


def test_a_test_that_was_seen_to_end_in_an_error_says_so(tmp_path: Path) -> None:
    folder = tmp_path / "evals"
    mcptest("init", str(folder), "--", *EXPLORED, "only=complain")
    written = (folder / "complain.yaml").read_text()
    assert "is_error: true" in written
    assert "# the input is generated and gets an error: no such thing" in written


def test_a_fault_that_no_test_looks_for_is_not_called_a_failing_test(tmp_path: Path) -> None:
    words = ("only=unstructured,misshapen,internal",)
    done = mcptest("init", str(tmp_path / "evals"), "--no-snapshots", "--", *EXPLORED, *words)
    assert "'internal' is broken: its test will fail" in done.out
    assert "'misshapen' is broken: its test will fail" in done.out
    assert "'unstructured' has a fault that its test does not check: " in done.out
    failed = mcptest("run", str(tmp_path / "evals"), "--json").out
    outcomes = {one["name"]: one["status"] for one in json.loads(failed)}
    assert outcomes == {
        "internal answers": "FAIL",
        "misshapen answers": "FAIL",
        "unstructured answers": "PASS",
    }


def test_a_suite_of_which_no_test_runs_is_said_to_be_one(tmp_path: Path) -> None:
    for command in (("init", str(tmp_path / "a")), ("generate", "--output", str(tmp_path / "b"))):
        done = mcptest(*command, "--", *EXPLORED, "only=wipe,silent")
        assert "none of these tests runs as is (each file says why)" in done.out, done.said


def test_a_command_with_a_secret_is_named_with_a_variable_where_the_suite_is_run(
    tmp_path: Path,
) -> None:
    secret = "--api-key=k-123456"
    done = mcptest("init", str(tmp_path / "evals"), "--", *EXPLORED, "only=echo", secret)
    assert "k-123456" not in done.out
    assert """--api-key='"$API_KEY\"""" in done.out


def test_what_may_write_is_not_called_by_init(tmp_path: Path) -> None:
    wire = tmp_path / "wire"
    options = (str(tmp_path / "evals"), "--save-capture", str(wire))
    mcptest("init", *options, "--", *EXPLORED, "only=echo,wipe,put")
    said = (wire / "session-001.jsonl").read_text()
    assert '"name":"echo","arguments"' in said
    assert '"name":"wipe","arguments"' not in said
    assert '"name":"put","arguments"' not in said


@pytest.mark.parametrize("server", [(), ("--server", "demo")])
def test_files_in_the_way_are_never_touched(server: tuple[str, ...], tmp_path: Path) -> None:
    mine = tmp_path / "read_file.yaml"
    mine.write_text("mine")
    done = mcptest("init", str(tmp_path), *server)
    assert done.code == 2
    assert "already exists" in done.err
    assert mine.read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["read_file.yaml"]


@pytest.mark.parametrize("name", ["demo", "python-sdk"])
def test_suites_of_real_servers_pass_at_once(name: str, tmp_path: Path) -> None:
    demo = (sys.executable, "-m", "mcptest.servers.demo")
    command = demo if name == "demo" else warm_peer(*PYTHON_SDK)
    folder = tmp_path / "evals"
    done = mcptest("init", str(folder), "--allow-writes", "--", *command)
    assert done.code == 0, done.said
    run = mcptest("run", str(folder))
    assert run.code == 0, run.said
