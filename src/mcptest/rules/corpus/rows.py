"""A rule of a corpus as values: what is sent, what must come back, what it needs to be asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from mcptest.model.revision import Revision
from mcptest.model.verdict import Severity
from mcptest.rules.corpus.registry import Entry
from mcptest.rules.declare import Rule
from mcptest.suite.check_forms import Check
from mcptest.suite.exchange_targets import Exchange, Expectation, judge_exchange
from mcptest.suite.json_equality import json_equal
from mcptest.suite.model import Place


@dataclass(frozen=True, slots=True)
class Needs:
    """Without these the rule is not applicable, or stays unobserved."""

    capability: tuple[str, ...] = ()
    """What the server must declare; a dot leads inside: `resources.subscribe`."""
    any_capability: tuple[str, ...] = ()
    """Of these it must declare at least one."""
    undeclared: tuple[str, ...] = ()
    """What it must not declare."""
    transport: tuple[str, ...] = ()
    fixture: str = ""
    session: bool = False
    """The server gave out a session id."""
    authorization: bool = False
    """The server asks for a token."""
    extension: str = ""
    single_era: bool = False
    """The server speaks no older revision beside this one."""


@dataclass(frozen=True, slots=True)
class Condition:
    """What must hold of the exchange before anything can be expected of it.

    A tool that answered with an error shows nothing about its structured content, an empty list
    nothing about what is in it: where a condition does not hold, the rule was not observed.
    """

    expectation: Expectation
    otherwise: str
    """Why nothing can be expected where it does not hold, in words."""


def unmet(when: Sequence[Condition], seen: Exchange) -> Condition | None:
    """The first condition that does not hold of what was seen."""
    return next((one for one in when if not judge_exchange([one.expectation], seen).passed), None)


@dataclass(frozen=True, slots=True)
class Row:
    """One rule as a revision's folder gives it."""

    rule_id: str
    check: Check
    expect: tuple[Expectation, ...]
    needs: Needs = field(default_factory=Needs)
    says: str = ""
    """What is expected, in words, where the matchers are hard to read."""
    safe: str = ""
    """Why asking this of a server in production does no harm, where it is not obvious."""
    when: tuple[Condition, ...] = ()
    control: Check | None = None
    """The same with nothing wrong in it. Unless it works, a refusal says nothing."""
    unlike: Check | None = None
    """Something else with nothing wrong in it. A refusal of the same words says nothing."""
    absent: Check | None = None
    """The same for something that is not there. A result of the same words served nothing."""
    expect_of_both_eras: tuple[Expectation, ...] = ()
    """What must hold instead where the server speaks older revisions too."""
    place: Place = field(default_factory=lambda: Place(""), compare=False)


@dataclass(frozen=True, slots=True)
class CorpusRule:
    """A rule in one corpus: its row or its function, and what the registry says of it."""

    id: str
    row: Row | None = None
    entry: Entry | None = None
    session: Rule | None = None
    """The function that judges it over whole sessions, in place of a row."""
    revision: Revision | None = None

    @property
    def title(self) -> str:
        if self.entry is not None and self.entry.title:
            return self.entry.title
        return self.session.title if self.session is not None else self.id

    @property
    def section(self) -> str:
        if self.entry is not None and self.entry.section:
            return self.entry.section
        return self.session.category if self.session is not None else ""

    @property
    def severity(self) -> Severity | None:
        if self.session is not None:
            return self.session.severity_in(self.revision)
        return self.entry.severity_in(self.revision) if self.entry is not None else None

    @property
    def requirement(self) -> str:
        if self.entry is not None and self.entry.requirement:
            return self.entry.requirement
        return self.session.explanation if self.session is not None else ""

    @property
    def fix(self) -> str:
        return self.entry.fix if self.entry is not None else ""

    @property
    def url(self) -> str:
        if self.session is not None:
            return self.session.url(self.revision)
        return self.entry.url(self.revision) if self.entry is not None else ""


def same_expectations(was: CorpusRule, now: CorpusRule) -> bool:
    """Whether both ask for the same: neither the order of keys nor that of the rows counts."""
    if was.row is None or now.row is None:
        return (was.row is None) == (now.row is None) and was.session is now.session
    left = [_plain(one) for one in was.row.expect]
    for wanted in map(_plain, now.row.expect):
        at = next((i for i, one in enumerate(left) if json_equal(one, wanted)), None)
        if at is None:
            return False
        del left[at]
    return not left


def _plain(one: Expectation) -> dict[str, Any]:
    return {"target": one.target, "matcher": dict(one.matcher)}
