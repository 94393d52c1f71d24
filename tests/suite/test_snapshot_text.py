"""The text of a golden file: the same for the same answer, another for any other."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from mcptest.suite.golden import Masks, golden_text
from mcptest.suite.observed import Observed
from tests.support.deep_values import deepest


def golden(result: Any = None, *, error: Any = None, method: str = "tools/call") -> str:
    observed = Observed(method, error=error) if error else Observed(method, result=result)
    return golden_text(observed, Masks())


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": words}], **more}


def test_one_plain_text_is_kept_as_it_is() -> None:
    assert golden(text("hello\nworld")) == "hello\nworld\n"


def test_what_is_no_part_of_the_answer_is_left_out() -> None:
    bare = golden(text("hello"))
    assert golden(text("hello", isError=False, resultType="complete", _meta={"a": 1})) == bare
    assert golden(text("hello", ttlMs=5, cacheScope="private")) == bare


def test_the_order_of_members_means_nothing() -> None:
    one = {"content": [], "structuredContent": {"a": 1, "b": 2}}
    other = {"structuredContent": {"b": 2, "a": 1}, "content": []}
    assert golden(one) == golden(other)


DIFFERENT = [
    text("a"),
    text("a\n"),
    text(""),
    text("a", isError=True),
    text("a", structuredContent={"a": 1}),
    text("a", structuredContent={"a": 1.0}),
    text("a", structuredContent={"a": "1"}),
    text("a", structuredContent={"a": True}),
    text("=== isError\n=== content[0]\na"),
    text('=== mcptest snapshot 1\n=== isError\n=== content[0] {"type":"text"}\na'),
    text("\x1b[31m"),
    text("\\x1b[31m"),
    text("\\\\x1b[31m"),
    text("a\r\nb"),
    text("a\nb"),
    text("\u202eab"),
    text("<timestamp>"),
    text("\\<timestamp>"),
    text("2026-11-16T04:05:14Z"),
    text("<volatile>"),
    {"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
    {"content": [{"type": "text", "text": "a\nb", "annotations": {"priority": 1}}]},
    {"content": []},
    {"content": [{"type": "image", "mimeType": "image/png", "data": "A" * 500}]},
    {"content": [{"type": "image", "mimeType": "image/png", "data": "A" * 499 + "B"}]},
    {"content": [{"type": "image", "mimeType": "image/png", "data": "A"}]},
]


def test_no_two_answers_have_one_golden_text() -> None:
    for one, other in itertools.combinations(DIFFERENT, 2):
        assert golden(one) != golden(other), (one, other)


def test_errors_are_kept_with_code_and_data() -> None:
    kept = golden(error={"code": -32602, "message": "no", "data": {"why": "x"}})
    assert "=== error -32602\nno\n" in kept
    assert '"why": "x"' in kept


def test_prompts_and_resources_show_their_texts_as_they_are() -> None:
    message = {"role": "user", "content": {"type": "text", "text": "one\ntwo"}}
    prompt = golden({"messages": [message]}, method="prompts/get")
    resource = {"uri": "a://b", "mimeType": "text/plain", "text": "one\ntwo"}
    read = golden({"contents": [resource]}, method="resources/read")
    assert '=== messages[0] {"content":{"type":"text"},"role":"user"}\none\ntwo\n' in prompt
    assert '=== contents[0] {"mimeType":"text/plain","uri":"a://b"}\none\ntwo\n' in read


@pytest.mark.parametrize("words", ["\x1b]0;x\x07", "\x9b31m", "\u202e", "\ud800", "a\rb", "\u200b"])
def test_nothing_in_a_golden_file_can_steer_a_terminal(words: str) -> None:
    answers = [
        text(words),
        text("a", structuredContent={words: words}),
        {"content": [{"type": "text", "text": "a", "title": words}]},
        {"content": [], words: 1},
    ]
    for answer in answers:
        kept = golden(answer)
        assert kept.isascii()
        assert all(one.isprintable() or one == "\n" for one in kept)


@pytest.mark.parametrize("result", [None, 5, "text", [1], {}, {"content": 5}, {"content": [5]}])
def test_any_result_at_all_has_a_text(result: Any) -> None:
    assert golden(result).endswith("\n")


def test_an_answer_as_deep_as_may_be_has_a_golden_text() -> None:
    """Python allows a thousand calls within each other, and a message 512 levels."""
    text_of_it = golden({"content": [], "structuredContent": {"a": deepest("the end")}})
    assert "the end" in text_of_it
