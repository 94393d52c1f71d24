"""Matching answers to requests by id, in constant memory for ids that count upwards."""

from __future__ import annotations

import random

from mcptest.wire.correlation import IdSet, InFlight


def test_ids_of_different_json_types_are_different() -> None:
    ids = IdSet()
    assert all(ids.add(one) for one in (1, "1", 1.5, True, None))
    assert not any(ids.add(one) for one in (1, "1", 1.5, True, None))
    assert 1.0 in ids, "JSON has one type of number"
    assert 2 not in ids


def test_integers_in_any_order_share_their_blocks() -> None:
    ids = IdSet()
    numbers = list(range(-50, 3000))
    random.Random(1).shuffle(numbers)
    assert all(ids.add(number) for number in numbers)
    assert not any(ids.add(number) for number in numbers)
    assert len(ids._blocks) == 7
    assert -51 not in ids
    assert 3000 not in ids


def test_scattered_integers_stay_linear_and_right() -> None:
    ids = IdSet()
    assert all(ids.add(number * 10) for number in range(10_000))
    assert len(ids._blocks) <= 200
    assert not ids.add(99_990)
    assert 99_990 in ids
    assert 99_991 not in ids


def test_shared_ids_are_counted_and_named() -> None:
    one, two = IdSet(), IdSet()
    for number in (*range(100), 500, "a", "b"):
        one.add(number)
    for number in (*range(90, 200), 500, "b", "c"):
        two.add(number)
    shared, total = one.shared_with(two, 5)
    assert shared == [90, 91, 92, 93, 94]
    assert total == 12
    assert set(one.shared_with(two, 50)[0]) == {*range(90, 100), 500, "b"}


def test_an_answer_finds_its_request_once() -> None:
    in_flight: InFlight[str] = InFlight()
    assert in_flight.sent(1, "first")
    assert in_flight.find(1) == "first"
    assert in_flight.twin_of_other_type("1") == "first"
    assert in_flight.find(1.0) == "first"
    assert in_flight.answered("1") is None
    assert in_flight.answered(1) == "first"
    assert in_flight.answered(1) is None
    assert not in_flight.sent(1, "again")


def test_odd_ids_have_no_twin() -> None:
    in_flight: InFlight[str] = InFlight()
    in_flight.sent(1, "first")
    for odd in (None, True, [], {}, "x", "1" * 5000, "²", float("nan")):
        assert in_flight.twin_of_other_type(odd) is None
