"""Every lint rule, over everything that a server offers and over what its tools answered.

Importing this module declares them all.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from mcptest.core.safe_text import beginning
from mcptest.rules.lint import descriptions, overlap, parameters, prompts_and_resources, schemas
from mcptest.rules.lint.finding import (
    LINT_RULES,
    OWN_PROFILE,
    LintFinding,
    LintLimits,
    LintRule,
    LintSeverity,
    Remark,
    lint_rule,
)
from mcptest.rules.lint.surface import Surface

_DECLARING = (descriptions, overlap, parameters, prompts_and_resources, schemas)


def all_lint_rules() -> tuple[LintRule, ...]:
    """Those of mcp-assert first (errors, then warnings), then ours."""
    assert _DECLARING
    rules = LINT_RULES.values()
    return tuple(sorted(rules, key=lambda rule: ("EWL".index(rule.code[0]), rule.code)))


def chosen_rules(
    select: Collection[str] = (), ignore: Collection[str] = (), profile: str = OWN_PROFILE
) -> list[LintRule]:
    """Rules by code or by the beginning of one (`W`, `L2`); everything when nothing is selected."""
    return [
        rule
        for rule in rules_of_profile(profile)
        if (not select or rule.code.startswith(tuple(select)))
        and not (ignore and rule.code.startswith(tuple(ignore)))
    ]


def rules_of_profile(profile: str) -> tuple[LintRule, ...]:
    """mcp-assert has codes that begin with E or W, and means what the letter says, but for E107."""
    if profile == OWN_PROFILE:
        return all_lint_rules()
    severities = {"E": LintSeverity.ERROR, "W": LintSeverity.WARNING, "E107": LintSeverity.WARNING}
    theirs = [rule for rule in all_lint_rules() if rule.code[0] in severities]
    return tuple(
        replace(one, severity=severities.get(one.code, severities[one.code[0]]), settled=True)
        for one in theirs
    )


def unknown_codes(codes: Iterable[str]) -> list[str]:
    """What is not the beginning of any code: a typing error would switch off nothing, or all."""
    known = [rule.code for rule in all_lint_rules()]
    return [code for code in codes if not code or not any(one.startswith(code) for one in known)]


LONGEST_MESSAGE = 2_000
"""Characters of it: the names in it are the server's."""


def lint(surface: Surface, rules: Sequence[LintRule], limits: LintLimits) -> list[LintFinding]:
    """Findings by item, in the order of the lists; what is about the server comes last."""
    order = _order(surface)
    found = [
        (order.get((one.kind, one.item), len(order)), number, place, one)
        for number, rule in enumerate(rules)
        for place, one in enumerate(_findings(rule, surface, limits))
    ]
    found.sort(key=lambda entry: entry[:3])
    return [one for *_, one in found]


def lint_called(
    called: Iterable[Called], rules: Sequence[LintRule], limits: LintLimits
) -> Iterator[LintFinding]:
    for one in called:
        for rule in rules:
            if rule.scope == "called":
                yield from (_finding(rule, remark) for remark in rule.check(one, limits))


def _order(surface: Surface) -> dict[tuple[str, str], int]:
    names = [(kind, one.name) for kind, those in surface.by_kind.items() for one in those]
    return {name: place for place, name in reversed(list(enumerate(names)))}


def _findings(rule: LintRule, surface: Surface, limits: LintLimits) -> Iterator[LintFinding]:
    if rule.scope == "surface":
        yield from (_finding(rule, remark) for remark in rule.check(surface, limits))
    if rule.scope in ("surface", "called"):
        return
    things: Iterable[tuple[str, str, Any]]
    if rule.scope == "parameter":
        things = (("tool", one.name, each) for one in surface.tools for each in one.parameters)
    else:
        things = ((rule.scope, one.name, one) for one in surface.by_kind[rule.scope])
    for kind, name, thing in things:
        for remark in rule.check(thing, limits):
            yield _finding(rule, remark, kind, name)


def _finding(rule: LintRule, remark: Remark, kind: str = "", name: str = "") -> LintFinding:
    return LintFinding(
        kind=kind or remark.kind,
        item=name or remark.item,
        code=rule.code,
        severity=rule.severity if rule.settled else remark.severity or rule.severity,
        title=rule.title,
        message=beginning(remark.message, LONGEST_MESSAGE),
        field=beginning(remark.field, LONGEST_MESSAGE),
        fix=rule.fix,
        suggestion=remark.suggestion,
    )


TRIALS = 3


class Called(msgspec.Struct, frozen=True):
    """What a tool answered to the same call, once or several times."""

    tool: str
    answers: Sequence[str]


@lint_rule("E301", "response too large", LintSeverity.ERROR, "called")
def large_answer(called: Called, limits: LintLimits) -> Iterator[Remark]:
    """One call fills the context of the model. The check needs --call-tools.

    Paginate or truncate the result, or return a resource link.
    """
    size = max((len(one.encode("utf-8", "replace")) for one in called.answers), default=0) // 1024
    if size > limits.max_response_kb:
        message = f"returns {size} KB (maximum {limits.max_response_kb})"
        yield Remark(message, "response", item=called.tool)


@lint_rule("W107", "different responses to the same call", LintSeverity.WARNING, "called")
def changing_answers(called: Called, limits: LintLimits) -> Iterator[Remark]:
    """A model cannot rely on results that change on their own. The check needs
    --detect-nondeterminism.

    Sort unordered data, and omit timestamps and ids that nobody asked for.
    """
    different = len(set(called.answers))
    if different > 1:
        message = (
            f"returned {different} different results for {len(called.answers)} identical calls"
        )
        yield Remark(message, "behavior", item=called.tool)
