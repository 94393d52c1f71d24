"""An answer that was not waited for as long as the timeout says is not one that never came."""

from __future__ import annotations

import pytest

from mcptest.core.capture import AnyRecord, Closed, Exited, Frame, Trouble
from mcptest.core.verdict import Finding, Outcome, Verdict
from mcptest.probe.compliance.rule_results import without_impatience

TIMEOUT = 30.0
ASKED = Frame(t=1.0, sender="client", raw=b'{"jsonrpc":"2.0","id":8,"method":"tools/call"}')
ANSWERED = Frame(t=2.0, sender="server", raw=b'{"jsonrpc":"2.0","id":9,"result":{}}')


def judged(*later: AnyRecord, rule: str = "MSG-009") -> Outcome:
    verdict = Verdict(rule, Outcome.FAIL, findings=(Finding("no response", record=0),))
    return without_impatience(verdict, [ASKED, *later], TIMEOUT).outcome


def gave_up(at: float) -> Trouble:
    return Trouble(t=at, error="timeout", detail=f"no answer within {at - 1:g} s")


@pytest.mark.parametrize(
    ("later", "outcome"),
    [
        ((gave_up(5.3),), Outcome.INCONCLUSIVE),
        ((gave_up(5.3), Closed(t=60.0, records=2)), Outcome.INCONCLUSIVE),
        ((ANSWERED, Closed(t=3.0, records=2)), Outcome.INCONCLUSIVE),
        ((gave_up(31.0),), Outcome.FAIL),
        ((ANSWERED, Closed(t=32.0, records=2)), Outcome.FAIL),
        ((Exited(t=1.5, code=1),), Outcome.FAIL),
        ((gave_up(5.3), Exited(t=6.0, code=0, after="stdin-closed")), Outcome.INCONCLUSIVE),
    ],
)
def test_silence_counts_once_the_whole_timeout_was_waited_for(
    later: tuple[AnyRecord, ...], outcome: Outcome
) -> None:
    assert judged(*later) is outcome


def test_a_request_that_has_nothing_to_wait_for_was_forgotten_when_later_ones_are_answered() -> (
    None
):
    ping = Frame(t=1.0, sender="client", raw=b'{"jsonrpc":"2.0","id":8,"method":"ping"}')
    verdict = Verdict("MSG-009", Outcome.FAIL, findings=(Finding("no response", record=0),))
    ended = Closed(t=3.0, records=2)
    assert without_impatience(verdict, [ping, ANSWERED, ended], TIMEOUT) == verdict
    impatient = without_impatience(verdict, [ping, gave_up(5.3)], TIMEOUT)
    assert impatient.outcome is Outcome.INCONCLUSIVE


def test_rules_that_are_not_about_silence_are_let_be() -> None:
    assert judged(gave_up(5.3), rule="MSG-006") is Outcome.FAIL
