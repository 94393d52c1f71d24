"""A subject names what became of each request, and is there again after a crash or a hang."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mcptest.core.errors import PeerError
from mcptest.core.revision import Revision
from mcptest.probe.live_server import OutcomeKind, Subject
from mcptest.session.tool_safety import is_safe, why_not
from mcptest.transport.target import DEMO, Target
from tests.e2e.driving import records_of

EXPLORED = str(Path(__file__).with_name("explored.py"))


def target(*words: str) -> Target:
    command = (sys.executable, "-I", "-S", EXPLORED, *words)
    return Target(way="stdio", label="explored", command=command)


@pytest.fixture
def subject() -> Iterator[Subject]:
    with Subject(target(), timeout=10) as made:
        yield made


@pytest.mark.parametrize(
    ("tool", "kind", "phrase"),
    [
        ("echo", OutcomeKind.HEALTHY, ""),
        ("complain", OutcomeKind.TOOL_ERROR, "no such thing"),
        ("internal", OutcomeKind.CRASHED, "-32603"),
        ("refuse", OutcomeKind.REFUSED, "I do not like it"),
        ("leave", OutcomeKind.CRASHED, "exit"),
        ("shapeless", OutcomeKind.PROTOCOL, "not an object"),
    ],
)
def test_the_kind_of_an_outcome_follows_from_what_came(
    subject: Subject, tool: str, kind: OutcomeKind, phrase: str
) -> None:
    outcome = subject.call(tool, {"text": "x"})
    assert outcome.kind is kind
    assert phrase in outcome.detail
    assert b'"tools/call"' in outcome.sent


def test_silence_is_a_hang_and_rubbish_is_not(subject: Subject) -> None:
    assert subject.call("hang", {}, timeout=0.3).kind is OutcomeKind.HUNG
    rubbish = subject.call("garble", {}, timeout=0.3)
    assert rubbish.kind is OutcomeKind.PROTOCOL
    assert b"this is no message" in rubbish.received


def test_a_server_that_died_or_hung_is_there_again_for_the_next_call(subject: Subject) -> None:
    assert subject.call("leave", {}).stderr == ("Traceback: out of memory",)
    assert subject.call("echo", {"text": "a"}).kind is OutcomeKind.HEALTHY
    assert subject.call("hang", {}, timeout=0.2).kind is OutcomeKind.HUNG
    assert subject.call("echo", {"text": "b"}).kind is OutcomeKind.HEALTHY
    assert subject.restarts == 2


def test_one_that_dies_after_its_answer_is_found_to_be_unwell(subject: Subject) -> None:
    assert subject.call("leave_later", {}).kind is OutcomeKind.HEALTHY
    aftermath = subject.aftermath()
    assert aftermath is not None
    assert aftermath.kind is OutcomeKind.CRASHED
    assert "4" in aftermath.detail
    assert subject.call("echo", {"text": "a"}).kind is OutcomeKind.HEALTHY
    assert subject.aftermath() is None


def test_every_page_of_the_lists_is_read() -> None:
    with Subject(target("paged", "prompts", "resources")) as subject:
        offer = subject.offer()
    assert len(offer.tools) == 18
    assert [each["name"] for each in offer.prompts] == ["greet", "broken"]
    assert len(offer.resources) == 2
    assert offer.problems == {}


def test_what_is_not_declared_is_not_asked_for(tmp_path: Path) -> None:
    with Subject(target(), captures=tmp_path) as subject:
        assert subject.offer().prompts == ()
    text = (tmp_path / "session-001.jsonl").read_text()
    assert "tools/list" in text
    assert "prompts/list" not in text


def test_each_session_leaves_a_capture_of_its_own(tmp_path: Path) -> None:
    with Subject(target(), captures=tmp_path) as subject:
        subject.call("leave", {})
        subject.call("echo", {"text": "a"})
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["session-001.jsonl", "session-002.jsonl"]
    assert records_of(tmp_path / names[1])[-1]["kind"] == "end"


def test_a_server_that_never_starts_is_an_error_not_an_outcome() -> None:
    with (
        Subject(Target(way="stdio", label="none", command=("/nowhere/at-all",))) as subject,
        pytest.raises(PeerError),
    ):
        subject.call("echo", {})


def test_a_server_that_does_not_come_back_is_given_up(tmp_path: Path) -> None:
    once = tmp_path / "server"
    once.write_text(f'#!/bin/sh\nrm "$0"\nexec {sys.executable} -I -S {EXPLORED}\n')
    once.chmod(0o755)
    command = ("/bin/sh", str(once))
    target = Target(way="stdio", label="once", command=command)
    with Subject(target, revision=Revision.V2025_11_25, startup=10) as subject:
        subject.call("leave", {})
        details = [subject.call("echo", {"text": "a"}).detail for _ in range(3)]
    assert "did not restart: " in details[0]
    assert details[2] == "the server exited and did not restart"


def test_the_demo_is_offered_in_full() -> None:
    with Subject(DEMO) as subject:
        offer = subject.offer()
        assert subject.call("add", {"a": 1, "b": 2}).kind is OutcomeKind.HEALTHY
    assert {"add", "echo"} <= {tool["name"] for tool in offer.tools}
    assert offer.prompts
    assert offer.resources
    assert offer.templates


@pytest.mark.parametrize(
    ("hints", "safe"),
    [
        ({"readOnlyHint": True}, True),
        ({"readOnlyHint": True, "destructiveHint": False}, True),
        ({"readOnlyHint": True, "destructiveHint": True}, False),
        ({"readOnlyHint": False}, False),
        ({"destructiveHint": False}, False),
        ({"readOnlyHint": "true"}, False),
        ({}, False),
        (None, False),
        ("yes", False),
    ],
)
def test_only_a_tool_that_says_it_only_reads_is_safe(hints: object, safe: bool) -> None:
    tool = {"name": "x", "annotations": hints}
    assert is_safe(tool) is safe
    assert bool(why_not(tool)) is not safe
