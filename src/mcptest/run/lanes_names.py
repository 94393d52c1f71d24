"""Names that a lane uses must exist: rules, fixtures. Known before anything is run."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from mcptest.model.errors import UsageError
from mcptest.model.revision import TIMELINE, Revision
from mcptest.model.show import show
from mcptest.rules.corpus.placeholders import FIXTURES
from mcptest.rules.corpus.version_corpus import corpus_of
from mcptest.suite.compliance_block import ComplianceBlock
from mcptest.suite.invariants_block import InvariantsBlock
from mcptest.suite.lanes import Lanes
from mcptest.suite.model import Place
from mcptest.suite.problems import Source, SuiteError
from mcptest.suite.properties_block import PropertiesBlock
from mcptest.transport.input_file import read_bounded

_LISTED = "`mcptest compliance rules` lists them"


def check_names(lanes: Sequence[Lanes], corpora: Path | None = None) -> None:
    """SuiteError, with every place, when a lane names something that does not exist."""
    problems = [problem for one in lanes for problem in _checked(one, corpora).finish()]
    if problems:
        raise SuiteError(problems)


def _checked(lanes: Lanes, corpora: Path | None) -> Source:
    source = Source(lanes.file, _text_of(lanes.file))
    if lanes.compliance is not None:
        _check_compliance(lanes.compliance, source, corpora)
    if lanes.invariants is not None:
        _check_invariants(lanes.invariants, source)
    if lanes.properties is not None:
        _check_properties(lanes.properties, source)
    return source


def _text_of(file: str) -> str:
    """For the line under a problem. It was read a moment ago; if it is gone, no line is shown."""
    try:
        return read_bounded(file, pipes=False).decode("utf-8-sig", errors="replace")
    except OSError:
        return ""


def _check_compliance(block: ComplianceBlock, source: Source, corpora: Path | None) -> None:
    for test in block.tests or ():
        if test.runs_corpus_rule:
            problem = _rule_problem(test.rule_id, block.spec_version, corpora)
            if problem is not None:
                _report(source, test.place, *problem)
    for name in block.fixtures:
        if name not in FIXTURES:
            place = block.fixture_places.get(name, block.place)
            _report(source, place, f"unknown fixture {show(name, 60)}", _meant(name, FIXTURES))


def _check_properties(block: PropertiesBlock, source: Source) -> None:
    from mcptest.run.properties.catalogue import PROPERTIES

    for name in block.names:
        if name not in PROPERTIES:
            _report(
                source, block.place, f"unknown property {show(name, 60)}", _meant(name, PROPERTIES)
            )


def _check_invariants(block: InvariantsBlock, source: Source) -> None:
    from mcptest.rules.catalogue import all_rules

    known = [rule.id for rule in all_rules()]
    for name in block.rules:
        if name not in known:
            hint = _meant(name, known) or _LISTED
            _report(source, block.place, f"there is no session rule {show(name, 60)}", hint)


def _report(source: Source, place: Place, message: str, hint: str) -> None:
    source.report(message, place.line, place.column, hint=hint)


def check_rules(
    names: Sequence[str], revision: Revision | None, corpora: Path | None = None
) -> None:
    """UsageError when one of the rules that the command line names does not exist there."""
    for name in names:
        problem = _rule_problem(name, revision, corpora)
        if problem is not None:
            message, hint = problem
            raise UsageError(f"--rule: {message}", hint=hint)


def _rule_problem(
    name: str, revision: Revision | None, corpora: Path | None
) -> tuple[str, str] | None:
    """What is wrong with the name, and what may help; without a revision any one will do."""
    if revision is not None and name in _rules_in(revision, corpora):
        return None
    having = [one for one in TIMELINE if name in _rules_in(one, corpora)]
    if not having:
        known = {rule for one in TIMELINE for rule in _rules_in(one, corpora)}
        return f"there is no rule {show(name, 60)}", _meant(name, known) or _LISTED
    if revision is None:
        return None
    there = ", ".join(one.label for one in having)
    return f"{revision.label} has no rule {show(name, 60)}", f"it is in {there}"


def _rules_in(revision: Revision, corpora: Path | None) -> Collection[str]:
    corpus = corpus_of(revision, corpora)
    return corpus.rules.keys() if corpus is not None else ()


def _meant(name: str, known: Collection[str]) -> str:
    wanted = name[:60] if name.islower() else name[:60].upper()
    return next(_near(wanted, known), "")


def _near(wanted: str, known: Collection[str]) -> Iterator[str]:
    for one in difflib.get_close_matches(wanted, sorted(known), 1, 0.6):
        yield f"did you mean {one}?"
