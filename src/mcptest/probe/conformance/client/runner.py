"""One client in one scenario: the server is started, then the client, and then it is judged.

The client is a process: watched on a loop, heard in bounded memory, ended in time.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from mcptest.core.capture import AnyRecord, Closed, Note
from mcptest.core.errors import McptestError, PeerError
from mcptest.core.limits import MEBIBYTE, Deadline
from mcptest.core.redaction import redaction, secrets_of_command, secrets_of_environment
from mcptest.core.revision import Revision
from mcptest.core.safe_text import show
from mcptest.core.scenario_outcome import Ended, ScenarioResult
from mcptest.core.verdict import Side
from mcptest.probe.conformance.client.judged_client import judge_client
from mcptest.probe.conformance.client.scenario_server import recorded
from mcptest.probe.conformance.client.seen import SeenSession, offered_revisions
from mcptest.probe.conformance.scenario import Scenario
from mcptest.probe.conformance.scenario_runs import ScenarioRuns
from mcptest.servers.scripted.recording import KEPT_RECORDS, spoken_in, without_broken_off
from mcptest.servers.scripted.script import DEFECT, ScriptedSite
from mcptest.transport.capture_file import open_capture
from mcptest.transport.files import replace_file
from mcptest.transport.loop import GONE, READ, Loop
from mcptest.transport.process import ExitStatus, ServerProcess
from mcptest.transport.recorder import PARTIAL
from mcptest.transport.temporary import temporary_folder

INTERRUPTED = "interrupted"
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


class ClientOrder(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be run."""

    command: tuple[str, ...]
    scenario: Scenario[SeenSession]
    revision: Revision
    """What the client is told that the server speaks: the newest of it."""
    negotiates: bool = False
    """Nobody asked for the revision, so the server speaks every one that has the scenario."""
    shell: bool = False
    """Join the command with spaces and let a shell read it, as the official suite does."""
    transport: str = "http"
    timeout: float = 30.0
    env: Mapping[str, str] = {}
    cwd: str | None = None
    clean_env: bool = False
    capture: Path | None = None
    capabilities: str = "probe"
    claims: frozenset[str] = frozenset()
    repeat: str = ""

    @property
    def asked_for(self) -> str:
        return "auto" if self.negotiates else self.revision.value

    @property
    def offered(self) -> tuple[Revision, ...]:
        return offered_revisions(self.scenario, None if self.negotiates else self.revision)


# -- The client as a process -----------------------------------------------------------------------


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
        order: ClientOrder,
        words: Sequence[str],
        context: Mapping[str, Any],
        should_stop: Callable[[], bool],
    ) -> None:
        """Starts it, with words that say where the server is, and what else it is to know. Raises
        PeerError when that can't be done."""
        self._loop = loop
        self._should_stop = should_stop
        self.ended_for = ""
        """Why we ended it: `timeout`, `interrupt`, or `settled` when the scenario had seen all that
        it waits for. Empty when it ended by itself."""
        command = (*order.command, *words)
        if order.shell:
            command = ("/bin/sh", "-c", f"{' '.join(order.command)} {shlex.join(words)}")
        env = _environment(order, words, context)
        self._process = ServerProcess(command, env, order.cwd, clean_env=order.clean_env)
        self.stdout, self.stderr = Tail(), Tail()
        self._status: ExitStatus | None = None
        self._watch(self._process.stdout, self.stdout)
        self._watch(self._process.stderr, self.stderr)
        if self._process.pidfd is not None:
            loop.watch(self._process.pidfd, READ, lambda events: self._look())
        loop.after(order.timeout, partial(self._end, "timeout"))
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


def _environment(
    order: ClientOrder, words: Sequence[str], context: Mapping[str, Any]
) -> dict[str, str]:
    """Ours, as with the official suite: it is the user's own program, not a stranger's."""
    name = order.scenario.name
    inherited = {key: value for key, value in os.environ.items() if not value.startswith("()")}
    expected = {
        "MCP_CONFORMANCE_SCENARIO": name,
        "MCP_CONFORMANCE_PROTOCOL_VERSION": order.revision.wire_version,
    }
    inherited.pop("MCP_CONFORMANCE_CONTEXT", None)
    if context:
        expected["MCP_CONFORMANCE_CONTEXT"] = json.dumps({"name": name, **context})
    if order.transport == "stdio":
        expected["MCP_CONFORMANCE_SERVER_COMMAND"] = json.dumps(words)
    return {**inherited, **order.env, **expected}


# -- The server that a stdio client launches itself ----------------------------------------------


def _server_command(order: ClientOrder, folder: Path) -> tuple[str, ...]:
    """What the client launches: a server that leaves its capture in the folder."""
    return (
        # -P: the client's folder may hold modules with the names of ours
        *(sys.executable, "-P", "-m", "mcptest", "serve", "--scenario", order.scenario.name),
        *("--transport", "stdio", "--spec-version", order.asked_for),
        *("--capabilities", order.capabilities, "--save-capture", str(folder / "session.jsonl")),
    )


def launched_captures(folder: Path) -> list[Path]:
    """In the order of the launches; one that was killed has left what it had by then."""
    names = {file.name.removesuffix(PARTIAL) for file in folder.iterdir()}
    found = []
    for name in sorted(names, key=lambda name: (len(name), name)):
        both = (folder / name, folder / f"{name}{PARTIAL}")
        found += [file for file in both if file.exists() and file.stat().st_size][:1]
    return found


def records_of(captures: Sequence[Path]) -> list[AnyRecord]:
    """Of all launches, one after the other; of a client that floods, how it began.

    What is left out is counted as dropped, so that no check passes on what was not judged.
    """
    everything = (
        record
        for file in captures
        for session in open_capture(str(file))
        for _, record in session.records
    )
    kept = list(islice(everything, KEPT_RECORDS))
    if len(kept) < KEPT_RECORDS:
        return kept
    # Each record is a line. To read them all takes longer than the client had.
    dropped = sum(map(_lines_in, captures)) - len(kept)
    if dropped > 0:
        kept.append(Closed(t=kept[-1].t, records=len(kept), dropped=dropped))
    return kept


def _lines_in(file: Path) -> int:
    with file.open("rb") as opened:
        return sum(block.count(b"\n") for block in iter(lambda: opened.read(MEBIBYTE), b""))


def defect_in(records: Iterable[AnyRecord]) -> str:
    """What went wrong in the script, in whichever process; empty when nothing did."""
    for record in records:
        if isinstance(record, Note) and record.text.startswith(DEFECT):
            return record.text.removeprefix(DEFECT)
    return ""


# -- One scenario, and many ------------------------------------------------------------------------


def run_client(order: ClientOrder, should_stop: Callable[[], bool]) -> ScenarioResult:
    """Run one scenario. Whatever the client does, it ends in a result; nothing is left running."""
    started = time.monotonic()
    try:
        play = _play_stdio if order.transport == "stdio" else _play_http
        result = _judged(order, *play(order, should_stop))
    except PeerError as error:
        message = f"{error.message} ({error.hint})" if error.hint else error.message
        ended = Ended(not_started=message)
        result = _result(order, cause=f"the client could not be started: {message}", ended=ended)
    except McptestError as error:
        result = _result(order, cause=error.message)
    except OSError as error:
        cause = f"the scripted server could not be started: {error.strerror or error}"
        result = _result(order, cause=cause)
    except Exception as error:  # noqa: BLE001 - a defect of ours costs one scenario, and is said
        result = _result(order, cause=f"{DEFECT}{type(error).__name__}: {error}")
    duration = round((time.monotonic() - started) * 1000, 1)
    return replace(result, duration_ms=duration)


def _play_http(
    order: ClientOrder, should_stop: Callable[[], bool]
) -> tuple[ClientProcess, SeenSession]:
    loop, script = Loop(), order.scenario.script()
    if order.capture is not None:
        redaction.learn(lambda: _secrets(order))
    with recorded(script, loop, order.capture) as (tape, recorder):
        tape.opened(order.scenario.name, "http", order.asked_for)
        site = ScriptedSite(script, tape, loop, order.offered)
        site.asks_for_capabilities = order.capabilities == "probe"
        try:
            context = {**order.scenario.context, **script.context}
            words = (site.url() + order.scenario.path,)
            client = ClientProcess(loop, order, words, context, should_stop)
            site.on_settled = client.may_leave
            client.run()
        finally:
            site.close()
        tape.closed()
        unwritten = ""
        if recorder is not None:
            recorder.close(interrupted=client.ended_for == "interrupt")
            error = recorder.error
            unwritten = "" if error is None else error.strerror or str(error)
        return client, _seen(order, client, tape.records, urls=site.urls, unwritten=unwritten)


def _play_stdio(
    order: ClientOrder, should_stop: Callable[[], bool]
) -> tuple[ClientProcess, SeenSession]:
    with temporary_folder("mcptest-client-") as folder:
        words, context = _server_command(order, folder), order.scenario.context
        client = ClientProcess(Loop(), order, words, context, should_stop)
        client.run()
        captures = launched_captures(folder)
        if order.capture is not None and captures:
            replace_file(order.capture, b"".join(file.read_bytes() for file in captures))
        records = records_of(captures)
        if client.ended_for:
            records = without_broken_off(records)
        return client, _seen(order, client, records, launched=any(folder.iterdir()))


def _seen(
    order: ClientOrder, client: ClientProcess, records: list[AnyRecord], **known: Any
) -> SeenSession:
    return SeenSession(
        records=records,
        revision=spoken_in(records) or order.revision,
        offered=order.offered,
        is_demanded=not order.negotiates,
        stderr=redaction.masker.cut_text(client.stderr.text()),
        transport=order.transport,
        endpoint=order.scenario.path or "/",
        ended=client.ended,
        was_settled=client.ended_for == "settled",
        mode=order.capabilities,
        claims=order.claims,
        **known,
    )


def _judged(order: ClientOrder, client: ClientProcess, seen: SeenSession) -> ScenarioResult:
    masker = redaction.masker
    stdout = masker.cut_text(client.stdout.text())
    said: dict[str, Any] = {"stdout": stdout, "stderr": seen.stderr, "ended": client.ended}
    if client.ended_for == "interrupt":
        return _result(order, cause=INTERRUPTED, **said)
    if defect := defect_in(seen.records):
        return _result(order, cause=f"{DEFECT}{defect}", **said)
    judged = judge_client(order.scenario, seen, order.timeout)
    return _result(
        order,
        revision=seen.revision,
        checks=tuple(
            replace(row, message=masker.cut_text(row.message), excerpt=masker.cut_text(row.excerpt))
            for row in judged.rows
        ),
        unreached=masker.cut_text(judged.unreached),
        **said,
    )


def _secrets(order: ClientOrder) -> Iterator[str]:
    inherited = {} if order.clean_env else os.environ
    yield from secrets_of_environment({**inherited, **order.env})
    yield from secrets_of_command(order.command)


def _result(order: ClientOrder, **known: Any) -> ScenarioResult:
    capture = str(order.capture) if order.capture is not None and order.capture.exists() else ""
    return ScenarioResult(
        scenario=order.scenario.name,
        side=Side.CLIENT,
        transport=order.transport,
        capture=capture,
        repeat=order.repeat,
        **{"checks": (), "revision": order.revision, **known},
    )


def run_clients(
    orders: Sequence[ClientOrder],
    *,
    jobs: int,
    tell: Callable[[ScenarioResult], None],
    should_stop: Callable[[], bool],
) -> list[ScenarioResult]:
    """Results in the order of `orders`; `tell` hears of each as it is finished.

    Once it is to stop, all clients are ended, and only what was finished by then is given.
    """
    runs = ScenarioRuns(tell)

    def is_to_stop() -> bool:
        return runs.broken.is_set() or should_stop()

    def lane(place: int) -> ScenarioResult | None:
        if is_to_stop():
            return None
        result = run_client(orders[place], is_to_stop)
        return None if result.cause == INTERRUPTED else result

    runs.run(range(len(orders)), [lane] * min(jobs, len(orders)))
    return [runs.results[place] for place in sorted(runs.results)]
