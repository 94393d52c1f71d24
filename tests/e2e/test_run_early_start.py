"""A run that is the same as the last one starts its first server at once; nothing else changes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.driving import BOUND, wait_until
from tests.e2e.suite_runs import REPLIER, Site, call, server
from tests.e2e.test_run_isolation import logging_server, noted

# What was imported when the first server was started, and in which way that was.
AT_THE_FIRST_SERVER = """
import os, sys
before = set(sys.modules)
def stop_at_the_first_server(event, arguments):
    if event in ("subprocess.Popen", "os.posix_spawn") and "mcptest-lifeline" not in arguments[1]:
        os.write(1, " ".join([event, *sorted(set(sys.modules) - before)]).encode())
        os._exit(0)
sys.addaudithook(stop_at_the_first_server)
from mcptest.__main__ import main
sys.argv = ["mcptest", "run", *sys.argv[1:]]
sys.exit(main())
"""


@pytest.fixture(autouse=True)
def memory(site: Site, tmp_path: Path) -> Path:
    folder = tmp_path / "cache"
    site.env["XDG_CACHE_HOME"] = str(folder)
    return folder / "mcptest" / "first-servers-2"


def first_start(site: Site, *argv: str, **env: str) -> tuple[str, set[str]]:
    """How the first server is started, and the modules that were imported before it."""
    aside = site.temporary.with_name("aside")  # what is torn away in the middle removes nothing
    aside.mkdir(exist_ok=True)
    done = subprocess.run(
        [sys.executable, "-c", AT_THE_FIRST_SERVER, *argv],
        cwd=site.folder,
        env=site.environment(TMPDIR=str(aside), **env),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=BOUND,
    )
    assert done.returncode == 0, done.stderr
    event, *modules = done.stdout.split()
    return event, set(modules)


def is_early(site: Site, *argv: str, **env: str) -> bool:
    return first_start(site, *argv, **env)[0] == "os.posix_spawn"


def starts(site: Site) -> list[int]:
    return [pid for _, pid, what in noted(site) if what == "start"]


def three_tests(site: Site) -> str:
    tests = [{"name": f"t{n}", "assert": call("echo", text="hi")} for n in range(3)]
    return site.suite(tests, server=logging_server(site, "{{fixture}}"))


@pytest.fixture
def data(site: Site) -> str:
    (site.folder / "data").mkdir()
    (site.folder / "data" / "f").write_text("x")
    return "data"


def test_the_second_run_starts_before_anything_is_imported(site: Site, data: str) -> None:
    words = (three_tests(site), "--fixture", data)
    assert not is_early(site, *words)
    assert site.run(*words).code == 0
    event, modules = first_start(site, *words)
    assert event == "os.posix_spawn"
    assert not modules & {"contextlib", "enum", "functools", "signal"}  # and all that needs these
    assert len(modules) <= 26


@pytest.mark.parametrize("isolation", ["fresh", "shared"])
def test_each_test_has_its_server_and_none_is_started_for_nothing(
    site: Site, data: str, isolation: str
) -> None:
    # What a server speaks may take a process more to find out when it is slow to start.
    asked = ("--spec-version", "2025-11-25", "--isolation", isolation)
    words = (three_tests(site), "--fixture", data, *asked, "--json")
    first = site.run(*words)
    second = site.run(*words)
    assert (first.code, second.code) == (0, 0)
    assert len(starts(site)) == 2 * (3 if isolation == "fresh" else 1)
    assert [each["status"] for each in json.loads(second.out)] == ["PASS"] * 3
    ends = [pid for _, pid, what in noted(site) if what == "end"]
    assert sorted(ends) == sorted(starts(site))  # all of them were asked to leave, and did
    assert list(site.temporary.iterdir()) == []


def test_a_warm_start_may_be_an_early_one_and_gives_the_server_the_same(site: Site) -> None:
    told = call("env", {"contains": ["/mcptest/node-compile-cache"]}, name="NODE_COMPILE_CACHE")
    suite = site.suite([{"name": "t", "assert": told}], server=server())
    first = site.run(suite, "--warm-start")
    assert first.code == 0, first.out
    assert is_early(site, suite, "--warm-start")
    second = site.run(suite, "--warm-start")
    assert second.code == 0, second.out
    assert not is_early(site, suite)  # other words are another run
    assert site.run(suite).code == 1


def break_the_suite(site: Site) -> None:
    (site.folder / "suites/suite.yaml").write_text("tests: 1")


def add_a_broken_file(site: Site) -> None:
    (site.folder / "suites/more.yaml").write_text("tests: [")


def remove_the_suite(site: Site) -> None:
    (site.folder / "suites/suite.yaml").unlink()


def remove_the_fixture(site: Site) -> None:
    (site.folder / "data/f").unlink()
    (site.folder / "data").rmdir()


@pytest.mark.parametrize(
    "spoil",
    [break_the_suite, add_a_broken_file, remove_the_suite, remove_the_fixture],
)
def test_errors_come_before_anything_starts_also_after_a_run_that_was_sound(
    site: Site, data: str, spoil: Callable[[Site], None]
) -> None:
    (site.folder / "suites").mkdir()
    three_tests(site)
    (site.folder / "suite.yaml").rename(site.folder / "suites/suite.yaml")
    words = ("suites", "--fixture", data)
    assert site.run(*words).code == 0
    assert is_early(site, *words)
    before = starts(site)
    spoil(site)
    assert site.run(*words).code == 2
    assert starts(site) == before
    assert list(site.temporary.iterdir()) == []


def test_a_run_that_depends_on_more_than_its_suites_is_not_remembered(
    site: Site, memory: Path
) -> None:
    plain = {"name": "t", "assert": call("echo", text="hi")}
    by_environment = {**server(), "env": {"TOKEN": "${A_SECRET_OF_OURS:-none}"}}
    site.suite([plain], "env.yaml", server=by_environment)
    site.suite([plain], "cwd.yaml", server={**server(), "cwd": str(site.folder)})
    site.suite([plain], "clean.yaml", server={**server(), "clean_env": True})
    site.suite([{**plain, "skip_unless_env": "HOME"}], "skip.yaml", server=server())
    site.suite([plain], "plain.yaml", server=server())
    command = subprocess.list2cmdline(REPLIER)
    for words in (
        ("env.yaml",),
        ("cwd.yaml",),
        ("clean.yaml",),
        ("skip.yaml",),
        ("plain.yaml", "--clean-env"),
        ("plain.yaml", "--env", "A=b"),
        ("plain.yaml", "--server", command),
        ("plain.yaml", "--capture", "captures"),
        ("plain.yaml", "--cwd", "."),
    ):
        assert site.run(*words).code == 0, words
        assert not memory.exists(), words
    assert site.run("plain.yaml").code == 0
    assert len(list(memory.iterdir())) == 1


def test_a_server_that_is_started_early_sees_the_environment_of_this_run(
    site: Site, memory: Path
) -> None:
    suite = site.suite(
        [{"name": "t", "assert": call("env", {"equals": "second"}, name="OF_THE_CALLER")}],
        server=server(),
    )
    assert site.run(suite, OF_THE_CALLER="first").code == 1
    assert site.run(suite, OF_THE_CALLER="second").code == 0
    assert is_early(site, suite, OF_THE_CALLER="second")
    kept = b"".join(path.read_bytes() for path in memory.iterdir())
    assert b"second" not in kept
    assert b"OF_THE_CALLER" not in kept


def test_a_home_that_can_not_be_written_to_costs_only_the_early_start(site: Site) -> None:
    suite = site.suite([{"name": "t", "assert": call("echo", text="hi")}], server=server())
    for _ in range(2):
        done = site.run(suite, XDG_CACHE_HOME="/dev/null")
        assert (done.code, "cache" in done.said) == (0, False)
    assert not is_early(site, suite, XDG_CACHE_HOME="/dev/null")


def mislead(memory: Path, site: Site) -> None:
    """Let the memory name another server: as if the suite was changed while it was looked at."""
    (file,) = memory.iterdir()
    words = file.read_bytes().split(b"\0")
    at = words.index(f"log={site.folder / 'log'}".encode())
    words[at] = f"log={site.folder / 'other'}".encode()
    file.write_bytes(b"\0".join(words))


def test_a_server_that_is_not_the_one_of_the_suite_is_ended_and_not_talked_to(
    site: Site, data: str, memory: Path
) -> None:
    words = (three_tests(site), "--fixture", data, "--spec-version", "2025-11-25")
    assert site.run(*words).code == 0
    mislead(memory, site)
    assert site.run(*words).code == 0
    assert len(starts(site)) == 2 * 3
    other = (site.folder / "other").read_text() if (site.folder / "other").exists() else ""
    assert "call" not in other
    site.pids.write_text("".join(f"{line.split()[1]}\n" for line in other.splitlines()))
    site.assert_nothing_is_left()
    assert is_early(site, *words)  # and what is true was written down again


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_right_after_the_early_start_leaves_nothing(
    site: Site, data: str, number: signal.Signals
) -> None:
    words = (three_tests(site), "--fixture", data)
    assert site.run(*words).code == 0
    before = len(starts(site))
    running = site.start(*words)
    wait_until(lambda: any(site.temporary.iterdir()), "the copy of the fixture")
    running.send_signal(number)
    out, err = running.communicate(timeout=BOUND)
    assert running.returncode == 130, (out, err)
    assert b"Traceback" not in err
    pids = {pid for _, pid, _ in noted(site)}
    site.pids.write_text("".join(f"{pid}\n" for pid in pids))
    site.assert_nothing_is_left()
    assert len(starts(site)) <= before + 3
