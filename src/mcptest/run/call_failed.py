"""The failure of a test that got no answer, and which kind of failure an error of the peer is."""

from __future__ import annotations

from mcptest.model.errors import ErrorKind, PeerError


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
    if error.kind is ErrorKind.TIMEOUT:
        return "timeout"
    if error.kind in {ErrorKind.EXITED, ErrorKind.CLOSED, ErrorKind.CONNECTION_LOST}:
        return "crash"
    return "start" if error.kind is ErrorKind.SPAWN_FAILED else "call"
