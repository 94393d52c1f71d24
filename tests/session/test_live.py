"""A live session: begun, lost, begun again, given up, left; and what it says of itself."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest

from mcptest.core.errors import ErrorKind, PeerError
from mcptest.core.limits import Deadline
from mcptest.core.revision import Revision
from mcptest.session import live as live_module
from mcptest.session.connection import Stopped
from mcptest.session.live import LiveSession
from mcptest.session.tape import Tape
from mcptest.transport.recorder import Recorder
from mcptest.transport.stdio import Stdio
from mcptest.transport.target import DEMO, Target
from tests.e2e.driving import records_of

EXPLORED = str(Path(__file__).parents[1] / "e2e" / "explored.py")

MUTE = Target(way="stdio", label="mute", command=("/bin/sh", "-c", "exec cat > /dev/null"))


def target(*words: str, **more: object) -> Target:
    command = (sys.executable, "-I", "-S", EXPLORED, *words)
    return Target(way="stdio", label="explored", command=command, **more)  # type: ignore[arg-type]  # as given


def recorded(path: Path) -> Tape:
    return Tape("explored", Recorder(path))


@pytest.fixture
def live() -> Iterator[LiveSession]:
    with LiveSession(target(), timeout=10) as made:
        yield made


def test_nothing_is_started_before_it_is_asked_for(live: LiveSession) -> None:
    live.prepare()
    assert not live.is_open
    assert live.tape.messages_sent == 0
    assert live.begin().call_tool("echo", {"text": "a"}).ok
    assert live.is_open


def test_a_server_that_was_launched_is_the_one_that_is_met(live: LiveSession) -> None:
    live.launch()
    launched = live.client
    assert live.begin() is launched
    assert live.sessions == 1


def test_after_a_crash_there_is_another_session_with_a_tape_of_its_own(live: LiveSession) -> None:
    first, tape = live.begin(), live.tape
    with pytest.raises(PeerError) as caught:
        first.call_tool("leave", {})
    assert caught.value.kind is ErrorKind.EXITED
    assert live.is_gone
    live.drop()
    assert not live.is_open
    assert list(tape.stderr) == ["Traceback: out of memory"]
    assert live.begin().call_tool("echo", {"text": "a"}).ok
    assert live.tape is not tape
    assert (live.sessions, live.restarts, live.tape.exited) == (2, 1, None)


def test_one_that_hangs_is_left_without_waiting_and_met_again(live: LiveSession) -> None:
    with pytest.raises(PeerError) as caught:
        live.begin().call_tool("hang", {}, deadline=Deadline.after(0.2))
    assert caught.value.kind is ErrorKind.TIMEOUT
    assert not live.is_gone
    live.drop(deaf=True)
    assert live.begin().call_tool("echo", {"text": "a"}).ok


def test_what_was_found_out_once_is_not_asked_again(live: LiveSession) -> None:
    live.begin()
    met, asked = live.met, live.tape.messages_sent
    assert met is not None
    live.drop()
    client = live.begin()
    assert live.met == met
    assert (client.revision, client.met.reason) == (met.revision, met.reason)
    assert live.tape.messages_sent <= asked


def test_a_server_that_never_answers_is_given_up_at_the_deadline() -> None:
    session = LiveSession(MUTE, revision=Revision.V2025_11_25, startup=0.3)
    with pytest.raises(PeerError) as caught:
        session.begin()
    assert caught.value.kind is ErrorKind.TIMEOUT
    assert not session.is_open


def test_one_that_does_not_come_back_twice_in_a_row_is_given_up(tmp_path: Path) -> None:
    once = tmp_path / "server"
    once.write_text(f'#!/bin/sh\nrm "$0"\nexec {sys.executable} -I -S {EXPLORED}\n')
    once.chmod(0o755)
    gone = Target(way="stdio", label="once", command=("/bin/sh", str(once)))
    with LiveSession(gone, revision=Revision.V2025_11_25) as session:
        session.begin()
        session.drop()
        for given_up in (False, True):
            with pytest.raises(PeerError):
                session.begin()
            assert session.given_up is given_up


def test_each_session_has_a_capture_without_secrets(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    secret = "sk-live-0123456789abcdef"
    peer = target(env={"API_KEY": secret})
    with LiveSession(peer, new_tape=lambda: recorded(path)) as session:
        session.begin().call_tool("echo", {"text": f"it is {secret}"})
    text = path.read_text()
    assert "it is ***" in text
    assert secret not in text
    first, last = records_of(path)[0], records_of(path)[-1]
    assert (first["kind"], first["spec_version"], last["kind"]) == ("capture", "auto", "end")
    assert not last.get("interrupted")


def test_a_capture_says_that_its_session_was_interrupted_while_it_began(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    tape = recorded(path)
    session = LiveSession(
        MUTE, revision=Revision.V2025_11_25, new_tape=lambda: tape, should_stop=lambda: True
    )
    with session, pytest.raises(Stopped):
        session.begin()
    assert records_of(path)[-1]["interrupted"] is True


def test_a_server_gets_less_time_to_leave_once_the_command_is_to_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What it takes comes on top of the limit of the whole command."""
    over: list[bool] = []
    session = LiveSession(
        target(), revision=Revision.V2025_11_25, should_stop=lambda: bool(over), closing=60.0
    )
    session.begin()
    patience: list[float] = []
    close = Stdio.close

    def closing(transport: Stdio, deadline: Deadline) -> None:
        patience.append(deadline.remaining())
        close(transport, deadline)

    monkeypatch.setattr(Stdio, "close", closing)
    over.append(True)
    session.drop()
    assert max(patience) <= 2.0


def test_an_answer_that_came_a_second_time_is_told(live: LiveSession) -> None:
    client = live.begin()
    assert list(live.troubles()) == []
    pending = client.start("ping")
    client.wait(pending)
    live.drop()
    live.tape.late.append(b'{"jsonrpc":"2.0","id":%d,"result":{}}' % pending.id)
    (told,) = live.troubles()
    assert "answered a request twice" in told


def test_what_a_server_speaks_is_found_out_without_a_session() -> None:
    session = LiveSession(DEMO)
    assert session.find_revision(Deadline.after(30)).revision is Revision.V2026_07_28
    assert not session.is_open
    assert session.sessions == 0


def test_a_large_session_is_let_go_when_the_next_one_begins(
    live: LiveSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client and its connection know each other: nothing but a collection ends that."""
    monkeypatch.setattr(live_module, "_MOST_ENDED", 10)
    gc.collect()
    gc.disable()  # as between two collections, which may be long
    try:
        live.begin()
        first = weakref.ref(live.client)
        live.drop()
        live.begin()
        assert first() is None
    finally:
        gc.enable()


def test_small_sessions_cost_no_collection(
    live: LiveSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_module.gc, "collect", lambda: pytest.fail("collected"))
    live.begin()
    live.drop()
    live.begin()
