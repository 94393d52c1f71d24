"""What is asked over a connection, while it is under way and once it is answered."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import msgspec

from mcptest.model.capture import AnyRecord, Trouble
from mcptest.model.limits import MEBIBYTE
from mcptest.model.message import ABSENT, Message
from mcptest.model.show import show
from mcptest.peer.pending import Pending
from mcptest.run.compliance.tape import Tape
from mcptest.suite.check_forms import Check
from mcptest.suite.exchange_targets import Exchange

_BODY_KEPT = MEBIBYTE
"""Of a response's body: no check looks further into one, and each exchange keeps its own."""


class Asked(msgspec.Struct, frozen=True):
    """One thing that was sent and what came of it. The bytes are for people, headers included."""

    exchange: Exchange
    sent: bytes
    received: bytes
    identifier: Any = ABSENT
    answers: tuple[Message, ...] = ()
    """Every answer that came: to a batch there are several."""
    seconds: float = 0.0
    stream: int | None = None
    """The HTTP exchange that carried it."""
    cut_short: bool = False
    """A request got no answer, and less than the timeout was waited for one."""
    unusable: str = ""
    """What came in place of the answer, in words."""


class Started(msgspec.Struct):
    """A check that is under way; `Conversation.finish` collects what came of it."""

    check: Check
    waiting: tuple[Pending, ...] = ()
    """Whoever may be answered: one request, or several ids for bytes that were sent as they are."""
    body: bytes = b""
    stream: int | None = None
    at: float = 0.0
    place: int = 0
    notifications: int = 0
    asked: int = 0
    wants_all: bool = False
    """A batch: every id is waited for."""
    cut_short: bool = False
    """It was taken back before the timeout was over."""

    @property
    def identifier(self) -> Any:
        return self.waiting[0].id if self.waiting else ABSENT

    @property
    def done(self) -> bool:
        done = [one.done for one in self.waiting]
        return all(done) if self.wants_all else any(done)


class Said(msgspec.Struct, frozen=True):
    """One thing that was done on a connection, as it is done again on another."""

    act: Literal["start", "finish", "notify", "give_up"]
    started: Started
    identifier: Any = ABSENT


def trouble_of(records: Sequence[AnyRecord], stream: int | None) -> str:
    """The first thing that went wrong with an HTTP exchange, in words."""
    if stream is None:
        return ""
    troubles = (one for one in records if isinstance(one, Trouble) and one.stream == stream)
    return show(next((one.detail for one in troubles), ""), 300)


def input_requests(result: Any) -> Sequence[Any]:
    """What an input-required result asks for."""
    if not isinstance(result, dict) or result.get("resultType") != "input_required":
        return ()
    asked = result.get("inputRequests")
    return tuple(asked.values()) if isinstance(asked, dict) else ()


def body_text(bodies: Iterable[bytes]) -> str:
    """The body of a response as a text, as far as anyone looks into it."""
    kept: list[bytes] = []
    left = _BODY_KEPT
    for body in bodies:
        kept.append(body[:left])
        left -= len(kept[-1])
        if not left:
            break
    return b"\n".join(kept).decode("utf-8", "backslashreplace")


def http_facts(tape: Tape, stream: int) -> dict[str, Any]:
    """Status, headers and body of a response that has come."""
    response, trouble = tape.responses[stream], tape.troubles.get(stream)
    text = body_text(frame.raw for frame in tape.bodies.get(stream, ()))
    text = text or (trouble.excerpt if trouble else "")
    headers = {name.lower(): value for name, value in response.headers}
    return {"status": response.status, "headers": headers, "body": text}
