"""Loading suites: any bytes load or are refused with places; what was written is what is read."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcptest.strategies import Crafted, invalid_messages, requests, tool_arguments
from mcptest.suite.load import LoadedSuite, load_suites
from mcptest.suite.matching import json_equal
from mcptest.suite.model import ToolBlock
from mcptest.suite.reading import SuiteError, lines_of
from tests.core.test_safe_text import is_invisible
from tests.properties.pace import few
from tests.properties.real_schemas import tool_schema

ARGUMENTS = st.one_of([tool_arguments(tool_schema(number)) for number in range(8)]).filter(
    lambda one: isinstance(one, dict) and "{{" not in repr(one)
)
NAMES = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=12).filter(
    lambda name: "{{" not in name
)
TESTS = st.lists(st.tuples(NAMES, NAMES, ARGUMENTS), min_size=1, max_size=3)
# What YAML is made of, and what a suite is made of: put together they are nearly one.
SIGNS = (
    ": ",
    ":",
    "- ",
    "{",
    "}",
    "[",
    "]",
    ",",
    "&a ",
    "*a",
    "<<: *a",
    "'",
    '"',
    "\\",
    "? ",
    "# ",
)
TAGS = ("!!python/object:os.system ", "!x ", "# ", "{{x}}", "${HOME}", "@", "`", "~")
BREAKS = ("\n", "\n  ", "\n    ", "\t", "|\n", ">-\n", "---\n", "...\n", "%YAML 1.1\n")
ODD = ("\u0085", "\u2028", "\ufeff", "\0", "é", "\U0001d538")
WORDS = ("name", "server", "command", "tests", "assert", "tool", "args", "expect", "not_error")
SCALARS = ("true", "no", "0o17", "12:30:45", "1e400", ".inf", "2026-01-01", "0x1F", "-0", "+1")
PIECES = st.sampled_from((*SIGNS, *TAGS, *BREAKS, *ODD, *WORDS, *SCALARS))
SOUP = st.lists(PIECES, max_size=40).map("".join).map(str.encode)


def written(value: Any) -> str:
    """A value in the flow style of YAML, with an escape for whatever may not stand in a file."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{written(k)}: {written(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(written, value)) + "]"
    if not isinstance(value, str):
        return json.dumps(value)
    quoted = json.dumps(value, ensure_ascii=False)[1:-1]
    return '"' + "".join(map(_escaped, quoted)) + '"'


def _escaped(letter: str) -> str:
    return letter if letter == " " or letter.isprintable() else f"\\U{ord(letter):08x}"


def suite_of(tests: list[tuple[str, str, dict[str, Any]]]) -> str:
    lines = ["server: {command: server}", "tests:"]
    for name, tool, arguments in tests:
        lines += [f"  - name: {written(name)}", "    assert:", f"      tool: {written(tool)}"]
        lines += [f"      args: {written(arguments)}", "      expect: {not_error: true}"]
    return "\n".join(lines) + "\n"


@st.composite
def damaged_suites(draw: st.DrawFn) -> bytes:
    """A suite in which something was cut out or put in."""
    raw = suite_of(draw(TESTS)).encode()
    first = draw(st.integers(0, len(raw)))
    last = draw(st.integers(first, min(len(raw), first + 12)))
    return raw[:first] + draw(SOUP | st.binary(max_size=4)) + raw[last:]


def loaded(raw: bytes, folder: Path) -> LoadedSuite | SuiteError:
    path = folder / "suite.yaml"
    path.write_bytes(raw)
    try:
        return load_suites([str(path)])
    except SuiteError as error:
        return error


def check_places(refused: SuiteError, raw: bytes) -> None:
    lines = lines_of(raw.decode("utf-8", "replace").removeprefix("\ufeff"))
    assert refused.problems
    for problem in refused.problems:
        place = problem.place
        assert place.file.endswith("suite.yaml")
        if problem.source is not None:
            assert 1 <= place.line <= len(lines)
            assert problem.source == lines[place.line - 1]
            assert 1 <= place.column <= len(problem.source) + 1
    assert not [one for one in refused.message if one != "\n" and is_invisible(one)]


@few(120)
@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode) | SOUP | damaged_suites())
def test_any_bytes_are_a_suite_or_one_error_with_places(tmp_path: Path, raw: bytes) -> None:
    outcome = loaded(raw, tmp_path)
    if isinstance(outcome, SuiteError):
        check_places(outcome, raw)
    else:
        assert outcome.suite.tests or outcome.lanes
        assert outcome.problems == ()


@few(40)
@given(requests() | invalid_messages())
def test_a_message_is_no_suite(tmp_path: Path, message: Crafted) -> None:
    outcome = loaded(message.raw, tmp_path)
    assert isinstance(outcome, SuiteError)
    check_places(outcome, message.raw)


@few(60)
@given(TESTS)
def test_what_was_written_is_what_is_read(
    tmp_path: Path, tests: list[tuple[str, str, dict[str, Any]]]
) -> None:
    outcome = loaded(suite_of(tests).encode(), tmp_path)
    assert isinstance(outcome, LoadedSuite), outcome
    read = []
    for test in outcome.suite.tests:
        assert isinstance(test.block, ToolBlock)
        read.append([test.name, test.block.tool, test.block.args])
    assert json_equal(read, [list(one) for one in tests])  # typed: 1 is 1.0, but not true


@pytest.mark.parametrize("value", [math.inf, -math.inf])
def test_a_number_that_json_does_not_know_can_not_be_sent(tmp_path: Path, value: float) -> None:
    text = suite_of([("t", "tool", {"a": 0})]).replace('"a": 0', f'"a": {"-" * (value < 0)}.inf')
    assert isinstance(loaded(text.encode(), tmp_path), SuiteError)
