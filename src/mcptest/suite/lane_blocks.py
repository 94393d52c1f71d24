"""What a file asks for besides its tests: its server judged, its sessions judged.

`compliance:` is an object with the pin, the gates and the tests; or a bare list of tests, which has
no place for a pin.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, TypeAlias, TypeVar

from mcptest.core.errors import close_matches
from mcptest.core.message import ABSENT
from mcptest.core.revision import TIMELINE, Revision, revision_of_label
from mcptest.core.safe_text import show
from mcptest.suite.fields import (
    DECLARED,
    Checks,
    Definitions,
    ListOf,
    Mark,
    ObjectOf,
    Reading,
    Schema,
    Text,
    Whole,
    declared,
    read_object,
    value_of,
)
from mcptest.suite.model import LANES, OURS, ROW, Expectation, ServerSpec, Strings
from mcptest.suite.observed import Evaluation, evaluation_of, exchange_target_problem, failure_of
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
from mcptest.suite.sent_message import CHECK, SentCheck, check_of

SPEC_TARGETS: Final = (
    "spec_clean",
    "spec_breaking_changes",
    "spec_added",
    "spec_removed",
    "spec_severity_changes",
)
GRADE_TARGETS: Final = ("grade", "score", "grade_regressed", "regressed_sections")
_EMPTY: Final = {"schema": {"maxItems": 0}}
SPEC_DEFAULTS: Final = (
    Expectation("spec_clean", {"exact": True}),
    Expectation("spec_breaking_changes", _EMPTY),
)
GRADE_DEFAULTS: Final = (
    Expectation("grade_regressed", {"exact": False}),
    Expectation("regressed_sections", _EMPTY),
)
Expected: TypeAlias = tuple[Expectation, ...]
_NO_PLACE: Final = Place("")
_RULE_ID = re.compile(r"[A-Z]{3,8}-\d{3}")
Names: TypeAlias = Annotated[Strings, OURS]
Strict: TypeAlias = Annotated[bool, "Fail for broken SHOULD rules too.", OURS]
_NO_SERVER = "name one under server, or pass --server"
_Block = TypeVar("_Block", "InvariantsBlock", "PropertiesBlock")


class RevisionLabel(Text, frozen=True):
    """The label of a revision. One that is not known is reported where the block is checked."""

    plain_schema: ClassVar[Schema] = {"enum": [one.label for one in TIMELINE]}

    def value(self, read: Any, checks: Checks) -> Any:
        return revision_of_label(read)

    def schema(self, definitions: Definitions) -> Schema:
        return self.plain_schema


@declared("spec_version_check")
@dataclass(frozen=True, slots=True)
class SpecVersionCheck:
    """A gate: what moves between the pinned revision and another one."""

    against: Annotated[Revision | None, RevisionLabel(), "The target revision."] = None
    expect: Annotated[
        Expected, ListOf(ROW), "What must hold; clean and no breaking change by default."
    ] = SPEC_DEFAULTS
    place: Place = field(default=_NO_PLACE, compare=False)


@declared("grade_delta")
@dataclass(frozen=True, slots=True)
class GradeDelta:
    """A gate: how the grade moved since a saved scorecard."""

    against: Annotated[str, "The scorecard to compare with."] = ""
    expect: Annotated[Expected, ListOf(ROW), "What must hold; nothing regressed by default."] = (
        GRADE_DEFAULTS
    )
    place: Place = field(default=_NO_PLACE, compare=False)


@declared("a compliance test")
@dataclass(frozen=True, slots=True)
class ComplianceTest:
    """A rule of the corpus by its id, or a check with expectations of its own."""

    name: Annotated[str, "A rule's id, or any name.", Mark.REQUIRED]
    server: Annotated[str, "Its name; unused, because a suite has one server."] = ""
    check: Annotated[SentCheck | None, ObjectOf(CHECK, short_for="method"), CHECK.doc] = None
    expect: Annotated[Expected, ListOf(ROW), "What must hold of the response."] = ()
    place: Place = field(default=_NO_PLACE, compare=False)

    @property
    def rule_id(self) -> str:
        """The rule that its name is; empty for any other name."""
        return self.name if _RULE_ID.fullmatch(self.name) else ""

    @property
    def runs_corpus_rule(self) -> bool:
        return not self.expect


@declared("compliance")
@dataclass(frozen=True, slots=True)
class ComplianceBlock:
    """Judge the server by a revision of the specification."""

    spec_version: Annotated[
        Revision | None, RevisionLabel(), "The revision that the suite was written for."
    ] = None
    spec_version_check: Annotated[
        SpecVersionCheck | None, DECLARED[SpecVersionCheck].doc, Mark.EMPTY
    ] = None
    grade_delta: Annotated[GradeDelta | None, DECLARED[GradeDelta].doc, Mark.EMPTY] = None
    tests: Annotated[
        tuple[ComplianceTest, ...] | None, "The tests; the whole corpus without.", Mark.EMPTY
    ] = None
    """None: the whole corpus. Empty: the gates alone."""
    fixtures: Annotated[
        Mapping[str, str],
        "Fixture names, each with the tool, prompt or resource of the server that provides it.",
    ] = field(default_factory=dict)
    fixture_places: Mapping[str, Place] = field(default_factory=dict, compare=False)
    place: Place = field(default=_NO_PLACE, compare=False)

    @property
    def needs_server(self) -> bool:
        """Whether anything is asked of a server; a gate over corpora asks nothing."""
        return self.tests is None or bool(self.tests) or self.grade_delta is not None


@declared("invariants")
@dataclass(frozen=True, slots=True)
class InvariantsBlock:
    """Judge what the tests of the file record by the rules that hold for a whole session."""

    rules: Annotated[Names, "Only these rules, by id (default: all)."] = ()
    strict: Strict = False
    place: Place = field(default=_NO_PLACE, compare=False)


@declared("properties")
@dataclass(frozen=True, slots=True)
class PropertiesBlock:
    """Try the server with generated messages, arguments and conversations,
    as `mcptest property`."""

    names: Annotated[Names, "Only these properties (default: all)."] = ()
    examples: Annotated[
        int, Whole(minimum=1), "Examples for each property (default: 100).", OURS
    ] = 100
    seed: Annotated[int, "Seed for reproducible examples (default: 0).", OURS] = 0
    max_time: Annotated[float, "Time limit for all properties (default: 2m).", OURS] = 120.0
    allow_tools: Annotated[Names, "More tools that may be called; `*` means all."] = ()
    strict: Strict = False
    replay: Annotated[Names, "Files with counterexamples, beside the suite; runs only these."] = ()
    place: Place = field(default=_NO_PLACE, compare=False)


LANE_BLOCKS: Mapping[str, type] = dict(
    zip(LANES, (ComplianceBlock, InvariantsBlock, PropertiesBlock), strict=True)
)


@dataclass(frozen=True, slots=True)
class Lanes:
    """The lanes of one file. At least one of them is there."""

    file: str
    server: ServerSpec | None = None
    """None when --server must provide it, or nothing is sent to one."""
    compliance: ComplianceBlock | None = None
    invariants: InvariantsBlock | None = None
    properties: PropertiesBlock | None = None

    @property
    def places(self) -> list[tuple[str, Place]]:
        """What each lane is called, and where it stands."""
        blocks = [(name, getattr(self, name)) for name in LANES]
        return [(name, block.place) for name, block in blocks if block is not None]


def load_compliance_block(path: Path) -> ComplianceBlock | None:
    """The block of a suite file; None when it has none. SuiteError when it is not sound."""
    root, source = read_yaml(path)
    if root is not None and not isinstance(root, MappingNode):
        source.report(f"a suite must be a mapping, not {root.described}", 1, 1)
    block = None
    if isinstance(root, MappingNode) and "compliance" in root.entries:
        block = compliance_of(root.entries["compliance"][1], source)
    if source.errors:
        raise SuiteError(source.finish())
    return block


def compliance_of(node: Node, source: SuiteSource) -> ComplianceBlock | None:
    """The block that stands there; whatever is wrong is reported to the source."""
    if isinstance(node, ListNode):
        key = ScalarNode("tests", True, None, node.line, node.column, 1)
        node = MappingNode({"tests": (key, node)}, node.line, node.column)
    if not isinstance(node, MappingNode):
        message = f"compliance must be a mapping or a list of tests, not {node.described}"
        source.report(message, node.line, node.column)
        return None
    before = source.errors
    read = read_object(DECLARED[ComplianceBlock], node, source)
    _check_revision(read, "spec_version")
    if "spec_version_check" in read:
        _check_gate(read.get("spec_version_check"), SPEC_TARGETS)
        _check_revision(read.get("spec_version_check"), "against")
        if "spec_version" not in read and "spec_version" not in read.faulty:
            hint = "set the revision of the suite: spec_version: v2025-06-18"
            message = "spec_version_check needs compliance.spec_version"
            read.complain(message, "spec_version_check", hint=hint)
    if "grade_delta" in read:
        _check_gate(read.get("grade_delta"), GRADE_TARGETS)
    for test in read.get("tests", ()):
        _check_test(test)
    if source.errors > before:
        return None
    named = read.node_of("fixtures") if "fixtures" in read else None
    keys = named.entries if isinstance(named, MappingNode) else {}
    places = {text: source.place(key.line, key.column) for text, (key, _) in keys.items()}
    return replace(value_of(ComplianceBlock, read), fixture_places=places)


def _check_revision(read: Reading, name: str) -> None:
    label = read.get(name)
    if label is not None and revision_of_label(label) is None:
        labels = [one.label for one in TIMELINE]
        near = close_matches(label[:20], labels, 1)
        meant = f"did you mean {near[0]}? " if near else ""
        hint = f"{meant}accepted: {', '.join(labels)}"
        read.complain(f"unknown compliance spec_version: {show(label, 60)}", name, hint=hint)


def _check_gate(gate: Reading, targets: tuple[str, ...]) -> None:
    for one in gate.get("expect", ()):
        target = one.get("target", "")
        if target and target not in targets:
            hint = did_you_mean(target, targets)
            one.complain(f"unknown target {show(target, 60)}", "target", hint=hint)


def _check_test(read: Reading) -> None:
    before = read.source.errors
    if "check" in read:
        check_of(read.get("check"))
    for one in read.get("expect", ()):
        if one.sound and (problem := exchange_target_problem(one.get("target", ""))) is not None:
            one.complain(problem, "target")
    if not read.sound or read.source.errors > before:
        return
    test = value_of(ComplianceTest, read)
    if test.server:
        read.complain("a suite has one server, so the name is unused", "server", warning=True)
    if check := test.check:
        if check.probe:
            read.complain("a test in a suite can't use a probe", "check", hint="name the rule")
        elif test.runs_corpus_rule and test.rule_id:
            message = f"without expect the rule {test.rule_id} runs unchanged, so check is unused"
            read.complain(message, "check", warning=True)
    elif test.expect:
        read.complain("the test has no check", hint="add what to send, such as check: tools/list")
    if test.runs_corpus_rule and not test.rule_id:
        hint = "add expect, or name a rule such as PROTO-002"
        read.complain("the test has no expect, so any response would pass", hint=hint)


def judge_gate(expect: tuple[Expectation, ...], facts: Mapping[str, Any]) -> Evaluation:
    """The expectations of a gate against what was found out."""
    outcomes = (
        failure_of(one, facts.get(one.target, ABSENT), f"{one.target} is not known")
        for one in expect
    )
    return evaluation_of(outcomes, all_failures=True)


def lanes_of(read: Reading, server: ServerSpec | None, *, has_server: bool) -> Lanes | None:
    """The lanes that were read with a file; None where there are none, or they are not sound."""
    before = read.source.errors
    compliance = None
    if "compliance" in read:
        compliance = compliance_of(read.get("compliance"), read.source)
        if compliance is not None and compliance.needs_server and not has_server:
            read.complain("no server to judge", "compliance", hint=_NO_SERVER)
    invariants = _block(read, InvariantsBlock)
    properties = _block(read, PropertiesBlock)
    if properties is not None and not has_server:
        read.complain("no server to test", "properties", hint=_NO_SERVER)
    found = (compliance, invariants, properties)
    if read.source.errors > before or not any(found):
        return None
    return Lanes(read.source.file, server, compliance, invariants, properties)


def _block(read: Reading, block: type[_Block]) -> _Block | None:
    """The block that stands there; whatever is wrong is reported to the source."""
    declaration = DECLARED[block]
    if declaration.name not in read:
        return None
    node = read.get(declaration.name)
    if node.is_nothing:
        node = MappingNode({}, node.line, node.column)
    if not isinstance(node, MappingNode):
        message = f"{declaration.name} must be a mapping, not {node.described}"
        read.source.report(message, node.line, node.column)
        return None
    inner = read_object(declaration, node, read.source)
    return value_of(block, inner) if inner.sound else None
