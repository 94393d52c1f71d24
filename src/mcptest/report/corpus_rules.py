"""Every rule that can be listed or explained: those over whole sessions, and those of the corpora.

A rule of the corpora is seen here over all revisions at once.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mcptest.model.errors import UsageError
from mcptest.model.revision import TIMELINE, Revision, Window
from mcptest.model.show import show
from mcptest.model.verdict import Severity, Side
from mcptest.rules.catalogue import all_rules
from mcptest.rules.composition import COMPOSITION_RULES, CompositionRule
from mcptest.rules.corpus.registry import Entry
from mcptest.rules.corpus.rows import CorpusRule, Row
from mcptest.rules.corpus.version_corpus import corpus_of
from mcptest.rules.declare import RULES, Rule

LISTING: Final = "mcptest compliance rules lists them all"


@dataclass(frozen=True, slots=True)
class ListedRule:
    """One rule of the corpora, with what each revision makes of it.

    It has the attributes by which a rule over sessions is listed.
    """

    id: str
    by_revision: Mapping[Revision, CorpusRule]
    """In the order of the timeline; not empty."""

    @property
    def newest(self) -> CorpusRule:
        """As the newest revision with a date has it."""
        dated = [one for one in self.by_revision if one is not Revision.DRAFT]
        return self.by_revision[dated[-1] if dated else Revision.DRAFT]

    @property
    def entry(self) -> Entry:
        return self.newest.entry or Entry(self.id)

    @property
    def title(self) -> str:
        return self.newest.title

    @property
    def category(self) -> str:
        return self.newest.section

    @property
    def explanation(self) -> str:
        return self.newest.requirement

    @property
    def side(self) -> Side:
        session = self.newest.session
        return session.side if session is not None else self.entry.side

    @property
    def transports(self) -> frozenset[str]:
        session = self.newest.session
        return session.transports if session is not None else frozenset(self.entry.transports)

    @property
    def session_rule(self) -> Rule | None:
        """The rule over sessions that judges it; None when it asks for itself."""
        return self.newest.session

    @property
    def window(self) -> Window:
        held = list(self.by_revision)
        return window_of(held[0], held[-1])

    @property
    def severity(self) -> Severity:
        return self.severity_in(None)

    def severity_in(self, revision: Revision | None) -> Severity:
        rule = self.newest if revision is None else self.by_revision.get(revision, self.newest)
        return rule.severity or Severity.MUST

    def url(self, revision: Revision | None = None) -> str:
        rule = self.newest if revision is None else self.by_revision.get(revision, self.newest)
        return rule.url

    def stages(self) -> list[tuple[Window, Row | None]]:
        """What is sent and expected, for each run of revisions in which it stays the same."""
        found: list[tuple[Window, Row | None]] = []
        for _, run in itertools.groupby(self.by_revision.items(), key=lambda pair: _asked(pair[1])):
            held = list(run)
            found.append((window_of(held[0][0], held[-1][0]), held[-1][1].row))
        return found

    def severities(self) -> list[tuple[Window, Severity]]:
        found = []
        for severity, run in itertools.groupby(self.by_revision, key=self.severity_in):
            held = list(run)
            found.append((window_of(held[0], held[-1]), severity))
        return found

    def pages(self) -> list[str]:
        """The page of the specification; where it moved, each in its newest revision."""
        newest: dict[str, str] = {}
        for revision, rule in self.by_revision.items():
            if revision is not Revision.DRAFT or len(self.by_revision) == 1:
                newest[rule.url.replace(f"/{revision}/", "/", 1)] = rule.url
        return list(newest.values())


def window_of(first: Revision, last: Revision) -> Window:
    """From the first to the last, both included."""
    after = TIMELINE[last.place + 1 :]
    return Window(first, after[0] if after else None)


def window_in_words(window: Window) -> str:
    """As it is said, except that nothing is later than the draft."""
    return str(window.since) if window.since is TIMELINE[-1] else str(window)


def _asked(rule: CorpusRule) -> tuple[object, ...]:
    row = rule.row
    if row is None:
        return ()
    return row.check, row.expect, row.says, row.needs, row.when


def corpus_rules(corpora: Path | None = None) -> dict[str, ListedRule]:
    """Every rule of the corpora by id, also those that a rule over sessions judges."""
    return _shipped() if corpora is None else _gathered(corpora)


@functools.lru_cache(maxsize=1)
def _shipped() -> dict[str, ListedRule]:
    return _gathered(None)


def _gathered(corpora: Path | None) -> dict[str, ListedRule]:
    found: dict[str, dict[Revision, CorpusRule]] = {}
    for revision in TIMELINE:
        corpus = corpus_of(revision, corpora)
        for name, rule in corpus.rules.items() if corpus is not None else ():
            found.setdefault(name, {})[revision] = rule
    return {name: ListedRule(name, found[name]) for name in sorted(found)}


def all_listed_rules(
    revision: Revision | None = None, side: str | None = None, corpora: Path | None = None
) -> list[Rule | ListedRule]:
    """Every rule that holds in that revision and judges that side, section by section."""
    known: list[Rule | ListedRule] = [*all_rules()]
    known += [rule for name, rule in corpus_rules(corpora).items() if name not in RULES]
    rules = [
        rule
        for rule in known
        if (revision is None or revision in rule.window)
        and (side is None or rule.side.value in {side, "both"})
    ]
    sections = list(dict.fromkeys(rule.category for rule in rules))
    return sorted(rules, key=lambda rule: sections.index(rule.category))


def find_any_rule(name: str) -> Rule | CompositionRule | ListedRule:
    """The rule with this id, in any case; the error for a typo names the nearest one."""
    wanted = name.strip().upper()
    found = RULES.get(wanted) or COMPOSITION_RULES.get(wanted) or corpus_rules().get(wanted)
    if found is not None:
        return found
    names = [*RULES, *COMPOSITION_RULES, *corpus_rules()]
    near = _nearest(wanted, names)
    hint = f"did you mean {near}? " if near else ""
    raise UsageError(f"unknown rule: {show(name, 60)}", hint=f"{hint}{LISTING}")


def _nearest(wanted: str, names: list[str]) -> str:
    """A digit that was left out is the likeliest mistake."""
    family, _, number = wanted.partition("-")
    full = f"{family}-{number:0>3}"
    if full in names:
        return full
    import difflib

    return next(iter(difflib.get_close_matches(wanted[:40], names, n=1, cutoff=0.4)), "")
