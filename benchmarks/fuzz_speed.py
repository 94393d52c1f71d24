"""Calls per second of a fuzz run: mcp-assert and mcptest, interleaved on the same servers.

    python benchmarks/fuzz_speed.py [--rounds 3] [--runs 30000] [--only trivial|everything]

Counted is the whole command, from its start to its end, with as many inputs on both sides; only
for tools that survive them, because mcp-assert does not restart a server, and for servers with few
words on stderr, which it does not read: mcp-server-time stands still under it. Read the ratios,
and on a machine that has other work those of the processor time, the server's included: mcptest
uses all cores, which then are not there.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
NPM = HERE.parent / "tests/peers/npm/node_modules/@modelcontextprotocol"
MCPTEST = Path(sys.executable).with_name("mcptest")
GOAL = 3.0
ENVIRONMENT = {
    key: value
    for key, value in os.environ.items()
    if key in {"HOME", "PATH", "TERM", "LANG", "USER"}
}


@dataclass(frozen=True)
class Subject:
    name: str
    server: str
    tool: str


def mcp_assert() -> str:
    import mcp_assert as package

    return str(Path(package.__file__).parent / "bin" / "mcp-assert")


def subjects() -> list[Subject]:
    found = [
        Subject("trivial", f"{sys.executable} -I -S {HERE / 'servers/stdio_sturdy.py'}", "echo")
    ]
    if shutil.which("node") and NPM.is_dir():
        server = f"node {NPM / 'server-everything/dist/index.js'} stdio"
        found.append(Subject("everything", server, "echo"))
    return found


@dataclass(frozen=True)
class Run:
    sent: int
    seconds: float
    processor: float
    """Of the command and its server, over all cores."""


def timed(command: list[str]) -> Run:
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(command, capture_output=True, env=ENVIRONMENT, check=False)
    spent = time.perf_counter() - begun
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 1):  # 1: something was found
        raise SystemExit(f"{command}\n{done.stderr[-2000:].decode()}")
    sent = json.loads(done.stdout)["summary"]["total_runs"]
    used = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return Run(sent, spent, used)


def median_ratio(theirs: list[float], ours: list[float]) -> float:
    return statistics.median(one / other for one, other in zip(theirs, ours, strict=True))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--runs", type=int, default=30_000)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    missed = 0
    for subject in subjects():
        if options.only not in ("", subject.name):
            continue
        shared = ["--server", subject.server, "--tool", subject.tool, "--json"]
        shared += ["--runs", str(options.runs), "--seed", "7"]
        lanes = {
            "mcp-assert": [mcp_assert(), "fuzz", *shared],
            "mcptest": [str(MCPTEST), "fuzz", *shared],
        }
        runs: dict[str, list[Run]] = {name: [] for name in lanes}
        for _ in range(options.rounds):
            for name, command in lanes.items():
                run = timed(command)
                runs[name].append(run)
                rate = (
                    f"{run.sent / run.seconds:>9.0f} calls/s  {run.processor:>6.2f} s of processor"
                )
                print(f"{subject.name:<12}{name:<12}{rate}  ({run.sent} sent)", flush=True)
        theirs, ours = runs.values()
        ratio = median_ratio([one.seconds for one in theirs], [one.seconds for one in ours])
        work = median_ratio([one.processor for one in theirs], [one.processor for one in ours])
        missed += ratio < GOAL
        print(
            f"{subject.name:<12}ratio {ratio:.1f}, goal {GOAL:.0f}; of the processor {work:.1f}\n"
        )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
