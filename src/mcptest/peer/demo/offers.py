"""What the demo has only when it is asked to, put together."""

from __future__ import annotations

from mcptest.peer.demo.world import Offer


def offer_of(parts: frozenset[str]) -> Offer:
    """The tools, prompts and resources of these parts."""
    from mcptest.peer.demo import fixtures, tasks

    with_fixtures, with_tasks = "fixtures" in parts, "tasks" in parts
    return Offer(
        (*(fixtures.TOOLS if with_fixtures else ()), *(tasks.TOOLS if with_tasks else ())),
        fixtures.PROMPTS if with_fixtures else (),
        fixtures.RESOURCES if with_fixtures else (),
        fixtures.TEMPLATES if with_fixtures else (),
    )
