"""`mcptest compliance diff` as it is run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.driving import mcptest

SUITE = """\
server: {command: ./my-mcp-server}
compliance:
  spec_version: v2025-11-25
  tests:
    - name: RES-102
    - name: TOOLS-001
    - name: the server can be pinged
      check: ping
      expect:
        - {target: answer, matcher: {exact: result}}
"""


def test_the_guide_is_printed_and_is_no_failure() -> None:
    done = mcptest("compliance", "diff", "v2025-11-25", "2026-07-28")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("v2025-11-25 -> v2026-07-28\n")
    assert "RES-102" in done.out
    assert "\x1b[" not in done.out


@pytest.mark.parametrize("flags", [("--json",), ("--format", "json")])
def test_json_goes_to_stdout_alone(flags: tuple[str, ...]) -> None:
    done = mcptest("compliance", "diff", "v2026-07-28", "draft", *flags)
    assert (done.code, done.err) == (0, "")
    value = json.loads(done.out)
    assert value["clean"] is True
    assert value["summary"]["severity_changes"] == 1


def test_markdown_is_printed() -> None:
    done = mcptest("compliance", "diff", "v2024-11-05", "v2025-06-18", "--format", "markdown")
    assert done.code == 0
    assert done.out.startswith("# v2024-11-05 → v2025-06-18\n")
    assert "**PROTO-002**" in done.out


def test_the_tests_of_a_suite_that_are_touched_are_named(tmp_path: Path) -> None:
    suite = tmp_path / "suite.yml"
    suite.write_text(SUITE)
    done = mcptest("compliance", "diff", "v2025-11-25", "v2026-07-28", "--rules-from", str(suite))
    assert done.code == 0
    assert "are affected" in done.out
    assert f"RES-102  {suite}:5" in done.out
    assert f"the server can be pinged  {suite}:7" in done.out
    assert f"TOOLS-001  {suite}" not in done.out


def test_a_suite_without_the_block_is_an_error(tmp_path: Path) -> None:
    suite = tmp_path / "suite.yml"
    suite.write_text("server: {command: x}\n")
    done = mcptest("compliance", "diff", "draft", "draft", "--rules-from", str(suite))
    assert done.code == 2
    assert "has no compliance block" in done.err


def test_a_misspelled_pin_in_the_suite_shows_the_line(tmp_path: Path) -> None:
    suite = tmp_path / "suite.yml"
    suite.write_text("compliance:\n  spec_version: v2025-6-18\n")
    done = mcptest("compliance", "diff", "draft", "draft", "--rules-from", str(suite))
    assert done.code == 2
    assert f"{suite}:2:3: unknown compliance spec_version: v2025-6-18" in done.err
    assert "^^^^^^^^^^^^" in done.err


def test_an_unknown_revision_names_the_known_ones() -> None:
    done = mcptest("compliance", "diff", "v2025-6-18", "draft")
    assert (done.code, done.out) == (2, "")
    assert "did you mean 2025-06-18?" in done.err


def test_another_registry_brings_its_own_corpora(tmp_path: Path) -> None:
    for version in ("v2024-11-05", "draft"):
        (tmp_path / version).mkdir()
    row = (
        "- {rule_id: AAA-001, check: ping, expect: [{target: answer, matcher: {exact: result}}]}\n"
    )
    (tmp_path / "v2024-11-05" / "rules.yml").write_text(row)
    (tmp_path / "draft" / "rules.yml").write_text(row.replace("result", "error"))
    (tmp_path / "registry.yml").write_text(
        "rules: [{id: AAA-001, title: mine, section: s, severity: MUST, spec: basic, "
        "requirement: It is.}]\n"
    )
    registry = ("--registry", str(tmp_path / "registry.yml"))
    done = mcptest("compliance", "diff", "v2024-11-05", "draft", *registry)
    assert done.code == 0
    assert "AAA-001      mine  MUST" in done.out
    missing = mcptest("compliance", "diff", "v2024-11-05", "v2025-06-18", *registry)
    assert missing.code == 2
    assert "there is no corpus for v2025-06-18" in missing.err
    (tmp_path / "draft" / "rules.yml").write_text(row.replace("exact", "exat"))
    broken = mcptest("compliance", "diff", "v2024-11-05", "draft", *registry)
    assert broken.code == 2
    assert "rules.yml:1:" in broken.err
    assert "unknown matcher exat" in broken.err
