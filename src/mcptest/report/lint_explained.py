"""One code in full: what it finds, why it matters, an example, and what to do."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from mcptest.core.loading import loaded_once
from mcptest.core.results import derive
from mcptest.core.safe_text import show
from mcptest.report.audit import AuditCode
from mcptest.report.codec import as_json
from mcptest.report.lint import sign_of, suggestion_in_words
from mcptest.report.terminal import Style
from mcptest.rules.lint.finding import LintFinding, LintLimits, LintRule, LintSeverity, Scope
from mcptest.rules.lint.linter import Called, all_lint_rules, lint, lint_called
from mcptest.rules.lint.surface import surface_of

_EXAMPLES = Path(__file__).with_name("lint_examples.yml")


class Example(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A definition that has the finding, and one that does not."""

    broken: Any
    """A tool, a list of tools, lists by name; or the results of a tool for the same call."""
    mended: Any
    limits: LintLimits = LintLimits()
    times: int = 1
    """How often each broken answer is repeated in itself."""

    def __post_init__(self) -> None:
        if self.times > 1:
            derive(self, broken=[one * self.times for one in self.broken], times=1)

    @property
    def options(self) -> str:
        """On the command line, for a bound that a short example would not reach."""
        chosen = msgspec.structs.asdict(self.limits).items()
        usual = msgspec.structs.asdict(LintLimits())
        changed = ((name, value) for name, value in chosen if value != usual[name])
        return " ".join(f"--{name.replace('_', '-')} {value}" for name, value in changed)


@loaded_once
def examples() -> dict[str, Example]:
    """By code."""
    found: dict[str, Example] = msgspec.yaml.decode(_EXAMPLES.read_bytes(), type=dict[str, Example])
    return found


def findings_in(rule: LintRule, given: Any, limits: LintLimits) -> list[LintFinding]:
    """What the rule finds in a definition."""
    if rule.scope == "called":
        return list(lint_called([Called("get_report", given)], [rule], limits))
    tools = given if isinstance(given, list) else [given]
    lists = given if _is_lists(given) and given else {"tools": tools}
    return lint(surface_of(**lists), [rule], limits)


_WIDTH = 96
_LONGEST_ANSWER = 60
_SEEN = {
    "tool": "each tool",
    "parameter": "each parameter of a tool",
    "surface": "everything the server lists",
    "prompt": "each prompt",
    "resource": "each resource",
    "template": "each resource template",
    "called": "results of tools, with --call-tools or --detect-nondeterminism",
}


def find_lint_rule(name: str) -> LintRule | None:
    """The rule with this code, in any case."""
    wanted = name.strip().upper()
    return next((rule for rule in all_lint_rules() if rule.code == wanted), None)


def lint_rule_page(rule: LintRule, style: Style) -> Iterator[str]:
    origin = "from mcp-assert" if rule.code[0] in "EW" else "from mcptest"
    facts = {
        "severity": rule.severity.value,
        "looks at": _SEEN[rule.scope],
        "code": f"{origin}; to ignore it: mcptest lint --ignore {rule.code}",
    }
    return _code_page(rule, facts, style, _example_lines(rule, style))


def audit_code_page(code: AuditCode, style: Style) -> Iterator[str]:
    facts = {"status": code.health.value, "found by": "mcptest audit; error_code in its JSON"}
    return _code_page(code, facts, style)


def _code_page(
    one: LintRule | AuditCode, facts: Mapping[str, str], style: Style, example: Iterable[str] = ()
) -> Iterator[str]:
    yield f"{style.paint(one.code, 'bold')}  {one.title}"
    yield from ("", *textwrap.wrap(one.why, _WIDTH, break_on_hyphens=False), "")
    yield from example
    yield style.paint("What to do:", "bold")
    yield from (f"  {line}" for line in textwrap.wrap(one.fix, _WIDTH - 2, break_on_hyphens=False))
    yield ""
    for label, value in facts.items():
        yield f"{style.paint(f'{label:<14}', 'dim')} {value}"


def _example_lines(rule: LintRule, style: Style) -> Iterator[str]:
    example = examples()[rule.code]
    what = "A result" if rule.scope == "called" else "A definition"
    options = f" (with {example.options})" if example.options else ""
    yield style.paint(f"{what} with this finding{options}:", "bold")
    yield from _shown(example.broken)
    yield style.paint("The finding:", "bold")
    for finding in findings_in(rule, example.broken, example.limits)[:2]:
        yield from _said(finding, style)
    yield style.paint("Without the finding:", "bold")
    yield from _shown(example.mended)


class ExplainedExample(msgspec.Struct, frozen=True):
    options: str
    broken: Any
    says: tuple[str, ...]
    mended: Any


class ExplainedLintRule(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="format", tag="mcptest.lint-rule/1"
):
    """One code as JSON."""

    code: str
    title: str
    severity: LintSeverity
    scope: Scope
    why: str
    fix: str
    example: ExplainedExample


def lint_rule_as_json(rule: LintRule) -> bytes:
    example = examples()[rule.code]
    says = tuple(one.message for one in findings_in(rule, example.broken, example.limits))
    shown = ExplainedExample(example.options, example.broken, says, example.mended)
    same = ("code", "title", "severity", "scope", "why", "fix")
    told = {name: getattr(rule, name) for name in same}
    return as_json(ExplainedLintRule(**told, example=shown))


def _shown(given: Any) -> Iterator[str]:
    """As short as JSON can be while it is still easy to read."""
    if isinstance(given, list) and all(isinstance(one, str) for one in given):
        given = [
            one if len(one) <= _LONGEST_ANSWER else f"{one[:20]}… ({len(one)} characters)"
            for one in given
        ]
    for things in given.values() if _is_lists(given) else [given]:
        for thing in things if isinstance(things, list) else [things]:
            yield from (f"  {line}" for line in _json_lines(thing))
    yield ""


def _is_lists(given: Any) -> bool:
    return isinstance(given, dict) and given.keys() <= {"prompts", "resources", "templates"}


def _json_lines(thing: Any) -> list[str]:
    whole = json.dumps(thing, ensure_ascii=False)
    if len(whole) <= _WIDTH - 2:
        return [show(whole, 2 * _WIDTH)]
    members = [
        f"  {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}"
        for key, value in thing.items()
    ]
    lines = ["{", *(f"{member}," for member in members[:-1]), members[-1], "}"]
    fit = textwrap.TextWrapper(_WIDTH - 2, subsequent_indent="    ", break_on_hyphens=False)
    return [piece for line in lines for piece in fit.wrap(show(line, 2_000))]


def _said(finding: LintFinding, style: Style) -> Iterator[str]:
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
