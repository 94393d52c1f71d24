"""Reading a baseline: every mistake in it has its place.

It is a list of rules, a mapping by rule id, or one of these for each revision.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Final

from mcptest.model.revision import TIMELINE, Revision, revision_of_label, revision_of_wire
from mcptest.model.show import show
from mcptest.rules.corpus.baseline_entries import KnownFailure, KnownFailures
from mcptest.rules.corpus.version_corpus import corpus_of
from mcptest.suite.fields import Declaration, Field, ObjectOf, Text
from mcptest.suite.problems import Source, SuiteError, did_you_mean
from mcptest.suite.reading import Reading, describe, read_object
from mcptest.suite.scalars import is_nothing
from mcptest.suite.yaml_file import read_yaml
from mcptest.suite.yaml_nodes import Listing, Mapping, Node, Scalar

SERVER: Final = "server"
"""The key of the entries that hold in every revision."""
GROUPS: Final = (SERVER, *(revision.label for revision in TIMELINE))

FLAKY = Declaration(
    "flaky",
    "The rule fails now and then.",
    (Field("max_rate", Text(), "The share of runs that may fail, from 0 to 1.", required=True),),
)
ENTRY = Declaration(
    "a known failure",
    "A rule that the server is known to fail.",
    (
        Field("rule_id", Text(), "The rule; in a mapping by rule ids, its key."),
        Field("reason", Text(), "Why it fails and why that is accepted."),
        Field("tracking", Text(), "Where the repair is followed: a link."),
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
    loader = _Loader(source, _rules_by_revision(corpora), frozenset(also))
    if root is not None:
        loader.read_document(root)
    if source.errors:
        raise SuiteError(source.finish())
    return KnownFailures(tuple(loader.entries))


def _rules_by_revision(corpora: Path | None) -> dict[Revision, frozenset[str]]:
    found = ((revision, corpus_of(revision, corpora)) for revision in TIMELINE)
    return {revision: frozenset(corpus.rules) for revision, corpus in found if corpus is not None}


class _Loader:
    """Gathers the entries of one file."""

    def __init__(
        self, source: Source, rules: dict[Revision, frozenset[str]], also: frozenset[str]
    ) -> None:
        self.source = source
        self.rules = rules
        self.also = also
        self.every = also.union(*rules.values())
        self.entries: list[KnownFailure] = []
        self._first: dict[tuple[Revision | None, str], int] = {}

    def read_document(self, root: Node) -> None:
        """A list of entries, a mapping by rule id, or one of these by revision."""
        if not isinstance(root, Mapping):
            self._read_group(root, None, "a baseline")
            return
        by_rule = {}
        for name, (key, node) in root.entries.items():
            revision = revision_of_label(name) or revision_of_wire(name)
            if name == SERVER or revision is not None:
                self._read_group(node, revision, name)
            elif not self._is_mistaken_group(name, key, node):
                by_rule[name] = (key, node)
        self._read_group(Mapping(by_rule, root.line, root.column), None, "a baseline")

    def _is_mistaken_group(self, name: str, key: Scalar, node: Node) -> bool:
        """What holds rules can't be about one rule, so its key was meant to be a revision."""
        holds_rules = isinstance(node, Mapping) and not node.entries.keys().isdisjoint(self.every)
        if name in self.every or not (holds_rules or isinstance(node, Listing)):
            return False
        hint = did_you_mean(name, GROUPS)
        message = f"unknown key {show(name, 60)} in a baseline"
        self.source.report(message, key.line, key.column, width=key.width, hint=hint)
        return True

    def _read_group(self, node: Node, revision: Revision | None, name: str) -> None:
        if isinstance(node, Listing):
            for item in node.items:
                self._read_item(item, revision)
        elif isinstance(node, Mapping):
            for rule, (key, value) in node.entries.items():
                self._read_named(rule, key, value, revision)
        elif not is_nothing(node):
            message = f"{name} must be a list or a mapping of rules, not {describe(node)}"
            self.source.report(message, node.line, node.column)

    def _read_item(self, node: Node, revision: Revision | None) -> None:
        if isinstance(node, Scalar) and not is_nothing(node):
            self._keep(KnownFailure(node.text, revision=revision), node)
        elif isinstance(node, Mapping):
            read = read_object(ENTRY, node, self.source)
            if "rule_id" not in node.entries:
                read.complain("rule_id is missing from a known failure")
            elif read.sound:
                where = node.entries["rule_id"][1]
                self._keep(self._entry(read, read.get("rule_id"), revision), where)
        else:
            message = f"a known failure must be a rule or a mapping, not {describe(node)}"
            self.source.report(message, node.line, node.column)

    def _read_named(self, rule: str, key: Scalar, node: Node, revision: Revision | None) -> None:
        if isinstance(node, Mapping):
            read = read_object(ENTRY, node, self.source)
            if "rule_id" in node.entries:
                read.complain(f"the rule is {show(rule, 40)} already", "rule_id")
            if read.sound:
                self._keep(self._entry(read, rule, revision), key)
        elif isinstance(node, Scalar):
            reason = "" if is_nothing(node) else " ".join(node.text.split())
            self._keep(KnownFailure(rule, reason, revision=revision), key)
        else:
            message = f"{show(rule, 60)} must be a mapping or a reason, not {describe(node)}"
            self.source.report(message, node.line, node.column)

    def _entry(self, read: Reading, rule: str, revision: Revision | None) -> KnownFailure:
        return KnownFailure(
            rule_id=rule,
            reason=" ".join(read.get("reason", "").split()),
            tracking=read.get("tracking", ""),
            max_rate=_max_rate(read.get("flaky")),
            revision=revision,
        )

    def _keep(self, entry: KnownFailure, where: Node) -> None:
        width = where.width if isinstance(where, Scalar) else 1
        problem = self._problem_with(entry)
        if problem is not None:
            message, hint = problem
            self.source.report(message, where.line, where.column, width=width, hint=hint)
        self._first.setdefault((entry.revision, entry.rule_id), where.line)
        place = self.source.place(where.line, where.column)
        self.entries.append(replace(entry, place=place))

    def _problem_with(self, entry: KnownFailure) -> tuple[str, str] | None:
        name = show(entry.rule_id, 60)
        first = self._first.get((entry.revision, entry.rule_id))
        if first is not None:
            return f"{name} stands twice", f"first in line {first}"
        if entry.rule_id not in self.every:
            return f"there is no rule {name}", _meant(entry.rule_id, self.every)
        if entry.revision is None or entry.rule_id in self.also:
            return None
        if entry.rule_id in self.rules.get(entry.revision, ()):
            return None
        has_it = [one.label for one, rules in self.rules.items() if entry.rule_id in rules]
        return f"{entry.revision.label} has no rule {name}", f"it is in {', '.join(has_it)}"


def _meant(name: str, known: Collection[str]) -> str:
    import difflib

    near = difflib.get_close_matches(name[:60].upper(), sorted(known), 1, 0.7)
    return f"did you mean {near[0]}?" if near else "`mcptest compliance rules` lists them"


def _max_rate(read: Reading | None) -> float | None:
    if read is None or not read.sound:
        return None
    text = read.get("max_rate")
    try:
        rate = float(text)
    except ValueError:
        rate = -1.0
    if not 0 < rate < 1:
        hint = "a rule that may always fail is not flaky; one that may never, not known to fail"
        message = f"max_rate must be a number between 0 and 1, not {show(text, 40)}"
        read.complain(message, "max_rate", hint=hint)
    return rate
