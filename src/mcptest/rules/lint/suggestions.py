"""Concrete texts and values for what is missing: a start to edit, made from names alone."""

from __future__ import annotations

from typing import Any

from mcptest.rules.lint.finding import LintSuggestion
from mcptest.rules.lint.surface import Parameter, SurfaceTool
from mcptest.rules.lint.wordlists import words_of

_THIRD_PERSON = {"get": "Gets", "list": "Lists", "search": "Searches", "fetch": "Fetches"}
_MEANINGS = {
    "id": "Identifier of",
    "ids": "Identifiers of",
    "path": "Path, from the root that the server allows, of",
    "url": "Absolute https URL of",
    "uri": "URI of",
    "email": "E-mail address of",
    "limit": "At most how many",
    "offset": "How many to skip before",
    "query": "Words to look for in",
}
_EXAMPLES: dict[str, Any] = {
    "email": "ada@example.com",
    "url": "https://example.com/page",
    "uri": "https://example.com/page",
    "query": "unpaid invoices",
    "search": "unpaid invoices",
    "phone": "+44 20 7946 0000",
    "address": "221B Baker Street, London",
    "username": "ada",
    "name": "weekly-report",
    "names": "weekly-report",
    "title": "Weekly report",
    "message": "The build is green.",
    "prompt": "Summarise the weekly report.",
    "question": "Which invoices are unpaid?",
    "filter": "status=open",
    "sort": "created_at",
    "locale": "en-GB",
    "timezone": "Europe/Vienna",
    "language": "en",
    "currency": "EUR",
    "country": "AT",
    "region": "eu-west-1",
    "path": "reports/2026/week-01.txt",
    "file": "reports/2026/week-01.txt",
    "date": "2026-01-31",
    "time": "14:30",
}


def described_tool(tool: SurfaceTool) -> LintSuggestion:
    """A sentence from the tool's name, and what it takes."""
    return LintSuggestion("/description", sentence_for(tool))


def sentence_for(tool: SurfaceTool) -> str:
    words = tool.words or ["does"]
    verb, rest = _third_person(words[0]), " ".join(words[1:]) or "…"
    needed = [one.name for one in tool.parameters if one.required][:5]
    by = f" for the given {', '.join(needed)}" if needed else ""
    return f"{verb} {rest}{by}. Returns …. Use it when …"


def _third_person(verb: str) -> str:
    if verb in _THIRD_PERSON:
        return _THIRD_PERSON[verb]
    ending = "es" if verb.endswith(("s", "sh", "ch", "x", "z")) else "s"
    return (verb + ending).capitalize()


def described_parameter(parameter: Parameter) -> LintSuggestion:
    words = words_of(parameter.name)
    known = next((word for word in reversed(words) if word in _MEANINGS), "")
    others = " ".join(word for word in words if word != known) or "the thing that is meant"
    text = f"{_MEANINGS[known]} {others}" if known else f"What {' '.join(words)} stands for"
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
    known = next((word for word in reversed(words) if word in _EXAMPLES), "")
    return str(_EXAMPLES.get(known) or "-".join([*words, "1"]))
