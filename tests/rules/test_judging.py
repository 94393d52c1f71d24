"""How verdicts come about: revisions, transports, defects of rules, limits, odd sessions."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from mcptest.core.capture import Exited, Frame, StreamEnd, Trouble
from mcptest.core.limits import DEFAULT_LIMITS
from mcptest.core.message import Kind
from mcptest.core.revision import Era, Revision, Window
from mcptest.core.verdict import Outcome, Severity, Side, Verdict
from mcptest.rules.catalogue import all_rules, find_rule
from mcptest.rules.declaration import RULES, Check, Rule, Watching, session_rule
from mcptest.rules.judge import judge
from mcptest.rules.session import Session, Step, follow
from mcptest.wire.capture_forms import SessionSource
from mcptest.wire.envelope import decode
from tests.rules.captures import (
    B,
    C,
    answer,
    ask,
    call,
    complete,
    discover,
    fail,
    full,
    handshake,
    http_handshake,
    initialize,
    initialized,
    message,
    modern,
    modern_call,
    posted,
    public,
    raw,
    replied,
    tell,
)
from tests.rules.pairs import PAIRS

PASS, FAIL = Outcome.PASS, Outcome.FAIL


def verdict(rule: str, source: SessionSource, revision: Revision | None = None) -> Verdict:
    all_rules()
    return judge(source, [RULES[rule]], revision).verdicts[0]


def rule_of(watch: Any, **facts: Any) -> Rule:
    return Rule(
        id="TEST-001",
        title="a test",
        category="test",
        severity=Severity.MUST,
        side=Side.BOTH,
        spec="basic",
        judging=watch,
        **facts,
    )


def test_a_rule_that_raises_is_inconclusive_and_harms_no_other() -> None:
    def broken(check: Check) -> Watching:
        while step := (yield):
            check.saw(step)
            raise KeyError("oops")

    judged = judge(full(handshake()), [rule_of(broken), find_rule("INV-001")])  # type: ignore[list-item]
    assert [one.outcome for one in judged.verdicts] == [Outcome.INCONCLUSIVE, PASS]
    assert "KeyError" in judged.verdicts[0].reason


def test_a_rule_that_raises_at_the_end_is_inconclusive() -> None:
    def broken(check: Check) -> Watching:
        while step := (yield):
            check.saw(step)
        raise ValueError("late")

    [found] = judge(full(handshake()), [rule_of(broken)]).verdicts
    assert found.outcome is Outcome.INCONCLUSIVE


def test_a_rule_that_returns_has_seen_enough() -> None:
    def once(check: Check) -> Watching:
        step = yield
        check.saw(step)

    [found] = judge(full(handshake()), [rule_of(once)]).verdicts
    assert (found.outcome, found.observed) == (PASS, 1)


def test_a_rule_of_single_steps_that_runs_out_of_values_does_not_pass() -> None:
    def broken(check: Check, step: Step) -> None:
        check.saw(step)
        next(iter(()))

    [found] = judge(full(handshake()), [rule_of(broken, by_step=True)]).verdicts
    assert found.outcome is Outcome.INCONCLUSIVE
    assert "StopIteration" in found.reason


def test_a_rule_of_another_transport_is_sent_nothing() -> None:
    seen: list[Step] = []
    one = rule_of(lambda check, step: seen.append(step), by_step=True, transports=("http",))
    [found] = judge(full(handshake()), [one]).verdicts
    assert (found.outcome, seen) == (Outcome.NOT_APPLICABLE, [])


def test_findings_are_bounded_but_counted() -> None:
    bad = [raw("server", "noise") for _ in range(DEFAULT_LIMITS.findings + 500)]
    found = verdict("STDIO-001", full(handshake(), bad))
    assert len(found.findings) == DEFAULT_LIMITS.findings
    assert found.findings_total == DEFAULT_LIMITS.findings + 500


def test_text_of_the_peer_is_made_safe_in_findings() -> None:
    found = verdict("INV-001", full(ask(1, "\x1b[31m\u202e" + "x" * 10_000)))
    [finding] = found.findings
    shown = "".join(filter(None, (finding.message, finding.actual, finding.excerpt)))
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert len(shown) < 2000


def test_a_rule_of_some_revisions_is_unsure_when_the_capture_names_none() -> None:
    batch = message("client", [{"jsonrpc": "2.0", "id": 1, "method": "ping"}])
    source = full(ask(0, "initialize"), answer(0, {}), batch)
    found = verdict("MSG-011", source)
    assert found.outcome is Outcome.INCONCLUSIVE
    assert "--spec-version" in found.reason
    source = full(ask(0, "initialize"), answer(0, {}), batch)
    assert verdict("MSG-011", source, Revision.V2025_06_18).outcome is FAIL


def test_batches_belong_to_one_revision_and_are_expanded() -> None:
    batch = [{"jsonrpc": "2.0", "id": n, "method": "ping"} for n in (1, 2)]
    answers = [{"jsonrpc": "2.0", "id": n, "result": {}} for n in (2, 1)]
    parts = [handshake(B), message("client", batch), message("server", answers)]
    assert verdict("MSG-011", full(parts)).outcome is Outcome.NOT_APPLICABLE
    for rule in ("MSG-001", "MSG-006", "MSG-007", "MSG-009", "LIFE-008"):
        assert verdict(rule, full(parts)).outcome is PASS, rule


def test_the_keyword_of_a_rule_can_change_with_the_revision() -> None:
    rule = RULES["CAP-001"]
    assert rule.severity_in(Revision.V2025_03_26) is Severity.SHOULD
    assert rule.severity_in(Revision.V2025_06_18) is Severity.MUST
    assert rule.severity_in(None) is Severity.SHOULD


def test_transport_rules_stay_silent_without_transport_facts() -> None:
    source = public(({"jsonrpc": "2.0", "id": 1, "method": "initialize"}, None))
    found = verdict("HTTP-003", source)
    assert found.outcome is Outcome.NOT_OBSERVED
    assert "transport" in found.reason
    assert verdict("HTTP-003", full(handshake())).outcome is Outcome.NOT_APPLICABLE


def test_requests_at_the_end_of_a_cut_capture_are_not_blamed() -> None:
    parts = [handshake(), ask(1, "tools/list"), call(2, "ping", {}, {})]
    assert verdict("MSG-009", full(parts)).outcome is FAIL
    assert verdict("MSG-009", full(parts, ended=False)).outcome is PASS
    alone = full(ask(1, "initialize"), ended=False)
    assert verdict("MSG-009", alone).outcome is Outcome.INCONCLUSIVE


@pytest.mark.parametrize(
    ("ending", "phrase"),
    [
        (Exited(code=3), "(number): it exited"),
        (Trouble(error="timeout", detail="no answer to initialize within 1 s"), "within 1 s"),
        (Trouble(error="closed", detail="the server closed its stdout"), "closed its stdout"),
    ],
)
def test_a_server_that_dies_or_stays_silent_is_never_green(ending: Any, phrase: str) -> None:
    found = verdict("MSG-009", full(ask(1, "initialize"), ending))
    assert found.outcome is FAIL
    assert phrase in found.findings[0].message


def test_a_server_that_we_ended_is_not_blamed_for_what_was_open() -> None:
    found = verdict("MSG-009", full(ask(1, "initialize"), Exited(code=0, after="stdin-closed")))
    assert found.outcome is Outcome.INCONCLUSIVE


def test_a_closed_stream_cancels_a_stateless_request() -> None:
    parts = [
        posted(1, modern(1, "tools/call")),
        StreamEnd(stream=1, complete=False),
        posted(2, modern(2, "tools/list")),
        replied(2, answer(2, complete(tools=[]))),
    ]
    assert verdict("MSG-009", full(parts, transport="http")).outcome is PASS


@pytest.mark.parametrize("body", [None, fail(None, -32600), fail(1, -32600)])
def test_an_error_status_answers_the_request_it_refuses(body: Any) -> None:
    headers = {"mcp-session-id": "s1", "mcp-protocol-version": "2025-11-25"}
    parts = [
        [posted(3, ask(1, "tools/list"), headers), replied(3, body, status=400)],
        [posted(4, ask(2, "ping"), headers), replied(4, answer(2, {}))],
    ]
    for rule in ("MSG-006", "MSG-007", "MSG-009"):
        source = full(http_handshake(), parts, transport="http")
        assert verdict(rule, source).outcome is PASS, rule


def test_an_answer_in_the_entry_of_a_notification_is_seen_in_the_public_form() -> None:
    told = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    source = public((told, {"jsonrpc": "2.0", "id": 1, "result": {}}))
    assert verdict("MSG-008", source).outcome is FAIL


def test_an_error_status_may_refuse_a_notification_with_a_body() -> None:
    note = tell("notifications/x", by="client")
    headers = {"mcp-session-id": "s1", "mcp-protocol-version": "2025-11-25"}
    refused = [posted(3, note, headers), replied(3, fail(None, -32600), status=400)]
    source = full(http_handshake(), refused, transport="http")
    assert verdict("MSG-008", source).outcome is PASS


def test_ids_may_be_used_again_in_the_stateless_era_once_they_are_answered() -> None:
    twice = [modern(1, "tools/list"), answer(1, complete(tools=[]))] * 2
    assert verdict("MSG-005", full(twice)).outcome is PASS
    assert verdict("MSG-005", full([modern(1, "tools/list")] * 2)).outcome is FAIL


def test_both_directions_have_their_own_ids() -> None:
    parts = [handshake(client={"roots": {}}), ask(1, "ping"), ask(1, "roots/list", by="server")]
    answers = [answer(1, {"roots": []}, by="client"), answer(1, {})]
    for rule in ("MSG-005", "MSG-006", "MSG-007"):
        assert verdict(rule, full(parts, answers)).outcome is PASS, rule


def test_a_discover_result_makes_capabilities_known() -> None:
    session = Session(full(discover({"tools": {}})))
    for _ in follow(full(discover({"tools": {}})).records, session):
        pass
    assert session.server_capabilities == {"tools": {}}


def test_the_tracker_forgets_what_is_answered() -> None:
    parts = [handshake(), *(call(n, "ping", {}, {}) for n in range(2000))]
    source = full(parts)
    session = Session(source)
    for _ in follow(source.records, session):
        pass
    assert session.in_flight["client"].waiting == {}
    assert session.messages == 4003


def test_a_crowd_of_waiting_requests_is_kept_lightly() -> None:
    params = {"name": "add", "arguments": {"x": "y" * 100}}
    source = full(handshake(), [ask(n, "tools/call", params) for n in range(10_100)])
    session = Session(source)
    for _ in follow(source.records, session):
        pass
    waiting = session.in_flight["client"].waiting
    assert session.crowded
    assert waiting[0].params == params
    assert waiting[10_099].params == {"name": "add"}
    assert waiting[10_099].record.raw == b""  # type: ignore[union-attr]  # a Frame


HOSTILE = [
    b"",
    b"null",
    b"3",
    b'"x"',
    b"[]",
    b"[[[]]]",
    b"[1, null]",
    b"{}",
    b'{"method": 3, "id": {}}',
    b'{"jsonrpc": "2.0", "id": [1], "method": "tools/call", "params": [1]}',
    b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"_meta": []}}',
    b'{"jsonrpc": "2.0", "id": 1, "result": null}',
    b'{"jsonrpc": "2.0", "id": 1, "result": {"tools": {"a": 1}, "content": 3, "_meta": 5}}',
    b'{"jsonrpc": "2.0", "id": 1, "result": {"tools": [null, {"name": []}], "messages": [1]}}',
    b'{"jsonrpc": "2.0", "id": 1, "error": null}',
    b'{"jsonrpc": "2.0", "id": 1, "error": {"code": {}, "data": 3}}',
    b'{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": {}}}',
    b'{"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progress": "x"}}',
    b'{"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": {}}}',
    b'{"jsonrpc": "2.0", "id": 1, "result": {"resultType": "input_required", "inputRequests": 3}}',
    b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    b"\xff\xfe\x00",
    b'{"jsonrpc": "2.0", "id": 1e999, "method": NaN}',
]


@pytest.mark.parametrize("sender", ["client", "server"])
@pytest.mark.parametrize("method", ["tools/list", "tools/call", "prompts/get", "resources/read"])
def test_no_message_of_a_peer_breaks_a_rule(sender: str, method: str) -> None:
    every = [
        [ask(1, method, {"name": "x"}), modern(2, method), raw(sender, text)] for text in HOSTILE
    ]
    for start in (handshake(), handshake(C), discover()):
        for transport in ("stdio", "http", "sse"):
            judged = judge(full(start, every, transport=transport), all_rules())
            broken = [one for one in judged.verdicts if "itself failed" in one.reason]
            assert broken == []


def places_in(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    items = value.items() if isinstance(value, dict) else ()
    for key, member in enumerate(value) if isinstance(value, list) else items:
        yield from places_in(member, (*path, key))


def with_replaced(value: Any, path: tuple[Any, ...], odd: Any) -> Any:
    changed = json.loads(json.dumps(value))
    holder = changed
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = odd
    return changed


def mutants() -> Iterator[tuple[str, SessionSource]]:
    """Every stored capture with one value of one message replaced by another kind of value."""
    for name, pair in PAIRS.items():
        source = pair.conforming()
        records = list(source.records)
        for at, (_, record) in enumerate(records):
            value = decode(record.raw).value if isinstance(record, Frame) else None
            for path in places_in(value):
                for odd in ({}, [], [{}], None, 3, -1.5, "x", True, {"a": {}}):
                    frame = msgspec.structs.replace(
                        record, raw=json.dumps(with_replaced(value, path, odd)).encode()
                    )
                    mutated = [*records[:at], (at, frame), *records[at + 1 :]]
                    yield f"{name} {path} {odd}", replace(source, records=iter(mutated))


def test_no_value_of_a_wrong_kind_breaks_a_rule() -> None:
    every = list(mutants())
    chosen = random.Random(7).sample(every, 600)
    for name, source in chosen:
        judged = judge(source, all_rules())
        broken = [one for one in judged.verdicts if "itself failed" in one.reason]
        assert broken == [], name


def test_a_rule_id_can_not_be_taken_twice_nor_be_without_a_page() -> None:
    def pageless(check: Check) -> Watching:
        yield

    declare = session_rule(
        "INV-001", "x", category="x", severity=Severity.MUST, side=Side.BOTH, spec="x"
    )
    with pytest.raises(ValueError, match="taken"):
        declare(pageless)
    declare = session_rule(
        "TEST-002", "x", category="x", severity=Severity.MUST, side=Side.BOTH, spec="x"
    )
    with pytest.raises(ValueError, match="no page"):
        declare(pageless)
    assert "TEST-002" not in RULES


def test_urls_follow_the_pages_of_the_era() -> None:
    rule = rule_of(None, window=Window(), listens=frozenset({Kind.REQUEST}))
    assert rule.url(Revision.V2025_06_18).endswith("/2025-06-18/basic")
    assert RULES["STDIO-001"].url(Revision.V2025_06_18).endswith("basic/transports#stdio")
    assert RULES["STDIO-001"].url().endswith("/2026-07-28/basic/transports/stdio")
    assert RULES["INV-001"].url().endswith("/2025-11-25/basic/lifecycle#initialization")


# -- which era a session is of -------------------------------------------------------------

PROBE = modern("probe", "server/discover")
OLDER = answer("probe", complete(supportedVersions=["2025-11-25"], capabilities={}))


@pytest.mark.parametrize(
    ("records", "era", "revision"),
    [
        (discover(), Era.STATELESS, "2026-07-28"),
        ([PROBE], Era.STATELESS, "2026-07-28"),
        (handshake(), Era.HANDSHAKE, "2025-11-25"),
        # The probe was refused, or points to older revisions: what follows is a handshake.
        ([PROBE, fail("probe", -32601), *handshake()], Era.HANDSHAKE, "2025-11-25"),
        ([PROBE, OLDER, *handshake()], Era.HANDSHAKE, "2025-11-25"),
        # A client that lost patience, and was then answered after all.
        ([*discover(), *initialize(), *modern_call(1, "tools/list", {}, complete(tools=[]))],
         Era.STATELESS, "2026-07-28"),
        ([PROBE, *initialize(), answer("probe", complete(supportedVersions=["2026-07-28"]))],
         Era.STATELESS, "2026-07-28"),
    ],
)  # fmt: skip
def test_a_session_is_of_the_era_that_was_really_spoken(
    records: list[Any], era: Era, revision: str
) -> None:
    judged = judge(full(*records), [])
    assert (judged.era, str(judged.revision)) == (era, revision)


REFUSALS = {
    "HTTP-013": replied(9, fail(1, -32601), 200),
    "MSG-010": replied(9, fail(None, -32600), 400),
    "MSG-014": replied(9, fail(1, -32000), 400),
}


@pytest.mark.parametrize("rule", REFUSALS)
def test_a_server_is_not_held_to_a_revision_that_it_refused_to_speak(rule: str) -> None:
    refused = [*posted(9, modern(1, "server/discover")), *REFUSALS[rule]]
    question, discovered = discover()
    served = [*posted(8, question), *replied(8, discovered)]
    for before, outcome in ((), Outcome.INCONCLUSIVE), (served, Outcome.FAIL):
        session = full(*before, *refused, transport="http")
        (verdict,) = judge(session, [find_rule(rule)]).verdicts
        assert verdict.outcome is outcome


@pytest.mark.parametrize(
    ("rule", "method", "declared"),
    [
        ("LOG-001", "notifications/message", {"logging": {}}),
        ("CAP-003", "notifications/tools/list_changed", {"tools": {"listChanged": True}}),
    ],
)
def test_what_comes_before_the_declaration_is_judged_by_it(
    rule: str, method: str, declared: dict[str, Any]
) -> None:
    said = tell(method, {"level": "info", "data": "starting"})
    for capabilities, outcome in ((declared, PASS), ({}, FAIL)):
        request, declaration = initialize(server=capabilities)
        source = full([request, said, declaration, initialized()])
        assert verdict(rule, source).outcome is outcome
    assert verdict(rule, full([request, said])).outcome is Outcome.INCONCLUSIVE
