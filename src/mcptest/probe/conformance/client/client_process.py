"""The client under test as a process: watched on a loop, heard in bounded memory, ended in time."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path

from mcptest.core.capture import AnyRecord, Closed, Note
from mcptest.core.limits import MEBIBYTE, Deadline
from mcptest.core.safe_text import show
from mcptest.core.scenario_outcome import Ended
from mcptest.servers.scripted.recording import KEPT_RECORDS
from mcptest.servers.scripted.script import DEFECT
from mcptest.transport.capture_file import open_capture
from mcptest.transport.files import replace_file
from mcptest.transport.loop import GONE, READ, Loop
from mcptest.transport.process import ExitStatus, ServerProcess
from mcptest.transport.recorder import PARTIAL
from mcptest.transport.temporary import new_folder, remove_folder

KEPT_BYTES = 64 * 1024
LINE_LETTERS = 2_000
TERMINATE_SECONDS = 2.0
"""What a client has to leave after SIGTERM, before SIGKILL."""
LEAVE_SECONDS = 2.0
"""What a client has to leave by itself once the scenario has seen all that it waits for."""
RELEASE_SECONDS = 2.0
QUIET_ROUNDS = 2_000
"""How much may still be dealt with of what a client sent before it ended."""
LOOK_SECONDS = 0.2
"""How often the one is asked who may stop the run; and the process, where nobody can be woken."""
_CHUNK = 64 * 1024


class Tail:
    """The last of what a client wrote, whatever the amount."""

    def __init__(self) -> None:
        self._kept = bytearray()
        self._cut = 0

    def add(self, chunk: bytes) -> None:
        self._kept += chunk
        if len(self._kept) > 2 * KEPT_BYTES:  # cut seldom, so that it stays linear
            self._cut += len(self._kept) - KEPT_BYTES
            del self._kept[:-KEPT_BYTES]

    def text(self) -> str:
        """Line by line, made safe to show."""
        kept = bytes(self._kept[-KEPT_BYTES:])
        cut = self._cut + len(self._kept) - len(kept)
        lines = kept.decode("utf-8", "backslashreplace").split("\n")
        text = "\n".join(show(line.removesuffix("\r"), LINE_LETTERS) for line in lines)
        return f"(the first {cut} bytes were left out)\n{text}" if cut else text


class ClientProcess:
    """Stops the loop when the client has ended, however it does."""

    def __init__(
        self,
        loop: Loop,
        command: Sequence[str],
        env: Mapping[str, str],
        cwd: str | None,
        timeout: float,
        should_stop: Callable[[], bool],
        *,
        clean_env: bool = False,
    ) -> None:
        """Starts it. Raises PeerError when that can't be done."""
        self._loop = loop
        self._should_stop = should_stop
        self.ended_for = ""
        """Why we ended it: `timeout`, `interrupt`, or `settled` when the scenario had seen all that
        it waits for. Empty when it ended by itself."""
        self._process = ServerProcess(command, env, cwd, clean_env=clean_env)
        self.stdout, self.stderr = Tail(), Tail()
        self._status: ExitStatus | None = None
        self._watch(self._process.stdout, self.stdout)
        self._watch(self._process.stderr, self.stderr)
        if self._process.pidfd is not None:
            loop.watch(self._process.pidfd, READ, lambda events: self._look())
        loop.after(timeout, partial(self._end, "timeout"))
        loop.after(LOOK_SECONDS, self._look_around)

    @property
    def ended(self) -> Ended:
        status = self._status or ExitStatus()
        return Ended(code=status.code, signal=status.signal, timed_out=self.ended_for == "timeout")

    def may_leave(self) -> None:
        """All has been seen. A client that stays is ended after a while."""
        self._loop.after(LEAVE_SECONDS, partial(self._end, "settled"))

    def run(self) -> None:
        """Until it has ended; what it sent before that is still read."""
        try:
            self._loop.run()
            self._loop.run_until_quiet(QUIET_ROUNDS)
        finally:
            self._release()

    def _release(self) -> None:
        """End what it left behind, and let go of it."""
        process = self._process
        for descriptor in (process.stdout, process.stderr, process.pidfd):
            if descriptor is not None:
                self._loop.ignore(descriptor)
        if self._status is None:
            process.kill()
        process.release(Deadline.after(RELEASE_SECONDS), politely=True)

    def _watch(self, descriptor: int, tail: Tail) -> None:
        def readable(events: int) -> None:
            try:
                chunk = os.read(descriptor, _CHUNK)
            except BlockingIOError:
                ended = bool(events & GONE)
            except OSError:
                ended = True
            else:
                tail.add(chunk)
                ended = not chunk
            if ended:
                self._loop.ignore(descriptor)

        self._loop.watch(descriptor, READ, readable)

    def _look(self) -> None:
        self._status = self._process.status()
        if self._status is not None:
            if self._process.pidfd is not None:
                self._loop.ignore(self._process.pidfd)
            self._loop.stop()

    def _look_around(self) -> None:
        self._look()
        if self._status is None:
            if self._should_stop():
                self._end("interrupt")
            self._loop.after(LOOK_SECONDS, self._look_around)

    def _end(self, why: str) -> None:
        """The whole group: politely, then not. Once it is being ended, that is why."""
        if not self.ended_for and self._status is None:
            self.ended_for = why
            self._process.note_descendants()
            self._process.terminate()
            self._loop.after(TERMINATE_SECONDS, self._kill)

    def _kill(self) -> None:
        self._process.kill()
        # One that can't even be killed, as in a broken file system, must not keep us.
        self._loop.after(TERMINATE_SECONDS, self._loop.stop)


# -- The server that a stdio client launches itself ----------------------------------------------

_FIRST = "session.jsonl"


class LaunchedServer:
    """A command for the client, and the folder where the launched servers leave their captures."""

    def __init__(self, scenario: str, revision: str, capabilities: str) -> None:
        """`revision` is the one that was asked for, or `auto`."""
        self._folder = Path(new_folder("mcptest-client-"))
        self.command: tuple[str, ...] = (
            # -P: the client's folder may hold modules with the names of ours
            *(sys.executable, "-P", "-m", "mcptest", "serve", "--scenario", scenario),
            *("--transport", "stdio", "--spec-version", revision, "--capabilities", capabilities),
            *("--capture", str(self._folder / _FIRST)),
        )

    def __enter__(self) -> LaunchedServer:
        return self

    def __exit__(self, *exception: object) -> None:
        remove_folder(self._folder)

    @property
    def was_launched(self) -> bool:
        return any(self._folder.iterdir())

    def records(self) -> list[AnyRecord]:
        """Of all launches, one after the other; of a client that floods, how it began.

        What is left out is counted as dropped, so that no check passes on what was not judged.
        """
        everything = (
            record
            for file in self._captures()
            for session in open_capture(str(file))
            for _, record in session.records
        )
        kept = list(islice(everything, KEPT_RECORDS))
        if len(kept) < KEPT_RECORDS:
            return kept
        # Each record is a line. To read them all takes longer than the client had.
        dropped = sum(map(_lines_in, self._captures())) - len(kept)
        if dropped > 0:
            kept.append(Closed(t=kept[-1].t, records=len(kept), dropped=dropped))
        return kept

    def keep(self, place: Path) -> None:
        """Put the captures of all launches in one file."""
        captures = self._captures()
        if captures:
            replace_file(place, b"".join(file.read_bytes() for file in captures))

    def _captures(self) -> list[Path]:
        """In the order of the launches; one that was killed has left what it had by then."""
        names = {file.name.removesuffix(PARTIAL) for file in self._folder.iterdir()}
        found = []
        for name in sorted(names, key=lambda name: (len(name), name)):
            both = (self._folder / name, self._folder / f"{name}{PARTIAL}")
            found += [file for file in both if file.exists() and file.stat().st_size][:1]
        return found


def _lines_in(file: Path) -> int:
    with file.open("rb") as opened:
        return sum(block.count(b"\n") for block in iter(lambda: opened.read(MEBIBYTE), b""))


def defect_in(records: Iterable[AnyRecord]) -> str:
    """What went wrong in the script, in whichever process; empty when nothing did."""
    for record in records:
        if isinstance(record, Note) and record.text.startswith(DEFECT):
            return record.text.removeprefix(DEFECT)
    return ""
