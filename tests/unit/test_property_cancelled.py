"""An answer to what was cancelled is held against a server only if it has read the cancellation."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcptest.model.capture import Frame
from mcptest.run.properties.cancelled import could_have_known


def said(sender: str, **members: Any) -> Frame:
    raw = json.dumps({"jsonrpc": "2.0", **members}).encode()
    return Frame(t=0.0, sender=sender, raw=raw)  # type: ignore[arg-type]  # client or server


ASKED = said("client", id=3, method="tools/call")
CANCELLED = said("client", method="notifications/cancelled", params={"requestId": 3})
OTHER_CANCELLED = said("client", method="notifications/cancelled", params={"requestId": 2})
LATER = said("client", id=4, method="ping")
LATER_ANSWERED = said("server", id=4, result={})
ODD = said("server", id=[4], result={})
ANSWERED = said("server", id=3, result={})


@pytest.mark.parametrize(
    ("records", "known"),
    [
        ([ASKED, CANCELLED, ANSWERED], False),
        ([ASKED, CANCELLED, LATER, ANSWERED], False),
        ([ASKED, LATER, CANCELLED, LATER_ANSWERED, ANSWERED], False),
        ([ASKED, OTHER_CANCELLED, LATER, LATER_ANSWERED, ANSWERED], False),
        ([ASKED, CANCELLED, LATER, ODD, ANSWERED], False),
        ([ASKED, CANCELLED, LATER, LATER_ANSWERED, ANSWERED], True),
    ],
    ids=["alone", "nothing later", "asked before", "another", "odd id", "later was answered"],
)
def test_whoever_answers_what_was_asked_later_has_read_the_cancellation(
    records: list[Frame], known: bool
) -> None:
    assert could_have_known(records, len(records) - 1) is known


def test_a_finding_without_a_place_proves_nothing() -> None:
    assert not could_have_known([ASKED, CANCELLED, LATER, LATER_ANSWERED], None)
