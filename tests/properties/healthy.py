"""`python -m tests.properties.healthy [EXAMPLES]`: the demo in every revision and over every way.

Prints a row for each, and at the end how many examples there were. Exit code 1 for any
counterexample, advice included.
"""

from __future__ import annotations

import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from mcptest.model.property import PropertyReport
from mcptest.model.revision import TIMELINE, Era, Revision
from mcptest.run.properties.engine import run_properties
from mcptest.run.properties.order import PropertyOrder
from mcptest.transport.target import DEMO, Target, Way

STARTING_SECONDS = 30.0
READING = ("add", "echo", "fail", "countdown", "log", "list_roots", "weather")
"""The oldest revision has no hint by which tools say that they only read."""


class Case(msgspec.Struct, frozen=True):
    revision: Revision
    way: Way


def cases() -> list[Case]:
    found = []
    for revision in TIMELINE:
        ways: tuple[Way, ...] = ("stdio", "http")
        if revision.era is Era.HANDSHAKE:
            ways = ("stdio", "http", "sse")
        if revision is Revision.V2024_11_05:
            ways = ("stdio", "sse")  # streamable HTTP came with the revision after
        found += [Case(revision, way) for way in ways]
    return found


@contextmanager
def served(way: Way) -> Iterator[Target]:
    """A way to the demo; over HTTP it runs for as long as it is needed."""
    if way == "stdio":
        yield DEMO
        return
    command = [*DEMO.command, "--transport", "http"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        ready, _, _ = select.select([process.stderr], [], [], STARTING_SECONDS)
        line = process.stderr.readline() if ready else ""
        url = line.removeprefix("listening on ").strip()
        url = url.replace("/mcp", "/sse") if way == "sse" else url
        yield Target(way=way, label="demo", url=url)
    finally:
        process.terminate()
        process.wait()
        process.stderr.close()


def tried(case: Case, examples: int, seed: int = 1, max_time: float = 60.0) -> PropertyReport:
    with served(case.way) as target:
        return run_properties(
            PropertyOrder(
                target=target,
                revision=case.revision,
                examples=examples,
                seed=seed,
                max_time=max_time,
                allow_tools=READING,
                timeout=5.0,
                strict=True,
            )
        )


def main(words: list[str]) -> int:
    examples = int(words[0]) if words else 200
    total = bad = 0
    for case in cases():
        begun = time.monotonic()
        report = tried(case, examples)
        total += report.examples
        bad += report.failed
        held = "holds" if not report.failed else "BROKEN"
        sys.stdout.write(
            f"{held:<7} {case.revision.value:<11} {case.way:<6} {report.examples:>6} examples "
            f"{time.monotonic() - begun:6.1f} s\n"
        )
        for found in report.counterexamples:
            sys.stdout.write(f"        {found.of_property} {found.rule} {found.message}\n")
            sys.stdout.writelines(f"          {line.sender} {line.text}\n" for line in found.lines)
        sys.stdout.flush()
    sys.stdout.write(f"{total} examples, {bad} servers broken\n")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
