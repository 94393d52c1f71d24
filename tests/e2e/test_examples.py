"""Every command of examples/README.md runs, and every example is run by one of them."""

from __future__ import annotations

import os
import re
import shlex
import sys
from pathlib import Path

import pytest

from tests.e2e.driving import NPM, Done, listening, mcptest_anew, wait_until

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
README = (EXAMPLES / "README.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^```console\n(.*?)\n```$", README, re.MULTILINE | re.DOTALL)
FILESYSTEM = NPM / "server-filesystem" / "dist" / "index.js"
ELSEWHERE = r"failing|filesystem|DEMO_URL|--from-suite|mcptest doctor"
ON_THE_DEMO = [line for line in COMMANDS if not re.search(ELSEWHERE, line)]


def run_line(line: str, folder: Path, *more: str, **variables: str) -> Done:
    """One line of the page, in a folder with the examples that takes what a run leaves behind."""
    program, *words = shlex.split(line)
    assert program == "mcptest"
    (folder / "examples").symlink_to(EXAMPLES)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return mcptest_anew(*words, *more, cwd=folder, env={**os.environ, "PATH": path, **variables})


def the_line_with(word: str) -> str:
    (line,) = (line for line in COMMANDS if word in line)
    return line


def test_every_example_stands_in_one_command_of_the_page() -> None:
    suite = r"mcptest (?:run|run --config|compliance run --from-suite) examples/(\S+)"
    named = [path for line in COMMANDS for path in re.findall(suite, line)]
    there = {path.name for path in EXAMPLES.glob("*.y*ml")} | {"filesystem"}
    assert sorted(named) == sorted(there)


@pytest.mark.parametrize("line", ON_THE_DEMO)
def test_examples_on_the_demo_pass(line: str, tmp_path: Path) -> None:
    done = run_line(line, tmp_path)

    assert done.code == 0, done.said
    assert re.search(r"^\d+ tests, (\d+) passed in ", done.out, re.MULTILINE), done.out


def test_the_pinned_example_conforms_and_its_gate_is_clean(tmp_path: Path) -> None:
    done = run_line(the_line_with("--from-suite"), tmp_path)

    assert done.code == 0, done.said
    assert "spec_version_check: PASS (v2026-07-28 -> draft: 0 changed" in done.out
    assert "4 rules: 0 failed, 4 passed" in done.out


def test_the_failing_example_shows_its_proof(tmp_path: Path) -> None:
    done = run_line(the_line_with("failing"), tmp_path)

    assert done.code == 1
    assert "want sunny, got windy" in done.out
    assert "did not answer tools/call within 0.5s" in done.out
    # the proof of a timeout is the request that nobody answered, not what came before it
    slow = done.out.partition("a server that is too slow")[2]
    assert re.search(r'request: .*"method":"tools/call"', slow), slow
    assert "(no response)" in slow
    assert "repeat:   mcptest run examples/failing.yaml -k" in slow
    assert "2 failed" in done.out


@pytest.mark.npm
@pytest.mark.peer
def test_the_npm_example_passes(tmp_path: Path) -> None:
    # npx would ask the registry
    server = shlex.join(["node", str(FILESYSTEM)]) + " {{fixture}}"
    done = run_line(the_line_with("filesystem"), tmp_path, "--server", server)

    assert done.code == 0, done.said
    assert "3 tests, 3 passed" in done.out


def test_the_http_example_passes_on_a_server_that_runs(tmp_path: Path) -> None:
    port_file = tmp_path / "port"
    serve = [sys.executable, "-m", "mcptest", "serve", "demo", "--transport", "http"]
    assignment, _, line = the_line_with("DEMO_URL").partition(" ")
    with listening([*serve, "--port-file", str(port_file)], "listening"):
        port = wait_until(lambda: port_file.is_file() and port_file.read_text(), "the port")
        url = assignment.partition("=")[2].replace("8931", str(int(port)))
        done = run_line(line, tmp_path, DEMO_URL=url)

    assert done.code == 0, done.said
    assert "3 tests, 3 passed" in done.out


def test_the_http_example_is_skipped_without_a_server(tmp_path: Path) -> None:
    done = run_line(the_line_with("DEMO_URL").partition(" ")[2], tmp_path, DEMO_URL="")

    assert "3 skipped" in done.out, done.said
    assert "DEMO_URL" in done.out
