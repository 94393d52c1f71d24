"""Judging a live server: meet it, learn what it has, ask the corpus, judge what came."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import msgspec

from mcptest.model.compliance import Judgement
from mcptest.model.compliance_events import Event
from mcptest.model.errors import PeerError
from mcptest.model.revision import HANDSHAKE_REVISIONS, Era, Revision
from mcptest.model.verdict import Severity
from mcptest.peer.meeting import Met
from mcptest.rules.corpus.registry import Entry
from mcptest.rules.corpus.rows import CorpusRule, Row
from mcptest.rules.corpus.version_corpus import VersionCorpus
from mcptest.rules.known_sdks import with_known_behaviour
from mcptest.run.compliance.declared import EVERYTHING
from mcptest.run.compliance.judge_run import Judging
from mcptest.run.compliance.order import Order
from mcptest.run.compliance.planning import (
    rules_to_judge,
)
from mcptest.run.compliance.sessions import answers_of
from mcptest.run.compliance.site import Site
from mcptest.suite.compliance_block import ComplianceTest


def judge_server(order: Order, tell: Callable[[Event], None]) -> Judgement:
    """Judge one server by the corpus of one revision.

    Raises PeerError when it can't be reached or does not speak that revision, UsageError when
    there is no such corpus or rule.
    """
    return _judged(order, tell, lambda corpus: rules_to_judge(corpus, order.rules))


def run_tests(
    order: Order, tests: Sequence[ComplianceTest], tell: Callable[[Event], None]
) -> Judgement:
    """The tests of a suite's block: rules of the corpus by their ids, others by their own check."""

    def chosen(corpus: VersionCorpus) -> tuple[CorpusRule, ...]:
        named = [one.rule_id for one in tests if one.runs_corpus_rule]
        rules = {rule.id: rule for rule in rules_to_judge(corpus, named)} if named else {}
        return tuple(
            rules[one.rule_id] if one.runs_corpus_rule else _rule_of(one, corpus) for one in tests
        )

    judgement = _judged(order, tell, chosen)
    return msgspec.structs.replace(judgement, whole_corpus=False, grade=None)


def _rule_of(test: ComplianceTest, corpus: VersionCorpus) -> CorpusRule:
    """A test of a suite as a rule: its name is its id."""
    assert test.check is not None  # a suite with such a test is not sound
    revision = corpus.revision
    known = corpus.rules.get(test.rule_id)
    entry = known.entry if known is not None and known.entry is not None else None
    own = Entry(
        id=test.name,
        title=test.name,
        section="tests",
        severities={Revision.V2024_11_05: Severity.MUST},
    )
    row = Row(test.name, test.check, test.expect, place=test.place)
    return CorpusRule(test.name, row, entry or own, None, revision)


def newest_spoken(order: Order) -> Met:
    """What the server speaks when it is left to choose, and why; raises PeerError."""
    site = Site(msgspec.structs.replace(order, revision=None, captures=None))
    try:
        return site.meet().client.met
    finally:
        site.close()


def spoken_revisions(order: Order) -> tuple[Revision, ...]:
    """Every revision that the server agrees to speak, by asking; raises PeerError."""
    site = Site(msgspec.structs.replace(order, revision=None, captures=None))
    try:
        site.meet()
        stateless = site.revision.era is Era.STATELESS
        launched = []
        for revision in HANDSHAKE_REVISIONS:
            asking = Site(msgspec.structs.replace(order, revision=revision, captures=None))
            asking.transport = site.transport
            launched.append((asking, asking.launch(declare=EVERYTHING)))
        spoken, wordless = [], False
        for asking, conversation in launched:
            try:
                agreed = asking.ready(conversation).client.revision
            except PeerError:
                continue  # not this one
            finally:
                asking.close()
                wordless = wordless or asking.has_wordless_end
            if agreed is asking.revision:
                spoken.append(agreed)
    finally:
        site.close()
    if wordless:
        site.require_second_process()
    return (*spoken, Revision.V2026_07_28) if stateless else tuple(spoken)


def _judged(
    order: Order,
    tell: Callable[[Event], None],
    choose: Callable[[VersionCorpus], tuple[CorpusRule, ...]],
) -> Judgement:
    begun = time.monotonic()
    site = Site(order)
    try:
        judging = Judging(site, tell)
        judging.meet(choose)
        results = judging.results()
    finally:
        site.close()
    if site.has_wordless_end and not judging.interrupted:
        site.require_second_process()
    return with_known_behaviour(judging.judgement(results, begun), answers_of(site))
