"""Annotations of tools: hints that contradict each other, the name, or are missing."""

from __future__ import annotations

from collections.abc import Iterator

from mcptest.explore.lint.declare import lint_rule
from mcptest.explore.lint.finding import Limits, Remark, Severity, Suggestion
from mcptest.explore.lint.surface import Tool
from mcptest.explore.lint.words import ALSO_MUTATING, DESTROYING, MUTATING

_HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
_SURELY_WRITING = (MUTATING | ALSO_MUTATING) - {"add", "execute", "set"}
"""`add` may be arithmetic, and what is executed may be a query."""


@lint_rule(
    "L212",
    "annotations that contradict each other",
    Severity.ERROR,
    "tool",
    why="Clients ask the user, or do not, by these hints.",
    fix="A tool that only reads destroys nothing; each hint is true or false.",
)
def contradictory_hints(tool: Tool, limits: Limits) -> Iterator[Remark]:
    if tool.hint("readOnlyHint") is True and tool.hint("destructiveHint") is True:
        dropped = Suggestion("/annotations/destructiveHint", value=False)
        yield Remark("claims to be read-only and destructive", "annotations", dropped)
    for hint in _HINTS:
        value = tool.hint(hint)
        if value is not None and not isinstance(value, bool):
            yield Remark(f"{hint} is neither true nor false", f"annotations.{hint}")


@lint_rule(
    "L213",
    "name that belies the annotations",
    Severity.ERROR,
    "tool",
    why="A client runs a read-only tool without asking; the name says that something is lost.",
    fix="Correct the hint, or the name.",
)
def belied_hints(tool: Tool, limits: Limits) -> Iterator[Remark]:
    verb = tool.words[0] if tool.words else ""
    if tool.hint("readOnlyHint") is True and verb in _SURELY_WRITING:
        corrected = Suggestion("/annotations/readOnlyHint", value=False)
        message = f'the name says "{verb}", readOnlyHint says that nothing changes'
        yield Remark(message, "annotations.readOnlyHint", corrected)
    elif tool.hint("destructiveHint") is False and verb in DESTROYING:
        corrected = Suggestion("/annotations/destructiveHint", value=True)
        message = f'the name says "{verb}", destructiveHint says that nothing is destroyed'
        yield Remark(message, "annotations.destructiveHint", corrected)


@lint_rule(
    "L214",
    "writing tool without annotations",
    Severity.WARNING,
    "tool",
    why="Clients have to take it for destructive, or for harmless.",
    fix="Set readOnlyHint and destructiveHint.",
)
def missing_hints(tool: Tool, limits: Limits) -> Iterator[Remark]:
    verb = tool.words[0] if tool.words else ""
    silent = tool.hint("readOnlyHint") is None and tool.hint("destructiveHint") is None
    if silent and verb in MUTATING | ALSO_MUTATING:
        hints = {"readOnlyHint": False, "destructiveHint": verb in DESTROYING}
        message = f'the name says "{verb}", no annotation says whether it destroys'
        yield Remark(message, "annotations", Suggestion("/annotations", hints))
