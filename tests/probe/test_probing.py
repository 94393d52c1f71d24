"""Taking the steps of probes: what is put in, what is left out, and what is never waited for."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from mcptest.core.capture import Frame
from mcptest.core.errors import ErrorKind, PeerError
from mcptest.core.masking import Masker
from mcptest.core.message import ABSENT
from mcptest.core.revision import Revision
from mcptest.probe.compliance.conversation import Asked, Started
from mcptest.probe.compliance.course import Course, Taken, Unobserved
from mcptest.probe.compliance.probing import (
    _ACTIONS,
    Probed,
    _input,
    _places,
    _tampered,
    _walk,
    _with_value,
    settle,
    take,
    with_other_arguments,
)
from mcptest.probe.compliance.site import Waits
from mcptest.rules.corpus.probes import PLAIN, Probe, ProbeStep, StepOptions, all_probes
from mcptest.session.connection import Pending
from mcptest.suite.model import Expectation
from mcptest.suite.observed import SeenExchange
from mcptest.suite.sent_message import SentCheck


def course(probe: Probe | None = None, **site: Any) -> Course:
    known = {"known": {}, "capabilities": {}, "revision": Revision.V2026_07_28, **site}
    return Course(probe or Probe("p", "", ()), cast("Any", SimpleNamespace(**known)))


def call_tool(name: str, tool: str, options: StepOptions = PLAIN) -> ProbeStep:
    check = SentCheck(method="tools/call", params={"name": tool, "arguments": {}})
    return ProbeStep(name, "request", check, options)


# -- what is put in


def test_what_is_known_is_put_into_every_part_of_a_check() -> None:
    check = SentCheck(
        method="{alive_method}", params={"a": ["{first_resource}"]}, headers={"X": "{revision}"}
    )
    known = {"alive_method": "ping", "first_resource": "a://b", "revision": "2025-11-25"}
    filled = course(known=known).filled(check)
    assert filled.method == "ping"
    assert filled.params == {"a": ["a://b"]}
    assert filled.headers == {"X": "2025-11-25"}


def test_what_is_not_known_leaves_it_unobserved_and_says_what_would_help() -> None:
    with pytest.raises(Unobserved) as nothing:
        course().filled(call_tool("call", "{slow_tool}").send)
    assert nothing.value.unlocked_by == "the fixture slow_tool"


def test_what_a_probe_learned_itself_counts_before_what_was_known() -> None:
    taken = course(known={"page_cursor": "of another connection"})
    taken.learned["page_cursor"] = "ours"
    assert taken.filled(SentCheck(raw="{page_cursor}")).raw == "ours"


# -- what is left out


def test_an_optional_step_is_left_out_where_something_is_missing() -> None:
    step = call_tool("call", "{slow_tool}", StepOptions(optional=True))
    taken = course()
    take(taken, step)
    assert taken.taken == {}
    with pytest.raises(Unobserved):
        take(taken, call_tool("call", "{slow_tool}"))


def test_a_step_is_left_out_where_the_server_does_not_declare_what_it_needs() -> None:
    check = SentCheck(method="{unheard_of}")
    step = ProbeStep("list", "request", check, StepOptions(needs="tasks.list"))
    take(course(), step)
    take(course(capabilities={"tasks": {"list": False}}), step)
    with pytest.raises(Unobserved):
        take(course(capabilities={"tasks": {"list": {}}}), step)


def test_there_is_an_action_for_every_step() -> None:
    assert {step.action for probe in all_probes().values() for step in probe.steps} == set(_ACTIONS)


def test_steps_speak_of_steps_that_were_taken_before() -> None:
    for probe in all_probes().values():
        before: set[str] = set()
        for step in probe.steps:
            assert not step.options.of or step.options.of in before, (probe.name, step.name)
            before.add(step.name)


# -- input


ASKED = {"inputRequests": {"q": {"method": "roots/list"}}, "requestState": "abcdef"}


def test_answers_are_given_as_the_step_wants_them() -> None:
    def given(**options: Any) -> Any:
        return _input(StepOptions(**options), ASKED, ("roots",))

    whole = given(answers="all")
    assert list(whole["inputResponses"]) == ["q"]
    assert "roots" in whole["inputResponses"]["q"]
    assert whole["requestState"] == "abcdef"
    assert given(answers="none")["inputResponses"] == {}
    assert len(given(answers="with_extra")["inputResponses"]) == 2
    assert not isinstance(given(answers="malformed")["inputResponses"], dict)
    assert given(answers="all", tampered=True)["requestState"] != "abcdef"


def test_a_state_that_is_not_there_can_not_be_tampered_with() -> None:
    with pytest.raises(Unobserved):
        _input(StepOptions(tampered=True), {"inputRequests": {}}, ())


@pytest.mark.parametrize("state", ["a", "AAAA", "0.abc", "é" * 9])
def test_a_tampered_state_differs_in_one_character(state: str) -> None:
    other = _tampered(state)
    assert len(other) == len(state)
    assert sum(one != two for one, two in zip(state, other, strict=True)) == 1


def test_what_we_can_not_answer_a_user_would_have_closed() -> None:
    strange = {"inputRequests": {"a": 7, "b": {"method": "unheard/of"}}}
    answers = _input(StepOptions(), strange, ())["inputResponses"]
    assert answers == {"a": {"action": "cancel"}, "b": {"action": "cancel"}}


def test_other_arguments_are_such_as_the_tool_has() -> None:
    check = SentCheck(method="tools/call", params={"name": "t", "arguments": {"x": 1}})
    schema = {"properties": {"kind": {"type": "string", "enum": ["a"]}, "note": {"type": "string"}}}
    taken = course()
    taken.taken["lists"] = Taken(lists={"tools/list": [{"name": "t", "inputSchema": schema}]})
    changed = with_other_arguments(taken, check)
    assert changed.params == {"name": "t", "arguments": {"x": 1, "note": "mcptest"}}


def test_a_value_is_put_into_arguments_without_changing_the_given_ones() -> None:
    given = {"a": {"b": 1}, "c": 2}
    assert _with_value(given, ("a", "d"), 42) == {"a": {"b": 1, "d": 42}, "c": 2}
    assert _with_value(None, ("a", "b"), 42) == {"a": {"b": 42}}
    assert given == {"a": {"b": 1}, "c": 2}


# -- lists


class EndlessList:
    """A conversation with a server whose list never ends."""

    def __init__(self, page: Any) -> None:
        self.pages = 0
        self.site = SimpleNamespace(order=SimpleNamespace(timeout=60.0))
        self._page = page

    def finish(self, started: Any) -> Asked:
        return self.ask(started)

    def ask(self, check: Any) -> Asked:
        self.pages += 1
        return Asked(SeenExchange(result=self._page), b"", b"")


def test_a_list_without_an_end_is_not_read_for_ever() -> None:
    endless = EndlessList({"tools": [{"name": "again"}], "nextCursor": "again"})
    items, _ = _walk(cast("Any", endless), "tools/list", cast("Any", None))
    assert items is not None
    assert len(items) == 2, "the cursor came again"
    assert endless.pages == 2


@pytest.mark.parametrize(
    "page", [{}, {"tools": None}, {"tools": "x", "nextCursor": 7}, [], None, ABSENT]
)
def test_what_is_no_list_has_no_items(page: Any) -> None:
    items, _ = _walk(cast("Any", EndlessList(page)), "tools/list", cast("Any", None))
    assert items is None


class MuteConversation:
    """A conversation with a server that answers no call. Everything that is done is kept."""

    def __init__(self) -> None:
        self.cancelled: list[Any] = []
        self.tape = SimpleNamespace(records=[])

    def give_up(self, started: Started) -> None:
        for pending in started.waiting:
            pending.failure = PeerError(ErrorKind.CLOSED, "it was taken back")
            self.cancelled.append(pending)

    def pump(self, seconds: float, until: Any) -> bool:
        return bool(until())

    def finish(self, started: Started) -> Asked:
        assert started.done, "nothing may be waited for once more"
        return Asked(SeenExchange(), b"", b"")


def test_a_call_that_is_never_answered_is_taken_back() -> None:
    order = SimpleNamespace(timeout=30.0, startup=30.0, patience=2.0)
    waits = Waits(cast("Any", order))
    taken, conversation = course(order=order, waits=waits), MuteConversation()
    step = call_tool("call", "slow")
    pending = Pending(1, "tools/call", {})
    taken.under_way["call"] = Started(step.send, cast("Any", conversation), (pending,))
    assert taken.collect("call").exchange.answer == "none"
    assert conversation.cancelled == [pending]


def test_the_proof_of_an_answer_to_a_notification_holds_no_secret() -> None:
    step = ProbeStep("told", "notification", SentCheck(method="notifications/initialized"))
    taken = course(Probe("p", "", (step,)), masker=Masker(["hush-hush-77"]))
    answer = b'{"jsonrpc":"2.0","error":{"code":-32600,"message":"hush-hush-77"}}'
    records = [
        Frame(sender="client", raw=b'{"jsonrpc":"2.0","method":"notifications/initialized"}'),
        Frame(sender="server", raw=answer),
    ]
    seen = SeenExchange()
    taken.evidence.append(Asked(seen, records[0].raw, b""))
    taken.taken["told"] = Taken(exchange=seen, records=records)
    settle(taken)
    assert taken.taken["told"].exchange.answer == "error"
    assert taken.evidence[0].received == answer.replace(b"hush-hush-77", b"***")


# -- metadata


def test_the_document_that_a_challenge_names_is_looked_for_there_only() -> None:
    assert list(_places("http://a:1/mcp", "http://a:1/doc")) == ["http://a:1/doc"]
    assert list(_places("http://a:1/mcp", "/doc")) == ["http://a:1/doc"]


def test_without_a_name_the_well_known_places_are_tried() -> None:
    assert list(_places("http://a:1/mcp", "")) == [
        "http://a:1/.well-known/oauth-protected-resource/mcp",
        "http://a:1/.well-known/oauth-protected-resource",
    ]
    assert len(list(_places("http://a:1/", ""))) == 1


@pytest.mark.parametrize(
    "named", ["http://other:1/doc", "https://a:1/doc", "//other/doc", "file:///etc"]
)
def test_another_server_is_never_asked(named: str) -> None:
    with pytest.raises(Unobserved):
        list(_places("http://a:1/mcp", named))


# -- what could not be seen


def test_a_rule_is_unobserved_when_one_of_its_facts_or_steps_is() -> None:
    probed = Probed(
        SeenExchange(steps={"ask": SeenExchange()}, facts={"seen": True}),
        (),
        {"unseen": Unobserved("why", "how")},
    )

    def why(*targets: str) -> Unobserved | None:
        return probed.why_unobserved([Expectation(one, {"exact": True}) for one in targets])

    assert why("probe.seen", "steps.ask.answer") is None
    nothing = why("probe.seen", "probe.unseen")
    assert nothing is not None
    assert (nothing.reason, nothing.unlocked_by) == ("why", "how")
    missing = why("steps.later.error.code")
    assert missing is not None
    assert "later" in missing.reason


def test_a_retry_repeats_a_step_by_name() -> None:
    for probe in all_probes().values():
        names = probe.step_names
        assert all(
            step.options.of in names
            for step in probe.steps
            if step.action in {"retry", "collect", "poll", "fetch_metadata"}
        )


def test_a_rude_probe_is_known_by_its_steps() -> None:
    assert all_probes()["garbage_line"].is_rude
    assert not all_probes()["list_tools_twice"].is_rude
    assert Probe("p", "", (ProbeStep("a", "cancel", options=StepOptions(rude=True)),)).is_rude
