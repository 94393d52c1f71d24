"""Suites that we write: an editor finds their schema beside them, and they fit it."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml

from tests.e2e.driving import mcptest

ROOT = Path(__file__).parent.parent.parent
FIRST_LINE = "# yaml-language-server: $schema=./.mcptest.schema.json"
FUZZED = (sys.executable, "-I", "-S", str(ROOT / "tests" / "e2e" / "fuzzed.py"))
FAULTY = shlex.join([sys.executable, "-m", "tests.properties.faulty", "invalid-request-code"])
WRITERS = {
    "init without a server": ("init", "out"),
    "init": ("init", "out", "--server", "demo", "--no-snapshots"),
    "generate": ("generate", "--server", "demo", "--output", "out"),
    "audit": ("audit", "--server", "demo", "--no-verify", "--output", "out"),
    "fuzz": ("fuzz", "--tool", "dies", "--seed", "8", "--output", "out", "--", *FUZZED),
    "property": (
        *("property", "--server", FAULTY, "--cwd", str(ROOT), "--spec-version", "2025-11-25"),
        *("--property", "messages-invalid", "--examples", "60", "--seed", "1", "--strict"),
        *("--output", "out"),
    ),
}


@pytest.fixture(scope="module", params=WRITERS)
def written(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("editor")
    done = mcptest(*WRITERS[request.param], cwd=folder)
    assert done.code in {0, 1}, done.said
    return folder / "out"


def suites_in(folder: Path) -> Iterator[tuple[str, Any]]:
    found = sorted(folder.glob("*.yaml"))
    assert found
    for path in found:
        text = path.read_text(encoding="utf-8")
        yield text, yaml.safe_load(text)


def test_a_suite_that_is_written_names_the_schema_beside_it_and_fits_it(written: Path) -> None:
    schema = json.loads((written / ".mcptest.schema.json").read_bytes())
    validator = jsonschema_rs.Draft202012Validator(schema)
    for text, document in suites_in(written):
        assert text.partition("\n")[0] == FIRST_LINE
        assert not [error.message for error in validator.iter_errors(document)]
        mistaken = {**document, "timeut": "3s"}
        assert not validator.is_valid(mistaken)


def test_the_schema_beside_them_is_the_one_that_the_command_prints(tmp_path: Path) -> None:
    mcptest("init", "evals", cwd=tmp_path)
    beside = json.loads((tmp_path / "evals" / ".mcptest.schema.json").read_bytes())
    printed = json.loads(mcptest("schema", "suite").out)
    for schema in (beside, printed):
        for said_of_itself in ("$schema", "title", "$id"):
            schema.pop(said_of_itself, None)
    assert beside == printed


def test_what_an_editor_offers_is_explained() -> None:
    schema = json.loads(mcptest("schema", "suite").out)
    expect = next(
        part["properties"]
        for part in schema["$defs"].values()
        if "contains" in part.get("properties", {})
    )
    assert all(one.get("description") or "$ref" in one for one in expect.values())
