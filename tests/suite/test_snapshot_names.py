"""Golden files lie beside their suites, and never in each other's place."""

from __future__ import annotations

import os

import pytest

from mcptest.suite import model
from mcptest.suite.golden import golden_files
from mcptest.suite.model import Expect, ToolBlock
from mcptest.suite.reading import Place


def a_test(file: str, name: str = "t", line: int = 1, column: int = 1) -> model.Test:
    return model.Test(name, ToolBlock("tool", {}, expect=Expect()), Place(file, line, column))


def paths(*tests: model.Test) -> list[str]:
    found = golden_files(tests)
    return [found[test.place].path for test in tests]


def test_a_file_that_is_one_test_has_the_golden_file_of_its_name() -> None:
    assert paths(a_test("evals/echo.yaml", "whatever/..")) == ["evals/.snapshots/echo.snap"]
    assert paths(a_test("echo.yaml")) == [".snapshots/echo.snap"]


def test_tests_of_one_file_have_a_folder_of_their_own() -> None:
    found = paths(a_test("e/s.yaml", "one", 2, 5), a_test("e/s.yaml", "two", 3, 5))
    assert found == ["e/.snapshots/s.snaps/one.snap", "e/.snapshots/s.snaps/two.snap"]
    alone = paths(a_test("e/s.yaml", "one", 2, 5))
    assert alone == found[:1], "the file of a test does not depend on how many follow it"


def test_suites_whose_names_differ_only_in_their_ending_are_kept_apart() -> None:
    names = ["a.yaml", "a.yml", "a.yml.yaml", "a.yaml.yaml", "a.YAML", "a.snap.yaml", ".yaml"]
    found = paths(*(a_test(name) for name in names))
    assert len(set(found)) == len(names)


HOSTILE = ["../../x", "/etc/passwd", "..", ".", "", "a\0b", "CON", "a" * 5000, "a/b", "a_b", "A_B"]


def test_whatever_tests_are_called_their_files_stay_in_the_folder() -> None:
    tests = [a_test("e/s.yaml", name, line) for line, name in enumerate([*HOSTILE, *HOSTILE], 1)]
    found = paths(*tests)
    assert len({path.lower() for path in found}) == len(tests)
    for path in found:
        assert os.path.normpath(path) == path
        assert path.startswith("e/.snapshots/s.snaps/")
        assert path.count("/") == 3
        assert len(path) < 120
        assert path.isprintable()


@pytest.mark.parametrize("name", ["échantillon", "例", "name with spaces"])
def test_the_same_test_has_the_same_file_each_time(name: str) -> None:
    tests = [a_test("e/s.yaml", name, 1, 3), a_test("e/s.yaml", "other", 2, 3)]
    assert paths(*tests) == paths(*tests)
    assert paths(*reversed(tests)) == list(reversed(paths(*tests)))
