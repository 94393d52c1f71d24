"""`--fix`: which positions are tried, in which order, and how the change is shown."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from mcptest.probe.suites.position_fix import nearby, patch_for, position_of
from tests.support.suites import load_text


def distance(position: object, line: int = 20, column: int = 20) -> int:
    (_, at), (_, beside) = position  # type: ignore[misc]  # a position
    return abs(at - line) + abs(beside - column)


def test_the_documented_range_is_tried_nearest_first_and_once() -> None:
    found = list(nearby((("line", 20), ("column", 20))))
    assert len(found) == len(set(found)) == 11 * 21 - 1
    assert all(distance(a) <= distance(b) for a, b in pairwise(found))
    assert found[0][0] == ("line", 20), "the same line first"


def test_no_position_before_the_beginning_is_tried() -> None:
    for (_, line), (_, column) in nearby((("line", 0), ("column", 3))):
        assert line >= 0
        assert column >= 0


def test_a_test_without_a_whole_position_has_none() -> None:
    def position(args: str) -> object:
        block = f"{{tool: t, args: {args}, expect: {{not_error: true}}}}"
        text = f"server: {{command: x}}\nname: n\nassert: {block}\n"
        tests, source = load_text(text.encode(), "s.yaml")
        assert not source.problems
        return position_of(tests[0])

    assert position("{line: 1, column: 2}") == (("line", 1), ("column", 2))
    assert position("{line: 1, character: 2}") == (("line", 1), ("character", 2))
    for args in ("{}", "{line: 1}", "{line: '1', column: 2}", "{line: true, column: 2}"):
        assert position(args) is None


def test_the_patch_applies_to_the_right_test_of_a_file(tmp_path: Path) -> None:
    one = "    assert: {tool: t, args: {line: 9, column: 9}, expect: {not_error: true}}\n"
    text = f"server: {{command: x}}\ntests:\n  - name: a\n{one}  - name: b\n{one}"
    path = tmp_path / "s.yaml"
    path.write_text(text)
    tests, _ = load_text(text.encode(), str(path))
    was = (("line", 9), ("column", 9))
    patch = patch_for(tests[1], was, (("line", 10), ("column", 19)))
    changed = [line for line in patch if line.startswith("+ ")]
    assert len(changed) == 1
    assert "args: {line: 10, column: 19}" in changed[0]
    assert any(line.startswith("@@ -5,2 +5,2 @@") for line in patch)


def test_numbers_that_stand_elsewhere_give_no_patch(tmp_path: Path) -> None:
    text = (
        "server: {command: x}\nname: n\n"
        "assert:\n  tool: t\n  args: {line: 0x9, column: 9}\n  expect: {not_error: true}\n"
    )
    path = tmp_path / "s.yaml"
    path.write_text(text)
    tests, _ = load_text(text.encode(), str(path))
    assert position_of(tests[0]) == (("line", 9), ("column", 9))
    assert patch_for(tests[0], (("line", 9), ("column", 9)), (("line", 8), ("column", 9))) == []
    path.unlink()
    assert patch_for(tests[0], (("line", 9), ("column", 9)), (("line", 9), ("column", 8))) == []
