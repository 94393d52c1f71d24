"""What a person reads of a rule: every rule has a fix, and the texts are plain English."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator

import pytest

from mcptest.core.revision import TIMELINE
from mcptest.rules.corpus.probes import all_probes, placeholders
from mcptest.rules.corpus.reader import SHIPPED, corpus_of
from mcptest.rules.corpus.registry import CorpusRule, load_registry

LONGEST_TITLE = 13
LONGEST_SENTENCE = 27
STILTED = re.compile(
    r"(?<!here) (is|are) no (?!longer|more)\w+|\bis told\b|\bby itself\b|\bany more\b"
    r"|\bnobody gave out\b|\bmade up\b|\bis answered with\b|\bsays nothing\b|\bmay repeat\b"
)
"""Turns of phrase that a native technical writer would not use."""


@functools.cache
def corpus_rules() -> dict[str, CorpusRule]:
    """Every rule of any corpus, as the newest corpus with it has it."""
    corpora = [corpus for corpus in map(corpus_of, TIMELINE) if corpus is not None]
    return {rule.id: rule for corpus in corpora for rule in corpus.rules.values()}


def own_texts() -> Iterator[tuple[str, str]]:
    """Every text of the registry, the rows, the probes and the placeholders, and its place."""
    for entry in load_registry(SHIPPED / "registry.yml").values():
        for name in ("title", "requirement", "fix", "retired", "basic"):
            yield f"{entry.id} {name}", getattr(entry, name)
    for rule in corpus_rules().values():
        if rule.row is not None:
            yield f"{rule.id} says", rule.row.says
            yield f"{rule.id} safe", rule.row.safe
            for condition in rule.row.when:
                yield f"{rule.id} otherwise", condition.otherwise
    for probe in all_probes().values():
        for text in (probe.about, *probe.facts.values(), *probe.failures.values()):
            yield f"probe {probe.name}", text
    for name, one in placeholders().items():
        yield f"placeholder {name}", f"{one.about}. {one.unlocked_by}"


@pytest.mark.parametrize("rule", sorted(corpus_rules()))
def test_every_rule_says_what_to_do(rule: str) -> None:
    fix = corpus_rules()[rule].fix
    assert fix, f"{rule} has no fix: registry.yml"
    assert fix[0].isupper(), fix
    assert fix.endswith("."), fix


def test_titles_are_short_facts_without_a_period() -> None:
    titles = [rule.said.title for rule in corpus_rules().values() if rule.said.title]
    assert titles
    for title in titles:
        assert not title.endswith("."), title
        assert len(title.split()) <= LONGEST_TITLE, title


def test_no_sentence_is_long() -> None:
    for place, text in own_texts():
        for sentence in re.split(r"(?<=[.;:])\s", text):
            assert len(sentence.split()) <= LONGEST_SENTENCE, (place, sentence)


def test_no_text_is_stilted() -> None:
    for place, text in own_texts():
        assert not STILTED.search(text), (place, text)
