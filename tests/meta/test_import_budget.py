"""How much is imported before a command does its work: counted in modules, not in seconds."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache

import pytest

HEAVY = {"asyncio", "h11", "jsonschema_rs", "ssl", "re2", "yaml", "pydantic", "hypothesis"}

# What the interpreter of this very environment loads by itself does not count.
COUNT = """
import sys
before = set(sys.modules)
from mcptest.__main__ import main
sys.argv = ["mcptest", *sys.argv[1:]]
try:
    main()
except SystemExit:
    pass
after = set(sys.modules) - before
import json
sys.stderr.write("\\n" + json.dumps(sorted(after)))
"""


@cache
def imported_by(*argv: str) -> frozenset[str]:
    done = subprocess.run(
        [sys.executable, "-c", COUNT, *argv],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout, "the command said nothing"
    return frozenset(json.loads(done.stderr.splitlines()[-1]))


def test_the_version_costs_two_modules() -> None:
    assert imported_by("--version") == {"mcptest", "mcptest.__main__"}


def test_help_costs_little_more_than_argparse() -> None:
    imported = imported_by("--help")
    assert len(imported) <= 50
    unwanted = HEAVY | {
        "msgspec",
        "json",
        "subprocess",
        "socket",
        "logging",
        "inspect",
        "typing_extensions",
    }
    assert not imported & unwanted
    assert {name for name in imported if name.startswith("mcptest.")} <= {
        "mcptest.__main__",
        "mcptest.cli",
        "mcptest.cli.app",
        "mcptest.model",
        "mcptest.model.errors",
    }


def test_help_for_record_needs_no_transport() -> None:
    imported = imported_by("record", "--help")
    assert not imported & (HEAVY | {"socket", "subprocess", "select", "selectors", "threading"})
    assert len(imported) <= 150


@pytest.mark.parametrize("command", ["compliance", "explain", "serve", "schema"])
def test_help_for_a_command_needs_nothing_heavy(command: str) -> None:
    assert not imported_by(command, "--help") & HEAVY


def test_the_count_is_one() -> None:
    """A list that was always empty would pass everything."""
    assert "argparse" in imported_by("--help")
    assert "mcptest.cli.record" in imported_by("record", "--help")
