"""A first run does little before its first server: and what it puts off is there when needed."""

from __future__ import annotations

import contextlib
import errno
import subprocess
import sys
from pathlib import Path, PurePosixPath

import pytest

from mcptest.core.errors import PeerError, UsageError
from mcptest.core.limits import parse_duration
from mcptest.core.results import Status
from mcptest.probe.suites.settings import LastRun, failed_last_time
from mcptest.session.server_spec import ServerWords, target_of
from mcptest.suite.model import Expect, ToolBlock
from mcptest.suite.model import Test as SuiteTest
from mcptest.suite.reading import Place, ScalarNode, json_value
from mcptest.transport.process import start
from mcptest.transport.temporary import isolate_fixture


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30s", 30),
        ("007s", 7),
        ("500ms", 0.5),
        ("2m", 120),
        ("1h", 3600),
        ("5µs", 5e-6),
        ("1m30s", 90),
        ("1.5h", 5400),
        (".5s", 0.5),
        ("1.s", 1),
        ("12", 12),
        ("1e3", 1000),
    ],
)
def test_a_duration_is_read_in_each_of_its_forms(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text",
    ["", "s", "µs", "0s", "-1s", " 1s", "1 s", "1_0s", "1.5.5s", "٣s", "1e3s", "1sm", "9" * 400],
)
def test_what_is_no_duration_is_said(text: str) -> None:
    with pytest.raises(UsageError, match="invalid duration"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("42", 42),
        ("1_000", 1000),
        ("017", 15),
        ("-5", -5),
        ("1.5", 1.5),
        ("1٣", "1٣"),
        ("1x", "1x"),
        ("_", "_"),
        ("1:30", "1:30"),
    ],
)
def test_a_plain_number_means_the_same_by_the_short_way_and_the_long(
    text: str, value: object
) -> None:
    found = json_value(ScalarNode(text, True, None, 1, 1, len(text)))
    assert (type(found), found) == (type(value), value)


@pytest.mark.parametrize(
    "word", ["npx", "/usr/bin/python", "dir/", "./a/.", "..", ".", "/", "a//b", "--x=/y/z", "@a/b"]
)
def test_a_server_is_called_by_the_last_part_of_each_word(word: str) -> None:
    label = target_of(ServerWords(command=("run", word))).label
    assert label == f"run {PurePosixPath(word).name or word}"


def test_a_start_that_fails_for_want_of_descriptors_needs_nothing_more_to_say_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def no_pipe_left(*args: object, **options: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(subprocess, "Popen", no_pipe_left)
    monkeypatch.setitem(sys.modules, "mcptest.transport.process", None)
    with pytest.raises(PeerError, match="'server' could not be started: Too many open files"):
        start(["server"], {}, None)


def test_a_copy_of_the_fixture_has_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("data", "tmp"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    copy = isolate_fixture(str((tmp_path / "data").resolve()))
    assert copy.path == Path(copy.folder)
    assert copy.path.is_dir()
    assert copy.remove()
    assert not copy.path.parent.exists()


@pytest.mark.parametrize("name", ["plain", "größer ✓", "line\u2028break\n", "half \ud83d pair"])
def test_a_failure_is_remembered_whatever_its_test_is_called(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    test = SuiteTest(name, ToolBlock("t", {}, expect=Expect(not_error=True)), Place("s.yaml"))
    with contextlib.closing(LastRun()) as last_run:
        last_run.begin()
        last_run.add(test, Status.FAIL)
    assert failed_last_time() == {f"s.yaml::{name}"}
    with contextlib.closing(LastRun()) as last_run:
        last_run.begin()
        # what failed earlier is written anew
    assert failed_last_time() == {f"s.yaml::{name}"}
