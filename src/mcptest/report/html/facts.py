"""What the page is made of: plain values, the same for tests, rules, scenarios and captures."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

Outcome: TypeAlias = Literal[
    "fail", "warn", "pass", "inconclusive", "not_observed", "not_applicable", "skip"
]
Form: TypeAlias = Literal["prose", "code", "message", "link", "command", "diff", "wire"]


class Fact(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing to know of an entry. The form says how it is shown, never what it means."""

    label: str
    form: Form = "prose"
    text: str = ""
    expected: str | None = None
    actual: str | None = None
    session: int = 0
    """Of a `wire` fact: where in the wire view it is."""
    row: int = 0


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """One test, rule, scenario or gate with its verdict."""

    name: str
    outcome: Outcome
    group: str = ""
    """The suite file, the section of the specification, the scenario's revision."""
    id: str = ""
    severity: str = ""
    brief: str = ""
    """The reason in one line."""
    ms: float | None = None
    column: str = ""
    """Of a rule: the server and revision that it was judged on, a column of the matrix."""
    facts: tuple[Fact, ...] = ()


class Trials(msgspec.Struct, frozen=True):
    """One test over its trials, in the order in which they ran."""

    name: str
    outcomes: tuple[Outcome, ...]
    ms: tuple[float, ...]


class Source(msgspec.Struct, frozen=True, omit_defaults=True):
    """One stored file: what it is about, what came of it, and what else it says."""

    file: str
    kind: str
    subject: str = ""
    started: str = ""
    tool: str = ""
    ms: float = 0
    exit_code: int = 0
    grade: str = ""
    summary: str = ""
    notes: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()
    """What is different from the baseline or the list of expected failures."""
    trials: tuple[Trials, ...] = ()
    """The least reliable first."""
    entries: tuple[Entry, ...] = ()


class Pin(msgspec.Struct, frozen=True, omit_defaults=True):
    """A finding on the very message that shows it."""

    row: int
    rule: str
    message: str
    severe: bool = True
    expected: str | None = None
    actual: str | None = None
    pointer: str | None = None


LONGEST_BRIEF = 300


def brief(text: str) -> str:
    """The first line of a text, for a list."""
    line = text.strip().partition("\n")[0]
    return line if len(line) <= LONGEST_BRIEF else line[: LONGEST_BRIEF - 1] + "…"


def told(label: str, text: str | None, form: Form = "prose") -> tuple[Fact, ...]:
    """A fact where there is something to tell."""
    return (Fact(label, form, text),) if text else ()
