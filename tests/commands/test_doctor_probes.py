"""The probes that look at lists and at what was seen, each with both of its outcomes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from mcptest.commands.doctor.examination import AskedCall, Examination, Watch
from mcptest.commands.doctor.run import PROBES
from mcptest.core.judgement import Evidence
from mcptest.core.message import ABSENT
from mcptest.probe.compliance.conversation import Asked
from mcptest.report.doctor import Judged
from mcptest.suite.observed import SeenExchange
from mcptest.suite.sent_message import SentCheck


def result(value: dict[str, Any], *notifications: Any) -> Asked:
    return Asked(SeenExchange(result=value, notifications=notifications), b"sent", b"received")


def error(code: Any) -> Asked:
    return Asked(SeenExchange(error={"code": code, "message": ""}), b"sent", b"received")


def watch(*seen: tuple[str, Asked]) -> Watch:
    watching = Watch(lambda text: text.replace("hunter2", "***"))
    for method, asked in seen:
        watching.take(method, asked)
    return watching


class FakeExamination(SimpleNamespace):
    def __init__(self, **facts: Any) -> None:
        usual: dict[str, Any] = {
            "lists": {},
            "calls": [],
            "uncalled": [],
            "watch": watch(),
            "knocks": {},
            "declared": (),
            "answers": [],
        }
        super().__init__(**{**usual, **facts})

    @property
    def tools(self) -> list[Any]:
        return cast("list[Any]", self.lists.get("tools", []))

    def declares(self, capability: str, part: str = "") -> bool:
        return capability in self.declared

    def ask(self, check: SentCheck) -> Asked:
        return cast("Asked", self.answers.pop(0))


def judge(item: str, **facts: Any) -> Judged:
    return PROBES[item](cast("Examination", FakeExamination(**facts)))


def verdict(item: str, **facts: Any) -> str:
    return judge(item, **facts).verdict.value


def tools(*items: dict[str, Any]) -> dict[str, list[Any]]:
    return {"tools": [{"name": "t", "inputSchema": {"type": "object"}, **one} for one in items]}


# -- lists ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong",
    [{"inputSchema": None}, {"inputSchema": {"type": 7}}, {"outputSchema": {"type": "nothing"}}],
)
def test_a_schema_that_is_not_valid_breaks(wrong: dict[str, Any]) -> None:
    assert verdict("tool-schemas", lists=tools({})) == "ready"
    assert verdict("tool-schemas", lists=tools({}, wrong)) == "breaks"
    assert verdict("tool-schemas") == "not used"


def test_odd_names_of_tools_are_advised_against() -> None:
    assert judge("tool-names", lists=tools({})).advice == ""
    judged = judge("tool-names", lists=tools({}, {}, {"name": "a b"}))
    assert judged.verdict.value == "ready"
    assert "rename: a b" in judged.advice
    assert "duplicate: t" in judged.advice


def test_a_title_is_a_text() -> None:
    assert verdict("titles", lists=tools({"title": "T"})) == "ready"
    assert verdict("titles", lists=tools({"title": 7})) == "breaks"
    assert verdict("titles", lists=tools({})) == "not used"


def test_a_resource_has_a_uri() -> None:
    assert verdict("resource-uris", lists={"resources": [{"uri": "note://a"}]}) == "ready"
    assert verdict("resource-uris", lists={"resources": [{"uri": "a b"}]}) == "breaks"
    assert verdict("resource-uris") == "not used"


def called(tool: dict[str, Any], value: dict[str, Any]) -> dict[str, Any]:
    lists = tools(tool)
    return {"lists": lists, "calls": [AskedCall(lists["tools"][0], result(value))]}


NUMBER = {"outputSchema": {"type": "object", "required": ["n"]}}


@pytest.mark.parametrize(
    ("value", "outcome"),
    [
        ({"content": [], "structuredContent": {"n": 1}}, "ready"),
        ({"content": [], "structuredContent": {}}, "breaks"),
        ({"content": []}, "breaks"),
        ({"content": [], "isError": True}, "ready"),
    ],
)
def test_structured_output_fits_its_schema(value: dict[str, Any], outcome: str) -> None:
    assert verdict("structured-output", **called(NUMBER, value)) == outcome


def test_structured_output_of_a_tool_that_was_not_called_is_unknown() -> None:
    assert verdict("structured-output", lists=tools(NUMBER), uncalled=["t"]) == "unknown"
    assert verdict("structured-output", lists=tools({})) == "not used"


def test_wrong_arguments_are_best_answered_by_a_result() -> None:
    reading = {"annotations": {"readOnlyHint": True}, "inputSchema": {"required": ["a"]}}
    as_result = [result({"isError": True})]
    assert judge("argument-errors", lists=tools(reading), answers=as_result).advice == ""
    assert judge("argument-errors", lists=tools(reading), answers=[error(-32602)]).advice
    assert verdict("argument-errors", lists=tools({})) == "unknown"


def test_completion_has_to_be_declared() -> None:
    prompts = {"prompts": [{"name": "p", "arguments": [{"name": "a"}]}]}
    served = [result({"completion": {"values": []}})]
    assert verdict("completions", lists=prompts, answers=served) == "breaks"
    assert verdict("completions", lists=prompts, answers=[error(-32601)]) == "not used"
    assert verdict("completions", declared=("completions",)) == "ready"
    assert verdict("completions") == "not used"


# -- what was seen -------------------------------------------------------------------------


def test_keys_of_meta_follow_their_grammar() -> None:
    good = watch(("tools/list", result({"_meta": {"com.example/x": 1}})))
    bad = watch(("tools/list", result({"tools": [{"_meta": {"not a key": 1}}]})))
    assert verdict("meta-keys", watch=good) == "ready"
    assert verdict("meta-keys", watch=bad) == "breaks"
    assert verdict("meta-keys") == "not used"


def test_audio_has_data_and_a_type() -> None:
    block = {"type": "audio", "data": "AA==", "mimeType": "audio/wav"}
    good = watch(("tools/call", result({"content": [block]})))
    message = {"role": "user", "content": {"type": "audio", "data": "AA=="}}
    bad = watch(("prompts/get", result({"messages": [message]})))
    assert verdict("audio", watch=good) == "ready"
    assert verdict("audio", watch=bad) == "breaks"
    assert verdict("audio") == "not used"


@pytest.mark.parametrize(
    ("code", "outcome", "advice"),
    [
        (-32601, "ready", ""),
        (-32021, "ready", ""),
        (-32042, "breaks", ""),
        (-32002, "breaks", ""),
        (-32023, "breaks", ""),
        (-32000, "ready", "-32000"),
        (-32001, "ready", "release candidate"),
        (7, "ready", ""),
    ],
)
def test_error_codes_are_those_that_may_be_used(code: int, outcome: str, advice: str) -> None:
    judged = judge("error-codes", watch=watch(("tools/call", error(code))))
    assert judged.verdict.value == outcome
    assert advice in judged.advice
    assert bool(judged.advice) == bool(advice)


def test_without_any_error_nothing_is_known_of_the_codes() -> None:
    assert verdict("error-codes") == "unknown"


def test_an_error_code_that_is_no_number_is_not_taken_for_one() -> None:
    assert verdict("error-codes", watch=watch(("tools/call", error("x")))) == "unknown"


def test_the_code_of_a_missing_resource_is_counted_once() -> None:
    assert watch(("resources/read", error(-32002))).codes == {}


def test_answers_of_methods_that_are_gone_need_no_result_type() -> None:
    assert watch(("ping", result({}))).untyped == {}
    assert [*watch(("tools/list", result({}))).untyped] == ["tools/list"]


@pytest.mark.parametrize(
    "hints",
    [{}, {"ttlMs": 1}, {"ttlMs": True, "cacheScope": "public"}, {"ttlMs": 0, "cacheScope": []}],
)
def test_a_cache_hint_is_whole_or_none(hints: dict[str, Any]) -> None:
    assert watch(("tools/list", result(hints))).uncached
    assert not watch(("tools/list", result({"ttlMs": 0, "cacheScope": "public"}))).uncached
    assert not watch(("resources/read", result({"resultType": "input_required"}))).uncached


def test_a_log_message_is_kept_without_secrets() -> None:
    log = {"method": "notifications/message", "params": {"data": "hunter2 \ud800"}}
    noted = watch(("tools/call", result({}, "no object", log))).log_messages
    assert noted is not None
    assert "***" in noted.received
    assert "hunter2" not in noted.received


def test_questions_of_the_server_break_and_inputs_do_not() -> None:
    asking = watch()
    asking.heard("roots/list", b"{}")
    assert verdict("server-requests", watch=asking) == "breaks"
    pings = watch()
    pings.heard("ping", b"{}")
    assert verdict("server-requests", watch=pings) == "not used"
    asked = SeenExchange(result={"resultType": "input_required"}, asked=({"method": "roots/list"},))
    inputs = watch(("tools/call", Asked(asked, b"", b"")))
    assert verdict("server-requests", watch=inputs) == "ready"
    assert verdict("server-requests", uncalled=["wipe"], lists=tools({})) == "unknown"


def test_no_more_is_kept_of_a_talkative_server_than_fits() -> None:
    watching = watch(*(("tools/call", error(code)) for code in range(1_000)))
    assert len(watching.codes) == 50
    for number in range(1_000):
        watching.heard(f"method-{number}", b"x" * 10_000)
    assert len(watching.questions) == 50
    assert all(len(one.received) <= 800 for one in watching.questions.values())


def test_proofs_without_any_bytes_are_left_out() -> None:
    silent = Asked(SeenExchange(result=ABSENT), b"", b"")
    judged = judge("completions", lists={"prompts": []}, answers=[silent])
    assert judged.evidence == ()
    assert Evidence() not in judged.evidence
