"""The vocabulary of probes: steps, what they send, and what a probe finds out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from mcptest.suite.check_forms import Check

Action = Literal[
    "request",
    "notification",
    "raw",
    "http",
    "retry",
    "close_stdin",
    "close_session",
    "walk_lists",
    "listen",
    "start",
    "cancel",
]
"""`retry` repeats the request of an input-required step with answers; `walk_lists` reads every
page of every declared list; `listen` opens a subscription; `start` sends a request without waiting
for its answer; `cancel` cancels the request that was started last."""


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that is done, and what is sent."""

    name: str
    action: Action
    send: Check = field(default_factory=Check)
    options: Mapping[str, Any] = field(default_factory=dict)
    """Of the action: `connection: new`, `answers: partial`, `id: text` and the like."""


@dataclass(frozen=True, slots=True)
class Probe:
    name: str
    about: str
    """What is sent, in which order, and what it shows."""
    steps: tuple[Step, ...]
    facts: Mapping[str, str] = field(default_factory=dict)
    """What the runner works out, each with what it means."""

    @property
    def step_names(self) -> tuple[str, ...]:
        return tuple(step.name for step in self.steps)


def request(name: str, method: str, params: Any = None, /, **more: Any) -> Step:
    options: dict[str, Any] = {key: more.pop(key) for key in ("connection", "id") if key in more}
    return Step(name, "request", Check(method=method, params=params, **more), options)


def notification(name: str, method: str, params: Any = None) -> Step:
    return Step(name, "notification", Check(method=method, params=params))


def call_tool(name: str, tool: str, arguments: Any = None, /, **more: Any) -> Step:
    params = {"name": tool, "arguments": arguments if arguments is not None else {}}
    return request(name, "tools/call", params, **more)


def retry(name: str, answers: str, **options: Any) -> Step:
    return Step(name, "retry", options={"answers": answers, **options})
