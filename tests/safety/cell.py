"""One cell of the matrix: a command on a misbehaving peer, with what it took and what it left."""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

import yaml

from tests.e2e.driving import is_alive
from tests.safety.cases import Case, Way
from tests.safety.commands import Command, Peer, prepare

GRACE = 5.0
"""Seconds beyond its limit that a command may take."""
PEAK_MB = 150
LATEST = 3.0
"""Seconds after which a cell that is over its time is ended from outside."""
ENDING = 1.0
"""Seconds in which the processes of a peer have to be gone."""
CLOSING = 2.0
"""Seconds that a client gives its server after it has closed its side."""
INTERRUPTED = 130
LOOK = 0.03
ROOT = Path(__file__).parents[2]
_DECODER = json.JSONDecoder(parse_int=float)
"""A peer may say a number of 5,000 digits, and a capture has it."""


def read_json(data: bytes) -> Any:
    """As `json.loads` does, which would make a new decoder for each line of a capture."""
    return _DECODER.decode(data.decode(json.detect_encoding(data), "surrogatepass"))


@dataclass
class Outcome:
    """What was seen in one cell. It is green if nothing is wrong."""

    command: str
    case: str
    way: Way
    limit: float
    seconds: float = 0.0
    peak_mb: int = 0
    code: int | None = None
    wrong: list[str] = field(default_factory=list)
    said: str = ""
    """The end of what was said, where something is wrong."""

    @property
    def over(self) -> float:
        """Seconds beyond the limit."""
        return max(0.0, self.seconds - self.limit)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


# -- measuring ---------------------------------------------------------------------------------


def descendants(pid: int) -> Iterator[int]:
    yield pid
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return
    for child in children:
        yield from descendants(int(child))


def is_ours(pid: int) -> bool:
    """Whether this process is mcptest at work, and not a server."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return False
    return any(
        flag == "-m" and (name == "mcptest" or name.startswith("mcptest."))
        for flag, name in itertools.pairwise(words[:5])
    )


def high_water(pid: int) -> int:
    """The peak of resident memory in MB, of this process and its own workers, each by itself."""
    peak = 0
    for each in descendants(pid):
        if each == pid or is_ours(each):
            with contextlib.suppress(OSError, IndexError, ValueError):
                status = Path(f"/proc/{each}/status").read_text()
                peak = max(peak, int(status.split("VmHWM:")[1].split()[0]) // 1024)
    return peak


_IDS = {number: b'"id":%d' % number for number in (1, 2, 3)}


class Ear:
    """Reads a pipe to its end, and keeps the beginning and the end of what came."""

    KEPT = 200_000

    def __init__(self, pipe: IO[bytes]) -> None:
        self._pipe = pipe
        self.head = self.tail = b""
        self.answered: set[int] = set()
        """The ids of those requests of `session` whose answers came, to their ends."""
        self._begun: set[int] = set()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        while data := os.read(self._pipe.fileno(), 65536):
            seen = self.tail[-10:] + data
            if b"\n" in data:
                self.answered |= self._begun
            for number, name in _IDS.items():
                if (at := seen.find(name)) >= 0:
                    self._begun.add(number)
                    if b"\n" in seen[at:]:
                        self.answered.add(number)
            if len(self.head) < self.KEPT:
                self.head += data
            self.tail = (self.tail + data)[-self.KEPT :]

    def text(self) -> str:
        cut = self.head if len(self.head) < self.KEPT else self.head[: self.KEPT] + self.tail
        return cut.decode(errors="backslashreplace")

    def close(self) -> None:
        self._thread.join(5)
        if not self._thread.is_alive():  # else a process that was left holds the other end
            self._pipe.close()


class Watched:
    """A process of mcptest, with its peak of memory and its time."""

    def __init__(self, words: list[str], site: Site, stdin: int = subprocess.DEVNULL) -> None:
        self.started = time.monotonic()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "mcptest", *words],
            cwd=site.folder,
            env=site.environment(),
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self.out, self.err = Ear(self.process.stdout), Ear(self.process.stderr)
        self.peak = 0
        self.was_terminated = False

    def look(self) -> bool:
        """Whether it still runs."""
        self.peak = max(self.peak, high_water(self.process.pid))
        return self.process.poll() is None

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.started

    def wait(self, limit: float) -> bool:
        """False if it still runs at the limit, in seconds from its start."""
        while self.look():
            if self.seconds > limit:
                return False
            time.sleep(LOOK)
        return True

    def wait_for(self, condition: Callable[[], object], limit: float) -> None:
        while self.look() and not condition() and self.seconds < limit:
            time.sleep(LOOK)

    def end(self) -> None:
        """Whatever there still is."""
        family = list(descendants(self.process.pid)) if self.process.poll() is None else []
        for pid in family:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(OSError):
            self.process.kill()
        self.process.wait()
        self.out.close()
        self.err.close()

    def said(self) -> str:
        return self.out.text() + self.err.text()


@dataclass
class Site:
    """The folders of one cell. Only `folder` may have files in the end."""

    base: Path

    def __post_init__(self) -> None:
        for each in (self.folder, self.temporary, self.cache):
            each.mkdir(parents=True)
        self.pids.touch()

    @property
    def folder(self) -> Path:
        return self.base / "here"

    @property
    def temporary(self) -> Path:
        return self.base / "tmp"

    @property
    def cache(self) -> Path:
        return self.base / "cache"

    @property
    def pids(self) -> Path:
        return self.base / "pids"

    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if name not in _CI}
        return kept | {
            "TMPDIR": str(self.temporary),
            "XDG_CACHE_HOME": str(self.cache),
            "ROGUE_PIDS": str(self.pids),
        }


_CI = {"GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY", "CI", "PYTHONDONTWRITEBYTECODE"}


@contextlib.contextmanager
def peer_of(case: Case, way: Way) -> Iterator[Peer]:
    """The peer; over HTTP it runs beside us until the end of the block."""
    if way == "stdio" or case.program == "client":
        yield Peer(way, tuple(case.command()))
        return
    process = subprocess.Popen(
        case.http_command(),
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        url = process.stdout.readline().decode().strip()
        assert url, f"{case.name} did not start"
        yield Peer(way, (url,))
    finally:
        process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(5)
        process.kill()
        process.wait()
        process.stdout.close()


# -- the ways of driving a command -------------------------------------------------------------

CLIENT = {"name": "matrix", "version": "1"}
INITIALIZE = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": CLIENT}


def message(method: str, number: int | None = None, **params: Any) -> bytes:
    body: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
    if number is not None:
        body["id"] = number
    if params:
        body["params"] = params
    return json.dumps(body, separators=(",", ":")).encode()


def session(tool: str, **arguments: Any) -> list[tuple[int, list[bytes]]]:
    """What a client says: the id of each answer that it waits for, and the messages before it."""
    return [
        (1, [message("initialize", 1, **INITIALIZE)]),
        (2, [message("notifications/initialized"), message("tools/list", 2)]),
        (3, [message("tools/call", 3, name=tool, arguments=arguments)]),
    ]


def drive_command(words: list[str], site: Site, latest: float) -> Watched:
    watched = Watched(words, site)
    watched.wait(latest)
    return watched


def drive_watch(words: list[str], site: Site, latest: float) -> Watched:
    """The first run, then Ctrl-C."""
    watched = Watched(words, site)
    watched.wait_for(lambda: b"1 test," in watched.out.head, latest)
    if watched.process.poll() is None:
        watched.process.send_signal(signal.SIGINT)
    watched.wait(latest)
    return watched


def write_lines(watched: Watched, lines: list[bytes]) -> None:
    assert watched.process.stdin is not None
    with contextlib.suppress(OSError):
        watched.process.stdin.write(b"".join(line + b"\n" for line in lines))
        watched.process.stdin.flush()


def close_input(watched: Watched) -> None:
    assert watched.process.stdin is not None
    with contextlib.suppress(OSError):
        watched.process.stdin.close()


def converse(watched: Watched, tool: str, until: float, **arguments: Any) -> None:
    """Say everything, one answer after the other; without one the client has enough."""
    for number, lines in session(tool, **arguments):
        write_lines(watched, lines)
        watched.wait_for(functools.partial(watched.out.answered.__contains__, number), until)
        if number not in watched.out.answered:
            return


def drive_proxy(words: list[str], site: Site, latest: float, patience: float) -> Watched:
    """A client that ends as clients do: it closes its side, and after two seconds says SIGTERM.

    It has patience from the start of the server on, which on a busy machine comes late.
    """
    watched = Watched(words, site, stdin=subprocess.PIPE)
    watched.wait_for(lambda: site.pids.stat().st_size, patience + CLOSING)
    converse(watched, "echo", watched.seconds + patience)
    close_input(watched)
    watched.wait(watched.seconds + CLOSING)
    if watched.process.poll() is None:
        watched.was_terminated = True
        watched.process.send_signal(signal.SIGTERM)
    watched.wait(latest)
    return watched


def drive_http_proxy(words: list[str], site: Site, latest: float, patience: float) -> Watched:
    """A client that posts its messages one by one, and a person who then says SIGTERM."""
    watched = Watched(words, site)
    watched.wait_for(lambda: b"listening on http" in watched.err.head, latest)
    watched.wait_for(lambda: b"\n" in watched.err.head.partition(b"listening on")[2], latest)
    told = watched.err.text().partition("listening on ")[2].split()
    if told:
        post_all(told[0], watched, patience)
    if watched.process.poll() is None:
        watched.process.send_signal(signal.SIGTERM)
    watched.wait(latest)
    return watched


def post_all(url: str, watched: Watched, patience: float) -> None:
    """Post each message and read its answer, for so long each; without one it has enough.

    Each: on a busy machine the others would leave a call no time in which it could be answered.
    """
    where, headers = urlsplit(url), b""
    for number, lines in session("echo"):
        answers = b""
        until = time.monotonic() + patience
        for line in lines:
            head = (
                f"POST {where.path} HTTP/1.1\r\nHost: {where.netloc}\r\nConnection: close\r\n"
                "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
                f"Content-Length: {len(line)}\r\n"
            ).encode()
            with contextlib.suppress(OSError):
                request = head + headers + b"\r\n" + line
                address = (where.hostname or "", where.port or 80)
                answers += posted(address, request, watched, until)
        headers = headers or headers_of_session(answers)
        if _IDS[number] not in answers:
            return


def headers_of_session(answer: bytes) -> bytes:
    """What a client sends along once it has been met."""
    lines = answer.partition(b"\r\n\r\n")[0].split(b"\r\n")
    named = [line for line in lines if line.lower().startswith(b"mcp-session-id:")]
    return b"".join(line + b"\r\n" for line in (*named, b"MCP-Protocol-Version: 2025-11-25"))


def posted(address: tuple[str, int], request: bytes, watched: Watched, until: float) -> bytes:
    """The beginning of the answer; it is read to its end, or up to this moment."""
    answer = b""
    with socket.create_connection(address, 5) as sock:
        sock.settimeout(LOOK)
        sock.sendall(request)
        while time.monotonic() < until and watched.look():
            try:
                data = sock.recv(65536)
            except TimeoutError:
                continue
            if not data:
                break
            answer = (answer + data)[:100_000]
    return answer


def drive_agent(words: list[str], site: Site, latest: float, server: str, limit: int) -> Watched:
    """An agent that has the server audited."""
    watched = Watched(words, site, stdin=subprocess.PIPE)
    converse(watched, "audit_server", latest - LATEST, server_name=server, limit=limit)
    close_input(watched)
    watched.wait(latest)
    return watched


def code_of_agent(out: bytes) -> int | None:
    """The exit code that the agent was told; a refusal is one that says why."""
    for line in out.splitlines():
        answer = read_json(line)
        if answer.get("id") == 3 and "result" in answer:
            result = answer["result"]
            if result.get("isError"):
                return 3
            return int(result["structuredContent"]["exit_code"])
    return None


# -- one cell ----------------------------------------------------------------------------------


def run_cell(
    command: Command, case: Case, way: Way, base: Path, golden: Path, grace: float = GRACE
) -> Outcome:
    """Run it, and hold it to its limit and so many seconds more."""
    limit = command.limit(case)
    latest = limit + grace + LATEST
    outcome = Outcome(command.name, case.name, way, limit)
    site = Site(base)
    with peer_of(case, way) as peer:
        prepare(site.folder, peer)
        if command.name == "snapshot":
            shutil.copytree(golden, site.folder / ".snapshots")
        words = command.words(peer, command.request(case))
        if command.drive == "command":
            watched = drive_command(words, site, latest)
        elif command.drive == "watch":
            watched = drive_watch(words, site, latest)
        elif command.drive == "agent":
            watched = drive_agent(words, site, latest, peer.one_word, int(limit))
        elif way == "http":
            watched = drive_http_proxy(words, site, latest, command.request(case))
        else:
            watched = drive_proxy(words, site, latest, command.request(case))
        outcome.seconds = round(watched.seconds, 2)
        outcome.peak_mb = watched.peak
        outcome.code = watched.process.poll()
        watched.end()
        judge(outcome, command, case, watched, site, grace)
    if not outcome.wrong:
        shutil.rmtree(base, ignore_errors=True)
    return outcome


def judge(
    outcome: Outcome, command: Command, case: Case, watched: Watched, site: Site, grace: float
) -> None:
    wrong = outcome.wrong
    said = watched.said()
    if outcome.code is None:
        wrong.append(f"hangs: still there after {outcome.seconds:.0f} s")
    elif outcome.seconds > outcome.limit + grace:
        wrong.append(f"late: {outcome.seconds:.1f} s for a limit of {outcome.limit:g} s")
    if outcome.peak_mb > PEAK_MB:
        wrong.append(f"memory: {outcome.peak_mb} MB")
    if outcome.code is not None:
        wrong += wrong_colour(outcome, command, case, watched, said)
    if "this is a bug in mcptest" in said:
        wrong.append("an internal error")
    wrong += left_behind(site)
    if wrong:
        outcome.said = said[-1500:]


def wrong_colour(
    outcome: Outcome, command: Command, case: Case, watched: Watched, said: str
) -> Iterator[str]:
    code = outcome.code
    if command.drive == "watch":
        if code != 130:
            yield f"exit {code} where Ctrl-C gives 130"
        code = 0 if "1 passed" in said else 1
    if command.drive == "agent":
        if code != 0:
            yield f"exit {code} where the agent's end gives 0"
        code = code_of_agent(watched.out.head)
        outcome.code = code
    allowed = allowed_codes(command, case, outcome.way)
    if watched.was_terminated and command.name == "intercept":
        allowed += (INTERRUPTED,)  # its server has ended, and it was still busy with the report
    if code not in allowed:
        yield f"exit {code}, expected {' or '.join(map(str, allowed))}"
    causes = [*case.said(outcome.way), *([command.unfinished] if command.unfinished else [])]
    in_one_line = " ".join(said.split())  # what is shown is broken into lines of 100
    is_named = any(cause in in_one_line for cause in causes)
    if case.causes and is_to_be_named(command, case, outcome.way, code) and not is_named:
        yield f"the cause is not named: {' / '.join(causes)}"


def is_to_be_named(command: Command, case: Case, way: Way, code: int | None) -> bool:
    if command.drive == "proxy":  # it is transparent, and the agent's calls are what is judged
        return False
    if case.colour == "told":
        return code != command.as_on_a_healthy_server(case, way)
    return case.colour != "noted" or command.judges


def allowed_codes(command: Command, case: Case, way: Way) -> tuple[int, ...]:
    if command.drive == "proxy":
        return codes_of_proxy(command, case, way)
    known = case.codes_for(command.name, way)
    if known is not None:
        return known
    if case.colour == "noted" and command.judges:
        return (1,)
    if case.colour in {"healthy", "noted", "told"}:
        return (command.as_on_a_healthy_server(case, way),)
    if command.suite:
        return (1,)
    if case.stage == "calling":
        return command.call_faults
    # what judges may have found a broken rule in how it was refused
    return (3,) if case.colour == "unreachable" and not command.judges else (1, 3)


def codes_of_proxy(command: Command, case: Case, way: Way) -> tuple[int, ...]:
    """The server's own, unless a check failed: the agent never came to its call, or a rule."""
    own = case.ends if way == "stdio" else 0
    if command.name != "intercept":
        return (own,)
    known = case.codes_for(command.name, way)
    if known is not None:
        return known
    return (own,) if case.colour in {"healthy", "told"} else (1,)


# -- what is left ------------------------------------------------------------------------------


def left_behind(site: Site) -> Iterator[str]:
    until = time.monotonic() + ENDING
    pids = [int(word) for word in site.pids.read_text().split()]
    alive = [pid for pid in pids if is_alive(pid)]
    while alive and time.monotonic() < until:
        time.sleep(LOOK)
        alive = [pid for pid in pids if is_alive(pid)]
    if alive:
        yield f"{len(alive)} processes left"
        for pid in alive:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
    temporary = sorted(path.name for path in site.temporary.iterdir())
    if temporary:
        yield f"left in the temporary folder: {', '.join(temporary)[:80]}"
    for path in (each for top in (site.folder, site.cache) for each in sorted(top.rglob("*"))):
        if path.is_file():
            fault = torn(path)
            if fault:
                yield f"{path.relative_to(site.base)}: {fault}"


def torn(path: Path) -> str:
    """What is wrong with a file that was left, or nothing."""
    if path.suffix in {".lock", ".tmp", ".part", ".partial"} or path.name.endswith("~"):
        return "is a leftover"
    try:
        if path.suffix == ".json":
            read_json(path.read_bytes())
        elif path.suffix == ".jsonl":
            torn_lines(path)
        elif path.suffix == ".xml":
            ET.parse(path)
        elif path.suffix in {".yaml", ".yml"} and path.stat().st_size < 1_000_000:
            yaml.load(path.read_bytes(), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        elif path.suffix == ".html":
            with path.open("rb") as file:
                file.seek(max(0, path.stat().st_size - 100))
                if b"</html>" not in file.read():
                    return "is torn"
    except (ValueError, RecursionError, ET.ParseError, yaml.YAMLError) as error:
        return f"is torn: {str(error)[:80]}"
    return ""


def torn_lines(path: Path) -> None:
    with path.open("rb") as file:
        for line in file:
            if not line.endswith(b"\n"):
                raise ValueError("the last line has no end")
            read_json(line)
