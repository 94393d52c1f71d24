"""One run of mixed outcomes in every form, and the reports of every other command on its server."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import yaml

from tests.e2e.driving import Done, mcptest

SERVER = Path(__file__).with_name("moody_server.py")
HOSTILE_NAME = "<b>&'\" ]]> --> ::error::x # SKIP \\ | `code` [a](http://b) \u202e"
FORMS = {
    "--json-file": "run.json",
    "--junit": "results.xml",
    "--markdown": "summary.md",
    "--badge": "badge.json",
    "--sarif": "mcptest.sarif",
    "--code-quality": "quality.json",
    "--tap": "results.tap",
    "--html": "report.html",
    "--save-baseline": "baseline.json",
}


@dataclass(frozen=True)
class Reports:
    """What a command said and wrote."""

    folder: Path
    done: Done

    def __getitem__(self, name: str) -> bytes:
        return (self.folder / name).read_bytes()


def command_of_server(folder: Path) -> list[str]:
    return [sys.executable, "-I", "-S", str(SERVER), str(folder / "moods")]


def suite(folder: Path) -> str:
    """Passing, failing, erring in every way, skipped and flaky tests, and a lane of rules."""
    program, *arguments = command_of_server(folder)
    steady = {"tool": "steady", "expect": {"not_error": True}}
    tests = [
        {"name": "it is steady", "assert": steady},
        {"name": HOSTILE_NAME, "assert": {**steady, "expect": {"contains": ["not there"]}}},
        {"name": "it is moody", "assert": {"tool": "moody", "expect": {"not_contains": ["bad"]}}},
        {"name": "it dies", "assert": {"tool": "dies", "expect": {"not_error": True}}},
        {
            "name": "it is silent",
            "timeout": "300ms",
            "assert": {"tool": "silent", "expect": {"not_error": True}},
        },
        {"name": "it is wrong", "assert": {"tool": "wrong", "expect": {"not_error": True}}},
        {"name": "left out", "skip": True, "assert": steady},
        {"name": "left alone", "skip_unless_env": "MCPTEST_NOT_SET", "assert": steady},
        {
            "name": "nobody there",
            "server": {"command": "no-such-program-anywhere"},
            "assert": steady,
        },
    ]
    path = folder / "mixed.yaml"
    server = {"command": program, "args": arguments}
    path.write_text(yaml.safe_dump({"server": server, "tests": tests}, sort_keys=False))
    return path.name


def run_of_mixed_outcomes(folder: Path) -> Reports:
    """In continuous integration, with trials, in all forms at once."""
    words = [word for pair in FORMS.items() for word in pair]
    environment = {
        **os.environ,
        "GITHUB_ACTIONS": "true",
        "GITHUB_STEP_SUMMARY": str(folder / "step.md"),
    }
    done = mcptest(
        *("ci", suite(folder), "--trials", "2", "--jobs", "1", *words), cwd=folder, env=environment
    )
    return Reports(folder, done)


def report_of(folder: Path, *command: str, tools: tuple[str, ...], forms: Iterable[str]) -> Reports:
    """Another command on the same server, or on as much of it as has these tools."""
    words = [word for form in forms for word in (form, FORMS[form])]
    done = mcptest(*command, *words, "--", *command_of_server(folder), *tools, cwd=folder)
    return Reports(folder, done)
