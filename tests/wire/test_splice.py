"""One value replaced, every other byte as it was."""

from __future__ import annotations

import pytest

from mcptest.core.errors import UsageError
from mcptest.wire.capture_forms import replace_members


@pytest.mark.parametrize(
    ("text", "changes", "expected"),
    [
        ('{"id": 1, "x":[1,{"id":1}]}', {("id",): "a"}, '{"id": "a", "x":[1,{"id":1}]}'),
        (' { "a" : { "b" :\t2 } } ', {("a", "b"): 33}, ' { "a" : { "b" :\t33 } } '),
        ('{"id":1,"p":{"t":1}}', {("id",): 5, ("p", "t"): "z"}, '{"id":5,"p":{"t":"z"}}'),
        ('{"i\\u0064":1}', {("id",): 2}, '{"i\\u0064":2}'),
        ('{"id":1,"id":2}', {("id",): 3}, '{"id":1,"id":3}'),
        ('{"a":1}', {("id",): 3}, '{"a":1}'),
        ('{"a":1}', {("a", "b"): 3}, '{"a":1}'),
        ("{}", {("id",): 3}, "{}"),
        ("[1]", {("id",): 3}, "[1]"),
        ('[ {"a":1} ,2,"x" ]', {(0, "a"): 5, (2,): "y"}, '[ {"a":5} ,2,"y" ]'),
        ('[ {"a":1} ,2,"x" ]', {(1,): {}, (3,): 1}, '[ {"a":1} ,{},"x" ]'),
        ("[]", {(0,): 1}, "[]"),
    ],
)
def test_only_the_named_value_changes(
    text: str, changes: dict[tuple[str | int, ...], object], expected: str
) -> None:
    assert replace_members(text.encode(), changes).decode() == expected


@pytest.mark.parametrize("text", ['{"id":1', '{"id" 1}', '{"id":1 "x":2}', "{,}"])
def test_text_that_is_no_object_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"a message: "):
        replace_members(text.encode(), {("id",): 2})
