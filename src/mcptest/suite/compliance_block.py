"""The `compliance:` block of a suite: the pin, the gates and the tests, with their places.

It is an object, or a bare list of tests, which has no place for a pin.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, TypeAlias

from mcptest.core.message import ABSENT
from mcptest.core.revision import TIMELINE, Revision, revision_of_label
from mcptest.core.safe_text import show
from mcptest.core.spelling import close_matches
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
    declared,
    read_object,
    value_of,
)
from mcptest.suite.model import ROW, Expectation
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


SPEC_VERSION_CHECK, GRADE_DELTA = DECLARED[SpecVersionCheck], DECLARED[GradeDelta]
TEST, BLOCK = DECLARED[ComplianceTest], DECLARED[ComplianceBlock]


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
    read = read_object(BLOCK, node, source)
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
