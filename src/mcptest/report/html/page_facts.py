"""What the page is made of: plain values, the same for tests, rules, scenarios and captures."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from mcptest.core.judgement import SectionScore
from mcptest.core.results import FailedCheck, Invocation
from mcptest.core.verdict import Finding
from mcptest.report.codec import plain_json

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


class PageEntry(msgspec.Struct, frozen=True, omit_defaults=True):
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
    row: str = ""
    """Its row in the matrix; empty: its id."""
    facts: tuple[Fact, ...] = ()


class Trials(msgspec.Struct, frozen=True):
    """One test over its trials, in the order in which they ran."""

    name: str
    outcomes: tuple[Outcome, ...]
    ms: tuple[float, ...]


class PageReliability(msgspec.Struct, frozen=True):
    """All tests over their trials, whatever number of them is listed."""

    tests: int
    capable: int
    """They passed at least once."""
    reliable: int
    """They passed every time."""
    flaky: tuple[str, ...]
    at_least_one: tuple[float, ...]
    """pass@k for k from 1 on: how likely one of k trials passes, as a mean of the tests."""
    every_one: tuple[float, ...]
    """pass^k: how likely all of k trials pass."""


class Unjudged(msgspec.Struct, frozen=True):
    """Rules that share the reason why they were not judged."""

    kind: Outcome
    why: str
    ids: tuple[str, ...]


class Column(msgspec.Struct, frozen=True, omit_defaults=True):
    """A server in one revision: the head of a column of the matrix, and its grade."""

    name: str
    server: str
    revision: str = ""
    grade: str = ""
    graded: bool = False
    """Whether there is more to say of its grade than a letter."""
    about: tuple[str, ...] = ()
    """Score, coverage, caps, by which rules: a line each."""
    sections: tuple[SectionScore, ...] = ()
    unjudged: tuple[Unjudged, ...] = ()


class Change(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something that is different from the baseline or the list of expected failures."""

    text: str
    outcome: Outcome = "fail"
    name: str = ""
    """The entry that it is about."""


class Source(msgspec.Struct, frozen=True, omit_defaults=True):
    """One stored file: what it is about, what came of it, and what else it says."""

    file: str = ""
    kind: str = ""
    subject: str = ""
    started: str = ""
    tool: str = ""
    ms: float = 0
    exit_code: int = 0
    grade: str = ""
    summary: str = ""
    invocation: Invocation | None = None
    notes: tuple[str, ...] = ()
    changes: tuple[Change, ...] = ()
    trials: tuple[Trials, ...] = ()
    """The least reliable first."""
    reliability: PageReliability | None = None
    columns: tuple[Column, ...] = ()
    entries: tuple[PageEntry, ...] = ()


class Pin(msgspec.Struct, frozen=True, omit_defaults=True):
    """A finding on the very message that shows it."""

    row: int
    rule: str
    message: str
    severe: bool = True
    entry: int | None = None
    """The entry that it is the proof of, by its number in the page."""
    expected: str | None = None
    actual: str | None = None
    pointer: str | None = None


LONGEST_BRIEF = 300
SCHEMA_CHECK = "schema"


def brief(text: str) -> str:
    """The first line of a text, for a list."""
    return shortened(text.strip().partition("\n")[0], LONGEST_BRIEF)


def shortened(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"


def paragraphs(text: str) -> str:
    """A text that was wrapped for an editor, in lines as long as the reader's window."""
    return "\n\n".join(" ".join(one.split()) for one in text.split("\n\n"))


def told(label: str, text: str | None, form: Form = "prose") -> tuple[Fact, ...]:
    """A fact where there is something to tell."""
    return (Fact(label, form, text),) if text else ()


def difference(found: FailedCheck | Finding, label: str = "Finding") -> Fact:
    """What was expected beside what came."""
    at = f"\nat {found.pointer}" if found.pointer else ""
    return Fact(label, "diff", found.message + at, found.expected, found.actual)


def mismatch(check: FailedCheck) -> tuple[Fact, ...]:
    """Why a check failed. A schema and a value are not alike: no lines of them are compared."""
    if check.check == SCHEMA_CHECK:
        why = Fact("Why", "code", check.message)
        return (why, *told("Value", check.actual, "message"))
    compared = check.expected is not None or check.actual is not None
    return (difference(check, f"Expected {check.check}" if compared else "Why"),)


def in_json(value: object) -> str:
    return plain_json(value).decode("utf-8")
