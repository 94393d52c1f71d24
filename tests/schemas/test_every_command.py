"""What every command stores follows its schema, and its other forms are read by their consumers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mcptest.commands.schema.cli import schema_named
from mcptest.report.json_schemas import NAMES
from tests.e2e.driving import START, mcptest, record
from tests.schemas.mixed_run import FORMS, report_of
from tests.schemas.validators import (
    read_code_quality,
    read_junit,
    read_markdown,
    read_own,
    read_sarif,
    read_tap,
)

FILES = ("--json-file", "--junit", "--markdown", "--sarif", "--code-quality", "--tap")
ROOT = Path(__file__).parents[2]
QUICKSTART = str(ROOT / "examples" / "quickstart.yaml")
COMMANDS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "audit": (("audit", "--timeout", "2s", *START), ("steady", "dies", "wrong")),
    "lint": (("lint",), ("steady",)),
    "fuzz": (("fuzz", "--runs", "4", "--timeout", "2s", *START), ("steady", "dies")),
    "property": (
        ("property", "--examples", "3", "--property", "arguments", "--timeout", "2s", *START),
        ("steady", "wrong"),
    ),
    "compliance": (("compliance", "run"), ("steady", "wrong")),
    "conformance": (
        ("conformance", "server", "--scenario", "tools-call-image"),
        ("steady", "test_image_content"),
    ),
    "coverage": (("coverage", "--suite", QUICKSTART, "--fail-under", "50"), ("steady",)),
}
"""The format that a command stores: its words, and the tools of the server."""


@pytest.mark.parametrize("name", COMMANDS)
def test_every_form_of_a_command_that_found_something_is_valid(name: str, tmp_path: Path) -> None:
    command, tools = COMMANDS[name]
    written = report_of(tmp_path, *command, tools=tools, forms=FILES)
    assert written.done.code == 1, written.done.said
    read_own(written["run.json"], name)
    failures = int(read_junit(written["results.xml"]).get("failures"))
    assert failures >= 1
    assert sum(not test.ok for test in read_tap(written["results.tap"])) == failures
    results = read_sarif(written["mcptest.sarif"])["results"]
    assert len(results) >= 1
    assert len(read_code_quality(written["quality.json"])) == len(results)
    read_markdown(written["summary.md"])


# -- forms that only one command has ---------------------------------------------------------------


def stored(path: Path) -> Callable[[str], bytes]:
    return lambda name: (path / name).read_bytes()


def said(*command: str, cwd: Path, code: int = 0) -> bytes:
    done = mcptest(*command, cwd=cwd)
    assert done.code == code, done.said
    return done.out.encode()


def test_a_doctor_s_report_follows_its_schema(tmp_path: Path) -> None:
    written = report_of(
        tmp_path, "doctor", "--to", "2026-07-28", tools=("steady",), forms=("--json-file",)
    )
    assert read_own(written["run.json"], "doctor")["breaks"] is True


def test_a_scorecard_and_its_baseline_follow_their_schemas(tmp_path: Path) -> None:
    command = ("compliance", "run", "--save-scorecard", "card.json", "--baseline", "known.yml")
    report_of(tmp_path, *command, "--update-baseline", tools=("steady", "wrong"), forms=())
    read_own(stored(tmp_path)("card.json"), "scorecard")
    import yaml

    known = yaml.safe_load(stored(tmp_path)("known.yml"))
    assert known
    read_own(json.dumps(known).encode(), "known-failures")


def test_snapshots_follow_their_schema(tmp_path: Path) -> None:
    suite = tmp_path / "quick.yaml"
    suite.write_text(Path(QUICKSTART).read_text())
    words = ("snapshot", "--suite", suite.name, "--server", "demo", "--json")
    assert len(read_own(said(*words, "--update", cwd=tmp_path), "snapshot")) == 3
    assert len(read_own(said(*words, cwd=tmp_path), "snapshot")) == 3


def test_a_session_and_its_verdicts_follow_their_schemas(tmp_path: Path) -> None:
    capture = tmp_path / "session.jsonl"
    assert record(capture, "--server", "demo").code == 0
    for line in capture.read_bytes().splitlines():
        read_own(line, "capture")
    words = ("compliance", "invariants", "--capture", str(capture), "--json")
    read_own(said(*words, cwd=tmp_path), "report")


def test_the_rules_and_what_moves_between_revisions_follow_their_schemas(tmp_path: Path) -> None:
    listed = read_own(said("compliance", "rules", "--json", cwd=tmp_path), "rules")
    assert len(listed["rules"]) > 100
    words = ("compliance", "diff", "2025-11-25", "2026-07-28", "--json")
    assert read_own(said(*words, cwd=tmp_path), "version-diff")["clean"] is False


GOOD: dict[str, list[Any]] = {
    "expected-failures": [
        None,
        {"server": ["ping", "tools-list:check-1"], "client": None},
        {"client": [{"scenario": "initialize", "reason": "issue 7", "flaky": True}]},
    ],
    "known-failures": [
        None,
        ["TOOL-001", {"rule_id": "INV-001", "reason": "why", "tracking": "https://x"}],
        {"TOOL-001": "why", "INV-001": {"flaky": {"max_rate": 0.1}}},
        {"server": ["TOOL-001"], "v2025-11-25": {"INV-001": None}, "2026-07-28": []},
    ],
    "exchanges": [{"server_label": "x", "exchanges": [{"request": {"id": 1}, "response": None}]}],
    "flaky-history": [
        {
            "format": "mcptest.flaky-history/1",
            "runs": [{"revision": "2025-11-25", "outcomes": {"INV-001": "pass"}}],
        }
    ],
    "example": [{"format": "mcptest.example/1", "property": "x", "steps": []}],
    "mock": [{"name": "weather"}, {"name": "x", "version": "2", "title": None}],
}
BAD: dict[str, list[Any]] = {
    "expected-failures": [["ping"], {"servers": []}, {"client": [{"reason": "x"}]}],
    "known-failures": [3, [{"reason": "x"}], {"INV-001": {"rule_id": "INV-001"}}],
    "exchanges": [{}, {"server_label": "x", "exchanges": [{}]}],
    "flaky-history": [{"runs": []}, {"format": "mcptest.flaky-history/2", "runs": []}],
    "example": [{"format": "mcptest.example/1", "property": "x"}],
    "mock": [[], {"nme": "x"}],
}


@pytest.mark.parametrize("name", GOOD)
def test_a_schema_takes_what_is_right_and_nothing_else(name: str) -> None:
    for value in GOOD[name]:
        read_own(json.dumps(value).encode(), name)
    for value in BAD[name]:
        with pytest.raises(AssertionError):
            read_own(json.dumps(value).encode(), name)


# -- the command -----------------------------------------------------------------------------------


def test_every_format_has_a_schema_that_is_one_and_is_listed(tmp_path: Path) -> None:
    import jsonschema_rs

    names = [line.split()[0] for line in said("schema", cwd=tmp_path).decode().splitlines()]
    assert set(names) == {*NAMES, "example"}
    for name in names:
        schema = schema_named(name)
        assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
        assert schema["title"].startswith("mcptest: ")
        jsonschema_rs.meta.validate(schema)
        assert not jsonschema_rs.validator_for(schema).is_valid(7)


def test_a_schema_is_written_only_where_it_is_another(tmp_path: Path) -> None:
    old, fresh = tmp_path / "old.json", tmp_path / "fresh.json"
    old.write_text("{}")
    said("schema", "suite", "--out", str(old), str(fresh), cwd=tmp_path)
    assert old.read_bytes() == fresh.read_bytes() == said("schema", "suite", cwd=tmp_path)
    before = fresh.stat()
    said("schema", "suite", "--out", str(fresh), cwd=tmp_path)
    after = fresh.stat()
    assert (before.st_mtime_ns, before.st_ino) == (after.st_mtime_ns, after.st_ino)


def test_a_schema_that_can_t_be_written_or_is_not_named_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert mcptest("schema", "--out", "x", cwd=tmp_path).code == 2
    done = mcptest("schema", "suite", "--out", "file/x.json", cwd=tmp_path)
    assert done.code == 2
    assert "can't write" in done.err
    assert mcptest("schema", "nonsense", cwd=tmp_path).code == 2


def test_a_code_of_the_linter_follows_its_schema(tmp_path: Path) -> None:
    read_own(said("explain", "E101", "--json", cwd=tmp_path), "lint-rule")


def test_a_code_of_an_audit_follows_its_schema(tmp_path: Path) -> None:
    read_own(said("explain", "E201", "--json", cwd=tmp_path), "audit-code")


def test_every_stored_form_of_a_command_is_covered_here() -> None:
    """A new format needs its case: in one of the tests above, in GOOD, or in tests of its own."""
    alone = {"doctor", "scorecard", "snapshot", "capture", "report", "rules", "version-diff"}
    of_the_mixed_run = {"suite", "run", "results", "baseline", "badge"}
    elsewhere = {"fleet"}  # tests/fleet/test_fleet_command.py
    covered = {*COMMANDS, *GOOD, *alone, "lint-rule", "audit-code", *of_the_mixed_run, *elsewhere}
    assert covered == {*NAMES, "example"}
    assert set(FILES) <= set(FORMS)


def test_every_format_that_is_named_in_the_source_has_a_schema() -> None:
    named = {
        found
        for path in (ROOT / "src").rglob("*.py")
        for found in re.findall(r'"mcptest\.([a-z-]+)/[0-9]+"', path.read_text())
    }
    assert len(named) > 10
    assert named - {*NAMES, "example"} == set()
