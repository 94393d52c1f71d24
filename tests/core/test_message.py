"""A message as it was seen, and ids that stay what they are."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from mcptest.core.message import ABSENT, id_key, json_type, with_short_texts
from mcptest.wire.envelope import decode
from tests.support.deep_values import deepest


def test_ids_of_different_json_types_are_different_ids() -> None:
    ids = [1, "1", 1.5, True, None, "True", "None", [1], {"1": 1}, "1.0", 0, False, ABSENT]
    for one, other in itertools.combinations(ids, 2):
        assert id_key(one) != id_key(other), (one, other)
        assert len({id_key(one), id_key(other)}) == 2


def test_a_number_is_the_same_id_with_a_fraction_of_zero() -> None:
    assert id_key(2.0) == id_key(2) == 2
    assert type(id_key(2.0)) is int
    assert id_key(-0.0) == id_key(0)


@pytest.mark.parametrize("identifier", [1, "a", 1.5, True, None, [1, [2]], {"a": [1]}])
def test_an_id_equals_itself(identifier: Any) -> None:
    assert id_key(identifier) == id_key(identifier)


def test_members_of_the_envelope_are_absent_rather_than_null() -> None:
    message = decode(b'{"jsonrpc":"2.0","id":null,"result":null}')
    assert message.id is None
    assert message.result is None
    assert message.error is ABSENT
    assert message.method is None
    assert not ABSENT
    assert repr(ABSENT) == "ABSENT"


@pytest.mark.parametrize("params", ["[1]", "3", "null", '"x"'])
def test_params_that_are_no_object_read_as_empty(params: str) -> None:
    raw = f'{{"jsonrpc":"2.0","method":"m","params":{params}}}'.encode()
    assert decode(raw).params == {}


def test_a_method_that_is_no_string_is_none() -> None:
    assert decode(b'{"jsonrpc":"2.0","method":5}').method is None


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (None, "null"),
        (True, "boolean"),
        (1, "number"),
        (1.5, "number"),
        ("", "string"),
        ([], "array"),
        ({}, "object"),
        (ABSENT, "absent"),
    ],
)
def test_the_json_name_of_a_type(value: Any, name: str) -> None:
    assert json_type(value) == name


def test_long_texts_are_cut_and_names_are_not() -> None:
    small = {"tools": [{"name": "n" * 9, "n": 1}], "more": None}
    assert with_short_texts(small, 9) is small
    large = {"name": "n" * 20, "texts": ["t" * 20, "t"], "deep": {"uri": "u" * 20, "d": "d" * 20}}
    assert with_short_texts(large, 9) == {
        "name": "n" * 20,
        "texts": ["t" * 9, "t"],
        "deep": {"uri": "u" * 20, "d": "d" * 9},
    }
    assert with_short_texts("t" * 20, 9) == "t" * 9


def test_a_value_as_deep_as_may_be_is_shortened() -> None:
    assert with_short_texts(deepest("t" * 20), 9) == deepest("t" * 9)
