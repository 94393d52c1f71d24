"""The badge, and the annotations of GitHub Actions."""

from __future__ import annotations

import json
import re

import msgspec
import pytest

from mcptest.core.results import Regression, RunReport
from mcptest.report.annotations import ERRORS_SHOWN, github
from mcptest.report.write import badge
from tests.support.sample_run import CRASH, HOSTILE, READ, RUN, SKIPPED, SUM, TRIALS, hostile_run

COMMAND = re.compile(r"::(error|notice|warning) ((?:\w+=[^,:]*)(?:,\w+=[^,:]*)*)::(.*)")


def decoded(line: str) -> tuple[str, dict[str, str], str]:
    """As the runner of GitHub reads a line."""
    match = COMMAND.fullmatch(line)
    assert match is not None, line[:300]
    pairs = (pair.partition("=") for pair in match[2].split(","))
    properties = {
        key: unescaped(value.replace("%3A", ":").replace("%2C", ",")) for key, _, value in pairs
    }
    return match[1], properties, unescaped(match[3])


def unescaped(text: str) -> str:
    return text.replace("%0D", "\r").replace("%0A", "\n").replace("%25", "%")


@pytest.mark.parametrize(
    ("run", "message", "colour"),
    [
        (RUN, "1/4", "red"),
        (RunReport(results=(READ,)), "1/1", "brightgreen"),
        (RunReport(results=(READ, SKIPPED)), "1/2", "yellow"),
        (RunReport(), "0/0", "yellow"),
        (RunReport(results=(READ,), interrupted=True), "1/1", "yellow"),
    ],
)
def test_a_badge_is_green_only_if_everything_ran_and_passed(
    run: RunReport, message: str, colour: str
) -> None:
    assert json.loads(badge(run)) == {
        "schemaVersion": 1,
        "label": "mcptest",
        "message": message,
        "color": colour,
    }


def test_a_failure_is_annotated_at_its_line() -> None:
    first, second, last = map(decoded, github(RUN))
    assert first[:2] == ("error", {"file": "evals/math.yaml", "line": "14", "title": SUM.name})
    assert first[2].startswith("expected exact match:\n  want: The sum of 2 and 3 is 5.\n")
    assert first[2].endswith("\nrepeat: mcptest run evals/math.yaml -k 'get-sum adds two numbers'")
    assert second[1]["title"] == CRASH.name
    assert last == (
        "notice",
        {"title": "mcptest"},
        "4 tests, 1 passed, 2 failed, 1 skipped in 1.5s",
    )


def test_a_test_is_annotated_once_whatever_the_number_of_its_trials() -> None:
    titles = [decoded(line)[1]["title"] for line in github(TRIALS)]
    assert titles == ["wobbly", "broken", "mcptest"]


def test_a_regression_without_a_failure_is_annotated_too() -> None:
    run = RunReport(results=(SKIPPED,), regressions=(Regression("a", "PASS", "SKIP", "go"),))
    assert decoded(github(run)[0]) == (
        "error",
        {"title": "a [go]"},
        "regression: was PASS, now SKIP",
    )


def test_there_are_never_more_errors_than_github_keeps() -> None:
    many = tuple(msgspec.structs.replace(SUM, name=f"t{n}") for n in range(25))
    lines = github(RunReport(results=many))
    assert len(lines) == ERRORS_SHOWN + 1
    assert decoded(lines[-1])[2].endswith("; 15 more in the log")


def test_an_interrupted_run_is_a_warning() -> None:
    kind, _, message = decoded(github(msgspec.structs.replace(RUN, interrupted=True))[-1])
    assert (kind, message[:12]) == ("warning", "interrupted:")


@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_no_text_of_a_peer_is_a_command_or_a_property(number: int) -> None:
    for line in github(hostile_run(HOSTILE[number])):
        assert "\n" not in line
        assert not re.search("[\x00-\x1f\x7f-\x9f\u2028\u202e\ud800-\udfff]", line)
        _, properties, message = decoded(line)
        assert set(properties) <= {"file", "line", "title"}
        assert not re.search(r"^\s*(::|##)", message, re.MULTILINE)
        assert len(line) < 40_000
