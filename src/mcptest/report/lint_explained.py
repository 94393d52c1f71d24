"""One lint code in full: what it finds, why it matters, what breaks it, what to do about it."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from typing import Any

import msgspec

from mcptest.explore.lint.catalogue import all_lint_rules
from mcptest.explore.lint.finding import Finding, LintRule
from mcptest.model.show import show
from mcptest.report.lint_examples import EXAMPLES, Example, findings_in
from mcptest.report.lint_text import sign_of, suggestion_in_words
from mcptest.report.terminal import Style

_WIDTH = 96
_LONGEST_ANSWER = 60
_SEEN = {
    "tool": "each tool by itself",
    "parameter": "each parameter of a tool",
    "surface": "everything that the server lists, together",
    "prompt": "each prompt",
    "resource": "each resource",
    "template": "each resource template",
    "called": "answers of tools, with --call-tools or --detect-nondeterminism",
}


def find_lint_rule(name: str) -> LintRule | None:
    """The rule with this code, in any case."""
    wanted = name.strip().upper()
    return next((rule for rule in all_lint_rules() if rule.code == wanted), None)


def lint_rule_page(rule: LintRule, style: Style) -> Iterator[str]:
    yield f"{style.paint(rule.code, 'bold')}  {rule.title}"
    yield ""
    yield from textwrap.wrap(rule.why, _WIDTH)
    yield ""
    example = EXAMPLES[rule.code]
    what = "An answer" if rule.scope == "called" else "A definition"
    options = f" (with {example.options})" if example.options else ""
    yield style.paint(f"{what} that breaks it{options}:", "bold")
    yield from _shown(example.broken)
    yield style.paint("What the linter says:", "bold")
    for finding in findings_in(rule, example.broken, example.limits)[:2]:
        yield from _said(finding, style)
    yield style.paint("Without the finding:", "bold")
    yield from _shown(example.mended)
    yield style.paint("To fix it:", "bold")
    yield from (f"  {line}" for line in textwrap.wrap(rule.fix, _WIDTH - 2))
    yield ""
    for label, value in _facts(rule):
        yield f"{style.paint(f'{label:<14}', 'dim')} {value}"


def lint_rule_as_json(rule: LintRule) -> bytes:
    example = EXAMPLES[rule.code]
    value = {
        "schema": "mcptest.lint-rule/1",
        "code": rule.code,
        "title": rule.title,
        "severity": rule.severity.value,
        "scope": rule.scope,
        "why": rule.why,
        "fix": rule.fix,
        "example": _example_as_value(rule, example),
    }
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"


def _example_as_value(rule: LintRule, example: Example) -> dict[str, Any]:
    return {
        "options": example.options,
        "broken": example.broken,
        "says": [f.message for f in findings_in(rule, example.broken, example.limits)],
        "mended": example.mended,
    }


def _shown(given: Any) -> Iterator[str]:
    """As short as JSON can be while it is still easy to read."""
    if isinstance(given, list) and all(isinstance(one, str) for one in given):
        given = [one if len(one) <= _LONGEST_ANSWER else _abridged(one) for one in given]
    lists = {"": given} if not _is_lists(given) else given
    for things in lists.values():
        for thing in things if isinstance(things, list) else [things]:
            yield from (f"  {line}" for line in _json_lines(thing))
    yield ""


def _is_lists(given: Any) -> bool:
    return isinstance(given, dict) and given.keys() <= {"prompts", "resources", "templates"}


def _abridged(text: str) -> str:
    return f"{text[:20]}… ({len(text)} characters)"


def _json_lines(thing: Any) -> list[str]:
    whole = json.dumps(thing, ensure_ascii=False)
    if len(whole) <= _WIDTH - 2:
        return [show(whole, 2 * _WIDTH)]
    members = [
        f"  {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}"
        for key, value in thing.items()
    ]
    lines = ["{", *(f"{member}," for member in members[:-1]), members[-1], "}"]
    return [
        piece
        for line in lines
        for piece in textwrap.wrap(
            show(line, 2_000), _WIDTH - 2, subsequent_indent="    ", break_on_hyphens=False
        )
    ]


def _said(finding: Finding, style: Style) -> Iterator[str]:
    sign = sign_of(finding.severity, style)
    said = f"{show(finding.item, 60)}: {show(finding.message, 300)}"
    first, *rest = textwrap.wrap(said, _WIDTH - 4, break_on_hyphens=False)
    yield f"  {sign} {first}"
    yield from (f"    {line}" for line in rest)
    if finding.suggestion is not None:
        said = suggestion_in_words(finding.suggestion)
        yield from textwrap.wrap(
            said, _WIDTH, initial_indent="    ", subsequent_indent="      ", break_on_hyphens=False
        )
    yield ""


def _facts(rule: LintRule) -> list[tuple[str, str]]:
    found = "of mcp-assert" if rule.code[0] in "EW" else "of mcptest"
    return [
        ("severity", rule.severity.value),
        ("looks at", _SEEN[rule.scope]),
        ("code", f"{found}; mcptest lint --ignore {rule.code} leaves it out"),
    ]
