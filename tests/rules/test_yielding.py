"""One fault is one finding: which rule yields to which, and over what."""

from __future__ import annotations

import pytest

from mcptest.core.verdict import Finding, Outcome, Verdict
from mcptest.rules.catalogue import all_rules
from mcptest.rules.corpus.reader import shipped_registry
from mcptest.rules.corpus.registry import CorpusRule
from mcptest.rules.yielding import (
    ANSWERED,
    NOISE,
    Shown,
    passes_in_doubt,
    without_repetition,
    yielding_to,
)

ANSWER = '{"jsonrpc":"2.0","id":7003,"result":{}}'
ASKED = '{"jsonrpc":"2.0","id":"7003","method":"ping"}'


CORPUS = {name: CorpusRule(name, entry=entry) for name, entry in shipped_registry().items()}


def test_every_rule_that_another_yields_to_exists() -> None:
    entries, rules = shipped_registry(), all_rules()
    named = {to for one in (*entries.values(), *rules) for to in one.yields_to}
    assert {"STDIO-001", "JSONRPC-001", "PROTO-013"} <= named
    assert named <= {*entries, *(rule.id for rule in rules)}


def test_what_a_rule_over_sessions_yields_to_stands_in_its_declaration_alone() -> None:
    assert not [one.id for one in shipped_registry().values() if one.session_rule and one.yields_to]


def test_a_rule_of_a_corpus_yields_as_the_registry_says() -> None:
    proofs = {"PROTO-013": [Shown("a", ANSWER)], "PROTO-016": [Shown("b", ANSWER)]}
    assert yielding_to(proofs, CORPUS) == {"PROTO-016": "PROTO-013"}


def test_a_request_that_says_no_version_is_one_question() -> None:
    """Without the version, without `_meta`, and without it once more: whoever serves one of these
    reads them as of the older era, and is told so once."""
    asked = {"PROTO-011": "a", "PROTO-013": "b", "PROTO-016": "c"}
    proofs = {rule: [Shown(sent, ANSWER)] for rule, sent in asked.items()}
    assert yielding_to(proofs, CORPUS) == {"PROTO-011": "PROTO-013", "PROTO-016": "PROTO-013"}
    refused = '{"jsonrpc":"2.0","id":7003,"error":{"code":-32603,"message":"no"}}'
    others = {**proofs, "PROTO-011": [Shown("a", refused)]}
    assert yielding_to(others, CORPUS) == {"PROTO-016": "PROTO-013"}, "of another kind"


def test_a_test_of_a_suite_that_names_a_rule_does_not_yield_as_the_rule_does() -> None:
    own = {"mine": CorpusRule("mine", entry=shipped_registry()["PROTO-016"])}
    proofs = {"PROTO-013": [Shown("a", ANSWER)], "mine": [Shown("b", ANSWER)]}
    assert yielding_to(proofs, {**CORPUS, **own}) == {}


def test_a_changed_id_is_told_by_the_rule_about_ids() -> None:
    proofs = {
        "JSONRPC-004": [Shown(ASKED, ""), Shown('{"id":7001}', '{"id":7001}')],
        "MSG-006": [Shown("", ANSWER)],
        "MSG-009": [Shown(ASKED, "")],
    }
    assert yielding_to(proofs) == {"MSG-006": "JSONRPC-004", "MSG-009": "JSONRPC-004"}


def test_without_that_rule_it_is_told_by_the_rule_about_answers() -> None:
    proofs = {"MSG-006": [Shown("", ANSWER)], "MSG-009": [Shown(ASKED, "")]}
    assert yielding_to(proofs) == {"MSG-009": "MSG-006"}


def test_a_pass_about_missing_answers_is_in_doubt_where_ids_came_back_changed() -> None:
    """It would say no more than that the lost answer was not waited for to the end."""
    assert passes_in_doubt(["MSG-009", "MSG-002"], {"JSONRPC-004"}) == {"MSG-009": "JSONRPC-004"}
    assert passes_in_doubt(["MSG-009"], {"JSONRPC-001"}) == {}


def test_a_stray_answer_leaves_a_pass_about_missing_answers_as_it_is() -> None:
    """The Python SDK refuses with the id "server-error", and answers every request."""
    assert passes_in_doubt(["MSG-009"], {"MSG-006"}) == {}


def test_another_id_is_another_fault() -> None:
    proofs = {"JSONRPC-004": [Shown(ASKED, "")], "MSG-006": [Shown("", '{"id":99}')]}
    assert yielding_to(proofs) == {}


@pytest.mark.parametrize(("code", "yields"), [(-32603, True), (-32000, False)])
def test_an_unknown_method_is_one_fault_where_the_answer_is_the_same(
    code: int, yields: bool
) -> None:
    wrong = '{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"no"}}'
    other = f'{{"jsonrpc":"2.0","id":9,"error":{{"code":{code},"message":"what?"}}}}'
    proofs = {"JSONRPC-001": [Shown("a", wrong)], "INV-007": [Shown("", other)]}
    assert yielding_to(proofs) == ({"INV-007": "JSONRPC-001"} if yields else {})


def test_whatever_got_no_answer_is_told_by_the_rule_about_answers() -> None:
    proofs = {"MSG-009": [Shown(ASKED, "")], "TOOLS-001": [Shown(ASKED, "")]}
    assert yielding_to(proofs) == {"TOOLS-001": "MSG-009"}
    answered = {"MSG-009": [Shown(ASKED, "")], "TOOLS-001": [Shown(ASKED, ANSWER)]}
    assert yielding_to(answered) == {}


def failing(rule: str, excerpt: str, sender: str = "server") -> Verdict:
    finding = Finding("wrong", sender=sender, excerpt=excerpt)
    return Verdict(rule, Outcome.FAIL, "", 1, (finding,), 1)


def test_in_a_session_the_rule_that_yields_is_inconclusive_and_names_the_other() -> None:
    verdicts = (failing("MSG-006", ANSWER), failing("MSG-009", ASKED, "client"))
    root, yielded = without_repetition(verdicts)
    assert root is verdicts[0]
    assert yielded.outcome is Outcome.INCONCLUSIVE
    assert yielded.reason == "same fault as MSG-006"


def test_a_single_failure_stands() -> None:
    verdicts = (failing("MSG-009", ASKED, "client"),)
    assert without_repetition(verdicts) == verdicts


def test_an_answer_to_a_notification_is_one_fault() -> None:
    """It has no id, answers no request, and may have no result: all of that is the same."""
    bare = '{"jsonrpc":"2.0","result":null}'
    late = '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"answered"}}'
    error = '{"jsonrpc":"2.0","error":{"code":-32601,"message":"method not found"}}'
    said = (f"{ANSWERED} the cancellation with error -32601",)
    proofs = {
        "MSG-001": [Shown("", bare)],
        "MSG-006": [Shown("", bare)],
        "MSG-008": [Shown("", bare)],
        "MSG-012": [Shown("", bare)],
        "CANCEL-103": [Shown(ASKED, ANSWER, said), Shown(late, error, said)],
    }
    others = {"MSG-001", "MSG-006", "MSG-012", "CANCEL-103"}
    corpus = {"CANCEL-103": CORPUS["CANCEL-103"]}
    assert yielding_to(proofs, corpus) == dict.fromkeys(others, "MSG-008")


def test_what_a_cancellation_does_to_the_next_request_is_another_fault() -> None:
    late = '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"answered"}}'
    said = ("the server did not answer the next request; expected a result",)
    proofs = {
        "MSG-008": [Shown("", '{"jsonrpc":"2.0","result":null}')],
        "CANCEL-103": [Shown(late, "", said), Shown(ASKED, "", said)],
    }
    assert yielding_to(proofs, CORPUS) == {}


def test_lists_that_nobody_declared_are_one_fault() -> None:
    empty = '{"jsonrpc":"2.0","id":1,"result":{"resources":[]}}'
    other = '{"jsonrpc":"2.0","id":2,"result":{"prompts":[]}}'
    proofs = {
        "INV-003": [Shown("a", empty), Shown("b", other)],
        "JSONRPC-009": [Shown("a", f"HTTP 200 () {empty}")],
        "JSONRPC-010": [Shown("b", f"HTTP 200 () {other}")],
    }
    rows = dict.fromkeys(("JSONRPC-009", "JSONRPC-010"), "INV-003")
    assert yielding_to(proofs, CORPUS) == rows
    refused = '{"jsonrpc":"2.0","id":3,"error":{"code":-32602,"message":"No."}}'
    assert yielding_to({**proofs, "JSONRPC-009": [Shown("a", refused)]}, CORPUS) == {
        "JSONRPC-010": "INV-003"
    }


def test_who_can_not_subscribe_can_not_unsubscribe_either() -> None:
    refused = '{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found"}}'
    proofs = {"SUBS-104": [Shown("a", refused)], "SUBS-105": [Shown("b", refused)]}
    assert yielding_to(proofs, CORPUS) == {"SUBS-105": "SUBS-104"}


def test_a_server_that_lives_and_makes_noise_is_told_by_the_rule_about_noise() -> None:
    noisy = (f"{NOISE} (2 times); expected a running server",)
    proofs = {"PROTO-008": [Shown("a", "b", noisy)], "STDIO-001": [Shown("", "hello")]}
    assert yielding_to(proofs, CORPUS) == {"PROTO-008": "STDIO-001"}
    stopped = {**proofs, "PROTO-008": [Shown("a", "", ("the server stopped running",))]}
    assert yielding_to(stopped, CORPUS) == {}
    unsaid = {**proofs, "PROTO-008": [Shown("a", "b")]}
    assert yielding_to(unsaid, CORPUS) == {}


def test_a_notification_that_gets_a_response_is_told_once_unless_more_is_wrong() -> None:
    reply = Shown(
        '{"method":"notifications/x"}', '{"error":{"code":-32601}}', (f"{ANSWERED} with",)
    )
    proofs = {"JSONRPC-005": [reply], "MSG-008": [reply]}
    assert yielding_to(proofs, CORPUS) == {"JSONRPC-005": "MSG-008"}
    silent = (*reply.said, "the server did not answer the next request")
    proofs["JSONRPC-005"] = [Shown(reply.sent, reply.received, silent)]
    assert yielding_to(proofs, CORPUS) == {}
