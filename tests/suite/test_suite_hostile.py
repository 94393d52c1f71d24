"""Whatever stands in a suite, loading it ends in tests or in problems, and soon."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcptest.suite.load import Given
from mcptest.suite.reading import SuiteError, describe_problems
from tests.support.suites import load_text

GOOD = Path(__file__).parents[1] / "suites_bad"
SEEDS = [path.read_bytes() for path in sorted(GOOD.glob("*.yaml"))]
PIECES = [
    b"assert:", b"expect:", b"server:", b"tests:", b"tool: t", b"args: ", b"contains: ", b"{", b"}",
    b"[", b"]", b": ", b"- ", b"\n", b"\n  ", b"\n    ", b"&a ", b"*a", b"<<: ", b"!!binary ",
    b"!x ", b"'", b'"', b"|\n", b">-\n", b"{{x}}", b"{{ fixture }}", b"${A-b}", b"~", b"1e999",
    b"0x", b"? ", b"---\n", b"...\n", b"%YAML 1.2\n", b"\t", b"#", b"\xff", b"\x00", b"\xc2\x85",
    b"\xe2\x80\xa8", b"\r", b"\xef\xbb\xbf", b"matches_regex: ", b"json_path: ", b"$..[?(@.a",
    b"schema: ", b"trajectory: ", b"type: order", b"timeout: ", b"9" * 5_000, b"\\ud800",
]  # fmt: skip


def check(data: bytes) -> None:
    """Loading raises nothing, and everything it says can be shown."""
    tests, source = load_text(data, "x.yaml", Given(fixture=True))
    assert bool(tests) or source.errors
    text = describe_problems(source.finish())
    assert all(c == "\n" or c.isprintable() for c in text)
    SuiteError(source.problems).message.encode("utf-8")


@given(st.lists(st.sampled_from(PIECES), max_size=40).map(b"".join))
def test_pieces_of_yaml_in_any_order(data: bytes) -> None:
    check(data)


@given(
    st.sampled_from(SEEDS),
    st.integers(0, 400),
    st.integers(0, 20),
    st.one_of(st.binary(max_size=8), st.sampled_from(PIECES)),
)
def test_suites_with_a_part_replaced(data: bytes, start: int, length: int, new: bytes) -> None:
    check(data[:start] + new + data[start + length :])


@given(st.binary(max_size=200))
def test_any_bytes(data: bytes) -> None:
    check(data)


HEAD = b"server: {command: s}\nassert:\n  tool: t\n"


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(HEAD + b"  expect: {" + b"k: 1, " * 50_000 + b"}", id="one key many times"),
        pytest.param(
            HEAD + b"  expect:\n" + b"".join(b"    contain%d: x\n" % n for n in range(30_000)),
            id="many unknown keys",
        ),
        pytest.param(HEAD + b"  expect: {" + b"x" * 1_000_000 + b": 1}", id="a very long key"),
        pytest.param(
            HEAD + b"  expect: {contains: [" + b"{{a}} " * 200_000 + b"]}", id="many braces"
        ),
        pytest.param(
            HEAD + b"  args: {a: '" + b"{{a}} " * 200_000 + b"'}\n  expect: {not_error: true}",
            id="many templates",
        ),
        pytest.param(b"a: '" + b"{{ " * 300_000 + b"'", id="many open braces"),
        pytest.param(b"a: " + b"x" * 10_000_000, id="a very long text"),
        pytest.param(b"\n" * 10_000_000, id="many empty lines"),
        pytest.param(b"[" * 10_000_000, id="many brackets"),
        pytest.param(b"# " * 5_000_000, id="a very long comment"),
        pytest.param(b"!" * 1_000_000, id="many exclamation marks"),
        pytest.param(b"'" * 1_000_001, id="many quotes"),
        pytest.param(b"a: " + b"1" * 1_000_000, id="a number of a million digits"),
        pytest.param(b"tests:\n" + b"- {name: a}\n" * 20_000, id="many tests without a block"),
        pytest.param(b"".join(b"&a%d " % n for n in range(100_000)), id="many anchors"),
        pytest.param(b"k: &a {}\nl: [" + b"*a, " * 99_000 + b"]", id="many aliases"),
    ],
)
def test_nothing_takes_long(data: bytes) -> None:
    started = time.process_time()

    check(data)

    assert time.process_time() - started < 10
