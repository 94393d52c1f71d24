"""Before anything runs: does every `{{name}}` have a value when its turn comes?"""

from __future__ import annotations

import re
from collections.abc import Iterator

from mcptest.model.show import show
from mcptest.suite.problems import Source, did_you_mean
from mcptest.suite.reading import Reading
from mcptest.suite.templates import FIXTURE, NAME, TEMPLATE, path_is_whole_answer
from mcptest.suite.yaml_nodes import Listing, Mapping, Node, Scalar

_SPACED = rf"\{{\{{\s*({NAME})\s*\}}\}}"


def check_templates(
    parts: list[Reading], source: Source, *, steps: tuple[Reading, ...], has_fixture: bool
) -> None:
    """Check the setup steps in their order, then the rest of a test with all that they capture."""
    known = {FIXTURE} if has_fixture else set()
    used = source.templates
    for step in steps:
        if used:
            _check(step, known, source)
        for name in step.get("capture", {}):
            _check_capture(step, name)
            known.add(name)
    for part in parts if used else ():
        _check(part, known, source)


def check_server_templates(
    server: Reading, source: Source, *, has_fixture: bool, overridden: bool = False
) -> None:
    """A server is started before anything can be captured.

    `overridden`: --server takes the place of its command, so nothing in that matters.
    """
    if source.templates:
        unused = frozenset({"command", "args"}) if overridden else frozenset()
        _check(server, {FIXTURE} if has_fixture else set(), source, unused)


def _check_capture(step: Reading, name: str) -> None:
    if name == FIXTURE:
        step.complain("a capture can't be named fixture", "capture")
    elif not re.fullmatch(NAME, name):
        step.complain(f"{show(name, 60)!r} is no name for a variable", "capture")
    path = step.get("capture")[name]
    if path_is_whole_answer(path):
        return
    from mcptest.suite.jsonpath import path_problem

    problem = path_problem(path)
    if problem is not None:
        step.complain(f"capture {show(name, 60)}: {problem}", "capture")


def _check(
    read: Reading, known: set[str], source: Source, unused: frozenset[str] = frozenset()
) -> None:
    if source.tidy and source.templates <= known:
        return  # nothing in the whole file could be wrong
    for name, value in read.values.items():
        where = "none" if name in unused else read.declaration.by_name[name].templates
        if where == "keys":
            node = read.node_of(name)
            if isinstance(node, Mapping):
                for key, _ in node.entries.values():
                    _check_text(key, known, source)
        elif where == "values":
            for scalar in _scalars(read.node_of(name)):
                _check_text(scalar, known, source)
        elif isinstance(value, Reading):
            _check(value, known, source)


def _scalars(node: Node) -> Iterator[Scalar]:
    waiting = [node]
    while waiting:
        one = waiting.pop()
        if isinstance(one, Scalar):
            yield one
        elif isinstance(one, Listing):
            waiting.extend(one.items)
        else:
            waiting.extend(value for _, value in one.entries.values())


def _check_text(scalar: Scalar, known: set[str], source: Source) -> None:
    if "{{" not in scalar.text:
        return
    for match in re.finditer(_SPACED, scalar.text):
        name = match.group(1)
        if TEMPLATE.fullmatch(match.group()):
            if name not in known:
                _report(scalar, match.group(), source, *_unknown(name, known))
        elif name in known or name == FIXTURE:
            _report(
                scalar,
                match.group(),
                source,
                f"{show(match.group(), 60)} is not replaced",
                f"write {{{{{name}}}}}, without spaces",
            )


def _unknown(name: str, known: set[str]) -> tuple[str, str]:
    if name == FIXTURE:
        return "{{fixture}} has no value", "pass --fixture DIR"
    captured = sorted(known - {FIXTURE})
    hint = did_you_mean(name, captured) if captured else "only a setup step before it can"
    return f"nothing captures {{{{{show(name, 60)}}}}} before it is used here", hint


def _report(scalar: Scalar, text: str, source: Source, message: str, hint: str) -> None:
    """Point at the variable itself where it can be found in the line."""
    line = source.line(scalar.line) or ""
    at = line.find(text, scalar.column - 1)
    column = at + 1 if at >= 0 else scalar.column
    width = len(text) if at >= 0 else scalar.width
    source.report(message, scalar.line, column, hint=hint, width=width)
