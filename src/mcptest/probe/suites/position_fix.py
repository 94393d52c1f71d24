"""`--fix`: positions near that of a failing test at which it would pass. Files are never changed.

A test is position-sensitive when its tool takes a line and a column. Nearby positions are tried on
one session, the nearest first, until one passes.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import TypeAlias

from msgspec import structs

from mcptest.core.limits import Deadline
from mcptest.core.results import RunReport, Status, Suggestion
from mcptest.probe.suites.attempt import LARGEST_FILE, Attempt
from mcptest.probe.suites.server_session import ServerSession
from mcptest.probe.suites.settings import Numbered, Settings
from mcptest.session.connection import Stopped
from mcptest.suite.model import Test, ToolBlock
from mcptest.suite.reading import (
    ListNode,
    MappingNode,
    Node,
    ScalarNode,
    YamlError,
    decode,
    read_nodes,
)
from mcptest.transport.files import read_bounded

LINES, COLUMNS = 5, 10
_LINE_NAME = "line"
_COLUMN_NAMES = ("column", "character", "col")
_TESTS_TRIED = 50
_RESTARTS = 3

Position: TypeAlias = tuple[tuple[str, int], tuple[str, int]]
"""The names of the two arguments, each with its value."""


def position_of(test: Test) -> Position | None:
    """The position that a test calls its tool with, or None when it has none."""
    if not isinstance(test.block, ToolBlock):
        return None
    numbers = {name: value for name, value in test.block.args.items() if type(value) is int}
    column = next((name for name in _COLUMN_NAMES if name in numbers), None)
    if _LINE_NAME not in numbers or column is None:
        return None
    return (_LINE_NAME, numbers[_LINE_NAME]), (column, numbers[column])


def nearby(position: Position) -> Iterator[Position]:
    """Every position in reach but this one, the nearest first; on the same line before others."""
    (line_name, line), (column_name, column) = position
    moves = product(range(-LINES, LINES + 1), range(-COLUMNS, COLUMNS + 1))
    for down, right in sorted(moves, key=lambda m: (abs(m[0]) + abs(m[1]), abs(m[0]), m)):
        if (down or right) and line + down >= 0 and column + right >= 0:
            yield (line_name, line + down), (column_name, column + right)


def find_positions(
    tests: Sequence[Test], report: RunReport, settings: Settings, should_stop: Callable[[], bool]
) -> Iterator[Suggestion]:
    """For each failing test that has a position: the nearest one at which it passes."""
    failed = {(r.file, r.line, r.name) for r in report.results if r.status is Status.FAIL}
    unrecorded = structs.replace(settings.choice, captures=None)
    settings = structs.replace(settings, should_stop=should_stop, choice=unrecorded)
    tried = 0
    for test in tests:
        position = position_of(test)
        if position is None or (test.place.file, test.place.line, test.name) not in failed:
            continue
        tried += 1
        if should_stop() or tried > _TESTS_TRIED:
            return
        found = _find_position(test, position, settings)
        if found is not None:
            patch = tuple(patch_for(test, position, found))
            place = test.place
            yield Suggestion(test.name, place.file, place.line, position, found, patch)


def _find_position(test: Test, position: Position, settings: Settings) -> Position | None:
    """Try one position after the other, within the time that a test may take."""
    deadline = Deadline.after(test.timeout or settings.timeout)
    session: ServerSession | None = None
    block, starts = test.block, 0
    assert isinstance(block, ToolBlock)
    try:
        for candidate in nearby(position):
            if deadline.expired or starts > _RESTARTS:
                return None
            call = structs.replace(block, args={**block.args, **dict(candidate)})
            item = Numbered(0, structs.replace(test, block=call))
            if session is None:
                starts += 1
                session = ServerSession(item, settings)
                session.launch()
            attempt = Attempt(item, session, settings)
            if attempt.finish().status is Status.PASS:
                return candidate
            if attempt.has_lost_the_server:
                session.close()
                session = None
    except Stopped:
        pass
    finally:
        if session is not None:
            session.close()
    return None


def patch_for(test: Test, was: Position, now: Position) -> list[str]:
    """A unified diff of the suite's file; empty where the numbers can't be found in it."""
    try:
        text = decode(read_bounded(test.place.file, LARGEST_FILE, pipes=False))
        root = read_nodes(text)
    except (OSError, YamlError):
        return []
    before = text.splitlines()
    after = list(before)
    arguments = _arguments(root, test)
    changes: list[tuple[int, int, str, str]] = []
    for (name, old), (_, new) in zip(was, now, strict=True):
        if old != new:
            _, value = arguments.get(name, (None, None))
            if not isinstance(value, ScalarNode):
                return []
            changes.append((value.line - 1, value.column - 1, str(old), str(new)))
    # The last one on a line first: a number that gets longer moves what is behind it.
    for number, start, old_text, new_text in sorted(changes, reverse=True):
        line = after[number]
        if not line.startswith(old_text, start):
            return []
        after[number] = line[:start] + new_text + line[start + len(old_text) :]
    name = test.place.file
    return list(difflib.unified_diff(before, after, name, name, n=1, lineterm=""))


def _arguments(root: Node | None, test: Test) -> Mapping[str, tuple[ScalarNode, Node]]:
    """What the test calls its tool with, as the file has it."""
    listed = _entry(root, "tests")
    tests = listed.items if isinstance(listed, ListNode) else (root,) if listed is None else ()
    block = next((one for one in tests if one is not None and one.line == test.place.line), None)
    arguments = _entry(_entry(block, "assert"), "args")
    return arguments.entries if isinstance(arguments, MappingNode) else {}


def _entry(node: Node | None, key: str) -> Node | None:
    if not isinstance(node, MappingNode) or key not in node.entries:
        return None
    return node.entries[key][1]
