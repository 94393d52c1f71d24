"""Parameters that tools have in common: values that a model carries from one to the other.

Names are matched once, by `name_matches`, and never tool by tool.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from mcptest.explore.lint.declare import lint_rule
from mcptest.explore.lint.finding import Limits, Remark, Severity, Suggestion
from mcptest.explore.lint.name_matches import NameMatches
from mcptest.explore.lint.surface import Parameter, Surface
from mcptest.explore.lint.words import is_shared_by_nature

_NAMED = 3
_COMPARED = 8
"""How many tools of each name are held against each other, where descriptions decide."""
_ALIKE = 0.25


class _Use(msgspec.Struct, frozen=True):
    """One parameter of one tool."""

    tool: int
    parameter: Parameter


def _uses(surface: Surface) -> Iterator[_Use]:
    for number, tool in enumerate(surface.tools):
        for parameter in tool.parameters:
            if not is_shared_by_nature(parameter.name):
                yield _Use(number, parameter)


@lint_rule(
    "E105",
    "free text that flows from tool to tool",
    Severity.NOTE,
    "surface",
    why="What one tool is told is passed on to the next; without a form a model passes anything.",
    fix="Give both the same enum, pattern or format.",
)
def free_text_flow(surface: Surface, limits: Limits) -> Iterator[Remark]:
    users: dict[str, dict[int, None]] = {}
    free = [use for use in _uses(surface) if _is_free_text(use.parameter)]
    for use in free:
        users.setdefault(use.parameter.name.lower(), {})[use.tool] = None
    for use in free:
        others = _others(use, users, surface.name_matches)
        if others:
            yield _flow(use, [surface.tools[one].name for one in others], surface)


def _is_free_text(parameter: Parameter) -> bool:
    formed = parameter.schema.keys() & {"enum", "pattern", "format"}
    return parameter.type == "string" and not formed


def _others(use: _Use, users: dict[str, dict[int, None]], matches: NameMatches) -> list[int]:
    """A few other tools that take the same: enough to name, whatever their number is."""
    found: dict[int, None] = {}
    name = use.parameter.name.lower()
    for other in (*matches.same(name), *matches.related(name)):
        for tool in users.get(other, ()):
            if tool != use.tool:
                found[tool] = None
            if len(found) > _NAMED:
                return list(found)
    return list(found)


def _flow(use: _Use, others: list[str], surface: Surface) -> Remark:
    name = use.parameter.name
    listed = ", ".join(f'"{other}"' for other in others[:_NAMED])
    more = " and others" if len(others) > _NAMED else ""
    return Remark(
        f'free text "{name}" is shared with {listed}{more}',
        f"args.{name}",
        Suggestion(f"{use.parameter.pointer}/pattern", "^…$"),
        item=surface.tools[use.tool].name,
    )


@lint_rule(
    "E107",
    "tools that feed each other",
    Severity.NOTE,
    "surface",
    why="Tools that take the same things invite a model to go round in circles between them.",
    fix="Say in each description which one comes first, and when to stop.",
)
def circles(surface: Surface, limits: Limits) -> Iterator[Remark]:
    groups = _Groups(len(surface.tools))
    by_name: dict[tuple[str, str], dict[int, None]] = {}
    for use in _uses(surface):
        if use.parameter.type:
            key = (use.parameter.name.lower(), use.parameter.type)
            by_name.setdefault(key, {})[use.tool] = None
    matches = surface.name_matches
    for (name, kind), tools in by_name.items():
        first = next(iter(tools))
        for other in matches.same(name):
            for tool in by_name.get((other, kind), ()):
                groups.join(first, tool)
                if other != name:
                    break  # the rest are joined under their own name
        for other in matches.related(name):
            _join_alike(surface, groups, list(tools), list(by_name.get((other, kind), ())))
    for members in groups.larger_than_one():
        yield _circle(sorted({surface.tools[one].name for one in members}))


def _join_alike(surface: Surface, groups: _Groups, here: list[int], there: list[int]) -> None:
    """Names that only contain each other count where the descriptions have words in common."""
    for one in here[:_COMPARED]:
        for other in there[:_COMPARED]:
            if one != other and _overlap(surface, one, other) >= _ALIKE:
                groups.join(one, other)


def _overlap(surface: Surface, one: int, other: int) -> float:
    words, others = (
        {word for word in surface.tools[each].description.lower().split() if len(word) > 2}
        for each in (one, other)
    )
    together = len(words | others)
    return len(words & others) / together if together else 0.0


def _circle(names: list[str]) -> Remark:
    listed = ", ".join(names[:10]) + (f" and {len(names) - 10} more" if len(names) > 10 else "")
    return Remark(f"take the same parameters: {listed}", "dependencies", item=names[0])


class _Groups:
    """Which tools hang together; joining is next to free."""

    def __init__(self, size: int) -> None:
        self._parent = list(range(size))

    def join(self, one: int, other: int) -> None:
        one, other = self._root(one), self._root(other)
        if one != other:
            self._parent[max(one, other)] = min(one, other)

    def _root(self, one: int) -> int:
        while self._parent[one] != one:
            self._parent[one] = self._parent[self._parent[one]]
            one = self._parent[one]
        return one

    def larger_than_one(self) -> Iterator[list[int]]:
        members: dict[int, list[int]] = {}
        for one in range(len(self._parent)):
            members.setdefault(self._root(one), []).append(one)
        return (group for group in members.values() if len(group) > 1)
