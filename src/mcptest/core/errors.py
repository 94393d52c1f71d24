"""What can go wrong, as values: a kind for programs, a sentence and a remedy for people.

Nothing in here decides a verdict. An error that a peer caused becomes a finding or exit code 3;
one that the user caused becomes exit code 2.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable
from typing import ClassVar, Self


class ExitCode(enum.IntEnum):
    """The contract of the command line."""

    OK = 0
    FAILED = 1
    USAGE = 2
    UNREACHABLE = 3
    NOTHING_MATCHED = 4
    INTERRUPTED = 130


class ErrorKind(enum.Enum):
    """Why a peer could not be talked to, or what it sent that could not be used."""

    SPAWN_FAILED = "spawn-failed"
    EXITED = "exited"
    TIMEOUT = "timeout"
    CLOSED = "closed"
    CONNECTION_REFUSED = "connection-refused"
    CONNECTION_LOST = "connection-lost"
    NAME_NOT_FOUND = "name-not-found"
    TLS = "tls"
    HTTP_STATUS = "http-status"
    BAD_HTTP = "bad-http"
    BAD_CONTENT_TYPE = "bad-content-type"
    BAD_SSE = "bad-sse"
    TRUNCATED = "truncated"
    LINE_TOO_LONG = "line-too-long"
    EVENT_TOO_LARGE = "event-too-large"
    BODY_TOO_LARGE = "body-too-large"
    HEADERS_TOO_LARGE = "headers-too-large"
    DECOMPRESSION_BOMB = "decompression-bomb"
    REDIRECT_REFUSED = "redirect-refused"
    ADDRESS_REFUSED = "address-refused"
    NOT_A_MESSAGE = "not-a-message"
    VERSION_REFUSED = "version-refused"
    PAGES_EXCEEDED = "pages-exceeded"
    PAGES_REPEATED = "pages-repeated"
    CAPTURE_FULL = "capture-full"
    PROTOCOL = "protocol"


GONE = frozenset({ErrorKind.EXITED, ErrorKind.CLOSED, ErrorKind.CONNECTION_REFUSED})
"""Of a peer that nothing more can be asked of."""


class McptestError(Exception):
    """An error that renders itself: what happened, then what to do next."""

    exit_code: ClassVar[ExitCode] = ExitCode.FAILED

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def masked(self, mask: Callable[[str], str]) -> Self:
        """The same error in words that may be shown; a peer's own words may hold secrets."""
        self.message = mask(self.message)
        self.hint = mask(self.hint)
        self.args = (self.message,)
        return self


class UsageError(McptestError):
    """The user's input can't be used. Nothing was run."""

    exit_code = ExitCode.USAGE


class PeerError(McptestError):
    """The peer could not be reached, went away, or broke a limit."""

    exit_code = ExitCode.UNREACHABLE

    def __init__(
        self, kind: ErrorKind, message: str, *, hint: str = "", unusable: bool = False
    ) -> None:
        """`unusable`: something came in place of an answer, and it could not be used as one."""
        super().__init__(message, hint=hint)
        self.kind = kind
        self.unusable = unusable


def was_interrupted(kind: type[BaseException] | None) -> bool:
    """Whether we were stopped from outside; what a peer did to end the session is no such thing."""
    return kind is not None and not issubclass(kind, McptestError)


def close_matches(wanted: str, known: Iterable[str], n: int = 3, cutoff: float = 0.6) -> list[str]:
    """The nearest first, at most `n`. `cutoff` is from 0, anything, to 1, the very same."""
    import difflib  # only those who misspell pay for it

    return difflib.get_close_matches(wanted, list(known), n, cutoff)
