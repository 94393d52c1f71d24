"""The vocabulary of probes: steps, what they send, and what a probe finds out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from mcptest.suite.check_forms import Check, HttpRequest

Action = Literal[
    "request",
    "notification",
    "raw",
    "http",
    "begin",
    "retry",
    "start",
    "cancel",
    "collect",
    "poll",
    "listen",
    "await_change",
    "walk_lists",
    "fetch_metadata",
    "close_stdin",
]
"""`begin` opens a session of its own; `retry` repeats the request of an input-required step with
answers; `start` sends a request without waiting, `cancel` takes it back, `collect` waits for it
after all; `poll` asks until a task has ended; `listen` opens a subscription; `await_change` waits
for a notification; `walk_lists` reads every page of every declared list; `fetch_metadata` looks
for the document that an authorization challenge is about."""


@dataclass(frozen=True, slots=True)
class Options:
    """How a step is taken, where it is not in the plainest way."""

    connection: Literal["same", "new", "bare"] = "same"
    """`new`: another one than before; `bare`: a fresh one on which nothing was said yet."""
    id: int | str | None = None
    """The id of the request, where it matters."""
    together: bool = False
    """The next step is taken without waiting for the answer to this one."""
    optional: bool = False
    """Left out where the server lacks what it needs."""
    rude: bool = False
    """A well-behaved client would not do this."""
    complete: bool = False
    """Where the server asks for input, it is given until there is a final answer."""
    needs: str = ""
    """A capability of the server without which the step is left out."""
    only: str = ""
    """Of a walk: this list only. Of a wait: this notification."""
    of: str = ""
    """The step whose cursor, task or request this one is about."""
    beyond: str = ""
    """Of an offered version: left out unless it is newer than the one that this step was answered
    with. Each offer takes a server of its own, and starting one is what costs most."""
    answers: Literal["none", "all", "with_extra", "malformed"] = "all"
    """Of a retry."""
    tampered: bool = False
    """Of a retry: the requestState has one character changed."""
    other_arguments: bool = False
    """The arguments are others than usual."""
    everything: bool = False
    """Of a subscription: every kind of change is asked for."""
    integer_header: bool = False
    """The argument that travels as a header is 42, and 42.0 in the header."""


PLAIN = Options()


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that is done, and what is sent."""

    name: str
    action: Action
    send: Check = field(default_factory=Check)
    options: Options = PLAIN


@dataclass(frozen=True, slots=True)
class Probe:
    name: str
    about: str
    """What is sent, in which order, and what it shows."""
    steps: tuple[Step, ...]
    facts: Mapping[str, str] = field(default_factory=dict)
    """What the runner works out, each with what it means."""
    own_connection: bool = False
    """It is not taken over a connection that other probes use too."""
    is_slow: bool = False
    """It waits for something that takes its time: others may be taken meanwhile."""

    ends_connection: bool = False
    """All that it needs is a connection that nobody has any more use for."""

    @property
    def step_names(self) -> tuple[str, ...]:
        return tuple(step.name for step in self.steps)

    @property
    def is_rude(self) -> bool:
        return any(step.options.rude for step in self.steps)

    @property
    def may_change_era(self) -> bool:
        """Whether a server that speaks both eras may read a step of it as of the other one."""
        return any("_meta" in step.send.omit for step in self.steps)


def request(
    name: str, method: str, params: Any = None, /, options: Options = PLAIN, **more: Any
) -> Step:
    return Step(name, "request", Check(method=method, params=params, **more), options)


def notification(name: str, method: str, params: Any = None, options: Options = PLAIN) -> Step:
    return Step(name, "notification", Check(method=method, params=params), options)


def call_tool(
    name: str, tool: str, arguments: Any = None, /, options: Options = PLAIN, **more: Any
) -> Step:
    params = {"name": tool, "arguments": arguments if arguments is not None else {}}
    return request(name, "tools/call", params, options, **more)


def start(step: Step) -> Step:
    """The same request, sent without waiting for its answer."""
    return Step(step.name, "start", step.send, step.options)


def walk(name: str, only: str = "", **options: Any) -> Step:
    return Step(name, "walk_lists", options=Options(only=only, **options))


def raw(name: str, text: str, **options: Any) -> Step:
    return Step(name, "raw", Check(raw=text), Options(rude=True, **options))


def http(name: str, method: str) -> Step:
    return Step(name, "http", Check(http=HttpRequest(method)), Options(rude=True))


def retry(name: str, answers: Any, **options: Any) -> Step:
    return Step(name, "retry", options=Options(answers=answers, of="ask", rude=True, **options))


ALIVE = request("after", "{alive_method}")
"""Shows that the server is still there, and has read what was sent before."""
ASK = call_tool("ask", "{asking_tool}", declare=("elicitation", "sampling", "roots"))
