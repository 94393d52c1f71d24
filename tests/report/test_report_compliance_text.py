"""A judged server for a person: the grade first, each failure with its proof, what was not seen."""

from __future__ import annotations

import re

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mcptest.core.judgement import CUT_SHORT, Evidence, Grade, RootCause
from mcptest.core.verdict import Finding, Outcome, Severity
from mcptest.report import terminal
from mcptest.report.compliance.compliance_report import ComplianceReport
from mcptest.report.compliance.text import (
    GROUPS_SHOWN,
    IDS_SHOWN,
    ROWS_SHOWN,
    compliance_lines,
    matrix_rows,
)
from mcptest.report.terminal import Style
from tests.report.test_run_results import PAINT, is_harmless, painted_by_us
from tests.support.sample_compliance import (
    COMMAND,
    GATES,
    HEALTHY,
    ONE_RULE,
    SAMPLE,
    STRUCTURED,
    URL,
    hostile_report,
    judgement,
    report_of,
    rule_result,
    several_revisions,
)
from tests.support.sample_run import HOSTILE

PLAIN = Style()
TERMINAL = Style(colour=True)
ASCII = Style(colour=True, unicode=False)


def text_of(report: ComplianceReport, style: Style = PLAIN, **more: object) -> str:
    return "\n".join(compliance_lines(report, msgspec.structs.replace(style, **more)))


def places(text: str, *words: str) -> list[int]:
    return [text.index(word) for word in words]


def test_the_first_lines_are_the_server_the_revision_the_transport_and_the_grade() -> None:
    lines = text_of(SAMPLE).splitlines()
    assert lines[:4] == [
        "npx my-server /data · weather 2.1.0",
        "2025-11-25 over stdio · 8 rules · 311 requests · 1.4s",
        "grade B+ · 87.3 of 100 · profile 0.1.0/v2025-11-25/3f9ab2c1",
        "capped: a broken MUST keeps it below A",
    ]


def test_on_a_terminal_the_grade_stands_in_a_box_of_its_colour() -> None:
    lines = text_of(SAMPLE, TERMINAL).splitlines()
    assert lines[1].startswith("\x1b[32;1m│  B+  │\x1b[0m  ")
    failing = report_of(judgement(grade=Grade("F", 12.0)))
    assert "\x1b[31;1m│  F   │\x1b[0m" in text_of(failing, TERMINAL)
    assert "│" not in text_of(SAMPLE, TERMINAL, width=50)


def test_what_a_dying_server_said_stands_in_lines_of_its_own() -> None:
    said = "exited with code 3\n  stderr: Traceback:\n  stderr:     import nothing"
    report = report_of(judgement(causes=(RootCause("exited", said, "fix it", (), 1),)))
    text = text_of(report)
    assert "exited: exited with code 3\n" in text
    assert "\n      stderr: Traceback:\n      stderr:     import nothing\n" in text
    assert "exited with code 3; stderr: Traceback:" in text  # below, where rules are grouped by it
    assert "\\n" not in text + report.as_markdown()
    assert "\n  stderr: Traceback:\n" in report.as_markdown()


def test_causes_come_before_failures_before_gates_before_sections_before_coverage() -> None:
    text = text_of(SAMPLE)
    found = places(
        text,
        "Root cause",
        "Failing",
        "spec_version_check: PASS",
        "Sections",
        "Coverage",
        "8 rules:",
    )
    found[-1] = text.rindex("8 rules:")
    assert found == sorted(found)


def test_a_root_cause_says_how_many_rules_it_kept_from_being_judged() -> None:
    text = text_of(SAMPLE)
    assert "  ✗ exited: the server exited with code 1 after resources/read\n" in text
    assert "    1 rule could not be judged\n" in text
    assert "    fix:      Run it by hand and read its stderr.\n" in text


def test_a_failing_rule_shows_everything_that_one_needs_to_act() -> None:
    text = text_of(SAMPLE)
    wanted = [
        "  ✗ TOOLS-004  MUST  structuredContent is an object",
        "    requires: In these revisions structuredContent is a JSON object",
        f"    spec:     {URL}",
        f"    sent:     {STRUCTURED.evidence[0].sent}",
        f"    received: {STRUCTURED.evidence[0].received}",
        "    why:      result.structuredContent: it is an array",
        "    expected: of type object",
        "    actual:   [21]",
        "    at:       /result/structuredContent",
        "    fix:      Wrap a list or a number in an object.",
        f"    repeat:   {COMMAND} --rule TOOLS-004",
    ]
    found = places(text, *wanted)
    assert found == sorted(found)


def test_a_broken_must_comes_before_a_broken_should() -> None:
    text = text_of(SAMPLE)
    assert "Failing  1 MUST, 1 SHOULD\n" in text
    assert text.index("✗ TOOLS-004") < text.index("! PROTO-005  SHOULD")
    silent = msgspec.structs.replace(STRUCTURED, evidence=(Evidence("{}", ""),))
    silence = text_of(report_of(judgement(results=(silent,), causes=())))
    assert "    sent:     {}\n    received: (no response)\n" in silence


def test_each_gate_is_one_line_with_its_facts_below() -> None:
    lines = text_of(SAMPLE).splitlines()
    at = lines.index("grade_delta: FAIL (the grade fell from A- to B+)")
    assert lines[at - 1].startswith("spec_version_check: PASS (v2025-11-25 -> v2026-07-28: ")
    assert lines[at + 1 : at + 3] == ["  tools: A -> D", "  RES-105 is new"]
    only_gates = text_of(ComplianceReport(server="demo", gates=GATES))
    assert only_gates.splitlines()[0] == "demo"
    assert "grade_delta: FAIL" in only_gates


def test_sections_have_bars_that_only_a_full_mark_fills() -> None:
    text = text_of(SAMPLE)
    assert f"  lifecycle  {'█' * 18}░░  92.0  A   1 passed, 1 failed\n" in text
    assert f"  resources  {'░' * 20}     -\n" in text
    assert f"  tools      {'█' * 12}{'░' * 8}  61.2  D   1 passed, 1 failed, 2 not observed" in text
    assert f"  tools  {'█' * 20}   100  A+  5 passed" in text_of(HEALTHY)
    nearly = report_of(judgement(grade=Grade("A", 99.99)))
    assert "99.9 of 100" in text_of(nearly)


def test_coverage_is_a_number_and_a_list_by_what_would_unlock_it() -> None:
    text = text_of(SAMPLE)
    assert "Coverage  57.1%: 4 of 7 applicable rules judged\n" in text
    assert (
        "  2 not observed, by what is needed to observe them\n"
        "    a tool that says it is read-only, or one named with --allow-tool (1)\n"
        "      TOOLS-009\n"
        "    the fixture embedding_tool (1)\n"
        "      TOOLS-012\n"
    ) in text
    assert (
        "  1 inconclusive, by cause\n"
        "    exited: the server exited with code 1 after resources/read (1)\n"
        "      RES-105\n"
    ) in text


def test_only_the_head_of_a_long_list_is_shown_unless_all_is_asked_for() -> None:
    unseen = [
        rule_result(f"TOOLS-{group}{number:02}", Outcome.NOT_OBSERVED, unlocked_by=f"thing {group}")
        for group in range(GROUPS_SHOWN + 2)
        for number in range(IDS_SHOWN + 3)
    ]
    report = report_of(judgement(results=tuple(unseen), causes=()))
    text = text_of(report)
    assert text.count("    thing ") == GROUPS_SHOWN
    assert " ".join(text.split()).count(" and 3 more ") == GROUPS_SHOWN
    assert f"… and {2 * (IDS_SHOWN + 3)} more rules (--verbose shows all)" in text
    everything = text_of(report, verbose=True)
    assert "--verbose" not in everything
    assert all(one.id in everything for one in unseen)


def test_verbose_lists_what_passed_and_what_does_not_apply() -> None:
    text = text_of(SAMPLE, verbose=True)
    assert "    ✓ PROTO-002    what PROTO-002 asks for holds\n" in text
    assert "    the server does not declare prompts (1)\n      PROMPT-103\n" in text
    assert "PROMPT-103" not in text_of(SAMPLE)


def test_a_run_that_was_stopped_is_not_called_one_of_some_rules() -> None:
    left = rule_result("TOOLS-001", Outcome.INCONCLUSIVE, reason="interrupted")
    stopped = judgement(
        results=(left,), causes=(), grade=None, whole_corpus=False, notes=(CUT_SHORT,)
    )
    text = text_of(report_of(stopped))
    assert "not graded: stopped before every rule was judged" in text
    assert "only some of the rules" not in text


def test_who_asked_for_some_rules_hears_about_each_of_them() -> None:
    assert "not graded: only some rules were selected" in text_of(ONE_RULE)
    passed = rule_result("TOOLS-001")
    unseen = rule_result("TOOLS-009", Outcome.NOT_OBSERVED, reason="no tool", unlocked_by="a tool")
    results = (passed, unseen)
    asked = report_of(judgement(results=results, causes=(), grade=None, whole_corpus=False))
    text = text_of(asked)
    assert "  ✓ TOOLS-001    what TOOLS-001 asks for holds\n" in text
    assert "  – TOOLS-009  " in text  # noqa: RUF001 - the dash that is printed
    assert "    why:      no tool\n    needs:    a tool\n" in text


def test_too_little_for_a_letter_is_said() -> None:
    text = text_of(report_of(judgement(grade=Grade("", 0.0, caps=("3 of 40 rules were seen",)))))
    assert "not graded: too few rules were observed" in text
    assert "capped: 3 of 40 rules were seen" in text
    assert "of 100" not in text


def test_the_last_lines_count_every_outcome_and_say_what_the_exit_code_says() -> None:
    assert text_of(SAMPLE).splitlines()[-2:] == [
        "8 rules: 1 failed, 1 warning, 2 passed, 1 inconclusive, 2 not observed, 1 not applicable",
        "failed: 1 MUST rule failed, 1 rule could not be judged, 1 gate failed",
    ]
    assert text_of(HEALTHY).splitlines()[-2:] == ["5 rules: 0 failed, 5 passed", "passed"]


def test_notes_and_captures_are_told() -> None:
    noted = report_of(judgement(notes=("a note",), captures=("captures/1.jsonl",)), notes=("b",))
    text = text_of(noted)
    assert "note: b\nnote: a note\ncapture: captures/1.jsonl\n" in text


# -- several revisions ---------------------------------------------------------------------


def test_the_matrix_has_only_rows_that_fail_or_differ() -> None:
    rows = matrix_rows(several_revisions())
    assert [row.id for row in rows] == ["PROTO-005", "TOOLS-004", "TOOLS-001"]
    assert [row.fails for row in rows] == [True, True, False]
    assert rows[1].cells[0] is None  # 2024-11-05 has no such rule


def test_the_matrix_shows_grades_above_and_a_sign_for_each_revision() -> None:
    lines = text_of(several_revisions()).splitlines()
    assert lines[:2] == ["npx my-server /data · weather 2.1.0", "3 revisions over stdio"]
    assert lines[3].split() == ["2024", "2025", "2025"]
    assert lines[4].split() == ["11-05", "06-18", "11-25"]
    assert lines[5].split() == ["grade", "A+", "B+", "B+"]
    assert lines[7].split() == ["coverage", "50.0%", "100%", "57.1%"]
    row = next(line for line in lines if line.startswith("TOOLS-004"))
    assert [row[17], row[24], row[31]] == [" ", "✗", "✗"]


def test_a_rule_that_fails_in_several_revisions_is_told_once_with_all_of_them() -> None:
    text = text_of(several_revisions())
    assert text.count("TOOLS-004  MUST") == 1
    assert "    in:       2025-06-18, 2025-11-25\n" in text
    for line in ("Root cause  2025-11-25", "Coverage in 2025-11-25", "grade_delta: FAIL"):
        assert line in text
    assert "Coverage in 2024-11-05" not in text
    assert "Coverage in 2024-11-05" in text_of(several_revisions(), verbose=True)


def test_a_matrix_without_a_difference_says_so() -> None:
    same = judgement(results=(rule_result("TOOLS-001"),), causes=())
    text = text_of(report_of(same, same))
    assert "every rule has the same result in each revision" in text


def test_a_long_matrix_is_cut_unless_all_is_asked_for() -> None:
    count = ROWS_SHOWN + 3
    failing = tuple(rule_result(f"TOOLS-{n:03}", Outcome.FAIL) for n in range(count))
    report = report_of(judgement(results=failing), judgement(results=failing))
    assert "… and 3 more (--verbose shows all)" in text_of(report)
    assert "more (--verbose" not in text_of(report, verbose=True)


# -- any terminal, any text ----------------------------------------------------------------


@pytest.mark.parametrize("width", [40, 57, 80, 200])
@pytest.mark.parametrize("report", [SAMPLE, HEALTHY, ONE_RULE, several_revisions()])
def test_nothing_but_what_is_for_copying_is_wider_than_the_terminal(
    width: int, report: ComplianceReport
) -> None:
    for line in PAINT.sub("", text_of(report, TERMINAL, width=width)).splitlines():
        copied = re.match(r" +(spec|repeat): ", line) or ": PASS" in line or ": FAIL" in line
        assert terminal.cells(line) <= width or copied, line


@pytest.mark.parametrize("report", [SAMPLE, HEALTHY, ONE_RULE, several_revisions()])
def test_everything_degrades_to_ascii(report: ComplianceReport) -> None:
    assert text_of(report, ASCII).isascii()
    assert text_of(report, ASCII, width=45, verbose=True).isascii()


def test_without_colour_there_is_no_escape_sequence() -> None:
    for report in (SAMPLE, HEALTHY, ONE_RULE, several_revisions()):
        assert "\x1b" not in text_of(report)


def test_proof_is_bounded() -> None:
    finding = Finding("x" * 10**6, expected="y" * 10**6)
    loud = msgspec.structs.replace(
        STRUCTURED,
        findings=(finding,) * 1_000,
        evidence=STRUCTURED.evidence * 1_000,
        title="t" * 10**6,
    )
    causes = (RootCause("c", "m" * 10**6),) * 1_000
    text = text_of(report_of(judgement(results=(loud,), causes=causes)))
    assert len(text) < 60_000
    assert "and 997 more like this" in text
    assert "and 998 more exchanges" in text


@pytest.mark.parametrize("number", range(len(HOSTILE)))
@pytest.mark.parametrize("revisions", [1, 3])
def test_no_text_of_a_peer_steers_a_terminal_or_a_ci_system(number: int, revisions: int) -> None:
    report = hostile_report(HOSTILE[number], revisions=revisions)
    for style in (PLAIN, TERMINAL):
        for verbose in (False, True):
            text = text_of(report, style, verbose=verbose, width=50)
            assert is_harmless(text)
            assert painted_by_us(text)
            assert len(text) < 3_000_000
    assert "\x1b" not in text_of(report, PLAIN)


TRICKY = st.text(st.sampled_from("::##[]vso err\x1b\n\r\t\u202e\ud800漢 a"), max_size=120)


@example(":", 40)  # the name of a gate, before the colon that we write
@given(TRICKY, st.integers(40, 60))
def test_wrapping_never_brings_a_command_to_the_start_of_a_line(text: str, width: int) -> None:
    assert is_harmless(text_of(hostile_report(text), TERMINAL, width=width))


def test_the_keyword_decides_between_failed_and_warning() -> None:
    may = rule_result("TOOLS-001", Outcome.FAIL, severity=Severity.MAY)
    text = text_of(report_of(judgement(results=(may,), causes=())))
    assert "  ! TOOLS-001  MAY" in text
    assert "\n1 rule: 0 failed, 1 warning, 0 passed\n" in text


def test_a_long_requirement_is_told_by_its_first_paragraph_unless_all_is_asked_for() -> None:
    long = msgspec.structs.replace(STRUCTURED, requirement="It holds,\nalways.\n\nBecause of that.")
    report = report_of(judgement(results=(long,), causes=()))
    assert "    requires: It holds, always.\n" in text_of(report)
    assert "    requires: It holds, always. Because of that.\n" in text_of(report, verbose=True)


def test_a_message_that_was_shown_as_received_is_not_shown_again() -> None:
    received = STRUCTURED.evidence[0].received
    found = Finding("it is wrong", excerpt=received)
    same = msgspec.structs.replace(STRUCTURED, findings=(found,))
    assert text_of(report_of(judgement(results=(same,)))).count(received) == 1
    other = msgspec.structs.replace(found, excerpt="another")
    different = msgspec.structs.replace(STRUCTURED, findings=(other,))
    assert "    message:  another\n" in text_of(report_of(judgement(results=(different,))))
