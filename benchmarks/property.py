"""What an example of `mcptest property` costs beyond what Hypothesis needs to make it.

    python benchmarks/property.py [--examples 2000] [--rounds 5] [--server demo|trivial]

By strategy, over stdio, all in one run: examples of a seed are made, and each is played and judged
at once. What goes by between the moment it is there and the moment it is judged is its cost;
all the rest is the making. Of the cost, what goes on while we wait for the server's answer is told
apart, because a quicker server would make it less. Told are processor time of this process and wall
time. Every round has the same examples, and the best round counts: other work on the machine can
only add to it. The goal, half a millisecond, is for the processor time without the waiting.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from mcptest.core.revision import Revision
from mcptest.probe.properties.bench import Judge, PlayBench
from mcptest.probe.properties.player import ExampleServer
from mcptest.probe.properties.property_catalogue import (
    PROPERTIES,
    KnownServer,
    PropertyOrder,
    ground_of,
)
from mcptest.probe.properties.property_examples import examples_of
from mcptest.probe.properties.search import Trial, keep_nothing_here, search
from mcptest.transport.target import DEMO, Target

STRATEGIES = ("messages-valid", "messages-invalid", "arguments", "arguments-almost-valid")
QUICK = ("add", "echo")
GOAL_MS = 0.5
TRIVIAL = Target(
    way="stdio",
    label="trivial",
    command=(sys.executable, str(Path(__file__).with_name("property_trivial.py"))),
)
"""As little of a server as can be: what it takes itself is next to nothing."""


class Spent(msgspec.Struct, frozen=True):
    """Milliseconds."""

    own: float = 0.0
    """Of the processor, by this process."""
    wall: float = 0.0

    def __sub__(self, other: Spent) -> Spent:
        return Spent(self.own - other.own, self.wall - other.wall)

    def each(self, count: int) -> Spent:
        return Spent(self.own / count, self.wall / count)


class Round(msgspec.Struct, frozen=True):
    """For each example."""

    making: Spent
    cost: Spent
    """Playing it and judging it."""
    waiting: Spent
    """How much of that went by between a question and its answer."""
    examples: int


def now() -> Spent:
    return Spent(time.process_time() * 1000, time.perf_counter() * 1000)


class Waiting:
    """How long the transport was asked for what has come."""

    def __init__(self, stage: ExampleServer) -> None:
        self.own = self.wall = 0.0
        transport: Any = stage.connection.transport
        receive = transport.receive

        def measured(deadline: Any) -> Any:
            begun = now()
            try:
                return receive(deadline)
            finally:
                spent = now() - begun
                self.own += spent.own
                self.wall += spent.wall

        transport.receive = measured


def ground_for(stage: ExampleServer) -> KnownServer:
    facts = stage.facts
    assert facts is not None  # it was opened
    ground = ground_of(stage.revision, facts.met.transport, facts.offer, ())
    tools = tuple(one for one in ground.offer.tools if one["name"] in QUICK)
    return replace(ground, offer=replace(ground.offer, tools=tools))


def measured(name: str, stage: ExampleServer, examples: int) -> Round:
    ground = ground_for(stage)
    strands = examples_of(name, ground)
    each = max(1, examples // len(strands))
    judge = Judge(ground.revision, ground.transport, rude=PROPERTIES[name].rude)
    trial = Trial(PlayBench(stage, judge), until=time.monotonic() + 600)
    made = broken = 0
    own = wall = 0.0

    def tried(steps: Any) -> None:
        nonlocal made, broken, own, wall
        begun = now()
        broken += trial.tried(steps) is not None
        spent = now() - begun
        made += 1
        own += spent.own
        wall += spent.wall

    def run(body: Callable[..., None]) -> Spent:
        begun = now()
        for place, strand in enumerate(strands):
            search(strand.strategy, body, seed=place, examples=each)
        return now() - begun

    run(lambda steps: None)  # whatever is worked out but once
    stage.drop()
    stage.open()
    waiting = Waiting(stage)
    whole = run(tried)
    assert not broken, f"{name}: {broken} of {made} examples are broken; what passes is measured"
    cost = Spent(own, wall)
    waited = Spent(waiting.own, waiting.wall)
    return Round((whole - cost).each(made), cost.each(made), waited.each(made), made)


def best(rounds: list[Round], part: Callable[[Round], Spent]) -> Spent:
    return Spent(min(part(one).own for one in rounds), min(part(one).wall for one in rounds))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--examples", type=int, default=2_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--server", choices=("demo", "trivial"), default="trivial")
    given = parser.parse_args()
    gc.set_threshold(100_000)  # as the command itself does
    keep_nothing_here()
    target = DEMO if given.server == "demo" else TRIVIAL
    stage = ExampleServer(PropertyOrder(target=target, revision=Revision.V2025_11_25))
    stage.open()
    missed = 0
    sys.stdout.write(
        f"milliseconds for each example, server {given.server}, best of {given.rounds}\n"
    )
    heads = ("", "making", "cost", "of which waiting", "examples")
    sys.stdout.write("{:<24}{:>16}{:>18}{:>20}{:>10}\n".format(*heads))
    sys.stdout.write("{:<24}{:>16}{:>18}{:>20}\n".format("", *["cpu / wall"] * 3))
    try:
        for name in STRATEGIES:
            rounds = [measured(name, stage, given.examples) for _ in range(given.rounds)]
            making = best(rounds, lambda one: one.making)
            cost = best(rounds, lambda one: one.cost)
            waiting = best(rounds, lambda one: one.waiting)
            missed += cost.own - waiting.own > GOAL_MS
            shown = [f"{one.own:.3f} / {one.wall:.3f}" for one in (making, cost, waiting)]
            count = rounds[0].examples
            sys.stdout.write("{:<24}{:>16}{:>18}{:>20}{:>10}\n".format(name, *shown, count))
            sys.stdout.flush()
    finally:
        stage.close()
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
