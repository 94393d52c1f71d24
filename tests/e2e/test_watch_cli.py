"""`mcptest watch` at a real terminal and without one, on real servers and real files."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.driving import BOUND, NPM
from tests.e2e.screens import Terminal, at_a_terminal
from tests.e2e.suite_runs import Site, call, server

WAITING = "q quit"


@contextlib.contextmanager
def watching(site: Site, *argv: str) -> Iterator[Terminal]:
    """From the moment in which the first run is over."""
    env = site.environment()
    with at_a_terminal("watch", "evals", *argv, cwd=site.folder, env=env) as terminal:
        terminal.until(WAITING)
        yield terminal


def suite(site: Site, name: str, *tests: dict[str, Any], **top: Any) -> Path:
    (site.folder / "evals").mkdir(exist_ok=True)
    env = {"ROGUE_PIDS": str(site.pids)}
    site.suite(tests, f"evals/{name}.yaml", **{"server": server("legacy", env=env), **top})
    return site.folder / "evals" / f"{name}.yaml"


def says(name: str, wanted: str, said: str = "hello") -> dict[str, Any]:
    return {"name": name, "assert": call("echo", {"equals": wanted}, text=said)}


def test_a_change_runs_what_it_affects_and_shows_what_flipped(site: Site) -> None:
    suite(site, "one", says("greets", "hello"))
    suite(site, "two", says("parts", "hello"))
    with watching(site) as terminal:
        assert terminal.lines[0] == "watching evals"
        assert terminal.lines[1].startswith("2 passed · ")
        assert len(terminal.lines) == 2, "nothing flipped, so nothing is told"
        suite(site, "one", says("greets", "hello", "hullo"))
        terminal.until(WAITING)
        shown = "\n".join(terminal.lines)
        assert "evals/one.yaml changed: 1 test, 1 failed" in shown
        assert "✗ greets: PASS -> FAIL" in shown
        assert '      - "text": "hello"\n      + "text": "hullo"\n' in shown
        assert "repeat:   mcptest run evals/one.yaml -k greets" in shown
        assert terminal.lines[-1].startswith("1 failed · 1 passed · ")
        suite(site, "one", says("greets", "hello"))
        terminal.until(WAITING)
        assert "✓ greets: FAIL -> PASS" in terminal.lines
        terminal.press("q")
        assert terminal.end() == 0
        assert terminal.lines[-1] == "2 passed"
        assert terminal.is_cooked
    site.assert_nothing_is_left()


def test_keys_run_everything_or_what_failed_and_the_exit_code_tells_the_truth(site: Site) -> None:
    suite(site, "one", says("greets", "hello"), says("lies", "hello", "no"))
    with watching(site) as terminal:
        assert not terminal.is_cooked, "single keys"
        assert "✗ lies: FAIL" in terminal.lines
        lines = len(terminal.lines)
        terminal.press("r")
        terminal.until("what failed, 1 test in")
        terminal.press("a")
        terminal.until("all, 2 tests in")
        terminal.until(WAITING)
        assert len(terminal.lines) == lines, "what stays as it was is not told again"
        terminal.press("q")
        assert terminal.end() == 1
        assert terminal.is_cooked


def test_a_watch_in_which_every_test_is_skipped_is_not_green(site: Site) -> None:
    suite(site, "one", says("greets", "hello") | {"skip_unless_env": "NOBODY_SETS_THIS"})
    with watching(site) as terminal:
        assert terminal.lines[-1].startswith("1 skipped · ")
        terminal.press("q")
        assert terminal.end() == 4


def test_a_broken_file_is_shown_with_its_place_and_a_mended_one_is_run(site: Site) -> None:
    file = suite(site, "one", says("greets", "hello"))
    good = file.read_text()
    with watching(site) as terminal:
        file.write_text(good.replace('"equals"', '"equal"'))
        terminal.until("did you mean equals?")
        terminal.until("1 problem in the suites")
        terminal.until(WAITING)
        file.write_text(good)
        terminal.until("the suites are valid again")
        terminal.until("1 passed")
        shutil.rmtree(file.parent)
        terminal.until("can't be read: No such file or directory")
        terminal.until(WAITING)
        suite(site, "one", says("greets", "hello"))
        terminal.until("1 passed")
        terminal.press("q")
        assert terminal.end() == 0


def test_fixtures_and_sources_of_the_server_are_watched(site: Site) -> None:
    (site.folder / "data").mkdir()
    (site.folder / "data" / "file.txt").write_text("one")
    (site.folder / "src").mkdir()
    read = {"name": "reads", "assert": call("read", {"equals": "one"}, path="{{fixture}}/file.txt")}
    suite(site, "one", read, says("greets", "hello"))
    reports = ("--junit", "src/junit.xml", "--save-capture", "src/captures")
    with watching(site, "--fixture", "data", "--also", "src", *reports) as terminal:
        (site.folder / "data" / "file.txt").write_text("two")
        terminal.until("data/file.txt changed: 1 test, 1 failed")
        terminal.until("✗ reads: PASS -> FAIL")
        terminal.until(WAITING)
        (site.folder / "src" / "server.js").write_text("new")
        terminal.until("src/server.js changed, 2 tests")
        terminal.until(WAITING)
        terminal.press("q")
        assert terminal.end() == 1
        # What we write ourselves is no change, and a report holds all tests whatever was run last.
        assert terminal.text.count("src/junit.xml") == 0
        cases = ET.fromstring((site.folder / "src" / "junit.xml").read_bytes()).iter("testcase")
        assert [one.get("name") for one in cases] == ["reads", "greets"]
    site.assert_nothing_is_left()


def test_a_change_during_a_run_ends_it_at_once(site: Site) -> None:
    slow = {"name": "takes long", "assert": call("hang", text="x")}
    suite(site, "one", says("greets", "hello"), slow)
    env = site.environment()
    with at_a_terminal("watch", "evals", "--jobs", "2", cwd=site.folder, env=env) as terminal:
        terminal.until("[1/2]")
        suite(site, "one", says("greets", "hello"), says("takes long", "hello"))
        terminal.until("2 passed")
        terminal.press("q")
        assert terminal.end() == 0
    site.assert_nothing_is_left()


@pytest.mark.parametrize(
    ("when", "how"),
    [("waiting", "ctrl-c"), ("waiting", "SIGTERM"), ("running", "ctrl-c"), ("running", "SIGHUP")],
)
def test_a_signal_ends_everything_and_gives_the_terminal_back(
    site: Site, when: str, how: str
) -> None:
    suite(site, "one", says("greets", "hello"), {"name": "hangs", "assert": call("hang")})
    chosen = ("-k", "greets") if when == "waiting" else ("--jobs", "2")
    env = site.environment()
    with at_a_terminal("watch", "evals", *chosen, cwd=site.folder, env=env) as terminal:
        terminal.until(WAITING if when == "waiting" else "[1/2]")
        if how == "ctrl-c":
            terminal.press("\x03")
        else:
            terminal.process.send_signal(getattr(signal, how))
        assert terminal.end() == 130
        assert terminal.is_cooked
        assert terminal.lines[-1] == "mcptest: interrupted"
        assert "Traceback" not in terminal.text
    site.assert_nothing_is_left()


def test_a_defect_of_ours_gives_the_terminal_back(site: Site) -> None:
    suite(site, "one", says("greets", "hello"))
    (site.folder / "sitecustomize.py").write_text(
        "import mcptest.probe.suites.suite_run as it\n"
        "def broken(*arguments): raise ZeroDivisionError('of the test')\n"
        "it.run_suite = broken\n"
    )
    env = {**site.environment(), "PYTHONPATH": str(site.folder)}
    with at_a_terminal("watch", "evals", cwd=site.folder, env=env) as terminal:
        terminal.until("internal error: ZeroDivisionError")
        assert terminal.end() == 1
        assert terminal.is_cooked


# -- without a terminal --------------------------------------------------------------------------


@contextlib.contextmanager
def in_a_pipe(site: Site, *argv: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "mcptest", "watch", *argv],
        cwd=site.folder,
        env=site.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=BOUND)


def line_with(process: subprocess.Popen[str], words: str) -> str:
    """The next line that holds these words; a test that hangs is ended by its runner."""
    assert process.stdout is not None
    seen = []
    for line in process.stdout:
        seen.append(line)
        if words in line:
            return line
    raise AssertionError(f"never came: {words!r} in {seen}")


@pytest.mark.parametrize("way", [(), ("--interval", "50ms")], ids=["told", "looked for"])
def test_without_a_terminal_plain_lines_tell_the_same(site: Site, way: tuple[str, ...]) -> None:
    suite(site, "one", says("greets", "hello"))
    with in_a_pipe(site, "--suite", "evals", *way) as process:
        assert line_with(process, "") == "watching evals\n"
        assert "1 test, 1 passed in" in line_with(process, "passed")
        suite(site, "one", says("greets", "hello", "hullo"))
        assert "evals/one.yaml changed: 1 test, 1 failed" in line_with(process, "changed")
        assert line_with(process, "->") == "✗ greets: PASS -> FAIL\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=BOUND)
        assert process.returncode == 130
        assert out.endswith("1 failed\n")
        assert err == "mcptest: interrupted\n"
        assert "\x1b" not in out
    site.assert_nothing_is_left()


@pytest.mark.parametrize(
    ("argv", "phrase"),
    [
        (("nowhere",), "no such file or folder: nowhere"),
        (("evals", "--also", "nowhere"), "no such file or folder: nowhere"),
        (("evals", "--interval", "soon"), "--interval"),
        (("evals", "--jobs", "0"), "--jobs"),
        (("evals", "--fixture", "nowhere"), "--fixture nowhere does not exist"),
        (("evals", "--json"), "unknown option"),
    ],
)
def test_what_can_not_be_watched_is_said_before_anything_is_run(
    site: Site, argv: tuple[str, ...], phrase: str
) -> None:
    suite(site, "one", says("greets", "hello"))
    done = site.run(*argv, command="watch")
    assert done.code == 2
    assert phrase in done.err
    assert site.started() == []


def test_the_list_is_that_of_run(site: Site) -> None:
    suite(site, "one", says("greets", "hello"))
    done = site.run("evals", "--list", command="watch")
    assert (done.code, done.out) == (0, site.run("evals", "--list").out)


# -- real servers --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["demo", "server-everything"])
def test_real_servers_are_watched(site: Site, name: str) -> None:
    everything = ("node", str(NPM / "server-everything" / "dist" / "index.js"))
    if name == "server-everything" and not os.path.exists(everything[1]):  # noqa: PTH110 - a text
        pytest.skip("the npm servers are not installed")
    words, arguments = {
        "demo": (("--server", "demo"), {"text": "ahoy"}),
        "server-everything": (("--", *everything), {"message": "ahoy"}),
    }[name]
    test = {"assert": {"tool": "echo", "args": arguments, "expect": {"contains": ["ahoy"]}}}
    (site.folder / "evals").mkdir()
    file = site.folder / "evals" / "echo.yaml"
    file.write_text(json.dumps({"name": "echoes", **test}))
    with watching(site, *words) as terminal:
        assert terminal.lines[-1].startswith("1 passed"), terminal.text
        test["assert"]["expect"] = {"contains": ["something else"]}
        file.write_text(json.dumps({"name": "echoes", **test}))
        terminal.until("✗ echoes: PASS -> FAIL")
        terminal.until(WAITING)
        terminal.press("q")
        assert terminal.end() == 1


# -- the page ------------------------------------------------------------------------------------

ADDER = """
import json, sys
for line in sys.stdin:
    m = json.loads(line)
    method, params = m["method"], m.get("params", {})
    if method == "initialize":
        answer = {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}}
        answer["serverInfo"] = {"name": "adder", "version": "1"}
    elif method == "tools/list":
        answer = {"tools": [{"name": "add", "inputSchema": {"type": "object"}}]}
    elif method == "tools/call":
        a, b = params["arguments"]["a"], params["arguments"]["b"]
        answer = {"content": [{"type": "text", "text": str(a + b)}]}
    else:
        answer = None
    if "id" in m:
        error = {"error": {"code": -32601, "message": "unknown"}}
        sent = {"result": answer} if answer is not None else error
        print(json.dumps({"jsonrpc": "2.0", "id": m["id"], **sent}), flush=True)
"""
ADDS = """\
server: {command: %s, args: [server.py]}
tests:
  - name: adds two numbers
    assert: {tool: add, args: {a: 2, b: 3}, expect: {equals: "5"}}
  - name: adds nothing
    assert: {tool: add, args: {a: 2, b: 0}, expect: {equals: "2"}}
"""


def without_times(lines: list[str]) -> list[str]:
    return [re.sub(r"\d\d:\d\d:\d\d|\b[\d.]+m?s\b", "#", line) for line in lines]


def test_the_sample_on_the_page_is_what_is_shown(site: Site) -> None:
    page = (Path(__file__).parents[2] / "docs" / "commands" / "watch.md").read_text("utf-8")
    sample = re.search(
        r"```console\n\$ mcptest watch ([^\n]*--also server.py)\n(.*?)```", page, re.DOTALL
    )
    assert sample is not None
    source, tests = site.folder / "server.py", site.folder / "evals" / "add.yaml"
    tests.parent.mkdir()
    source.write_text(ADDER)
    tests.write_text(ADDS % sys.executable)
    argv = sample.group(1).split()
    with at_a_terminal("watch", *argv, cwd=site.folder, env=site.environment()) as terminal:
        terminal.until("2 passed")
        terminal.until(WAITING)
        source.write_text(ADDER.replace("a + b", "a - b"))
        terminal.until("1 failed · 1 passed")
        terminal.until(WAITING)
        tests.write_text((ADDS % sys.executable).replace('equals: "2"', 'equal: "2"'))
        terminal.until("1 problem in the suites · 1 failed")
        terminal.until(WAITING)
        tests.write_text(ADDS % sys.executable)
        terminal.until("are valid again")
        terminal.until("2 tests in")
        source.write_text(ADDER)
        terminal.until("FAIL -> PASS")
        terminal.until(WAITING)
        shown = without_times(terminal.lines)
        terminal.press("q")
        assert terminal.end() == 0
    assert shown == without_times(sample.group(2).splitlines())
