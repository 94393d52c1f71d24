"""The scripts in real shells: what Tab offers there."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from mcptest.commands.completion.cli import SHELLS
from tests.e2e.driving import BOUND, mcptest

Offered = Callable[[str, str], list[str]]

# What readline gives to a function that completes; a space behind a word says that it is whole.
ASK_BASH = r"""
source ./script
COMP_LINE="$LINE" COMP_POINT=${#LINE} COMP_TYPE=9
_python_argcomplete mcptest
printf '%s\n' "${COMPREPLY[@]% }"
"""
ASK_FISH = 'source ./script; complete -C "$LINE" | string replace -r "\\t.*" ""'


def script(shell: str) -> str:
    done = mcptest("completion", shell)
    assert (done.code, done.err) == (0, "")
    return done.out


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with files, a configuration, and `mcptest` on the way there."""
    folder = tmp_path_factory.mktemp("shell")
    (folder / "suite one.yaml").write_text("")
    (folder / "data").mkdir()
    servers = {"filesystem": {}, "$(touch owned)": {}}
    (folder / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))
    (folder / "bin").mkdir()
    command = folder / "bin" / "mcptest"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m mcptest "$@"\n')
    command.chmod(0o755)
    return folder


@pytest.fixture(scope="module")
def offered(place: Path) -> Offered:
    def of(shell: str, line: str) -> list[str]:
        (place / "script").write_text(script(shell))
        found = shutil.which(shell)
        if found is None:
            pytest.skip(f"{shell} is not installed")
        ask = {"bash": ASK_BASH, "fish": ASK_FISH}[shell]
        bare = {"bash": ["--norc"], "fish": ["--no-config"]}[shell]
        env = {**os.environ, "PATH": f"{place / 'bin'}:{os.environ['PATH']}", "LINE": line}
        done = subprocess.run(
            [found, *bare, "-c", ask],
            cwd=place,
            env=env,
            capture_output=True,
            text=True,
            timeout=BOUND,
        )
        assert done.stderr == ""
        return done.stdout.split("\n")[:-1]

    return of


def test_the_command_prints_a_script_for_each_shell() -> None:
    registers = {
        "bash": "-F _python_argcomplete mcptest\n",
        "zsh": "#compdef mcptest\n",
        "fish": "complete --command mcptest ",
    }
    for shell in SHELLS:
        assert registers[shell] in script(shell)
    assert mcptest("completion", "tcsh").code == 2


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("mcptest expl", ["explain"]),
        ("mcptest compliance inv", ["invariants"]),
        ("mcptest run --form", ["--format"]),
        ("mcptest run --format=js", ["json"]),
        ("mcptest run --format=", ["text", "json", "agent", "tap"]),
        ("mcptest fuzz --server fi", ["filesystem"]),
        ("mcptest run sui", ["suite\\ one.yaml"]),
        ("mcptest run --fixture da", ["data/"]),
        ("mcptest fuzz -- da", ["data/"]),
    ],
)
def test_bash_offers(offered: Offered, line: str, expected: list[str]) -> None:
    assert offered("bash", line) == expected


def test_bash_offers_rules_by_their_family(offered: Offered, place: Path) -> None:
    found = offered("bash", "mcptest explain INV-")
    assert "INV-003" in found
    assert all(name.startswith("INV-") for name in found)
    assert not (place / "owned").exists()


def test_bash_knows_whom_to_ask_after_the_script_is_read(place: Path) -> None:
    (place / "script").write_text(script("bash"))
    done = subprocess.run(
        ["bash", "--norc", "-c", "source ./script && complete -p mcptest"],
        cwd=place,
        capture_output=True,
        text=True,
        timeout=BOUND,
    )
    assert done.stdout.endswith(" -F _python_argcomplete mcptest\n")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("mcptest expl", ["explain"]),
        ("mcptest run --format=js", ["--format=json"]),
        ("mcptest fuzz --server fi", ["filesystem"]),
    ],
)
def test_fish_offers(offered: Offered, line: str, expected: list[str]) -> None:
    assert offered("fish", line) == expected


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
def test_zsh_takes_the_script(place: Path) -> None:
    (place / "script").write_text(script("zsh"))
    done = subprocess.run(
        ["zsh", "-f", "-n", "script"], cwd=place, capture_output=True, text=True, timeout=BOUND
    )
    assert (done.returncode, done.stderr) == (0, "")
