"""A run for a person, on a terminal and in a pipe."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcptest.core.results import FailedCheck, Proof, RunReport, Status
from mcptest.report import run_results, terminal
from mcptest.report.evidence import BRIEF, FULL
from mcptest.report.run_results import PROOFS_SHOWN
from mcptest.report.terminal import Style
from tests.support.sample_run import CRASH, HOSTILE, READ, RUN, SKIPPED, SUM, TRIALS, hostile_run

PLAIN = Style()
TERMINAL = Style(colour=True)
PAINT = re.compile(r"\x1b\[[0-9;]*m")
UNSAFE = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
COMMAND = re.compile(r"^\s*(::|##)|##\[|##vso\[|##teamcity\[", re.MULTILINE | re.IGNORECASE)


def render(report: RunReport, style: Style, *, all_failures: bool = False, **more: Any) -> str:
    shown = msgspec.structs.replace(style, **{"width": 80, **more})
    return run_results.render(report, shown, all_failures=all_failures)


def is_harmless(text: str) -> bool:
    bare = PAINT.sub("", text)
    return UNSAFE.search(bare) is None and COMMAND.search(bare) is None


def painted_by_us(text: str) -> bool:
    """Every escape sequence is one of our own colours."""
    return "\x1b" not in PAINT.sub("", text)


def test_a_pipe_sees_words_names_and_durations_in_the_columns_of_mcp_assert() -> None:
    lines = render(RUN, PLAIN).splitlines()
    assert lines[0] == f"PASS  {READ.name:<60} {'39ms':>6}"
    assert lines[1] == f"FAIL  {SUM.name:<60} {'1.2s':>6}"
    assert "\x1b" not in "".join(lines)


def test_a_failure_shows_its_detail_and_its_proof() -> None:
    text = render(RUN, PLAIN)
    assert "      expected exact match:\n        want: The sum of 2 and 3 is 5.\n" in text
    for label, value in (
        ("where", "evals/math.yaml:14"),
        ("request", SUM.proof.request if SUM.proof else ""),
        ("response", SUM.proof.response if SUM.proof else ""),
        ("stderr", "Starting default (STDIO) server..."),
        ("repeat", "mcptest run evals/math.yaml -k 'get-sum adds two numbers'"),
        ("exit", "code 1"),
        ("response", "(no response)"),
    ):
        assert f"      {label + ':':<10}{value}\n" in text


def test_stderr_that_the_detail_has_already_is_not_shown_twice() -> None:
    told = "the server exited with code 1\n  stderr: Traceback:\n  stderr: ValueError: no"
    proof = Proof(stderr=("Traceback:", "ValueError: no"))
    crashed = msgspec.structs.replace(CRASH, detail=told, failures=(), proof=proof)
    assert (
        render(msgspec.structs.replace(RUN, results=(crashed,)), PLAIN).count("ValueError: no") == 1
    )
    more = msgspec.structs.replace(crashed, proof=Proof(stderr=(*proof.stderr, "and more")))
    assert "stderr:   Traceback:" in render(msgspec.structs.replace(RUN, results=(more,)), PLAIN)


def test_a_skipped_test_says_why() -> None:
    assert "      GITHUB_TOKEN is not set\n" in render(RUN, PLAIN)


def test_the_summary_counts_only_what_there_is() -> None:
    assert render(RUN, PLAIN).endswith("\n\n4 tests, 1 passed, 2 failed, 1 skipped in 1.5s\n")
    one = RunReport(results=(READ,), duration_ms=39)
    assert render(one, PLAIN).endswith("\n\n1 test, 1 passed in 39ms\n")
    assert render(RunReport(), PLAIN) == "no tests ran in 0ms\n"


def test_a_terminal_sees_symbols_in_colour() -> None:
    text = render(RUN, TERMINAL)
    for symbol in ("\x1b[32m✓\x1b[0m", "\x1b[31m✗\x1b[0m", "\x1b[33m○\x1b[0m"):
        assert symbol in text
    assert "PASS" not in text
    ascii_only = render(RUN, Style(colour=True, unicode=False))
    assert ascii_only.isascii()


def test_nothing_but_the_command_is_wider_than_the_terminal() -> None:
    for width in (57, 80, 200):
        for line in PAINT.sub("", render(RUN, TERMINAL, width=width)).splitlines():
            is_command = "repeat:" in line or line.startswith("    mcptest run ")
            assert terminal.cells(line) <= width or is_command


def test_a_long_name_is_cut_by_its_width_unless_it_failed() -> None:
    long = "漢" * 100
    run = RunReport(
        results=(
            msgspec.structs.replace(READ, name=long),
            msgspec.structs.replace(CRASH, name=long + "!"),
        )
    )
    lines = PAINT.sub("", render(run, TERMINAL, width=60)).splitlines()
    assert terminal.cells(lines[0]) <= 60
    assert "…" in lines[0]
    assert long + "!" in lines[1]


def test_durations_stand_in_one_column_whatever_the_script_of_the_names() -> None:
    names = ("short", "漢字漢字", "e\u0301le\u0300ve", "\U0001f600 smile")
    run = RunReport(results=tuple(msgspec.structs.replace(READ, name=name) for name in names))
    lines = PAINT.sub("", render(run, TERMINAL)).splitlines()[:4]
    assert len({terminal.cells(line) for line in lines}) == 1


def test_only_the_first_failed_check_is_told_unless_all_are_asked_for() -> None:
    first = render(RUN, PLAIN)
    assert "took 1.24s" not in first
    assert "(1 more check failed: --all-failures shows all)" in first
    assert "expected: " not in first  # the message has said it
    everything = render(RUN, PLAIN, all_failures=True)
    assert "      1. expected exact match:\n" in everything
    assert "      2. took 1.24s\n           expected: at most 1s\n" in everything
    assert "more check" not in everything


def test_what_was_expected_is_told_when_the_message_does_not() -> None:
    failure = FailedCheck("equals", "not valid", expected="string", actual="7", pointer="$.a")
    result = msgspec.structs.replace(SUM, detail="not valid", failures=(failure,))
    text = render(RunReport(results=(result,)), PLAIN)
    assert "        at:       $.a\n        expected: string\n        actual:   7\n" in text


def test_verbose_names_the_server_and_the_slowest_tests() -> None:
    text = render(RUN, PLAIN, verbose=True)
    assert "      server:   everything 2.0.0 (2025-11-25)\n" in text
    assert f"slowest:\n      1.2s  {SUM.name}\n     212ms  {CRASH.name}\n" in text
    assert "slowest" not in render(RUN, PLAIN)


def test_an_interrupted_run_says_so() -> None:
    run = msgspec.structs.replace(RUN, interrupted=True)
    assert "interrupted: only finished tests are shown" in render(run, PLAIN)
    assert "interrupted" not in render(RUN, PLAIN)


def test_trials_stand_together_and_a_flaky_test_is_called_flaky() -> None:
    text = render(TRIALS, PLAIN)
    assert len(re.findall(r"^(PASS|FAIL)", text, re.MULTILINE)) == 3
    assert re.search(r"^FAIL  wobbly \(2/4\) flaky +20ms$", text, re.MULTILINE)
    assert re.search(r"^wobbly +4 +2 +YES +NO  flaky$", text, re.MULTILINE)
    assert re.search(r"^broken +4 +0 +NO +NO$", text, re.MULTILINE)
    assert "  pass@k: 2/3 capable, pass^k: 1/3 reliable\n" in text
    assert "      trial 2, and 1 more:\n" in text
    assert text.endswith("12 trials of 3 tests, 6 passed, 6 failed, 1 regression in 240ms\n")


def test_regressions_and_notes_are_told() -> None:
    text = render(TRIALS, PLAIN)
    assert "Regressions detected (1):\n  wobbly: was PASS, now FAIL\n" in text
    assert "note: baseline: no test named 'gone'" in text
    noted = RunReport(results=(msgspec.structs.replace(READ, note="a symlink was left out"),))
    assert "      note: a symlink was left out\n" in render(noted, PLAIN)


def test_tests_of_one_name_are_told_apart() -> None:
    twin = msgspec.structs.replace(READ, file="evals/other.yaml", line=7)
    go = msgspec.structs.replace(READ, language="go")
    text = render(RunReport(results=(READ, twin, go)), PLAIN)
    assert f"{READ.name} (evals/other.yaml:7) " in text
    assert f"{READ.name} [go] " in text


def test_proof_is_bounded_in_number_and_length() -> None:
    proof = Proof(request="q" * 10**6, response="r" * 10**6, stderr=("line",) * 10_000)
    loud = msgspec.structs.replace(SUM, proof=proof, failures=(), detail="d\n" * 10**5)
    run = RunReport(results=(loud,) * (PROOFS_SHOWN + 2))
    text = render(run, PLAIN)
    assert text.count("request:") == PROOFS_SHOWN
    assert f"evidence is shown for the first {PROOFS_SHOWN} failures" in text
    assert f"(and {10**5 - BRIEF.lines} more lines)" in text
    assert f"({10_000 - BRIEF.stderr} earlier lines)" in text
    assert len(text) < 200_000
    assert render(run, PLAIN, verbose=True).count("request:") == PROOFS_SHOWN + 2
    assert f"({10_000 - FULL.stderr} earlier lines)" in render(run, PLAIN, verbose=True)


@pytest.mark.parametrize("number", range(len(HOSTILE)))
@pytest.mark.parametrize("trials", [1, 3])
def test_no_text_of_a_peer_steers_a_terminal_or_a_ci_system(number: int, trials: int) -> None:
    run = hostile_run(HOSTILE[number], trials=trials, interrupted=True)
    for style in (PLAIN, TERMINAL):
        for verbose in (False, True):
            text = render(run, style, verbose=verbose, all_failures=verbose, width=50)
            assert is_harmless(text)
            assert painted_by_us(text)
            assert len(text) < (600_000 if verbose else 150_000)
    assert "\x1b" not in render(run, PLAIN)


TRICKY = st.text(st.sampled_from("::##[]vso err\x1b\n\r\t\u202e\ud800漢 a"), max_size=200)


@given(TRICKY, st.integers(40, 60))
def test_wrapping_never_brings_a_command_to_the_start_of_a_line(text: str, width: int) -> None:
    assert is_harmless(render(hostile_run(text), TERMINAL, width=width))


@given(st.text(), st.integers(1, 30))
def test_wrapped_lines_fit(text: str, room: int) -> None:
    shown = "".join(c for c in text if c.isprintable() and c not in ":#")
    for line in terminal.wrap(shown, max(room, 2)):
        assert terminal.cells(line) <= max(room, 2)


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (-5, "0ms"),
        (999, "999ms"),
        (1000, "1.0s"),
        (59_949, "59.9s"),
        (59_951, "1m00s"),
        (3_723_000, "62m03s"),
    ],
)
def test_durations_read_easily(milliseconds: int, text: str) -> None:
    assert terminal.duration(milliseconds) == text


def test_a_test_that_was_skipped_in_every_trial_has_no_score() -> None:
    run = RunReport(results=(SKIPPED, msgspec.structs.replace(SKIPPED, trial=2)), trials=2)
    text = render(run, PLAIN)
    assert re.search(rf"^SKIP  {SKIPPED.name} +0ms$", text, re.MULTILINE)
    assert all(result.status is Status.SKIP for result in run.results)
    assert "pass@k: 0/0 capable" in text


def test_a_schema_is_not_shown_beside_the_value_that_does_not_match_it() -> None:
    why = '/words: expected integer, got "1"'
    failure = FailedCheck("schema", why, expected='{"type": "object"}', actual='{"words": "1"}')
    result = msgspec.structs.replace(SUM, detail=why, failures=(failure,))
    text = render(RunReport(results=(result,)), PLAIN)
    assert f'      {why}\n        actual:   {{"words": "1"}}\n' in text
    assert '{"type": "object"}' not in text
