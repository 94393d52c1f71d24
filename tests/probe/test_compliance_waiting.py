"""How long silence is waited for: one timeout in all, and then no longer than it must be."""

from __future__ import annotations

import pytest

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
