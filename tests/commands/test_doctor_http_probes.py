"""The probes that need HTTP, each with an answer that is ready and answers that break."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest

from mcptest.commands.doctor.examination import Examination
from mcptest.commands.doctor.run import PROBES
from mcptest.core.message import ABSENT
from mcptest.probe.compliance.conversation import Asked
from mcptest.report.doctor import Judged
from mcptest.suite.observed import SeenExchange
from mcptest.suite.sent_message import SentCheck

OK = object()
_KNOCKS = ("method-missing", "method-wrong", "name-missing", "name-wrong", "version-differs")


def answer(status: int, code: Any = OK, headers: Mapping[str, str] | None = None) -> Asked:
    """An HTTP answer with a result, an error of that code, or no message at all."""
    http = {"status": status, "headers": dict(headers or {}), "body": ""}
    result: Any = {} if code is OK else ABSENT
    error: Any = ABSENT if code in (OK, None) else {"code": code, "message": ""}
    return Asked(SeenExchange(result=result, error=error, http=http), b"sent", b"received")


MISMATCH = answer(400, -32020)


class FakeExamination(SimpleNamespace):
    """A server that speaks the newer revision over HTTP, by a table of its answers."""

    def __init__(self, **facts: Any) -> None:
        usual: dict[str, Any] = {
            "transport": "http",
            "speaks_newer": True,
            "knocks": dict.fromkeys(_KNOCKS, MISMATCH),
            "tools": [],
            "calls": [],
            "site": SimpleNamespace(session_id=""),
            "a_list": "tools/list",
            "alive": SentCheck(method="ping"),
            "answers": [],
        }
        super().__init__(**{**usual, **facts})

    def knocked(self, name: str) -> Asked:
        return cast("Asked", self.knocks[name])

    def declares(self, capability: str, part: str = "") -> bool:
        return True

    def ask(self, check: SentCheck) -> Asked:
        return cast("Asked", self.answers.pop(0))


def judge(item: str, **facts: Any) -> Judged:
    return PROBES[item](cast("Examination", FakeExamination(**facts)))


def verdict(item: str, **facts: Any) -> str:
    return judge(item, **facts).verdict.value


@pytest.mark.parametrize(
    "item", ["sessions", "protocol-headers", "param-headers", "http-methods", "http-status"]
)
def test_what_needs_http_is_not_used_without_it(item: str) -> None:
    assert verdict(item, transport="stdio") == "not used"


@pytest.mark.parametrize("name", _KNOCKS)
def test_a_header_that_is_not_compared_breaks(name: str) -> None:
    knocks = dict.fromkeys(_KNOCKS, MISMATCH)
    assert verdict("protocol-headers", knocks=knocks) == "ready"
    assert verdict("protocol-headers", knocks={**knocks, name: answer(200)}) == "breaks"


def test_headers_are_refused_with_their_own_code() -> None:
    knocks = {**dict.fromkeys(_KNOCKS, MISMATCH), "name-wrong": answer(400, -32602)}
    assert verdict("protocol-headers", knocks=knocks) == "breaks"
    knocks["name-wrong"] = answer(200, -32020)
    assert verdict("protocol-headers", knocks=knocks) == "breaks"


def test_a_server_of_both_eras_may_take_an_old_version_header_at_its_word() -> None:
    knocks = {**dict.fromkeys(_KNOCKS, MISMATCH), "version-differs": answer(400, -32600)}
    judged = judge("protocol-headers", knocks=knocks)
    assert judged.verdict.value == "ready"
    assert "-32600" in judged.advice


def test_a_session_id_must_not_matter() -> None:
    assert verdict("sessions", knocks={"session": answer(200)}) == "ready"
    assert verdict("sessions", knocks={"session": answer(404, -32600)}) == "breaks"
    minted = answer(200, headers={"mcp-session-id": "x"})
    assert "stop issuing" in judge("sessions", knocks={"session": minted}).advice


@pytest.mark.parametrize("without", [answer(400, -32000), answer(200)])
def test_an_old_server_with_sessions_breaks(without: Asked) -> None:
    site = SimpleNamespace(session_id="abc")
    assert verdict("sessions", speaks_newer=False, site=site, answers=[without]) == "breaks"


def test_an_old_server_without_sessions_is_ready() -> None:
    assert verdict("sessions", speaks_newer=False) == "ready"


def test_an_unknown_method_has_its_status() -> None:
    assert verdict("http-status", knocks={"unknown-method": answer(404, -32601)}) == "ready"
    assert verdict("http-status", knocks={"unknown-method": answer(200, -32601)}) == "breaks"
    assert verdict("http-status", knocks={"unknown-method": answer(404, None)}) == "breaks"


def test_another_status_for_get_and_delete_is_only_advised_against() -> None:
    both = {"get": answer(405, None), "delete": answer(405, None)}
    assert judge("http-methods", knocks=both).advice == ""
    judged = judge("http-methods", knocks={**both, "get": answer(200, None)})
    assert judged.verdict.value == "ready"
    assert "405" in judged.advice
    silent = Asked(SeenExchange(), b"", b"")
    assert verdict("http-methods", knocks={**both, "get": silent}) == "unknown"


def tool(header: Any) -> dict[str, Any]:
    properties = {"city": {"type": "string", "x-mcp-header": header}}
    schema = {"type": "object", "properties": properties, "required": ["city"]}
    return {"name": "weather", "inputSchema": schema, "annotations": {"readOnlyHint": True}}


def test_arguments_in_headers_are_compared() -> None:
    assert verdict("param-headers", tools=[tool("City")], answers=[MISMATCH]) == "ready"
    assert verdict("param-headers", tools=[tool("City")], answers=[answer(200)]) == "breaks"


def test_an_annotation_that_clients_drop_the_tool_for_breaks() -> None:
    assert verdict("param-headers", tools=[tool("no header")]) == "breaks"


def test_without_a_tool_that_may_be_called_headers_of_arguments_are_unknown() -> None:
    wipe = {**tool("City"), "annotations": {}}
    assert verdict("param-headers", tools=[wipe]) == "unknown"
    assert verdict("param-headers", tools=[]) == "not used"


def test_a_foreign_origin_is_forbidden() -> None:
    assert verdict("origin", answers=[answer(403, None)]) == "ready"
    assert verdict("origin", answers=[answer(200)]) == "breaks"
    assert verdict("origin", answers=[answer(400, None)]) == "breaks"
    assert verdict("origin", transport="stdio") == "not used"


def test_an_unknown_version_header_is_a_bad_request() -> None:
    assert verdict("version-header", answers=[answer(400, None), answer(200)]) == "ready"
    assert verdict("version-header", answers=[answer(200), answer(200)]) == "breaks"
    judged = judge("version-header", answers=[answer(400, None), answer(400, None)])
    assert "without the header" in judged.advice


def test_the_old_transport_breaks() -> None:
    assert verdict("transport", transport="sse") == "breaks"
    assert verdict("transport", transport="http") == "ready"
    assert verdict("transport", transport="stdio") == "not used"
