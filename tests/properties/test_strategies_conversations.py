"""Conversations by strategy: every one can be had, and shrinks as a sequence."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, find, given, settings
from hypothesis import strategies as st

from mcptest.core.revision import TIMELINE, Revision
from mcptest.probe.counterexamples import SavedExample, example_of
from mcptest.probe.properties.steps import (
    AskAtOnce,
    AskStep,
    Cancel,
    Connect,
    Disconnect,
    Notify,
    PageStep,
    Step,
    Subscribe,
    Unsubscribe,
    requests_of,
    settled,
)
from mcptest.strategies import conversations
from tests.core.test_safe_text import is_invisible
from tests.properties.test_strategies_messages import SHOP

STEPS = st.lists(
    st.sampled_from(
        (
            Connect(),
            Disconnect(),
            AskStep("ping"),
            AskAtOnce((AskStep("ping"), AskStep("tools/list")), (1,)),
            Cancel(0),
            Cancel(2),
            PageStep("tools/list"),
        )
    ),
    max_size=8,
)


def can_be_had(steps: tuple[Step, ...]) -> bool:
    """Connected when something is sent, and cancelled only what was asked."""
    connected, asked = False, 0
    for step in steps:
        if isinstance(step, Connect | Disconnect):
            if connected is isinstance(step, Connect):
                return False
            connected = isinstance(step, Connect)
        elif not connected or (isinstance(step, Cancel) and step.index >= asked):
            return False
        asked += requests_of(step)
    return True


@pytest.mark.parametrize("revision", TIMELINE, ids=str)
def test_every_conversation_can_be_had_and_kept(revision: Revision) -> None:
    @settings(max_examples=30, suppress_health_check=list(HealthCheck))
    @given(conversations(revision, SHOP))
    def check(steps: tuple[Step, ...]) -> None:
        assert can_be_had(steps)
        assert isinstance(steps[0], Connect)
        kept = msgspec.json.encode(SavedExample(of_property="conversations", steps=list(steps)))
        assert example_of(kept, "kept").all_steps == steps
        assert not [one for step in steps for one in step.words if is_invisible(one)]

    check()


@pytest.mark.parametrize(
    ("revision", "transport", "more"),
    [
        (Revision.V2025_11_25, "stdio", {Cancel, Notify}),
        (Revision.V2025_11_25, "http", {Cancel, Notify}),
        (Revision.V2026_07_28, "stdio", {Cancel}),
        (Revision.V2026_07_28, "http", set()),  # cancelled by closing the stream
    ],
)
def test_every_kind_of_step_of_the_era_is_drawn(
    revision: Revision, transport: str, more: set[type]
) -> None:
    seen: set[type] = set()

    @settings(max_examples=200, suppress_health_check=list(HealthCheck))
    @given(conversations(revision, SHOP, transport))
    def collect(steps: tuple[Step, ...]) -> None:
        seen.update(map(type, steps))

    collect()
    both = {AskStep, AskAtOnce, PageStep, Subscribe, Unsubscribe, Connect, Disconnect}
    assert seen == both | more


@given(STEPS)
def test_any_steps_become_a_conversation_and_stay_one_when_some_are_left_out(
    steps: list[Any],
) -> None:
    whole = settled(steps)
    assert can_be_had(whole)
    assert settled(whole) == whole
    for place in range(len(steps)):
        assert can_be_had(settled(steps[:place] + steps[place + 1 :]))


def test_a_conversation_is_shrunk_to_the_steps_that_matter() -> None:
    def asks_after_coming_back(steps: tuple[Step, ...]) -> bool:
        return Disconnect() in steps and isinstance(steps[-1], AskStep)

    found = find(
        conversations(Revision.V2025_11_25, SHOP, most=5),
        asks_after_coming_back,
        settings=settings(max_examples=300),
    )
    assert [step.words for step in found[2:]] == ["disconnect", "connect", "ping"]
    assert len(found) == 5
