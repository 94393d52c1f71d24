"""How a check becomes a message, and what a client then declares and answers."""

from __future__ import annotations

from typing import Any

import pytest

from mcptest.core.revision import Revision
from mcptest.probe.compliance.conversation import is_odd, outgoing
from mcptest.session.answers import Answers, answers_for, capabilities_of
from mcptest.session.client import Client
from mcptest.session.lifecycle import PREFIX, HandshakeLifecycle, StatelessLifecycle
from mcptest.suite.sent_message import SentCheck
from mcptest.transport.base import discard
from tests.support.memory import Memory

NEW, OLD = Revision.V2026_07_28, Revision.V2025_11_25
VERSION = PREFIX + "protocolVersion"
CAPABILITIES = PREFIX + "clientCapabilities"


def stateless() -> StatelessLifecycle:
    connection = Client(Memory(lambda _: (), sink=discard)).connection
    return StatelessLifecycle(connection, NEW, answers_for(()))


def handshake() -> HandshakeLifecycle:
    connection = Client(Memory(lambda _: (), sink=discard)).connection
    return HandshakeLifecycle(connection, OLD, answers_for(()))


def params(**check: Any) -> Any:
    return outgoing(SentCheck(method="tools/call", **check), stateless(), NEW)[0]


def test_a_plain_request_carries_what_its_era_wants() -> None:
    assert params()["_meta"][VERSION] == "2026-07-28"
    assert outgoing(SentCheck(method="ping"), handshake(), OLD)[0] is None


def test_a_member_of_meta_can_be_changed_or_left_out() -> None:
    assert params(meta={VERSION: "1999-01-01"})["_meta"][VERSION] == "1999-01-01"
    assert VERSION not in params(meta={VERSION: None})["_meta"]


def test_parts_of_a_request_can_be_left_out() -> None:
    assert params(omit=("_meta",)) == {}
    assert params(omit=("params",)) is None
    given = {"name": "a", "arguments": {}}
    assert "arguments" not in params(params=given, omit=("arguments",))


def test_without_a_handshake_every_request_declares_for_itself() -> None:
    assert params()["_meta"][CAPABILITIES] == {}
    declared = params(declare=("elicitation.url", "roots"))["_meta"][CAPABILITIES]
    assert declared == {"elicitation": {"url": {}}, "roots": {}}


def test_whoever_sends_initialize_has_no_headers_of_the_era_after_it() -> None:
    assert outgoing(SentCheck(method="initialize"), stateless(), NEW)[1] == {}


def test_a_header_of_null_is_not_sent() -> None:
    check = SentCheck(method="ping", headers={"Authorization": None, "Origin": "x"})
    assert outgoing(check, handshake(), OLD)[1] == {"Authorization": "", "Origin": "x"}


@pytest.mark.parametrize(
    "check",
    [
        SentCheck(method="a", omit=("_meta",)),
        SentCheck(method="a", meta={VERSION: "1999-01-01"}),
        SentCheck(method="a", meta={"anything": None}),
        SentCheck(method="a", headers={"Origin": "https://mcptest.invalid"}),
        SentCheck(method="a", headers={"Mcp-Param-City": None}),
    ],
)
def test_what_no_client_would_send_is_odd(check: SentCheck) -> None:
    assert is_odd(check)


@pytest.mark.parametrize(
    "check",
    [
        SentCheck(method="a"),
        SentCheck(method="a", meta={PREFIX + "logLevel": "error"}),
        SentCheck(method="a", headers={"Mcp-Param-Number": "42.0"}),
        SentCheck(method="a", omit=("arguments",)),
    ],
)
def test_what_a_client_is_free_to_send_is_not_odd(check: SentCheck) -> None:
    assert not is_odd(check)


# -- what a client declares ----------------------------------------------------------------------


def test_a_dot_leads_inside_a_capability_and_the_user_s_manners_are_none() -> None:
    declared = ("elicitation.decline", "sampling.tools", "extensions.io.modelcontextprotocol/tasks")
    assert capabilities_of(declared, NEW) == {
        "elicitation": {},
        "sampling": {"tools": {}},
        "extensions": {"io.modelcontextprotocol/tasks": {}},
    }


def test_elicitation_is_not_declared_where_the_revision_has_none() -> None:
    assert capabilities_of(("elicitation",), Revision.V2025_03_26) == {}


def test_what_was_not_declared_is_refused() -> None:
    silent: Answers = answers_for(())
    for method in ("roots/list", "sampling/createMessage", "elicitation/create"):
        assert silent.answer(method, {})["error"]["code"] == -32601


@pytest.mark.parametrize("manner", ["decline", "cancel"])
def test_a_user_can_decline_and_cancel(manner: str) -> None:
    answers = answers_for((f"elicitation.{manner}",))
    assert answers.answer("elicitation/create", {}) == {"result": {"action": manner}}


def test_a_url_is_accepted_only_by_who_declared_it() -> None:
    asked = {"mode": "url", "url": "https://example.com"}
    declared = answers_for(("elicitation.url",)).answer("elicitation/create", asked)
    assert declared == {"result": {"action": "accept"}}
    assert "error" in answers_for(("elicitation",)).answer("elicitation/create", asked)


def test_who_declared_tools_samples_with_tool_uses_until_they_are_answered() -> None:
    answers = answers_for(("sampling.tools",))
    asked: dict[str, Any] = {"messages": [{}], "tools": [{"name": "clock"}]}
    first = answers.answer("sampling/createMessage", asked)["result"]
    assert [one["type"] for one in first["content"]] == ["tool_use", "tool_use"]
    assert first["stopReason"] == "toolUse"
    then = answers.answer("sampling/createMessage", {**asked, "messages": [{}, {}, {}]})["result"]
    assert then["content"]["type"] == "text"
