"""Suites that stay loaded, and what a change of a file means for the tests."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from mcptest.commands.watch import run as warm_suites
from mcptest.commands.watch.file_events import fixture_place, source_place
from mcptest.commands.watch.run import Sources, WarmSuites, Wish, affected, uses_fixture
from mcptest.probe.suites.settings import ServerChoice, identity
from mcptest.suite.load import LoadedSuite, load_suites

TEST = """
server: {{command: server, args: [{argument!r}]}}
assert: {{tool: t, args: {{}}, expect: {{not_error: true}}}}
name: {name}
"""


def suite(path: Path, name: str = "one", argument: str = "x") -> Path:
    path.write_text(TEST.format(name=name, argument=argument))
    return path


def names(loaded: LoadedSuite) -> list[str]:
    return [test.name for test in loaded.suite.tests]


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that were really read."""
    read: list[str] = []

    def counted(paths: list[str], **options: Any) -> LoadedSuite:
        read.extend(Path(path).name for path in paths)
        return load_suites(paths, **options)

    monkeypatch.setattr(warm_suites, "load_suites", counted)
    return read


def test_only_files_that_changed_are_read_again(tmp_path: Path, loads: list[str]) -> None:
    for name in "abc":
        suite(tmp_path / f"{name}.yaml", name)
    warm = WarmSuites([str(tmp_path)])
    assert names(warm.refresh()[0]) == ["a", "b", "c"]
    suite(tmp_path / "b.yaml", "a longer name")
    loads.clear()
    loaded, changed = warm.refresh()
    assert names(loaded) == ["a", "a longer name", "c"]
    assert changed == {str(tmp_path / "b.yaml")}
    assert loads == ["b.yaml"]


def test_a_file_that_was_touched_is_read_but_has_not_changed(
    tmp_path: Path, loads: list[str]
) -> None:
    file = suite(tmp_path / "a.yaml")
    warm = WarmSuites([str(tmp_path)])
    warm.refresh()
    loads.clear()
    assert warm.refresh({os.path.realpath(file)})[1] == set()
    assert loads == ["a.yaml"]


def test_a_save_within_one_tick_of_the_clock_is_not_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = suite(tmp_path / "a.yaml", "one")
    monkeypatch.setattr(warm_suites, "signature_of", lambda file: (0, 0, 0, 0))
    warm = WarmSuites([str(tmp_path)])
    warm.refresh()
    suite(file, "two")
    assert names(warm.refresh()[0]) == ["one"]
    assert names(warm.refresh({os.path.realpath(file)})[0]) == ["two"]


def test_a_broken_file_costs_its_own_tests_and_is_told_once(tmp_path: Path) -> None:
    suite(tmp_path / "a.yaml", "a")
    broken = suite(tmp_path / "b.yaml", "b")
    warm = WarmSuites([str(tmp_path)])
    assert warm.refresh()[0].problems == ()
    broken.write_text("assert: [\n")
    loaded, _ = warm.refresh()
    assert names(loaded) == ["a"]
    assert [Path(one.place.file).name for one in loaded.problems] == ["b.yaml"]
    assert warm.refresh()[0].problems == loaded.problems, "nothing that would be told again"
    suite(broken, "b")
    mended, changed = warm.refresh()
    assert names(mended) == ["a", "b"]
    assert mended.problems == ()
    assert changed == {str(broken)}


def test_a_folder_that_is_gone_is_a_problem_until_it_is_back(tmp_path: Path) -> None:
    folder = tmp_path / "suites"
    folder.mkdir()
    suite(folder / "a.yaml", "a")
    warm = WarmSuites([str(folder)])
    warm.refresh()
    folder.rename(tmp_path / "away")
    loaded, _ = warm.refresh()
    assert names(loaded) == []
    assert "can't be read" in loaded.problems[0].message
    (tmp_path / "away").rename(folder)
    back, changed = warm.refresh()
    assert names(back) == ["a"]
    assert changed == {str(folder / "a.yaml")}


# -- what a change affects -----------------------------------------------------------------------


@pytest.fixture
def loaded(tmp_path: Path) -> LoadedSuite:
    suites = tmp_path / "suites"
    suites.mkdir()
    (tmp_path / "data").mkdir()
    suite(suites / "a.yaml", "plain")
    suite(suites / "b.yaml", "with the fixture", "{{fixture}}")
    (suites / "c.yaml").write_text(
        f"name: trace\naudit_log: {tmp_path / 'log.jsonl'}\n"
        "trajectory: [{type: presence, tools: [t]}]\n"
    )
    return load_suites([str(suites)], fixture=str(tmp_path / "data"))


def wish(loaded: LoadedSuite, tmp_path: Path, touched: list[str], files: list[str] = []) -> Wish:  # noqa: B006 - never changed
    root = tmp_path.resolve()
    return affected(
        {str(root / one) for one in touched},
        {str(tmp_path / one) for one in files},
        loaded.suite.tests,
        loaded,
        Sources(fixture_place(str(tmp_path / "data")), (source_place(str(tmp_path / "src")),)),
        ServerChoice(),
    )


def chosen(loaded: LoadedSuite, wanted: Wish) -> list[str]:
    return [test.name for test in loaded.suite.tests if identity(test) in wanted.tests]


@pytest.mark.parametrize(
    ("touched", "files", "expected"),
    [
        (["suites/a.yaml"], ["suites/a.yaml"], ["plain"]),
        (["suites/a.yaml"], [], []),  # saved without a change
        (["data/x/y.txt"], [], ["with the fixture"]),
        (["src/server.py"], [], ["plain", "with the fixture", "trace"]),
        (["log.jsonl"], [], ["trace"]),
        (["somewhere/else"], [], []),
    ],
)
def test_a_change_affects_what_depends_on_it(
    loaded: LoadedSuite, tmp_path: Path, touched: list[str], files: list[str], expected: list[str]
) -> None:
    assert chosen(loaded, wish(loaded, tmp_path, touched, files)) == expected


def test_the_reason_names_what_changed_from_here(
    loaded: LoadedSuite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert wish(loaded, tmp_path, ["src/a.py"]).why == "src/a.py changed"
    two = wish(loaded, tmp_path, ["src/a.py", "src/b.py", "src/c.py"])
    assert two.why == "src/a.py and 2 more changed"


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        (ServerChoice(), False),
        (ServerChoice(server="node x.js {{fixture}}"), True),
        (ServerChoice(command=("x", "{{ fixture }}")), True),
        (ServerChoice(docker="image"), True),
    ],
)
def test_a_fixture_may_be_named_by_the_command_line(
    loaded: LoadedSuite, choice: ServerChoice, expected: bool
) -> None:
    plain = loaded.suite.tests[0]
    assert uses_fixture(plain, choice) is expected
