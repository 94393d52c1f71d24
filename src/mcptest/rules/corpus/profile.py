"""By what a server is judged, as a name: tool version, revision, and a hash over the corpus."""

from __future__ import annotations

import functools
import hashlib
import json
from pathlib import Path
from typing import Any, Final

import msgspec

from mcptest import __version__
from mcptest.model.compliance import Profile
from mcptest.model.errors import UsageError
from mcptest.model.revision import Revision
from mcptest.rules import grading
from mcptest.rules.corpus.probes import PROBES
from mcptest.rules.corpus.rows import CorpusRule, Row
from mcptest.rules.corpus.version_corpus import VersionCorpus, corpus_of
from mcptest.rules.declare import Rule

DIGITS: Final = 12
"""Of the hash. Two corpora that somebody compares are told apart by far fewer."""


def profile_of(revision: Revision, corpora: Path | None = None) -> Profile:
    """The profile of a revision's corpus: equal profiles give comparable grades."""
    return Profile(tool=__version__, corpus=_hash_of(revision, corpora), revision=revision)


@functools.lru_cache(maxsize=16)
def _shipped(revision: Revision) -> str:
    return corpus_hash(_corpus(revision, None))


def _hash_of(revision: Revision, corpora: Path | None) -> str:
    return _shipped(revision) if corpora is None else corpus_hash(_corpus(revision, corpora))


def _corpus(revision: Revision, corpora: Path | None) -> VersionCorpus:
    corpus = corpus_of(revision, corpora)
    if corpus is None:
        raise UsageError(f"there is no corpus for {revision.label}")
    return corpus


def corpus_hash(corpus: VersionCorpus) -> str:
    """Over everything in a corpus that can move a verdict or a grade.

    Neither the order of keys nor that of the rules or of what they expect counts; nor do the words
    that only explain. What is code (rules over sessions, how probes are run) is told apart by the
    version of the tool.
    """
    parts = {
        "rules": {name: _of_rule(rule) for name, rule in corpus.rules.items()},
        "grading": _of_grading(),
    }
    return hashlib.sha256(_canonical(parts).encode()).hexdigest()[:DIGITS]


def _of_rule(rule: CorpusRule) -> dict[str, Any]:
    entry = rule.entry
    return {
        "section": rule.section,
        "severity": rule.severity.value if rule.severity is not None else None,
        "transports": sorted(entry.transports) if entry is not None else [],
        "row": _of_row(rule.row) if rule.row is not None else None,
        "session": _of_session(rule.session) if rule.session is not None else None,
    }


def _of_row(row: Row) -> dict[str, Any]:
    expect, when = (
        [{"target": one.target, "matcher": one.matcher} for one in found]
        for found in (row.expect, [one.expectation for one in row.when])
    )
    probe = PROBES.get(row.check.probe)
    return {
        "check": msgspec.to_builtins(row.check),
        "steps": [msgspec.to_builtins(step) for step in probe.steps] if probe is not None else [],
        "expect": sorted(map(_canonical, expect)),
        "when": sorted(map(_canonical, when)),
        "needs": msgspec.to_builtins(row.needs),
    }


def _of_session(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.id,
        "title": rule.title,
        "side": rule.side.value,
        "window": str(rule.window),
        "transports": sorted(rule.transports),
        "methods": sorted(rule.methods),
        "answers_to": sorted(rule.answers_to),
        "sender": rule.sender,
    }


def _of_grading() -> dict[str, Any]:
    return {
        "weights": {severity.value: weight for severity, weight in grading.WEIGHTS.items()},
        "cut_offs": grading.CUT_OFFS,
        "broken_musts": {str(least): cap for least, cap in grading.CAP_BY_BROKEN_MUSTS.items()},
        "caps": [grading.CAP_UNJUDGED, grading.CAP_HALF_SEEN, grading.SEEN_FOR_BEST],
        "letter": [
            grading.RULES_FOR_A_LETTER,
            grading.MUSTS_FOR_A_LETTER,
            grading.SHARE_FOR_A_LETTER,
            grading.UNJUDGED_FOR_A_LETTER,
        ],
        "basic": sorted(grading.BASIC),
    }


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, default=dict)
