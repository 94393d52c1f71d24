"""What a rule of a corpus may look at, and what it finds there."""

from __future__ import annotations

from typing import Any

import pytest

from mcptest.core.message import ABSENT
from mcptest.rules.corpus.registry import CorpusRule, Row, expectations_in_words, in_words
from mcptest.suite.model import Expectation
from mcptest.suite.observed import (
    SeenExchange,
    exchange_target_problem,
    judge_exchange,
    resolve_exchange,
)
from mcptest.suite.sent_message import SentCheck

SEEN = SeenExchange(
    result={"tools": [{"name": "add"}, {"name": "sub"}], "nothing": None},
    http={"status": 200, "headers": {"content-type": "application/json"}, "body": "{}"},
    notifications=({"method": "notifications/message", "params": {"level": "info"}},),
    asked=({"method": "roots/list", "params": {}},),
    transport={"transport": "http", "alive": True, "unusable": 0},
    steps={"second": SeenExchange(error={"code": -32602, "message": "no"})},
    facts={"differing": ["a"]},
)


@pytest.mark.parametrize(
    ("target", "value"),
    [
        ("answer", "result"),
        ("result.tools[0].name", "add"),
        ("result.tools[*].name", ["add", "sub"]),
        ("result.nothing", None),
        ("http.status", 200),
        ("http.header.content-type", "application/json"),
        ("http.body", "{}"),
        ("notifications[0].params.level", "info"),
        ("asked[*].method", ["roots/list"]),
        ("transport_observation.alive", True),
        ("steps.second.answer", "error"),
        ("steps.second.error.code", -32602),
        ("steps.second.exchange.answer", "error"),
        ("probe.differing", ["a"]),
        ("probe.differing[0]", "a"),
        ("exchange.answer", "result"),
        ("exchange.http.status", 200),
    ],
)
def test_a_target_finds_its_value(target: str, value: Any) -> None:
    assert exchange_target_problem(target, ["second"], ["differing"]) is None
    assert resolve_exchange(target, SEEN)[0] == value


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("error.code", "the server returned no error"),
        ("http.header.allow", "there is no header allow"),
        ("steps.second.result", "there is no result"),
        ("steps.second.http.status", "it was not sent over HTTP"),
    ],
)
def test_what_is_not_there_says_why(target: str, reason: str) -> None:
    assert resolve_exchange(target, SEEN) == (ABSENT, reason)


def test_a_step_or_fact_that_never_was_says_so() -> None:
    assert resolve_exchange("steps.other.answer", SEEN)[1] == "the step other did not run"
    assert resolve_exchange("probe.other", SEEN)[1] == "the probe did not find other"
    silent = SeenExchange()
    assert resolve_exchange("answer", silent) == ("none", "")
    assert resolve_exchange("transport_observation", silent)[0] is ABSENT
    assert "result" not in silent.whole


@pytest.mark.parametrize(
    ("target", "problem"),
    [
        ("anser", "did you mean answer?"),
        ("", "there are answer"),
        ("answer.code", "answer has no parts"),
        ("http", "http.status"),
        ("http.header.", "http.header.NAME"),
        ("http.header.Allow", "http.header.NAME"),
        ("result[", "result["),
        ("resultx", "unknown target"),
        ("steps.second", "does not name a part of the step"),
        ("steps.third.answer", "there are second"),
        ("steps.second.steps.second.answer", "the check has none"),
        ("probe", "is not a fact"),
        ("probe.differing[", "probe.differing["),
    ],
)
def test_a_target_that_can_not_be_looked_at_is_told_when_loaded(target: str, problem: str) -> None:
    found = exchange_target_problem(target, ["second"], ["differing"])
    assert found is not None
    assert problem in found


def test_all_expectations_that_fail_are_told() -> None:
    expect = (
        Expectation("answer", {"exact": "error"}),
        Expectation("result.tools", {"min_length": 1}),
        Expectation("error.code", {"exact": -32602}),
    )
    judged = judge_exchange(expect, SEEN)
    assert [failure.check for failure in judged.failures] == ["answer", "error.code"]
    assert judged.checked == 3
    assert "the server returned no error" in judged.failures[1].message
    assert judged.failures[1].actual is None


def test_nothing_expected_is_not_a_pass() -> None:
    assert not judge_exchange((), SEEN).passed


@pytest.mark.parametrize(
    ("matcher", "words"),
    [
        ({"exact": -32602}, "error.code is -32602"),
        ({"one_of": [1, 2]}, "error.code is one of [1,2]"),
        ({"exists": False}, "error.code is absent"),
        ({"exists": True}, "error.code is present"),
        ({"max_length": 0}, "error.code is empty"),
        ({"max_length": 2}, "error.code has a length of at most 2"),
        ({"not_empty": True}, "error.code is not empty"),
        ({"type": "array"}, "error.code has type array"),
        ({"minimum": 400}, "error.code is at least 400"),
        ({"regex": "a\nb"}, 'error.code matches "a\\nb"'),
    ],
)
def test_an_expectation_reads_as_a_sentence(matcher: dict[str, Any], words: str) -> None:
    assert in_words(Expectation("error.code", matcher)) == words


def test_a_row_may_say_it_in_its_own_words() -> None:
    row = Row("AAA-001", SentCheck(method="ping"), (Expectation("answer", {"exact": "result"}),))
    assert list(expectations_in_words(CorpusRule("AAA-001", row))) == ['answer is "result"']
    said = Row("AAA-001", row.check, row.expect, says="it is answered")
    assert list(expectations_in_words(CorpusRule("AAA-001", said))) == ["it is answered"]
    assert list(expectations_in_words(None)) == []


def test_a_check_says_what_it_sends() -> None:
    from mcptest.suite.sent_message import SentHttpRequest

    assert SentCheck(method="ping").said == "ping"
    assert SentCheck(raw="{").said == "the text {"
    assert SentCheck(probe="cursor_twice").said == "probe cursor_twice"
    assert SentCheck(http=SentHttpRequest("GET")).said == "HTTP GET"
    assert [SentCheck(method="x").kind, SentCheck(http=SentHttpRequest("GET")).kind] == [
        "method",
        "http",
    ]
