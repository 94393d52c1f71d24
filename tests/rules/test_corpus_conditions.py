"""`when:` in rows: where nothing can be expected, nothing is judged, and the reason is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mcptest.core.revision import Revision
from mcptest.core.verdict import Outcome
from mcptest.probe.compliance.conversation import Asked
from mcptest.probe.compliance.course import ProbeSeen, Taken
from mcptest.probe.compliance.observed_facts import is_beyond_counter_offer
from mcptest.probe.compliance.questions import CheckLane, Unasked, lane_of, question_of
from mcptest.probe.compliance.rule_results import Results
from mcptest.probe.compliance.site import Order, Site
from mcptest.rules.corpus.reader import VersionCorpus, corpus_of
from mcptest.rules.corpus.registry import Condition, CorpusRule, Needs, RegistryEntry, Row, unmet
from mcptest.rules.grading import corpus_hash
from mcptest.suite.model import Expectation
from mcptest.suite.observed import SeenExchange, judge_exchange
from mcptest.suite.reading import SuiteError, SuiteProblem
from mcptest.suite.sent_message import SentCheck
from mcptest.transport.target import DEMO

PING = SentCheck(method="ping")
SHIPPED = {one: corpus_of(one) for one in (Revision.V2025_11_25, Revision.V2026_07_28)}

ROW = """\
- rule_id: AAA-001
  check: ping
  when:
    - {condition}
  expect:
    - {{target: answer, matcher: {{exact: result}}}}
"""


def load(folder: Path, condition: str) -> VersionCorpus:
    path = folder / "v2024-11-05"
    path.mkdir()
    (path / "rules.yml").write_text(ROW.format(condition=condition))
    return VersionCorpus.load_dir(path.name, path)


def only_problem(folder: Path, condition: str) -> SuiteProblem:
    with pytest.raises(SuiteError) as caught:
        load(folder, condition)
    [problem] = caught.value.problems
    return problem


def shipped(name: str, revision: Revision = Revision.V2025_11_25) -> Row:
    corpus = SHIPPED[revision]
    assert corpus is not None
    row = corpus.rules[name].row
    assert row is not None
    return row


# -- loading -----------------------------------------------------------------------------------


def test_a_condition_is_a_target_a_matcher_and_words(tmp_path: Path) -> None:
    words = "{target: answer, matcher: {not_exact: error}, otherwise: the tool  failed}"
    row = load(tmp_path, words).rules["AAA-001"].row
    assert row is not None
    expectation = Expectation("answer", {"not_exact": "error"})
    assert row.when == (Condition(expectation, "the tool failed"),)


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("{target: answer, matcher: {exact: error}}", "otherwise"),
        ("{target: anwser, matcher: {exact: error}, otherwise: no}", "did you mean answer"),
        ("{target: answer, matcher: {exakt: error}, otherwise: no}", "did you mean exact"),
        ('{target: answer, matcher: {exact: "{nothing}"}, otherwise: no}', "unknown placeholder"),
    ],
)
def test_a_condition_that_can_not_be_used_is_told_with_its_place(
    tmp_path: Path, condition: str, message: str
) -> None:
    problem = only_problem(tmp_path, condition)
    assert message in f"{problem.message} {problem.hint}"
    assert problem.place.line > 0


def test_a_condition_moves_the_profile(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    form = "{{target: answer, matcher: {{not_exact: {}}}, otherwise: no}}"
    one = load(tmp_path / "one", form.format("error"))
    two = load(tmp_path / "two", form.format("none"))
    assert corpus_hash(one) != corpus_hash(two)


# -- judging -----------------------------------------------------------------------------------


WORKED = Condition(Expectation("result.isError", {"exists": False}), "the tool failed")


def judged(exchange: SeenExchange, *proof: Asked) -> Any:
    rule = CorpusRule("TEST-001", None, RegistryEntry("TEST-001", section="tests"))
    question = Row("TEST-001", PING, (Expectation("result.x", {"exact": 1}),), when=(WORKED,))
    site = Site(Order(target=DEMO, revision=Revision.V2025_11_25))
    return Results(site).exchanged(rule, question, exchange, proof)


def test_where_a_condition_does_not_hold_the_rule_was_not_observed() -> None:
    result = judged(SeenExchange(result={"isError": True}))
    assert result.outcome is Outcome.NOT_OBSERVED
    assert result.reason == "the tool failed"
    assert result.observed == 0


@pytest.mark.parametrize(("x", "outcome"), [(1, Outcome.PASS), (2, Outcome.FAIL)])
def test_where_it_holds_the_rule_is_judged(x: int, outcome: Outcome) -> None:
    assert judged(SeenExchange(result={"x": x})).outcome is outcome


def test_what_could_not_be_sent_was_not_answered_wrongly() -> None:
    """As to a server that serves one connection at a time, while another one is open."""
    nothing = SeenExchange()
    assert judged(nothing, Asked(nothing, b"ping", b"")).outcome is Outcome.FAIL
    result = judged(nothing, Asked(nothing, b"", b"", unsent="no connection within 5 s"))
    assert result.outcome is Outcome.INCONCLUSIVE
    assert result.reason == "a request could not be sent: no connection within 5 s"


def test_what_a_condition_looks_at_decides_on_the_connection_too() -> None:
    asked = Condition(Expectation("asked[*].method", {"contains": "roots/list"}), "no")
    answered = (Expectation("answer", {"exact": "result"}),)
    assert lane_of(Row("A", PING, answered), Revision.V2025_11_25) is CheckLane.PLAIN
    assert lane_of(Row("A", PING, answered, when=(asked,)), Revision.V2025_11_25) is CheckLane.ALONE


def test_one_of_several_capabilities_is_enough() -> None:
    needs = Needs(any_capability=("tools.listChanged", "resources.subscribe"))
    row = Row("TEST-001", PING, (Expectation("answer", {"exact": "result"}),), needs)
    rule = CorpusRule("TEST-001", row, RegistryEntry("TEST-001", section="tests"))
    site = Site(Order(target=DEMO, revision=Revision.V2025_11_25))
    site.capabilities = {"tools": {"listChanged": False}}
    refused = question_of(rule, site)
    assert isinstance(refused, Unasked)
    assert refused.outcome is Outcome.NOT_APPLICABLE
    assert "declares none of tools.listChanged, resources.subscribe" in refused.reason
    site.capabilities = {"resources": {"subscribe": True}}
    assert isinstance(question_of(rule, site), Row)


# -- what conforming servers do, and what the shipped rows make of it --------------------------


def error(code: int) -> SeenExchange:
    return SeenExchange(error={"code": code, "message": "no"})


@pytest.mark.parametrize(
    ("name", "exchange", "reason"),
    [
        (
            "TOOLS-004",
            SeenExchange(result={"isError": True, "content": []}),
            "answered with an error",
        ),
        ("TOOLS-004", error(-32602), "answered with an error"),
        ("TOOLS-005", error(-32603), "backend is unavailable"),
        ("TOOLS-011", SeenExchange(result={"tools": [{"name": "x"}]}), "no listed tool"),
        ("TOOLS-011", SeenExchange(result={"tools": None}), "no listed tool"),
        ("PROMPT-110", error(-32602), "generated arguments"),
        ("RES-102", SeenExchange(result={"contents": [{"uri": "x", "text": ""}]}), "generated URI"),
        ("RES-106", SeenExchange(result={"resources": []}), "lists no resources"),
        ("RES-106", SeenExchange(result={"resources": None}), "lists no resources"),
        ("RES-107", SeenExchange(result={"resources": [{"uri": "a:b"}]}), "has annotations"),
        ("RES-107", SeenExchange(result={"resources": None}), "has annotations"),
        ("RES-108", error(-32603), "right now"),
        ("RESTPL-001", SeenExchange(result={"resourceTemplates": []}), "lists no templates"),
        ("RESTPL-001", SeenExchange(result={"resourceTemplates": None}), "lists no templates"),
        ("RESTPL-002", error(-32601), "lists no templates"),
        ("COMPL-006", error(-32602), "no completion"),
        ("ELICIT-004", SeenExchange(result={}), "did not elicit"),
        ("SAMPLE-003", SeenExchange(result={}), "did not sample"),
    ],
)
def test_a_conforming_server_that_shows_nothing_is_not_judged(
    name: str, exchange: SeenExchange, reason: str
) -> None:
    missing = unmet(shipped(name).when, exchange)
    assert missing is not None
    assert reason in missing.otherwise


@pytest.mark.parametrize(
    ("name", "exchange"),
    [
        ("TOOLS-004", SeenExchange(result={"content": []})),
        ("TOOLS-005", error(-32601)),
        ("TOOLS-005", SeenExchange(error={"code": -32603, "message": "Unknown tool: x"})),
        ("TOOLS-005", SeenExchange(result={"content": [], "isError": True})),
        ("PROMPT-110", error(-32601)),
        ("RES-102", SeenExchange(result={"contents": []})),
        ("RES-102", SeenExchange(result={"contents": None})),
        ("RES-106", SeenExchange(result={"resources": [{"uri": "no scheme"}]})),
        ("RES-108", error(-32601)),
        ("RESTPL-001", SeenExchange(result={"resourceTemplates": [{"name": "x"}]})),
        ("TOOLS-011", SeenExchange(result={"tools": [{"annotations": {"readOnlyHint": "yes"}}]})),
    ],
)
def test_one_that_shows_a_violation_is_still_judged(name: str, exchange: SeenExchange) -> None:
    row = shipped(name)
    assert unmet(row.when, exchange) is None
    assert not judge_exchange(row.expect, exchange).passed


# -- rows whose alternatives were wrong once ---------------------------------------------------


def http(status: int, **more: Any) -> SeenExchange:
    return SeenExchange(http={"status": status, "headers": {}, "body": ""}, **more)


@pytest.mark.parametrize(
    ("rule", "right", "wrong"), [("JSONRPC-002", -32700, -32600), ("JSONRPC-003", -32600, -32700)]
)
def test_what_is_no_request_is_an_error_or_refused_by_http(
    rule: str, right: int, wrong: int
) -> None:
    def holds(exchange: SeenExchange) -> bool:
        return judge_exchange(shipped(rule).expect, exchange).passed

    assert holds(error(right))
    assert not holds(error(wrong))
    assert holds(http(400))
    for code in (right, wrong):
        assert holds(http(400, error={"code": code, "message": "no"}))
    assert not holds(http(200, error={"code": wrong, "message": "no"}))
    assert not holds(http(202))
    assert not holds(http(200, result={}))
    assert not holds(SeenExchange())


@pytest.mark.parametrize(
    ("transport", "status", "holds"),
    [("http", 403, True), ("http", 400, False), ("sse", 400, True), ("sse", 202, False)],
)
def test_a_foreign_origin_is_403_where_the_revision_speaks_of_the_transport(
    transport: str, status: int, holds: bool
) -> None:
    seen = http(status, transport={"transport": transport})
    assert judge_exchange(shipped("HTTP-101").expect, seen).passed is holds


# -- offers ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answered", "version", "is_offered"),
    [
        ("2025-11-25", "2025-11-25", False),
        ("2025-06-18", "2025-11-25", True),
        ("2025-06-18", "2025-03-26", False),
        ("1999-01-01", "2024-11-05", True),
        (None, "2024-11-05", True),
    ],
)
def test_only_versions_that_could_show_something_are_offered(
    answered: str | None, version: str, is_offered: bool
) -> None:
    taken = Taken(exchange=SeenExchange(result={"protocolVersion": answered}))
    seen = ProbeSeen(taken={"unknown": taken})
    assert is_beyond_counter_offer(version, seen) is is_offered
