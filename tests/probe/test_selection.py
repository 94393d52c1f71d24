"""Choosing tests by name, tag and shard."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcptest.core.errors import UsageError
from mcptest.probe.suites.settings import Selection, only_this, parse_pattern, parse_shard, select
from mcptest.suite.model import Expect, ToolBlock
from mcptest.suite.model import Test as SuiteTest
from mcptest.suite.reading import Place


def named(name: str, file: str = "a.yaml", *tags: str) -> SuiteTest:
    block = ToolBlock("echo", {}, expect=Expect(not_error=True))
    return SuiteTest(name=name, block=block, place=Place(file), tags=tags)


@given(st.lists(st.text(max_size=8), max_size=40), st.integers(1, 9))
def test_shards_are_a_balanced_partition(names: list[str], count: int) -> None:
    tests = [named(name) for name in names]
    parts = [select(tests, Selection(shard=(n, count))) for n in range(1, count + 1)]
    assert sorted(id(test) for part in parts for test in part) == sorted(map(id, tests))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


@given(st.lists(st.text(min_size=1, max_size=12), min_size=1, max_size=10, unique=True))
def test_the_pattern_for_one_test_chooses_it_alone(names: list[str]) -> None:
    tests = [named(name) for name in names]
    for test in tests:
        pattern = only_this(test, tests)
        assert select(tests, Selection(pattern=pattern)) == [test]


def test_everything_that_is_asked_for_must_hold() -> None:
    tests = [named("read x", "a.yaml", "slow"), named("read y"), named("write", "a.yaml", "slow")]
    chosen = select(tests, Selection(pattern="read", tags=("slow",)))
    assert [test.name for test in chosen] == ["read x"]
    assert select(tests, Selection(only={"a.yaml::write"})) == [tests[2]]


@pytest.mark.parametrize("text", ["", "1", "0/1", "2/1", "-1/2", "1/2/3", "one/two", "1/0"])
def test_what_is_no_shard_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="invalid shard"):
        parse_shard(text)


@pytest.mark.parametrize(
    ("pattern", "message", "column"),
    [
        ("and and (", "expected a name before 'and'", 0),
        ("read and", "expected a name after 'and'", 8),
        ("read or or write", "expected a name before 'or'", 8),
        ("read AND not", "expected a name after 'not'", 12),
        ("or", "expected a name before 'or'", 0),
        ("not and x", "expected a name before 'and'", 4),
        ("   ", "it is blank", 0),
    ],
)
def test_a_pattern_that_can_not_be_understood_is_refused_with_its_place(
    pattern: str, message: str, column: int
) -> None:
    with pytest.raises(UsageError) as caught:
        parse_pattern(pattern)
    first, shown, caret = caught.value.message.splitlines()
    assert first == f"-k: {message}"
    assert (shown, caret) == (f"  {pattern}", f"  {' ' * column}^")


@pytest.mark.parametrize(
    "pattern", ["", "read", "read (slow)", "a and not b or c", "is not it", "=and and ("]
)
def test_a_pattern_that_can_be_understood_stays_as_it_is(pattern: str) -> None:
    assert parse_pattern(pattern) == pattern
