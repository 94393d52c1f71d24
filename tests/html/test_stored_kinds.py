"""Every JSON that a command stores is read back as what was found, and shown with its proof."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from mcptest.cli import app
from mcptest.explore.lint.finding import Finding, LintReport, Severity, Suggestion
from mcptest.model.audit import AuditItem, AuditReport, Claim, Health
from mcptest.model.errors import ExitCode, UsageError
from mcptest.model.fleet import FleetReport, FleetServer, ServerOutcome
from mcptest.model.fuzz import FuzzedTool, FuzzFailure, FuzzReport, Verdict
from mcptest.model.property import Counterexample, Line, PropertyReport, PropertyResult, Way
from mcptest.model.verdict import Severity as Keyword
from mcptest.report.audit_json import audit_as_json
from mcptest.report.doctor_json import doctor_as_json
from mcptest.report.fleet_json import fleet_as_json
from mcptest.report.fuzz_json import fuzz_as_json
from mcptest.report.html.making import page_of
from mcptest.report.lint_json import lint_as_json
from mcptest.report.property_json import property_as_json
from mcptest.report.stored import code_of, read_stored
from mcptest.report.stored_explored import explored_as_run
from tests.unit.sample_compliance import SAMPLE
from tests.unit.test_doctor_reports import REPORT as DOCTOR

WHO = {"server": "npx x", "server_name": "x", "tool": "mcptest 0", "revision": "2025-11-25"}
AUDIT = AuditReport(
    **WHO,
    items=(
        AuditItem(kind="tool", name="good", health=Health.HEALTHY, duration_ms=3, input={"a": 1}),
        AuditItem(
            kind="tool",
            name="liar",
            health=Health.HEALTHY,
            claims=(Claim("readOnlyHint", False, "it wrote a file"), Claim("x", None)),
            structured="result: 1 is no object",
            sent='{"id":1}',
            received='{"id":1,"result":{}}',
            repeat="mcptest audit --tool liar",
        ),
        AuditItem(kind="prompt", name="p", health=Health.CRASHED, detail="gone", stderr=("boom",)),
        AuditItem(kind="resource", name="u:r", health=Health.REFUSED, detail="no"),
        AuditItem(kind="template", name="u:{t}", health=Health.SKIPPED, detail="no value"),
    ),
    problems={"resources/list": "no answer"},
    notes=("a note",),
)
FUZZ = FuzzReport(
    **WHO,
    seed=7,
    runs_per_tool=50,
    tools=(
        FuzzedTool(name="good", runs=50, passed=50, categories={"types": 50}),
        FuzzedTool(
            name="bad",
            runs=50,
            passed=48,
            failures=(
                FuzzFailure(
                    tool="bad",
                    verdict=Verdict.CRASH,
                    label="a long string",
                    detail="it died",
                    arguments={"a": "xxxx"},
                    minimal={"a": "x"},
                    valid=True,
                    others=("another",),
                    sent='{"id":2}',
                    repeat="mcptest fuzz --tool bad",
                ),
            ),
        ),
        FuzzedTool(name="writer", skipped="it may write"),
    ),
)
LINT = LintReport(
    server="x",
    counts={"tools": 2, "prompts": 0, "resources": 0, "templates": 0},
    findings=(
        Finding("tool", "a", "E101", Severity.ERROR, "no description", "it has none", fix="write"),
        Finding(
            *("tool", "b", "W103", Severity.WARNING, "vague", "it is vague", "/description"),
            suggestion=Suggestion("/description", "Adds two numbers."),
        ),
    ),
    tool="mcptest 0",
)
PROPERTY = PropertyReport(
    **WHO,
    seed=3,
    strict=True,
    properties=(
        PropertyResult(name="messages", about="every answer is one", examples=10),
        PropertyResult(
            name="conversations",
            examples=4,
            counterexamples=(
                Counterexample(
                    of_property="conversations",
                    way=Way.RULE,
                    rule="MSG-006",
                    title="an answer to nothing",
                    severity=Keyword.SHOULD,
                    message="id 9 was never asked",
                    expected="an id that was asked",
                    actual="9",
                    words=("send a ping",),
                    lines=(Line("client", '{"id":1}'), Line("server", '{"id":9}', True)),
                    repeat="mcptest property --replay x",
                ),
            ),
        ),
        PropertyResult(name="tasks", skipped="it has no tasks"),
    ),
)
KINDS: list[tuple[Any, Callable[[Any], bytes], list[str]]] = [
    (AUDIT, audit_as_json, ["it wrote a file", "1 is no object", "boom", "no answer", "liar"]),
    (FUZZ, fuzz_as_json, ["it died", "Smallest input that fails so", "it may write", "seed 7"]),
    (LINT, lint_as_json, ["it has none", "Adds two numbers.", "E101"]),
    (PROPERTY, property_as_json, ["MSG-006", "id 9 was never asked", "--replay x", "seed 3"]),
    (DOCTOR, doctor_as_json, [DOCTOR.items[0].title, DOCTOR.items[0].detail]),
]


def data_of(page: bytes) -> str:
    """Everything that the page holds as data, as text."""
    blocks = page.split(b'<script type="application/json"')[1:]
    texts = [block.partition(b">")[2].partition(b"</script>")[0] for block in blocks]
    return "\n".join(json.dumps(json.loads(text), ensure_ascii=False) for text in texts)


@pytest.mark.parametrize(("report", "written", "parts"), KINDS)
def test_what_was_stored_is_read_back_and_shown(
    report: Any, written: Callable[[Any], bytes], parts: list[str]
) -> None:
    stored = read_stored(written(report), "x.json")
    assert written(stored.report) == written(report), "nothing got lost on the way"
    assert stored.exit_code is code_of(report)
    assert explored_as_run(stored.report) == explored_as_run(report)  # type: ignore[arg-type]  # they are such
    shown = data_of(page_of(stored.report))
    for part in parts:
        assert json.dumps(part, ensure_ascii=False)[1:-1] in shown


@pytest.mark.parametrize(
    ("report", "code"),
    [
        (AUDIT, ExitCode.FAILED),
        (replace(AUDIT, items=AUDIT.items[:1], problems={}), ExitCode.OK),
        (replace(AUDIT, items=AUDIT.items[-1:], problems={}), ExitCode.NOTHING_MATCHED),
        (replace(AUDIT, interrupted=True), ExitCode.INTERRUPTED),
        (replace(FUZZ, tools=FUZZ.tools[:1]), ExitCode.OK),
        (replace(FUZZ, tools=FUZZ.tools[2:]), ExitCode.NOTHING_MATCHED),
        (LINT, ExitCode.FAILED),
        (replace(LINT, findings=LINT.findings[1:]), ExitCode.OK),
        (replace(LINT, findings=LINT.findings[1:], strict=True), ExitCode.FAILED),
        (PROPERTY, ExitCode.FAILED),
        (replace(PROPERTY, strict=False), ExitCode.OK),
        (replace(PROPERTY, properties=PROPERTY.properties[2:]), ExitCode.NOTHING_MATCHED),
        (replace(DOCTOR, items=()), ExitCode.OK),
    ],
)
def test_the_exit_code_follows_from_what_was_found(report: Any, code: ExitCode) -> None:
    assert code_of(report) is code


@pytest.mark.parametrize("name", ["audit", "fuzz", "lint", "property", "doctor"])
def test_a_file_of_the_wrong_shape_is_named_with_its_place(name: str) -> None:
    broken = {"audit": "results", "fuzz": "tools", "lint": "findings", "property": "properties"}
    data = {"schema": f"mcptest.{name}/1", broken.get(name, "items"): [{"tool": 1}]}
    with pytest.raises(UsageError, match=r"x\.json"):
        read_stored(json.dumps(data).encode(), "x.json")


def test_reports_of_all_kinds_are_one_page_with_one_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names = []
    for report, written, _ in KINDS:
        names.append(f"{type(report).__name__}.json")
        Path(names[-1]).write_bytes(written(report))
    reports = ("--html", "all.html", "--junit", "all.xml", "--json-file", "all.json")
    assert app.run(["report", *names, *reports]) == 1
    page = json.loads(
        Path("all.html").read_bytes().partition(b'id="page">')[2].partition(b"</script>")[0]
    )
    kinds = [source["kind"] for source in page["sources"]]
    assert kinds == ["audit", "fuzz", "lint", "property", "doctor"]
    assert app.run(["report", "all.json"]) == 1


def test_a_fleet_is_taken_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    good = replace(AUDIT, items=AUDIT.items[:1], problems={})
    servers = (
        FleetServer("one", ServerOutcome.FAILED, compliance=SAMPLE, audit=good),
        FleetServer("two", ServerOutcome.UNREACHABLE, reason="it would not start"),
    )
    fleet = FleetReport("mcp.json", servers, exit_code=1)
    Path("fleet.json").write_bytes(fleet_as_json(fleet))
    assert app.run(["report", "fleet.json", "--html", "fleet.html"]) == 1
    shown = data_of(Path("fleet.html").read_bytes())
    for part in ("TOOLS-004", "it would not start", "good"):
        assert part in shown


def test_servers_that_were_held_against_the_same_rules_are_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    servers = tuple(
        FleetServer(name, ServerOutcome.FAILED, compliance=replace(SAMPLE, server=name))
        for name in ("one", "two")
    )
    fleet = FleetReport("mcp.json", servers, exit_code=1)
    Path("fleet.json").write_bytes(fleet_as_json(fleet))
    assert app.run(["report", "fleet.json"]) == 1
    said = capsys.readouterr().out
    assert "compliance TOOLS-004 [one]" in said
    assert "compliance TOOLS-004 [two]" in said
    assert "in more than one of the files" not in said
