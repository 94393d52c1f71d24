"""`expect` of every kind, from what was read to values; with the checks that fields can't make."""

from __future__ import annotations

from typing import Any

from mcptest.suite.model import Expect, LoggingExpect, NotificationExpect, TargetCheck
from mcptest.suite.reading import Reading
from mcptest.suite.yaml_nodes import Listing, Mapping, Node, Scalar


def expect_of(read: Any) -> Expect:
    """`expect` as a mapping or as a list of rows; what can't be used is reported."""
    if not isinstance(read, Reading):
        rows = tuple(read or ())
        place = rows[0].place if rows else None
        return Expect(checks=tuple(map(_row, rows)), place=place)
    _check_bounds(read, "min_results", "max_results")
    if read.get("not_error") and read.get("is_error"):
        read.complain("is_error contradicts not_error", "is_error")
    _check_patterns(read)
    _check_paths(read)
    _check_schema(read)
    values = dict(read.values)
    checks = tuple(map(_row, values.pop("checks", ())))
    return Expect(checks=checks, place=read.place, **values)


def logging_expect_of(read: Reading) -> LoggingExpect:
    return LoggingExpect(**read.values, place=read.place)


def notification_expect_of(read: Reading) -> NotificationExpect:
    _check_bounds(read, "min_count", "max_count")
    return NotificationExpect(**read.values, place=read.place)


def _row(row: Reading) -> TargetCheck:
    target = row.get("target", "")
    if row.sound:
        _check_target(row, target)
    return TargetCheck(target, row.get("matcher", {}), row.place)


def _check_target(row: Reading, target: str) -> None:
    from mcptest.suite.targets import target_problem

    problem = target_problem(target)
    if problem is not None:
        row.complain(problem, "target")


def _check_bounds(read: Reading, least: str, most: str) -> None:
    low, high = read.get(least), read.get(most)
    if low is not None and high is not None and low > high:
        read.complain(f"{least} is {low}, which is more than {most}, {high}", least)


def _check_patterns(read: Reading) -> None:
    if "matches_regex" not in read:
        return
    from mcptest.suite.regex import pattern_problem

    for node, pattern in zip(_items(read, "matches_regex"), read.get("matches_regex"), strict=True):
        problem = pattern_problem(pattern)
        if problem is not None:
            _report(read, node, f"matches_regex: {problem}", "patterns are RE2")


def _check_paths(read: Reading) -> None:
    if "json_path" not in read:
        return
    from mcptest.suite.jsonpath import path_problem

    table = read.node_of("json_path")
    for path in read.get("json_path"):
        problem = path_problem(path)
        if problem is not None and isinstance(table, Mapping):
            _report(read, table.entries[path][0], f"json_path: {problem}")


def _check_schema(read: Reading) -> None:
    if "schema" not in read:
        return
    from mcptest.schema.json_schema import schema_problem

    problem = schema_problem(read.get("schema"))
    if problem:
        read.complain(f"schema {problem}", "schema")


def _items(read: Reading, name: str) -> tuple[Node, ...]:
    node = read.node_of(name)
    return node.items if isinstance(node, Listing) else ()


def _report(read: Reading, node: Node, message: str, hint: str = "") -> None:
    width = node.width if isinstance(node, Scalar) else 1
    read.source.report(message, node.line, node.column, hint=hint, width=width)
    read.faulty.add("")
