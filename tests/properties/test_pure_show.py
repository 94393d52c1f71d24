"""Terminal escaping: nothing of a message can steer a terminal or a CI system."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mcptest.core.safe_text import show
from mcptest.strategies import (
    Crafted,
    almost_valid_arguments,
    invalid_messages,
    requests,
    tool_arguments,
)
from tests.core.test_safe_text import OBEYED_BY_CI, is_invisible
from tests.properties.pace import few
from tests.properties.real_schemas import tool_schema

COMMANDS = st.sampled_from(
    ("::error::", "##[group]x", "\x1b]0;title\x07", "\u202eabc", "\r\n::", "")
)


def is_safe(shown: str, limit: int) -> bool:
    hidden = [character for character in shown if is_invisible(character)]
    return not hidden and not OBEYED_BY_CI.search(shown) and len(shown) <= limit


@few(80)
@given(requests() | invalid_messages(), st.integers(1, 300))
def test_the_bytes_of_any_message_can_be_shown(message: Crafted, limit: int) -> None:
    assert is_safe(show(message.raw, limit), limit)


@few(60)
@given(tool_arguments(tool_schema(1)), COMMANDS, COMMANDS)
def test_arguments_can_be_shown_whatever_stands_around_them(
    arguments: Any, before: str, after: str
) -> None:
    assert is_safe(show(f"{before}{arguments}{after}", 200), 200)


@few(40)
@given(almost_valid_arguments(tool_schema(1)))
def test_what_is_wrong_with_arguments_can_be_shown(case: tuple[Any, str]) -> None:
    assert is_safe(show(case[1], 200), 200)


@few(60)
@given(st.text(max_size=60), st.integers(1, 80))
def test_what_is_shown_is_shown_again_as_it_is(text: str, limit: int) -> None:
    once = show(text, limit)
    if "::" not in once and "##" not in once:
        assert show(once, limit) == once
