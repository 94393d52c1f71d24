"""A report that can't be written is said, and fails only with `--strict-reports`: one rule for all.

A command that offers a report and is not named here fails a test of this file.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from mcptest.commands.app import COMMANDS, parser_of
from tests.e2e.driving import Done, mcptest, record
from tests.e2e.screens import at_a_terminal
from tests.fleet.configured import DEMO as CONFIGURED
from tests.fleet.configured import write_config

DEMO = ("--server", "demo")
JUDGES: dict[str, tuple[str, ...]] = {
    "run": ("s.yaml", *DEMO),
    "matrix": ("s.yaml", "--languages", "one:demo"),
    "snapshot": ("s.yaml", *DEMO),
    "coverage": ("s.yaml", *DEMO),
    "audit": (*DEMO, "--tool", "add", "--no-verify"),
    "lint": (*DEMO, "--select", "E101"),
    "fuzz": (*DEMO, "--tool", "add", "--runs", "2", "--seed", "1"),
    "property": (*DEMO, "--property", "same-lists", "--examples", "2", "--no-database"),
    "fleet": ("mcp.json", "--spec-version", "2025-11-25"),
    "compliance run": (*DEMO, "--rule", "PROTO-002", "--spec-version", "2025-11-25"),
    "compliance invariants": ("--capture", "session.jsonl"),
    "conformance server": (*DEMO, "--scenario", "tools-list"),
    "doctor": (*DEMO, "--to", "2026-07-28"),
}
"""Commands that judge, with a job that ends well."""
STRICT = {"ci": ("s.yaml", *DEMO)}
"""With `--strict-reports` turned on."""
FOR_THE_FILES = {"report": ("run.json",)}
"""Commands whose purpose is the file: they fail without being asked."""
ELSEWHERE = {
    "watch": "below, at a terminal",
    "intercept": "tests/e2e/test_intercept.py",
    "conformance client": "tests/e2e/test_conformance_cli.py",
    "conformance judge": "writes as conformance client does",
}
REPORTS = (
    *("--json-file", "--junit", "--markdown", "--badge", "--html", "--sarif", "--code-quality"),
    *("--tap", "--save-baseline"),
)
FULL = Path("/dev/full")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    test = {"tool": "add", "args": {"a": 1, "b": 2}, "expect": {"contains": ["3"]}}
    (folder / "s.yaml").write_text(json.dumps({"tests": [{"name": "adds", "assert": test}]}))
    (folder / "file").write_text("no folder")
    write_config(folder, {"demo": CONFIGURED})
    assert record(folder / "session.jsonl", *DEMO).code == 0
    assert mcptest("snapshot", "s.yaml", *DEMO, "--update", cwd=folder).code == 0
    assert mcptest("run", "s.yaml", *DEMO, "--json-file", "run.json", cwd=folder).code == 0
    return folder


def parsers() -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Every command and action by the words that name it."""
    for name in COMMANDS:
        parser = parser_of(name)
        below = [one for one in parser._actions if isinstance(one, argparse._SubParsersAction)]
        if not below:
            yield name, parser
        for actions in below:
            yield from ((f"{name} {word}", one) for word, one in actions.choices.items())


def options_of(parser: argparse.ArgumentParser) -> set[str]:
    return {word for action in parser._actions for word in action.option_strings}


@functools.cache
def offered() -> dict[str, set[str]]:
    return {name: options_of(parser) for name, parser in parsers()}


def run(site: Path, name: str, *more: str) -> Done:
    words = {**JUDGES, **STRICT, **FOR_THE_FILES}[name]
    return mcptest(*name.split(), *words, *more, cwd=site)


def unwritable(name: str, place: Path) -> list[str]:
    return [word for one in REPORTS if one in offered()[name] for word in (one, str(place))]


def test_every_command_that_writes_reports_keeps_to_the_rule() -> None:
    writing = {name for name, options in offered().items() if options & set(REPORTS)}
    assert writing == {*JUDGES, *STRICT, *ELSEWHERE, *FOR_THE_FILES}
    strict = {name for name, options in offered().items() if "--strict-reports" in options}
    assert strict == writing - {*FOR_THE_FILES}


@pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full here")
@pytest.mark.parametrize("name", JUDGES)
def test_a_report_that_can_not_be_written_is_said_and_the_verdict_stays(
    site: Path, name: str
) -> None:
    options = unwritable(name, FULL)
    done = run(site, name, *options)
    assert done.code == 0, done.said
    assert done.err.count("mcptest: report not written: can't write /dev/full") == len(options) / 2
    assert "report not written: can't write /dev/full: No space left on device" in done.out


@pytest.mark.parametrize("name", [*JUDGES, *STRICT, *FOR_THE_FILES])
def test_it_fails_where_the_file_was_depended_on(site: Path, name: str) -> None:
    asked = ("--strict-reports",) if name in JUDGES else ()
    done = run(site, name, "--json-file", "file/inside.json", *asked)
    assert done.code == 1, done.said
    assert done.err.count("report not written: can't write file/inside.json") == 1


def test_a_scorecard_is_no_exception(site: Path) -> None:
    words = ("compliance", "run", *DEMO, "--spec-version", "2025-11-25", "--quiet")
    card = ("--save-scorecard", "file/card.json")
    done = mcptest(*words, *card, cwd=site)
    assert (done.code, done.err.count("not written")) == (0, 1), done.said
    assert mcptest(*words, *card, "--strict-reports", cwd=site).code == 1


@pytest.mark.parametrize("name", ["audit", "conformance server", "compliance run"])
def test_an_agent_is_told_the_verdict_that_the_exit_code_is(site: Path, name: str) -> None:
    words = ("--junit", "file/inside.xml", "--format", "agent")
    done = run(site, name, *words)
    assert done.out.splitlines()[0].startswith("PASS"), done.said
    assert "# note: report not written: can't write file/inside.xml" in done.out
    strict = run(site, name, *words, "--strict-reports")
    assert (strict.code, strict.out.splitlines()[0][:4]) == (1, "FAIL"), strict.said


@pytest.mark.parametrize("name", ["audit", "conformance server", "doctor", "snapshot"])
def test_json_on_stdout_stays_alone_there(site: Path, name: str) -> None:
    done = run(site, name, "--junit", "file/inside.xml", "--json")
    json.loads(done.out)
    assert "report not written" in done.err


def test_a_failure_is_not_hidden_by_a_report_that_is_missing(site: Path) -> None:
    words = ("coverage", "s.yaml", *DEMO, "--fail-under", "99", "--junit", "file/inside.xml")
    assert mcptest(*words, cwd=site).code == 1
    assert mcptest("audit", "--junit", "file/x", "--server", "/no/such", cwd=site).code == 3


@pytest.mark.parametrize(("strict", "code"), [((), 0), (("--strict-reports",), 1)])
def test_who_watches_is_told_at_once_and_again_at_the_end(
    site: Path, strict: tuple[str, ...], code: int
) -> None:
    words = ("watch", "s.yaml", *DEMO, "--junit", "file/inside.xml", *strict)
    with at_a_terminal(*words, cwd=site, env=os.environ) as terminal:
        terminal.until("q quit")
        assert "note: report not written" in "\n".join(terminal.lines)
        terminal.press("q")
        assert terminal.end() == code
        assert terminal.lines[-1].startswith("mcptest: report not written: can't write file")
