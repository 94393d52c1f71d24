"""Every command that talks to a peer: how it is started here, and how long it may take."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tests.safety.cases import Case, Way

QUICK = 3.0
"""Seconds for one request, where the peer will not answer."""
PATIENT = 20.0
"""Where it will, on a machine that does other things too."""
SUITE = {
    "tests": [
        {
            "name": "says hello",
            "assert": {"tool": "echo", "args": {}, "expect": {"contains": ["hello"]}},
        }
    ]
}
TRAJECTORY = {
    "tests": [{"name": "calls echo", "trajectory": [{"type": "presence", "tools": ["echo"]}]}]
}
REPORTS = ("--json-file", "r.json", "--html", "r.html", "--junit", "r.xml")


@dataclass(frozen=True)
class Peer:
    """The server as a command line names it."""

    way: Way
    words: tuple[str, ...]
    """The command; or the URL alone."""

    @property
    def tail(self) -> list[str]:
        """What goes at the end of a command line."""
        return ["--server", self.words[0]] if self.way == "http" else ["--", *self.words]

    @property
    def one_word(self) -> str:
        return self.words[0] if self.way == "http" else shlex.join(self.words)

    @property
    def entry(self) -> dict[str, object]:
        """As in a client configuration."""
        if self.way == "http":
            return {"url": self.words[0]}
        return {"command": self.words[0], "args": list(self.words[1:])}


@dataclass(frozen=True)
class Command:
    """One command of the matrix."""

    name: str
    words: Callable[[Peer, float], list[str]]
    """The arguments, for a peer and the seconds that one request may take."""
    requests: float = 1
    """How many requests it may wait for in a row, where no option limits the whole."""
    extra: float = 0
    """Seconds beyond those that its own limit for the whole command has."""
    healthy: int = 0
    """How it ends on a healthy server. Ours are small, and break rules that others hold."""
    healthy_http: int | None = None
    """The same over HTTP, where it differs."""
    without_safe_tool: int | None = None
    """The same where no tool says that it only reads, as on those of `tests/rogues`."""
    lists: bool = True
    calls: bool = True
    judges: bool = False
    """It holds the rules of the specification against the peer."""
    call_faults: tuple[int, ...] = (1, 3)
    """How it may end when a call goes wrong."""
    suite: bool = False
    """A server that is not there fails a test; it is no error of the command."""
    unfinished: str = ""
    """What it says where its own time was over before it came to the fault."""
    drive: Literal["command", "watch", "proxy", "agent"] = "command"

    def limit(self, case: Case) -> float:
        """Seconds that the command was given."""
        return self.request(case) * self.requests + self.extra

    def as_on_a_healthy_server(self, case: Case, way: Way) -> int:
        if self.without_safe_tool is not None and case.program == "rogue":
            return self.without_safe_tool
        if self.healthy_http is not None and way == "http":
            return self.healthy_http
        return self.healthy

    @staticmethod
    def request(case: Case) -> float:
        return PATIENT if case.patient else QUICK

    def not_applicable(self, case: Case) -> str:
        """Why there is no such cell, or nothing."""
        if case.stage == "calling" and not self.calls:
            return "calls no tool"
        if case.stage == "listing" and not self.lists:
            return "reads no list"
        return dict(case.not_for).get(self.name, "")


def time(seconds: float) -> str:
    return f"{seconds:g}s"


def suite_command(*words: str) -> Callable[[Peer, float], list[str]]:
    def built(peer: Peer, seconds: float) -> list[str]:
        return [
            *words,
            "suite.yaml",
            "--timeout",
            time(seconds),
            "--save-capture",
            "wire",
            *peer.tail,
        ]

    return built


def explored(*words: str, whole: float = 0) -> Callable[[Peer, float], list[str]]:
    """A command with --timeout, and --max-time where `whole` is more than nothing."""

    def built(peer: Peer, seconds: float) -> list[str]:
        limit = ["--max-time", time(seconds + whole)] if whole else []
        return [*words, "--timeout", time(seconds), *limit, *peer.tail]

    return built


def matrix_words(peer: Peer, seconds: float) -> list[str]:
    server = peer.one_word if peer.way == "http" else f'"{peer.one_word}"'
    options = ["--timeout", time(seconds), "--save-capture", "wire", *REPORTS]
    return ["matrix", "suite.yaml", "--languages", f"one:{server}", *options]


def fleet_words(peer: Peer, seconds: float) -> list[str]:
    limits = ["--timeout", time(seconds), "--startup-timeout", time(seconds)]
    limits += ["--server-timeout", time(seconds + FLEET)]
    return ["fleet", "mcp.json", "--verbose", *limits, "--save-capture", "wire", *REPORTS]


def property_words(peer: Peer, seconds: float) -> list[str]:
    """Without end, up to its own limit, whatever the peer."""
    words = ["property", "--examples", "5", "--seed", "1", "--allow-tool", "*", *WIRE, *REPORTS]
    limits = ["--timeout", time(min(seconds, PROPERTY)), "--max-time", time(PROPERTY)]
    return [*words, "--output", "found", *limits, *peer.tail]


def agent_words(peer: Peer, seconds: float) -> list[str]:
    return ["mcp", "--allow-run", "--allow-server", peer.one_word]


def proxy_words(*words: str) -> Callable[[Peer, float], list[str]]:
    def built(peer: Peer, seconds: float) -> list[str]:
        port = ["--port-file", "port"] if peer.way == "http" else []
        return [*words, *port, *peer.tail]

    return built


def intercept_words(peer: Peer, seconds: float) -> list[str]:
    words = ["intercept", "--trajectory", "calls.yaml", "--save-capture", "wire.jsonl", *REPORTS]
    port = ["--port-file", "port"] if peer.way == "http" else []
    return [*words, "--timeout", time(seconds + WHOLE), *port, *peer.tail]


WHOLE = 4.0
"""Seconds beyond those for one request that a whole command is given."""
PROPERTY = 6.0
"""Seconds for `property`, which would go on without end on most peers."""
FLEET = 10.0
"""Seconds for `fleet`, which judges and audits, and for a call of an agent to `mcp`."""
JUDGING = 20.0
"""Seconds for `compliance run`, which waits for several requests in a row."""
WIRE = ("--save-capture", "wire")

COMMANDS: tuple[Command, ...] = (
    Command("run", suite_command("run", *REPORTS), lists=False, suite=True),
    Command("ci", suite_command("ci", *REPORTS), lists=False, suite=True),
    Command("matrix", matrix_words, lists=False, suite=True),
    Command("snapshot", suite_command("snapshot", *REPORTS), lists=False, suite=True),
    Command(
        "snapshot --update", suite_command("snapshot", "--update", *REPORTS),
        lists=False, suite=True,
    ),
    Command(
        "watch", suite_command("watch", "--json-file", "r.json", "--junit", "r.xml"),
        lists=False, suite=True, drive="watch",
    ),
    Command(
        "audit", explored("audit", "--allow-writes", *WIRE, *REPORTS, whole=WHOLE), extra=WHOLE
    ),
    Command("lint", explored("lint", *WIRE, *REPORTS), requests=2, calls=False),
    Command(
        "fuzz",
        explored(
            "fuzz", "--allow-writes", "--runs", "5", "--seed", "1", "--output", "found",
            *WIRE, *REPORTS, whole=WHOLE,
        ),
        extra=WHOLE,
    ),
    Command(
        "property", property_words, requests=0, extra=PROPERTY, healthy=1,
        unfinished="not run: stopped after",
    ),
    Command("generate", explored("generate", "--output", "made", *WIRE), requests=2, calls=False),
    # it writes down what it finds: that a tool is broken is said, and no failure of the command
    Command(
        "init", explored("init", "made", "--allow-writes", *WIRE),
        requests=5, call_faults=(0, 1, 3),
    ),
    Command(
        "coverage", explored("coverage", "suite.yaml", *WIRE, *REPORTS), requests=2, calls=False
    ),
    Command("record", explored("record", "--out", "wire.jsonl", "--call", "echo"), requests=4),
    Command(
        "record --proxy", proxy_words("record", "--proxy", "--out", "wire.jsonl"), drive="proxy",
        extra=WHOLE,
    ),
    Command("intercept", intercept_words, drive="proxy", extra=WHOLE),
    Command(
        "compliance run",
        explored(
            "compliance", "run", "--allow-tool", "echo", *WIRE, *REPORTS, whole=JUDGING
        ),
        extra=JUDGING, healthy=1, judges=True, unfinished="of --max-time",
    ),
    Command(
        "conformance server",
        explored(
            "conformance", "server", "--map", "test_simple_text=echo", "-o", "out", *REPORTS
        ),
        requests=8, healthy_http=1, judges=True,
    ),
    Command(
        "doctor",
        explored(
            "doctor", "--to", "2026-07-28", "--allow-tool", "echo", *WIRE, *REPORTS, whole=WHOLE
        ),
        extra=WHOLE, healthy=1,
    ),
    Command(
        "fleet", fleet_words, extra=FLEET, healthy=1, judges=True,
        unfinished="not judged to the end within",
    ),
    Command("mcp", agent_words, extra=FLEET, without_safe_tool=4, drive="agent"),
)  # fmt: skip


def client_words(peer: Peer, seconds: float) -> list[str]:
    """The peer is a client, whichever way it connects."""
    words = ["conformance", "client", "--scenario", "tools_call", "--transport", peer.way]
    words += ["--timeout", time(seconds), "-o", "out", *REPORTS]
    return [*words, "--command", shlex.join(peer.words)]


CLIENT_COMMAND = Command("conformance client", client_words)


def prepare(folder: Path, peer: Peer) -> None:
    """The files that commands are started with."""
    (folder / "suite.yaml").write_text(json.dumps(SUITE))
    (folder / "calls.yaml").write_text(json.dumps(TRAJECTORY))
    (folder / "mcp.json").write_text(json.dumps({"mcpServers": {"one": peer.entry}}))
