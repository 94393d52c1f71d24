"""YAML as nodes: places, limits, and what is refused."""

from __future__ import annotations

import time
from typing import Any

import pytest

from mcptest.suite.reading import (
    DEEPEST,
    LARGEST_FILE,
    MOST_NODES,
    MOST_WRITTEN,
    ListNode,
    MappingNode,
    Node,
    ScalarNode,
    YamlError,
    decode,
    read_nodes,
)


def plain(node: Node | None) -> Any:
    if isinstance(node, MappingNode):
        return {key: plain(value) for key, (_, value) in node.entries.items()}
    if isinstance(node, ListNode):
        return [plain(item) for item in node.items]
    return None if node is None else node.text


def test_every_node_knows_its_place() -> None:
    root = read_nodes("a: 1\nb:\n  - 'x y'\n  - {c: d}\n")

    assert isinstance(root, MappingNode)
    key, value = root.entries["b"]
    assert (key.line, key.column, key.width) == (2, 1, 1)
    assert isinstance(value, ListNode)
    assert (value.line, value.column) == (3, 3)
    quoted, mapping = value.items
    assert isinstance(quoted, ScalarNode)
    assert (quoted.text, quoted.plain, quoted.line, quoted.column, quoted.width) == (
        "x y", False, 3, 5, 5,
    )  # fmt: skip
    assert (mapping.line, mapping.column) == (4, 5)


def test_columns_count_characters_not_bytes() -> None:
    root = read_nodes("日本: {語: x}\n")

    assert isinstance(root, MappingNode)
    inner = root.entries["日本"][1]
    assert isinstance(inner, MappingNode)
    assert inner.entries["語"][1].column == 9


def test_a_byte_order_mark_is_not_part_of_the_text() -> None:
    assert decode(b"\xef\xbb\xbfa: 1") == "a: 1"


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment\n", "%YAML 1.2\n---\n...\n"])
def test_a_text_without_a_value_has_no_node(text: str) -> None:
    root = read_nodes(text)
    assert root is None or (isinstance(root, ScalarNode) and not root.text)


def test_aliases_share_what_they_name() -> None:
    root = read_nodes("a: &x {k: [1, 2]}\nb: *x\nc: [*x, &y z, *y]\n")

    assert plain(root) == {"a": {"k": ["1", "2"]}, "b": {"k": ["1", "2"]}, "c": [
        {"k": ["1", "2"]}, "z", "z",
    ]}  # fmt: skip


def test_own_keys_win_over_merged_ones_and_earlier_merges_over_later_ones() -> None:
    text = """
base: &base {a: 1, b: 2}
more: &more {b: 3, c: 4}
one: {<<: *base, b: own}
many:
  <<: [*base, *more]
  d: 5
"""
    root = plain(read_nodes(text))

    assert root["one"] == {"a": "1", "b": "own"}
    assert root["many"] == {"a": "1", "b": "2", "c": "4", "d": "5"}


def test_a_quoted_merge_key_is_a_key() -> None:
    assert plain(read_nodes("'<<': x\n")) == {"<<": "x"}


def test_an_anchor_may_be_given_anew() -> None:
    assert plain(read_nodes("[&a 1, *a, &a 2, *a]")) == ["1", "1", "2", "2"]


@pytest.mark.parametrize(
    ("text", "message", "line", "column"),
    [
        ("a: 1\nb: 2\na: 3\n", "the key a appears twice", 3, 1),
        ("{1: a, '1': b}", "the key 1 appears twice", 1, 8),
        ("a: 1\n---\nb: 2\n", "a second document", 2, 1),
        ("---\n---\n", "a second document", 2, 1),
        ("[*a]", "unknown anchor &a", 1, 2),
        ("&a [*a]", "*a is inside its own anchor", 1, 5),
        ("{<<: 1}", "<< takes a mapping or a list of them", 1, 6),
        ("{? {a: b} : c}", "a key must be a string", 1, 4),
        ("a: !thing {}", "unknown tag !thing", 1, 4),
    ],
)
def test_what_has_no_clear_meaning_is_refused(
    text: str, message: str, line: int, column: int
) -> None:
    with pytest.raises(YamlError) as caught:
        read_nodes(text)

    assert (caught.value.message, caught.value.line, caught.value.column) == (message, line, column)


def test_a_duplicate_key_names_both_places() -> None:
    with pytest.raises(YamlError) as caught:
        read_nodes("x:\n  a: 1\n  a: 2\n")

    assert (caught.value.line, caught.value.column, caught.value.width) == (3, 3, 1)
    assert caught.value.hint == "first in line 2, column 3"


@pytest.mark.parametrize("opening", ["[", "{a: ", "- ", "? "])
def test_endless_nesting_is_refused_at_once(opening: str) -> None:
    started = time.process_time()
    with pytest.raises(YamlError):
        read_nodes(opening * 100_000)
    assert time.process_time() - started < 5


def test_nesting_up_to_the_limit_is_read() -> None:
    assert read_nodes("[" * DEEPEST + "]" * DEEPEST) is not None


def test_aliases_can_not_nest_deeper_than_text_could() -> None:
    half = DEEPEST // 2 + 1
    text = f"a: &a {'[' * half}{']' * half}\nb: {'[' * half}*a{']' * half}\n"

    with pytest.raises(YamlError, match="nested more than"):
        read_nodes(text)


def test_an_alias_bomb_is_refused_by_what_it_stands_for() -> None:
    rows = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    rows += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    started = time.process_time()

    with pytest.raises(YamlError, match="more than 100,000 values"):
        read_nodes("\n".join(rows))
    assert time.process_time() - started < 5


def test_a_merge_bomb_is_refused_by_what_it_stands_for() -> None:
    base = ", ".join(f"k{n}: 1" for n in range(1_000))
    text = f"base: &base {{{base}}}\nall:\n" + "  - {<<: *base}\n" * 200

    with pytest.raises(YamlError, match="more than 100,000 values"):
        read_nodes(text)


def test_a_file_with_too_many_values_is_refused() -> None:
    with pytest.raises(YamlError, match="more than 1,000,000 values"):
        read_nodes("[" + "x," * (MOST_WRITTEN + 1) + "]")


def test_values_that_are_written_out_are_no_bomb() -> None:
    read_nodes("[" + "x," * (2 * MOST_NODES) + "]")


def test_a_file_that_is_too_large_is_refused() -> None:
    with pytest.raises(YamlError, match="larger than 16 MiB"):
        decode(b"#" * (LARGEST_FILE + 1))
