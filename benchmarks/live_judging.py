"""`compliance run` on Python SDK servers over stdio: how many server starts of wall time it takes.

    python benchmarks/live_judging.py [--rounds 5] [--against REVISION]

In each round the server is started alone, asked one question and ended; then it is judged by this
checkout and, with `--against`, by an earlier commit. A start lasts until the first answer; the
second figure adds the end, which a command waits for as well. Processor time is read, too: on a
machine that has other work the wall time tells of that.
"""

from __future__ import annotations

import argparse
import os
import resource
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import msgspec
from against_revision import ROOT, SDK_SERVER, sources_of

from mcptest.rules.protocol import needed_meta
from mcptest.session.meeting import NEWEST_STATELESS

SERVERS = {
    "SDK server of the tests": SDK_SERVER,
    "mcp-server-time": (str(Path(sys.executable).with_name("mcp-server-time")),),
}


class Sample(NamedTuple):
    wall: float
    cpu: float
    starts: int = 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--against", default="", help="an earlier commit")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        sides = {"now": ROOT / "src"}
        if options.against:
            sides["then"] = sources_of(options.against, Path(folder))
        for name, server in SERVERS.items():
            _measure(name, server, sides, Path(folder), options.rounds)


def _measure(
    name: str, server: tuple[str, ...], sides: dict[str, Path], folder: Path, rounds: int
) -> None:
    samples: dict[str, list[Sample]] = {}
    load = os.getloadavg()[0]
    for _ in range(rounds):
        first, whole = _alone(server)
        samples.setdefault("start alone", []).append(first)
        samples.setdefault("start and end alone", []).append(whole)
        for side, sources in sides.items():
            samples.setdefault(f"compliance run, {side}", []).append(
                _judged(server, sources, folder)
            )
    one = statistics.median(sample.wall for sample in samples["start and end alone"])
    print(f"{name}: load {load:.1f} to {os.getloadavg()[0]:.1f}, {rounds} rounds")
    for what, found in samples.items():
        wall, cpu = (statistics.median(sample[place] for sample in found) for place in (0, 1))
        least = min(sample.cpu for sample in found)
        starts = statistics.median(sample.starts for sample in found)
        print(
            f"  {what:<22} wall {wall:6.2f} s ({wall / one:4.1f} starts)  "
            f"CPU {cpu:6.2f} s (least {least:.2f})  {starts:g} starts"
        )


def _alone(server: tuple[str, ...]) -> tuple[Sample, Sample]:
    params = {"_meta": needed_meta(NEWEST_STATELESS)}
    message = {"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": params}
    before, begun = _used(), time.monotonic()
    with subprocess.Popen(
        server, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(msgspec.json.encode(message) + b"\n")
        process.stdin.flush()
        process.stdout.readline()
        answered = time.monotonic() - begun
        fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
        cpu = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return Sample(answered, cpu), Sample(time.monotonic() - begun, _used() - before)


def _judged(server: tuple[str, ...], sources: Path, folder: Path) -> Sample:
    started = folder / "started"
    started.write_text("")
    counted = f"echo >> {shlex.quote(str(started))}; exec {shlex.join(server)}"
    before, begun = _used(), time.monotonic()
    subprocess.run(
        [sys.executable, "-m", "mcptest", "compliance", "run", "--", "sh", "-c", counted],
        check=True,
        env=os.environ | {"PYTHONPATH": str(sources), "PYTHONSAFEPATH": "1"},
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    wall = time.monotonic() - begun
    return Sample(wall, _used() - before, started.read_text().count("\n"))


def _used() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
