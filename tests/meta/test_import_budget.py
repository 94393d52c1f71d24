"""How much is imported before a command does its work: counted in modules, not in seconds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
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
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout, "the command said nothing"
    return frozenset(json.loads(done.stderr.splitlines()[-1]))


# The same, up to the moment in which a run starts its first server.
COUNT_TO_THE_FIRST_SERVER = """
import os, sys
before = set(sys.modules)
def stop_at_the_first_server(event, arguments):
    if event == "subprocess.Popen":
        os.write(2, " ".join(sorted(set(sys.modules) - before)).encode())
        os._exit(0)
sys.addaudithook(stop_at_the_first_server)
from mcptest.__main__ import main
sys.argv = ["mcptest", *sys.argv[1:]]
sys.exit(main())
"""

SUITE = """
server: {command: never-started, args: ["{{fixture}}"]}
assert: {tool: t, args: {p: "{{fixture}}/f"}, expect: {not_error: true, contains: [x]}}
"""


@pytest.mark.parametrize("isolation", ["fresh", "shared"])
def test_the_first_server_is_started_before_what_talks_to_it_is_imported(
    tmp_path: Path, isolation: str
) -> None:
    """A server takes longer to start than we take to import the rest, so both happen at once.

    What reads suites has to be there before: nothing is started for a suite that is broken. What
    talks to servers, judges and reports is more than half of what a run imports, and comes later.
    """
    suite, data = tmp_path / "s.yaml", tmp_path / "data"
    suite.write_text(SUITE)
    data.mkdir()
    argv = ["run", str(suite), "--fixture", str(data), "--isolation", isolation]
    done = subprocess.run(
        [sys.executable, "-c", COUNT_TO_THE_FIRST_SERVER, *argv],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=240,
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr
    imported = frozenset(done.stderr.split())
    assert "yaml" in imported  # the suite was read before anything was started
    assert not imported & (HEAVY - {"yaml"})
    assert "typing_extensions" not in imported  # msgspec would: a twentieth of a whole short run
    ours = {name for name in imported if name.startswith("mcptest.")}
    for later in ("session.client", "wire", "schema", "report", "rules"):
        assert not {name for name in ours if name.startswith(f"mcptest.{later}")}
    assert len(ours) <= 54


# The files of ours in which something is called while a command runs, not while it is imported.
COUNT_THE_FILES = """
import json, os, sys, threading
files = {}
def note(frame, event, argument):
    code = frame.f_code
    if event != "call" or "/src/mcptest/" not in code.co_filename:
        return
    if code.co_filename not in files or not files[code.co_filename]:
        while frame is not None and not is_imported(frame.f_code):
            frame = frame.f_back
        files[code.co_filename] = frame is None
def is_imported(code):
    return code.co_name == "<module>" and "/src/mcptest/" in code.co_filename
from mcptest.__main__ import main
sys.argv = ["mcptest", *sys.argv[1:]]
threading.setprofile(note)
sys.setprofile(note)
try:
    code = main()
finally:
    sys.setprofile(None)
called = [name for name, is_called in files.items() if is_called]
loaded = [module for name, module in sys.modules.items() if name.startswith("mcptest.")]
imported = [one.__file__ for one in loaded if not one.__file__.endswith("__init__.py")]
sys.stderr.write("\\n" + json.dumps([code, called, imported]))
"""


@pytest.mark.parametrize(
    ("argv", "most_called", "most_imported"),
    [
        (("run", "examples/quickstart.yaml", "--server", "demo"), 60, 71),
        (("compliance", "run", "--server", "demo"), 110, 162),
    ],
)
def test_a_command_passes_through_few_files(
    tmp_path: Path, argv: tuple[str, ...], most_called: int, most_imported: int
) -> None:
    """Who follows a run from file to file has to be able to keep them in mind."""
    words = [str(ROOT / word) if word.startswith("examples/") else word for word in argv]
    done = subprocess.run(
        [sys.executable, "-c", COUNT_THE_FILES, *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        cwd=tmp_path,
    )
    code, called, imported = json.loads(done.stderr.splitlines()[-1])
    assert code == 0, done.stdout
    assert any(name.endswith("session/client.py") for name in called)
    assert len(called) <= most_called, sorted(called)
    assert len(imported) <= most_imported, sorted(imported)


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
        "mcptest.commands",
        "mcptest.commands.app",
        "mcptest.commands.early_signals",
        "mcptest.commands.output",
        "mcptest.core",
        "mcptest.core.errors",
        "mcptest.core.redaction",
    }


def test_help_for_record_needs_no_transport() -> None:
    imported = imported_by("record", "--help")
    assert not imported & (HEAVY | {"socket", "subprocess", "select", "selectors", "threading"})
    assert len(imported) <= 110


@pytest.mark.parametrize("command", ["compliance", "explain", "serve", "schema"])
def test_help_for_a_command_needs_nothing_heavy(command: str) -> None:
    assert not imported_by(command, "--help") & HEAVY


def test_the_count_is_one() -> None:
    """A list that was always empty would pass everything."""
    assert "argparse" in imported_by("--help")
    assert "mcptest.commands.record.cli" in imported_by("record", "--help")
