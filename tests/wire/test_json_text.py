"""JSON text as a tester reads it."""

from __future__ import annotations

import json
import math
import sys
import time
import tracemalloc
from types import FrameType
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcptest.core.message import ABSENT, Flaw
from mcptest.wire.json_text import (
    duplicate_keys,
    has_too_many_values,
    json_value,
    nesting_depth,
    read_json,
    values_cost,
)

# Text that holds half a surrogate pair can't be written as UTF-8 at all.
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)
TOKENS = [
    *rb"""{ } [ ] " : , 1 e - \u \ d800 true null NaN "a":1 \" .""".split(),
    *(b" ", b"\n", b"\xff", b"\xef\xbb\xbf"),
]
NEAR_JSON = st.lists(st.sampled_from(TOKENS) | st.binary(max_size=3), max_size=30).map(b"".join)


def same(one: Any, other: Any) -> bool:
    """Equal as JSON: types count, and so does the sign of zero."""
    return json.dumps(one) == json.dumps(other)


@given(JSON, st.booleans(), st.sampled_from([None, 1, "\t"]))
def test_valid_json_reads_as_the_standard_library_reads_it(
    value: Any, ascii_only: bool, indent: Any
) -> None:
    raw = json.dumps(value, ensure_ascii=ascii_only, indent=indent).encode()
    read, problems = read_json(raw)
    assert problems == ()
    assert same(read, json.loads(raw))


@given(NEAR_JSON | st.binary(max_size=200))
def test_any_bytes_are_read_or_explained_and_never_raise(raw: bytes) -> None:
    value, problems = read_json(raw)
    if value is ABSENT:
        assert problems
        assert all(problem.reason for problem in problems)
    if not problems:
        assert same(value, json.loads(raw))


@given(NEAR_JSON | st.binary(max_size=200))
def test_what_the_standard_library_reads_strictly_is_read(raw: bytes) -> None:
    try:
        text = raw.decode("utf-8")
        value = json.loads(text, parse_constant=lambda _: math.nan)
    except ValueError:
        return
    assert read_json(raw)[0] is not ABSENT or value is None


@pytest.mark.parametrize(
    ("raw", "value", "flaws"),
    [
        (b"", ABSENT, {Flaw.NOT_JSON}),
        (b" \n", ABSENT, {Flaw.NOT_JSON}),
        (b"Server listening on stdio", ABSENT, {Flaw.NOT_JSON}),
        (b'{"a":1', ABSENT, {Flaw.NOT_JSON}),
        (b"{'a':1}", ABSENT, {Flaw.NOT_JSON}),
        (b'{"a":1}{"b":2}', ABSENT, {Flaw.NOT_JSON}),
        (b'{"a":1,}', ABSENT, {Flaw.NOT_JSON}),
        (b'"tab\there"', ABSENT, {Flaw.NOT_JSON}),
        (b'\xef\xbb\xbf{"a":1}', {"a": 1}, {Flaw.BYTE_ORDER_MARK}),
        (b'{"a":"\xff"}', {"a": "\ufffd"}, {Flaw.INVALID_UTF8}),
        (b'{"a":NaN}', {"a": math.nan}, {Flaw.NOT_FINITE}),
        (b"[Infinity,-Infinity]", [math.inf, -math.inf], {Flaw.NOT_FINITE}),
        (b"1e400", math.inf, {Flaw.HUGE_NUMBER}),
        (b"1" * 5000, math.inf, {Flaw.HUGE_NUMBER}),
        (b'"\\ud800"', "\ud800", {Flaw.LONE_SURROGATE}),
        (b'"\\udc00\\ud800"', "\udc00\ud800", {Flaw.LONE_SURROGATE}),
        (
            b'\xef\xbb\xbf"\xff\\ud800"',
            "\ufffd\ud800",
            {Flaw.BYTE_ORDER_MARK, Flaw.INVALID_UTF8, Flaw.LONE_SURROGATE},
        ),
        (b'"\\ud83d\\ude00"', "😀", set()),
        (b"[" * 513 + b"]" * 513, ABSENT, {Flaw.TOO_DEEP}),
        (b"[" * 100_000, ABSENT, {Flaw.TOO_DEEP}),
        (b'{"a":' * 100_000, ABSENT, {Flaw.TOO_DEEP}),
        (b'"' + b"[" * 600 + b'"', "[" * 600, set()),
        (b"[" + b"[]," * 600 + b"[]]", [[]] * 601, set()),
        (b"[" + b"{}," * 200_000 + b"{}]", ABSENT, {Flaw.TOO_MANY_VALUES}),
    ],
)
def test_each_fault_of_the_text_has_its_name(raw: bytes, value: Any, flaws: set[Flaw]) -> None:
    read, problems = read_json(raw)
    assert {problem.flaw for problem in problems} == flaws
    assert (read is ABSENT) if value is ABSENT else same(read, value)


@pytest.mark.parametrize(
    "part",
    [b"{}", b'{"a":1}', b"[]", b"1000", b'"a"', b'{"a":[],"b":{}}', b'"a,b:c"', b'{"a":"\\"{{{"}'],
)
def test_what_reading_would_take_is_known_before(part: bytes) -> None:
    """Never less than half of it, and not far more."""
    raw = b"[" + b",".join([part] * 300_000) + b"]"
    tracemalloc.start()
    try:
        value = msgspec.json.decode(raw)
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(value) == 300_000
    assert has_too_many_values(raw, taken // 2)
    assert not has_too_many_values(raw, taken * 3)


def test_members_of_one_large_object_are_counted() -> None:
    """No other object shares their keys."""
    raw = b"{" + b",".join(b'"k%d":%d' % (n, n) for n in range(300_000)) + b"}"
    tracemalloc.start()
    try:
        value = msgspec.json.decode(raw)
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(value) == 300_000
    assert has_too_many_values(raw, taken // 2)
    assert not has_too_many_values(raw, taken * 3)


def test_what_looks_like_values_inside_a_text_is_none() -> None:
    text = b'{"a":"' + b'[{,\\"]}:' * 1_000_000 + b'"}'
    assert not has_too_many_values(text)
    assert read_json(text)[1] == ()


@pytest.mark.parametrize("kind", ["members", "texts"])
def test_telling_texts_from_values_takes_few_steps(kind: str) -> None:
    """Whatever a server sends is looked at in this way: a step for each text would be seconds."""
    members = {f"example.com/{n}": n for n in range(100_000)}
    raw = json.dumps(members if kind == "members" else [f"{one}," for one in members]).encode()
    cost = values_cost(raw)
    steps = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal steps
        steps += 1

    sys.setprofile(count)
    try:
        is_too_much = has_too_many_values(raw, cost - 1)
    finally:
        sys.setprofile(None)
    assert not is_too_much
    assert steps < 10_000


def test_the_depth_limit_is_the_last_depth_that_is_read() -> None:
    assert read_json(b"[" * 512 + b"]" * 512)[1] == ()
    assert read_json(b"[[]]", depth=2)[1] == ()
    assert read_json(b"[[[]]]", depth=2)[1][0].flaw is Flaw.TOO_DEEP


def test_a_reason_points_at_the_fault_and_is_safe_to_show() -> None:
    reason = read_json(b'{"a": \x1b[31m}')[1][0].reason
    assert "offset 6" in reason
    assert "\x1b" not in reason


@pytest.mark.parametrize(
    ("raw", "keys"),
    [
        (b'{"a":1,"a":2}', ("a",)),
        (b'{"a":1,"\\u0061":2}', ("a",)),
        (b'{"a":{"b":1,"b":2,"b":3},"c":[{"d":1,"d":1}]}', ("b", "d")),
        (b'{"a":1,"b":{"a":2}}', ()),
        (b'{"a":"\\"","b":"\\u0022"}', ()),
        (b'{"a\\"":1,"a\\"":"\\u0022\\u0022\\u0022\\u0022"}', ('a"',)),
        (b'{"a":"\\ud800","a":1}', ("a",)),
    ],
)
def test_duplicate_keys_are_found_at_any_depth(raw: bytes, keys: tuple[str, ...]) -> None:
    assert duplicate_keys(raw, read_json(raw)[0]) == keys


@given(st.lists(st.tuples(st.sampled_from('abc"'), JSON), max_size=5))
def test_duplicate_keys_are_exactly_those_written_twice(members: list[tuple[str, Any]]) -> None:
    body = ",".join(f"{json.dumps(key)}:{json.dumps(value)}" for key, value in members)
    raw = f"{{{body}}}".encode()
    keys = [key for key, _ in members]
    assert set(duplicate_keys(raw, json.loads(raw))) == {key for key in keys if keys.count(key) > 1}


@given(JSON)
def test_the_counted_depth_is_the_real_depth(value: Any) -> None:
    def depth(value: Any) -> int:
        if isinstance(value, dict):
            return 1 + max(map(depth, value.values()), default=0)
        if isinstance(value, list):
            return 1 + max(map(depth, value), default=0)
        return 0

    assert nesting_depth(json.dumps(value).encode(), 100) == depth(value)


@pytest.mark.parametrize(
    "raw",
    [
        b'"' * 2_000_001,
        b'"\\' * 1_000_000,
        b'["' + b"\\\\" * 1_000_000,
        b"[" + b"[]," * 200_000,
        b"-" * 2_000_000,
    ],
)
def test_reading_hostile_text_stays_linear(raw: bytes) -> None:
    began = time.process_time()
    read_json(raw)
    assert time.process_time() - began < 5


@pytest.mark.parametrize("text", ["NaN", '{"a": -Infinity}', "{", "'a'"])
def test_a_value_on_a_command_line_is_json(text: str) -> None:
    with pytest.raises(ValueError, match=r"JSON|Expecting"):
        json_value(text)
