"""Starter suites say what they are meant to say, whatever a server calls its things."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from mcptest.probe.starter_suites import place_starters, written_server
from mcptest.suite.load import Given, load_suites
from mcptest.suite.model import PromptRequest, PromptsBlock, ResourcesBlock, ToolBlock
from mcptest.suite.starters import FileNames, Starter, WrittenServer, starter_yaml
from mcptest.transport.target import Target
from tests.support.suites import load_text

SERVER = WrittenServer({"command": "server", "args": ["--flag", "a b", "x: y"]})
SERVER_GIVEN = Given(fixture=True, server=True)

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30)
scalars = st.none() | st.booleans() | st.integers(-(2**60), 2**60) | texts
numbers = st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    scalars | numbers,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


def loaded(text: str) -> Any:
    tests, source = load_text(text.encode(), "starter.yaml", SERVER_GIVEN)
    assert source.finish() == []
    (test,) = tests
    return test


def holds_braces(value: Any) -> bool:
    return "{{" in repr(value)


@given(name=names, args=st.dictionaries(texts, values, max_size=4))
def test_whatever_a_tool_is_called_and_takes_the_file_says_it(
    name: str, args: dict[str, Any]
) -> None:
    test = loaded(starter_yaml(Starter("tool", name, args), SERVER, "t"))
    assert isinstance(test.block, ToolBlock)
    if not holds_braces([name, args]):
        assert test.block.tool == name
        assert test.block.args == args
        assert not test.skip
    assert test.server.args == ("--flag", "a b", "x: y")


@given(name=names, args=st.dictionaries(texts, values, max_size=4))
def test_another_reader_of_yaml_reads_the_same(name: str, args: dict[str, Any]) -> None:
    document = yaml.safe_load(starter_yaml(Starter("tool", name, args), SERVER, "t"))
    if not holds_braces([name, args]):
        assert document["assert"]["tool"] == name
        assert document["assert"].get("args", {}) == args


def test_prompts_and_resources_have_their_own_blocks() -> None:
    prompt = loaded(starter_yaml(Starter("prompt", "p", {"who": "me"}), SERVER, "t"))
    assert isinstance(prompt.block, PromptsBlock)
    assert prompt.block.get == PromptRequest("p", {"who": "me"})
    resource = loaded(starter_yaml(Starter("resource", "a://b"), SERVER, "t"))
    assert isinstance(resource.block, ResourcesBlock)
    assert resource.block.read == "a://b"


def test_the_first_line_is_for_editors() -> None:
    first = starter_yaml(Starter("tool", "x"), SERVER, "t").splitlines()[0]
    assert first.startswith("# yaml-language-server: $schema=")


def test_braces_that_a_suite_would_read_as_a_variable_skip_the_test_and_say_so() -> None:
    text = starter_yaml(Starter("tool", "x", {"a": "{{name}}"}), SERVER, "t")
    assert loaded(text).skip
    assert "# skipped: a value has braces" in text


def test_the_fixture_is_a_variable_only_where_we_meant_it() -> None:
    args = {"path": "{{fixture}}/a"}
    ours = loaded(starter_yaml(Starter("tool", "x", args, on_fixture=True), SERVER, "t"))
    assert ours.block.args == args
    assert not ours.skip
    assert loaded(starter_yaml(Starter("tool", "x", args), SERVER, "t")).skip


def test_a_comment_can_not_become_yaml() -> None:
    text = starter_yaml(Starter("tool", "x", comments=("a\nskip: true",)), SERVER, "t")
    assert not loaded(text).skip


# -- file names ----------------------------------------------------------------------------


def test_plain_names_stay_as_they_are() -> None:
    given_out = FileNames()
    assert given_out.name_for("read_file") == "read_file.yaml"
    assert given_out.name_for("get-sum") == "get-sum.yaml"


@given(st.lists(st.text(max_size=12), max_size=12))
def test_no_name_leads_out_of_the_folder_and_none_is_given_twice(subjects: list[str]) -> None:
    given_out = FileNames()
    files = [given_out.name_for(subject) for subject in subjects]
    assert len({file.lower() for file in files}) == len(subjects)
    for file in files:
        assert Path(file).name == file
        assert file.isascii()
        assert not file.startswith((".", "-"))


@pytest.mark.parametrize(
    "subject", ["../../etc/passwd", "/abs", "a\\b", "con", "NUL", ".", "", "a" * 5000, "a\0b", "é"]
)
def test_awkward_names_become_harmless_ones(subject: str) -> None:
    file = FileNames().name_for(subject)
    assert Path(file).name == file
    assert len(file) < 100
    assert file.lower() not in {"con.yaml", "nul.yaml", ".yaml"}


def test_names_that_differ_by_case_or_by_what_was_replaced_do_not_collide() -> None:
    given_out = FileNames()
    files = [given_out.name_for(one) for one in ("Echo", "echo", "e/cho", "e.cho", "e cho")]
    assert len({file.lower() for file in files}) == 5


def test_many_equal_names_take_no_time_to_tell_apart() -> None:
    given_out = FileNames()
    assert len({given_out.name_for("same") for _ in range(10_000)}) == 10_000


# -- placing -------------------------------------------------------------------------------


def test_a_hostile_list_of_tools_becomes_a_suite_that_loads(tmp_path: Path) -> None:
    hostile = [
        "../up",
        "a: b",
        "- x",
        "# no",
        "{{fixture}}",
        "é\u202e",
        "\x1b[31m",
        "x" * 3000,
        "=",
    ]
    folder = tmp_path / "evals"
    placed = place_starters(folder, [Starter("tool", name) for name in hostile], SERVER)
    assert [one.how for one in placed] == ["created"] * len(hostile)
    suite = load_suites([str(folder)], fixture=str(tmp_path)).suite
    assert {getattr(test.block, "tool", "") for test in suite.tests} == set(hostile)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["evals"]


def test_what_no_file_can_say_is_left_out_and_named(tmp_path: Path) -> None:
    placed = place_starters(tmp_path, [Starter("tool", "a\ud800"), Starter("tool", "b")], SERVER)
    assert [one.how for one in placed] == ["left out", "created"]
    assert "surrogate" in placed[0].reason


def test_a_file_that_exists_is_kept_unless_it_is_to_be_replaced(tmp_path: Path) -> None:
    (tmp_path / "echo.yaml").write_text("mine")
    assert place_starters(tmp_path, [Starter("tool", "echo")], SERVER)[0].how == "kept"
    assert (tmp_path / "echo.yaml").read_text() == "mine"
    replaced = place_starters(tmp_path, [Starter("tool", "echo")], SERVER, overwrite=True)
    assert replaced[0].how == "replaced"
    assert "tool: echo" in (tmp_path / "echo.yaml").read_text()


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("precious")
    folder = tmp_path / "evals"
    folder.mkdir()
    (folder / "echo.yaml").symlink_to(outside)
    (folder / "add.yaml").symlink_to(tmp_path / "nowhere")
    starters = [Starter("tool", "echo"), Starter("tool", "add")]
    assert [one.how for one in place_starters(folder, starters, SERVER)] == ["kept", "kept"]
    place_starters(folder, starters, SERVER, overwrite=True)
    assert outside.read_text() == "precious"
    assert not (tmp_path / "nowhere").exists()


# -- the server block ----------------------------------------------------------------------


def test_secrets_become_variables_of_the_environment() -> None:
    env = {"API_KEY": "s3cr3t", "DEBUG": "1$x"}
    server = written_server(Target(way="stdio", label="x", command=("srv", "a"), env=env))
    text = starter_yaml(Starter("tool", "echo"), server, "t")
    assert "s3cr3t" not in text
    assert "# needs in the environment: API_KEY" in text
    test = loaded(text)
    assert test.server.env == {"API_KEY": "${API_KEY}", "DEBUG": "1$$x"}
    assert test.skip_unless_env == "API_KEY"


def test_headers_with_the_name_of_a_secret_are_never_written_out() -> None:
    headers = {"Authorization": "Bearer abc", "X-Team": "blue"}
    target = Target(way="http", label="x", url="http://127.0.0.1/mcp", headers=headers)
    server = written_server(target)
    text = starter_yaml(Starter("tool", "echo"), server, "t")
    assert "abc" not in text
    assert loaded(text).server.headers["Authorization"] == "${MCP_AUTHORIZATION}"
    assert loaded(text).server.headers["X-Team"] == "blue"
    assert server.needs == ("MCP_AUTHORIZATION",)


def test_a_command_that_holds_a_secret_is_not_written_at_all() -> None:
    target = Target(way="stdio", label="x", command=("srv", "--key=topsecretvalue"), env={})
    hidden = Target(
        **{
            **{f: getattr(target, f) for f in target.__struct_fields__},
            "referenced": ("topsecretvalue",),
        }
    )
    text = starter_yaml(Starter("tool", "echo"), written_server(hidden), "t")
    assert "topsecretvalue" not in text
    assert "--server" in text


def test_many_files_are_brought_to_the_disk_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One by one, those of a server with hundreds of tools would outlast the limit of a command."""
    both = threading.Barrier(2, timeout=20)
    fsync = os.fsync
    waited: list[int] = []

    def slowly(descriptor: int) -> None:
        if len(waited) < 2:
            waited.append(descriptor)
            both.wait()
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", slowly)
    starters = [Starter("tool", "echo", {"n": number}) for number in range(20)]
    placed = place_starters(tmp_path / "made", starters, SERVER)
    assert [one.how for one in placed] == ["created"] * 20
    assert len({one.file for one in placed}) == 20
    assert len([*(tmp_path / "made").glob("*.yaml")]) == 20
