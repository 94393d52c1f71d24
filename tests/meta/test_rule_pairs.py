"""The contract: a rule can't exist without a capture that breaks it and one that keeps it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mcptest.core.verdict import Outcome
from mcptest.rules.catalogue import all_rules
from mcptest.rules.composition import COMPOSITION_RULES
from mcptest.rules.declaration import RULES
from mcptest.rules.judge import judge
from tests.rules.captures import discover, full, handshake, public
from tests.rules.pairs import PAIRS

ALL = [rule.id for rule in all_rules()]
DECIDED = {Outcome.PASS, Outcome.FAIL}


def test_every_rule_has_a_pair_and_every_pair_a_rule() -> None:
    assert sorted(PAIRS) == sorted(ALL)


@pytest.mark.parametrize("name", ALL)
def test_the_violating_capture_fails_and_names_the_record(name: str) -> None:
    [verdict] = judge(PAIRS[name].violating(), [RULES[name]]).verdicts
    assert verdict.outcome is Outcome.FAIL, verdict
    assert verdict.findings_total >= 1
    assert verdict.findings[0].record is not None
    assert verdict.findings[0].excerpt


@pytest.mark.parametrize("name", ALL)
def test_the_conforming_capture_passes_because_it_was_observed(name: str) -> None:
    [verdict] = judge(PAIRS[name].conforming(), [RULES[name]]).verdicts
    assert verdict.outcome is Outcome.PASS, verdict
    assert verdict.observed >= 1


@pytest.mark.parametrize("name", ALL)
def test_counting_routine_steps_changes_no_verdict(name: str) -> None:
    thorough = [replace(rule, on_routine="send") for rule in all_rules()]
    for make in (PAIRS[name].violating, PAIRS[name].conforming):
        assert judge(make(), all_rules()).verdicts == judge(make(), thorough).verdicts


@pytest.mark.parametrize("name", ALL)
def test_an_empty_capture_never_passes(name: str) -> None:
    for source in (full(), full(transport="http"), full(transport="sse"), public()):
        [verdict] = judge(source, [RULES[name]]).verdicts
        assert verdict.outcome not in DECIDED, verdict
        assert verdict.reason


def test_a_capture_of_one_era_decides_no_rule_of_the_other() -> None:
    for source, era in ((full(handshake()), "stateless"), (full(discover()), "handshake")):
        for verdict in judge(source, all_rules()).verdicts:
            rule = RULES[verdict.rule]
            own = {r.era.value for r in type(rule.window.since) if r in rule.window}
            if own == {era}:
                assert verdict.outcome is Outcome.NOT_APPLICABLE, verdict


@pytest.mark.parametrize("name", [*ALL, *COMPOSITION_RULES])
def test_every_rule_has_a_page_that_says_more_than_its_title(name: str) -> None:
    rule = RULES.get(name) or COMPOSITION_RULES[name]
    assert len(rule.explanation) > len(rule.title)
    assert rule.title[0].islower() or rule.title.startswith(("HTTP", "INV", "Mcp", "MCP-"))
    assert not rule.title.endswith(".")


@pytest.mark.parametrize("name", [*ALL, *COMPOSITION_RULES])
def test_every_rule_says_what_to_do(name: str) -> None:
    fix = (RULES.get(name) or COMPOSITION_RULES[name]).fix
    assert fix[0].isupper()
    assert fix.endswith(".")
    assert len(fix.split()) > 4
