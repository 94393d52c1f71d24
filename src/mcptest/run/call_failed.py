"""The failure of a test that got no answer it could use, and which kind of failure it is."""

from __future__ import annotations

from mcptest.model.errors import ErrorKind, PeerError
from mcptest.model.masking import Masker
from mcptest.model.message import Kind, Message
from mcptest.model.show import show
from mcptest.peer.client import Reply


class CallFailed(Exception):  # noqa: N818 - a failure of the test, not an error of ours
    """There was no answer that could be checked."""

    def __init__(self, detail: str, kind: str, *, lost: bool = False) -> None:
        """`lost`: it was the connection that failed; another test should not use it."""
        super().__init__(detail)
        self.detail = detail
        self.kind = kind
        self.lost = lost


def kind_of(error: PeerError) -> str:
    """Which kind of failure an error of the peer is, as results name it."""
    if error.unusable:
        return "protocol"
    if error.kind is ErrorKind.TIMEOUT:
        return "timeout"
    if error.kind in {ErrorKind.EXITED, ErrorKind.CLOSED, ErrorKind.CONNECTION_LOST}:
        return "crash"
    return "start" if error.kind is ErrorKind.SPAWN_FAILED else "call"


def answered_twice(answer: Message, masker: Masker) -> str:
    """That a request had an answer already when this one came."""
    text = answer.raw.decode("utf-8", "backslashreplace")
    shown = show(masker.cut_text(text), 200)
    return f"a request was answered twice; the second answer is ignored: {shown}"


def remarks_on(reply: Reply, failing: str, *, lenient: bool) -> list[str]:
    """What is odd about the form of an answer. CallFailed when no client should take it."""
    faults = reply.faults
    is_none = reply.message.kind is Kind.INVALID
    if faults.refused and (is_none or not lenient):
        detail = f"{failing}: the answer is malformed: {faults.refused}"
        raise CallFailed(detail, "protocol", lost=is_none)
    about = failing.removesuffix(" failed")
    return [
        f"{about}: the answer is {how}: {words}"
        for how, words in (("malformed", faults.refused), ("doubtful", faults.warned))
        if words
    ]
