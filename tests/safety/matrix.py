"""Run the matrix and write the page: `python -m tests.safety.matrix [--busy N] [--only A/B]`.

A run of everything is stored in results.json, beside the one with busy processes, and
docs/safety.md is made of both. With `--only` or `--part` some cells are run and told, and nothing
is stored but with `--store`.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from tests.safety.cases import CASES, CLIENT_CASES, Case, Way
from tests.safety.cell import GRACE, Outcome, run_cell
from tests.safety.commands import CLIENT_COMMAND, COMMANDS, SUITE, Command
from tests.safety.page import write_page

RESULTS = Path(__file__).with_name("results.json")
Cell = tuple[Command, Case, Way]


def all_cells() -> list[Cell]:
    """Every cell that applies."""
    servers = [(command, case) for case in CASES for command in COMMANDS]
    clients = [(CLIENT_COMMAND, case) for case in CLIENT_CASES]
    return [
        (command, case, way)
        for command, case in servers + clients
        if not command.not_applicable(case)
        for way in case.ways
    ]


def name_of(cell: Cell) -> str:
    command, case, way = cell
    return f"{command.name}/{case.name}@{way}"


def chosen(only: Sequence[str], part: str = "1/1") -> list[Cell]:
    """The cells that are named, COMMAND/CASE@WAY, and of those each so many-th."""

    def fits(cell: Cell, wanted: str) -> bool:
        command, case, way = cell
        command_name, _, rest = wanted.partition("/")
        case_name, _, way_name = rest.partition("@")
        parts = ((command_name, command.name), (case_name, case.name), (way_name, way))
        return all(name in {"", actual} for name, actual in parts)

    first, _, step = part.partition("/")
    cells = [cell for cell in all_cells() if not only or any(fits(cell, each) for each in only)]
    return cells[int(first) - 1 :: int(step)]


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
    base.mkdir()
    behaves = next(case for case in CASES if case.name == "behaves")
    (base / "suite.yaml").write_text(json.dumps(SUITE))
    words = ["snapshot", "--update", "--quiet", "suite.yaml", "--", *behaves.command()]
    subprocess.run([sys.executable, "-m", "mcptest", *words], cwd=base, check=True)
    return base / ".snapshots"


def run_cells(cells: Sequence[Cell], base: Path, jobs: int, grace: float) -> Iterator[Outcome]:
    golden = golden_files(base / "golden")
    with ThreadPoolExecutor(jobs) as pool:
        running = [
            pool.submit(run_cell, *cell, base / f"{number:04}", golden, grace)
            for number, cell in enumerate(cells)
        ]
        try:
            for done in as_completed(running):
                yield done.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def told(outcome: Outcome) -> str:
    name = f"{outcome.command}/{outcome.case}@{outcome.way}"
    figures = f"{outcome.seconds:.1f}s of {outcome.limit:g}s, {outcome.peak_mb} MB"
    return f"{'✗' if outcome.wrong else '✓'} {name}: exit {outcome.code}, {figures}" + "".join(
        f"\n    {each}" for each in outcome.wrong
    )


def stored(outcomes: Sequence[Outcome], arguments: argparse.Namespace, seconds: float) -> None:
    """Put this run in the place of the last one under the same load; a part is put beside it."""
    results: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    load = f"busy {arguments.busy}"
    whole = results.get(load, {}) if is_part(arguments) else {}
    today = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d")
    results[load] = {
        "date": whole.get("date", today),
        "until": today,
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "jobs": max(arguments.jobs, whole.get("jobs", 0)),
        "load": max(round(os.getloadavg()[2]), whole.get("load", 0)),
        "seconds": round(seconds) + whole.get("seconds", 0),
        "cells": whole.get("cells", {})
        | {
            f"{each.command}/{each.case}@{each.way}": {
                "limit": each.limit,
                "seconds": each.seconds,
                "peak_mb": each.peak_mb,
                "exit": each.code,
                "wrong": each.wrong,
            }
            for each in outcomes
        },
    }
    text = json.dumps(results, indent=1, sort_keys=True, ensure_ascii=False)
    # one line for each cell
    RESULTS.write_text(_one_line_each(text) + "\n")


def _one_line_each(text: str) -> str:
    lines: list[str] = []
    for line in text.split("\n"):
        if line.startswith(" " * 4):
            lines[-1] += " " * (lines[-1][-1] == ",") + line.strip()
        elif line.startswith("   }") and lines[-1].count("{") > lines[-1].count("}"):
            lines[-1] += line.strip()
        else:
            lines.append(line)
    return "\n".join(lines)


def parsed(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.safety.matrix")
    parser.add_argument("--busy", type=int, default=0, help="so many busy processes beside")
    parser.add_argument(
        "--only", action="append", default=[], metavar="COMMAND/CASE@WAY",
        help="each part may be missing; may repeat",
    )  # fmt: skip
    parser.add_argument("--part", default="1/1", metavar="I/N", help="only this part of the cells")
    parser.add_argument("--jobs", type=int, default=2 * (os.cpu_count() or 1))
    parser.add_argument(
        "--grace", type=float, default=GRACE, help="seconds beyond the limit, on a crowded machine"
    )
    parser.add_argument("--keep", metavar="DIR", help="keep the folders of red cells there")
    parser.add_argument("--store", action="store_true", help="keep the results of a part, too")
    parser.add_argument("--page", action="store_true", help="only write the page")
    return parser.parse_args(argv)


def is_part(arguments: argparse.Namespace) -> bool:
    return bool(arguments.only) or arguments.part != "1/1" or arguments.grace != GRACE


def run_matrix(arguments: argparse.Namespace, base: Path) -> list[Outcome]:
    outcomes: list[Outcome] = []
    cells = chosen(arguments.only, arguments.part)
    with busy_processes(arguments.busy):
        for outcome in run_cells(cells, base, arguments.jobs, arguments.grace):
            outcomes.append(outcome)
            print(f"[{len(outcomes)}/{len(cells)}] {told(outcome)}", flush=True)
            if outcome.wrong and arguments.keep:
                with (base / "red.jsonl").open("a") as file:
                    file.write(json.dumps(outcome.as_dict()) + "\n")
    return outcomes


def main(argv: Sequence[str]) -> int:
    arguments = parsed(argv)
    if arguments.page:
        write_page(json.loads(RESULTS.read_text()))
        return 0
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # a shell does that to what it starts in the background, and every cell would inherit it
        signal.signal(signal.SIGINT, signal.default_int_handler)
    began = time.monotonic()
    base = Path(tempfile.mkdtemp(prefix="matrix-", dir=arguments.keep))
    try:
        outcomes = run_matrix(arguments, base)
    finally:
        if not arguments.keep:
            shutil.rmtree(base, ignore_errors=True)
    red = [outcome for outcome in outcomes if outcome.wrong]
    seconds = time.monotonic() - began
    print(f"{len(outcomes)} cells, {len(red)} red, in {seconds:.0f} s")
    if arguments.store or not is_part(arguments):
        stored(outcomes, arguments, seconds)
        write_page(json.loads(RESULTS.read_text()))
    return 1 if red else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
