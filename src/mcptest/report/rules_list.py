"""The rules themselves as text, JSON or one page: for `compliance rules` and `explain`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from mcptest.model.revision import Revision
from mcptest.report.terminal import Style
from mcptest.rules.composition import CompositionRule
from mcptest.rules.declare import Rule


def rules_as_lines(
    rules: Sequence[Rule],
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
    rules: Sequence[Rule], together: Sequence[CompositionRule], revision: Revision | None
) -> bytes:
    listed = [rule_as_value(rule, revision) for rule in rules]
    hazards = [
        {"id": other.id, "title": other.title, "explanation": other.explanation}
        for other in together
    ]
    value = {"schema": "mcptest.rules/1", "rules": listed, "composition": hazards}
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"


def rule_as_value(rule: Rule, revision: Revision | None = None) -> dict[str, Any]:
    return {
        "id": rule.id,
        "title": rule.title,
        "category": rule.category,
        "severity": (rule.severity_in(revision) if revision else rule.severity).value,
        "side": rule.side.value,
        "revisions": {
            "since": rule.window.since.value,
            "until": rule.window.until.value if rule.window.until else None,
        },
        "transports": sorted(rule.transports),
        "specification": rule.url(revision),
        "explanation": rule.explanation,
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
    return [*facts, ("category", rule.category), ("specification", rule.url())]


def rule_page(rule: Rule | CompositionRule, style: Style) -> Iterator[str]:
    yield f"{style.paint(rule.id, 'bold')}  {rule.title}"
    yield ""
    yield from rule.explanation.splitlines()
    yield ""
    facts = facts_of(rule) if isinstance(rule, Rule) else [("judges", "several servers together")]
    for name, value in facts:
        yield f"{style.paint(f'{name:<14}', 'dim')} {value}"
