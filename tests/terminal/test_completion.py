"""What may come next on a command line, from what argparse knows."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from mcptest.commands.app import COMMANDS
from mcptest.commands.completion.cli import server_names
from mcptest.rules.catalogue import all_rules
from mcptest.rules.lint.linter import all_lint_rules
from tests.e2e.driving import BOUND

Offered = Callable[..., list[str]]


@pytest.fixture
def offered(tmp_path: Path) -> Offered:
    """What a shell is told, in the folder of the test, when this stands before the cursor."""

    def of(rest: str, shell: str = "bash") -> list[str]:
        line, told = f"mcptest {rest}", tmp_path / "told"
        env = {
            **os.environ,
            "_ARGCOMPLETE": "1",
            "_ARGCOMPLETE_SHELL": shell,
            "_ARGCOMPLETE_IFS": "\n",
            "_ARGCOMPLETE_COMP_WORDBREAKS": " =:",
            "_ARGCOMPLETE_SUPPRESS_SPACE": "1",
            "_ARGCOMPLETE_STDOUT_FILENAME": str(told),
            "COMP_LINE": line,
            "COMP_POINT": str(len(line)),
        }
        if shell == "fish":
            env["_ARGCOMPLETE_DFS"] = "\t"
        command = [sys.executable, "-m", "mcptest"]
        here = tmp_path / "here"
        here.mkdir(exist_ok=True)
        done = subprocess.run(command, cwd=here, env=env, capture_output=True, timeout=BOUND)
        assert (done.returncode, done.stdout) == (0, b"")
        return told.read_text().splitlines()

    return of


def test_commands_and_what_is_below_them(offered: Offered) -> None:
    assert offered("") == list(COMMANDS)
    assert offered("comp") == ["compliance", "completion"]
    assert offered("compliance ") == ["run", "invariants", "rules", "diff"]
    assert offered("compliance in") == ["invariants"]
    assert offered("--v") == ["--version"]


def test_options_by_their_beginning(offered: Offered) -> None:
    assert offered("run --jun") == ["--junit"]
    assert offered("compliance run --jun") == ["--junit"]
    assert offered("run --tag a --ta") == ["--tag", "--tap"]
    assert offered("run --hea") == ["--header"]  # --headers is for those who know it


def test_values_of_options(offered: Offered) -> None:
    assert offered("run --format ") == ["text", "json", "agent", "tap"]
    assert offered("run --format=js") == ["json"]
    assert offered("doctor --to 2025") == ["2025-03-26", "2025-06-18", "2025-11-25"]
    assert offered("compliance diff 2024") == ["2024-11-05"]
    assert offered("compliance diff 2024-11-05 dr") == ["draft"]
    assert offered("compliance run --rule PROTO-00")[0] == "PROTO-001"
    assert "tools_call" in offered("conformance client --scenario tools")
    assert "python-sdk" in offered("conformance driver py")
    assert offered("run --timeout ") == []


def test_positionals(offered: Offered) -> None:
    assert offered("completion z") == ["zsh"]
    assert offered("completion zsh ") == []
    assert "suite" in offered("schema ")
    assert {rule.id for rule in all_rules()} | {rule.code for rule in all_lint_rules()} <= set(
        offered("explain ")
    )
    assert offered("explain inv-00")[:2] == ["INV-001", "INV-002"]


def test_fish_is_told_what_a_value_means(offered: Offered) -> None:
    assert offered("compliance in", "fish") == ["invariants\tjudge captures, offline"]


def test_files_and_folders(offered: Offered, tmp_path: Path) -> None:
    (tmp_path / "here" / "data").mkdir(parents=True)
    (tmp_path / "here" / "date.yaml").write_text("")
    assert sorted(offered("run dat")) == ["data/", "date.yaml"]
    assert offered("run --fixture dat") == ["data/"]
    assert sorted(offered("run --junit dat")) == ["data/", "date.yaml"]
    assert sorted(offered("run -- node dat")) == ["data/", "date.yaml"]
    assert offered("run -- node --jun") == []  # an option of somebody else's command


def test_servers_are_named_by_the_configuration_of_the_folder(
    offered: Offered, tmp_path: Path
) -> None:
    assert offered("fuzz --server ") == ["demo"]
    servers = {"files": {}, "time": {}, "$(touch owned)": {}}
    (tmp_path / "here" / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))
    assert offered("fuzz --server ") == ["demo", "files", "time"]
    assert offered("fuzz --server t") == ["time"]
    assert offered("fuzz t") == ["time"]
    (tmp_path / "here" / "other.json").write_text(json.dumps({"mcpServers": {"weather": {}}}))
    assert offered("fuzz --mcp-config other.json --server w") == ["weather"]


@pytest.mark.parametrize(
    "name", ["a b", "$(touch owned)", "`x`", "x;y", "a\nb", "\x1b[2J", "-rf", "~", "", "a'b", "é"]
)
def test_a_name_that_would_have_to_be_quoted_is_not_offered(name: str, tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps({"mcpServers": {name: {}, "good": {}}}))
    assert server_names(str(path)) == ["good"]


@pytest.mark.parametrize("text", ["", "[", "[]", '{"mcpServers": 7}', "[" * 100_000, "\xff"])
def test_a_configuration_that_is_broken_offers_nothing(text: str, tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(text, encoding="latin-1")
    assert server_names(str(path)) == []
    assert server_names(str(tmp_path)) == []
