"""What tools say of themselves: whether a model can tell when to use them."""

from __future__ import annotations

from collections.abc import Iterator

from mcptest.explore.lint.declare import lint_rule
from mcptest.explore.lint.finding import Limits, Remark, Severity, Suggestion
from mcptest.explore.lint.suggestions import described_tool
from mcptest.explore.lint.surface import Tool, object_of
from mcptest.explore.lint.words import (
    ACKNOWLEDGING,
    ACTIONS,
    DESTROYING,
    MUTATING,
    RETURNING,
    VAGUE,
    words_of,
)

_SHORT_WORD = 10
_MANY_ACTIONS = 3


@lint_rule(
    "E101",
    "tool without description",
    Severity.ERROR,
    "tool",
    why="The description is all that a model has to decide whether to call a tool.",
    fix="Say what the tool does, what it returns, and when to use it.",
)
def no_description(tool: Tool, limits: Limits) -> Iterator[Remark]:
    if not tool.description:
        yield Remark("has no description", "description", described_tool(tool))


@lint_rule(
    "W101",
    "vague description",
    Severity.WARNING,
    "tool",
    why="A phrase that fits every tool does not tell this one from the others.",
    fix="Name the thing that is acted on and what comes back.",
)
def vague_description(tool: Tool, limits: Limits) -> Iterator[Remark]:
    text = tool.description.lower()
    one_short_word = 0 < len(text) < _SHORT_WORD and " " not in text
    if text in VAGUE or one_short_word:
        message = f'the description "{tool.description}" says nothing'
        yield Remark(message, "description", described_tool(tool))


@lint_rule(
    "W111",
    "description of unhelpful length",
    Severity.WARNING,
    "tool",
    why="Too short does not say when to use the tool; too long (a note) costs context in every "
    "request.",
    fix="Keep it between --min-description and --max-description characters.",
)
def description_length(tool: Tool, limits: Limits) -> Iterator[Remark]:
    length = len(tool.description)
    if 0 < length < limits.min_description:
        message = (
            f"the description has only {length} characters (at least {limits.min_description})"
        )
        yield Remark(message, "description", described_tool(tool))
    elif length > limits.max_description:
        message = f"the description has {length} characters (at most {limits.max_description})"
        yield Remark(message, "description", severity=Severity.NOTE)


@lint_rule(
    "W116",
    "description does not say what comes back",
    Severity.NOTE,
    "tool",
    why="A model plans its next step by what this one gives; an outputSchema says it as well.",
    fix="Add a sentence that begins with Returns, or declare an outputSchema.",
)
def unknown_result(tool: Tool, limits: Limits) -> Iterator[Remark]:
    text = tool.description.lower()
    declared = object_of(tool.raw, "outputSchema") if isinstance(tool.raw, dict) else {}
    if text and not declared and not any(word in text for word in RETURNING):
        added = Suggestion("/description", _with_sentence(tool.description, "Returns …"))
        yield Remark("the description does not say what it returns", "description", added)


@lint_rule(
    "W108",
    "side effect that is not owned up to",
    Severity.WARNING,
    "tool",
    why="A model that takes a writing tool for a reading one calls it again when in doubt. A note "
    "where the name does not say that something is destroyed.",
    fix="Say what is created, changed or deleted, and whether calling it twice does harm.",
)
def hidden_side_effect(tool: Tool, limits: Limits) -> Iterator[Remark]:
    verb = next((word for word in tool.words if word in MUTATING), "")
    if not verb or not tool.description or tool.hint("readOnlyHint") is True:
        return  # of a hint that the name belies L213 speaks
    text = tool.description.lower()
    if any(sign in text for sign in ACKNOWLEDGING) or _uses_mutating_verb(text):
        return
    added = Suggestion("/description", _with_sentence(tool.description, "This changes …"))
    message = f'the name says "{verb}", the description names no side effect'
    harm = None if verb in DESTROYING else Severity.NOTE
    yield Remark(message, "description", added, severity=harm)


def _with_sentence(text: str, sentence: str) -> str:
    return f"{text} {sentence}" if text.endswith((".", "!", "?", ":")) else f"{text}. {sentence}"


def _uses_mutating_verb(text: str) -> bool:
    """`Delete the entity` owns up as much as `deletes` does."""
    return any(word in MUTATING for word in words_of(text))


@lint_rule(
    "W110",
    "description and schema drift apart",
    Severity.NOTE,
    "tool",
    why="A description that mentions few of the parameters was often written for another version.",
    fix="Mention what the parameters are for.",
)
def drifted_description(tool: Tool, limits: Limits) -> Iterator[Remark]:
    total = len(tool.parameters)
    if total < 2 or not tool.description:
        return
    text = tool.description.lower()
    mentioned = sum(_mentions(text, one.name.lower()) for one in tool.parameters)
    if mentioned * 2 < total:
        missing = [one.name for one in tool.parameters if not _mentions(text, one.name.lower())]
        names = ", ".join(missing[:5])
        message = f"the description mentions {mentioned} of {total} parameters, not {names}"
        yield Remark(message, "description")


def _mentions(text: str, name: str) -> bool:
    return name in text or any(len(word) > 2 and word in text for word in name.split("_"))


@lint_rule(
    "L201",
    "tool that does too much",
    Severity.NOTE,
    "tool",
    why="A tool with many jobs is called with the arguments of the wrong one.",
    fix="Make one tool for each job.",
)
def overloaded_tool(tool: Tool, limits: Limits) -> Iterator[Remark]:
    text = f" {tool.description.lower()} "
    found = [verb for verb in ACTIONS if any(f" {verb}{end} " in text for end in ("", "s", "ing"))]
    if len(found) > _MANY_ACTIONS:
        message = f"the description has {len(found)} verbs of action: {', '.join(found)}"
        yield Remark(message, "description")
