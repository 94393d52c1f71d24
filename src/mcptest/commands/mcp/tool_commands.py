"""A tool that is a command of ours, in a process of its own on the loop of the server.

The server answers pings and takes cancellations while the engine works elsewhere; whatever a peer
does to the engine, the server lives on. Nothing here waits.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from mcptest.commands.mcp.roots import AllowedServer, Roots
from mcptest.core.errors import ExitCode
from mcptest.core.redaction import redaction
from mcptest.core.safe_text import show
from mcptest.report.head import Report, RunView
from mcptest.report.problems import ReportedProblem
from mcptest.report.stored import read_stored
from mcptest.servers.demo import versions
from mcptest.servers.demo.exchange import Call, ToolFailure, Until
from mcptest.servers.demo.offers import failure
from mcptest.session.server_spec import DEFAULT_CONFIG
from mcptest.transport.lifeline import server_environment
from mcptest.transport.loop import READ, Loop, Timer
from mcptest.transport.temporary import new_folder, remove_folder

Obj: TypeAlias = dict[str, Any]
Running: TypeAlias = Generator[Any, Any, Obj]

# -- Where a command runs, and what it sees ------------------------------------------------------

REPORT = ".mcptest-report.json"
"""Hidden: what is copied from the roots is not, so nothing can stand in its place."""


class WorkFolder:
    """Where a command runs. A suite or a configuration that changes meanwhile changes nothing."""

    def __init__(self, roots: Roots) -> None:
        self._roots = roots
        self.in_use = False
        """Whether a command is still ending in it."""
        self.folder = new_folder("mcptest-mcp-")
        self._given: dict[str, str] = {}
        """What an agent called the files, by the words that name the copies."""

    def close(self) -> None:
        remove_folder(self.folder)

    def __enter__(self) -> WorkFolder:
        return self

    def __exit__(self, *exception: object) -> None:
        if not self.in_use:  # else the command closes it when it has ended
            self.close()

    def bring(self, path: str) -> str:
        """Copy it in; the word for the command line that names the copy, never an option."""
        try:
            word = f"./{self._roots.copy(path, self.folder)}"
        except OSError as error:  # ours: the disk is full, or a name is too long for it
            raise ToolFailure(f"can't copy {show(path, 200)}: {error.strerror}") from None
        self._given[word] = path
        return word

    def put(self, name: str, text: str) -> str:
        (Path(self.folder) / name).write_text(text, encoding="utf-8")
        self._given[f"./{name}"] = name
        return f"./{name}"

    def as_given(self, word: str) -> str:
        """A word of a command line with the name that the agent gave, also behind an option."""
        option, assigned, value = word.partition("=") if word.startswith("--") else ("", "", word)
        return option + assigned + self._given.get(value, value)

    def place_server(self, server: AllowedServer) -> list[str]:
        """Keep its configuration as it was when we started; words for where it is started."""
        entries = {} if server.entry is None else {server.name: dict(server.entry)}
        config = Path(self.folder) / DEFAULT_CONFIG
        config.touch(mode=0o600)
        config.write_text(json.dumps({"mcpServers": entries}))  # in any case: no other is heard
        # The demo is a module of ours: started in a folder of others it might find theirs instead.
        started_there = server.target.way == "stdio" and server.name != "demo"
        return [f"--cwd={server.folder}"] if started_there else []

    def report(self) -> bytes:
        """The JSON report that the command left; empty where there is none."""
        try:
            return (Path(self.folder) / REPORT).read_bytes()
        except OSError:
            return b""


def environment_for(server: AllowedServer | None, place: WorkFolder) -> dict[str, str]:
    """What a command sees: no secret of ours, but what its server's configuration refers to.

    What it would remember for its next run goes when the folder goes.
    """
    named = server.variables if server is not None else {}
    own = {"NO_COLOR": "1", "XDG_CACHE_HOME": f"{place.folder}/.cache"}
    return {**server_environment(named, os.environ, clean=True), **own}


# -- Its process ---------------------------------------------------------------------------------

MAX_CHILDREN = 4
MAX_OUTPUT = 4 * 1024 * 1024
TICK_SECONDS = 1.0
GRACE_SECONDS = 5.0
_CHUNK = 64 * 1024


class CommandProcesses:
    """All that run. With the server every one of them ends."""

    def __init__(self) -> None:
        self._running: dict[CommandProcess, None] = {}

    def start(
        self, loop: Loop, words: Sequence[str], cwd: str, env: Mapping[str, str]
    ) -> CommandProcess:
        if len(self._running) >= MAX_CHILDREN:
            raise ToolFailure(f"{MAX_CHILDREN} calls are running already; wait for one to end")
        child = CommandProcess(loop, words, cwd, env, lambda child: self._running.pop(child, None))
        self._running[child] = None
        return child

    def close(self) -> None:
        running = tuple(self._running)
        for child in running:
            child.signal(signal.SIGTERM)
        until = time.monotonic() + GRACE_SECONDS
        for child in running:
            child.reap(max(0.0, until - time.monotonic()))


class CommandProcess:
    """A process whose output is kept; it is asked to go, and then made to."""

    def __init__(
        self,
        loop: Loop,
        words: Sequence[str],
        cwd: str,
        env: Mapping[str, str],
        forget: Callable[[CommandProcess], object],
    ) -> None:
        self._loop = loop
        self._forget = forget
        self.started = time.monotonic()
        # In a session of its own: a signal for us is not one for it, and its group is killed whole.
        self._process = subprocess.Popen(
            list(words),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=cwd,
            env=dict(env),
            start_new_session=True,
        )
        self.out = bytearray()
        self.err = bytearray()
        self.overflowed = False
        self.ended = False
        self.at_end: Callable[[], None] | None = None
        self._wake: Callable[[], None] | None = None
        self._kill: Timer | None = None
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._open = {
            self._process.stdout.fileno(): self.out,
            self._process.stderr.fileno(): self.err,
        }
        for descriptor in self._open:
            os.set_blocking(descriptor, False)
            loop.watch(descriptor, READ, lambda events, fd=descriptor: self._readable(fd))  # type: ignore[misc]  # binds the descriptor now

    @property
    def code(self) -> int:
        """The exit code; negative where a signal ended it."""
        return self._process.returncode if self._process.returncode is not None else -1

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.started

    def wait(self, resume: Callable[[], None]) -> Callable[[], None]:
        """Call back at its end, or after a moment. What this gives takes that back."""
        timer = self._loop.after(TICK_SECONDS, self._tell)

        def wake() -> None:
            timer.cancel()
            resume()

        self._wake = wake

        def withdraw() -> None:
            timer.cancel()
            self._wake = None

        return withdraw

    def stop(self) -> None:
        """Ask it to end; it cleans up behind itself and is killed only if it takes too long."""
        if self.ended or self._kill is not None:
            return
        self.signal(signal.SIGTERM)
        self._kill = self._loop.after(GRACE_SECONDS, lambda: self.signal(signal.SIGKILL))

    def signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    def reap(self, patience: float) -> None:
        """The server ends: see it end too."""
        try:
            self._process.wait(patience)
        except subprocess.TimeoutExpired:
            self.signal(signal.SIGKILL)
            self._process.wait()
        self._end()

    def _tell(self) -> None:
        wake, self._wake = self._wake, None
        if wake is not None:
            wake()

    def _readable(self, descriptor: int) -> None:
        try:
            chunk = os.read(descriptor, _CHUNK)
        except BlockingIOError:
            return
        kept = self._open[descriptor]
        if chunk and len(kept) < MAX_OUTPUT:
            kept += chunk
        elif chunk:
            self.overflowed = True
            self.stop()
        else:
            self._loop.ignore(descriptor)
            del self._open[descriptor]
            if not self._open:
                self._await_exit()

    def _await_exit(self) -> None:
        """Its pipes are closed; its exit code follows within a moment."""
        if not hasattr(os, "pidfd_open"):
            self.reap(GRACE_SECONDS)
            return
        descriptor = os.pidfd_open(self._process.pid)

        def exited(events: int) -> None:
            self._loop.ignore(descriptor)
            os.close(descriptor)
            self.reap(GRACE_SECONDS)

        self._loop.watch(descriptor, READ, exited)

    def _end(self) -> None:
        if self.ended:
            return
        self.ended = True
        if self._kill is not None:
            self._kill.cancel()
        for descriptor in tuple(self._open):
            self._loop.ignore(descriptor)
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()
        self._forget(self)
        if self.at_end is not None:
            self.at_end()
        self._tell()


# -- From a call to its result -------------------------------------------------------------------

FOR_AGENTS = "--format=agent"
MAX_TEXT = 20_000
MAX_REPORT = 20_000
MAX_DECODED = 4 * 1024 * 1024
MAX_FINDINGS = 50
DEFAULT_LIMIT = 120
MAX_LIMIT = 600
_VERDICTS = {
    ExitCode.OK: "passed",
    ExitCode.FAILED: "failed",
    ExitCode.NOTHING_MATCHED: "nothing ran",
}
_WHAT_TO_DO = {
    ExitCode.USAGE: "Fix the problem above and call again.",
    ExitCode.UNREACHABLE: "The server could not be started or reached; nothing was judged.",
    ExitCode.INTERRUPTED: "It was interrupted before its end.",
}


class ToolCommand(msgspec.Struct, frozen=True):
    """One command line of ours."""

    words: tuple[str, ...]
    """With the copies of the agent's files; a person repeats it with the names that were given."""
    for_us: tuple[str, ...] = ()
    """Options that nobody needs who repeats it."""
    server: AllowedServer | None = None
    limit: int = DEFAULT_LIMIT
    keeps_report: bool = True
    module: str = "mcptest"
    invalid_is_a_verdict: bool = False
    """Whether exit code 2 is what was to be found out."""


class CommandOutput(msgspec.Struct, frozen=True):
    code: int
    out: str
    err: str


def run_command(
    order: ToolCommand, call: Call, place: WorkFolder, children: CommandProcesses
) -> Running:
    """Run one command to its end and give its result."""
    output = yield from await_command(order, call, place, children)
    return result_of(order, output, place, call)


def await_command(
    order: ToolCommand, call: Call, place: WorkFolder, children: CommandProcesses
) -> Generator[Any, Any, CommandOutput]:
    """Run one command to its end. Whoever closes this generator ends the command."""
    ours = [*order.for_us, *([f"--json-file={REPORT}"] if order.keeps_report else [])]
    ours += place.place_server(order.server) if order.server is not None else []
    # With -P no module of the folder that it runs in takes the place of ours.
    words = [sys.executable, "-P", "-m", order.module, *order.words, *ours]
    environment = environment_for(order.server, place)
    child = children.start(call.world.loop, words, place.folder, environment)
    what = "the check of the suite"
    if order.module == "mcptest":
        what = " ".join(order.words[: 2 if order.words[0] == "compliance" else 1])
    try:
        last = 0
        while not child.ended:
            yield Until(child.wait)
            if child.seconds > order.limit:
                child.stop()
            elif int(child.seconds) > last:
                last = int(child.seconds)
                call.progress(last, order.limit, f"{what} has been running for {last}s")
    finally:
        if not child.ended:  # nobody wants the rest; its folder goes when it is gone
            place.in_use = True
            child.at_end = place.close
            child.stop()
    if child.overflowed:
        raise ToolFailure("it printed more than can be kept; name fewer things at once")
    if child.seconds > order.limit and child.code in {ExitCode.INTERRUPTED, -15, -9}:
        raise ToolFailure(
            f"it was not done after {order.limit}s and was ended; pass a larger limit "
            f"(up to {MAX_LIMIT}), or name less at once"
        )
    return CommandOutput(child.code, _text(child.out), _text(child.err))


def _text(raw: bytearray) -> str:
    return raw.decode("utf-8", "backslashreplace").strip("\n")


def result_of(order: ToolCommand, output: CommandOutput, place: WorkFolder, call: Call) -> Obj:
    code, repeat = output.code, shlex.join(["mcptest", *map(place.as_given, order.words)])
    if code == ExitCode.USAGE and order.invalid_is_a_verdict:
        return outcome(call, repeat, "failed", code, _cut(output.err), b"")
    verdict = _VERDICTS.get(ExitCode(code)) if code in set(ExitCode) else None
    if verdict is None:
        said = _cut(output.err or output.out) or f"the command ended with {code}"
        advice = _WHAT_TO_DO.get(ExitCode(code), "") if code in set(ExitCode) else ""
        return failure(f"{said}\n{advice}".strip())
    text, report = _cut(output.out or output.err), place.report()
    # A command that stands in a file of somebody is not handed on to an agent.
    found = findings_of(report, with_commands=order.words[0] != "report")
    return outcome(call, repeat, verdict, code, text, report, found)


def findings_of(report: bytes, *, with_commands: bool) -> list[Obj]:
    """What was found, errors first, and warnings too: a broken SHOULD fails nothing."""
    if not 0 < len(report) <= MAX_DECODED:
        return []
    stored = read_stored(report, REPORT).report
    problems = (stored if isinstance(stored, Report) else RunView(stored)).as_problems().found
    ordered = sorted(problems, key=lambda one: _LEVELS.index(one.level))
    return [_finding(one, with_commands) for one in ordered]


_LEVELS = ("error", "warning", "note")


def _finding(problem: ReportedProblem, with_commands: bool) -> Obj:
    told = {
        "id": problem.rule.id,
        "level": problem.level,
        "title": problem.rule.title,
        "subject": problem.subject,
        "message": _cut(problem.message[:1_000]),
        "fix": problem.rule.help,
        "known": problem.excused,
        "spec": problem.rule.url,
        **{name: show(text, 2_000) for name, text in problem.facts.items()},
    }
    hidden = {"capture"} if with_commands else {"capture", "repeat"}
    return {name: text for name, text in told.items() if text and name not in hidden}


def outcome(
    call: Call,
    repeat: str,
    verdict: str,
    code: int,
    text: str,
    report: bytes,
    findings: Sequence[Obj] = (),
) -> Obj:
    """A verdict as text for a model, and as data. What is too long for a context is left out."""
    value: Obj = {"verdict": verdict, "exit_code": int(code), "repeat": repeat}
    if report:
        value["findings"] = list(findings[:MAX_FINDINGS])
        value["findings_total"] = len(findings)
    if 0 < len(report) <= MAX_REPORT:
        value["report"] = json.loads(report)
    else:
        value["text"] = text
    return tool_result(call, text or verdict, value)


def tool_result(call: Call, text: str, value: Obj) -> Obj:
    """A result in both forms; data only where the revision knows it.

    The data is there once more as text, for clients that don't know it, as the specification asks.
    """
    value = redaction.value(value)
    result: Obj = {"content": [{"type": "text", "text": redaction.text(text)}]}
    if call.knows(versions.V2025_06_18):
        again = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        result["content"].append({"type": "text", "text": again})
        result["structuredContent"] = value
    return result


def _cut(text: str) -> str:
    """What people and models read: no control codes, and not more than they can take in."""
    lines = [show(line, 2_000) for line in text.splitlines()]
    whole = "\n".join(lines)
    if len(whole) <= MAX_TEXT:
        return whole
    return whole[:MAX_TEXT] + f"\n… and {len(whole) - MAX_TEXT} more characters"
