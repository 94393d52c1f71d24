"""Live servers, judged: the sound demo has nothing against it, and each misdeed has one cause."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest

from mcptest.core.capture import Opened
from mcptest.core.errors import ErrorKind, PeerError, UsageError
from mcptest.core.judgement import Event, Judgement, JudgingBegan, RuleJudged, RuleResult
from mcptest.core.revision import HANDSHAKE_REVISIONS, Revision
from mcptest.core.verdict import Outcome
from mcptest.probe.compliance.judging import judge_server, run_tests, spoken_revisions
from mcptest.probe.compliance.site import Order
from mcptest.rules.corpus.reader import corpus_of
from mcptest.suite.lane_blocks import ComplianceTest
from mcptest.suite.model import Expectation
from mcptest.suite.sent_message import SentCheck
from mcptest.transport.capture_file import open_capture
from mcptest.transport.target import DEMO, Target, Way
from tests.e2e.demo_peer import BOUND
from tests.e2e.probing import OFFERED, SOUND, demo

OLD = Revision.V2025_06_18
NEW = Revision.V2026_07_28
JUDGED = Path(__file__).with_name("judged_server.py")


def quiet(event: Event) -> None:
    """Nobody listens."""


def misbehaving(way: str, folder: Path) -> Target:
    command = (sys.executable, "-S", str(JUDGED), way, str(folder / "called"))
    return Target(way="stdio", label=way, command=command)


def judged(way: str, folder: Path, **more: object) -> Judgement:
    """A server that misbehaves; a short timeout, since some of them never answer."""
    settings = {"timeout": 3.0, "startup": BOUND, "patience": 1.0, "revision": OLD, **more}
    return judge_server(Order(target=misbehaving(way, folder), **settings), quiet)  # type: ignore[arg-type]  # as given


def result(judgement: Judgement, rule: str) -> RuleResult:
    return next(one for one in judgement.results if one.id == rule)


def failed(judgement: Judgement) -> list[str]:
    return [one.id for one in judgement.failures]


# -- the sound demo ------------------------------------------------------------------------------

PLACES: list[tuple[Way, Revision]] = [
    *(("stdio", revision) for revision in (Revision.V2024_11_05, OLD, Revision.V2025_11_25, NEW)),
    *(("http", revision) for revision in (Revision.V2025_03_26, Revision.V2025_11_25, NEW)),
    ("sse", Revision.V2024_11_05),
]


@pytest.mark.parametrize(("way", "revision"), PLACES, ids=str)
def test_nothing_is_held_against_the_sound_demo(
    way: Way, revision: Revision, tmp_path: Path
) -> None:
    with demo(way, (*SOUND, *OFFERED), tmp_path) as target:
        judgement = judge_server(Order(target=target, revision=revision, timeout=BOUND), quiet)
    assert [(one.id, one.findings) for one in judgement.failures] == []
    assert judgement.count(Outcome.INCONCLUSIVE) == 0
    assert judgement.causes == ()
    assert judgement.coverage > 0.8
    assert judgement.transport == way
    assert judgement.grade is not None
    assert judgement.grade.score == 100


@pytest.mark.parametrize(
    ("words", "outcome"),
    [((), Outcome.NOT_APPLICABLE), (("--spec-version", NEW.value), Outcome.PASS)],
    ids=["both eras", "one era"],
)
def test_what_is_said_of_servers_of_one_era_does_not_apply_to_others(
    words: tuple[str, ...], outcome: Outcome, tmp_path: Path
) -> None:
    rules = ("HTTP-102", "HTTP-103", "HTTP-126")
    with demo("http", (*SOUND, *words), tmp_path) as target:
        judgement = judge_server(Order(target=target, rules=rules, timeout=BOUND), quiet)
    assert {one.id: one.outcome for one in judgement.results} == dict.fromkeys(rules, outcome)


def test_every_rule_about_servers_has_one_result_in_order(tmp_path: Path) -> None:
    judgement = judge_server(Order(target=DEMO, repeat="mcptest compliance run"), quiet)
    corpus = corpus_of(NEW)
    assert corpus is not None
    assert judgement.revision is NEW
    assert {one.id for one in judgement.results} <= corpus.rules.keys()
    assert {one.id for one in judgement.results} >= {"PROTO-010", "META-003", "TOOLS-005"}
    order = [(one.section, one.id) for one in judgement.results]
    assert order == sorted(order)
    assert set(Counter(order).values()) == {1}
    for one in judgement.results:
        assert all((one.title, one.section, one.requirement, one.url))
        assert one.repeat == f"mcptest compliance run --rule {one.id}"
        assert one.observed or one.outcome is not Outcome.PASS
        assert one.reason or one.outcome in {Outcome.PASS, Outcome.FAIL}


def test_what_stays_unobserved_says_what_would_unlock_it() -> None:
    judgement = judge_server(Order(target=DEMO, revision=NEW), quiet)
    assert result(judgement, "PROTO-018").outcome is Outcome.NOT_OBSERVED
    assert result(judgement, "PROTO-018").unlocked_by == "the fixture asking_tool"


def test_progress_is_told_rule_by_rule() -> None:
    told: list[Event] = []
    order = Order(target=DEMO, revision=OLD, rules=("PROTO-003", "TOOLS-005", "TOOL-003"))
    judgement = judge_server(order, told.append)
    began, *rules = told
    assert began == JudgingBegan(OLD, "stdio", "mcptest-demo", 3)
    assert {one.id for one in rules if isinstance(one, RuleJudged)} == {*order.rules}
    assert [one.done for one in rules if isinstance(one, RuleJudged)] == [1, 2, 3]
    assert not judgement.whole_corpus
    assert judgement.grade is None


def test_every_conversation_is_kept_as_a_capture_where_asked(tmp_path: Path) -> None:
    order = Order(target=DEMO, revision=OLD, rules=("JSONRPC-002",), captures=tmp_path)
    judgement = judge_server(order, quiet)
    assert judgement.captures
    sessions = [one for path in judgement.captures for one in _records(path)]
    assert any(isinstance(one, Opened) for one in sessions)
    assert all(Path(path).parent == tmp_path for path in judgement.captures)


def _records(path: str) -> list[object]:
    return [record for source in open_capture(path) for _, record in source.records]


# -- pins ----------------------------------------------------------------------------------------


def test_a_pin_that_the_server_does_not_speak_tells_what_it_speaks(tmp_path: Path) -> None:
    for pin in (Revision.V2025_11_25, NEW):
        with pytest.raises(PeerError, match="2025-06-18") as refused:
            judged("sound", tmp_path, revision=pin)
        assert refused.value.kind is ErrorKind.VERSION_REFUSED


def test_without_a_pin_the_newest_that_both_speak_is_judged(tmp_path: Path) -> None:
    assert judged("sound", tmp_path, revision=None, rules=("PROTO-003",)).revision is OLD


def test_a_server_that_does_not_start_is_no_judgement() -> None:
    target = Target(
        way="stdio", label="none", command=(sys.executable, "-c", "raise SystemExit(4)")
    )
    with pytest.raises(PeerError) as gone:
        judge_server(Order(target=target), quiet)
    assert gone.value.kind is ErrorKind.EXITED


def test_an_unknown_rule_is_told_before_anything_is_started() -> None:
    target = Target(way="stdio", label="none", command=("mcptest-no-such-program",))
    with pytest.raises(UsageError, match="no rule NONE-001"):
        judge_server(Order(target=target, revision=OLD, rules=("NONE-001",)), quiet)


def test_the_revisions_that_a_server_speaks_are_found_by_asking(tmp_path: Path) -> None:
    assert spoken_revisions(Order(target=DEMO)) == (*HANDSHAKE_REVISIONS, NEW)
    assert spoken_revisions(Order(target=misbehaving("sound", tmp_path), timeout=3.0)) == (OLD,)


# -- safety --------------------------------------------------------------------------------------


def test_only_tools_that_read_are_called(tmp_path: Path) -> None:
    judged("sound", tmp_path)
    called = set((tmp_path / "called").read_text().split())
    assert "look" in called
    assert "destroy" not in called


def test_a_tool_that_the_user_allows_is_called(tmp_path: Path) -> None:
    judged("sound", tmp_path, allow_tools=("destroy",))
    assert "destroy" in (tmp_path / "called").read_text().split()


# -- one misdeed, one cause ----------------------------------------------------------------------


def test_the_sound_one_is_sound(tmp_path: Path) -> None:
    assert failed(judged("sound", tmp_path)) == []


def test_the_question_that_ends_the_server_is_found_and_the_others_are_judged(
    tmp_path: Path,
) -> None:
    judgement = judged("dies-on-cursor", tmp_path)
    assert failed(judgement) == ["PAGE-101"]
    assert judgement.count(Outcome.INCONCLUSIVE) == 0
    (cause,) = judgement.causes
    assert cause.id == "exited"
    assert "exited with code 9" in cause.message
    assert "a cursor!" in cause.message
    assert "mcptest-no-such-cursor" in cause.evidence[0].sent
    assert "mcptest-no-such-cursor" in result(judgement, "PAGE-101").evidence[0].sent


def test_a_line_that_ends_the_server_breaks_the_rules_about_that_line(tmp_path: Path) -> None:
    judgement = judged("dies-on-garbage", tmp_path)
    assert "JSONRPC-002" in failed(judgement)
    assert result(judgement, "JSONRPC-003").outcome is Outcome.PASS
    assert result(judgement, "TOOLS-001").outcome is Outcome.PASS


def test_a_server_that_dies_on_the_tour_is_started_again(tmp_path: Path) -> None:
    judgement = judged("dies-on-list", tmp_path)
    assert {"TOOLS-001", "PAGE-101"} >= set(failed(judgement)) >= {"TOOLS-001"}
    assert result(judgement, "TOOLS-011").cause == "exited"
    assert result(judgement, "JSONRPC-001").outcome is Outcome.PASS
    assert [one.id for one in judgement.causes] == ["exited"]


def test_a_banner_is_one_finding(tmp_path: Path) -> None:
    judgement = judged("banner", tmp_path)
    assert failed(judgement) == ["STDIO-001"]
    (cause,) = judgement.causes
    assert cause.id == "banner"
    assert "Welcome!" in cause.message
    assert cause.kept_from_judging == judgement.count(Outcome.INCONCLUSIVE) > 0
    assert result(judgement, "PROTO-008").cause == "banner"


def test_silence_to_one_method_costs_that_rule_only(tmp_path: Path) -> None:
    judgement = judged("ignores-unknown", tmp_path)
    assert failed(judgement) == ["MSG-009"]
    assert result(judgement, "JSONRPC-001").reason == "same fault as MSG-009"
    assert result(judgement, "COMPL-001").outcome is Outcome.NOT_OBSERVED
    assert result(judgement, "TOOLS-005").outcome is Outcome.PASS


def test_ids_that_come_back_changed_are_one_finding(tmp_path: Path) -> None:
    judgement = judged("ids-to-numbers", tmp_path)
    assert failed(judgement) == ["JSONRPC-004"]
    for rule in ("MSG-006", "MSG-009"):
        same = "same fault as JSONRPC-004"
        assert result(judgement, rule).reason == same
    assert judgement.grade is not None
    assert judgement.grade.caps == ("at best B+: 1 MUST rule failed",)


def test_the_question_after_which_nothing_is_answered_is_found(tmp_path: Path) -> None:
    judgement = judged("hangs-on-cursor", tmp_path)
    assert failed(judgement) == ["PAGE-101"]
    assert [one.id for one in judgement.causes] == ["silence"]
    assert judgement.count(Outcome.INCONCLUSIVE) == 0


def test_a_server_that_answers_nothing_is_one_cause(tmp_path: Path) -> None:
    judgement = judged("says-nothing", tmp_path, timeout=1.0)
    (cause,) = judgement.causes
    assert cause.id == "silence"
    assert cause.kept_from_judging > 20
    assert result(judgement, "JSONRPC-001").outcome is Outcome.INCONCLUSIVE


def test_a_missing_token_is_one_cause_and_authorization_is_judged(tmp_path: Path) -> None:
    with demo("http", (*SOUND, "--token", "mcptest-live"), tmp_path) as target:
        judgement = judge_server(Order(target=target, timeout=BOUND), quiet)
    assert [one.id for one in judgement.causes] == ["unauthorized"]
    assert result(judgement, "AUTH-001").outcome is Outcome.PASS
    assert result(judgement, "TOOLS-001").cause == "unauthorized"
    assert failed(judgement) == []


def test_a_token_stays_out_of_everything_that_is_told(tmp_path: Path) -> None:
    words = (*SOUND, "--token", "mcptest-live-secret")
    with demo("http", words, tmp_path, token="mcptest-live-secret") as target:
        order = Order(target=target, timeout=BOUND, captures=tmp_path / "captures")
        judgement = judge_server(order, quiet)
    assert result(judgement, "AUTH-001").outcome is Outcome.PASS
    assert result(judgement, "TOOLS-001").outcome is Outcome.PASS
    assert "mcptest-live-secret" not in repr(judgement)
    written = [Path(one).read_bytes() for one in judgement.captures]
    assert written
    assert not any(b"mcptest-live-secret" in one for one in written)


# -- tests of a suite ----------------------------------------------------------------------------


def test_tests_of_a_suite_run_rules_and_checks_of_their_own() -> None:
    tests = (
        ComplianceTest("TOOLS-005"),
        ComplianceTest(
            "pings are answered",
            check=SentCheck(method="{alive_method}"),
            expect=(Expectation("answer", {"exact": "result"}),),
        ),
        ComplianceTest(
            "there is a tool of this name",
            check=SentCheck(method="tools/list"),
            expect=(Expectation("result.tools[0].name", {"exact": "nothing-like-it"}),),
        ),
    )
    judgement = run_tests(Order(target=DEMO, revision=OLD), tests, quiet)
    assert {one.id: one.outcome for one in judgement.results} == {
        "TOOLS-005": Outcome.PASS,
        "pings are answered": Outcome.PASS,
        "there is a tool of this name": Outcome.FAIL,
    }
    assert not judgement.whole_corpus
    assert judgement.grade is None
    (finding,) = result(judgement, "there is a tool of this name").findings
    assert finding.expected == '"nothing-like-it"'


def test_a_rule_that_the_pinned_corpus_does_not_have_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="no rule PROTO-010"):
        run_tests(Order(target=DEMO, revision=OLD), (ComplianceTest("PROTO-010"),), quiet)
