"""What is known of each rule of a corpus: its row, and what registry.yml says of it.

A text or a keyword may be given for all revisions, or by the revision from which it holds.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias, TypeVar, get_args

from mcptest.core.revision import TIMELINE, Revision, revision_of_label
from mcptest.core.safe_text import show
from mcptest.core.verdict import Severity, Side
from mcptest.rules import catalogue  # noqa: F401 - fills RULES
from mcptest.rules.declaration import RULES, Rule, Same, specification_url
from mcptest.rules.migration import migration_items
from mcptest.suite.fields import (
    DECLARED,
    Choice,
    Declaration,
    Field,
    ListOf,
    Mark,
    ObjectOf,
    Reading,
    Text,
    TextTable,
    declared,
    fields_of,
    read_object,
)
from mcptest.suite.matching import compact_json, json_equal
from mcptest.suite.model import ROW as EXPECT_ROW
from mcptest.suite.model import Expectation, Strings
from mcptest.suite.observed import SeenExchange, judge_exchange
from mcptest.suite.reading import (
    MappingNode,
    Node,
    Place,
    ScalarNode,
    SuiteError,
    SuiteSource,
    did_you_mean,
    read_yaml,
)
from mcptest.suite.sent_message import CHECK, SentCheck

REGISTRY_FILE: Final = "registry.yml"
_SIDES = tuple(side.value for side in Side)
_TRANSPORTS = ("stdio", "http", "sse")
_BY_REVISION = ("severity", "spec")
_NEEDED = ("id", "title", "section", "severity", "spec", "requirement")
_T = TypeVar("_T")
_NO_PLACE: Final = Place("")


@dataclass(frozen=True, slots=True)
class RegistryEntry:
    """What the registry says about one rule, apart from what it expects."""

    id: Annotated[str, "Its name, which never changes its meaning."]
    title: Annotated[str, "What must hold, in a few words."] = ""
    section: Annotated[str, "The section that it is reported in."] = ""
    severities: Mapping[Revision, Severity] = field(default_factory=dict)
    """By the revision from which each holds."""
    side: Annotated[Side, Choice(_SIDES), "Who is judged: the server by default."] = Side.SERVER
    transports: Annotated[Strings, "The transports that show it; all by default."] = ()
    specs: Mapping[Revision, str] = field(default_factory=dict)
    requirement: Annotated[str, "The requirement and the reason for it, in our words."] = ""
    fix: Annotated[str, "What to do when it fails; a session rule says it itself."] = ""
    retired: Annotated[str, "What to do in a revision that no longer has it."] = ""
    statements: Annotated[
        Strings, "The statements of the specification that it covers, by their codes."
    ] = ()
    session_rule: Annotated[str, "The rule over whole sessions that judges it."] = ""
    yields_to: Annotated[
        Mapping[str, Same], TextTable(), "Rules that report the fault if both saw the same."
    ] = field(default_factory=dict)
    migration: Annotated[
        Strings, "The items of `rules/migration.py` that it belongs to, by their ids."
    ] = ()
    basic: Annotated[str, "Why no client can continue if it fails; the grade is then F."] = ""
    basic_unless: Annotated[str, "The rule whose pass shows that clients can continue."] = ""
    place: Place = field(default=_NO_PLACE, compare=False)

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


class ByRevision(TextTable, frozen=True):
    """A text from each revision on; one text alone holds from the first revision on."""

    def read(self, node: Node, name: str, source: SuiteSource) -> Any:
        if isinstance(node, ScalarNode):
            node = MappingNode({TIMELINE[0].label: (node, node)}, node.line, node.column)
        return TextTable.read(self, node, name, source)


ENTRY = Declaration(
    "a rule of the registry",
    "What is known about one rule, apart from what it expects.",
    (
        *fields_of(RegistryEntry),
        Field("severity", ByRevision(), "MUST, SHOULD or MAY; or one from each revision on."),
        Field("spec", ByRevision(), "Page and anchor; or one from each revision on."),
    ),
)
REGISTRY = Declaration(
    "a registry", "All rules.", (Field("rules", ListOf(ENTRY), "The rules.", required=True),)
)


def load_registry(path: Path) -> dict[str, RegistryEntry]:
    """All entries by id, in the order of the file; SuiteError when anything is wrong with it."""
    root, source = read_yaml(path)
    entries: dict[str, RegistryEntry] = {}
    read = read_object(REGISTRY, root, source) if isinstance(root, MappingNode) else None
    if read is None and not source.errors:
        found = "empty" if root is None else root.described
        source.report(f"a registry must be a mapping, not {found}", 1, 1)
    for one in read.get("rules", ()) if read is not None else ():
        entry = _entry(one)
        if entry is None:
            continue
        if entry.id in entries:
            first = entries[entry.id].place.line
            message = f"the rule {entry.id} is defined twice"
            one.complain(message, "id", hint=f"first in line {first}")
        entries[entry.id] = entry
    if source.errors:
        raise SuiteError(source.finish())
    return entries


def _entry(read: Reading) -> RegistryEntry | None:
    session = read.get("session_rule", "")
    if session and session not in RULES:
        message = f"unknown session rule {show(session, 40)}"
        hint = did_you_mean(session, RULES)
        read.complain(message, "session_rule", hint=hint)
    if session and "fix" in read.node.entries:
        read.complain("the docstring of a session rule has its fix", "fix")
    for name in () if session else _NEEDED:
        if name not in read.node.entries:
            read.complain(f"{name} is missing from {ENTRY.name}")
    severities = _by_revision(read, "severity", Severity.__members__.get)
    specs = _by_revision(read, "spec", str)
    _check_names(read, "transports", "transport", _TRANSPORTS)
    _check_names(read, "migration", "migration item", [item.id for item in migration_items()])
    for to, same in read.get("yields_to", {}).items():
        if same not in get_args(Same):
            hint = did_you_mean(same, get_args(Same))
            read.complain(f"unknown likeness with {to}: {show(same, 40)}", "yields_to", hint=hint)
    if not read.sound:
        return None
    given: dict[str, Any] = {
        name: one_line(one) if isinstance(one, str) else one
        for name, one in read.values.items()
        if name not in _BY_REVISION
    }
    given |= {"id": read.get("id", session), "side": Side(read.get("side", "server"))}
    return RegistryEntry(**given, severities=severities, specs=specs, place=read.place)


def one_line(text: str) -> str:
    return " ".join(text.split())


def _check_names(read: Reading, name: str, what: str, known: Sequence[str]) -> None:
    for one in read.get(name, ()):
        if one not in known:
            read.complain(f"unknown {what} {show(one, 40)}", name, hint=did_you_mean(one, known))


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


@declared("needs")
@dataclass(frozen=True, slots=True)
class Needs:
    """Without these the rule is not tested: it is not applicable or not observed."""

    capability: Annotated[
        Strings, "What the server must declare; a dot names a member: `resources.subscribe`."
    ] = ()
    any_capability: Annotated[Strings, "The server must declare at least one of these."] = ()
    undeclared: Annotated[Strings, "What the server must not declare."] = ()
    transport: Annotated[Strings, "The transports that show it."] = ()
    fixture: Annotated[str, "The test fixture that the server must have."] = ""
    session: Annotated[bool, "The server returned a session id."] = False
    authorization: Annotated[bool, "The server requires a token."] = False
    extension: Annotated[str, "The extension that the server must declare."] = ""
    single_era: Annotated[bool, "The server speaks no older revision."] = False


@dataclass(frozen=True, slots=True)
class Condition:
    """What must hold of the exchange before anything can be expected of it.

    A tool that answered with an error shows nothing about its structured content, an empty list
    nothing about what is in it: where a condition does not hold, the rule was not observed.
    """

    expectation: Expectation
    otherwise: str
    """Why nothing can be expected where it does not hold, in words."""


WHEN_ROW = Declaration(
    "a condition",
    "What must hold of the exchange before the rule judges it.",
    (
        *EXPECT_ROW.fields,
        Field(
            "otherwise",
            Text(),
            "Why the rule cannot judge the exchange if it does not hold.",
            required=True,
        ),
    ),
)


def unmet(when: Sequence[Condition], seen: SeenExchange) -> Condition | None:
    """The first condition that does not hold of what was seen."""
    return next((one for one in when if not judge_exchange([one.expectation], seen).passed), None)


Expected: TypeAlias = tuple[Expectation, ...]
BESIDE: Final = ("control", "unlike", "absent")
"""What a row may ask beside its question, so that the answer means something."""


@declared("a rule")
@dataclass(frozen=True, slots=True)
class Row:
    """One rule as a revision's folder gives it."""

    rule_id: Annotated[str, "Its id in the registry.", Mark.REQUIRED]
    check: Annotated[SentCheck, ObjectOf(CHECK, short_for="method"), CHECK.doc, Mark.REQUIRED]
    expect: Annotated[
        Expected, ListOf(EXPECT_ROW), "What must hold of the response.", Mark.REQUIRED
    ]
    needs: Annotated[Needs, DECLARED[Needs].doc] = Needs()
    says: Annotated[str, "The expectation in words, if the matchers are hard to read."] = ""
    safe: Annotated[
        str, "Why this is safe to send to a production server, if it is not obvious."
    ] = ""
    when: Annotated[tuple[Condition, ...], ListOf(WHEN_ROW), WHEN_ROW.doc] = ()
    control: Annotated[
        SentCheck | None,
        "The same request without the fault; if it fails too, an error proves nothing.",
    ] = None
    unlike: Annotated[
        SentCheck | None, "A valid request; an error with the same message proves nothing."
    ] = None
    absent: Annotated[
        SentCheck | None, "The same request for a missing item; the same result proves nothing."
    ] = None
    expect_of_both_eras: Annotated[
        Expected,
        ListOf(EXPECT_ROW),
        "What must hold instead if the server also speaks older revisions.",
    ] = ()
    place: Place = field(default=_NO_PLACE, compare=False)

    @property
    def beside(self) -> dict[str, SentCheck]:
        """What is asked beside it."""
        asked = {"control": self.control, "unlike": self.unlike, "absent": self.absent}
        return {name: check for name, check in asked.items() if check is not None}


@dataclass(frozen=True, slots=True)
class CorpusRule:
    """A rule in one corpus: its row or its function, and what the registry says of it."""

    id: str
    row: Row | None = None
    entry: RegistryEntry | None = None
    session: Rule | None = None
    """The function that judges it over whole sessions, in place of a row."""
    revision: Revision | None = None

    @property
    def said(self) -> RegistryEntry:
        """What the registry says; nothing where it does not know the rule."""
        return self.entry or RegistryEntry(self.id)

    @property
    def title(self) -> str:
        return self.said.title or (self.session.title if self.session is not None else self.id)

    @property
    def section(self) -> str:
        return self.said.section or (self.session.category if self.session is not None else "")

    @property
    def severity(self) -> Severity | None:
        judge = self.session or self.said
        return judge.severity_in(self.revision)

    @property
    def requirement(self) -> str:
        explained = self.session.explanation if self.session is not None else ""
        return self.said.requirement or explained

    @property
    def fix(self) -> str:
        return self.session.fix if self.session is not None else self.said.fix

    @property
    def migration(self) -> tuple[str, ...]:
        return self.said.migration

    @property
    def yields_to(self) -> Mapping[str, Same]:
        if self.session is not None:
            return self.session.yields_to
        # A test of a suite only borrows the words of the rule.
        return self.said.yields_to if self.said.id == self.id else {}

    @property
    def url(self) -> str:
        page = self.session or self.said
        return page.url(self.revision)


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


# -- An expectation as a sentence, `error.code is -32602` -----------------------------------------

_VERBS: Final = {
    "exact": "is",
    "not_exact": "is not",
    "one_of": "is one of",
    "equals_trimmed": "is",
    "contains": "contains",
    "contains_any": "contains one of",
    "not_contains": "does not contain",
    "icontains": "contains (ignoring case)",
    "in_order": "contains in this order",
    "regex": "matches",
    "not_regex": "does not match",
    "schema": "matches the schema",
    "type": "has type",
    "minimum": "is at least",
    "maximum": "is at most",
    "min_length": "has a length of at least",
    "max_length": "has a length of at most",
}


def in_words(one: Expectation) -> str:
    return " and ".join(_clause(one.target, name, value) for name, value in one.matcher.items())


def _clause(target: str, name: str, argument: Any) -> str:
    if name == "exists":
        return f"{target} is present" if argument else f"{target} is absent"
    if name == "not_empty":
        return f"{target} is not empty"
    if name == "max_length" and argument == 0:
        return f"{target} is empty"
    shown = argument if isinstance(argument, str) and name == "type" else compact_json(argument)
    return f"{target} {_VERBS.get(name, name)} {show(shown, 400)}"


def expectations_in_words(rule: CorpusRule | None) -> Iterator[str]:
    """What a rule asks for, clause by clause; a rule over sessions says it by its title."""
    if rule is not None and rule.row is None:
        yield "judged over the whole session"
    elif rule is not None and rule.row is not None and rule.row.says:
        yield rule.row.says
    elif rule is not None and rule.row is not None:
        yield from map(in_words, rule.row.expect)
