"""The server that is started before we are ready: who gets it, and that none is left behind."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from mcptest.probe.suites.server_session import ServerSession
from mcptest.probe.suites.server_start import with_a_head_start
from mcptest.probe.suites.settings import Numbered, RunOptions, ServerChoice, Settings
from mcptest.suite.model import Block, Expect, ServerSpec, ToolBlock, TrajectoryBlock
from mcptest.suite.model import Test as SuiteTest
from mcptest.suite.reading import Place
from mcptest.transport.descendants import live_servers, look_at
from mcptest.transport.temporary import live_folders

CALL = ToolBlock("echo", {}, expect=Expect(not_error=True))
WAITS = ServerSpec(command=sys.executable, args=("-S", "-c", "import sys; sys.stdin.read()"))
OPTIONS = RunOptions()


def a_test(block: Block = CALL, server: ServerSpec = WAITS, **more: Any) -> SuiteTest:
    return SuiteTest(name="t", block=block, place=Place("s.yaml"), server=server, **more)


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


def is_alive(pid: int) -> bool:
    seen = look_at(pid)
    return seen is not None and not seen.dead


def test_the_test_that_it_was_started_for_talks_to_it(tmp_path: Path, temporary: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    test = a_test()
    with with_a_head_start([test], Settings(fixture=data), OPTIONS) as settings:
        begun = settings.head_start
        assert begun is not None
        session = ServerSession(Numbered(0, test), settings)
        session.launch()
        try:
            assert not session.could_not_begin
            assert session.served is not None
            transport: Any = session.served.client.connection.transport
            assert transport.pid == begun.process.pid
            assert session.ground.folder == begun.ground.folder
            assert session.ground.path.is_dir()
        finally:
            session.close()
    assert not is_alive(begun.process.pid)
    assert list(temporary.iterdir()) == []


def test_it_is_given_once_and_only_to_its_test() -> None:
    first, second = a_test(), a_test()
    with with_a_head_start([first, second], Settings(), OPTIONS) as settings:
        begun = settings.head_start
        assert begun is not None
        assert not begun.is_taken_by(Numbered(1, second), 1)
        assert not begun.is_taken_by(Numbered(1, first, trial=2), 1)
        assert not begun.is_taken_by(Numbered(0, first), 2)
        assert not begun.is_taken_by(Numbered(0, first, language="go"), 1)
        assert begun.is_taken_by(Numbered(0, first), 1)
        assert not begun.is_taken_by(Numbered(0, first), 1)
        begun.test = first  # it was not used, so it is to be ended here


def test_one_that_nobody_took_is_ended_with_its_fixture(tmp_path: Path, temporary: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    with with_a_head_start([a_test()], Settings(fixture=data), OPTIONS) as settings:
        assert settings.head_start is not None
        pid = settings.head_start.process.pid
        assert pid in live_servers
        assert is_alive(pid)
        assert len(list(temporary.iterdir())) == 1
    assert not is_alive(pid)
    assert pid not in live_servers
    assert list(temporary.iterdir()) == []
    assert not live_folders


def test_it_is_ended_also_when_the_run_fails() -> None:
    pids = []

    def fail(settings: Settings) -> None:
        assert settings.head_start is not None
        pids.append(settings.head_start.process.pid)
        raise ZeroDivisionError

    with (
        pytest.raises(ZeroDivisionError),
        with_a_head_start([a_test()], Settings(), OPTIONS) as settings,
    ):
        fail(settings)
    assert [is_alive(pid) for pid in pids] == [False]


def test_it_is_for_the_first_test_that_needs_a_server() -> None:
    trace = a_test(TrajectoryBlock((), ()))
    tests = [a_test(skip=True), trace, a_test(), a_test()]
    with with_a_head_start(tests, Settings(), OPTIONS) as settings:
        assert settings.head_start is not None
        assert not settings.head_start.is_taken_by(Numbered(3, tests[3]), 1)
        assert settings.head_start.test is tests[2]


@pytest.mark.parametrize(
    ("server", "choice"),
    [
        (ServerSpec(transport="http", url="http://127.0.0.1:1/mcp"), ServerChoice()),
        (WAITS, ServerChoice("http://127.0.0.1:1/mcp")),
        (ServerSpec(command="no-such-command-of-ours"), ServerChoice()),
        (ServerSpec(), ServerChoice()),
        (WAITS, ServerChoice("'")),
    ],
)
def test_what_can_not_be_started_here_is_left_to_the_regular_way(
    server: ServerSpec, choice: ServerChoice, tmp_path: Path, temporary: Path
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    before = set(live_servers)
    settings = Settings(fixture=data, choice=choice)
    with with_a_head_start([a_test(server=server)], settings, OPTIONS) as begun:
        assert begun.head_start is None
        assert live_servers <= before
    assert list(temporary.iterdir()) == []


def test_there_is_none_for_a_matrix_or_for_no_test() -> None:
    matrix = RunOptions(languages=(("go", ServerChoice("x")),))
    for tests, options in (([a_test()], matrix), ([], OPTIONS)):
        with with_a_head_start(tests, Settings(), options) as settings:
            assert settings.head_start is None


def test_a_fixture_that_can_not_be_copied_starts_nothing(tmp_path: Path) -> None:
    with with_a_head_start([a_test()], Settings(fixture=tmp_path / "none"), OPTIONS) as settings:
        assert settings.head_start is None
