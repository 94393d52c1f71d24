"""Every command as it is here against the same command of an earlier commit, taken in turns.

python benchmarks/against_revision.py HEAD~20 [--rounds 5] [--only "run;lint"]

Both run in this interpreter, with the packages that are installed here; only the sources differ.
The ratio is the median of now over the median of then, for processor time and wall time. Above 1 it
got slower. The load of the machine stands at the end.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
SDK_SERVER = (sys.executable, str(ROOT / "tests/peers/python_sdk_server.py"))
RAW_CLIENT = f"{sys.executable} -S {ROOT / 'tests/conformance/raw_client.py'}"
COMMANDS: dict[str, tuple[str, ...]] = {
    "--version": ("--version",),
    "run --help": ("run", "--help"),
    "run": ("run", str(ROOT / "examples/quickstart.yaml"), "--server", "demo"),
    "audit": ("audit", "--server", "demo"),
    "lint": ("lint", "--server", "demo"),
    "lint, SDK server": ("lint", "--", *SDK_SERVER),
    "fuzz": ("fuzz", "--server", "demo", "--runs", "20", "--seed", "1"),
    "property": ("property", "--server", "demo", "--examples", "10", "--seed", "1"),
    "record": ("record", "--server", "demo", "--out", "session.jsonl"),
    "invariants": ("compliance", "invariants", "--capture", "large.jsonl"),
    "compliance run": ("compliance", "run", "--server", "demo"),
    "compliance run, SDK server": ("compliance", "run", "--", *SDK_SERVER),
    "doctor": ("doctor", "--server", "demo", "--to", "2026-07-28"),
    "conformance server": ("conformance", "server", "--server", "demo"),
    "conformance client": ("conformance", "client", "--command", RAW_CLIENT),
}
Sample = tuple[float, float]
"""Processor time and wall time, in seconds."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("revision", help="the commit to compare with")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--only", default="", help="names of commands, with semicolons between them"
    )
    options = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    wanted = options.only.split(";") if options.only else list(COMMANDS)
    with tempfile.TemporaryDirectory() as folder:
        then = sources_of(options.revision, Path(folder))
        columns = f"{'now':>8}{'ratio':>7}"
        print(f"{'command':<28}{'CPU then':>10}{columns}{'wall then':>11}{columns}")
        for name in wanted:
            _compare(name, then, Path(folder), options.rounds)
    print(f"load of the machine at the end: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


def sources_of(revision: str, folder: Path) -> Path:
    archive = subprocess.run(
        ["git", "archive", revision, "src"], cwd=ROOT, capture_output=True, check=True
    )
    subprocess.run(["tar", "-x", "-C", str(folder)], input=archive.stdout, check=True)
    large = [
        str(folder / "large.jsonl"),
        "--form",
        "full",
        "--exchanges",
        "20000",
        "--megabytes",
        "10",
    ]
    subprocess.run([sys.executable, str(ROOT / "benchmarks/make_capture.py"), *large], check=True)
    return folder / "src"


def _compare(name: str, then: Path, folder: Path, rounds: int) -> None:
    sides = {"then": then, "now": ROOT / "src"}
    for sources in sides.values():
        _measure(name, sources, folder)  # byte code and caches are there from now on
    samples: dict[str, list[Sample]] = {"then": [], "now": []}
    for _ in range(rounds):
        for side, sources in sides.items():
            samples[side].append(_measure(name, sources, folder))
    line = f"{name:<28}"
    for which, width in ((0, 10), (1, 11)):
        before, after = (statistics.median(one[which] for one in samples[side]) for side in sides)
        line += f"{before:>{width}.3f}{after:>8.3f}{after / before:>7.2f}"
    print(line, flush=True)


def _measure(name: str, sources: Path, folder: Path) -> Sample:
    command = [sys.executable, "-m", "mcptest", *COMMANDS[name]]
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(
        command,
        check=False,
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(sources), "PYTHONSAFEPATH": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    took, after = time.monotonic() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in {0, 1}:
        sys.exit(f"{name}: exit code {done.returncode}\n{done.stderr.decode()}")
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, took


if __name__ == "__main__":
    main()
