"""Concrete texts and values for what is missing: a start to edit, made from names alone."""

from __future__ import annotations

from typing import Any

from mcptest.rules.lint.finding import LintSuggestion
from mcptest.rules.lint.surface import Parameter, SurfaceTool
from mcptest.rules.lint.wordlists import WORDS, words_of


def described_tool(tool: SurfaceTool) -> LintSuggestion:
    """A sentence from the tool's name, and what it takes."""
    verb, *others = tool.words or ["does"]
    ending = "es" if verb.endswith(("s", "sh", "ch", "x", "z")) else "s"
    verb, rest = (verb + ending).capitalize(), " ".join(others) or "…"
    needed = [one.name for one in tool.parameters if one.required][:5]
    by = f" for the given {', '.join(needed)}" if needed else ""
    sentence = f"{verb} {rest}{by}. Returns …. Use it when …"
    return LintSuggestion("/description", sentence)


def described_parameter(parameter: Parameter) -> LintSuggestion:
    words = words_of(parameter.name)
    known = next((word for word in reversed(words) if word in WORDS.meanings), "")
    others = " ".join(word for word in words if word != known) or "the thing that is meant"
    text = f"{WORDS.meanings[known]} {others}" if known else f"What {' '.join(words)} stands for"
    example = example_for(parameter)
    shown = f", for example {example}" if isinstance(example, str) and example else ""
    return LintSuggestion(f"{parameter.pointer}/description", f"{text}{shown}.")


def with_examples(parameter: Parameter) -> LintSuggestion:
    return LintSuggestion(f"{parameter.pointer}/examples", [example_for(parameter)])


def example_for(parameter: Parameter) -> Any:
    """By its name; else the plainest value that its schema takes."""
    kind = parameter.type
    if kind == "array":
        return [_text_for(parameter)]
    if kind in ("", "string"):
        return _text_for(parameter)
    return {"integer": 1, "number": 1.5, "boolean": True}.get(kind, {})


def _text_for(parameter: Parameter) -> str:
    words = words_of(parameter.name)
    known = next((word for word in reversed(words) if word in WORDS.examples), "")
    return str(WORDS.examples.get(known) or "-".join([*words, "1"]))
