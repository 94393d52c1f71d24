"""An answer to what was cancelled is held against whoever must have read the cancellation."""

from __future__ import annotations

from typing import Any

import pytest

from mcptest.core.verdict import Outcome
from mcptest.rules.catalogue import find_rule
from mcptest.rules.judge import judge
from tests.rules.captures import answer, ask, full, handshake, tell

ASKED = ask(3, "tools/call", {"name": "slow"}, t=1.0)
CANCELLED = tell("notifications/cancelled", {"requestId": 3}, by="client", t=2.0)
OTHER_CANCELLED = tell("notifications/cancelled", {"requestId": 2}, by="client", t=2.0)
BEFORE, AFTER = ask(4, "ping", t=1.5), ask(4, "ping", t=2.5)
ANSWERED = answer(4, {}, t=2.7)
LATE = answer(3, {}, t=3.0)


@pytest.mark.parametrize(
    ("said", "outcome"),
    [
        ([ASKED, CANCELLED, LATE], Outcome.INCONCLUSIVE),
        ([ASKED, CANCELLED, AFTER, LATE], Outcome.INCONCLUSIVE),
        ([ASKED, BEFORE, CANCELLED, ANSWERED, LATE], Outcome.INCONCLUSIVE),
        ([ASKED, CANCELLED, AFTER, ANSWERED, answer(3, {}, t=2.04)], Outcome.INCONCLUSIVE),
        ([ASKED, CANCELLED, AFTER, ANSWERED], Outcome.PASS),
        ([ASKED, OTHER_CANCELLED, AFTER, ANSWERED, LATE], Outcome.NOT_OBSERVED),
        ([ASKED, CANCELLED, AFTER, ANSWERED, LATE], Outcome.FAIL),
    ],
    ids=["alone", "nothing later", "asked before", "at once", "obeyed", "another", "knew"],
)
def test_whoever_answers_what_was_asked_later_has_read_the_cancellation(
    said: list[Any], outcome: Outcome
) -> None:
    source = full(handshake(), *said)
    found = judge(source, [find_rule("CANCEL-002")]).verdicts
    assert [verdict.outcome for verdict in found] == [outcome]
