"""The record of what failed, which survives a kill and a full disk."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest

from mcptest.core.errors import UsageError
from mcptest.core.results import Status
from mcptest.probe.suites.settings import LastRun, failed_last_time
from mcptest.suite.model import Expect, ToolBlock
from mcptest.suite.model import Test as SuiteTest
from mcptest.suite.reading import Place

FILE = Path(".mcptest/last-run.jsonl")


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def named(name: str) -> SuiteTest:
    block = ToolBlock("echo", {}, expect=Expect(not_error=True))
    return SuiteTest(name=name, block=block, place=Place("s.yaml"))


def ran(*results: tuple[str, Status]) -> None:
    with contextlib.closing(LastRun()) as last_run:
        last_run.begin()
        for name, status in results:
            last_run.add(named(name), status)


def test_what_failed_is_remembered_until_it_passes() -> None:
    ran(("a", Status.FAIL), ("b", Status.FAIL), ("c", Status.PASS))
    assert failed_last_time() == {"s.yaml::a", "s.yaml::b"}
    ran(("a", Status.PASS))
    assert failed_last_time() == {"s.yaml::b"}
    ran(("b", Status.SKIP))
    assert failed_last_time() == {"s.yaml::b"}, "a skip says nothing"
    ran(("b", Status.PASS))
    assert failed_last_time() == set()


def test_one_failing_trial_is_enough() -> None:
    ran(("a", Status.FAIL), ("a", Status.PASS))
    ran(("b", Status.PASS), ("b", Status.FAIL))
    assert failed_last_time() == {"s.yaml::a", "s.yaml::b"}


def test_a_torn_last_line_costs_nothing_else() -> None:
    ran(("a", Status.FAIL), ("b", Status.FAIL))
    FILE.write_bytes(FILE.read_bytes()[:-7] + b"\n\xff\xfe[[[\n")
    assert failed_last_time() == {"s.yaml::a"}
    ran(("c", Status.FAIL))
    assert failed_last_time() == {"s.yaml::a", "s.yaml::c"}


def test_a_run_that_was_killed_at_once_forgets_nothing() -> None:
    ran(("a", Status.FAIL))
    with contextlib.closing(LastRun()) as last_run:
        last_run.begin()
    assert failed_last_time() == {"s.yaml::a"}


def test_there_must_have_been_a_run() -> None:
    with pytest.raises(UsageError, match="no earlier run"):
        failed_last_time()


def test_a_full_disk_costs_the_record_not_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    with contextlib.closing(LastRun()) as last_run:
        last_run.begin()

        def full(*args: object) -> int:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "write", full)
        last_run.add(named("a"), Status.FAIL)
        last_run.add(named("b"), Status.FAIL)


def test_the_folder_keeps_itself_out_of_version_control() -> None:
    ran()
    assert Path(".mcptest/.gitignore").read_text() == "*\n"
