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

from mcptest.core.revision import TIMELINE, Era, Revision
from mcptest.probe.properties.engine import run_properties
from mcptest.probe.properties.property_catalogue import PropertyOrder
from mcptest.report.property import PropertyReport
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


def tried(case: Case, examples: int, seed: int = 1, max_time: float = 300.0) -> PropertyReport:
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


class Held(msgspec.Struct, frozen=True):
    """What became of one pair of a revision and a way."""

    case: Case
    report: PropertyReport
    seconds: float

    @property
    def is_good(self) -> bool:
        """Nothing was found, and nothing was left out for want of time."""
        early = any(one.ended_early for one in self.report.properties)
        return not self.report.failed and not early


def look_at(case: Case, examples: int) -> Held:
    begun = time.monotonic()
    return Held(case, tried(case, examples), time.monotonic() - begun)


def told(one: Held) -> str:
    case, report = one.case, one.report
    held = "holds" if one.is_good else "BROKEN"
    where = f"{case.revision.value:<11} {case.way:<6}"
    lines = [f"{held:<7} {where} {report.examples:>6} examples {one.seconds:6.1f} s"]
    for found in report.counterexamples:
        lines.append(f"        {found.of_property} {found.rule} {found.message}")
        lines += (f"          {line.sender} {line.text}" for line in found.lines)
    lines += (
        f"        {each.name}: {each.ended_early}" for each in report.properties if each.ended_early
    )
    return "\n".join(lines)


def main(words: list[str]) -> int:
    examples = int(words[0]) if words else 200
    seen = []
    for case in cases():
        seen.append(look_at(case, examples))
        print(told(seen[-1]), flush=True)
    bad = sum(not one.is_good for one in seen)
    print(f"{sum(one.report.examples for one in seen)} examples, {bad} servers broken")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
