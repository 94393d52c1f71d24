"""Names of tools: whether clients accept them and a model can tell them apart."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator

from mcptest.explore.lint.declare import lint_rule
from mcptest.explore.lint.finding import Limits, Remark, Severity, Suggestion
from mcptest.explore.lint.surface import Surface, Tool
from mcptest.explore.lint.words import words_of

_ACCEPTED = re.compile(r"[A-Za-z0-9_-]{1,64}")
_LOOKALIKES = str.maketrans("0оОаАеЕіІсСрРхХуУ|", "oooaaeeiiccppxxyyl")  # noqa: RUF001 - they are meant
_NAMED = 5


@lint_rule(
    "E113",
    "tool name that is used twice",
    Severity.ERROR,
    "surface",
    why="Only one of them can ever be called, and nobody can say which.",
    fix="Give each tool a name of its own.",
)
def duplicate_names(surface: Surface, limits: Limits) -> Iterator[Remark]:
    counts = Counter(tool.name for tool in surface.tools)
    for name, count in counts.items():
        if count > 1:
            yield Remark(f'{count} tools are named "{name}"', "name", item=name)


@lint_rule(
    "L202",
    "tool name that clients refuse",
    Severity.WARNING,
    "tool",
    why="Many clients and model APIs take letters, digits, _ and - only, and 64 of them at most.",
    fix="Rename it; the title may hold any text.",
)
def awkward_name(tool: Tool, limits: Limits) -> Iterator[Remark]:
    name = tool.member("name")
    if isinstance(name, str) and name and not _ACCEPTED.fullmatch(name):
        plain = "_".join(words_of(name))[:64]
        added = Suggestion("/name", plain) if plain and plain != name else None
        yield Remark("the name has characters or a length that clients refuse", "name", added)


@lint_rule(
    "L203",
    "tool without a usable name or definition",
    Severity.ERROR,
    "tool",
    why="It can't be called.",
    fix="A tool is an object with a name that is a text, and an inputSchema that is an object.",
)
def unusable_tool(tool: Tool, limits: Limits) -> Iterator[Remark]:
    if not isinstance(tool.raw, dict):
        yield Remark("the definition is not an object")
        return
    name = tool.raw.get("name")
    if not isinstance(name, str) or not name.strip():
        yield Remark("has no name", "name")
    if not isinstance(tool.raw.get("inputSchema"), dict):
        empty = Suggestion("/inputSchema", {"type": "object"})
        yield Remark("has no inputSchema that is an object", "inputSchema", empty)


@lint_rule(
    "L204",
    "tool names that are easily confused",
    Severity.WARNING,
    "surface",
    why="Names that differ in case, separators, plural or a letter's look are mixed up.",
    fix="Make them differ in a word.",
)
def confusable_names(surface: Surface, limits: Limits) -> Iterator[Remark]:
    alike: dict[str, dict[str, None]] = {}
    for tool in surface.tools:
        if isinstance(tool.member("name"), str):
            alike.setdefault(skeleton(tool.name), {})[tool.name] = None
    for names in alike.values():
        first, *others = names
        if others:
            more = f" and {len(others) - _NAMED} more" if len(others) > _NAMED else ""
            listed = ", ".join(f'"{name}"' for name in others[:_NAMED])
            yield Remark(f"is easily confused with {listed}{more}", "name", item=first)


def skeleton(name: str) -> str:
    """What is left of a name when everything is gone that is easily overlooked."""
    flat = unicodedata.normalize("NFKD", name[:500]).translate(_LOOKALIKES)
    seen = "".join(one for one in flat if unicodedata.category(one)[0] in "LN")
    words = [word.rstrip("s") for word in words_of(seen)] if seen.isascii() else [seen.casefold()]
    return "".join(words).replace("l", "i").replace("1", "i")
