"""Whether a server that answered a cancelled request could have known that it was cancelled.

The session rule goes by the clock: an answer may have been on its way for a twentieth of a second.
Where the machine is busy, or the server was, that proves nothing. Messages are read in their order,
so a server that has answered something asked after the cancellation has read that as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mcptest.model.capture import AnyRecord, Frame
from mcptest.model.message import Message
from mcptest.wire.envelope import decode

RULE = "CANCEL-002"
_CANCELLED = "notifications/cancelled"


def could_have_known(records: Sequence[AnyRecord], answer: int | None) -> bool:
    """`answer` is the place of the answer that should not have come."""
    if answer is None:
        return False
    identifier = _message(records[answer]).id
    told = False
    asked_later: set[Any] = set()
    for record in records[:answer]:
        if not isinstance(record, Frame):
            continue
        message = decode(record.raw)
        if record.sender == "server":
            if message.is_answer and _is_id(message.id) and message.id in asked_later:
                return True
        elif told and _is_id(message.id):
            asked_later.add(message.id)
        elif message.method == _CANCELLED:
            told = told or message.params.get("requestId") == identifier
    return False


def _is_id(value: object) -> bool:
    """A server may send anything in its place."""
    return isinstance(value, int | str)


def _message(record: AnyRecord) -> Message:
    assert isinstance(record, Frame)  # the rule points at messages
    return decode(record.raw)
