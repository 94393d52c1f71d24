"""CPU of `mcptest --version` against `python -c pass`, interleaved, both without writing caches.

python benchmarks/startup.py [--runs 40]
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
from pathlib import Path

COMMANDS = {
    "python -c pass": [sys.executable, "-c", "pass"],
    "mcptest --version": [str(Path(sys.executable).with_name("mcptest")), "--version"],
    "mcptest --help": [str(Path(sys.executable).with_name("mcptest")), "--help"],
}


def cpu_seconds(command: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime - before.ru_utime) + (after.ru_stime - before.ru_stime)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=40)
    runs = parser.parse_args().runs
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    for command in COMMANDS.values():
        cpu_seconds(command)  # warm caches
    samples: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(runs):
        for name, command in COMMANDS.items():
            samples[name].append(cpu_seconds(command))
    base = statistics.median(samples["python -c pass"])
    for name, times in samples.items():
        median = statistics.median(times)
        print(f"{name:<20} median {median * 1000:6.1f} ms of CPU  ratio {median / base:4.1f}")


if __name__ == "__main__":
    main()
