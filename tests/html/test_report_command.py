"""`mcptest report`: stored runs again, shards as one verdict, and no success by accident."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from mcptest.commands import app
from mcptest.core.results import Regression, RunReport, Status
from mcptest.core.results import TestResult as Result
from mcptest.core.revision import Revision
from mcptest.core.scenario_outcome import CheckResult, ScenarioResult
from mcptest.core.scenario_outcome import CheckStatus as Checked
from mcptest.core.verdict import Side
from mcptest.report.codec import as_json, decode
from mcptest.report.conformance import ConformanceReport
from tests.e2e.driving import mcptest
from tests.html.hostile import write_capture
from tests.support.sample_compliance import HEALTHY, SAMPLE
from tests.support.sample_run import CRASH, READ, SKIPPED, SUM


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def save(name: str, *results: Result, **more: object) -> str:
    Path(name).write_bytes(as_json(RunReport(results=results, **more)))  # type: ignore[arg-type]  # given as they are
    return name


def report(*argv: str) -> int:
    return app.run(["report", *argv])


def test_shards_become_one_run_with_one_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    first = save("1.json", READ, started="2026-11-15T10:00:00Z", duration_ms=100)
    second = save("2.json", SUM, SKIPPED, started="2026-11-15T09:00:00Z", duration_ms=50)
    files = ("--json-file", "all.json", "--junit", "all.xml", "--markdown", "all.md")
    assert report(first, second, *files, "--html", "all.html") == 1
    merged = decode(Path("all.json").read_bytes(), RunReport, "run")
    assert [one.name for one in merged.results] == [READ.name, SUM.name, SKIPPED.name]
    assert (merged.started, merged.duration_ms) == ("2026-11-15T09:00:00Z", 150)
    assert 'tests="3" failures="1"' in Path("all.xml").read_text()
    assert "1 passed, 1 failed" in Path("all.md").read_text()
    assert b"Failed: 1 of 2" in Path("all.html").read_bytes()
    assert "merged from 2 files" in capsys.readouterr().out


def test_shards_that_pass_are_a_success_also_when_one_had_nothing_to_do() -> None:
    assert report(save("1.json", READ), save("2.json")) == 0


@pytest.mark.parametrize(
    ("run", "code"),
    [
        (RunReport(results=(READ,)), 0),
        (RunReport(results=(READ, CRASH)), 1),
        (RunReport(results=(READ,), regressions=(Regression("x", "PASS", "SKIP"),)), 1),
        (RunReport(), 4),
        (RunReport(results=(SKIPPED,)), 4),
        (RunReport(results=(READ,), interrupted=True), 130),
    ],
)
def test_the_exit_code_is_that_of_the_run(run: RunReport, code: int) -> None:
    Path("run.json").write_bytes(as_json(run))
    assert report("run.json", "--html", "r.html") == code
    assert json.loads(page_data("r.html"))["exit_code"] == code


def page_data(file: str) -> bytes:
    return Path(file).read_bytes().partition(b'id="page">')[2].partition(b"</script>")[0]


def test_a_lost_shard_is_no_success(capsys: pytest.CaptureFixture[str]) -> None:
    assert report(save("1.json", READ), "--shards", "2") == 2
    assert "the number of files is 1" in capsys.readouterr().err


def test_a_test_that_two_files_hold_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    save("1.json", READ)
    save("2.json", msgspec.structs.replace(READ, status=Status.FAIL, detail="x"))
    assert report("1.json", "2.json") == 1
    assert "1 test is in more than one of the files" in capsys.readouterr().out


def test_all_kinds_of_stored_reports_are_merged() -> None:
    save("run.json", READ)
    Path("healthy.json").write_bytes(as_json(HEALTHY))
    check = CheckResult("c", "c", "it answers", Checked.SUCCESS)
    scenario = ScenarioResult("ping", Side.SERVER, Revision.V2025_11_25, "stdio", (check,))
    scenarios = ConformanceReport(Side.SERVER, "demo", (scenario,))
    Path("conf.json").write_bytes(as_json(scenarios))
    names = ("run.json", "healthy.json", "conf.json")
    assert report(*names, "--html", "r.html", "--json-file", "all.json") == 0
    index = json.loads(page_data("r.html"))
    kinds = [source["kind"] for source in index["sources"]]
    assert kinds == ["run", "compliance", "conformance of a server"]
    bad = msgspec.structs.replace(check, status=Checked.FAILURE, message="no answer")
    failing = msgspec.structs.replace(scenario, checks=(bad,))
    Path("conf.json").write_bytes(as_json(msgspec.structs.replace(scenarios, results=(failing,))))
    assert report(*names) == 1


def test_a_compliance_report_fails_as_it_failed() -> None:
    failed = msgspec.structs.replace(SAMPLE, exit_code=1)
    Path("c.json").write_bytes(as_json(failed))
    assert report("c.json", "--junit", "c.xml") == 1
    assert "<failure" in Path("c.xml").read_text()
    lying = msgspec.structs.replace(SAMPLE, exit_code=0)
    Path("c.json").write_bytes(as_json(lying))
    assert report("c.json") == 1, "a gate in it did not pass"


def test_captures_alone_are_judged_and_beside_a_run_only_explain() -> None:
    folder = Path("captures")
    folder.mkdir()
    write_capture(folder / "a.jsonl", "short")
    assert report("--capture", "captures", "--html", "c.html") == 1
    assert json.loads(page_data("c.html"))["sources"][0]["kind"] == "session rules"
    assert report(save("1.json", READ), "--capture", "captures", "--html", "r.html") == 0


@pytest.mark.parametrize(
    ("content", "phrase"),
    [
        (b"", "1.json"),
        (b"{}", "names no format"),
        (b'{"format":"mcptest.run/99"}', "mcptest.run/99"),
        (b"[]", "a list of results"),
        (b'{"format":"mcptest.run/1","results":[{"name":1}]}', "Expected `str`"),
        (b"", "the file is empty"),
        (b"\n", "the file is empty"),
        (b"[" * 100_000, "1.json"),
    ],
)
def test_a_file_that_can_not_be_read_is_never_green(
    content: bytes, phrase: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("1.json").write_bytes(content)
    assert report("1.json", "--html", "r.html") == 2
    assert phrase in capsys.readouterr().err
    assert not Path("r.html").exists()


def test_nothing_named_is_a_wrong_command_line() -> None:
    assert report() == 2
    assert report("missing.json") == 2
    Path("empty").mkdir()
    assert report("--capture", "empty") == 2


def test_a_report_that_can_not_be_written_is_no_success(capsys: pytest.CaptureFixture[str]) -> None:
    assert report(save("1.json", READ), "--html", "/dev/full") == 1
    assert "report not written" in capsys.readouterr().err


def test_a_capture_that_a_run_names_is_not_opened_by_itself() -> None:
    write_capture(Path("secret.jsonl"), "short")
    proof = msgspec.structs.replace(SUM.proof, capture="secret.jsonl")  # type: ignore[type-var]  # it has one
    save("1.json", msgspec.structs.replace(SUM, proof=proof))
    report("1.json", "--html", "r.html")
    assert b'"raw":' not in Path("r.html").read_bytes()


def test_a_run_writes_its_page_with_the_captures_of_its_failures() -> None:
    suite = "tests:\n- name: sum\n  assert: {tool: add, args: {a: 1, b: 2}, expect: {equals: x}}\n"
    Path("suite.yaml").write_text(suite)
    done = mcptest(
        *("run", "suite.yaml", "--server", "demo", "--save-capture", "kept", "--html", "r.html"),
        cwd=Path.cwd(),
    )
    assert done.code == 1
    content = Path("r.html").read_bytes()
    sessions = content.partition(b'id="sessions">')[2].partition(b"</script>")[0]
    assert [pin["rule"] for pin in json.loads(sessions)[0]["pins"]] == ["sum"]
