"""What an example of `mcptest property` costs beyond what Hypothesis needs to make it.

    python benchmarks/property.py [--examples 2000] [--rounds 3]

By strategy, on the demo over stdio: the examples of one seed are made once with nothing done to
them, and once played and judged, in turn. Told are processor time of this process (the server's
own work is not ours) and wall time, for each example; the goal is half a millisecond.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable

from msgspec.structs import replace

from mcptest.model.revision import Revision
from mcptest.run.properties.bench import PlayBench
from mcptest.run.properties.catalogue import PROPERTIES, ground_of
from mcptest.run.properties.judging import Judge
from mcptest.run.properties.search import search
from mcptest.run.properties.stage import Stage, Whom
from mcptest.run.properties.trial import Trial
from mcptest.transport.target import DEMO

STRATEGIES = ("messages-valid", "messages-invalid", "arguments", "arguments-almost-valid")
QUICK = ("add", "echo")
GOAL_MS = 0.5


def spent(work: Callable[[], None]) -> tuple[float, float]:
    """Processor and wall milliseconds."""
    wall, own = time.perf_counter(), time.process_time()
    work()
    return (time.process_time() - own) * 1000, (time.perf_counter() - wall) * 1000


def measured(name: str, stage: Stage, examples: int, seed: int) -> tuple[float, float, int]:
    """Processor and wall time for each example, beyond making it; and how many there were."""
    facts = stage.facts
    assert facts is not None  # it was opened
    ground = ground_of(stage.revision, facts.transport, facts.offer, ())
    tools = tuple(one for one in ground.offer.tools if one["name"] in QUICK)
    ground = replace(ground, offer=replace(ground.offer, tools=tools))
    strands = PROPERTIES[name].examples(ground)
    each = max(1, examples // len(strands))
    judge = Judge(ground.revision, ground.transport, rude=PROPERTIES[name].rude)
    trial = Trial(PlayBench(stage, judge), until=time.monotonic() + 600)
    made = 0

    def count(steps: object) -> None:
        nonlocal made
        made += 1

    def run(body: Callable[..., None]) -> None:
        for place, strand in enumerate(strands):
            search(strand.strategy, body, seed=seed + place, examples=each)

    making = spent(lambda: run(count))
    stage.drop()
    stage.open()
    trying = spent(lambda: run(trial.tried))
    return (trying[0] - making[0]) / made, (trying[1] - making[1]) / made, made


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--examples", type=int, default=2_000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    target = DEMO  # it breaks no rule: what is measured is what passes
    stage = Stage(Whom(target=target, revision=Revision.V2025_11_25, timeout=5.0))
    stage.open()
    missed = 0
    try:
        for name in STRATEGIES:
            rounds = [measured(name, stage, given.examples, seed) for seed in range(given.rounds)]
            own = statistics.median(one[0] for one in rounds)
            wall = statistics.median(one[1] for one in rounds)
            missed += own > GOAL_MS
            sys.stdout.write(
                f"{name:<24} {own:6.3f} ms processor  {wall:6.3f} ms wall  "
                f"({rounds[0][2]} examples)\n"
            )
    finally:
        stage.close()
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
