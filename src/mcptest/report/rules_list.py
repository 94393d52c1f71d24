"""The rules themselves as text, JSON or one page: for `compliance rules` and `explain`."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from mcptest.model.revision import Revision, Window
from mcptest.report.compliance_facts import commonness_in_words
from mcptest.report.corpus_rules import ListedRule, window_in_words
from mcptest.report.corpus_words import (
    asked_in_words,
    conditions_in_words,
    expected_in_words,
    needs_in_words,
    sent_in_words,
)
from mcptest.report.terminal import Style
from mcptest.rules.composition import CompositionRule
from mcptest.rules.declare import Rule
from mcptest.rules.known_sdks import known_sdks

_WIDTH: Final = 96


def rules_as_lines(
    rules: Sequence[Rule | ListedRule],
    together: Sequence[CompositionRule],
    revision: Revision | None,
    style: Style,
) -> Iterator[str]:
    category = ""
    for rule in rules:
        if rule.category != category:
            yield ("\n" if category else "") + style.paint(rule.category, "cyan")
            category = rule.category
        severity = rule.severity_in(revision) if revision else rule.severity
        scope = style.paint(f"{rule.side.value}, {rule.window}", "dim")
        yield f"  {rule.id:<12} {severity.value:<6} {rule.title}  {scope}"
    if together:
        yield "\n" + style.paint("composition of several servers", "cyan")
    for other in together:
        yield f"  {other.id:<12} {'hazard':<6} {other.title}"
    yield ""
    yield f"{len(rules) + len(together)} rules; mcptest explain ID shows one in full"


def rules_as_json(
    rules: Sequence[Rule | ListedRule],
    together: Sequence[CompositionRule],
    revision: Revision | None,
) -> bytes:
    listed = [rule_as_value(rule, revision) for rule in rules]
    hazards = [
        {"id": other.id, "title": other.title, "explanation": other.explanation}
        for other in together
    ]
    value = {"schema": "mcptest.rules/1", "rules": listed, "composition": hazards}
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"


def rule_as_value(rule: Rule | ListedRule, revision: Revision | None = None) -> dict[str, Any]:
    value = {
        "id": rule.id,
        "title": rule.title,
        "category": rule.category,
        "kind": "session",
        "severity": (rule.severity_in(revision) if revision else rule.severity).value,
        "side": rule.side.value,
        "revisions": _window_value(rule.window),
        "transports": sorted(rule.transports),
        "specification": rule.url(revision),
        "explanation": rule.explanation,
        "common": msgspec.to_builtins(known_sdks().commonness(rule.id)),
    }
    return value if isinstance(rule, Rule) else {**value, **_corpus_value(rule)}


def _window_value(window: Window) -> dict[str, str | None]:
    return {
        "since": window.since.value,
        "until": window.until.value if window.until is not None else None,
    }


def _corpus_value(rule: ListedRule) -> dict[str, Any]:
    """What a rule of the corpora has beside: how it is asked, and what to do when it fails."""
    session = rule.session_rule
    return {
        "kind": "exchange" if session is None else "session",
        "judged_by": session.id if session is not None else None,
        "severities": [
            {"severity": severity.value, **_window_value(window)}
            for window, severity in rule.severities()
        ],
        "statements": list(rule.entry.statements),
        "fix": rule.entry.fix,
        "asked": [
            {
                **_window_value(window),
                "sent": sent_in_words(row.check),
                "expected": expected_in_words(row),
                "needs": needs_in_words(row.needs),
                "when": conditions_in_words(row.when),
            }
            for window, row in rule.stages()
            if row is not None
        ],
    }


def facts_of(rule: Rule) -> list[tuple[str, str]]:
    """The lines above a rule's page."""
    severity = rule.severity.value
    if rule.should_until is not None:
        severity += f" (SHOULD before {rule.should_until})"
    facts = [
        ("severity", severity),
        ("judges", {"both": "both sides"}.get(rule.side.value, f"the {rule.side.value}")),
        ("revisions", str(rule.window)),
    ]
    if rule.transports:
        facts.append(("transports", ", ".join(sorted(rule.transports))))
    facts += [("category", rule.category), ("specification", rule.url())]
    return [*facts, *_common(rule.id)]


def _common(rule: str) -> list[tuple[str, str]]:
    common = known_sdks().commonness(rule)
    return [("common", commonness_in_words(common))] if common is not None else []


def facts_of_corpus_rule(rule: ListedRule) -> list[tuple[str, str]]:
    severities = rule.severities()
    severity = ", ".join(f"{word.value} ({window_in_words(window)})" for window, word in severities)
    facts = [
        ("severity", severity if len(severities) > 1 else rule.severity.value),
        ("judges", {"both": "both sides"}.get(rule.side.value, f"the {rule.side.value}")),
        ("revisions", str(rule.window)),
    ]
    if rule.transports:
        facts.append(("transports", ", ".join(sorted(rule.transports))))
    facts.append(("category", rule.category))
    if rule.entry.statements:
        facts.append(("statements", ", ".join(rule.entry.statements)))
    facts += [("specification", page) for page in rule.pages()]
    if rule.entry.retired and rule.window.until is not None:
        facts.append(("later", f"from {rule.window.until} on: {rule.entry.retired}"))
    return [*facts, *_common(rule.id)]


def rule_page(rule: Rule | CompositionRule | ListedRule, style: Style) -> Iterator[str]:
    yield f"{style.paint(rule.id, 'bold')}  {rule.title}"
    yield ""
    if isinstance(rule, ListedRule):
        yield from _corpus_page(rule, style)
    else:
        yield from rule.explanation.splitlines()
        yield ""
    previous = ""
    for name, value in _facts(rule):
        label = name if name != previous else ""
        previous = name
        for line in _wrapped(value, _WIDTH - 15):
            yield f"{style.paint(f'{label:<14}', 'dim')} {line}"
            label = ""


def _facts(rule: Rule | CompositionRule | ListedRule) -> list[tuple[str, str]]:
    if isinstance(rule, ListedRule):
        return facts_of_corpus_rule(rule)
    return facts_of(rule) if isinstance(rule, Rule) else [("judges", "several servers together")]


def _corpus_page(rule: ListedRule, style: Style) -> Iterator[str]:
    for paragraph in rule.explanation.split("\n\n"):
        yield from _wrapped(paragraph, _WIDTH)
        yield ""
    if rule.session_rule is not None:
        yield f"It is judged over whole sessions, by {rule.session_rule.id}."
        yield ""
    yield from _stages(rule, style)
    if rule.entry.fix:
        yield from _listed("To fix it", [rule.entry.fix], style)
        yield ""


def _stages(rule: ListedRule, style: Style) -> Iterator[str]:
    """How it is asked; of a later stage only what is not as it was before."""
    stages = rule.stages()
    before: list[tuple[str, list[str]]] = []
    for window, row in stages:
        if row is None:
            continue
        if len(stages) > 1:
            yield style.paint(window_in_words(window), "cyan")
        parts = asked_in_words(row)
        for heading, lines in parts:
            if (heading, lines) not in before:
                yield from _listed(heading, lines, style)
        before = parts
        yield ""


def _listed(heading: str, lines: Sequence[str], style: Style) -> Iterator[str]:
    if lines:
        yield style.paint(f"{heading}:", "bold")
    for line in lines:
        first, *rest = _wrapped(" ".join(line.split()), _WIDTH - 4)
        yield f"  {first}"
        yield from (f"    {one}" for one in rest)


def _wrapped(text: str, width: int) -> list[str]:
    """In lines that fit, except that an address stays in one piece."""
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False) or [""]
