"""Named probes: what takes more than one message, as data that a runner executes (`probes.yml`).

A probe is a list of steps, taken in order over one connection unless a step says otherwise. What
came after a step is the target `steps.NAME`, what the runner works out of all of them is
`probe.FACT`. A step that can't be taken leaves its rule unobserved.

Checks name things in braces: the runner puts in what it learned from the server. A text that is
one placeholder and nothing else becomes its value, whatever its JSON type.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import msgspec

from mcptest.core.loading import loaded_once
from mcptest.suite.sent_message import SentCheck, texts_in

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
class StepOptions:
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


PLAIN = StepOptions()


@dataclass(frozen=True, slots=True)
class ProbeStep:
    """One thing that is done, and what is sent."""

    name: str
    action: Action = "request"
    send: SentCheck = field(default_factory=SentCheck)
    options: StepOptions = PLAIN


@dataclass(frozen=True, slots=True)
class Probe:
    name: str
    about: str
    """What is sent, in which order, and what it shows."""
    steps: tuple[ProbeStep, ...]
    facts: Mapping[str, str] = field(default_factory=dict)
    """What the runner works out, each with what it means."""
    failures: Mapping[str, str] = field(default_factory=dict)
    """What the server did where a fact is not as expected: facts may be named in braces."""
    steps_in_words: Mapping[str, str] = field(default_factory=dict)
    """What a step sends, after "the server answered"; without one it is the next request."""
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


@loaded_once
def all_probes() -> Mapping[str, Probe]:
    """By name, in the order of the file."""
    raw = (_COMPLIANCE / "probes.yml").read_bytes()
    return {probe.name: probe for probe in msgspec.yaml.decode(raw, type=tuple[Probe, ...])}


_COMPLIANCE = Path(__file__).parents[2] / "compliance"
_FIXTURE = "the fixture "
_PLACEHOLDER = re.compile(r"\{([a-z][a-z_]*)\}")


class Placeholder(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What stands for it, and what a server must have so that there is a value."""

    about: str = ""
    """Empty: a fixture that no check names in braces."""
    unlocked_by: str = ""
    """Empty: there is always a value."""
    known_as: tuple[str, ...] = ()
    """The names of the official suite's fixtures, and ours where it has none: a server that has
    one of them means it that way. A resource is known by its URI."""


@functools.cache
def _names() -> Mapping[str, Placeholder]:
    return msgspec.yaml.decode(
        (_COMPLIANCE / "placeholders.yml").read_bytes(), type=dict[str, Placeholder]
    )


@functools.cache
def placeholders() -> Mapping[str, Placeholder]:
    """Names in braces that a check may use."""
    return {name: one for name, one in _names().items() if one.about}


@functools.cache
def well_known() -> Mapping[str, tuple[str, ...]]:
    """Fixtures that are recognised by their names."""
    return {name: one.known_as for name, one in _names().items() if one.known_as}


@functools.cache
def known_fixtures() -> frozenset[str]:
    provided = (one.unlocked_by for one in placeholders().values())
    named = {one.removeprefix(_FIXTURE) for one in provided if one.startswith(_FIXTURE)}
    return frozenset(named | well_known().keys())


def placeholders_in(value: Any) -> Iterator[str]:
    """Every name in braces in any text of a value."""
    for text in texts_in(value):
        yield from _PLACEHOLDER.findall(text)


def fill(value: Any, known: Mapping[str, Any]) -> Any:
    """The value with its placeholders replaced; KeyError names the first that has no value."""
    if isinstance(value, str):
        return _filled_text(value, known)
    if isinstance(value, Mapping):
        return {_filled_text(str(k), known): fill(v, known) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [fill(one, known) for one in value]
    return value


def fill_check(check: SentCheck, known: Mapping[str, Any]) -> SentCheck:
    """The check with its placeholders replaced, but for text that is sent as it stands."""
    http = check.http
    if http is not None:
        http = msgspec.structs.replace(http, headers=fill(http.headers, known))
    return msgspec.structs.replace(
        check,
        method=fill(check.method, known),
        params=fill(check.params, known),
        meta=fill(check.meta, known),
        headers=fill(check.headers, known),
        http=http,
    )


def _filled_text(text: str, known: Mapping[str, Any]) -> Any:
    whole = _PLACEHOLDER.fullmatch(text)
    if whole is not None:
        return known[whole.group(1)]
    return _PLACEHOLDER.sub(lambda found: str(known[found.group(1)]), text)
