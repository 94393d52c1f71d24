"""The rules themselves as text, JSON or one page: for `compliance rules` and `explain`."""

from __future__ import annotations

import functools
import itertools
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from mcptest.core.judgement import Commonness
from mcptest.core.revision import TIMELINE, Revision, Window
from mcptest.core.safe_text import show
from mcptest.core.verdict import Severity, Side
from mcptest.report.codec import as_json
from mcptest.report.compliance.facts import commonness_in_words
from mcptest.report.evidence import labelled_once
from mcptest.report.terminal import Style
from mcptest.rules.catalogue import all_rules, unknown_rule
from mcptest.rules.composition import COMPOSITION_RULES, CompositionRule
from mcptest.rules.corpus.probes import all_probes, placeholders, placeholders_in, well_known
from mcptest.rules.corpus.reader import corpus_of
from mcptest.rules.corpus.registry import Condition, CorpusRule, Needs, RegistryEntry, Row, in_words
from mcptest.rules.declaration import RULES, Rule
from mcptest.rules.known_sdks import known_sdks
from mcptest.suite.matching import compact_json
from mcptest.suite.sent_message import SentCheck

# -- Every rule that can be listed or explained --------------------------------------------------


@dataclass(frozen=True, slots=True)
class ListedRule:
    """One rule of the corpora, with what each revision makes of it.

    It has the attributes by which a rule over sessions is listed.
    """

    id: str
    by_revision: Mapping[Revision, CorpusRule]
    """In the order of the timeline."""
    newest: CorpusRule
    """As the newest revision with a date has it."""
    title: str
    category: str
    explanation: str
    fix: str
    entry: RegistryEntry
    session_rule: Rule | None
    """The rule over sessions that judges it; None when it asks for itself."""
    side: Side
    transports: tuple[str, ...]
    window: Window
    severity: Severity

    @classmethod
    def of(cls, name: str, held: Mapping[Revision, CorpusRule]) -> ListedRule:
        """`held`: at least one."""
        dated = [one for one in held if one is not Revision.DRAFT]
        new = held[dated[-1] if dated else Revision.DRAFT]
        texts = (new.title, new.section, new.requirement, new.fix)
        judge, severity = new.session or new.said, new.severity or Severity.MUST
        scope = (judge.side, judge.transports, window_of(list(held)), severity)
        return cls(name, held, new, *texts, new.said, new.session, *scope)

    def severity_in(self, revision: Revision | None) -> Severity:
        return self._in(revision).severity or Severity.MUST

    def url(self, revision: Revision | None = None) -> str:
        return self._in(revision).url

    def _in(self, revision: Revision | None) -> CorpusRule:
        return self.newest if revision is None else self.by_revision.get(revision, self.newest)

    def stages(self) -> list[tuple[Window, Row | None]]:
        """What is sent and expected, for each run of revisions in which it stays the same."""

        def asked(revision: Revision) -> tuple[object, ...]:
            row = self.by_revision[revision].row
            return () if row is None else (row.check, row.expect, row.says, row.needs, row.when)

        return [(window, self.by_revision[last].row) for window, last in self._runs(asked)]

    def severities(self) -> list[tuple[Window, Severity]]:
        return [(window, self.severity_in(last)) for window, last in self._runs(self.severity_in)]

    def _runs(self, what: Callable[[Revision], object]) -> Iterator[tuple[Window, Revision]]:
        """The revisions in a row in which something stays the same, and the last of them."""
        for _, run in itertools.groupby(self.by_revision, key=what):
            held = list(run)
            yield window_of(held), held[-1]

    def pages(self) -> list[str]:
        """The page of the specification; where it moved, each in its newest revision."""
        newest: dict[str, str] = {}
        for revision, rule in self.by_revision.items():
            if revision is not Revision.DRAFT or len(self.by_revision) == 1:
                newest[rule.url.replace(f"/{revision}/", "/", 1)] = rule.url
        return list(newest.values())


def window_of(held: Sequence[Revision]) -> Window:
    """From the first to the last, both included."""
    after = TIMELINE[held[-1].place + 1 :]
    return Window(held[0], after[0] if after else None)


def window_in_words(window: Window) -> str:
    """As it is said, except that nothing is later than the draft."""
    return str(window.since) if window.since is TIMELINE[-1] else str(window)


@functools.cache
def corpus_rules() -> dict[str, ListedRule]:
    """Every rule of the corpora by id, also those that a rule over sessions judges."""
    found: dict[str, dict[Revision, CorpusRule]] = {}
    for revision in TIMELINE:
        corpus = corpus_of(revision)
        for name, rule in corpus.rules.items() if corpus is not None else ():
            found.setdefault(name, {})[revision] = rule
    return {name: ListedRule.of(name, found[name]) for name in sorted(found)}


def all_listed_rules(
    revision: Revision | None = None, side: str | None = None
) -> list[Rule | ListedRule]:
    """Every rule that holds in that revision and judges that side, section by section."""
    known: list[Rule | ListedRule] = [*all_rules()]
    known += [rule for name, rule in corpus_rules().items() if name not in RULES]
    rules = [
        rule
        for rule in known
        if (revision is None or revision in rule.window)
        and (side is None or rule.side.value in {side, "both"})
    ]
    sections = list(dict.fromkeys(rule.category for rule in rules))
    return sorted(rules, key=lambda rule: sections.index(rule.category))


def find_any_rule(name: str) -> Rule | CompositionRule | ListedRule:
    """The rule with this id, in any case."""
    wanted = name.strip().upper()
    found = RULES.get(wanted) or COMPOSITION_RULES.get(wanted) or corpus_rules().get(wanted)
    if found is None:
        raise unknown_rule(name, [*RULES, *COMPOSITION_RULES, *corpus_rules()])
    return found


# -- A row of a corpus in words ------------------------------------------------------------------

LIMIT = 1_000


def sent_in_words(check: SentCheck) -> list[str]:
    """What is sent, line by line. Names in braces are explained at the end."""
    if check.probe:
        probe = all_probes()[check.probe]
        lines = [probe.about]
        for step in probe.steps:
            sent = step.send
            said = sent.raw or (sent.said if sent.method or sent.http is not None else "")
            action = step.action.replace("_", " ")
            lines.append(show(f"step {step.name}: {action} {said}".rstrip(), LIMIT))
    elif check.http is not None:
        headers = _members("in the headers", check.http.headers)
        lines = [", with ".join((f"HTTP {check.http.method}", *headers))]
        lines += [f"with the body {show(check.http.body, LIMIT)}"] if check.http.body else []
    elif check.raw:
        lines = [f"these bytes: {show(check.raw, LIMIT)}"]
    else:
        lines = list(_request(check))
    return [*lines, *(f"{{{name}}}: {placeholders()[name].about}" for name in _names_in(check))]


def _request(check: SentCheck) -> Iterator[str]:
    params = f" {compact_json(check.params)}" if check.params is not None else ""
    yield show(f"{check.method}{params}", LIMIT)
    for part in check.omit:
        yield f"without {part}"
    yield from (f"with {line}" for line in _members("in _meta", check.meta))
    yield from (f"with {line}" for line in _members("in the headers", check.headers))
    if check.declare:
        yield f"from a client that declares {', '.join(check.declare)}"


def _members(where: str, members: Any) -> Iterator[str]:
    for name, value in members.items():
        shown = f"no {name} {where}" if value is None else f"{name}: {compact_json(value)} {where}"
        yield show(shown, LIMIT)


def _names_in(check: SentCheck) -> list[str]:
    checks = [check]
    if check.probe:
        checks += [step.send for step in all_probes()[check.probe].steps]
    used: list[Any] = []
    for one in checks:
        used += [one.method, one.params, one.meta, one.headers]
        used += [one.http.headers, one.http.body] if one.http is not None else []
    # They are found from the last to the first.
    found = reversed(dict.fromkeys(placeholders_in(used)))
    return [name for name in found if name in placeholders()]


def expected_in_words(row: Row) -> list[str]:
    """What must hold, clause by clause; the words of the row come first where it has some."""
    return [row.says] if row.says else [in_words(one) for one in row.expect]


def needs_in_words(needs: Needs) -> list[str]:
    """What must hold before anything is sent for the rule; empty if nothing must."""
    known = well_known().get(needs.fixture, ())
    named = f", or it has {' or '.join(known)}" if known else ""
    told = [
        (needs.capability, f"the server declares {', '.join(needs.capability)}"),
        (needs.any_capability, f"the server declares one of {', '.join(needs.any_capability)}"),
        (needs.undeclared, f"the server does not declare {', '.join(needs.undeclared)}"),
        (needs.transport, f"the transport is {' or '.join(needs.transport)}"),
        (needs.session, "the server returned a session id"),
        (needs.authorization, "the server requires a token"),
        (needs.extension, f"the server declares the extension {needs.extension}"),
        (needs.fixture, f"the server has the fixture {needs.fixture}{named}"),
    ]
    return [words for wanted, words in told if wanted]


def conditions_in_words(when: Sequence[Condition]) -> list[str]:
    """What must hold of an exchange before the rule judges it, and the reason if it does not."""
    return [
        f"{in_words(one.expectation)} (otherwise not observed: {one.otherwise})" for one in when
    ]


def asked_in_words(row: Row) -> list[tuple[str, list[str]]]:
    """The whole row, as headings with their lines."""
    parts = [
        ("Sent", sent_in_words(row.check)),
        ("Expected", expected_in_words(row)),
        ("Tested only if", needs_in_words(row.needs)),
        ("Judged only if", conditions_in_words(row.when)),
        ("Why it is safe", [row.safe] if row.safe else []),
    ]
    return [(heading, lines) for heading, lines in parts if lines]


# -- The rules themselves as text, JSON or one page ----------------------------------------------

_WIDTH: Final = 96


def rules_as_lines(
    rules: Sequence[Rule | ListedRule],
    together: Sequence[CompositionRule],
    revision: Revision | None,
    style: Style,
) -> Iterator[str]:
    category = ""
    for rule in rules:
        if rule.category != category:
            yield ("\n" if category else "") + style.paint(rule.category, "cyan")
            category = rule.category
        severity = rule.severity_in(revision) if revision else rule.severity
        scope = style.paint(f"{rule.side.value}, {rule.window}", "dim")
        yield f"  {rule.id:<12} {severity.value:<6} {rule.title}  {scope}"
    if together:
        yield "\n" + style.paint("several servers together", "cyan")
    for other in together:
        yield f"  {other.id:<12} {'hazard':<6} {other.title}"
    yield ""
    yield f"{len(rules) + len(together)} rules. To read one in full: mcptest explain ID"


class RuleWindow(msgspec.Struct, frozen=True):
    """From `since` on, up to but without `until`."""

    since: Revision
    until: Revision | None


class SeverityIn(RuleWindow, frozen=True):
    severity: Severity


class AskedIn(RuleWindow, frozen=True):
    """How the rule is asked in some revisions, in words."""

    sent: list[str]
    expected: list[str]
    needs: list[str]
    when: list[str]


class DescribedRule(msgspec.Struct, frozen=True, kw_only=True):
    """One rule as JSON. The members that may be missing are of the corpora."""

    id: str
    title: str
    category: str
    kind: Literal["exchange", "session"]
    severity: Severity
    side: Side
    revisions: RuleWindow
    transports: list[str]
    specification: str
    explanation: str
    fix: str
    common: Commonness | None
    judged_by: str | UnsetType | None = UNSET
    severities: list[SeverityIn] | UnsetType = UNSET
    statements: list[str] | UnsetType = UNSET
    asked: list[AskedIn] | UnsetType = UNSET


class DescribedHazard(msgspec.Struct, frozen=True):
    id: str
    title: str
    explanation: str
    fix: str


class RuleListing(msgspec.Struct, frozen=True, tag_field="format", tag="mcptest.rules/1"):
    rules: list[DescribedRule]
    composition: list[DescribedHazard]


def rules_as_json(
    rules: Sequence[Rule | ListedRule],
    together: Sequence[CompositionRule],
    revision: Revision | None,
) -> bytes:
    listed = [described_rule(rule, revision) for rule in rules]
    hazards = [described_hazard(other) for other in together]
    return as_json(RuleListing(listed, hazards))


def described_hazard(rule: CompositionRule) -> DescribedHazard:
    return DescribedHazard(rule.id, rule.title, rule.explanation, rule.fix)


def described_rule(rule: Rule | ListedRule, revision: Revision | None = None) -> DescribedRule:
    window = rule.window
    described = DescribedRule(
        id=rule.id,
        title=rule.title,
        category=rule.category,
        kind="session",
        severity=rule.severity_in(revision) if revision else rule.severity,
        side=rule.side,
        revisions=RuleWindow(window.since, window.until),
        transports=sorted(rule.transports),
        specification=rule.url(revision),
        explanation=rule.explanation,
        fix=rule.fix,
        common=known_sdks().commonness(rule.id),
    )
    if isinstance(rule, Rule):
        return described
    # Only a rule of the corpora says how it is asked.
    session = rule.session_rule
    return replace(
        described,
        kind="exchange" if session is None else "session",
        judged_by=session.id if session is not None else None,
        severities=[
            SeverityIn(window.since, window.until, severity)
            for window, severity in rule.severities()
        ],
        statements=list(rule.entry.statements),
        asked=[
            AskedIn(
                window.since,
                window.until,
                sent=sent_in_words(row.check),
                expected=expected_in_words(row),
                needs=needs_in_words(row.needs),
                when=conditions_in_words(row.when),
            )
            for window, row in rule.stages()
            if row is not None
        ],
    )


def facts_of(rule: Rule | ListedRule) -> list[tuple[str, str]]:
    """The lines above a rule's page."""
    severity, more, pages = rule.severity.value, [], [rule.url()] if isinstance(rule, Rule) else []
    if isinstance(rule, ListedRule):
        pages, severities = rule.pages(), rule.severities()
        if len(severities) > 1:
            severity = ", ".join(f"{one.value} ({window_in_words(win)})" for win, one in severities)
        if rule.entry.statements:
            more = [("statements", ", ".join(rule.entry.statements))]
    elif rule.should_until is not None:
        severity += f" (SHOULD before {rule.should_until})"
    facts = [
        ("severity", severity),
        ("judges", {"both": "both sides"}.get(rule.side.value, f"the {rule.side.value}")),
        ("revisions", str(rule.window)),
    ]
    if rule.transports:
        facts.append(("transports", ", ".join(sorted(rule.transports))))
    facts += [("category", rule.category), *more, *(("specification", page) for page in pages)]
    if isinstance(rule, ListedRule) and rule.entry.retired and rule.window.until is not None:
        facts.append(("later", f"from {rule.window.until} on: {rule.entry.retired}"))
    common = known_sdks().commonness(rule.id)
    return [*facts, *([("common", commonness_in_words(common))] if common is not None else [])]


def rule_page(rule: Rule | CompositionRule | ListedRule, style: Style) -> Iterator[str]:
    yield f"{style.paint(rule.id, 'bold')}  {rule.title}"
    yield ""
    if isinstance(rule, ListedRule):
        for paragraph in rule.explanation.split("\n\n"):
            yield from (*_wrapped(paragraph), "")
        if rule.session_rule is not None:
            yield from (f"{rule.session_rule.id} judges it over whole sessions.", "")
        yield from _stages(rule, style)
    else:
        yield from rule.explanation.splitlines()
        yield ""
    if rule.fix:
        yield from (*_listed("What to do", [rule.fix], style), "")
    together = [("judges", "several servers together")]
    facts = together if isinstance(rule, CompositionRule) else facts_of(rule)
    pairs = ((name, line) for name, value in facts for line in _wrapped(value, _WIDTH - 15))
    for label, line in labelled_once(pairs, ""):
        yield f"{style.paint(f'{label:<14}', 'dim')} {line}"


def _stages(rule: ListedRule, style: Style) -> Iterator[str]:
    """How it is asked; of a later stage only what is not as it was before."""
    stages = rule.stages()
    before: list[tuple[str, list[str]]] = []
    for window, row in stages:
        if row is None:
            continue
        if len(stages) > 1:
            yield style.paint(window_in_words(window), "cyan")
        parts = asked_in_words(row)
        for heading, lines in parts:
            if (heading, lines) not in before:
                yield from _listed(heading, lines, style)
        before = parts
        yield ""


def _listed(heading: str, lines: Sequence[str], style: Style) -> Iterator[str]:
    if lines:
        yield style.paint(f"{heading}:", "bold")
    for line in lines:
        first, *rest = _wrapped(" ".join(line.split()), _WIDTH - 4)
        yield from (f"  {first}", *(f"    {one}" for one in rest))


def _wrapped(text: str, width: int = _WIDTH) -> list[str]:
    """In lines that fit, except that an address stays in one piece."""
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False) or [""]
