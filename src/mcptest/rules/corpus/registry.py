"""registry.yml: what each rule is called, how much it weighs, where it comes from, how to fix it.

A text or a keyword may be given for all revisions, or by the revision from which it holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

from mcptest.model.revision import TIMELINE, Revision, revision_of_label
from mcptest.model.show import show
from mcptest.model.verdict import Severity, Side
from mcptest.rules import catalogue  # noqa: F401 - fills RULES
from mcptest.rules.declare import RULES, Rule, specification_url
from mcptest.suite.fields import Choice, Declaration, Field, ListOf, Text, Texts, TextTable
from mcptest.suite.model import Place
from mcptest.suite.problems import Source, SuiteError, did_you_mean
from mcptest.suite.reading import Reading, describe, read_object
from mcptest.suite.yaml_file import read_yaml
from mcptest.suite.yaml_nodes import Listing, Node, Scalar
from mcptest.suite.yaml_nodes import Mapping as MappingNode

REGISTRY_FILE: Final = "registry.yml"
UNTESTED_FILE: Final = "not-testable.yml"
_SIDES = tuple(side.value for side in Side)
_TRANSPORTS = ("stdio", "http", "sse")
_BY_REVISION = ("severity", "spec")
_NEEDED = ("id", "title", "section", "severity", "spec", "requirement")
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Entry:
    """What the registry says about one rule."""

    id: str
    title: str = ""
    section: str = ""
    severities: Mapping[Revision, Severity] = field(default_factory=dict)
    """By the revision from which each holds."""
    side: Side = Side.SERVER
    transports: tuple[str, ...] = ()
    specs: Mapping[Revision, str] = field(default_factory=dict)
    requirement: str = ""
    fix: str = ""
    retired: str = ""
    """What becomes of it where a later revision does not have it any more."""
    statements: tuple[str, ...] = ()
    """The statements of the specification that it covers, by the codes of our list."""
    session_rule: str = ""
    place: Place = field(default_factory=lambda: Place(""), compare=False)

    @property
    def session(self) -> Rule | None:
        return RULES.get(self.session_rule)

    def severity_in(self, revision: Revision | None) -> Severity | None:
        return _held_in(self.severities, revision)

    def url(self, revision: Revision | None) -> str:
        page = _held_in(self.specs, revision)
        return specification_url(page, revision or Revision.V2026_07_28) if page else ""


def _held_in(by_revision: Mapping[Revision, _T], revision: Revision | None) -> _T | None:
    """The newest value that holds in that revision; without one the first."""
    held = [one for one in TIMELINE if one in by_revision and (revision is None or one <= revision)]
    if not held:
        return next(iter(by_revision.values()), None)
    return by_revision[held[0 if revision is None else -1]]


ENTRY = Declaration(
    "a rule of the registry",
    "What is known about one rule, apart from what it expects.",
    (
        Field("id", Text(), "Its name, which never changes its meaning."),
        Field("session_rule", Text(), "The rule over whole sessions that judges it."),
        Field("title", Text(), "What must hold, in a few words."),
        Field("section", Text(), "The group that it is reported in."),
        Field("severity", TextTable(), "MUST, SHOULD or MAY; or one from each revision on."),
        Field("side", Choice(_SIDES), "Who is judged: the server by default."),
        Field("transports", Texts(), "Where it can be seen; anywhere by default."),
        Field("spec", TextTable(), "Page and anchor; or one from each revision on."),
        Field("requirement", Text(), "What is demanded and why, in our words."),
        Field("fix", Text(), "What to do when it fails."),
        Field("retired", Text(), "What to do where a revision does not have it any more."),
        Field("statements", Texts(), "The statements of the specification that it covers."),
    ),
)
REGISTRY = Declaration(
    "a registry", "All rules.", (Field("rules", ListOf(ENTRY), "The rules.", required=True),)
)
UNTESTED = Declaration(
    "a statement without a rule",
    "Why a statement of the specification is not judged.",
    (
        Field("statement", Text(), "Its code in our list.", required=True),
        Field("says", Text(), "What it says.", required=True),
        Field("why", Text(), "Why it is not judged.", required=True),
    ),
)
UNTESTED_LIST = Declaration(
    "a list of statements",
    "The statements that no rule judges.",
    (Field("statements", ListOf(UNTESTED), "The statements.", required=True),),
)


@dataclass(frozen=True, slots=True)
class Untested:
    statement: str
    says: str
    why: str


def load_registry(path: Path) -> dict[str, Entry]:
    """All entries by id, in the order of the file; SuiteError when anything is wrong with it."""
    root, source = read_yaml(path)
    read = _read(REGISTRY, _spelled_out(root), source, "a registry")
    entries: dict[str, Entry] = {}
    for one in read.get("rules", ()) if read is not None else ():
        entry = _entry(one)
        if entry is None:
            continue
        if entry.id in entries:
            first = entries[entry.id].place.line
            one.complain(f"the rule {entry.id} stands twice", "id", hint=f"first in line {first}")
        entries[entry.id] = entry
    _raise_for(source)
    return entries


def load_untested(path: Path) -> tuple[Untested, ...]:
    """The statements that no rule judges, each with the reason."""
    root, source = read_yaml(path)
    read = _read(UNTESTED_LIST, root, source, "a list of statements")
    _raise_for(source)
    rows: tuple[Reading, ...] = read.get("statements", ()) if read is not None else ()
    return tuple(Untested(one.get("statement"), one.get("says"), one.get("why")) for one in rows)


def _read(declaration: Declaration, root: Node | None, source: Source, what: str) -> Reading | None:
    if isinstance(root, MappingNode):
        return read_object(declaration, root, source)
    if not source.errors:
        found = "empty" if root is None else describe(root)
        source.report(f"{what} must be a mapping, not {found}", 1, 1)
    return None


def _raise_for(source: Source) -> None:
    if source.errors:
        raise SuiteError(source.finish())


def _spelled_out(root: Node | None) -> Node | None:
    """`severity: MUST` is short for one that holds from the first revision on."""
    if not isinstance(root, MappingNode) or "rules" not in root.entries:
        return root
    key, rules = root.entries["rules"]
    if not isinstance(rules, Listing):
        return root
    items = tuple(_spelled_out_entry(one) for one in rules.items)
    listing = Listing(items, rules.line, rules.column)
    return MappingNode({**root.entries, "rules": (key, listing)}, root.line, root.column)


def _spelled_out_entry(node: Node) -> Node:
    if not isinstance(node, MappingNode):
        return node
    entries = dict(node.entries)
    for name in _BY_REVISION:
        key, value = entries.get(name, (None, None))
        if key is not None and isinstance(value, Scalar):
            since: Node = MappingNode({TIMELINE[0].label: (value, value)}, value.line, value.column)
            entries[name] = (key, since)
    return MappingNode(entries, node.line, node.column)


def _entry(read: Reading) -> Entry | None:
    session = read.get("session_rule", "")
    if session and session not in RULES:
        read.complain(
            f"there is no rule {show(session, 40)} over sessions",
            "session_rule",
            hint=did_you_mean(session, RULES),
        )
    for name in () if session else _NEEDED:
        if name not in read.node_entries:
            read.complain(f"{name} is missing from {ENTRY.name}")
    severities = _by_revision(read, "severity", _severity)
    specs = _by_revision(read, "spec", lambda text: text)
    _check_transports(read)
    if not read.sound:
        return None
    return Entry(
        id=read.get("id", session),
        title=read.get("title", ""),
        section=read.get("section", ""),
        severities=severities,
        side=Side(read.get("side", "server")),
        transports=read.get("transports", ()),
        specs=specs,
        requirement=_one_line(read.get("requirement", "")),
        fix=_one_line(read.get("fix", "")),
        retired=_one_line(read.get("retired", "")),
        statements=read.get("statements", ()),
        session_rule=session,
        place=read.place,
    )


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _check_transports(read: Reading) -> None:
    for one in read.get("transports", ()):
        if one not in _TRANSPORTS:
            hint = did_you_mean(one, _TRANSPORTS)
            read.complain(f"unknown transport {show(one, 40)}", "transports", hint=hint)


def _severity(text: str) -> Severity | None:
    return Severity(text) if text in Severity.__members__ else None


def _by_revision(read: Reading, name: str, understand: Any) -> dict[Revision, Any]:
    found: dict[Revision, Any] = {}
    for label, text in read.get(name, {}).items():
        revision = revision_of_label(label)
        value = understand(text)
        if revision is None:
            read.complain(f"{name}: unknown revision {show(label, 40)}", name)
        elif value is None:
            read.complain(f"{name} must be MUST, SHOULD or MAY, not {show(text, 40)}", name)
        else:
            found[revision] = value
    return found
