"""File names and suites: what a server names becomes files that are safe, and says the same."""

from __future__ import annotations

import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mcptest.strategies import Crafted, invalid_messages, requests, tool_arguments
from mcptest.suite.load import Given
from mcptest.suite.model import ToolBlock
from mcptest.suite.reading import describe_problems
from mcptest.suite.starters import FileNames, Starter, WrittenServer, starter_yaml
from tests.core.test_safe_text import is_invisible
from tests.properties.pace import few
from tests.properties.real_schemas import tool_schema
from tests.support.suites import load_text

NAMES = st.text(max_size=80) | st.sampled_from(
    ("con", "NUL", "..", "a/b", ".hidden", "A", "a", "-")
)
SAFE = re.compile(r"[A-Za-z0-9_-]+\.yaml")
RESERVED = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])\.yaml", re.IGNORECASE)
ARGUMENTS = st.one_of([tool_arguments(tool_schema(number)) for number in range(8)])


@few(60)
@given(st.lists(NAMES, max_size=12))
def test_file_names_are_safe_everywhere_and_never_given_twice(subjects: list[str]) -> None:
    names = FileNames()
    given_out = [names.name_for(subject) for subject in subjects]
    assert all(SAFE.fullmatch(name) for name in given_out)
    assert not [name for name in given_out if RESERVED.fullmatch(name)]
    assert len({name.lower() for name in given_out}) == len(subjects)
    assert max(map(len, given_out), default=0) < 100


@few(40)
@given(st.lists(NAMES, max_size=8))
def test_the_same_subjects_get_the_same_names(subjects: list[str]) -> None:
    first, second = FileNames(), FileNames()
    assert [first.name_for(one) for one in subjects] == [second.name_for(one) for one in subjects]


@few(60)
@given(ARGUMENTS)
def test_a_suite_that_was_written_says_the_arguments(arguments: dict[str, Any]) -> None:
    server = WrittenServer({"command": "server"})
    text = starter_yaml(Starter("tool", "buy", arguments), server, "t")
    tests, source = load_text(text.encode(), "starter.yaml", Given())
    assert source.finish() == []
    (test,) = tests
    assert isinstance(test.block, ToolBlock)
    if "{{" not in repr(arguments):
        assert test.block.args == arguments


@few(60)
@given(requests() | invalid_messages(only=["not-json", "invalid-utf8", "utf-16", "unclosed"]))
def test_a_message_is_no_suite_and_that_is_told(message: Crafted) -> None:
    tests, source = load_text(message.raw, "x.yaml", Given())
    assert tests == []
    told = describe_problems(source.finish())
    assert told
    assert not [one for one in told if one != "\n" and is_invisible(one)]
