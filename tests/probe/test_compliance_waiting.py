"""How long silence is waited for: one timeout in all, and then no longer than it must be."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from mcptest.probe.compliance.questions import slow_machine
from mcptest.probe.compliance.site import Order, Waits
from mcptest.transport.target import DEMO


def waits(timeout: float = 30.0, patience: float = 2.0) -> Waits:
    return Waits(Order(target=DEMO, timeout=timeout, patience=patience))


def test_the_first_answer_is_waited_for_to_the_full() -> None:
    assert waits().left() == 30.0


def test_what_was_waited_in_vain_is_taken_off() -> None:
    spent = waits()
    spent.in_vain(100.0, 112.0)
    assert spent.left() == 18.0


def test_waits_side_by_side_count_once() -> None:
    spent = waits()
    spent.in_vain(100.0, 110.0)
    spent.in_vain(101.0, 110.0)
    spent.in_vain(105.0, 112.0)
    assert spent.left() == 18.0


def test_patience_is_always_left_and_more_for_work() -> None:
    spent = waits()
    spent.in_vain(0.0, 1_000.0)
    assert spent.left() == 2.0
    assert spent.left(at_work=True) == 4.0


def test_a_server_that_was_slow_to_meet_is_waited_for_longer() -> None:
    spent = waits()
    spent.met_in = 5.0
    spent.in_vain(0.0, 1_000.0)
    assert spent.left() == spent.left(at_work=True) == 20.0


@pytest.mark.parametrize("at_work", [True, False])
def test_nothing_is_waited_for_beyond_the_timeout(at_work: bool) -> None:
    assert waits(timeout=0.5).left(at_work=at_work) == 0.5


def test_a_process_that_was_slow_to_start_may_be_slow_to_end() -> None:
    spent = waits()
    assert spent.to_end == 10.0
    spent.met_in = 20.0
    assert spent.to_end == 80.0


def test_the_first_answer_of_a_process_may_take_as_long_as_a_start() -> None:
    spent = waits(timeout=3.0)
    spent.met_in = 5.0
    assert spent.left() == 3.0
    assert spent.left(starting=True) == 20.0
    spent.met_in = 50.0
    assert spent.left(starting=True) == 30.0


@pytest.mark.parametrize(
    ("came", "is_late"),
    [
        (b'{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"flood"}}', False),
        (b'{"jsonrpc":"2.0","id":7,"method":"ping"}', False),
        (b'{"jsonrpc":"2.0","id":3,"result":{}}', True),
        (b'{"jsonrpc":"2.0","id":3,"error":{"code":-32601,"message":"no"}}', True),
    ],
)
def test_only_an_answer_shows_that_a_server_was_late(came: bytes, is_late: bool) -> None:
    """One that floods and never answers is not excused by the machine."""
    tape = SimpleNamespace(last_answer=b"")

    def pump(seconds: float, until: Callable[[], bool]) -> bool:
        tape.last_answer = came
        return until()

    conversation: Any = SimpleNamespace(mute=True, transport="stdio", tape=tape, pump=pump)
    site: Any = SimpleNamespace(
        order=SimpleNamespace(patience=1.0), open=lambda: None, leave=lambda one: None
    )
    assert (slow_machine(site, conversation) is not None) is is_late


@pytest.mark.parametrize(("again", "is_late"), [(False, False), (True, True)])
def test_over_http_what_is_asked_again_has_the_whole_timeout(again: bool, is_late: bool) -> None:
    tape = SimpleNamespace(last_answer=b"")

    def pump(seconds: float, until: Callable[[], bool]) -> bool:
        tape.last_answer = b'{"jsonrpc":"2.0","id":3,"result":{}}' if seconds == 30.0 else b""
        return until()

    conversation: Any = SimpleNamespace(mute=True, transport="http", tape=tape, pump=pump)
    site: Any = SimpleNamespace(order=SimpleNamespace(patience=1.0, timeout=30.0))
    assert (slow_machine(site, conversation, again=again) is not None) is is_late
