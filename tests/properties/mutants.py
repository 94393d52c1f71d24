"""`python -m tests.properties.mutants [NAME…]`: is every bug found, and made as small as it can be?

Prints a row for each. Exit code 1 when one is not found, found too late, or not small.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import msgspec

from mcptest.model.property import Counterexample, Way
from mcptest.model.revision import parse_revision
from mcptest.run.properties.engine import run_properties
from mcptest.run.properties.order import PropertyOrder
from mcptest.transport.target import Target
from tests.properties.every_fault import BUGS
from tests.properties.fault_seams import Bug

ROOT = Path(__file__).parents[2]
EXAMPLES = {"conversations": 4_000}
LIMIT = 60.0


class Hunt(msgspec.Struct, frozen=True):
    """What became of one bug."""

    name: str
    seconds: float
    found: Counterexample | None = None
    messages: int = 0
    least: int = 0
    examples: int = 0

    @property
    def is_small(self) -> bool:
        return self.found is not None and self.messages <= self.least


def hunt(bug: Bug, seed: int = 1, examples: int = 400) -> Hunt:
    """Look for one bug with the property that should find it."""
    target = Target(
        way="stdio",
        label=bug.name,
        command=(sys.executable, "-m", "tests.properties.faulty", bug.name),
        cwd=str(ROOT),
    )
    order = PropertyOrder(
        target=target,
        revision=parse_revision(bug.revision),
        properties=(bug.found_by,),
        examples=EXAMPLES.get(bug.found_by, examples),
        seed=seed,
        max_time=30.0,
        timeout=1.0,
        fail_fast=True,
    )
    begun = time.monotonic()
    report = run_properties(order)
    seconds = time.monotonic() - begun
    tried = sum(one.examples for one in report.properties)
    for one in report.counterexamples:
        if says(one, bug):
            return Hunt(bug.name, seconds, one, messages_of(one), bug.least, tried)
    return Hunt(bug.name, seconds, least=bug.least, examples=tried)


def says(found: Counterexample, bug: Bug) -> bool:
    ways = {Way.CRASH: "crash", Way.HANG: "hang", Way.RELATION: "relation"}
    return bool({found.rule, found.title, ways.get(found.way, "")} & {*bug.rules})


def messages_of(found: Counterexample) -> int:
    """Steps that send something: connecting is the beginning of each."""
    count = 0
    for step in found.steps:
        if step["step"] in {"connect", "disconnect"}:
            continue
        count += len(step["many"]) if step["step"] == "ask-at-once" else step.get("pages", 1)
    return count


def main(names: list[str]) -> int:
    bad = 0
    for name in names or BUGS:
        one = hunt(BUGS[name])
        good = one.found is not None and one.is_small and one.seconds <= LIMIT
        bad += not good
        rule = (one.found.rule or one.found.way.value) if one.found else "not found"
        size = f"{one.messages}/{one.least}" if one.found else f"-/{one.least}"
        tries = one.found.tries if one.found else 0
        mark = "ok " if good else "BAD"
        sys.stdout.write(
            f"{mark} {name:<30} {BUGS[name].found_by:<22} {rule:<12} {size:>5} messages  "
            f"{one.examples:>5} examples  {tries:>4} tries  {one.seconds:5.1f} s\n"
        )
        sys.stdout.flush()
    total = len(names or BUGS)
    sys.stdout.write(f"{total - bad} of {total} bugs found and made small\n")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
