"""The further forms of reports as a person asks for them: files all at once, lines for agents."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.driving import Done, mcptest
from tests.e2e.suite_runs import Site, call, server
from tests.report.test_report_forms import checked

FILES = {"--sarif": "r.sarif", "--code-quality": "q.json", "--tap": "r.tap", "--junit": "r.xml"}
ALL = [word for pair in FILES.items() for word in pair]
ROOT = Path(__file__).parents[1]
SAMPLE = str(ROOT / "data" / "lint_sample.json")
OLD = ("--spec-version", "2025-11-25")


def mixed(site: Site) -> str:
    tests = [
        {"name": "good", "assert": call()},
        {"name": "it's bad", "assert": call("none")},
        {"name": "left out", "skip": True, "assert": call()},
    ]
    return site.suite(tests, server=server())


def written(folder: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]], str]:
    """SARIF's results, the findings for GitLab and TAP, of which the first two are valid."""
    (run,) = checked((folder / "r.sarif").read_bytes(), "sarif-2.1.0")["runs"]
    findings = checked((folder / "q.json").read_bytes(), "code-quality")
    return run["results"], findings, (folder / "r.tap").read_text()


def test_a_run_is_written_in_all_forms_at_once(site: Site) -> None:
    done = site.run(mixed(site), *ALL)
    assert done.code == 1
    (result,), (finding,), tap = written(site.folder)
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == finding["location"]["path"] == "suite.yaml"
    assert place["region"]["startLine"] == finding["location"]["lines"]["begin"] > 1
    assert [line.split(" - ")[0] for line in tap.splitlines() if "ok " in line[:7]] == [
        "ok 1",
        "not ok 2",
        "ok 3",
    ]
    assert (site.folder / "r.xml").is_file()


def test_an_agent_gets_a_verdict_and_a_command_that_fails_again(site: Site) -> None:
    done = site.run(mixed(site), "--format", "agent")
    verdict, failure = done.out.splitlines()
    assert (done.code, done.err) == (1, "")
    assert verdict.startswith("FAIL: 1 failed, 1 passed, 1 skipped in ")
    words = shlex.split(failure, comments=True)
    again = site.run(*words[2:], "--format", "agent")
    assert words[:2] == ["mcptest", "run"]
    assert again.code == 1
    assert again.out.splitlines()[0].startswith("FAIL: 1 failed in ")


@pytest.mark.parametrize(
    ("options", "code", "verdict"),
    [
        (["--fail-under", "50"], 0, "PASS"),
        (["--fail-under", "51"], 1, "FAIL"),
        (["-k", "left"], 4, "NOTHING RAN"),
        (["-k", "good", "--junit", "/dev/full"], 1, "FAIL"),
    ],
)
def test_the_verdict_in_ci_is_that_of_the_exit_code(
    site: Site, options: list[str], code: int, verdict: str
) -> None:
    done = site.run(mixed(site), "--format", "agent", *options, command="ci", GITHUB_ACTIONS="true")
    assert done.code == code
    assert done.out.startswith(f"{verdict}: ")
    assert "::" not in done.out  # annotations do not stand beside it


def test_tap_is_alone_on_stdout_and_format_json_is_json(site: Site) -> None:
    suite = mixed(site)
    assert site.run(suite, "--format", "tap", "--fix").out.startswith("TAP version 13\n1..3\n")
    assert len(json.loads(site.run(suite, "--format", "json").out)) == 3


def wrote_all_of(folder: Path, *argv: str) -> Done:
    return mcptest(*argv, *ALL, "--format", "agent", cwd=folder)


def test_lint_writes_its_warnings_for_code_scanning(tmp_path: Path) -> None:
    done = wrote_all_of(tmp_path, "lint", "--tools", SAMPLE)
    results, findings, _ = written(tmp_path)
    assert len(results) == len(findings) > 1
    assert {one["level"] for one in results} == {"error", "warning"}
    verdict, failure, *_ = done.out.splitlines()
    assert (done.code, verdict.split(":")[0]) == (1, "FAIL")
    assert failure.startswith(f"mcptest lint --tools {SAMPLE}  # tool delete_invoice ")


@pytest.mark.parametrize(
    "argv",
    [
        ("audit", "--server", "demo", "--tool", "add"),
        ("fuzz", "--server", "demo", "--tool", "add", "--runs", "3"),
        ("conformance", "server", "--server", "demo", "--scenario", "ping", *OLD),
        ("compliance", "run", "--server", "demo", "--rule", "PROTO-002", *OLD),
    ],
    ids=lambda argv: argv[0],
)
def test_every_command_that_judges_has_every_form(tmp_path: Path, argv: tuple[str, ...]) -> None:
    done = wrote_all_of(tmp_path, *argv)
    assert done.code == 0, done.said
    assert done.out.startswith("PASS: ")
    results, findings, tap = written(tmp_path)
    assert results == findings == []
    assert "\nok 1 - " in tap


def test_a_client_that_fails_is_told_with_its_repeat_command(tmp_path: Path) -> None:
    silent = shlex.join([sys.executable, "-c", "pass"])
    argv = ("conformance", "client", "--command", silent, "--scenario", "tools_call")
    done = wrote_all_of(tmp_path, *argv)
    verdict, failure = done.out.splitlines()
    assert (done.code, verdict[:15]) == (1, "FAIL: 1 failed ")
    assert shlex.split(failure, comments=True)[:5] == ["mcptest", *argv[:4]]
    assert "tools_call [" in failure
    results, findings, tap = written(tmp_path)
    assert len(results) == len(findings) == 1, "one cause, however many checks it keeps from"
    assert "\nnot ok 1 - tools_call " in tap
