"""Holding a judged server against its baseline.

A failure that is not listed is red, and so is a listed rule that passes. A flaky rule is neither
while it fails no more often than it may.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, TypeAlias

from mcptest.core.errors import close_matches
from mcptest.core.judgement import GateResult, Judgement, PastRun, RuleResult
from mcptest.core.revision import TIMELINE, Revision, revision_of_label, revision_of_wire
from mcptest.core.safe_text import show
from mcptest.core.verdict import Outcome
from mcptest.rules.corpus.reader import corpus_of
from mcptest.suite.fields import Declaration, Field, ObjectOf, Reading, Text, read_object
from mcptest.suite.reading import (
    ListNode,
    MappingNode,
    Node,
    Place,
    ScalarNode,
    SuiteError,
    SuiteSource,
    did_you_mean,
    read_yaml,
)

# -- The baseline of a server as values ----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class KnownFailure:
    rule_id: str
    reason: str = ""
    tracking: str = ""
    max_rate: float | None = None
    """Of a flaky rule: the share of runs in which it may fail. None: it always fails."""
    revision: Revision | None = None
    """The only revision that the entry is about; None: every revision."""
    place: Place = field(default_factory=lambda: Place(""), compare=False)


@dataclass(frozen=True, slots=True)
class KnownFailures:
    entries: tuple[KnownFailure, ...] = ()

    def of(self, revision: Revision) -> dict[str, KnownFailure]:
        """The entries that hold in a revision, by rule; one that names it goes before."""
        general = {one.rule_id: one for one in self.entries if one.revision is None}
        own = {one.rule_id: one for one in self.entries if one.revision is revision}
        return {**general, **own}

    @property
    def flaky_rules(self) -> frozenset[str]:
        return frozenset(one.rule_id for one in self.entries if one.max_rate is not None)


def is_known_matter(result: RuleResult) -> bool:
    """What belongs in a baseline: a failure, or that a root cause keeps the rule unjudged."""
    return result.failed or (result.outcome is Outcome.INCONCLUSIVE and bool(result.cause))


# -- Reading a baseline --------------------------------------------------------------------------

SERVER: Final = "server"
"""The key of the entries that hold in every revision."""
GROUPS: Final = (SERVER, *(revision.label for revision in TIMELINE))

FLAKY = Declaration(
    "flaky",
    "The rule fails sometimes.",
    (Field("max_rate", Text(), "The share of runs that may fail, from 0 to 1.", required=True),),
)
ENTRY = Declaration(
    "a known failure",
    "A rule that the server is known to fail.",
    (
        Field("rule_id", Text(), "The rule; in a mapping by rule ids, its key."),
        Field("reason", Text(), "Why it fails, and why that is accepted."),
        Field("tracking", Text(), "Link to the issue that tracks the fix."),
        Field("flaky", ObjectOf(FLAKY), FLAKY.doc),
    ),
)


def load_known_failures(
    path: Path, *, corpora: Path | None = None, also: Collection[str] = ()
) -> KnownFailures:
    """The entries of a baseline. SuiteError, with every place, when anything is wrong with it.

    `also` are names that count as rules: the tests of a suite that are none of the corpus.
    """
    root, source = read_yaml(path)
    found = ((revision, corpus_of(revision, corpora)) for revision in TIMELINE)
    rules = {one: frozenset(corpus.rules) for one, corpus in found if corpus is not None}
    loader = _Loader(source, rules, frozenset(also))
    if root is not None:
        loader.read_document(root)
    if source.errors:
        raise SuiteError(source.finish())
    return KnownFailures(tuple(loader.entries))


class _Loader:
    def __init__(
        self, source: SuiteSource, rules: dict[Revision, frozenset[str]], also: frozenset[str]
    ) -> None:
        self.source = source
        self.rules = rules
        self.also = also
        self.every = also.union(*rules.values())
        self.entries: list[KnownFailure] = []
        self._first: dict[tuple[Revision | None, str], int] = {}

    def read_document(self, root: Node) -> None:
        """A list of entries, a mapping by rule id, or one of these by revision."""
        if not isinstance(root, MappingNode):
            self._read_group(root, None, "a baseline")
            return
        by_rule = {}
        for name, (key, node) in root.entries.items():
            revision = revision_of_label(name) or revision_of_wire(name)
            if name == SERVER or revision is not None:
                self._read_group(node, revision, name)
            elif not self._is_mistaken_group(name, key, node):
                by_rule[name] = (key, node)
        self._read_group(MappingNode(by_rule, root.line, root.column), None, "a baseline")

    def _is_mistaken_group(self, name: str, key: ScalarNode, node: Node) -> bool:
        """What holds rules can't be about one rule, so its key was meant to be a revision."""
        holds_rules = isinstance(node, MappingNode) and bool(node.entries.keys() & self.every)
        if name in self.every or not (holds_rules or isinstance(node, ListNode)):
            return False
        message = f"unknown key {show(name, 60)} in a baseline"
        self.source.report_at(key, message, did_you_mean(name, GROUPS))
        return True

    def _read_group(self, node: Node, revision: Revision | None, name: str) -> None:
        if isinstance(node, ListNode):
            for item in node.items:
                self._read_entry(item, revision)
        elif isinstance(node, MappingNode):
            for key, value in node.entries.values():
                self._read_entry(value, revision, key)
        elif not node.is_nothing:
            self.source.misfit(name, "a list or a mapping of rules", node)

    def _read_entry(
        self, node: Node, revision: Revision | None, key: ScalarNode | None = None
    ) -> None:
        """One entry of a list; or of a mapping by rules, where the key is the rule."""
        if isinstance(node, MappingNode):
            read = read_object(ENTRY, node, self.source)
            _, named = node.entries.get("rule_id", (None, None))
            rule = key or named
            if key is not None and named is not None:
                read.complain(f"the key already names the rule {show(key.text, 40)}", "rule_id")
            elif rule is None:
                read.complain("rule_id is missing from a known failure")
            elif read.sound:
                entry = KnownFailure(
                    key.text if key is not None else read.get("rule_id"),
                    " ".join(read.get("reason", "").split()),
                    read.get("tracking", ""),
                    _max_rate(read.get("flaky")),
                    revision,
                )
                self._keep(entry, rule)
        elif isinstance(node, ScalarNode) and key is not None:
            reason = "" if node.is_nothing else " ".join(node.text.split())
            self._keep(KnownFailure(key.text, reason, revision=revision), key)
        elif isinstance(node, ScalarNode) and not node.is_nothing:
            self._keep(KnownFailure(node.text, revision=revision), node)
        elif key is not None:
            self.source.misfit(show(key.text, 60), "a mapping or a reason", node)
        else:
            self.source.misfit("a known failure", "a rule or a mapping", node)

    def _keep(self, entry: KnownFailure, where: Node) -> None:
        message, hint = self._problem_with(entry)
        if message:
            self.source.report_at(where, message, hint)
        self._first.setdefault((entry.revision, entry.rule_id), where.line)
        place = self.source.place(where.line, where.column)
        self.entries.append(replace(entry, place=place))

    def _problem_with(self, entry: KnownFailure) -> tuple[str, str]:
        name = show(entry.rule_id, 60)
        first = self._first.get((entry.revision, entry.rule_id))
        if first is not None:
            return f"{name} is listed twice", f"first in line {first}"
        if entry.rule_id not in self.every:
            near = close_matches(entry.rule_id[:60].upper(), sorted(self.every), 1, 0.7)
            listing = "`mcptest compliance rules` lists all rules"
            hint = f"did you mean {near[0]}?" if near else listing
            return f"unknown rule {name}", hint
        if entry.revision is None or entry.rule_id in self.also:
            return "", ""
        if entry.rule_id in self.rules.get(entry.revision, ()):
            return "", ""
        has_it = [one.label for one, rules in self.rules.items() if entry.rule_id in rules]
        return f"{entry.revision.label} has no rule {name}", f"it is in {', '.join(has_it)}"


def _max_rate(read: Reading | None) -> float | None:
    if read is None or not read.sound:
        return None
    text = read.get("max_rate")
    try:
        rate = float(text)
    except ValueError:
        rate = -1.0
    if not 0 < rate < 1:
        hint = "use a number like 0.2 for a rule that fails in every fifth run"
        message = f"max_rate must be a number between 0 and 1, not {show(text, 40)}"
        read.complain(message, "max_rate", hint=hint)
    return rate


# -- Writing a baseline anew from what was judged ------------------------------------------------

_HEAD = (
    "# Rules that this server is known to fail. A failure that is not listed fails the run, and so",
    "# does a listed rule that passes. Give each rule a reason, and link the issue that tracks it.",
)
_NOT_RAW = re.compile("[\x7f-\xa0\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]")


def known_failures_from(
    judged: Judgement | Sequence[Judgement], earlier: KnownFailures | None = None
) -> str:
    """The YAML text of a baseline under which these judgements are green.

    Entries of `earlier` keep their reason while the rule fails, and stay where it was not judged;
    flaky ones always stay. Of several judgements each gets entries of its own revision.
    """
    judgements = (judged,) if isinstance(judged, Judgement) else tuple(judged)
    earlier = earlier or KnownFailures()
    kept = [one for one in earlier.entries if _stays(one, judgements)]
    entries = [*kept, *_new(judgements, kept, earlier)]
    titles = {result.id: result.title for one in judgements for result in one.results}
    return "\n".join((*_HEAD, *_groups(entries, titles))) + "\n"


def _stays(entry: KnownFailure, judgements: Iterable[Judgement]) -> bool:
    if entry.max_rate is not None:
        return True
    return not any(
        result.id == entry.rule_id and result.outcome is Outcome.PASS
        for one in judgements
        if entry.revision in (None, one.revision)
        for result in one.results
    )


def _new(
    judgements: Sequence[Judgement], kept: Sequence[KnownFailure], earlier: KnownFailures
) -> Iterator[KnownFailure]:
    """An entry for each failure that has none; it takes over the reason of one that had to go."""
    by_revision = len(judgements) > 1 or any(one.revision is not None for one in earlier.entries)
    added: set[tuple[Revision, str]] = set()
    for one in judgements:
        listed, before = KnownFailures(tuple(kept)).of(one.revision), earlier.of(one.revision)
        for result in one.results:
            which = (one.revision, result.id)
            if is_known_matter(result) and result.id not in listed and which not in added:
                added.add(which)
                # A place to write the real reason, unless a root cause is the reason.
                why = "" if result.failed else f"could not be judged: {show(result.cause, 60)}"
                entry = before.get(result.id, KnownFailure(result.id, why))
                yield replace(entry, revision=one.revision if by_revision else None)


def _groups(entries: Sequence[KnownFailure], titles: dict[str, str]) -> Iterator[str]:
    revisions: tuple[Revision | None, ...] = (None, *TIMELINE)
    for revision in revisions:
        own = sorted(
            (one for one in entries if one.revision is revision), key=lambda one: one.rule_id
        )
        name = SERVER if revision is None else revision.label
        if own:
            yield f"{name}:"
        elif revision is None and not entries:
            yield f"{name}: []"
        for one in own:
            yield from _lines(one, titles.get(one.rule_id, ""))


def _lines(entry: KnownFailure, title: str) -> Iterator[str]:
    comment = f"  # {show(title, 80)}" if title else ""
    yield f"  - rule_id: {_text(entry.rule_id)}{comment}"
    yield f"    reason: {_text(entry.reason)}"
    if entry.tracking:
        yield f"    tracking: {_text(entry.tracking)}"
    if entry.max_rate is not None:
        yield f"    flaky: {{max_rate: {entry.max_rate!r}}}"


def _text(text: str) -> str:
    """As it stands where that is plain, else in quotes: a JSON text is a YAML one."""
    if re.fullmatch(r"[A-Z]+-\d+", text):
        return text
    quoted = json.dumps(text, ensure_ascii=False)
    return _NOT_RAW.sub(lambda found: f"\\u{ord(found.group()):04x}", quoted)


# -- Holding a judged server against its baseline ------------------------------------------------

GATE: Final = "baseline"
RUNS_FOR_A_RATE: Final = 5
"""Before that many runs saw a flaky rule, its rate says nothing and is not judged."""
_ROUNDING: Final = 1e-9
"""29 of 100 are 0.29, whatever the processor makes of it."""


_RED: Final = ("new", "stale", "flaky too often")
_Said: TypeAlias = Iterator[tuple[str, str]]
"""What it means (one of the red ones, `known` or `note`), and a line about it."""


def hold_against(
    known: KnownFailures, judgement: Judgement, history: Sequence[PastRun] = ()
) -> GateResult:
    """Whether the server fails what it is known to fail, no more and no less.

    `history` are the runs before this one; they count for rules that are flaky.
    """
    listed = known.of(judgement.revision)
    found: dict[str, list[str]] = {kind: [] for kind in (*_RED, "known", "note")}
    for result in judgement.results:
        entry = listed.get(result.id)
        if entry is None:
            if is_known_matter(result):
                kept = f"not judged: {_named(result)}, because of {show(result.cause, 60)}"
                new = f"new failure: {_named(result)} ({result.severity.value})"
                found["new"].append(new if result.failed else kept)
            continue
        runs = (run.outcomes for run in history if run.revision is judgement.revision)
        past = [outcomes[result.id] for outcomes in runs if result.id in outcomes]
        flaky = entry.max_rate is not None
        for kind, line in _flaky(result, entry, past) if flaky else _listed(result, entry):
            found[kind].append(line)
    if not judgement.observed:
        found["new"].append("nothing was observed, so this server cannot be judged")
    red = [line for kind in _RED for line in found[kind]]
    counts = [f"{len(found[kind])} {kind}" for kind in (*_RED, "known") if found[kind]]
    return GateResult(GATE, not red, ", ".join(counts) or "no failures", (*red, *found["note"]))


def _listed(result: RuleResult, entry: KnownFailure) -> _Said:
    if result.outcome is Outcome.PASS:
        remedy = f"remove it: {entry.place}" if entry.place.file else "remove it"
        yield "stale", f"stale: {_named(result)} passes; {remedy}"
        return
    if is_known_matter(result):
        yield "known", result.id
    if not result.failed:
        word = result.outcome.value.replace("_", " ")
        yield "note", f"note: {result.id} is listed and was {word}"
    elif not entry.reason:
        yield "note", f"note: {result.id} is listed without a reason"


def _flaky(result: RuleResult, entry: KnownFailure, past: list[Outcome]) -> _Said:
    limit = entry.max_rate or 0.0
    runs = [one for one in (*past, result.outcome) if one in (Outcome.PASS, Outcome.FAIL)]
    failed = sum(one is Outcome.FAIL for one in runs)
    said = f"{_named(result)} failed in {failed} of {len(runs)} runs"
    if len(runs) < RUNS_FOR_A_RATE:
        yield "note", f"flaky: {said}; judged from {RUNS_FOR_A_RATE} runs on"
    elif failed / len(runs) > limit + _ROUNDING:
        why = f" ({show(entry.reason, 200)})" if entry.reason else ""
        yield "flaky too often", f"too often: {said}, more than {limit:g}{why}"
    else:
        yield "note", f"flaky: {said}, at most {limit:g} is allowed"


def _named(result: RuleResult) -> str:
    return f"{show(result.id, 60)} {show(result.title, 160)}"
