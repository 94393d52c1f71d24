"""Every JSON that a command stores is read back as what was found, and shown with its proof."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from mcptest.commands import app
from mcptest.core.errors import ExitCode, UsageError
from mcptest.core.verdict import Severity as Keyword
from mcptest.report.audit import (
    AuditedPrompt,
    AuditedResource,
    AuditedTemplate,
    AuditedTool,
    AuditReport,
    Claim,
    Health,
)
from mcptest.report.codec import as_json
from mcptest.report.fleet import FleetReport, FleetServer, ServerOutcome
from mcptest.report.fuzz import FuzzedTool, FuzzFailure, FuzzReport, FuzzVerdict, SkippedTool
from mcptest.report.html.building import page_of
from mcptest.report.lint import LintReport
from mcptest.report.property import Counterexample, Line, PropertyReport, PropertyResult, Way
from mcptest.report.stored import read_stored
from mcptest.rules.lint.finding import LintFinding, LintSeverity, LintSuggestion
from tests.report.test_doctor import REPORT as DOCTOR
from tests.support.sample_compliance import SAMPLE

OLD = Path(__file__).with_name("reports_of_0_1")
WHO = {"server": "npx x", "server_name": "x", "tool": "mcptest 0", "revision": "2025-11-25"}
AUDIT = AuditReport(
    **WHO,
    tools=(
        AuditedTool(name="good", health=Health.HEALTHY, worked=True, duration_ms=3, input={"a": 1}),
        AuditedTool(
            name="liar",
            health=Health.HEALTHY,
            worked=True,
            claims=(Claim("readOnlyHint", False, "it wrote a file"), Claim("x", None)),
            findings=("readOnlyHint is not true: it wrote a file", "result: 1 is no object"),
            sent='{"id":1}',
            received='{"id":1,"result":{}}',
            repeat="mcptest audit --tool liar",
        ),
        AuditedTool(name="bomb", health=Health.HEALTHY, findings=("it can't be checked",)),
    ),
    prompts=(AuditedPrompt(name="p", health=Health.CRASHED, detail="gone", stderr=("boom",)),),
    resources=(AuditedResource(name="u:r", health=Health.REFUSED, detail="no"),),
    templates=(AuditedTemplate(name="u:{t}", health=Health.SKIPPED, detail="no value"),),
    problems={"resources/list": "no answer"},
    notes=("a note",),
)
WELL_AUDITED = AuditReport(**WHO, tools=AUDIT.tools[:1])
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
                    verdict=FuzzVerdict.CRASH,
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
    ),
    skipped=(SkippedTool(name="writer", reason="it may write"),),
)
LINT = LintReport(
    server="x",
    tools=2,
    findings=(
        LintFinding(
            "tool", "a", "E101", LintSeverity.ERROR, "no description", "it has none", fix="write"
        ),
        LintFinding(
            *("tool", "b", "W103", LintSeverity.WARNING, "vague", "it is vague", "/description"),
            suggestion=LintSuggestion("/description", "Adds two numbers."),
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
    (AUDIT, as_json, ["it wrote a file", "1 is no object", "boom", "no answer", "liar"]),
    (FUZZ, as_json, ["it died", "Smallest input that fails", "it may write", "seed 7"]),
    (LINT, as_json, ["it has none", "Adds two numbers.", "E101"]),
    (PROPERTY, as_json, ["MSG-006", "id 9 was never asked", "--replay x", "seed 3"]),
    (DOCTOR, as_json, [DOCTOR.items[0].title, DOCTOR.items[0].detail]),
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
    assert stored.exit_code is report.code
    assert stored.report.as_run() == report.as_run()
    shown = data_of(page_of(stored.report))
    for part in parts:
        assert json.dumps(part, ensure_ascii=False)[1:-1] in shown


def test_an_input_with_half_a_surrogate_pair_is_shown() -> None:
    broken = replace(FUZZ.tools[1].failures[0], arguments={"a": "\ud800"}, minimal=["\udfff"])
    report = replace(FUZZ, tools=(replace(FUZZ.tools[1], failures=(broken,)),))
    shown = data_of(page_of(report))
    assert r"\\ud800" in shown
    assert r"\\udfff" in shown


@pytest.mark.parametrize(
    ("report", "code"),
    [
        (AUDIT, ExitCode.FAILED),
        (WELL_AUDITED, ExitCode.OK),
        (AuditReport(**WHO, templates=AUDIT.templates), ExitCode.NOTHING_MATCHED),
        (replace(AUDIT, interrupted=True), ExitCode.INTERRUPTED),
        (replace(FUZZ, tools=FUZZ.tools[:1]), ExitCode.OK),
        (replace(FUZZ, tools=()), ExitCode.NOTHING_MATCHED),
        (LINT, ExitCode.FAILED),
        (replace(LINT, findings=LINT.findings[1:]), ExitCode.OK),
        (replace(LINT, findings=LINT.findings[1:], strict=True), ExitCode.FAILED),
        (PROPERTY, ExitCode.FAILED),
        (replace(PROPERTY, strict=False), ExitCode.OK),
        (replace(PROPERTY, properties=PROPERTY.properties[2:]), ExitCode.NOTHING_MATCHED),
        (replace(DOCTOR, items=()), ExitCode.OK),
        (replace(DOCTOR, items=(), unanswered=("ping",)), ExitCode.FAILED),
    ],
)
def test_the_exit_code_follows_from_what_was_found(report: Any, code: ExitCode) -> None:
    assert report.code is code


@pytest.mark.parametrize(("report", "written", "_parts"), KINDS)
def test_the_format_may_be_named_as_0_1_named_it(
    report: Any, written: Callable[[Any], bytes], _parts: list[str]
) -> None:
    data = written(report)
    assert data.count(b'"format": "mcptest.') == 1
    older = data.replace(b'"format": "mcptest.', b'"schema": "mcptest.')
    assert read_stored(older, "x.json").report == report


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("audit", (1, 1, 0)),
        ("fuzz", (1, 1, 0)),
        ("lint", (2, 2, 0)),
        ("property", (0, 2, 0)),
        ("doctor", (3, 6, 11)),
    ],
)
def test_what_0_1_stored_is_still_read(name: str, counts: tuple[int, int, int]) -> None:
    stored = read_stored((OLD / f"{name}.json").read_bytes(), name)
    run = stored.report.as_run()
    assert (run.passed, run.failed, run.skipped) == counts
    assert stored.exit_code is ExitCode.FAILED


def test_a_list_that_a_property_run_could_not_read_still_fails_it_when_it_is_read_back() -> None:
    unread = PropertyReport(**WHO, properties=PROPERTY.properties[:1], problems=("tools/list",))
    assert read_stored(as_json(unread), "x.json").exit_code is ExitCode.FAILED


@pytest.mark.parametrize("name", ["audit", "fuzz", "lint", "property", "doctor"])
def test_a_file_of_the_wrong_shape_is_named_with_its_place(name: str) -> None:
    broken = {"audit": "results", "fuzz": "tools", "lint": "findings", "property": "properties"}
    data = {"format": f"mcptest.{name}/1", broken.get(name, "items"): [{"tool": 1}]}
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
    servers = (
        FleetServer("one", ServerOutcome.FAILED, compliance=SAMPLE, audit=WELL_AUDITED),
        FleetServer("two", ServerOutcome.UNREACHABLE, reason="it would not start"),
    )
    fleet = FleetReport(config="mcp.json", servers=servers, exit_code=1)
    Path("fleet.json").write_bytes(as_json(fleet))
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
    fleet = FleetReport(config="mcp.json", servers=servers, exit_code=1)
    Path("fleet.json").write_bytes(as_json(fleet))
    assert app.run(["report", "fleet.json"]) == 1
    said = capsys.readouterr().out
    assert "compliance TOOLS-004 [one]" in said
    assert "compliance TOOLS-004 [two]" in said
    assert "in more than one of the files" not in said
