"""Judging a session while it goes on: the same findings as afterwards, each told once."""

from __future__ import annotations

import gc

import pytest

from mcptest.core.message import Message
from mcptest.core.verdict import Finding, Severity, Side
from mcptest.rules.catalogue import all_rules
from mcptest.rules.declaration import Check, Rule, Watching
from mcptest.rules.judge import OngoingJudge, RuleTable, judge
from mcptest.wire.capture_forms import SessionSource
from mcptest.wire.envelope import decode
from tests.rules.captures import answer, ask, full, handshake
from tests.rules.pairs import PAIRS

TABLE = RuleTable(all_rules())
"""One for all sessions, whatever they speak."""


def told_on_the_way(source: SessionSource) -> dict[str, list[Finding]]:
    ongoing = OngoingJudge(source, TABLE)
    told: dict[str, list[Finding]] = {}
    for one in source.records:
        ongoing.feed([one])
        for rule, finding in ongoing.broken_since():
            told.setdefault(rule.id, []).append(finding)
    assert ongoing.broken_since() == []
    ongoing.finish()
    for rule, finding in ongoing.broken_since():
        told.setdefault(rule.id, []).append(finding)
    return told


@pytest.mark.parametrize("name", PAIRS)
def test_what_is_told_on_the_way_is_what_the_verdicts_say(name: str) -> None:
    for make in (PAIRS[name].violating, PAIRS[name].conforming):
        whole = judge(make(), TABLE)
        sure = {one.rule: list(one.findings) for one in whole.verdicts if one.findings}
        told = told_on_the_way(make())
        assert {rule: told[rule] for rule in sure} == sure


def test_a_table_that_served_other_sessions_changes_no_verdict() -> None:
    for name, pair in PAIRS.items():
        shared, own = judge(pair.violating(), TABLE), judge(pair.violating(), all_rules())
        assert shared.verdicts == own.verdicts, name
        assert shared.of_server == own.of_server, name


def test_findings_come_in_the_order_in_which_they_were_seen() -> None:
    source = PAIRS["MSG-007"].violating()
    ongoing = OngoingJudge(source, TABLE)
    ongoing.feed(source.records)
    places = [finding.record for _, finding in ongoing.broken_since()]
    assert places
    assert places == sorted(places, key=lambda place: -1 if place is None else place)


def test_of_a_large_list_that_was_judged_nothing_is_held_but_its_step() -> None:
    """A server may list megabytes again and again: two lists in memory would be one too many."""
    many = 30_011  # as no other list here has
    too_much = {"type": "object", "properties": {"one": {"const": ["part"] * many}}}
    tool = {"name": "echo", "inputSchema": {"$ref": "#/nowhere", **too_much}}
    tool["outputSchema"] = tool["inputSchema"]
    lists = ([ask(n, "tools/list"), answer(n, {"tools": [tool]})] for n in range(2, 6))
    source = full(handshake(server={"tools": {}}), *lists)
    alive: list[int] = []

    def read(raw: bytes) -> Message:
        alive.append(sum(type(one) is list and len(one) == many for one in gc.get_objects()))
        return decode(raw)

    judge_on_the_way = OngoingJudge(source, TABLE, read=read)
    judge_on_the_way.feed(source.records)
    assert len(alive) > 10
    assert max(alive) <= 1 + 2  # our own, and both schemas of the last list


def failing(check: Check) -> Watching:
    """Fails over the first step."""
    yield
    raise LookupError("lost")


def test_a_rule_that_fails_is_left_out_and_the_others_go_on() -> None:
    broken = Rule(
        id="BROKEN-001",
        title="always fails",
        category="test",
        severity=Severity.MUST,
        side=Side.BOTH,
        spec="basic",
        judging=failing,
    )
    source = PAIRS["MSG-007"].violating()
    whole = judge(source, [broken, *all_rules()])
    assert "LookupError: lost" in whole.verdicts[0].reason
    assert whole.verdicts[1:] == judge(PAIRS["MSG-007"].violating(), all_rules()).verdicts


def test_messages_that_were_read_before_are_not_read_again() -> None:
    known: dict[bytes, Message] = {}
    asked: list[bytes] = []

    def read(raw: bytes) -> Message:
        asked.append(raw)
        return known.setdefault(raw, decode(raw))

    source = full(handshake())
    ongoing = OngoingJudge(source, TABLE, read=read)
    ongoing.feed(source.records)
    assert asked == list(known)
    assert ongoing.session.messages == len(asked) > 0
