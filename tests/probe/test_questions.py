"""Which rules can be asked, what they then send, and on which connection."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from mcptest.core.errors import UsageError
from mcptest.core.revision import Revision
from mcptest.core.verdict import Outcome, Side
from mcptest.probe.compliance.questions import (
    CheckLane,
    RowJob,
    Unasked,
    jobs_of,
    lane_of,
    question_of,
    rules_to_judge,
)
from mcptest.probe.compliance.site import Order, Site
from mcptest.rules.corpus.reader import VersionCorpus, corpus_of
from mcptest.rules.corpus.registry import CorpusRule, Needs, RegistryEntry, Row
from mcptest.suite.model import Expectation
from mcptest.suite.sent_message import SentCheck, SentHttpRequest
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


def rule(check: SentCheck, expect: Any = ANSWERED, **needs: Any) -> CorpusRule:
    row = Row("TEST-001", check, expect, Needs(**needs))
    return CorpusRule("TEST-001", row, RegistryEntry("TEST-001", section="tests"))


def refused(one: CorpusRule, where: Site) -> Unasked:
    found = question_of(one, where)
    assert isinstance(found, Unasked)
    return found


VERSION = "io.modelcontextprotocol/protocolVersion"
PING = SentCheck(method="ping")


@pytest.mark.parametrize(
    ("needs", "reason"),
    [
        ({"capability": ("prompts",)}, "does not declare prompts"),
        ({"capability": ("resources.subscribe",)}, "does not declare resources.subscribe"),
        ({"undeclared": ("tools",)}, "declares tools"),
        ({"transport": ("http",)}, "applies to http only, and the server uses stdio"),
        ({"session": True}, "no session id"),
        ({"authorization": True}, "does not require a token"),
        ({"extension": "io.example/x"}, "the extension io.example/x"),
    ],
)
def test_a_rule_about_what_is_not_there_does_not_apply(needs: Any, reason: str) -> None:
    found = refused(rule(PING, **needs), site(tools={}, resources={"subscribe": False}))
    assert found.outcome is Outcome.NOT_APPLICABLE
    assert reason in found.reason


def test_a_rule_about_servers_of_one_era_is_asked_of_these_alone() -> None:
    where = site()
    assert isinstance(question_of(rule(PING, single_era=True), where), Row)
    where.speaks_handshake = True
    found = refused(rule(PING, single_era=True), where)
    assert found.outcome is Outcome.NOT_APPLICABLE
    assert "also supports older revisions" in found.reason


def test_a_rule_about_what_is_declared_is_asked() -> None:
    where = site(tools={}, resources={"subscribe": True}, extensions={"io.example/x": {}})
    needs = {
        "capability": ("tools", "resources.subscribe"),
        "undeclared": ("prompts",),
        "extension": "io.example/x",
    }
    assert isinstance(question_of(rule(PING, **needs), where), Row)


def test_a_fixture_that_is_missing_would_unlock_the_rule() -> None:
    found = refused(rule(PING, fixture="slow_tool"), site())
    assert found.outcome is Outcome.NOT_OBSERVED
    assert found.unlocked_by == "the fixture slow_tool"


def test_a_value_that_is_missing_would_unlock_the_rule() -> None:
    check = SentCheck(method="resources/read", params={"uri": "{first_resource}"})
    found = refused(rule(check), site())
    assert found.outcome is Outcome.NOT_OBSERVED
    assert found.unlocked_by == "a listed resource"


def test_placeholders_are_filled_in_on_both_sides() -> None:
    check = SentCheck(method="{alive_method}", params={"a": ["{safe_arguments}"]})
    expect = (
        Expectation("result.a", {"exact": "{revision}"}),
        Expectation("result.b", {"regex": "^{alive_method}{2}$"}),
    )
    known = {"alive_method": "ping", "safe_arguments": {"x": 1}, "revision": "2025-11-25"}
    found = question_of(rule(check, expect), site(known))
    assert isinstance(found, Row)
    assert found.check == SentCheck(method="ping", params={"a": [{"x": 1}]})
    assert found.expect[0].matcher == {"exact": "2025-11-25"}
    assert found.expect[1].matcher == {"regex": "^{alive_method}{2}$"}


def test_a_rule_about_one_listed_tool_looks_at_the_page_of_that_tool() -> None:
    where = site({"dialect_tool": "odd"})
    where.page_of_tool = {"odd": "page two"}
    found = question_of(rule(SentCheck(method="tools/list"), fixture="dialect_tool"), where)
    assert isinstance(found, Row)
    assert found.check.params == {"cursor": "page two"}


# -- which rules ---------------------------------------------------------------------------------


def test_rules_about_clients_are_left_out() -> None:
    corpus = corpus_of(Revision.V2025_11_25)
    assert corpus is not None
    rules = rules_to_judge(corpus, ())
    assert not [one.id for one in rules if one.session and one.session.side is Side.CLIENT]
    about_client = CorpusRule(
        "X-001", Row("X-001", PING, ANSWERED), RegistryEntry("X-001", side=Side.CLIENT)
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
        (PING, "result", CheckLane.PLAIN),
        (PING, "asked[*].method", CheckLane.ALONE),
        (PING, "notifications", CheckLane.ALONE),
        (PING, "transport_observation", CheckLane.LAST),
        (SentCheck(method="tools/call", declare=("roots",)), "result", CheckLane.ALONE),
        (SentCheck(method="ping", headers={"Origin": "x"}), "http.status", CheckLane.ODD),
        (SentCheck(method="ping", omit=("_meta",)), "error.code", CheckLane.SPOILING),
        (SentCheck(method="ping", meta={VERSION: None}), "error.code", CheckLane.SPOILING),
        (SentCheck(method="ping", meta={VERSION: "1999-01-01"}), "error.code", CheckLane.ODD),
        (SentCheck(method="initialize"), "result", CheckLane.FIRST),
        (SentCheck(raw="{"), "error.code", CheckLane.RUDE),
        (SentCheck(http=SentHttpRequest("GET")), "http.status", CheckLane.RUDE),
    ],
)
def test_each_check_has_its_lane(check: SentCheck, target: str, lane: CheckLane) -> None:
    question = Row("A", check, (Expectation(target, {}),))
    assert lane_of(question, Revision.V2026_07_28) is lane


def test_only_a_server_of_the_stateless_era_can_be_moved_to_the_other() -> None:
    question = Row("A", SentCheck(method="ping", omit=("_meta",)), ANSWERED)
    assert lane_of(question, Revision.V2025_11_25) is CheckLane.ODD


def test_the_same_check_is_asked_once() -> None:
    def question(name: str, method: str) -> Row:
        return Row(name, SentCheck(method=method), ANSWERED)

    jobs = jobs_of(
        [question("A", "x"), question("B", "x"), question("C", "y")], Revision.V2025_11_25
    )
    assert jobs["A"] is jobs["B"]
    assert isinstance(jobs["C"], RowJob)
    assert jobs["C"] is not jobs["A"]
