"""A run that is interrupted at any moment: what was finished is kept, and nothing is left."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
import xml.etree.ElementTree as ET
from typing import Any

import pytest

from tests.e2e.driving import BOUND, wait_until
from tests.e2e.suite_runs import Site, call, server
from tests.rogues.gallery import CASES, command

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
TESTS = 24
BUSY = 60.0
"""For what takes a few seconds, on a machine that does other things too."""


def busy_suite(site: Site, *words: str, **top: Any) -> str:
    """Tests that pass quickly, and every third that takes its time."""
    env = {"ROGUE_PIDS": str(site.pids)}
    (site.folder / "data").mkdir(exist_ok=True)
    (site.folder / "data" / "file.txt").write_text("content")
    log = f"log={site.folder / 'log'}"
    tests = [
        {"name": f"t{n:02d}", "assert": call("nap", seconds=0.3) if n % 3 == 2 else call("echo")}
        for n in range(TESTS)
    ]
    return site.suite(tests, server=server(log, *words, env=env), **top)


def ended(process: subprocess.Popen[bytes]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=BOUND)
    return process.returncode, out.decode(), err.decode()


def calls_noted(site: Site) -> int:
    log = site.folder / "log"
    return log.read_text().count(" call ") if log.exists() else 0


def finished(site: Site) -> dict[str, str]:
    """What the record of the run, written while it went on, says."""
    found = {}
    for line in (site.folder / ".mcptest" / "last-run.jsonl").read_text().splitlines():
        entry = json.loads(line)
        if "test" in entry:
            found[entry["test"].partition("::")[2]] = entry["status"]
    return found


def assert_interrupted_in_order(site: Site, code: int, out: str, err: str) -> None:
    assert code == 130, out + err
    assert "Traceback" not in out + err
    saved = site.saved()
    assert saved["interrupted"] is True
    names = [each["name"] for each in saved["results"]]
    assert names == sorted(names), "the order of the suite"
    assert {each["name"]: each["status"] for each in saved["results"]} == finished(site)
    assert {each["status"] for each in saved["results"]} <= {"PASS"}, (
        "what was cut off has no result"
    )
    suites = ET.fromstring((site.folder / "junit.xml").read_bytes())
    assert len(list(suites.iter("testcase"))) == len(names)
    site.assert_nothing_is_left()


def start(site: Site, suite: str, *argv: str) -> subprocess.Popen[bytes]:
    reports = ("--json-file", "run.json", "--junit", "junit.xml")
    return site.start(suite, "--fixture", "data", *reports, *argv)


@pytest.mark.parametrize("seed", range(6))
def test_a_signal_at_any_moment_keeps_what_was_finished_and_leaves_nothing(
    site: Site, seed: int
) -> None:
    chance = random.Random(seed)
    suite = busy_suite(site)
    mode = [[], ["--jobs", "4"], ["--isolation", "shared", "--in-flight", "4"]][seed % 3]
    process = start(site, suite, *mode)
    wanted = chance.randrange(1, TESTS // 2)
    wait_until(lambda: calls_noted(site) >= wanted or process.poll() is not None, "some calls")
    time.sleep(chance.random() * 0.05)  # not to wait for anything: the moment is to be any
    process.send_signal(SIGNALS[seed % 3])
    code, out, err = ended(process)
    assert_interrupted_in_order(site, code, out, err)


def test_a_signal_ends_servers_that_do_not_want_to_end(site: Site) -> None:
    stubborn = [c for c in CASES if c.name in {"ignores-sigterm", "grandchild-ignores-sigterm"}]
    env = {"ROGUE_PIDS": str(site.pids)}
    tests = [
        {
            "name": f"{case.name} {n}",
            "server": {"command": command(case)[0], "args": command(case)[1:], "env": env},
            "assert": {"tool": "echo", "args": {}, "expect": {"not_error": True}},
        }
        for n in range(6)
        for case in stubborn
    ]
    suite = site.suite(tests)
    (site.folder / "data").mkdir()
    process = start(site, suite, "--jobs", "4")
    wait_until(lambda: len(site.started()) >= 6 or process.poll() is not None, "some servers")
    began = time.monotonic()
    process.send_signal(signal.SIGTERM)
    code, _, _ = ended(process)
    assert code == 130
    assert time.monotonic() - began < BUSY
    site.assert_nothing_is_left()


def test_a_second_signal_ends_everything_at_once(site: Site) -> None:
    env = {"ROGUE_PIDS": str(site.pids)}
    deaf = next(case for case in CASES if case.name == "forks-when-terminated")
    tests = [
        {
            "name": f"t{n}",
            "server": {"command": command(deaf)[0], "args": command(deaf)[1:], "env": env},
            "assert": {"tool": "echo", "args": {}, "expect": {"not_error": True}},
        }
        for n in range(12)
    ]
    (site.folder / "data").mkdir()
    process = start(site, site.suite(tests), "--jobs", "4")
    wait_until(lambda: len(site.started()) >= 8 or process.poll() is not None, "some servers")
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)
    began = time.monotonic()
    code, _, _ = ended(process)
    assert code == 130
    assert time.monotonic() - began < BUSY
    site.await_nothing_left()
    site.assert_nothing_is_left()


def test_a_signal_before_any_test_is_finished_still_gives_reports(site: Site) -> None:
    env = {"ROGUE_PIDS": str(site.pids)}
    suite = site.suite([{"name": "t", "assert": call("hang")}], server=server(env=env))
    (site.folder / "data").mkdir()
    process = start(site, suite)
    wait_until(lambda: site.started() or process.poll() is not None, "the server")
    process.send_signal(signal.SIGINT)
    code, _, _ = ended(process)
    assert code == 130
    assert site.saved()["interrupted"] is True
    assert "results" not in site.saved() or site.saved()["results"] == []
    site.assert_nothing_is_left()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_while_the_first_server_is_started_leaves_nothing(
    site: Site, number: signal.Signals
) -> None:
    """From the copy of the fixture on there is something to take down, long before a test runs."""
    process = site.start(busy_suite(site, "{{fixture}}"), "--fixture", "data")
    wait_until(
        lambda: any(site.temporary.iterdir()) or process.poll() is not None,
        "the copy of the fixture",
    )
    process.send_signal(number)
    code, out, err = ended(process)
    assert code == 130, out + err
    assert "Traceback" not in err
    site.assert_nothing_is_left()


def test_an_ignored_hangup_stays_ignored_as_under_nohup(site: Site) -> None:
    suite = busy_suite(site)
    process = site.start(
        suite, "-k", "t00 or t02", preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)
    )
    wait_until(lambda: calls_noted(site) >= 1 or process.poll() is not None, "a call")
    process.send_signal(signal.SIGHUP)
    code, out, err = ended(process)
    assert code == 0, out + err


@pytest.mark.parametrize("seed", range(3))
def test_a_killed_run_leaves_a_readable_record_and_no_torn_file(site: Site, seed: int) -> None:
    chance = random.Random(seed)
    suite = busy_suite(site)
    (site.folder / "run.json").write_text('{"old": true}')
    process = start(site, suite, "--jobs", "4", "--save-capture", "captures")
    wanted = chance.randrange(3, TESTS // 2)
    wait_until(lambda: calls_noted(site) >= wanted or process.poll() is not None, "some calls")
    process.kill()
    ended(process)
    # Whole lines only; and the next run goes on from them.
    statuses = finished(site)
    assert set(statuses.values()) <= {"PASS"}
    assert json.loads((site.folder / "run.json").read_text()) == {"old": True}
    for capture in (site.folder / "captures").iterdir():
        lines = capture.read_bytes().splitlines(keepends=True)
        for line in lines:
            assert line.endswith(b"\n")
            json.loads(line)
    site.await_nothing_left()  # servers see the end of their input
    done = site.run(suite, "--last-failed")
    assert done.code == 4
    for folder in site.temporary.iterdir():  # nobody is there to remove what the killed run made
        assert folder.name.startswith("mcptest-fixture-")


def test_a_run_that_nobody_reads_ends_by_itself(site: Site) -> None:
    """Like `mcptest run … | head -1`."""
    suite = busy_suite(site)
    process = site.start(suite, "-k", "t00 or t01")
    assert process.stdout is not None
    process.stdout.close()
    process.stdout = None
    code = process.wait(BOUND)
    assert code == 1
    assert process.stderr is not None
    assert b"Traceback" not in process.stderr.read()
    process.stderr.close()
    assert os.listdir(site.temporary) == []  # noqa: PTH208 - names
