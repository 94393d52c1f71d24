"""Loading from disk: which files are suites, what is said about the rest, and how fast."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mcptest.suite.load import LoadedSuite, load_suites
from mcptest.suite.reading import SuiteError, render

GOOD = "server: {command: s}\nassert: {tool: t, expect: {not_error: true}}\n"
USES_FIXTURE = GOOD.replace("tool: t,", "tool: t, args: {p: '{{fixture}}'},")
BAD = "server: {command: s}\nassert: {tool: t, expect: {contians: [x]}}\n"


def put(root: Path, **files: str) -> None:
    """Write files; `__` in a name is a folder's end."""
    for name, text in files.items():
        path = root / (name.replace("__", "/") + ".yaml")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def names(loaded: LoadedSuite) -> list[str]:
    return [test.name for test in loaded.suite.tests]


def refused(*paths: object, fixture: str | None = None, keep_going: bool = False) -> list[str]:
    with pytest.raises(SuiteError) as caught:
        load_suites([str(path) for path in paths], fixture=fixture, keep_going=keep_going)
    return [problem.message for problem in caught.value.problems]


def test_a_folder_is_read_recursively_in_byte_order_of_names(tmp_path: Path) -> None:
    put(tmp_path, b=GOOD, B=GOOD, a__z=GOOD, a__deep__er=GOOD, é=GOOD, c__x=GOOD)

    loaded = load_suites([str(tmp_path)])

    assert [os.path.relpath(file, tmp_path) for file in loaded.suite.files] == [
        "B.yaml", "a/deep/er.yaml", "a/z.yaml", "b.yaml", "c/x.yaml", "é.yaml",
    ]  # fmt: skip
    assert names(loaded) == ["B.yaml", "er.yaml", "z.yaml", "b.yaml", "x.yaml", "é.yaml"]


def test_both_suffixes_count_in_any_case_and_nothing_else_does(tmp_path: Path) -> None:
    for name in ("a.yaml", "b.yml", "c.YAML", "d.json", "e.txt", "yaml"):
        (tmp_path / name).write_text(GOOD)

    assert names(load_suites([str(tmp_path)])) == ["a.yaml", "b.yml", "c.YAML"]


@pytest.mark.parametrize(
    "folder", [".hidden", "fixtures", "__snapshots__", ".snapshots", "node_modules"]
)
def test_data_folders_are_never_read(tmp_path: Path, folder: str) -> None:
    put(tmp_path, a=GOOD)
    (tmp_path / folder).mkdir()
    (tmp_path / folder / "x.yaml").write_text("not: a suite")

    assert names(load_suites([str(tmp_path)])) == ["a.yaml"]


def test_the_fixture_folder_is_never_read_whatever_its_name(tmp_path: Path) -> None:
    put(tmp_path, a=USES_FIXTURE, data__x="not: a suite")

    loaded = load_suites([str(tmp_path)], fixture=str(tmp_path / "data"))

    assert names(loaded) == ["a.yaml"]


def test_a_data_folder_that_is_named_itself_is_read(tmp_path: Path) -> None:
    put(tmp_path, fixtures__a=GOOD)

    assert names(load_suites([str(tmp_path / "fixtures")])) == ["a.yaml"]


def test_files_and_folders_in_the_order_given_and_none_twice(tmp_path: Path) -> None:
    put(tmp_path, b=GOOD, a=GOOD, d__c=GOOD)

    loaded = load_suites([str(tmp_path / "b.yaml"), str(tmp_path), str(tmp_path / "d")])

    assert names(loaded) == ["b.yaml", "a.yaml", "c.yaml"]


def test_a_link_to_a_folder_is_not_followed_but_said(tmp_path: Path) -> None:
    put(tmp_path, a=GOOD)
    (tmp_path / "loop").symlink_to(tmp_path)

    loaded = load_suites([str(tmp_path)])

    assert names(loaded) == ["a.yaml"]
    assert [w.message for w in loaded.warnings] == ["a link to a folder is not followed"]


def test_a_link_to_a_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "away").mkdir()
    put(tmp_path, away__real=GOOD)
    (tmp_path / "suite").mkdir()
    (tmp_path / "suite" / "a.yaml").symlink_to(tmp_path / "away" / "real.yaml")

    assert names(load_suites([str(tmp_path / "suite")])) == ["a.yaml"]


def test_what_does_not_exist_is_a_problem(tmp_path: Path) -> None:
    assert refused(tmp_path / "nope") == ["can't be read: No such file or directory"]
    assert refused("\0") == ["is not a valid path"]


def test_a_broken_link_is_a_problem(tmp_path: Path) -> None:
    put(tmp_path, a=GOOD)
    (tmp_path / "b.yaml").symlink_to(tmp_path / "gone")

    assert refused(tmp_path) == ["can't be read: No such file or directory"]


def test_a_named_file_that_is_no_yaml_file_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text(GOOD)

    assert refused(tmp_path / "x.txt") == ["is not a YAML file"]


def test_a_folder_without_suites_is_a_problem(tmp_path: Path) -> None:
    put(tmp_path, a__b=GOOD)
    (tmp_path / "empty").mkdir()

    assert refused(tmp_path / "empty", tmp_path / "a") == [
        "there is no .yaml or .yml file in this folder"
    ]


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_an_unreadable_file_is_a_problem(tmp_path: Path) -> None:
    put(tmp_path, a=GOOD, b=GOOD)
    (tmp_path / "a.yaml").chmod(0)

    assert refused(tmp_path) == ["can't be read: Permission denied"]


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    put(tmp_path, a=GOOD)
    os.mkfifo(tmp_path / "b.yaml")

    assert refused(tmp_path) == ["can't be read: it is a pipe, not a file"]


def test_the_problems_of_all_files_are_told_at_once(tmp_path: Path) -> None:
    put(tmp_path, a=BAD, b="", c=GOOD, d=BAD)

    assert refused(tmp_path) == [
        "unknown key contians in expect", "the file is empty", "unknown key contians in expect",
    ]  # fmt: skip


def test_with_keep_going_the_sound_rest_is_loaded_beside_the_problems(tmp_path: Path) -> None:
    put(tmp_path, a=BAD, b=GOOD)

    loaded = load_suites([str(tmp_path), str(tmp_path / "nope")], keep_going=True)

    assert names(loaded) == ["b.yaml"]
    assert len(loaded.problems) == 2


def test_with_keep_going_a_suite_keeps_the_tests_that_are_sound(tmp_path: Path) -> None:
    tests = "tests:\n  - {name: a, assert: {tool: t, expect: {not_error: true}}}\n"
    put(tmp_path, a="server: {command: s}\n" + tests + "  - {name: b}\n")

    assert names(load_suites([str(tmp_path)], keep_going=True)) == ["a"]


@pytest.mark.parametrize("shared", ["server: {comand: s}", "server: {}", "defaults: {timeout: x}"])
def test_with_keep_going_no_test_runs_on_broken_common_ground(tmp_path: Path, shared: str) -> None:
    tests = "tests:\n  - {name: a, assert: {tool: t, expect: {not_error: true}}}\n"
    put(tmp_path, a=f"{shared}\n" + tests, b=GOOD)

    assert names(load_suites([str(tmp_path)], keep_going=True)) == ["b.yaml"]


def test_keep_going_with_nothing_left_is_an_error(tmp_path: Path) -> None:
    put(tmp_path, a=BAD)

    assert refused(tmp_path, keep_going=True) == ["unknown key contians in expect"]


def test_equal_names_are_allowed_with_a_warning_that_names_both_places(tmp_path: Path) -> None:
    put(tmp_path, a="name: same\n" + GOOD, b="name: same\n" + GOOD)

    loaded = load_suites([str(tmp_path)])

    assert names(loaded) == ["same", "same"]
    (warning,) = loaded.warnings
    assert render(warning) == (
        f"{tmp_path}/b.yaml: warning: another test has the name 'same'\n"
        f"  it is at {tmp_path}/a.yaml:1:1"
    )


def test_a_file_name_that_is_no_text_is_shown_and_not_sent_raw(tmp_path: Path) -> None:
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.yaml")).write_text("")

    with pytest.raises(SuiteError) as caught:
        load_suites([str(tmp_path)])

    caught.value.message.encode("utf-8")
    assert "\\udcff.yaml: the file is empty" in caught.value.message


def test_a_thousand_bad_files_are_counted_and_not_all_kept(tmp_path: Path) -> None:
    for number in range(1_100):
        (tmp_path / f"{number:04}.yaml").write_text("")

    messages = refused(tmp_path)

    assert len(messages) == 1_001
    assert messages[-1] == "100 more problems in this and other files"


def test_the_command_of_a_server_that_is_replaced_may_name_a_fixture(tmp_path: Path) -> None:
    put(tmp_path, a=GOOD.replace("command: s", "command: s, args: ['{{fixture}}']"))
    assert names(load_suites([str(tmp_path)], server_given=True)) == ["a.yaml"]
    assert "{{fixture}}" in refused(tmp_path)[0]


def test_the_environment_of_a_server_that_is_replaced_is_still_used(tmp_path: Path) -> None:
    put(tmp_path, a=GOOD.replace("command: s", "command: s, env: {A: '{{fixture}}'}"))
    with pytest.raises(SuiteError, match="fixture"):
        load_suites([str(tmp_path)], server_given=True)


def test_one_file_may_hold_many_tests(tmp_path: Path) -> None:
    row = "  - {name: t%d, assert: {tool: add, args: {a: %d, b: 2}, expect: {not_error: true}}}"
    rows = "\n".join(row % (n, n) for n in range(7_000))
    (tmp_path / "s.yaml").write_text(f"server: {{command: x}}\ntests:\n{rows}\n")
    assert len(load_suites([str(tmp_path)]).suite.tests) == 7_000
