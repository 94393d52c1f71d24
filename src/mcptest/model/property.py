"""What property tests found: for each property how many examples held, and each counterexample."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any

import msgspec

from mcptest.model.verdict import Severity

PROPERTY_FORMAT = "mcptest.property/1"


class Way(enum.Enum):
    """How a server breaks a property."""

    RULE = "rule"
    """What it said breaks a rule."""
    CRASH = "crash"
    """A dead process, a closed connection, an internal error."""
    HANG = "hang"
    RELATION = "relation"
    """Two things that a tool claims to be the same are not."""


class Line(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of the conversation that shows it."""

    sender: str
    """`client`, `server`, or empty for a remark."""
    text: str
    at_fault: bool = False


class Counterexample(msgspec.Struct, frozen=True, kw_only=True):
    """The smallest conversation that was found to break a property."""

    of_property: str = msgspec.field(name="property")
    way: Way
    rule: str = ""
    """The id of the rule that is broken, where one says so."""
    title: str = ""
    severity: Severity = Severity.MUST
    message: str = ""
    expected: str = ""
    actual: str = ""
    steps: tuple[Mapping[str, Any], ...] = ()
    """What a client does, as data: `--replay` takes it up again."""
    words: tuple[str, ...] = ()
    """The same for people, a line for each step."""
    lines: tuple[Line, ...] = ()
    """What went over the wire."""
    first: int = 0
    """How many steps there were when it was first found."""
    tries: int = 0
    """Examples that were run to make it small."""
    after: int = 0
    """Steps at its beginning that are from earlier examples: it takes what they left behind."""
    again: bool = True
    """Whether it happened again on a fresh server."""
    known: bool = False
    """Whether it was found in an earlier run."""
    stderr: tuple[str, ...] = ()
    repeat: str = ""
    example: str = ""
    """The name under which it is kept."""

    @property
    def messages(self) -> int:
        """How many messages of ours it takes."""
        return sum(line.sender == "client" for line in self.lines)

    @property
    def fails(self) -> bool:
        """Whether it breaks more than advice."""
        return self.severity is Severity.MUST


class PropertyResult(msgspec.Struct, frozen=True, kw_only=True):
    """One property."""

    name: str
    about: str = ""
    skipped: str = ""
    """Why nothing was tried."""
    examples: int = 0
    replayed: int = 0
    """Examples of earlier runs that were tried again."""
    counterexamples: tuple[Counterexample, ...] = ()
    notes: tuple[str, ...] = ()
    ended_early: str = ""
    """Why there were fewer examples than asked for."""
    duration_ms: int = 0
    generating_ms: float = 0.0
    """How much of that was spent to make examples, not to run them."""


class PropertyReport(msgspec.Struct, frozen=True, kw_only=True):
    """A whole run."""

    server: str
    server_name: str = ""
    server_version: str = ""
    transport: str = ""
    revision: str = ""
    revision_reason: str = ""
    """Why this revision was spoken."""
    seed: int = 0
    wanted: int = 0
    """Examples that were asked for, for each property."""
    properties: tuple[PropertyResult, ...] = ()
    notes: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    """Lists that could not be read to their end, and schemas that can't be checked."""
    restarts: int = 0
    strict: bool = False
    """Broken advice fails as well."""
    started: str = ""
    duration_ms: int = 0
    interrupted: bool = False
    tool: str = ""
    format: str = PROPERTY_FORMAT

    @property
    def examples(self) -> int:
        return sum(one.examples + one.replayed for one in self.properties)

    @property
    def counterexamples(self) -> tuple[Counterexample, ...]:
        return tuple(found for one in self.properties for found in one.counterexamples)

    @property
    def failures(self) -> tuple[Counterexample, ...]:
        """Those that count."""
        return tuple(one for one in self.counterexamples if self.counts(one))

    def counts(self, found: Counterexample) -> bool:
        return found.fails or (self.strict and found.severity is Severity.SHOULD)

    @property
    def untried(self) -> tuple[str, ...]:
        """Properties that were asked for, and for which there was no time."""
        return tuple(
            one.name for one in self.properties if not (one.skipped or one.examples or one.replayed)
        )

    @property
    def failed(self) -> bool:
        return bool(self.failures or self.untried or self.problems) or self.interrupted
