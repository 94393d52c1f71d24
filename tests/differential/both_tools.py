"""The same assertions under mcp-assert and under `mcptest run`, name by name."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.e2e.driving import NPM
from tests.peers.warm_peers import warm_peer

HERE = Path(__file__).parent
FIXTURE = HERE / "fixture"
BIN = Path(sys.executable).parent
MCP_ASSERT = BIN / "mcp-assert"
CLOCK = "mcp-server-time"
BOUND = 150.0
REFUSED = "REFUSED"
"""Not run, because the suite is wrong: what mcptest does where mcp-assert looks away."""


@dataclass(frozen=True)
class Case:
    """One assertion in mcp-assert's own form, and the verdict that is right."""

    name: str
    verdict: str
    document: dict[str, Any]


def cases_of(group: str, port: int = 0) -> list[Case]:
    text = (HERE / "suites" / f"{group}.yaml").read_text(encoding="utf-8")
    table = yaml.safe_load(text.replace("@PORT@", str(port)))
    return [_case(entry, table.get("server")) for entry in table["assertions"]]


def _case(entry: dict[str, Any], server: Any) -> Case:
    document = {"server": server, **entry} if server else dict(entry)
    verdict = document.pop("verdict")
    return Case(document["name"], verdict, document)


def write_suite(cases: Sequence[Case], suite: Path) -> None:
    """One assertion in a file, as mcp-assert wants it. JSON is YAML too."""
    suite.mkdir()
    for number, case in enumerate(cases):
        text = json.dumps(case.document, ensure_ascii=False)
        (suite / f"{number:03}.yaml").write_text(text, encoding="utf-8")


@dataclass(frozen=True)
class Said:
    """What a tool says of one assertion."""

    status: str
    detail: str = ""


def said_by_both(cases: Sequence[Case], folder: Path) -> tuple[dict[str, Said], dict[str, Said]]:
    """What mcp-assert says and what mcptest says, by name."""
    write_suite(cases, folder / "suite")
    if any(CLOCK in json.dumps(case.document) for case in cases):
        _put_in_reach(folder / "bin", CLOCK)
    theirs, ours, complaints = run_both(folder / "suite", folder)
    for number, case in enumerate(cases):
        if f"{number:03}.yaml:" in complaints and case.name not in ours:
            ours[case.name] = Said(REFUSED)
    return theirs, ours


def run_both(suite: Path, folder: Path) -> tuple[dict[str, Said], dict[str, Said], str]:
    """Both at the same time on the same suite; and what mcptest complains about."""
    # Commands in the suites are relative to here, so that they hold no path of a machine.
    (folder / "peers").symlink_to(NPM)
    (folder / "stub.py").symlink_to(HERE / "stub.py")
    (folder / "unchanged.txt").write_text("as it was\n")
    options = ["--suite", str(suite), "--fixture", str(FIXTURE), "--timeout", "30s", "--json"]
    ours = _start([sys.executable, "-m", "mcptest", "run", *options, "--keep-going"], folder)
    theirs = _start([str(MCP_ASSERT), "run", *options], folder)
    try:
        found, complaints = _finish(ours)
        return _finish(theirs)[0], found, complaints
    finally:
        for process in (theirs, ours):
            process.kill()
            process.communicate()


def _put_in_reach(folder: Path, name: str) -> None:
    """A program of this name that starts fast: both tools start the server for each assertion."""
    folder.mkdir()
    program = folder / name
    command = shlex.join(warm_peer(str(BIN / name)))
    program.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
    program.chmod(0o755)


def _start(command: list[str], folder: Path) -> subprocess.Popen[str]:
    environment = {name: value for name, value in os.environ.items() if "DIFFERENTIAL" not in name}
    places = (str(folder / "bin"), str(BIN), environment["PATH"])
    environment["PATH"] = os.pathsep.join(places)
    environment["DIFFERENTIAL_WORD"] = "hello"
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=folder,
        env=environment,
        text=True,
    )


def _finish(process: subprocess.Popen[str]) -> tuple[dict[str, Said], str]:
    out, complaints = process.communicate(timeout=BOUND)
    assert "internal error" not in complaints, complaints
    assert "panic" not in complaints, complaints
    results = json.loads(out or "[]")
    found = {each["name"]: Said(each["status"], each.get("detail", "")) for each in results}
    assert len(found) == len(results), "names must be unique"
    return found, complaints
