"""`python -m tests.properties.mutants [NAME…]`: is every bug found, and made as small as it can be?

Prints a row for each. Exit code 1 when one is not found, found too late, or not small.
"""

from __future__ import annotations

import resource
import sys
import time
from pathlib import Path

import msgspec

from mcptest.core.revision import parse_revision
from mcptest.probe.properties.engine import run_properties
from mcptest.probe.properties.property_catalogue import PropertyOrder
from mcptest.report.property import Counterexample, Way
from mcptest.transport.target import Target
from tests.properties.every_fault import BUGS
from tests.properties.fault_seams import Bug

ROOT = Path(__file__).parents[2]
EXAMPLES = {"conversations": 2_000}
LIMIT = 60.0
"""Seconds, from the first start of the server to the smallest example."""


class Hunt(msgspec.Struct, frozen=True):
    """What became of one bug."""

    name: str
    seconds: float
    cpu: float = 0.0
    """Seconds of computing, ours and the server's, whatever else the machine does."""
    found: Counterexample | None = None
    messages: int = 0
    least: int = 0
    examples: int = 0

    @property
    def is_small(self) -> bool:
        return self.found is not None and self.messages <= self.least

    @property
    def is_good(self) -> bool:
        return self.is_small and self.seconds <= LIMIT

    @property
    def said(self) -> str:
        """The rule, or the way where no rule speaks."""
        return (self.found.rule or self.found.way.value) if self.found else "not found"

    @property
    def size(self) -> str:
        return f"{self.messages}/{self.least}" if self.found else f"-/{self.least}"

    @property
    def tries(self) -> int:
        return self.found.tries if self.found else 0


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
        max_time=10 * LIMIT,  # a busy machine takes its time, and finds the same
        timeout=1.0,
        fail_fast=True,
        allow_tools=bug.allow,
    )
    begun, computed = time.monotonic(), _computed()
    report = run_properties(order)
    seconds, cpu = time.monotonic() - begun, _computed() - computed
    tried = sum(one.examples for one in report.properties)
    for one in report.counterexamples:
        if says(one, bug):
            return Hunt(bug.name, seconds, cpu, one, messages_of(one), bug.least, tried)
    return Hunt(bug.name, seconds, cpu, least=bug.least, examples=tried)


def _computed() -> float:
    """By this process and all servers that it has ended."""
    servers = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + servers.ru_utime + servers.ru_stime


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


def row(one: Hunt) -> str:
    mark, by = "ok " if one.is_good else "BAD", BUGS[one.name].found_by
    return (
        f"{mark} {one.name:<30} {by:<22} {one.said:<12} {one.size:>5} messages  "
        f"{one.examples:>5} examples  {one.tries:>4} tries  "
        f"{one.seconds:5.1f} s  {one.cpu:5.1f} s cpu\n"
    )


def main(names: list[str]) -> int:
    bad = 0
    for name in names or BUGS:
        one = hunt(BUGS[name])
        bad += not one.is_good
        sys.stdout.write(row(one))
        sys.stdout.flush()
    total = len(names or BUGS)
    sys.stdout.write(f"{total - bad} of {total} bugs found and made small\n")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
