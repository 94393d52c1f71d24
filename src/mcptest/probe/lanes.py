"""What a suite file asks for beside its tests: compliance, invariants, properties.

Each lane ends in results like those of tests, so there is one report and one exit code.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from mcptest.core.capture import AnyRecord
from mcptest.core.errors import McptestError, PeerError, UsageError, close_matches
from mcptest.core.judgement import GateResult, Judgement, Scorecard
from mcptest.core.limits import Deadline
from mcptest.core.redaction import redaction
from mcptest.core.results import Proof, Status, TestResult
from mcptest.core.revision import TIMELINE, Revision, parse_revision
from mcptest.core.safe_text import show
from mcptest.core.verdict import Outcome, Verdict
from mcptest.probe.compliance.judging import Tell, judge_server, run_tests
from mcptest.probe.compliance.site import Order
from mcptest.probe.properties import need_hypothesis
from mcptest.probe.suites.server_start import understand
from mcptest.probe.suites.settings import ServerChoice, Settings
from mcptest.report.compliance.judged_results import (
    COMPLIANCE,
    broken_rule_in_words,
    failed_checks,
    result_at,
    result_of_gate,
    results_of_judgement,
    status_of,
)
from mcptest.report.property import PropertyReport, property_results
from mcptest.rules.catalogue import all_rules
from mcptest.rules.corpus.probes import known_fixtures
from mcptest.rules.corpus.reader import corpus_of
from mcptest.rules.corpus.version_diff import judge_spec_version_check
from mcptest.rules.declaration import Rule
from mcptest.rules.grading import graded_in_words, judge_grade_delta
from mcptest.rules.judge import decisiveness, judge
from mcptest.session.connection import Stopped
from mcptest.suite.lane_blocks import ComplianceBlock, InvariantsBlock, Lanes, PropertiesBlock
from mcptest.suite.model import ServerSpec
from mcptest.suite.reading import Place, SuiteError, SuiteProblem, SuiteSource
from mcptest.transport.capture_file import open_capture
from mcptest.transport.files import read_bounded
from mcptest.transport.target import Target
from mcptest.transport.temporary import ServerFixture, isolate_fixture

INVARIANTS = "invariants"
PROPERTIES = "properties"
_RECORDS_BETWEEN_LOOKS = 1_000
"""Records between two looks at the clock."""
_UNJUDGED_SHOWN = 5
_PROPERTY_TIMEOUT = 5.0
"""For one request: there are many, and silence is waited for."""
_LISTED = "list them with `mcptest compliance rules`"


@dataclass(frozen=True, slots=True)
class LaneSettings:
    """How lanes are run, whatever they judge."""

    tests: Settings = field(default_factory=Settings)
    """How its tests are run: the time, the fixture and the server hold for the lanes as well."""
    scorecards: Mapping[str, Scorecard | None] = field(default_factory=dict)
    """What `grade_delta` of each file compares with."""
    repeat: Callable[[str], str] = lambda file: ""
    """The command that judges the server of a file again."""


@dataclass(frozen=True, slots=True)
class SuiteServer:
    """The server of a suite as something that can be judged."""

    target: Target
    revision: Revision | None
    """What the suite or the command line says; None: find out."""


def server_of_suite(spec: ServerSpec | None, choice: ServerChoice, fixture: str) -> SuiteServer:
    """UsageError when it can't be understood, or needs a fixture that nobody gave."""
    spec = spec or ServerSpec()
    texts = (*spec.args, *spec.env.values(), spec.cwd or "")
    if not fixture and any("{{fixture}}" in text for text in texts):
        hint = "set one with mcptest run --config FILE --fixture DIR"
        raise UsageError("the server needs {{fixture}}, which has no value here", hint=hint)
    server, target = understand(spec, choice, fixture)
    asked = choice.spec_version or server.spec_version
    return SuiteServer(target, None if asked == "auto" else parse_revision(asked))


@contextmanager
def _suite_server(lanes: Lanes, how: LaneSettings) -> Iterator[SuiteServer]:
    """The server of a file, with a copy of the fixture for as long as it is needed."""
    copy = ServerFixture() if how.tests.fixture is None else isolate_fixture(how.tests.fixture)
    try:
        server = server_of_suite(lanes.server, how.tests.choice, copy.folder)
        try:
            yield server
        except McptestError as error:
            raise error.masked(redaction.text) from None
    finally:
        copy.remove()


def _unreached(
    name: str, verb: str, error: McptestError, place: Place, repeat: str = ""
) -> TestResult:
    kind = "call" if isinstance(error, PeerError) else "start"
    detail = f"the server could not be {verb}: {error.message}"
    proof = Proof(repeat=repeat) if repeat else None
    return result_at(name, Status.FAIL, place, detail=detail, kind=kind, proof=proof)


# -- compliance: the server is judged by a revision of the specification -------------------------


@dataclass(frozen=True, slots=True)
class JudgedBlock:
    judgements: tuple[Judgement, ...] = ()
    """Those whose rules were asked for."""
    gates: tuple[GateResult, ...] = ()
    graded: Judgement | None = None
    """By the whole corpus, where a gate or a scorecard needs the grade."""
    notes: tuple[str, ...] = ()


def narrowed(block: ComplianceBlock, names: Sequence[str]) -> ComplianceBlock:
    """Just the tests of these names, and no gates; the block itself when there are no names."""
    if not names:
        return block
    tests = None
    if block.tests is not None:
        tests = tuple(test for test in block.tests if test.name in names)
    return replace(block, tests=tests, spec_version_check=None, grade_delta=None)


def judge_block(
    block: ComplianceBlock,
    order: Order | None,
    tell: Tell,
    *,
    corpora: Path | None = None,
    before: Scorecard | None = None,
    needs_grade: bool = False,
) -> JudgedBlock:
    """Run the tests and hold the gates. No server is contacted when nothing is asked of one.

    `order` may be None only then. Raises PeerError when the server can't be reached.
    """
    found = judge_spec_version_check(block, lambda revision: corpus_of(revision, corpora))
    gates = [] if found is None else [found]
    judgement = graded = None
    if order is not None:
        judgement = _judged_tests(block, order, tell)
        wants_grade = needs_grade or block.grade_delta is not None
        if wants_grade and not _is_interrupted(order):
            if block.tests is None:
                graded = judgement
            else:
                with suppress(Stopped):  # before the server was met again
                    graded = judge_server(msgspec.structs.replace(order, rules=()), tell)
    if block.grade_delta is not None and graded is not None and not _is_interrupted(order):
        gates.append(judge_grade_delta(block.grade_delta, graded, before))
    judged = () if judgement is None else (judgement,)
    notes: tuple[str, ...] = ()
    if graded is not None and graded is not judgement and graded.grade is not None:
        words = graded_in_words(graded.grade.letter, graded.grade.score)
        notes = (f"the grade is of the whole corpus: {words}",)
    return JudgedBlock(judged, tuple(gates), graded, notes)


def _is_interrupted(order: Order | None) -> bool:
    """Then there is no grade, and nothing that needs one."""
    return order is not None and order.should_stop is not None and order.should_stop()


def _judged_tests(block: ComplianceBlock, order: Order, tell: Tell) -> Judgement | None:
    if block.tests == ():
        return None
    try:
        if block.tests is None:
            return judge_server(order, tell)
        judged = run_tests(order, block.tests, tell)
    except UsageError as error:
        # Which revision is spoken was found out only now, and it lacks a rule that was named.
        if order.revision is not None or isinstance(error, SuiteError):
            raise
        remedy = "--spec-version" if block.tests is None else "compliance.spec_version"
        raise UsageError(error.message, hint=f"name the revision that has it: {remedy}") from None
    # The name of a test may hold spaces: the command that repeats it must still be one.
    results = tuple(
        msgspec.structs.replace(one, repeat=f"{order.repeat} --rule {shlex.quote(one.id)}")
        if order.repeat and shlex.quote(one.id) != one.id
        else one
        for one in judged.results
    )
    return msgspec.structs.replace(judged, results=results)


def run_compliance_lane(lanes: Lanes, how: LaneSettings, tell: Tell) -> Iterator[TestResult]:
    """Judge the server of a file as its block says. One that can't be reached is a failure."""
    block = lanes.compliance
    assert block is not None  # whoever calls has looked
    try:
        if not block.needs_server:
            yield from _compliance_results(block, lanes, how, None, tell)
            return
        with _suite_server(lanes, how) as server:
            yield from _compliance_results(block, lanes, how, server, tell)
    except Stopped:
        return
    except McptestError as error:
        gates = replace(block, tests=(), grade_delta=None)
        yield from _compliance_results(gates, lanes, how, None, tell)
        yield _unreached(COMPLIANCE, "judged", error, block.place, how.repeat(lanes.file))


def _compliance_results(
    block: ComplianceBlock, lanes: Lanes, how: LaneSettings, server: SuiteServer | None, tell: Tell
) -> Iterator[TestResult]:
    order, label = None, ""
    if server is not None:
        label = show(redaction.text(server.target.label), 120)
        order = Order(
            target=server.target,
            revision=block.spec_version or server.revision,
            fixtures=block.fixtures,
            timeout=how.tests.timeout,
            startup=how.tests.timeout,
            captures=how.tests.choice.captures,
            repeat=redaction.masker.text(how.repeat(lanes.file)),
            should_stop=how.tests.should_stop,
        )
    judged = judge_block(block, order, tell, before=how.scorecards.get(lanes.file))
    places = {test.name: test.place for test in block.tests or ()}
    for judgement in judged.judgements:
        for result in results_of_judgement(judgement, block.place, server=label):
            place = places.get(result.name.removeprefix(f"{COMPLIANCE} "), block.place)
            yield msgspec.structs.replace(result, line=place.line)
    for gate in judged.gates:
        gate_block = getattr(block, gate.name, None)
        yield result_of_gate(gate, gate_block.place if gate_block is not None else block.place)


# -- invariants: the sessions that the tests recorded, judged by the session rules ---------------


def run_invariants_lane(
    block: InvariantsBlock, captures: Sequence[Path], *, kept: bool, limit: float | None = None
) -> Iterator[TestResult]:
    """One result for each rule that the sessions exercised, and for each that was asked for.

    `kept`: the captures stay, so a failure may name its file. `limit`: seconds for each capture;
    what is not judged by then is a failure of its own.
    """
    unjudged: list[str] = []
    rules = [rule for rule in all_rules() if not block.rules or rule.id in block.rules]
    worst: dict[str, tuple[Verdict, str]] = {}
    failed: Counter[str] = Counter()
    sessions = 0
    for path in captures:
        for verdicts in _judged(path, rules, limit, unjudged):
            sessions += 1
            for one in verdicts:
                failed[one.rule] += one.outcome is Outcome.FAIL
                known = worst.setdefault(one.rule, (one, str(path)))
                if decisiveness(one) < decisiveness(known[0]):
                    worst[one.rule] = (one, str(path))
    exercised = {Outcome.FAIL, Outcome.PASS, Outcome.INCONCLUSIVE}
    results = []
    for rule in rules:
        verdict, file = worst.get(rule.id, (None, ""))
        if verdict is not None and (block.rules or verdict.outcome in exercised):
            often = f"in {failed[rule.id]} of {sessions} sessions"
            capture = file if kept else ""
            results.append(_result_over_sessions(rule, verdict, block, often, capture))
    yield from results
    if unjudged:
        advice = "judge the whole capture with mcptest compliance invariants --capture FILE"
        detail = "\n  ".join((*unjudged[:_UNJUDGED_SHOWN], advice))
        yield result_at(INVARIANTS, Status.FAIL, block.place, detail=detail, kind="timeout")
    elif not results:
        detail = "not observed: the tests of the file recorded no session"
        yield result_at(INVARIANTS, Status.SKIP, block.place, detail=detail)


def _judged(
    path: Path, rules: list[Rule], limit: float | None, unjudged: list[str]
) -> Iterator[tuple[Verdict, ...]]:
    """What the rules say about each session of a capture."""
    deadline = Deadline.after(limit) if limit is not None else None
    cut_off: list[int] = []
    try:
        for source in open_capture(str(path)):
            records = _in_time(source.records, deadline, cut_off)
            yield judge(msgspec.structs.replace(source, records=records), rules).verdicts
            if cut_off:
                part = f"the first {cut_off[0]:,} records of {show(source.label, 80)}"
                unjudged.append(f"only {part} were judged, within {limit:.1f}s")
                return
    except UsageError:
        # Nothing was said: the server did not start, and the test that needed it says so.
        return


def _in_time(
    records: Iterator[tuple[int, AnyRecord]], deadline: Deadline | None, cut_off: list[int]
) -> Iterator[tuple[int, AnyRecord]]:
    """Records up to a deadline. A session that ends there is judged as one that was cut short, and
    `cut_off` gets the number of records that were read."""
    for number, record in enumerate(records):
        due = number > 0 and number % _RECORDS_BETWEEN_LOOKS == 0
        if due and deadline is not None and deadline.expired:
            cut_off.append(number)
            return
        yield record


def _result_over_sessions(
    rule: Rule, verdict: Verdict, block: InvariantsBlock, often: str, capture: str
) -> TestResult:
    findings = verdict.findings
    status = status_of(verdict.outcome, rule.severity, strict=block.strict)
    if verdict.unchecked and verdict.outcome not in {Outcome.PASS, Outcome.FAIL}:
        status = Status.FAIL
    detail = ""
    if verdict.outcome is Outcome.FAIL:
        broken = broken_rule_in_words(rule.title, rule.severity, findings, status)
        detail = f"{broken} ({often})"
    elif status is not Status.PASS:
        detail = f"{verdict.outcome.value.replace('_', ' ')}: {verdict.reason}".rstrip(": ")
    result = result_at(f"{INVARIANTS} {rule.id}", status, block.place, detail=detail)
    if status is not Status.FAIL:
        return result
    proof = Proof(
        response=(findings[0].excerpt if findings else None) or "",
        repeat=f"mcptest explain {rule.id}",
        capture=capture,
    )
    failures = failed_checks(findings)
    return msgspec.structs.replace(result, kind="check", failures=failures, proof=proof)


# -- properties: the server is tried with generated examples or kept ones ------------------------


def run_properties_lane(lanes: Lanes, how: LaneSettings) -> Iterator[TestResult]:
    """A server that can't be reached is a failure."""
    block = lanes.properties
    assert block is not None  # whoever calls has looked
    try:
        for report in _property_reports(block, lanes, how):
            for result in property_results(report):
                yield msgspec.structs.replace(result, file=block.place.file, line=block.place.line)
    except Stopped:
        return
    except McptestError as error:
        yield _unreached(PROPERTIES, "tried", error, block.place)


def _property_reports(
    block: PropertiesBlock, lanes: Lanes, how: LaneSettings
) -> Iterator[PropertyReport]:
    need_hypothesis()
    from mcptest.probe.counterexamples import read_example
    from mcptest.probe.properties.engine import replay_example, run_properties
    from mcptest.probe.properties.property_catalogue import PropertyOrder

    with _suite_server(lanes, how) as server:
        order = PropertyOrder(
            target=server.target,
            revision=server.revision,
            properties=block.names,
            examples=block.examples,
            seed=block.seed,
            max_time=block.max_time,
            allow_tools=block.allow_tools,
            captures=how.tests.choice.captures,
            timeout=min(how.tests.timeout, _PROPERTY_TIMEOUT),
            startup=how.tests.timeout,
            strict=block.strict,
            should_stop=how.tests.should_stop,
        )
        if not block.replay:
            yield run_properties(order)
        for file in block.replay:
            yield replay_example(order, read_example(Path(lanes.file).parent / file))


# -- Names that a lane uses must exist -----------------------------------------------------------


def check_names(lanes: Sequence[Lanes], corpora: Path | None = None) -> None:
    """SuiteError, with every place, when a lane names something that does not exist."""
    problems: list[SuiteProblem] = []
    for one in lanes:
        try:  # for the line under a problem; if the file is gone since it was read, none is shown
            text = read_bounded(one.file, pipes=False).decode("utf-8-sig", errors="replace")
        except OSError:
            text = ""
        source = SuiteSource(one.file, text)
        for place, message, hint in _unknown_names(one, corpora):
            source.report(message, place.line, place.column, hint=hint)
        problems += source.finish()
    if problems:
        raise SuiteError(problems)


def _unknown_names(lanes: Lanes, corpora: Path | None) -> Iterator[tuple[Place, str, str]]:
    if block := lanes.compliance:
        for test in (one for one in block.tests or () if one.runs_corpus_rule):
            if problem := _rule_problem(test.rule_id, block.spec_version, corpora):
                yield test.place, *problem
        for name in block.fixtures:
            if name not in known_fixtures():
                place = block.fixture_places.get(name, block.place)
                yield place, f"unknown fixture {show(name, 60)}", _nearest(name, known_fixtures())
    if lanes.invariants is not None:
        rules = {rule.id for rule in all_rules()}
        for name in (one for one in lanes.invariants.rules if one not in rules):
            hint = _nearest(name, rules) or _LISTED
            yield lanes.invariants.place, f"unknown session rule {show(name, 60)}", hint
    if lanes.properties is not None:
        from mcptest.probe.properties.property_catalogue import PROPERTIES as KNOWN

        for name in (one for one in lanes.properties.names if one not in KNOWN):
            place, hint = lanes.properties.place, _nearest(name, KNOWN)
            yield place, f"unknown property {show(name, 60)}", hint


def check_rules(
    names: Sequence[str], revision: Revision | None, corpora: Path | None = None
) -> None:
    """UsageError when one of the rules that the command line names does not exist there."""
    for name in names:
        if (problem := _rule_problem(name, revision, corpora)) is not None:
            raise UsageError(f"--rule: {problem[0]}", hint=problem[1])


def _rule_problem(
    name: str, revision: Revision | None, corpora: Path | None
) -> tuple[str, str] | None:
    """What is wrong with the name, and what may help; without a revision any one will do."""
    if revision is not None and name in _rules_in(revision, corpora):
        return None
    having = [one for one in TIMELINE if name in _rules_in(one, corpora)]
    if not having:
        known = {rule for one in TIMELINE for rule in _rules_in(one, corpora)}
        return f"unknown rule {show(name, 60)}", _nearest(name, known) or _LISTED
    if revision is None:
        return None
    there = ", ".join(one.label for one in having)
    return f"{revision.label} has no rule {show(name, 60)}", f"it is in {there}"


def _rules_in(revision: Revision, corpora: Path | None) -> Collection[str]:
    corpus = corpus_of(revision, corpora)
    return corpus.rules.keys() if corpus is not None else ()


def _nearest(name: str, known: Collection[str]) -> str:
    wanted = name[:60] if name.islower() else name[:60].upper()
    near = close_matches(wanted, sorted(known), 1, 0.6)
    return f"did you mean {near[0]}?" if near else ""
