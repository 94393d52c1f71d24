"""Ten thousand tests: in time, and in memory that does not grow with them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.driving import BOUND
from tests.e2e.suite_runs import Site, call, server

MANY = 10_000
ECHO = Path(__file__).parents[2] / "benchmarks" / "servers" / "stdio_echo.py"
# Not ru_maxrss: a child inherits the peak of whoever forked it.
PEAK = """
import re, sys
from pathlib import Path
from mcptest.commands.app import run
code = run(sys.argv[1:])
status = Path("/proc/self/status").read_text()
print(re.search(r"VmHWM:\\s*(\\d+) kB", status)[1], file=sys.stderr)
sys.exit(code)
"""
pytestmark = pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="the peak of memory is read from /proc"
)


@pytest.fixture
def many_files(site: Site) -> Site:
    folder = site.folder / "evals"
    folder.mkdir()
    for number in range(MANY):
        (folder / f"{number:05d}.yaml").write_text(
            f"name: echo {number}\n"
            "server:\n  command: python3\n  args: [server.py]\n"
            f"assert:\n  tool: echo\n  args:\n    text: hello {number}\n"
            f"  expect:\n    contains: ['hello {number}']\n    not_error: true\n"
        )
    return site


def measured(site: Site, *argv: str) -> tuple[int, str]:
    """Peak of memory in kB, stdout."""
    done = subprocess.run(
        [sys.executable, "-c", PEAK, "run", *argv],
        cwd=site.folder,
        # threads that wait for each other get an area each, on a busy machine more of them
        env=site.environment(MALLOC_ARENA_MAX="1"),
        capture_output=True,
        stdin=subprocess.DEVNULL,
        timeout=2 * BOUND,
    )
    assert done.returncode == 0, done.stderr.decode()
    return int(done.stderr.split()[-1]), done.stdout.decode()


def test_ten_thousand_tests_load_and_run_on_one_server(many_files: Site) -> None:
    loaded, out = measured(many_files, "evals", "--list")
    assert out.count("\n") == MANY
    assert loaded < 200_000
    running = ("--server", f"{sys.executable} -I -S {ECHO}", "--isolation", "shared", "--quiet")
    # what talks to servers is not imported to list tests, and takes its room once
    one = "evals/00000.yaml"
    code = measured(many_files, one, *running)[0] - measured(many_files, one, "--list")[0]

    def grown_by() -> int:
        peak, out = measured(many_files, "evals", *running)
        assert f"{MANY} tests, {MANY} passed" in out
        return peak - loaded - code

    # A busy machine was seen to add some megabytes to one run; what grows with the tests grows in
    # each of them.
    assert any(grown_by() < 10_000 for _ in range(3)), "kB more than loading the tests took"
    lines = (many_files.folder / ".mcptest" / "last-run.jsonl").read_text().splitlines()
    assert sum(json.loads(line).get("status") == "PASS" for line in lines) == MANY


def test_a_second_run_in_a_process_keeps_nothing_of_the_first(site: Site) -> None:
    """`init` and `watch` run suites twice; what is frozen is never collected again."""
    site.suite([{"name": "one", "server": server(), "assert": call()}])
    frozen = (
        "import gc, sys; from mcptest.commands.app import run\n"
        "for _ in range(2):\n"
        "    run(['run', 'suite.yaml'])\n"
        "    print(gc.get_freeze_count(), file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", frozen],
        cwd=site.folder,
        env=site.environment(),
        capture_output=True,
        check=True,
    )
    first, second = map(int, done.stderr.split())
    assert second <= first
