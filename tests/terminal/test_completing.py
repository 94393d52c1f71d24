"""What may come next on a command line, from what argparse knows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mcptest.cli import completion_memory
from mcptest.cli.app import COMMANDS
from mcptest.cli.completing import complete, joined, server_names
from mcptest.cli.completion_shape import shape_of_all


@pytest.fixture(scope="module")
def shape() -> dict[str, Any]:
    return shape_of_all()


@pytest.fixture
def offered(shape: dict[str, Any]) -> Any:
    def of(line: str, shell: str = "bash") -> list[str]:
        words = line.split(" ")
        return [found.partition("\t")[0] for found in complete(shape, words, shell)]

    return of


def test_commands_and_what_is_below_them(offered: Any) -> None:
    assert offered("") == list(COMMANDS)
    assert offered("comp") == ["compliance", "completion"]
    assert offered("compliance ") == ["run", "invariants", "rules", "diff"]
    assert offered("compliance in") == ["invariants"]
    assert offered("--v") == ["--version"]
    assert offered("nonsense ") == []


def test_options_by_their_beginning_each_once_unless_it_may_repeat(offered: Any) -> None:
    assert offered("run --jun") == ["--junit"]
    assert offered("compliance run --jun") == ["--junit"]
    assert offered("run --junit x.xml --jun") == []
    assert offered("run --tag a --ta") == ["--tag", "--tap"]
    assert "--headers" not in offered("run --hea")  # it is for those who know it


def test_values_of_options(offered: Any) -> None:
    assert offered("run --format ") == ["text", "json", "agent", "tap"]
    assert offered("doctor --to 2025") == ["2025-03-26", "2025-06-18", "2025-11-25"]
    assert offered("compliance diff 2024") == ["2024-11-05"]
    assert offered("compliance diff 2024-11-05 dr") == ["draft"]
    assert offered("compliance run --rule PROTO-00")[0] == "PROTO-001"
    assert "tools_call" in offered("conformance client --scenario tools")
    assert offered("run --timeout ") == []
    assert offered("run --junit ") == [":file"]
    assert offered("run --fixture ") == [":folder"]


def test_positionals(offered: Any) -> None:
    assert offered("run ") == [":file"]
    assert offered("run one.yaml ") == [":file"]
    assert offered("completion z") == ["zsh"]
    assert offered("completion zsh ") == []
    assert "suite" in offered("schema ")
    assert {"INV-001", "E101"} <= set(offered("explain "))
    assert offered("explain inv-00")[:2] == ["INV-001", "INV-002"]


def test_behind_two_dashes_it_is_somebody_elses_command(offered: Any) -> None:
    assert offered("run -- node --ins") == [":file"]


def test_an_option_and_its_value_in_one_word_for_each_shell(offered: Any) -> None:
    assert offered("run --format=js", "zsh") == ["json"]
    assert offered("run --format=js", "fish") == ["--format=json"]
    assert offered("run --format = js", "bash") == ["json"]
    assert offered("run --format =", "bash") == ["text", "json", "agent", "tap"]
    assert joined(["--a", "=", "b", "c"]) == ["--a", "b", "c"]


def test_servers_are_named_by_the_configuration_of_the_folder(
    offered: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert offered("fuzz --server ") == ["demo", ":file"]
    Path(".mcp.json").write_text(json.dumps({"mcpServers": {"files": {}, "time": {}}}))
    assert offered("fuzz --server ") == ["demo", "files", "time", ":file"]
    assert offered("fuzz --server t") == ["time", ":file"]
    Path("other.json").write_text(json.dumps({"mcpServers": {"weather": {}}}))
    assert offered("fuzz --mcp-config other.json --server w") == ["weather", ":file"]


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


def test_no_candidate_could_do_harm_on_a_command_line(shape: dict[str, Any]) -> None:
    lines = [[""], ["run", "--"], ["explain", ""], ["conformance", "client", "--scenario", ""]]
    for words in lines:
        for line in complete(shape, words):
            assert all(part.isprintable() for part in line.split("\t"))
            value = line.partition("\t")[0]
            assert all(letter.isalnum() or letter in "-_./:" for letter in value), value


def test_what_is_known_is_kept_until_something_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    made: list[int] = []

    def shape() -> dict[str, Any]:
        made.append(1)
        return {"commands": {}}

    monkeypatch.setattr("mcptest.cli.completion_shape.shape_of_all", shape)
    assert completion_memory.known_shape() == {"commands": {}}
    assert completion_memory.known_shape() == {"commands": {}}
    assert len(made) == 1
    monkeypatch.setattr(completion_memory.mcptest, "__version__", "another")
    completion_memory.known_shape()
    assert len(made) == 2
    (tmp_path / "mcptest" / "completion.json").write_text("{not json")
    completion_memory.known_shape()
    assert len(made) == 3
    assert [path.name for path in (tmp_path / "mcptest").iterdir()] == ["completion.json"]


def test_without_a_place_to_keep_it_there_is_still_an_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("mcptest.cli.completion_shape.shape_of_all", lambda: {"commands": {}})
    for home in ("/dev/null", ""):
        monkeypatch.setenv("XDG_CACHE_HOME", "")
        monkeypatch.setenv("HOME", home)
        assert completion_memory.known_shape() == {"commands": {}}
