"""Run the matrix and write the page: `python -m tests.safety.matrix [--busy N] [--only A/B]`.

A run of everything is stored in results.json, beside the one with busy processes, and docs/safety.md
is made from both. With `--only` cells are run and told, and nothing is stored.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from tests.safety.cases import CASES, Case, Way
from tests.safety.cell import Outcome, run_cell
from tests.safety.commands import COMMANDS, Command

RESULTS = Path(__file__).with_name("results.json")
Cell = tuple[Command, Case, Way]


def all_cells(only: str = "") -> list[Cell]:
    """Every cell that applies; `only` is COMMAND/CASE, of which either may be missing."""
    command_name, _, case_name = only.partition("/")
    return [
        (command, case, way)
        for case in CASES
        for command in COMMANDS
        for way in case.ways
        if command_name in {"", command.name}
        and case_name in {"", case.name, f"{case.name}@{way}"}
        and not command.not_applicable(case, way)
    ]


@contextlib.contextmanager
def busy_processes(count: int) -> Iterator[None]:
    """So many processes that do nothing but compute."""
    words = [sys.executable, "-I", "-S", "-c", "while True: pass"]
    processes = [subprocess.Popen(words) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def golden_files(base: Path) -> Path:
    """What `snapshot` compares with: the answer of the server that behaves."""
    behaves = next(case for case in CASES if case.name == "behaves")
    (base / "suite.yaml").write_text(json.dumps(_suite()))
    words = ["snapshot", "--update", "suite.yaml", "--", *behaves.command()]
    subprocess.run([sys.executable, "-m", "mcptest", *words], cwd=base, check=True)
    return base / ".snapshots"


def _suite() -> dict[str, Any]:
    from tests.safety.commands import SUITE

    return SUITE


def run_cells(cells: Sequence[Cell], base: Path, jobs: int) -> Iterator[Outcome]:
    (base / "golden").mkdir()
    golden = golden_files(base / "golden")
    with ThreadPoolExecutor(jobs) as pool:
        running = {
            pool.submit(run_cell, *cell, base / f"{number:04}", golden): cell
            for number, cell in enumerate(cells)
        }
        for done in as_completed(running):
            yield done.result()


def told(outcome: Outcome) -> str:
    name = f"{outcome.command}/{outcome.case}@{outcome.way}"
    figures = f"{outcome.seconds:.1f}s of {outcome.limit:g}s, {outcome.peak_mb} MB"
    return f"{'✗' if outcome.wrong else '✓'} {name}: exit {outcome.code}, {figures}" + "".join(
        f"\n    {each}" for each in outcome.wrong
    )


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.safety.matrix")
    parser.add_argument("--busy", type=int, default=0, help="so many busy processes beside")
    parser.add_argument("--only", default="", metavar="COMMAND/CASE", help="either may be missing")
    parser.add_argument("--jobs", type=int, default=2 * (os.cpu_count() or 1))
    parser.add_argument("--keep", metavar="DIR", help="keep the folders of red cells there")
    parser.add_argument("--page", action="store_true", help="only write the page")
    arguments = parser.parse_args(argv)
    began = time.monotonic()
    base = Path(tempfile.mkdtemp(prefix="matrix-", dir=arguments.keep))
    outcomes: list[Outcome] = []
    cells = all_cells(arguments.only)
    try:
        with busy_processes(arguments.busy):
            for outcome in run_cells(cells, base, arguments.jobs):
                outcomes.append(outcome)
                print(f"[{len(outcomes)}/{len(cells)}] {told(outcome)}", flush=True)
                if outcome.wrong and arguments.keep:
                    log = base / "red.jsonl"
                    with log.open("a") as file:
                        file.write(json.dumps(outcome.as_dict()) + "\n")
    finally:
        if not arguments.keep:
            shutil.rmtree(base, ignore_errors=True)
    red = [outcome for outcome in outcomes if outcome.wrong]
    print(f"{len(outcomes)} cells, {len(red)} red, in {time.monotonic() - began:.0f} s")
    return 1 if red else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
