"""The table of mutants is complete, a sample of it is caught, and the healthy demo is let be."""

from __future__ import annotations

import re

import pytest

from mcptest.core.revision import TIMELINE, Revision
from mcptest.rules.corpus.reader import corpus_of
from mcptest.rules.corpus.registry import CorpusRule
from tests.mutants.judged import ROOT, Case, first_place_of, look_at, mutant_cases
from tests.mutants.mutant import IMPOSSIBLE, every_mutant
from tests.mutants.precision_page import is_called_caught

MUTANTS = every_mutant()
PAGE = ROOT / "docs" / "compliance" / "precision.md"
EVERY = 8
"""Of the rules that look at one exchange, every so-many-eth is tried here."""
TAKES_ITS_TIME = {"ELICIT-009", "STDIO-101", "SUBS-101"}
"""Mutants that are silent, which has to be waited for."""


def rules_of_all_corpora() -> dict[str, CorpusRule]:
    found: dict[str, CorpusRule] = {}
    for revision in TIMELINE:
        corpus = corpus_of(revision)
        assert corpus is not None
        found = {**corpus.rules, **found}
    return found


RULES = rules_of_all_corpora()
ROWS = sorted(name for name, rule in RULES.items() if rule.row is not None)
SAMPLE = [name for name in ROWS[::EVERY] if name in MUTANTS and name not in TAKES_ITS_TIME]


def test_every_rule_about_servers_has_a_mutant_or_a_reason() -> None:
    assert set(MUTANTS) | set(IMPOSSIBLE) == set(RULES)
    assert not set(MUTANTS) & set(IMPOSSIBLE)


@pytest.mark.parametrize("rule", sorted(MUTANTS))
def test_a_mutant_has_a_place_where_its_rule_holds(rule: str) -> None:
    mutant = MUTANTS[rule]
    case = first_place_of(rule, mutant)
    assert mutant.about
    assert case.rule == rule
    if mutant.since:
        assert case.revision.value == mutant.since


@pytest.mark.parametrize("rule", SAMPLE)
def test_a_mutant_is_caught_by_its_rule(rule: str) -> None:
    seen = look_at(first_place_of(rule, MUTANTS[rule]), (rule,))
    assert seen.failed == (rule,), (MUTANTS[rule].about, seen.outcome, seen.trouble)


@pytest.mark.parametrize("rule", ["MSG-007", "SHAPE-001", "HTTP-001"])
def test_a_mutant_is_caught_by_a_rule_over_whole_sessions(rule: str) -> None:
    seen = look_at(first_place_of(rule, MUTANTS[rule]))
    assert seen.failed == (rule,), (MUTANTS[rule].about, seen.outcome, seen.trouble)


@pytest.mark.parametrize(
    "case",
    [
        Case(Revision.V2024_11_05, "sse"),
        Case(Revision.V2025_11_25, "http", options=("--response", "sse")),
        Case(Revision.V2026_07_28, "stdio"),
    ],
    ids=lambda case: f"{case.revision} {case.way}",
)
def test_nothing_fires_on_the_healthy_demo(case: Case) -> None:
    seen = look_at(case)
    assert seen.trouble == ""
    assert seen.failed == ()
    assert len(seen.passed) > len(seen.not_observed)


def test_the_page_tells_of_every_mutant_as_it_is_now() -> None:
    rows = re.findall(r"^\| ([A-Z]+-\d+) \| (.*?) \| (\S+ \S+) \|", PAGE.read_text(), re.MULTILINE)
    told = {rule: (about, place) for rule, about, place in rows}
    assert told == {
        case.rule: (MUTANTS[case.rule].about, f"{case.revision} {case.way}")
        for case in mutant_cases()
    }


def test_the_page_calls_every_mutant_caught() -> None:
    page = PAGE.read_text()
    missed = [case.rule for case in mutant_cases() if not is_called_caught(case, page)]
    assert not missed, "make docs judges them again"
