"""The file that mcp-assert writes is read as it is, and only compared with what it holds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mcptest.core.errors import UsageError
from mcptest.probe.snapshots import SavedAnswer, nearest, saved_answers, texts_of
from mcptest.suite.golden import Masks
from mcptest.suite.observed import Observed


def saved(folder: Path, *entries: dict[str, Any]) -> None:
    (folder / ".snapshots.json").write_text(json.dumps({"snapshots": list(entries)}))


def answer(text: str, **more: Any) -> Any:
    return Observed("tools/call", result={"content": [{"type": "text", "text": text}], **more})


def test_answers_are_found_by_the_name_of_the_test(tmp_path: Path) -> None:
    saved(tmp_path, {"name": "a", "tool": "t", "text": "x", "is_error": True, "checksum": "00"})
    found = nearest(str(tmp_path / "sub/a.yaml"), saved_answers([str(tmp_path)]))
    assert found is not None
    assert found.answers["a"] == SavedAnswer("a", "x", is_error=True)


def test_a_single_suite_is_served_by_the_file_in_its_folder(tmp_path: Path) -> None:
    saved(tmp_path, {"name": "a", "text": "x"})
    (tmp_path / "a.yaml").touch()
    assert nearest(str(tmp_path / "a.yaml"), saved_answers([str(tmp_path / "a.yaml")])) is not None


def test_a_folder_that_was_not_named_is_not_looked_into(tmp_path: Path) -> None:
    saved(tmp_path, {"name": "a", "text": "x"})
    (tmp_path / "sub").mkdir()
    assert saved_answers([str(tmp_path / "sub")]) == {}


@pytest.mark.parametrize(
    "content", [b"", b"[]", b'{"snapshots": 5}', b'{"snapshots":[{}]}', b"\xff"]
)
def test_a_file_that_is_something_else_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / ".snapshots.json").write_bytes(content)
    with pytest.raises(UsageError, match="is not what mcp-assert writes"):
        saved_answers([str(tmp_path)])


def test_a_link_to_nowhere_is_said_to_be_unreadable(tmp_path: Path) -> None:
    (tmp_path / ".snapshots.json").symlink_to("nowhere")
    with pytest.raises(UsageError, match="can't read"):
        saved_answers([str(tmp_path)])


def agree(before: SavedAnswer, now: Any, *paths: str) -> bool:
    one, other = texts_of(before, now, Masks(paths=paths))
    return one == other


def test_the_text_and_the_flag_are_compared_and_nothing_more() -> None:
    now = answer("x", structuredContent={"a": 1})
    assert agree(SavedAnswer("a", "x"), now)
    assert not agree(SavedAnswer("a", "y"), now)
    assert not agree(SavedAnswer("a", "x", is_error=True), now)
    assert agree(SavedAnswer("a", "x", is_error=True), answer("x", isError=True))


def test_its_copy_of_the_fixture_is_where_ours_is() -> None:
    before = SavedAnswer("a", "in /tmp/mcp-assert-fixture-31396/data/a.txt")
    assert agree(before, answer("in /run/ours/data/a.txt"), "/run/ours/data")
    assert not agree(before, answer("in /run/ours/data/b.txt"), "/run/ours/data")


def test_half_a_surrogate_pair_is_what_go_makes_of_it() -> None:
    assert agree(SavedAnswer("a", "x\ufffd"), answer("x\ud800"))
