"""`mcptest coverage` counts against the live server and tells by its exit code."""

from __future__ import annotations

import json
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tests.e2e.driving import Done, mcptest

EXPLORED = (sys.executable, "-I", "-S", str(Path(__file__).with_name("explored.py")))
SUITE = """
tests:
  - name: echo
    setup: [{tool: complain}]
    assert: {tool: echo, args: {path: "{{fixture}}/x"}, expect: {not_error: true}}
  - name: only with a key
    skip_unless_env: MCPTEST_NO_SUCH_VARIABLE
    assert: {tool: clock, expect: {not_error: true}}
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    path = tmp_path / "suite.yaml"
    path.write_text(SUITE)
    return path


def coverage(suite: Path, *options: str) -> Done:
    words = ("only=echo,complain,clock,put", "paged")
    return mcptest("coverage", "--suite", str(suite), *options, "--", *EXPLORED, *words)


def test_the_counts_of_each_tool_are_told(suite: Path) -> None:
    done = coverage(suite)
    assert done.code == 0
    assert "1 of 4 tools covered (25%)" in done.out
    assert "✓ echo (1 assertion)" in done.out
    assert "✗ complain\n" in done.out
    assert "✗ clock (only skipped tests: 1)" in done.out


@pytest.mark.parametrize(("threshold", "code"), [("25", 0), ("26", 1), ("101", 2)])
def test_the_threshold_decides(suite: Path, threshold: str, code: int) -> None:
    assert coverage(suite, "--fail-under", threshold).code == code


def test_json_has_the_members_of_mcp_assert_and_more(suite: Path, tmp_path: Path) -> None:
    file = tmp_path / "c.json"
    report = json.loads(coverage(suite, "--json", "--coverage-json", str(file)).out)
    assert (report["total"], report["covered"], report["percentage"]) == (4, 1, 25)
    assert report["covered_tools"] == [{"name": "echo", "assertions": 1}]
    assert report["uncovered_tools"] == ["complain", "clock", "put"]
    assert report["kinds"]["tools"]["items"][2] == {"name": "clock", "assertions": 0, "skipped": 1}
    assert json.loads(file.read_text()) == report


def test_junit_and_markdown_are_written(suite: Path, tmp_path: Path) -> None:
    junit, markdown = tmp_path / "c.xml", tmp_path / "c.md"
    options = ("--junit", str(junit), "--markdown", str(markdown), "--fail-under", "50")
    assert coverage(suite, *options).code == 1
    assert len(ET.parse(junit).getroot().findall(".//failure")) == 3
    assert "| tool | <code>echo</code> | 1 |" in markdown.read_text()


def test_a_suite_that_can_not_be_read_is_two_and_a_dead_server_is_three(
    suite: Path, tmp_path: Path
) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text("name: x\nasert: {}")
    assert coverage(bad).code == 2
    assert mcptest("coverage", "--suite", str(suite), "--server", "/nowhere/at-all").code == 3


def test_a_suite_that_init_wrote_covers_what_it_does_not_skip(tmp_path: Path) -> None:
    folder = tmp_path / "evals"
    mcptest("init", str(folder), "--server", "demo")
    done = mcptest("coverage", "--suite", str(folder), "--server", "demo", "--json")
    report = json.loads(done.out)
    assert report["unknown"] == []
    assert report["kinds"]["resources"]["percentage"] == 100
    assert set(report["uncovered_tools"]) >= {"write_file", "bump"}
