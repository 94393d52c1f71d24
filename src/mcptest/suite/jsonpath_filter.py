"""Selecting nodes of a document with the segments of a JSONPath, filters included.

AllOf work is counted: a document and a path that together ask for too much end in a PathError.
Nothing recurses over the document; filters recurse only as deep as their text nests.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mcptest.model.message import ABSENT
from mcptest.suite.json_equality import is_number, json_equal
from mcptest.suite.jsonpath_model import (
    AllOf,
    AnyOf,
    Call,
    Comparison,
    Constant,
    Filter,
    Index,
    Name,
    Not,
    Operand,
    PathError,
    Query,
    Segment,
    Selector,
    Slice,
    Test,
    Wildcard,
)
from mcptest.suite.regex import RegexError, found_in, matches_whole

_CHARACTERS_PER_STEP = 64


class Walk:
    """One evaluation of one path over one document."""

    __slots__ = ("left", "most", "root")

    def __init__(self, root: Any, most: int) -> None:
        self.root = root
        self.most = most
        self.left = most

    def spend(self, steps: int) -> None:
        self.left -= steps
        if self.left < 0:
            raise PathError(f"the path visits more than {self.most} nodes")

    # -- nodes -------------------------------------------------------------------------------

    def select(self, start: Any, segments: Iterable[Segment]) -> list[Any]:
        nodes = [start]
        for segment in segments:
            if segment.descendant:
                nodes = [below for node in nodes for below in self.descendants(node)]
            found: list[Any] = []
            for node in nodes:
                for selector in segment.selectors:
                    chosen = self.choose(node, selector)
                    self.spend(len(chosen) + 1)
                    found.extend(chosen)
            nodes = found
        return nodes

    def descendants(self, node: Any) -> list[Any]:
        """The node and everything below it, parents first."""
        found: list[Any] = []
        waiting = [node]
        while waiting:
            current = waiting.pop()
            found.append(current)
            self.spend(1)
            if isinstance(current, list):
                waiting.extend(reversed(current))
            elif isinstance(current, dict):
                waiting.extend(reversed(current.values()))
        return found

    def choose(self, node: Any, selector: Selector) -> list[Any]:
        match selector:
            case Name(name):
                return [node[name]] if isinstance(node, dict) and name in node else []
            case Index(index):
                return at_index(node, index)
            case Slice(start, stop, step):
                if not isinstance(node, list) or step == 0:
                    return []
                return node[start:stop:step]
            case Wildcard():
                return children_of(node)
            case Filter(test):
                self.spend(1)
                return [child for child in children_of(node) if self.holds(test, child)]

    # -- filters -----------------------------------------------------------------------------

    def holds(self, test: Test, current: Any) -> bool:
        self.spend(1)
        match test:
            case Comparison(operator, left, right):
                return self.compare(operator, self.value(left, current), self.value(right, current))
            case Not(inner):
                return not self.holds(inner, current)
            case AllOf(tests):
                return all(self.holds(part, current) for part in tests)
            case AnyOf(tests):
                return any(self.holds(part, current) for part in tests)
            case Query():
                return bool(self.nodes(test, current))
            case Call(function, (subject, pattern)):
                return self.text_matches(
                    function, self.value(subject, current), self.value(pattern, current)
                )
            case _:
                raise PathError("a test that the reader lets through has no meaning")

    def nodes(self, query: Query, current: Any) -> list[Any]:
        return self.select(current if query.relative else self.root, query.segments)

    def value(self, operand: Operand, current: Any) -> Any:
        """The value of an operand; ABSENT is the RFC's Nothing."""
        match operand:
            case Constant(value):
                return value
            case Query():
                nodes = self.nodes(operand, current)
                return nodes[0] if nodes else ABSENT
            case Call("length", (argument,)):
                value = self.value(argument, current)
                return len(value) if isinstance(value, str | list | dict) else ABSENT
            case Call(function, (Query() as query,)):
                nodes = self.nodes(query, current)
                if function == "count":
                    return len(nodes)
                return nodes[0] if len(nodes) == 1 else ABSENT
            case _:
                raise PathError("an operand that the reader lets through has no value")

    def compare(self, operator: str, left: Any, right: Any) -> bool:
        match operator:
            case "==":
                return self.equal(left, right)
            case "!=":
                return not self.equal(left, right)
            case "<":
                return is_less(left, right)
            case ">":
                return is_less(right, left)
            case "<=":
                return is_less(left, right) or self.equal(left, right)
            case _:
                return is_less(right, left) or self.equal(left, right)

    def equal(self, left: Any, right: Any) -> bool:
        if left is ABSENT or right is ABSENT:
            return left is right
        return json_equal(left, right, self.spend)

    def text_matches(self, function: str, subject: Any, pattern: Any) -> bool:
        if not isinstance(subject, str) or not isinstance(pattern, str):
            return False
        self.spend(len(subject) // _CHARACTERS_PER_STEP + 1)
        try:
            return (matches_whole if function == "match" else found_in)(pattern, subject)
        except RegexError:
            return False  # RFC 9535, 2.4.6: a pattern that is none does not match


def children_of(node: Any) -> list[Any]:
    if isinstance(node, list):
        return node
    return list(node.values()) if isinstance(node, dict) else []


def at_index(node: Any, index: int) -> list[Any]:
    if not isinstance(node, list) or not -len(node) <= index < len(node):
        return []
    return [node[index]]


def is_less(left: Any, right: Any) -> bool:
    """Only two numbers or two strings have an order."""
    comparable = (is_number(left) and is_number(right)) or (
        isinstance(left, str) and isinstance(right, str)
    )
    return comparable and bool(left < right)
