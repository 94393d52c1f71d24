"""Signals at random moments, a sample: see `random_signals` for more of them."""

from __future__ import annotations

import random
import sys

import pytest

from tests.e2e.random_signals import (
    EARLIEST,
    ENDS_AS_ITS_SERVER,
    WORDS,
    fire_all,
    kill,
    kill_proxies,
    shots,
)

SAMPLE = 60
SEED = 20_261
KILLS = 12
INTERRUPTED = 130
TOO_LATE = 0.1
"""The share of signals that may come when a command has just ended its work."""


def test_a_signal_at_any_moment_ends_every_command_in_order() -> None:
    fired = fire_all(list(shots(SAMPLE, SEED)))
    assert {shot.name for shot in fired} == set(WORDS)
    assert sum(shot.was_ours for shot in fired) > SAMPLE / 2, "most came after our first line"
    assert [str(shot) for shot in fired if shot.problems] == []
    heard = [shot for shot in fired if shot.was_ours and shot.name not in ENDS_AS_ITS_SERVER]
    deaf = [str(shot) for shot in heard if shot.code != INTERRUPTED]
    assert len(deaf) <= TOO_LATE * len(heard), deaf


@pytest.mark.parametrize("name", ["run, fresh", "snapshot", "record", "lint"])
def test_after_a_kill_the_next_run_starts_clean(name: str) -> None:
    dice = random.Random(name)
    for _ in range(2):
        assert kill(name, dice.uniform(EARLIEST, 2.0)) == []


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux tells us of orphans")
def test_a_proxy_that_is_killed_at_any_moment_leaves_no_process() -> None:
    assert kill_proxies(KILLS, SEED) == []
