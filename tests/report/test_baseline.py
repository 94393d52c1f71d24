"""Baselines: what passed before, and does not now."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcptest.core.errors import UsageError
from mcptest.core.results import Regression, RunReport, Status
from mcptest.core.results import TestResult as Result
from mcptest.report.baseline import (
    Baseline,
    Entry,
    baseline_of,
    compare,
    notes_of,
    read_baseline,
    write_baseline,
)
from tests.support.sample_run import HOSTILE, RUN, TRIALS, hostile_run, trial

PASS, FAIL, SKIP = Status


def result(name: str, status: Status = PASS, **more: str) -> Result:
    return trial(name, 1, status, **more)


def run(*results: Result, **more: bool) -> RunReport:
    return RunReport(results=results, **more)


def test_the_file_is_the_one_that_mcp_assert_writes() -> None:
    report = run(result("b", FAIL), result("a"), result("c", SKIP, language="go"))
    assert msgspec.json.decode(write_baseline(baseline_of(report))) == {
        "entries": [
            {"name": "a", "status": "PASS"},
            {"name": "b", "status": "FAIL"},
            {"name": "c", "status": "SKIP", "language": "go"},
        ]
    }


def test_a_file_of_mcp_assert_is_read() -> None:
    data = b'{\n  "entries": [{"name": "a", "status": "PASS", "more": 1}]\n}\n'
    assert read_baseline(data, "b.json") == Baseline((Entry("a", PASS),))
    assert read_baseline(b'\xef\xbb\xbf{"entries": null}', "b.json") == Baseline(None)


@pytest.mark.parametrize(
    ("before", "now", "regressed"),
    [
        (PASS, PASS, False),
        (PASS, FAIL, True),
        (PASS, SKIP, True),
        (FAIL, FAIL, False),
        (FAIL, PASS, False),
        (SKIP, FAIL, False),
    ],
)
def test_only_from_pass_to_something_else_is_a_regression(
    before: Status, now: Status, regressed: bool
) -> None:
    found = compare(run(result("t", now)), Baseline((Entry("t", before),)))
    expected = (Regression("t", before.value, now.value),) if regressed else ()
    assert found.regressions == expected
    assert found.stale == ()


def test_a_test_that_is_gone_is_stale_and_said_and_an_unknown_one_is_no_regression() -> None:
    found = compare(run(result("new", FAIL)), Baseline((Entry("old", PASS, "go"),)))
    assert found.stale == (Entry("old", PASS, "go"),)
    assert found.regressions == ()
    assert notes_of(found) == ("baseline: no test named 'old' in go (save the baseline again)",)


def test_what_was_not_asked_to_run_is_not_stale() -> None:
    old = Baseline((Entry("old", PASS),))
    assert compare(run(result("t")), old, partial=True).stale == ()
    assert compare(run(result("t"), interrupted=True), old).stale == ()
    assert compare(run(result("t")), old).stale == old.entries


def test_a_flaky_test_did_not_pass() -> None:
    saved = baseline_of(TRIALS)
    assert {e.name: e.status for e in saved.entries} == {
        "broken": FAIL,
        "steady": PASS,
        "wobbly": FAIL,
    }
    assert compare(TRIALS, Baseline((Entry("wobbly", PASS),))).regressions == (
        Regression("wobbly", "PASS", "FAIL"),
    )


def test_the_same_test_on_another_server_is_another_test() -> None:
    found = compare(run(result("t", FAIL, language="go")), Baseline((Entry("t", PASS, "rust"),)))
    assert found.regressions == ()
    assert len(found.stale) == 1


def test_tests_of_one_name_are_kept_apart_by_their_files() -> None:
    before = run(result("t", file="a.yaml"), result("t", file="b.yaml"))
    saved = read_baseline(write_baseline(baseline_of(before)), "b.json")
    assert [entry.file for entry in saved.entries] == ["a.yaml", "b.yaml"]
    now = run(result("t", file="a.yaml"), result("t", FAIL, file="b.yaml"))
    assert len(compare(now, saved).regressions) == 1
    swapped = Baseline((Entry("t", FAIL, file="b.yaml"), Entry("t", PASS, file="a.yaml")))
    assert compare(now, swapped).regressions == ()


def test_a_moved_file_does_not_hide_a_regression() -> None:
    saved = Baseline((Entry("t", PASS, file="a.yaml"), Entry("t", PASS, file="b.yaml")))
    moved = run(result("t", file="a.yaml"), result("t", FAIL, file="sub/b.yaml"))
    found = compare(moved, saved)
    assert found.regressions == (Regression("t", "PASS", "FAIL"),)
    assert found.stale == ()


def test_an_entry_without_a_file_stands_for_every_test_of_its_name() -> None:
    now = run(result("t", file="a.yaml"), result("t", FAIL, file="b.yaml"))
    assert len(compare(now, Baseline((Entry("t", PASS),))).regressions) == 1


def test_saving_after_a_part_of_the_suite_keeps_the_rest() -> None:
    previous = Baseline(
        (Entry("a", PASS), Entry("t", PASS, file="a.yaml"), Entry("t", PASS, file="b.yaml"))
    )
    saved = baseline_of(run(result("t", FAIL, file="b.yaml")), previous)
    assert saved.entries == (
        Entry("a", PASS),
        Entry("t", PASS, file="a.yaml"),
        Entry("t", FAIL, file="b.yaml"),
    )


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "b.json: the file is empty"),
        (b'{"entries": [\n  {"name": "a",}\n]}', "b.json:2:16: JSON is malformed"),
        (b"[]", "b.json: Expected `object`, got `array`"),
        (b"{}", "b.json: Object missing required field `entries`"),
        (b'{"entries": [{"name": "a"}]}', "`$.entries[0]`"),
        (b'{"entries": [{"name": "a", "status": "pass"}]}', "`$.entries[0].status`"),
        (b'{"entries": [{"name": 1, "status": "PASS"}]}', "`$.entries[0].name`"),
        (b'{"x": ' + b"[" * 100_000, "nested too deep"),
        (b'{"entries": "\xff"}', "b.json"),
        (b"\x00\x1b[2J", "b.json"),
    ],
)
def test_what_is_no_baseline_is_refused_with_the_place(data: bytes, said: str) -> None:
    with pytest.raises(UsageError) as error:
        read_baseline(data, "b.json")
    assert error.value.message.startswith("b.json")
    assert said in error.value.message


@given(st.binary(max_size=60))
def test_reading_anything_gives_a_baseline_or_a_usage_error(data: bytes) -> None:
    said = ""
    try:
        read_baseline(data, "b.json")
    except UsageError as error:
        said = error.message
    assert said.isprintable()


@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_any_name_survives_the_file_or_is_made_visible(number: int) -> None:
    report = hostile_run(HOSTILE[number])
    data = write_baseline(baseline_of(report))
    (entry,) = read_baseline(data, "b.json").entries
    assert entry.name == HOSTILE[number].encode("utf-8", "backslashreplace").decode()
    assert entry.status is FAIL


def test_a_run_compared_with_its_own_baseline_has_nothing_to_say() -> None:
    for report in (RUN, TRIALS, hostile_run("x")):
        assert compare(report, baseline_of(report)) == ((), ())
