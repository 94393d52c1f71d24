"""A server as a child process: one message per line on its stdin and stdout.

Nothing in here waits but one `poll`, bounded by the caller's deadline. stderr is always drained,
so a talkative server can't stall, and whatever the server does has an end: its death is noticed
through a process descriptor even when a grandchild keeps the pipes open.
"""

from __future__ import annotations

import fcntl
import os
import select
import sys
import termios
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from mcptest.core.capture import (
    FORCED,
    AnyRecord,
    Exited,
    Frame,
    Note,
    Stderr,
    Step,
    TransportName,
    Trouble,
)
from mcptest.core.errors import ErrorKind, PeerError
from mcptest.core.limits import DEFAULT_LIMITS, Deadline, Limits
from mcptest.core.redaction import redaction
from mcptest.core.safe_text import show
from mcptest.transport.base import LARGE_BYTES, NO_HEADERS, Clock, Sink, large_messages
from mcptest.transport.process import REAP_SECONDS, ExitStatus, ServerProcess
from mcptest.transport.recorder import LateOutput, last_line
from mcptest.wire.lines import Line, LineReader, LineTooLong

# -- What a server says on stderr ----------------------------------------------------------------

RECORDED_BYTES = 1024 * 1024
"""How much of it becomes records. The rest is counted in one note."""
LINE_BYTES = 16 * 1024
KEPT_OF_A_LONG_LINE = 1024
TAIL_LINES = 12
_HALF_A_SECRET = 2_048
"""Characters with which a tail may begin whose beginning was cut off: no secret is longer."""


class StderrLog:
    """Turns chunks of stderr into records, in bounded memory."""

    def __init__(self, limits: Limits) -> None:
        self._tail_bytes = limits.stderr_tail_bytes
        self._tail = bytearray()
        self._was_cut = False
        self._lines = LineReader(LINE_BYTES, KEPT_OF_A_LONG_LINE)
        self._budget = RECORDED_BYTES
        self._left_out_bytes = 0
        self._left_out_lines = 0

    def feed(self, chunk: bytes, t: float) -> list[AnyRecord]:
        self._tail += chunk
        if len(self._tail) > 2 * self._tail_bytes:  # cut seldom, so that it stays linear
            del self._tail[: -self._tail_bytes]
            self._was_cut = True
        if self._budget <= 0:
            self._left_out_bytes += len(chunk)
            self._left_out_lines += chunk.count(b"\n")
            return []
        self._budget -= len(chunk)
        return [_record_of(line, t) for line in self._lines.feed(chunk)]

    def finish(self, t: float) -> list[AnyRecord]:
        """The last line if it had no newline, and how much was not recorded."""
        records: list[AnyRecord] = []
        rest = self._lines.finish()
        if rest:
            records.append(_record_of(rest, t))
        if self._left_out_bytes:
            text = (
                f"{self._left_out_bytes} bytes of stderr in {self._left_out_lines} lines were left "
                f"out after the first {RECORDED_BYTES} bytes"
            )
            records.append(Note(t=t, text=text))
            self._left_out_bytes = self._left_out_lines = 0
        return records

    def tail(self, lines: int = TAIL_LINES) -> list[str]:
        """The last lines, each safe to show to people."""
        text = redaction.text(bytes(self._tail).decode("utf-8", "replace"))
        if self._was_cut:
            text = text[_HALF_A_SECRET:]
        last = [line.rstrip() for line in text.splitlines()[-2 * lines :]]
        return [show(line) for line in last if line][-lines:]


def _record_of(line: Line, t: float) -> Stderr:
    if isinstance(line, LineTooLong):
        text = line.head.decode("utf-8", "backslashreplace") + "… (a long line was cut here)"
    else:
        text = line.removesuffix(b"\r").decode("utf-8", "backslashreplace")
    return Stderr(t=t, text=text)


# -- A server as a child process -----------------------------------------------------------------

READ_BYTES = 64 * 1024
"""A pipe holds no more, and a larger buffer is mapped afresh for each read: half the speed."""
DRAIN_SECONDS = 0.25
"""How long a dead server's pipes are read on when a descendant still holds them open."""
DRAIN_READS = 16
"""How often they are read in any case: a full pipe is empty before that."""
EXIT_GRACE_SECONDS = 0.5
"""A closed pipe is most often the first sign of an exit: how long we wait to know."""
CLOSE_BYTES = 32 * 1024 * 1024
"""What a server may still say once its stdin is closed: whoever says more is not about to end."""
MESSAGE_BYTES = 1024
"""What a message counts at least, however short: each is kept, and looked at."""
TURN_SECONDS = 0.05
"""How often the process is looked at where the system has no process descriptors."""
GLANCE_SECONDS = 0.0002
"""An answer that comes within this time is taken without going to sleep, see `_glance`."""
MOST_SKIPPED_GLANCES = 32
INBOX_BYTES = 8 * 1024 * 1024
INBOX_RECORDS = 100_000
"""What may pile up while we can't hand it out: then the server's output has to wait."""

UNFINISHED_KEPT = 64 * 1024
"""How much of an unfinished line is told to whoever asks what came."""

_yield_processor: Callable[[], None] = getattr(os, "sched_yield", lambda: time.sleep(0))


def unread_bytes(pipe: int) -> int:
    """How much of what was written to a pipe nobody has read yet."""
    return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder)


class Stdio:
    """A transport over the pipes of a process that it starts, unless it is given one, and ends."""

    name: TransportName = "stdio"

    def __init__(
        self,
        command: Sequence[str],
        *,
        sink: Sink,
        env: Mapping[str, str] = NO_HEADERS,
        cwd: str | None = None,
        clean_env: bool = False,
        limits: Limits = DEFAULT_LIMITS,
        process: ServerProcess | None = None,
    ) -> None:
        self._command = tuple(command)
        self._env = env
        self._cwd = cwd
        self._clean_env = clean_env
        self._limits = limits
        self._sink = sink
        self._clock = Clock()
        self._process = process
        self._stdin: int | None = None
        self._stdout: int | None = None
        self._stderr: int | None = None
        self._poll = select.poll()
        self._lines = LineReader(limits.message_bytes)
        self._log = StderrLog(limits)
        self._inbox: list[AnyRecord] = []
        self._inbox_bytes = 0
        self._unsent = b""
        self._said: set[str] = set()
        self._paused = False
        self._failed_glances = 0
        self._skip_glances = 0
        self._status: ExitStatus | None = None
        self._gone = False
        self._closed = False
        self._step: Step = ""
        self._late = LateOutput()
        self._reads_large = False
        self._said_meanwhile = 0

    @property
    def pid(self) -> int | None:
        """The id of the server process, once it was started."""
        return self._process.pid if self._process else None

    @property
    def has_exited(self) -> bool:
        """Whether the process has ended, as far as can be told without waiting."""
        return self._process is not None and self._process.status() is not None

    @property
    def is_clogged(self) -> bool:
        """Whether a line of ours could not be written to its end: the server does not read."""
        return bool(self._unsent)

    @property
    def has_unread_input(self) -> bool:
        """Whether the server has not read all that was written to it; False where nobody knows."""
        if self._unsent:
            return True
        try:
            return self._stdin is not None and unread_bytes(self._stdin) > 0
        except OSError:
            return False

    def open(self, deadline: Deadline) -> None:
        """Start the process. Whether it speaks is found out by talking to it."""
        process = self._process or ServerProcess(
            self._command, self._env, self._cwd, clean_env=self._clean_env
        )
        self._process = process
        self._stdin, self._stdout, self._stderr = process.stdin, process.stdout, process.stderr
        self._poll.register(self._stdout, select.POLLIN)
        self._poll.register(self._stderr, select.POLLIN)
        if process.pidfd is not None:
            self._poll.register(process.pidfd, select.POLLIN)

    # Sending

    def send(
        self, payload: bytes, deadline: Deadline, headers: Mapping[str, str] = NO_HEADERS
    ) -> int | None:
        """Write one line. There are no headers on a pipe."""
        if self._unsent or self._stdin is None:
            self._finish_last_line(deadline)
        self._sink(Frame(t=self._clock(), sender="client", raw=payload))
        self._write(payload + b"\n", deadline)
        return None

    def send_many(self, payloads: Iterable[bytes], deadline: Deadline) -> None:
        """Write several lines with one system call."""
        if self._unsent or self._stdin is None:
            self._finish_last_line(deadline)
        lines: list[bytes] = []
        t = self._clock()
        for payload in payloads:
            self._sink(Frame(t=t, sender="client", raw=payload))
            lines.append(payload)
        self._write(b"\n".join((*lines, b"")), deadline)

    def _finish_last_line(self, deadline: Deadline) -> None:
        """Half a line on the pipe would spoil every line after it."""
        if self._stdin is None:
            raise self._why_unwritable(deadline)
        unsent, self._unsent = self._unsent, b""
        self._write(unsent, deadline)

    def _write(self, data: bytes, deadline: Deadline) -> None:
        rest: bytes | memoryview = data
        while True:
            assert self._stdin is not None
            try:
                written = os.write(self._stdin, rest)
            except BlockingIOError:
                written = 0
            except OSError:  # most often EPIPE
                raise self._why_unwritable(deadline) from None
            if written == len(rest):
                return
            rest = memoryview(rest)[written:]
            if deadline.expired:
                self._unsent = bytes(rest)
                message = (
                    f"the server does not read its stdin: {len(rest)} bytes could not be written "
                    f"within {deadline.limit:g}s"
                )
                raise PeerError(ErrorKind.TIMEOUT, f"{message}{self._in_detail()}")
            # Go on reading meanwhile: with both pipes full, each side would wait for the other.
            poll = select.poll()
            poll.register(self._stdin, select.POLLOUT)
            for descriptor in (self._stderr, self._pidfd, None if self._paused else self._stdout):
                if descriptor is not None:
                    poll.register(descriptor, select.POLLIN)
            self._turn(poll, deadline)

    def _why_unwritable(self, deadline: Deadline) -> PeerError:
        """The pipe to the server is broken: it is dead, or it closed its stdin and lives on."""
        if self._closed or self._process is None:
            return PeerError(ErrorKind.CLOSED, "the connection to the server is not open")
        self._stdin = None
        self._await_exit(deadline.within(EXIT_GRACE_SECONDS))
        return self._exit_error() if self._gone else self._closed_error("stdin")

    # Receiving

    def receive(self, deadline: Deadline) -> list[AnyRecord]:
        """What the server said on stdout and stderr, and at last how it ended."""
        if self._reads_large and self._lines.held <= LARGE_BYTES:
            self._leave_large()
        while not self._inbox:
            if self._gone:
                raise self._exit_error()
            if self._stdout is None:
                self._meet_closed_stdout(deadline)
            elif self._skip_glances or not self._glance():
                self._skip_glances -= 1
                self._turn(self._poll, deadline)
            if not self._inbox and deadline.expired:
                return []
        inbox, self._inbox = self._inbox, []
        self._inbox_bytes = 0
        if self._paused:
            self._resume()
        return inbox

    def _meet_closed_stdout(self, deadline: Deadline) -> None:
        if self._closed or self._process is None:
            raise PeerError(ErrorKind.CLOSED, "the connection to the server is not open")
        self._await_exit(deadline.within(0 if "stdout" in self._said else EXIT_GRACE_SECONDS))
        if not self._gone and not self._inbox:
            error = self._closed_error("stdout")
            if not self._inbox:  # the record of it goes out first
                raise error

    def _await_exit(self, deadline: Deadline, most_bytes: int | None = None) -> None:
        """Until the deadline; no longer than for so much on stdout, before it is forced."""
        self._said_meanwhile = 0
        while not self._gone:
            self._turn(self._poll, deadline)
            if deadline.expired:
                return
            if most_bytes is not None and self._said_meanwhile > most_bytes:
                return

    def _glance(self) -> bool:
        """Look for an answer for a moment before we sleep; whether anything came.

        A quick server answers in less time than the system needs to put us to sleep and to wake
        us: this triples the calls per second. With a slow one we stop trying, and try again later.
        """
        until = time.monotonic() + GLANCE_SECONDS
        while True:
            events = self._poll.poll(0)
            if events:
                self._failed_glances = 0
                self._take_in(events)
                return True
            if time.monotonic() > until:
                self._failed_glances = min(2 * self._failed_glances + 1, MOST_SKIPPED_GLANCES)
                self._skip_glances = self._failed_glances
                return False
            _yield_processor()

    def _turn(self, poll: select.poll, deadline: Deadline) -> None:
        """Wait once, then take in whatever is there."""
        timeout = max(0.0, deadline.at - time.monotonic())
        if self._pidfd is None and self._status is None:
            timeout = min(timeout, TURN_SECONDS)
        self._take_in(poll.poll(timeout * 1000))
        if self._pidfd is None and self._status is None:
            self._meet_exit()
        if self._closed:  # nobody will ask for it; the sink has it
            if self._reads_large and self._lines.held <= LARGE_BYTES:
                self._leave_large()
            self._inbox.clear()
            self._inbox_bytes = 0

    def _take_in(self, events: list[tuple[int, int]]) -> None:
        for descriptor, _ in events:
            if descriptor == self._stdout:
                self._read_stdout(descriptor)
            elif descriptor == self._stderr:
                self._read_stderr(descriptor)
            elif descriptor == self._pidfd:
                self._meet_exit()

    @property
    def _pidfd(self) -> int | None:
        return self._process.pidfd if self._process else None

    def _read_stdout(self, descriptor: int) -> None:
        if self._lines.held > LARGE_BYTES and not self._may_read_large():
            return
        try:
            chunk = os.read(descriptor, READ_BYTES)
        except BlockingIOError:
            return
        if not chunk:
            self._end_stdout()
            return
        if self._step in FORCED:
            self._late.add(chunk)
            return
        before = len(self._inbox)
        t = self._clock()
        sink = self._sink
        keep = self._inbox.append
        for line in self._lines.feed(chunk):
            record = (
                Frame(t=t, sender="server", raw=line)
                if type(line) is bytes
                else self._refused(line)  # type: ignore[arg-type]  # mypy misses `type() is`
            )
            sink(record)
            keep(record)
        self._inbox_bytes += len(chunk)
        self._said_meanwhile += len(chunk) + MESSAGE_BYTES * (len(self._inbox) - before)
        if self._inbox_bytes > INBOX_BYTES or len(self._inbox) > INBOX_RECORDS:
            self._relieve_inbox()

    def _may_read_large(self) -> bool:
        """Whether it is our turn; a dead server's last words are always read, they are not many."""
        if self._status is not None:
            return True
        self._reads_large = large_messages.may_read(self)
        return self._reads_large

    def _leave_large(self) -> None:
        """The large message that was handed out is done with, or nobody will read on."""
        self._reads_large = False
        large_messages.leave(self)

    def _refused(self, line: LineTooLong) -> Trouble:
        detail = (
            f"a line on stdout is longer than {self._limits.message_bytes} bytes "
            f"({line.size} so far); it is skipped up to its newline"
        )
        return self._trouble(ErrorKind.LINE_TOO_LONG, detail, line.head)

    def _end_stdout(self) -> None:
        """No more lines will come. A rest without a newline is shown, and said to be one."""
        if self._stdout is None:
            return
        if not self._paused:
            self._poll.unregister(self._stdout)
        self._stdout = None
        self._settle_last_line()
        self._keep(*self._late.records(self._clock()))

    def _settle_last_line(self) -> None:
        rest = self._lines.finish()
        detail = f"stdout ended in the middle of a line, after {len(rest)} bytes"
        self._keep(*last_line(rest, self._step, self._clock(), detail))

    def _read_stderr(self, descriptor: int) -> None:
        try:
            chunk = os.read(descriptor, READ_BYTES)
        except BlockingIOError:
            return
        if not chunk:
            self._poll.unregister(descriptor)
            self._stderr = None
        t = self._clock()
        self._keep(*(self._log.feed(chunk, t) if chunk else self._log.finish(t)))

    def _relieve_inbox(self) -> None:
        """Too much waits to be handed out: leave the rest in the pipe, so that memory is bounded.

        A dead server can't flood us.
        """
        if self._inbox and self._status is None and not self._paused:
            assert self._stdout is not None
            self._poll.unregister(self._stdout)
            self._paused = True

    def _resume(self) -> None:
        self._paused = False
        if self._stdout is not None:
            self._poll.register(self._stdout, select.POLLIN)

    # The end of the server

    def _meet_exit(self) -> None:
        """The process may be dead: read what it left in the pipes, then record how it ended."""
        assert self._process is not None
        status = self._process.status()
        if status is None or self._status is not None:
            return
        self._status = status
        if self._pidfd is not None:
            self._poll.unregister(self._pidfd)
        if self._paused:
            self._resume()
        grace = Deadline.after(0 if self._closed else DRAIN_SECONDS)
        reads = 0
        while {self._stdout, self._stderr} != {None} and (reads < DRAIN_READS or not grace.expired):
            if not self._poll.poll(grace.remaining() * 1000):
                break  # a descendant holds the pipe and is silent
            self._turn(self._poll, grace)
            reads += 1
        self._end_stdout()
        t = self._clock()
        exited = Exited(t=t, code=status.code, signal=status.signal, after=self._step)
        self._keep(*self._log.finish(t), exited)
        self._gone = True

    def close(self, deadline: Deadline) -> None:
        """Close its stdin, then SIGTERM, then SIGKILL; then end whatever it left behind."""
        process = self._process
        was_closed, self._closed, self._stdin = self._closed, True, None
        if was_closed or process is None:
            return
        try:
            process.note_descendants()
            self._meet_exit()
            self._escalate(process, deadline)
        except BaseException:  # an interrupt, or a sink that failed: nothing may stay behind
            process.kill()
            raise
        finally:
            left = process.release(deadline, politely=self._step != "kill")
            self._stdout = self._stderr = None
            self._leave_large()
        if not self._gone or left:
            who = "the server" if not self._gone else f"{len(left)} processes of the server"
            detail = f"{who} survived SIGKILL"
            self._keep(self._trouble(ErrorKind.TIMEOUT, detail))

    def _escalate(self, process: ServerProcess, deadline: Deadline) -> None:
        if self._paused:
            self._resume()
        kill_by = max(deadline, Deadline.after(REAP_SECONDS), key=lambda each: each.at)
        steps: tuple[tuple[Step, Callable[[], None]], ...] = (
            ("stdin-closed", process.hang_up),
            ("terminate", process.terminate),
            ("kill", process.kill),
        )
        for step, act in steps:
            if self._gone:
                return
            self._step = step
            if step in FORCED:
                self._settle_last_line()
            act()
            # a process that is stopped, or does not read, can't see the end of its stdin
            is_blind = process.is_stopped or self.is_clogged
            share = 0.0 if step == "stdin-closed" and is_blind else 0.5
            patience = deadline.within(deadline.remaining() * share)
            self._await_exit(kill_by if step == "kill" else patience, CLOSE_BYTES)

    # Words

    @property
    def unfinished(self) -> bytes:
        """How a line on stdout begins whose newline is still missing."""
        return self._lines.beginning(UNFINISHED_KEPT)

    def partial(self) -> str:
        """What has come of a line that is not complete, and why no more comes, as a clause."""
        clauses = []
        if half := self.unfinished:
            held = self._lines.held
            clauses.append(f"stdout ends in the middle of a line, after {held} bytes: {show(half)}")
        if self._process is not None and not self._gone and self._process.is_stopped:
            clauses.append("the server process is stopped (SIGSTOP or the like)")
        return "; ".join(clauses)

    def condition(self) -> str:
        """What else is known, as lines to append to a message: what it said on stderr."""
        return "".join(f"\n  stderr: {line}" for line in self._log.tail())

    def _in_detail(self) -> str:
        partial = self.partial()
        return (f"\n  {partial}" if partial else "") + self.condition()

    def _exit_error(self) -> PeerError:
        silent = "" if self._log.tail(1) else " and wrote nothing to stderr"
        return PeerError(ErrorKind.EXITED, f"the server {self._status}{silent}{self._in_detail()}")

    def _closed_error(self, which: str) -> PeerError:
        message = f"the server closed its {which} but is still running"
        if which not in self._said:
            self._said.add(which)
            self._keep(self._trouble(ErrorKind.CLOSED, message))
        return PeerError(ErrorKind.CLOSED, f"{message}{self._in_detail()}")

    def _trouble(self, kind: ErrorKind, detail: str, excerpt: bytes = b"") -> Trouble:
        return Trouble(t=self._clock(), error=kind.value, detail=detail, excerpt=show(excerpt))

    def _keep(self, *records: AnyRecord) -> None:
        for record in records:
            self._sink(record)
            self._inbox.append(record)
