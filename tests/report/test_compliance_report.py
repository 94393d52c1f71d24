"""The JSON of a judged server fits its own schema, and every report can be made from it again."""

from __future__ import annotations

import json

import jsonschema_rs
import msgspec
import pytest

from mcptest.core.errors import ExitCode, UsageError
from mcptest.core.judgement import GateResult
from mcptest.core.results import Status
from mcptest.core.verdict import Severity
from mcptest.report.codec import as_json
from mcptest.report.compliance.compliance_report import ComplianceReport
from mcptest.report.html.building import page_of
from mcptest.report.json_schemas import schema_of
from mcptest.report.stored import read_stored
from tests.support.sample_compliance import (
    GATES,
    HEALTHY,
    ONE_RULE,
    SAMPLE,
    hostile_report,
    several_revisions,
)
from tests.support.sample_run import HOSTILE

REPORTS = [
    SAMPLE,
    HEALTHY,
    ONE_RULE,
    several_revisions(),
    ComplianceReport(server="demo", gates=GATES),
]
SCHEMA = jsonschema_rs.Draft202012Validator(schema_of("compliance"))


@pytest.mark.parametrize("report", REPORTS)
def test_what_is_written_fits_the_schema_and_is_read_back_whole(report: ComplianceReport) -> None:
    written = as_json(report)
    SCHEMA.validate(json.loads(written))
    again = read_stored(written, "r.json").report
    assert again == report
    assert again.as_markdown() == report.as_markdown()
    assert page_of(again) == page_of(report)


def test_the_numbers_that_a_script_needs_are_there() -> None:
    found = json.loads(as_json(SAMPLE))
    assert found["format"] == "mcptest.compliance/1"
    assert found["exit_code"] == 1
    judged = found["judgements"][0]
    assert judged["profile"]["id"] == "0.1.0/v2025-11-25/3f9ab2c1"
    assert judged["summary"] == {
        "rules": 8,
        "broken_musts": 1,
        "pass": 2,
        "fail": 2,
        "not_observed": 2,
        "not_applicable": 1,
        "inconclusive": 1,
        "coverage": 0.5714,
    }
    assert json.loads(as_json(HEALTHY))["gates"] == []


def test_the_schema_refuses_what_is_no_report() -> None:
    good = json.loads(as_json(SAMPLE))
    assert SCHEMA.is_valid(good)
    for name in ("format", "server", "judgements", "exit_code"):
        assert not SCHEMA.is_valid({key: value for key, value in good.items() if key != name})
    assert not SCHEMA.is_valid({**good, "format": "mcptest.compliance/2"})
    good["judgements"][0]["results"][0]["outcome"] = "maybe"
    assert not SCHEMA.is_valid(good)


@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_any_text_survives_and_none_of_it_steers_who_prints_it(number: int) -> None:
    report = hostile_report(HOSTILE[number][:5_000])
    written = as_json(report)
    SCHEMA.validate(json.loads(written))
    assert b"\x1b" not in written
    assert "\u202e" not in written.decode()
    assert not any(line.lstrip().startswith(("::", "##")) for line in written.decode().splitlines())
    if not any("\ud800" <= character <= "\udfff" for character in HOSTILE[number]):
        assert read_stored(written, "r.json").report == report


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "r.json"),
        (b"[]", "r.json"),
        (b"{}", "names no format"),
        (b'{"format":"mcptest.compliance/9"}', "its format is mcptest.compliance/9"),
        (b'{"format":"mcptest.compliance/1"}', "server"),
        (b"[" * 100_000, "r.json"),
    ],
)
def test_what_is_no_report_is_refused_with_the_name_of_the_file(data: bytes, message: str) -> None:
    with pytest.raises(UsageError) as raised:
        read_stored(data, "r.json")
    assert "r.json" in raised.value.message
    assert message in raised.value.message


def test_members_that_a_later_version_adds_are_read_past() -> None:
    value = msgspec.json.decode(as_json(SAMPLE))
    value["added_later"] = 1
    assert read_stored(msgspec.json.encode(value), "r.json").report == SAMPLE


def test_a_strict_report_fails_for_advice_also_when_it_is_read_back() -> None:
    for strict, failing in ((False, Severity.MUST), (True, Severity.SHOULD)):
        report = msgspec.structs.replace(SAMPLE, strict=strict, suite="s.yaml", exit_code=1)
        run = read_stored(as_json(report), "r.json").report.as_run()
        assert {one.file for one in run.results} == {"s.yaml"}
        judged = {one.name.split()[-1]: one.status for one in run.results}
        for rule in SAMPLE.judgements[0].failures:
            counts = rule.severity in (Severity.MUST, failing)
            assert (judged[rule.id] is Status.FAIL) == counts, rule.id
    assert Severity.SHOULD in {one.severity for one in SAMPLE.judgements[0].failures}


def test_gates_alone_are_a_verdict_also_when_they_are_read_back() -> None:
    gate = GateResult("spec_version_check", passed=True)
    for gates, code in (((gate,), ExitCode.OK), ((), ExitCode.NOTHING_MATCHED)):
        report = ComplianceReport(server="s", gates=gates)
        assert read_stored(as_json(report), "r.json").exit_code is code
