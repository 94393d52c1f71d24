"""Loading a revision's folder: rows with places, what it extends, and the registry beside it."""

import functools
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Final, TypeAlias

from mcptest.core.revision import Revision, revision_of_label
from mcptest.core.safe_text import show
from mcptest.core.verdict import Side
from mcptest.rules.catalogue import all_rules
from mcptest.rules.corpus.probes import all_probes, known_fixtures, placeholders, placeholders_in
from mcptest.rules.corpus.registry import (
    BESIDE,
    REGISTRY_FILE,
    Condition,
    CorpusRule,
    Needs,
    RegistryEntry,
    Row,
    load_registry,
    one_line,
)
from mcptest.suite.fields import DECLARED, Reading, declared, read_object, value_of
from mcptest.suite.model import Expectation, Strings
from mcptest.suite.observed import exchange_target_problem
from mcptest.suite.reading import (
    ListNode,
    MappingNode,
    Place,
    SuiteError,
    SuiteProblem,
    SuiteSource,
    did_you_mean,
    read_yaml,
)
from mcptest.suite.sent_message import SentCheck, check_of

SHIPPED: Final = Path(__file__).parents[2] / "compliance"
"""The corpora that come with us."""
CORPUS_FILE: Final = "corpus.yml"

Known: TypeAlias = Collection[str] | None
"""The ids of the registry; None where there is none."""


@declared("corpus.yml")
@dataclass(frozen=True, slots=True)
class CorpusHeading:
    """What a revision takes over from an earlier one."""

    extends: Annotated[str, "The folder whose rules hold here too."] = ""
    removes: Annotated[Strings, "Rules of it that do not."] = ()
    about: Annotated[str, "What this revision changed."] = ""


@dataclass(slots=True)
class _Folder:
    """One folder as it was read: its own rows, and what it says about an earlier one."""

    path: Path
    rows: dict[str, Row] = field(default_factory=dict)
    read: Reading | None = None
    heading: CorpusHeading = CorpusHeading()
    problems: list[SuiteProblem] = field(default_factory=list)

    def finish(self, source: SuiteSource) -> None:
        if source.errors:
            self.problems.extend(source.finish())


def load_rows(path: Path, known: Known, *, extending: bool) -> tuple[dict[str, Row], str]:
    """All rows of a folder by id, and what the revision says it changed; SuiteError when anything
    is wrong with any file."""
    folder, rows = _Folder(path), dict[str, Row]()
    if not path.is_dir():
        folder.problems.append(SuiteProblem(Place(str(path)), "the folder does not exist"))
    for file in sorted(path.glob("*.yml")):
        if file.name == CORPUS_FILE:
            _read_heading(file, folder)
        else:
            _read_rows(file, folder, known)
    if folder.read is not None and folder.heading.extends and extending:
        rows = _extended(folder, folder.read, known)
    if folder.problems:
        raise SuiteError(folder.problems)
    return dict(sorted({**rows, **folder.rows}.items())), one_line(folder.heading.about)


def _extended(folder: _Folder, read: Reading, known: Known) -> dict[str, Row]:
    """The rows of the folder that is extended, without those that are removed."""
    extends = folder.heading.extends
    base, rows = folder.path.parent / extends, dict[str, Row]()
    earlier, own = revision_of_label(extends), revision_of_label(folder.path.name)
    if base.name != extends or not base.is_dir():
        read.complain(f"there is no corpus {show(extends, 60)} next to this one", "extends")
    elif earlier is None or own is None or earlier >= own:
        read.complain(f"{extends} is not an earlier revision", "extends")
    if read.sound:
        rows, _ = load_rows(base, known, extending=True)
        for name in folder.heading.removes:
            if rows.pop(name, None) is None:
                read.complain(f"{show(name, 40)} is not in {extends}", "removes")
            elif name in folder.rows:
                read.complain(f"{name} is both removed and defined", "removes")
    folder.finish(read.source)
    return rows


def _read_heading(file: Path, folder: _Folder) -> None:
    root, source = read_yaml(file)
    if isinstance(root, MappingNode):
        folder.read = read_object(DECLARED[CorpusHeading], root, source)
        folder.heading = value_of(CorpusHeading, folder.read)
        if folder.heading.removes and not folder.heading.extends:
            folder.read.complain("removes needs extends", "removes")
    elif root is not None:
        source.report(f"{CORPUS_FILE} must be a mapping, not {root.described}", 1, 1)
    folder.finish(source)


def _read_rows(file: Path, folder: _Folder, known: Known) -> None:
    root, source = read_yaml(file)
    if isinstance(root, ListNode):
        for item in root.items:
            if not isinstance(item, MappingNode):
                source.report("a rule must be a mapping", item.line, item.column)
                continue
            row = _row(read_object(DECLARED[Row], item, source), known)
            earlier = folder.rows.setdefault(row.rule_id, row) if row is not None else None
            if row is not None and earlier is not None and earlier is not row:
                message, at = f"the rule {row.rule_id} is defined twice in this corpus", row.place
                source.report(message, at.line, at.column, hint=f"first at {earlier.place}")
    elif not source.errors:
        found = "empty" if root is None else root.described
        source.report(f"a corpus file must be a list of rules, not {found}", 1, 1)
    folder.finish(source)


def _row(read: Reading, known: Known) -> Row | None:
    if not read.sound:
        return None
    name = read.get("rule_id")
    if known is not None and name not in known:
        near = did_you_mean(name, known)
        hint = near if near.startswith("did") else f"add it to {REGISTRY_FILE}"
        read.complain(f"{show(name, 40)} is not in the registry", "rule_id", hint=hint)
    check = check_of(read.get("check"))
    expect = expectations_of(read.get("expect"), check)
    of_both = expectations_of(read.get("expect_of_both_eras", ()), check)
    conditions: tuple[Reading, ...] = read.get("when", ())
    words = (one_line(one.get("otherwise")) for one in conditions if one.sound)
    when = tuple(map(Condition, expectations_of(conditions, check), words))
    needs = _needs(read.get("needs"))
    if check is None or not read.sound:
        return None
    _check_names(read, check, (*expect, *(one.expectation for one in when)))
    given = {
        **read.values,
        **{one: check_of(read.get(one)) for one in BESIDE if one in read},
        "check": check,
        "expect": expect,
        "expect_of_both_eras": of_both,
        "when": when,
        "needs": needs,
        "says": one_line(read.get("says", "")),
    }
    return Row(**given, place=read.place)


def expectations_of(rows: tuple[Reading, ...], check: SentCheck | None) -> tuple[Expectation, ...]:
    """The rows of `expect`, each with a target that the check can give."""
    probe = all_probes().get(check.probe) if check is not None else None
    steps = probe.step_names if probe is not None else ()
    facts = probe.facts if probe is not None else {}
    for one in rows:
        problem = exchange_target_problem(one.get("target", ""), steps, facts)
        if problem is not None and check is not None and one.sound:
            one.complain(problem, "target")
    return tuple(Expectation(one.get("target"), one.get("matcher")) for one in rows if one.sound)


def _check_names(read: Reading, check: SentCheck, expect: tuple[Expectation, ...]) -> None:
    if check.probe and check.probe not in all_probes():
        hint = did_you_mean(check.probe, all_probes())
        read.get("check").complain(f"unknown probe {show(check.probe, 60)}", "probe", hint=hint)
    used: list[object] = [check.method, check.params, check.meta, check.headers]
    used += [check.http.headers, check.http.body] if check.http is not None else []
    used += [one.matcher.get("exact") for one in expect]
    for name in placeholders_in(used):
        if name not in placeholders():
            hint = did_you_mean(name, placeholders())
            read.complain(f"unknown placeholder {{{show(name, 40)}}}", "check", hint=hint)


def _needs(read: Reading | None) -> Needs:
    if read is None:
        return Needs()
    fixture = read.get("fixture", "")
    if fixture and fixture not in known_fixtures():
        hint = did_you_mean(fixture, sorted(known_fixtures()))
        read.complain(f"unknown fixture {show(fixture, 60)}", "fixture", hint=hint)
    return Needs(**read.values)


def registry_beside(folder: Path) -> dict[str, RegistryEntry] | None:
    """The registry next to a revision's folder; None when there is none."""
    path = folder.parent / REGISTRY_FILE
    if folder.parent == SHIPPED:
        return shipped_registry()
    return load_registry(path) if path.exists() else None


def session_rules_in(
    revision: Revision, registry: dict[str, RegistryEntry]
) -> Iterator[tuple[str, CorpusRule]]:
    """The rules over whole sessions that judge a server in that revision."""
    named = {entry.session_rule: entry for entry in registry.values() if entry.session_rule}
    for rule in all_rules():
        if revision in rule.window and rule.side is not Side.CLIENT:
            entry = named.get(rule.id)
            name = entry.id if entry is not None else rule.id
            yield name, CorpusRule(name, None, entry, rule, revision)


@functools.lru_cache(maxsize=8)
def shipped_registry() -> dict[str, RegistryEntry]:
    """Our own registry. It is shared: nobody changes it."""
    return load_registry(SHIPPED / REGISTRY_FILE)


# -- A corpus ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class VersionCorpus:
    """The rules of one revision. `version` is what its folder is called."""

    version: str
    rules: Mapping[str, CorpusRule]
    about: str = ""
    """What the revision changed, in a sentence or two."""

    @property
    def revision(self) -> Revision | None:
        return revision_of_label(self.version)

    @classmethod
    def load_dir(cls, version: str, path: Path | str, *, extending: bool = True) -> "VersionCorpus":
        """The rules that are written in a folder, and by default in those that it extends.

        The registry next to the folder, where there is one, says what they are called and how
        much they weigh. Raises SuiteError with file, line and column for anything wrong.
        """
        folder = Path(path)
        registry = registry_beside(folder)
        known = None if registry is None else registry.keys()
        rows, about = load_rows(folder, known, extending=extending)
        revision, entries = revision_of_label(version), registry or {}
        pairs = rows.items()
        rules = {one: CorpusRule(one, row, entries.get(one), None, revision) for one, row in pairs}
        return cls(version, rules, about)


def corpus_of(revision: Revision, corpora: Path | None = None) -> VersionCorpus | None:
    """The complete corpus of a revision: its folder, and the rules over whole sessions.

    None when there is no folder for it. `corpora` is the folder of the registry, ours by default.
    """
    ours = corpora is None or corpora == SHIPPED
    return _shipped(revision) if ours else _complete(revision, corpora or SHIPPED)


@functools.lru_cache(maxsize=8)
def _shipped(revision: Revision) -> VersionCorpus | None:
    return _complete(revision, SHIPPED)


def _complete(revision: Revision, corpora: Path) -> VersionCorpus | None:
    folder = corpora / revision.label
    if not folder.is_dir():
        return None
    corpus = VersionCorpus.load_dir(revision.label, folder)
    registry = registry_beside(folder) or {}
    found = {**dict(session_rules_in(revision, registry)), **corpus.rules}
    return VersionCorpus(revision.label, dict(sorted(found.items())), corpus.about)
