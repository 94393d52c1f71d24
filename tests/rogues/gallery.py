"""The misbehaving stdio servers as a table: what each one does, and what has to be seen of it.

The servers themselves are in `stdio/rogue.py`. The table is about the transport: which records
come and which error. Tests of whole commands run the same servers and have their own questions.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from mcptest.core.errors import ErrorKind

ROGUE = Path(__file__).parent / "stdio" / "rogue.py"
NOTIFICATION = (
    b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"flood"}}'
)
MESSAGE = b'{"jsonrpc":"2.0","method":"notifications/message","params":{"data":%s}}'


@dataclass(frozen=True, slots=True)
class Case:
    """One misbehaving server. What is not said is not looked at."""

    name: str
    family: str
    outcome: Literal["answered", "silence"] | ErrorKind = "answered"
    """Both requests are answered; or nothing more comes; or talking to it ends in this error."""
    phrase: str = ""
    """Is in the message of the error, or of a trouble."""
    frames: tuple[bytes, ...] = ()
    """Lines that the server wrote, exactly."""
    count: int = 0
    """How many lines came at least."""
    trouble: ErrorKind | None = None
    cut_off: str = ""
    """How that begins which it was still saying when it was told to end."""
    stderr: str = ""
    exit: int | str | None = None
    """The code, or the name of the signal."""
    after: str | None = None
    """How far we had to go to end it."""
    payload_bytes: int = 0
    """The size of a notification that the client sends first."""
    large: bool = False
    """Moves so many bytes that commands which run every case may want to leave it out."""


def command(case: Case) -> list[str]:
    """How the server is started. ROGUE_PIDS in its environment names a file for process ids."""
    return [sys.executable, "-I", "-S", str(ROGUE), case.name]


EXITED, CLOSED, TIMEOUT = ErrorKind.EXITED, ErrorKind.CLOSED, ErrorKind.TIMEOUT

CASES: tuple[Case, ...] = (
    Case("exits-at-once", "exit", EXITED, "exited with code 0", exit=0, after=""),
    Case(
        "exits-at-once-with-code",
        "exit",
        EXITED,
        "exited with code 3\n  stderr: fatal: no configuration file",
        stderr="fatal: no configuration file",
        exit=3,
        after="",
    ),
    Case("raises-at-import", "exit", EXITED, "stderr: ValueError: broken on purpose", exit=1),
    Case("killed-at-once", "exit", EXITED, "was killed by SIGKILL", exit="SIGKILL", after=""),
    Case("segfaults-at-once", "exit", EXITED, "was killed by SIGSEGV", exit="SIGSEGV", after=""),
    Case(
        "dies-mid-answer",
        "exit",
        EXITED,
        "in the middle of a line, after 25 bytes",
        frames=(b'{"jsonrpc":"2.0","id":1,"',),
        trouble=ErrorKind.TRUNCATED,
        exit=1,
    ),
    Case("dies-after-handshake", "exit", EXITED, "stderr: out of cheese", exit=7, after=""),
    Case("aborts-on-a-call", "exit", EXITED, "was killed by SIGABRT", exit="SIGABRT"),
    Case("exits-with-output-unread", "exit", EXITED, "exited with code 0", count=301, exit=0),
    Case(
        "answers-without-newline-and-exits",
        "exit",
        EXITED,
        "in the middle of a line",
        count=1,
        trouble=ErrorKind.TRUNCATED,
        exit=0,
    ),
    Case("never-answers", "silence", "silence", exit=0, after="stdin-closed"),
    Case(
        "answers-half-a-line",
        "silence",
        "silence",
        cut_off='{"jsonrpc":"2.0","id',
        exit="SIGTERM",
        after="terminate",
    ),
    Case("writes-one-byte-and-hangs", "silence", "silence", cut_off="{"),
    Case("stops-itself", "silence", "silence", exit="SIGTERM", after="terminate"),
    Case("answers-byte-by-byte", "silence", exit=0),
    Case("forgets-to-flush", "silence", "silence", count=1, exit=0, after="stdin-closed"),
    Case("banner-on-stdout", "noise", frames=(b"Rogue server v1.0 listening on stdio",), exit=0),
    Case("logs-on-stdout", "noise", frames=(b"INFO handling initialize", b"INFO done"), exit=0),
    Case(
        "colours-on-stdout",
        "noise",
        frames=("\x1b[32m✔ started\x1b[0m".encode(), b"::error::injected"),
    ),
    Case("blank-lines", "noise", count=2),
    # a newline is among the bytes
    Case("binary-garbage", "noise", frames=(bytes(range(10)), bytes(range(11, 256)))),
    Case("invalid-utf8", "noise", frames=(MESSAGE % b'"\xff\xfe\xc3"',)),
    Case("byte-order-mark", "noise", frames=(b"\xef\xbb\xbf" + NOTIFICATION,)),
    Case("carriage-returns", "noise", count=2),
    Case("nul-bytes", "noise", frames=(b"\0\0\0", NOTIFICATION.replace(b"flood", b"fl\0od"))),
    Case("utf16", "noise", "silence", count=1),
    Case("pretty-printed", "noise", "silence", frames=(b"{", b'  "jsonrpc": "2.0",', b"}")),
    Case("content-length-framing", "noise", "silence", count=1, trouble=ErrorKind.TRUNCATED),
    Case(
        "help-text-and-exit",
        "noise",
        EXITED,
        "arguments are required: --root",
        frames=(b"usage: rogue [-h] --root DIR",),
        exit=2,
    ),
    Case(
        "huge-line",
        "size",
        phrase="a line on stdout is longer than 16777216 bytes",
        trouble=ErrorKind.LINE_TOO_LONG,
        large=True,
    ),
    Case("endless-line", "size", "silence", trouble=ErrorKind.LINE_TOO_LONG, large=True),
    Case("large-answer", "size", count=2, large=True),
    Case("notification-flood", "size", frames=(NOTIFICATION,), count=200_002, large=True),
    Case("endless-notifications", "size", "silence", frames=(NOTIFICATION,), large=True),
    Case("tiny-lines", "size", frames=(b"x",), count=200_002, large=True),
    Case("server-request-flood", "size", count=10_002),
    Case("deep-json", "size", frames=(b"[" * 100_000 + b"]" * 100_000,)),
    Case("not-a-number", "json", frames=(MESSAGE % b"NaN",)),
    Case(
        "duplicate-keys",
        "json",
        frames=(b'{"jsonrpc":"2.0","method":"notifications/message","method":"other"}',),
    ),
    Case("huge-integer", "json", frames=(MESSAGE % (b"9" * 5000),)),
    Case("lone-surrogate", "json", frames=(MESSAGE % b'"\\ud800"',)),
    Case("stderr-flood", "stderr", stderr="warning: " + "y" * 118, large=True),
    Case("stderr-without-newline", "stderr", stderr="z" * 1024 + "… (a long line", large=True),
    Case("stderr-garbage", "stderr", stderr="::set-output name=a::b"),
    Case("stderr-closed", "stderr", exit=0),
    Case("stderr-endless", "stderr", "silence", stderr="spam", large=True),
    Case("secrets-on-stderr", "stderr", stderr="token sk-rogue-secret-0123456789"),
    Case(
        "stdout-closed-but-alive",
        "pipes",
        CLOSED,
        "closed its stdout but is still running",
        trouble=CLOSED,
        after="terminate",
    ),
    Case(
        "stdin-closed-but-alive",
        "pipes",
        CLOSED,
        "closed its stdin but is still running",
        trouble=CLOSED,
        count=1,
    ),
    Case(
        "stdin-never-read",
        "pipes",
        TIMEOUT,
        "does not read its stdin",
        payload_bytes=10_000_000,
        after="terminate",
    ),
    Case("writes-before-it-reads", "pipes", count=20_002, payload_bytes=10_000_000),
    Case(
        "closes-stdout-mid-flood",
        "pipes",
        CLOSED,
        "closed its stdout",
        frames=(NOTIFICATION, NOTIFICATION[:30]),
        count=5_001,
    ),
    Case("ignores-eof", "end", exit="SIGTERM", after="terminate"),
    Case("ignores-sigterm", "end", exit="SIGKILL", after="kill"),
    Case("floods-when-asked-to-end", "end", exit="SIGKILL", after="kill", large=True),
    Case("says-goodbye", "end", frames=(NOTIFICATION,), stderr="goodbye", after="stdin-closed"),
    Case("fails-at-the-end", "end", exit=9, after="stdin-closed"),
    Case("exits-on-sigterm-only", "end", exit=143, after="terminate"),
    Case("grandchild-holds-the-pipes", "family", EXITED, "exited with code 0", exit=0, after=""),
    Case(
        "grandchild-goes-on-writing",
        "family",
        EXITED,
        "exited with code 4",
        exit=4,
        after="",
        large=True,
    ),
    Case("grandchild-in-its-own-session", "family", exit=0),
    Case("grandchild-ignores-sigterm", "family", exit=0),
    Case("grandchild-in-its-own-group", "family", exit=0),
    Case("daemon", "family", exit=0),
    Case("daemon-without-environment", "family", exit=0),
    Case("family-of-four-generations", "family", exit=0),
    Case("zombie-children", "family", exit=0),
    Case("forks-when-terminated", "family", exit=0),
    Case("answers-twice", "protocol", count=3),
    Case("wrong-id", "protocol", "silence", count=1),
    Case("id-as-string", "protocol", "silence", count=1),
    Case("id-is-null", "protocol", "silence", count=1),
    Case(
        "answers-before-it-is-asked", "protocol", frames=(b'{"jsonrpc":"2.0","id":77,"result":{}}',)
    ),
    Case("result-and-error", "protocol", count=2),
    Case("batch-where-none-belongs", "protocol", "silence", count=1),
    Case(
        "answers-a-notification", "protocol", frames=(b'{"jsonrpc":"2.0","id":null,"result":{}}',)
    ),
    Case("no-jsonrpc-member", "protocol", count=2),
    Case("echoes-the-client", "protocol", "silence", count=1),
    Case("behaves", "well", exit=0, after="stdin-closed", count=2),
)
