"""A run as JSON: mcp-assert's array, and the whole run, written and read back."""

from __future__ import annotations

import json
import re
from typing import Any

import jsonschema_rs
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcptest.core.errors import UsageError
from mcptest.core.results import RunReport
from mcptest.report.codec import as_json, decode, json_schema
from mcptest.report.run_results import mcp_assert_json
from mcptest.report.stored import read_stored
from tests.support.sample_run import HOSTILE, RUN, SUM, TRIALS, hostile_run

RAW_CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069]")
RUNS = [RUN, TRIALS, RunReport(), msgspec.structs.replace(RUN, interrupted=True)]


def visible(text: str) -> str:
    """Half a surrogate pair is the one thing that JSON in UTF-8 can't hold."""
    return text.encode("utf-8", "backslashreplace").decode()


def test_the_short_form_has_the_members_of_mcp_assert_and_no_others() -> None:
    results = json.loads(mcp_assert_json(RUN))
    assert [list(result) for result in results] == [
        ["name", "status", "duration_ms", "trial"],
        ["name", "status", "detail", "duration_ms", "trial"],
        ["name", "status", "detail", "duration_ms", "trial"],
        ["name", "status", "detail", "duration_ms", "trial"],
    ]
    assert results[1] == {
        "name": SUM.name,
        "status": "FAIL",
        "detail": SUM.detail,
        "duration_ms": 1240,
        "trial": 1,
    }
    go = RunReport(results=(msgspec.structs.replace(SUM, language="go", detail="", trial=3),))
    (entry,) = json.loads(mcp_assert_json(go))
    assert list(entry) == ["name", "status", "duration_ms", "language", "trial"]


def test_a_run_of_nothing_is_an_empty_array() -> None:
    assert mcp_assert_json(RunReport()) == b"[]\n"


def test_markup_is_escaped_as_go_does() -> None:
    run = RunReport(results=(msgspec.structs.replace(SUM, name="<a> & b"),))
    assert b'"name": "\\u003ca\\u003e \\u0026 b"' in mcp_assert_json(run)


@pytest.mark.parametrize("run", RUNS)
def test_a_saved_run_is_read_back_whole(run: RunReport) -> None:
    assert read_stored(as_json(run), "run.json").report == run


@pytest.mark.parametrize("run", RUNS)
def test_a_saved_run_follows_its_schema(run: RunReport) -> None:
    saved = json.loads(as_json(run))
    jsonschema_rs.validator_for(json_schema(RunReport)).validate(saved)
    assert saved["format"] == "mcptest.run/1"
    assert saved["summary"]["total"] == len(run.results)


@pytest.mark.parametrize(
    "change",
    [
        {"format": "mcptest.run/2"},
        {"results": [{"name": "a", "status": "OK", "duration_ms": 1, "trial": 1}]},
        {"results": [{"name": "a", "status": "PASS"}]},
        {"summary": {}},
        {"trials": "1"},
    ],
)
def test_the_schema_refuses_what_is_no_run(change: dict[str, Any]) -> None:
    saved = json.loads(as_json(RUN)) | change
    assert not jsonschema_rs.validator_for(json_schema(RunReport)).is_valid(saved)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "run.json: the file is empty"),
        (b"{\n  nope\n}", "run.json:2:3: JSON is malformed"),
        (mcp_assert_json(RUN), "run.json is a list of results, not a whole run"),
        (b'{"results": []}', "run.json names no format"),
        (b'{"format": "mcptest.run/9\\u001b"}', "its format is mcptest.run/9\\x1b"),
        (b'{"format": 7}', "`$.format`"),
        (b'{"format": "mcptest.run/1", "results": [{"name": "a"}]}', "`$.results[0]`"),
        (b'{"format": "mcptest.run/1", "results": {}}', "`$.results`"),
        (b'{"format": "mcptest.run/1", "x": ' + b"[" * 100_000, "nested too deep"),
        (b'"text"', "Expected `object`, got `str`"),
    ],
)
def test_what_is_no_saved_run_is_refused_with_the_place(data: bytes, said: str) -> None:
    with pytest.raises(UsageError) as error:
        read_stored(data, "run.json")
    assert said in error.value.message
    assert error.value.message.isprintable()


@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_text_of_a_peer_is_kept_and_prints_harmlessly(number: int) -> None:
    text = HOSTILE[number][:3_000]  # JSON leaves nothing out, so it grows with what it holds
    run = hostile_run(text, trials=2)
    for data in (mcp_assert_json(run), as_json(run)):
        written = data.decode("utf-8")
        assert RAW_CONTROL.search(written) is None
        assert not re.search(r"^ *::|##", written, re.MULTILINE)
    expected = visible(text)
    assert json.loads(mcp_assert_json(run))[0]["name"] == expected
    again = decode(as_json(run), RunReport, "run.json")
    assert again.results[0].detail == expected
    assert as_json(again) == as_json(run)


@given(st.text(st.characters(exclude_categories=[])))
def test_any_text_makes_json_that_means_it(text: str) -> None:
    assert json.loads(mcp_assert_json(hostile_run(text)))[0]["name"] == visible(text)
