"""What a judged block comes to: gates, exit codes, results of tests, the command that repeats."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from mcptest.commands.app import Parser
from mcptest.commands.compliance.cli import configure_run
from mcptest.commands.compliance.run import check, repeat_command
from mcptest.core.errors import ErrorKind, ExitCode, PeerError, UsageError
from mcptest.core.judgement import GateResult, Grade, Judgement, RootCause
from mcptest.core.results import Status
from mcptest.core.results import TestResult as Result
from mcptest.core.revision import Revision
from mcptest.core.verdict import Outcome, Severity
from mcptest.probe import lanes as judged_block
from mcptest.probe.compliance.site import Order
from mcptest.probe.lanes import LaneSettings, judge_block, narrowed, run_compliance_lane
from mcptest.report.compliance.judged_results import result_of_gate, results_of_judgement
from mcptest.rules.grading import exit_code_for, min_grade_gate
from mcptest.suite.lane_blocks import (
    ComplianceBlock,
    ComplianceTest,
    GradeDelta,
    Lanes,
    SpecVersionCheck,
)
from mcptest.suite.model import ServerSpec
from mcptest.suite.reading import Place
from mcptest.transport.target import DEMO
from tests.support.sample_compliance import judgement, rule_result

PLACE = Place("suite.yml", 3)
PASSES = rule_result("PROTO-002")
FAILS = rule_result("PROTO-003", Outcome.FAIL)
SOFT = rule_result("TOOLS-001", Outcome.FAIL, severity=Severity.SHOULD)
UNSEEN = rule_result("TOOLS-002", Outcome.NOT_OBSERVED, unlocked_by="a tool")
FOREIGN = rule_result("PROMPTS-001", Outcome.NOT_APPLICABLE)
EXITED = RootCause("exited", "the server exited with code 1", "look at its log", (), 7)
RED = GateResult("grade_delta", False, "A -> B", ("section tools fell",))
GREEN = GateResult("spec_version_check", True, "0 changed")


def judged(*results: Any, **more: Any) -> Judgement:
    return judgement(results=tuple(results), **{"causes": (), **more})


# -- the exit code -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("judgements", "gates", "code"),
    [
        ([judged(PASSES)], [], 0),
        ([judged(PASSES, UNSEEN, FOREIGN)], [GREEN], 0),
        ([judged(PASSES, FAILS)], [], 1),
        ([judged(PASSES), judged(FAILS)], [], 1),
        ([judged(PASSES, SOFT)], [], 0),
        ([judged(PASSES)], [RED], 1),
        ([judged(PASSES, causes=(EXITED,))], [], 1),
        ([judged(UNSEEN)], [], 4),
        ([judged(UNSEEN, FOREIGN)], [GREEN], 4),
        ([], [GREEN], 0),
        ([], [RED], 1),
        ([], [], 4),
    ],
)
def test_the_exit_code_follows_from_the_verdicts(
    judgements: Sequence[Judgement], gates: Sequence[GateResult], code: int
) -> None:
    assert exit_code_for(judgements, gates) == code


def test_a_broken_should_counts_only_when_strict() -> None:
    assert exit_code_for([judged(PASSES, SOFT)], [], strict=True) is ExitCode.FAILED
    may = rule_result("TOOLS-009", Outcome.FAIL, severity=Severity.MAY)
    assert exit_code_for([judged(PASSES, may)], [], strict=True) is ExitCode.OK


def test_a_baseline_says_which_failures_count() -> None:
    held = GateResult("baseline", True, "1 known")
    assert exit_code_for([judged(PASSES, FAILS)], [held], excused=True) is ExitCode.OK


@pytest.mark.parametrize(
    ("letter", "wanted", "passed"),
    [("A", "A-", True), ("A-", "A-", True), ("B+", "A-", False), ("", "F", False)],
)
def test_the_lowest_grade_is_a_gate(letter: str, wanted: str, passed: bool) -> None:
    gate = min_grade_gate(wanted, judged(PASSES, grade=Grade(letter, 91.5)))
    assert gate.passed is passed
    assert wanted in gate.detail


def test_some_rules_have_no_grade_that_could_be_good_enough() -> None:
    assert not min_grade_gate("F", judged(PASSES, grade=None)).passed


# -- results of tests --------------------------------------------------------------------------


def named(results: Sequence[Result]) -> dict[str, Result]:
    return {one.name: one for one in results}


def test_rules_become_results_and_what_does_not_apply_is_left_out() -> None:
    results = named(list(results_of_judgement(judged(PASSES, FAILS, SOFT, UNSEEN, FOREIGN), PLACE)))
    assert list(results) == [
        "compliance PROTO-002",
        "compliance PROTO-003",
        "compliance TOOLS-001",
        "compliance TOOLS-002",
    ]
    assert results["compliance PROTO-002"].status is Status.PASS
    failed = results["compliance PROTO-003"]
    assert failed.status is Status.FAIL
    assert (failed.file, failed.line) == ("suite.yml", 3)
    assert failed.proof is not None
    assert failed.proof.repeat.endswith("--rule PROTO-003")
    unseen = results["compliance TOOLS-002"]
    assert unseen.status is Status.SKIP
    assert "needs a tool" in unseen.detail


def test_advice_that_is_not_followed_is_no_success_and_fails_when_strict() -> None:
    (soft,) = results_of_judgement(judged(SOFT), PLACE)
    assert soft.status is Status.SKIP
    assert "not followed (SHOULD)" in soft.detail
    (strict,) = results_of_judgement(judged(SOFT), PLACE, strict=True)
    assert strict.status is Status.FAIL


def test_a_cause_is_one_failure() -> None:
    unsure = rule_result("TOOLS-003", Outcome.INCONCLUSIVE, cause="exited", reason="see exited")
    cause, rule = results_of_judgement(judged(unsure, causes=(EXITED,)), PLACE)
    assert (cause.name, cause.status) == ("compliance exited", Status.FAIL)
    assert "7 rules could not be judged" in cause.detail
    assert rule.status is Status.SKIP


def test_gates_become_results() -> None:
    passed, failed = result_of_gate(GREEN, PLACE), result_of_gate(RED, PLACE)
    assert (passed.status, passed.note) == (Status.PASS, "0 changed")
    assert (failed.name, failed.status) == ("compliance grade_delta", Status.FAIL)
    assert failed.detail == "A -> B; section tools fell"


# -- judging a block ---------------------------------------------------------------------------

ORDER = Order(target=DEMO)
TEST = ComplianceTest("PROTO-002")


class Engine:
    """Stands in for the one that starts servers; notes what it was asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[str] = []
        self.unreachable = False
        monkeypatch.setattr(judged_block, "judge_server", self.judge_server)
        monkeypatch.setattr(judged_block, "run_tests", self.run_tests)

    def judge_server(self, order: Order, tell: object) -> Judgement:
        self.asked.append(f"whole corpus {','.join(order.rules)}".strip())
        self._knock()
        return judged(PASSES, grade=Grade("A", 95.0))

    def run_tests(self, order: Order, tests: Sequence[ComplianceTest], tell: object) -> Judgement:
        self.asked.append(" ".join(test.name for test in tests))
        self._knock()
        return judged(PASSES, grade=None, whole_corpus=False)

    def _knock(self) -> None:
        if self.unreachable:
            raise PeerError(ErrorKind.EXITED, "the server exited with code 3")


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Engine:
    return Engine(monkeypatch)


def tell(event: object) -> None:
    """Nobody listens."""


def test_no_tests_key_is_the_whole_corpus(engine: Engine) -> None:
    found = judge_block(ComplianceBlock(), ORDER, tell)
    assert engine.asked == ["whole corpus"]
    assert len(found.judgements) == 1
    assert found.gates == ()


def test_tests_are_run_by_name(engine: Engine) -> None:
    judge_block(ComplianceBlock(tests=(TEST,)), ORDER, tell)
    assert engine.asked == ["PROTO-002"]


def test_an_empty_list_is_the_gates_alone_and_starts_no_server(engine: Engine) -> None:
    block = ComplianceBlock(Revision.DRAFT, SpecVersionCheck(Revision.DRAFT), tests=())
    found = judge_block(block, None, tell)
    assert engine.asked == []
    assert [gate.name for gate in found.gates] == ["spec_version_check"]
    assert found.judgements == ()


def test_the_grade_gate_judges_by_the_whole_corpus_whatever_the_tests_are(engine: Engine) -> None:
    found = judge_block(ComplianceBlock(tests=(TEST,), grade_delta=GradeDelta()), ORDER, tell)
    assert engine.asked == ["PROTO-002", "whole corpus"]
    assert [gate.name for gate in found.gates] == ["grade_delta"]
    assert len(found.judgements) == 1, "the tests decide, and the grade only its gate"
    assert found.notes == ("the grade is of the whole corpus: A (95.0)",)


def test_a_scorecard_needs_the_grade_too(engine: Engine) -> None:
    found = judge_block(ComplianceBlock(tests=(TEST,)), ORDER, tell, needs_grade=True)
    assert found.graded is not None
    assert found.graded.grade == Grade("A", 95.0)


def test_names_narrow_a_block_to_its_tests_without_gates() -> None:
    other = ComplianceTest("PROTO-003")
    block = ComplianceBlock(
        Revision.DRAFT, SpecVersionCheck(Revision.DRAFT), GradeDelta(), tests=(TEST, other)
    )
    assert narrowed(block, []) is block
    found = narrowed(block, ["PROTO-003"])
    assert found.tests == (other,)
    assert found.spec_version_check is None
    assert found.grade_delta is None


def lane(engine: Engine, block: ComplianceBlock) -> dict[str, Result]:
    lanes = Lanes("suite.yml", ServerSpec(command="s"), block)
    how = LaneSettings(repeat=lambda file: f"mcptest compliance run --from-suite {file}")
    return named(list(run_compliance_lane(lanes, how, tell)))


def test_a_lane_gives_results_of_rules_and_gates(engine: Engine) -> None:
    block = ComplianceBlock(Revision.DRAFT, SpecVersionCheck(Revision.DRAFT), tests=(TEST,))
    results = lane(engine, block)
    assert list(results) == ["compliance PROTO-002", "compliance spec_version_check"]


def test_a_server_that_can_not_be_reached_fails_the_lane_and_the_gates_still_count(
    engine: Engine,
) -> None:
    engine.unreachable = True
    block = ComplianceBlock(Revision.DRAFT, SpecVersionCheck(Revision.DRAFT))
    results = lane(engine, block)
    assert results["compliance spec_version_check"].status is Status.PASS
    failed = results["compliance"]
    assert failed.status is Status.FAIL
    assert "exited with code 3" in failed.detail
    assert failed.proof is not None
    assert failed.proof.repeat == "mcptest compliance run --from-suite suite.yml"


# -- the command line --------------------------------------------------------------------------


def parsed(*words: str) -> argparse.Namespace:
    parser = Parser()
    configure_run(parser)
    at = words.index("--") if "--" in words else len(words)
    arguments = parser.parse_args(list(words[:at]))
    arguments.server_command = list(words[at + 1 :])
    return arguments


@pytest.mark.parametrize(
    "words",
    [
        ["--server", "npx my-server '/data with spaces'", "--env", "A=b c"],
        ["--server", "http://127.0.0.1:1/mcp", "--header", "X-A=b; c", "--transport", "http"],
        ["--from-suite", "suites/a b.yml", "--allow-tool", "delete $HOME"],
        ["--server", "x", "--map", "slow_tool=nap", "--timeout", "5s", "--registry", "r.yml"],
        ["--server", "x", "--cwd", "/tmp", "--startup-timeout", "9s", "--mcp-config", "c.json"],
    ],
)
def test_the_command_that_repeats_says_the_same(words: list[str]) -> None:
    line = repeat_command(parsed(*words)) + " --rule PROTO-002"
    program, *rest = shlex.split(line)
    assert (program, rest[:2]) == ("mcptest", ["compliance", "run"])
    again, first = parsed(*rest[2:]), parsed(*words)
    assert again.rule == ["PROTO-002"]
    again.rule = []
    assert vars(again) == vars(first)


@pytest.mark.parametrize("command", [["node", "a b.js", "--x"], ["demo"], ["http://x"]])
def test_a_command_after_dashes_becomes_one_word_that_is_still_a_command(
    command: list[str],
) -> None:
    from mcptest.commands.options import server_words
    from mcptest.session.server_spec import target_of

    _, *rest = shlex.split(repeat_command(parsed("--", *command)))
    again = parsed(*rest[2:])
    assert again.server_command == []
    assert target_of(server_words(again)).command == tuple(command)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "no server is named"),
        (["--server", "x", "--update-baseline"], "--update-baseline requires --baseline"),
        (["--server", "x", "--min-grade", "E"], "--min-grade takes A+ to F"),
        (["--server", "x", "--rule", "A-1", "--min-grade", "A"], "requires all rules"),
        (["--server", "x", "--rule", "A-1", "--save-scorecard", "c"], "requires all rules"),
    ],
)
def test_options_that_do_not_go_together_are_refused(words: list[str], told: str) -> None:
    with pytest.raises(UsageError, match=told.replace("+", r"\+")):
        check(parsed(*words))


def test_paths_of_options_are_paths() -> None:
    arguments = parsed("--server", "x", "--html", "a.html", "--save-capture", "d")
    assert (arguments.html, arguments.save_capture) == (Path("a.html"), Path("d"))
