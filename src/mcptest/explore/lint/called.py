"""Codes that need answers of a live tool: judged from texts that somebody else asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from mcptest.explore.lint.declare import lint_rule
from mcptest.explore.lint.finding import Limits, Remark, Severity

TRIALS = 3


class Called(msgspec.Struct, frozen=True):
    """What a tool answered to the same call, once or several times."""

    tool: str
    answers: Sequence[str]


@lint_rule(
    "E301",
    "answer that is too large",
    Severity.ERROR,
    "called",
    why="One call fills the context of the model. Needs --call-tools.",
    fix="Page it, cut it, or answer with a resource link.",
)
def large_answer(called: Called, limits: Limits) -> Iterator[Remark]:
    size = max((len(one.encode("utf-8", "replace")) for one in called.answers), default=0) // 1024
    if size > limits.max_response_kb:
        message = f"answers {size} KB (at most {limits.max_response_kb})"
        yield Remark(message, "response", item=called.tool)


@lint_rule(
    "W107",
    "different answers to the same call",
    Severity.WARNING,
    "called",
    why="A model can't rely on what changes by itself. Needs --detect-nondeterminism.",
    fix="Sort what has no order, and leave out times and ids that nobody asked for.",
)
def changing_answers(called: Called, limits: Limits) -> Iterator[Remark]:
    different = len(set(called.answers))
    if different > 1:
        message = f"gave {different} different answers to {len(called.answers)} identical calls"
        yield Remark(message, "behavior", item=called.tool)
