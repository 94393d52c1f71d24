"""Which rules can be asked, what they then send, and on which connection."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from mcptest.model.errors import UsageError
from mcptest.model.revision import Revision
from mcptest.model.verdict import Outcome, Side
from mcptest.rules.corpus.registry import Entry
from mcptest.rules.corpus.rows import CorpusRule, Needs, Row
from mcptest.rules.corpus.version_corpus import VersionCorpus, corpus_of
from mcptest.run.compliance.order import Order
from mcptest.run.compliance.planning import Question, Unasked, question_of, rules_to_judge
from mcptest.run.compliance.rows import Job, Lane, jobs_of, lane_of
from mcptest.run.compliance.site import Site
from mcptest.suite.check_forms import Check, HttpRequest
from mcptest.suite.exchange_targets import Expectation
from mcptest.transport.target import DEMO

ANSWERED = (Expectation("answer", {"exact": "result"}),)


def site(
    known: Mapping[str, Any] | None = None, transport: str = "stdio", **capabilities: Any
) -> Site:
    made = Site(Order(target=DEMO, revision=Revision.V2025_11_25))
    made.transport = transport
    made.known = known or {}
    made.capabilities = capabilities
    return made


def rule(check: Check, expect: Any = ANSWERED, **needs: Any) -> CorpusRule:
    row = Row("TEST-001", check, expect, Needs(**needs))
    return CorpusRule("TEST-001", row, Entry("TEST-001", section="tests"))


def refused(one: CorpusRule, where: Site) -> Unasked:
    found = question_of(one, where)
    assert isinstance(found, Unasked)
    return found


VERSION = "io.modelcontextprotocol/protocolVersion"
PING = Check(method="ping")


@pytest.mark.parametrize(
    ("needs", "reason"),
    [
        ({"capability": ("prompts",)}, "does not declare prompts"),
        ({"capability": ("resources.subscribe",)}, "does not declare resources.subscribe"),
        ({"undeclared": ("tools",)}, "declares tools"),
        ({"transport": ("http",)}, "is about http; the server was reached over stdio"),
        ({"session": True}, "no session id"),
        ({"authorization": True}, "does not ask for a token"),
        ({"extension": "io.example/x"}, "the extension io.example/x"),
    ],
)
def test_a_rule_about_what_is_not_there_does_not_apply(needs: Any, reason: str) -> None:
    found = refused(rule(PING, **needs), site(tools={}, resources={"subscribe": False}))
    assert found.outcome is Outcome.NOT_APPLICABLE
    assert reason in found.reason


def test_a_rule_about_what_is_declared_is_asked() -> None:
    where = site(tools={}, resources={"subscribe": True}, extensions={"io.example/x": {}})
    needs = {
        "capability": ("tools", "resources.subscribe"),
        "undeclared": ("prompts",),
        "extension": "io.example/x",
    }
    assert isinstance(question_of(rule(PING, **needs), where), Question)


def test_a_fixture_that_is_missing_would_unlock_the_rule() -> None:
    found = refused(rule(PING, fixture="slow_tool"), site())
    assert found.outcome is Outcome.NOT_OBSERVED
    assert found.unlocked_by == "the fixture slow_tool"


def test_a_value_that_is_missing_would_unlock_the_rule() -> None:
    check = Check(method="resources/read", params={"uri": "{first_resource}"})
    found = refused(rule(check), site())
    assert found.outcome is Outcome.NOT_OBSERVED
    assert found.unlocked_by == "a listed resource"


def test_placeholders_are_filled_in_on_both_sides() -> None:
    check = Check(method="{alive_method}", params={"a": ["{safe_arguments}"]})
    expect = (
        Expectation("result.a", {"exact": "{revision}"}),
        Expectation("result.b", {"regex": "^{alive_method}{2}$"}),
    )
    known = {"alive_method": "ping", "safe_arguments": {"x": 1}, "revision": "2025-11-25"}
    found = question_of(rule(check, expect), site(known))
    assert isinstance(found, Question)
    assert found.check == Check(method="ping", params={"a": [{"x": 1}]})
    assert found.expect[0].matcher == {"exact": "2025-11-25"}
    assert found.expect[1].matcher == {"regex": "^{alive_method}{2}$"}


def test_a_rule_about_one_listed_tool_looks_at_the_page_of_that_tool() -> None:
    where = site({"dialect_tool": "odd"})
    where.page_of_tool = {"odd": "page two"}
    found = question_of(rule(Check(method="tools/list"), fixture="dialect_tool"), where)
    assert isinstance(found, Question)
    assert found.check.params == {"cursor": "page two"}


# -- which rules ---------------------------------------------------------------------------------


def test_rules_about_clients_are_left_out() -> None:
    corpus = corpus_of(Revision.V2025_11_25)
    assert corpus is not None
    rules = rules_to_judge(corpus, ())
    assert not [one.id for one in rules if one.session and one.session.side is Side.CLIENT]
    about_client = CorpusRule(
        "X-001", Row("X-001", PING, ANSWERED), Entry("X-001", side=Side.CLIENT)
    )
    assert rules_to_judge(VersionCorpus("v2025-11-25", {"X-001": about_client}), ()) == ()


def test_wanted_rules_come_once_and_unknown_ones_are_an_error() -> None:
    corpus = corpus_of(Revision.V2025_11_25)
    assert corpus is not None
    assert [one.id for one in rules_to_judge(corpus, ("TOOLS-005", "TOOLS-005"))] == ["TOOLS-005"]
    with pytest.raises(UsageError, match="no rule TOOLS-999"):
        rules_to_judge(corpus, ("TOOLS-999",))


# -- where they are asked ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("check", "target", "lane"),
    [
        (PING, "result", Lane.PLAIN),
        (PING, "asked[*].method", Lane.ALONE),
        (PING, "notifications", Lane.ALONE),
        (PING, "transport_observation", Lane.LAST),
        (Check(method="tools/call", declare=("roots",)), "result", Lane.ALONE),
        (Check(method="ping", headers={"Origin": "x"}), "http.status", Lane.ODD),
        (Check(method="ping", omit=("_meta",)), "error.code", Lane.SPOILING),
        (Check(method="ping", meta={VERSION: None}), "error.code", Lane.SPOILING),
        (Check(method="ping", meta={VERSION: "1999-01-01"}), "error.code", Lane.ODD),
        (Check(method="initialize"), "result", Lane.FIRST),
        (Check(raw="{"), "error.code", Lane.RUDE),
        (Check(http=HttpRequest("GET")), "http.status", Lane.RUDE),
    ],
)
def test_each_check_has_its_lane(check: Check, target: str, lane: Lane) -> None:
    question = Question("A", check, (Expectation(target, {}),))
    assert lane_of(question, Revision.V2026_07_28) is lane


def test_only_a_server_of_the_stateless_era_can_be_moved_to_the_other() -> None:
    question = Question("A", Check(method="ping", omit=("_meta",)), ANSWERED)
    assert lane_of(question, Revision.V2025_11_25) is Lane.ODD


def test_the_same_check_is_asked_once() -> None:
    def question(name: str, method: str) -> Question:
        return Question(name, Check(method=method), ANSWERED)

    jobs = jobs_of(
        [question("A", "x"), question("B", "x"), question("C", "y")], Revision.V2025_11_25
    )
    assert jobs["A"] is jobs["B"]
    assert isinstance(jobs["C"], Job)
    assert jobs["C"] is not jobs["A"]
