"""A fingerprint is the same exactly when a loader would see the same."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from mcptest.suite import fingerprint as fingerprints
from mcptest.suite.fingerprint import Fingerprint, look_again
from mcptest.suite.load import load_suites

TEST = """
name: {name}
server: {{command: never-started}}
assert: {{tool: t, expect: {{not_error: true}}}}
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    folder = tmp_path / "suite"
    for place in ("a.yaml", "sub/b.yaml", "data/c.yaml"):
        file = folder / place
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(TEST.format(name=file.stem))
    (folder / "notes").write_text("no suite")
    return folder


def seen_by_a_loader(suite: Path, fixture: str | None = None) -> Fingerprint:
    fingerprint = Fingerprint(fixture)
    load_suites([str(suite)], fixture=fixture, seen_by=fingerprint)
    return fingerprint


def test_it_is_the_same_when_nothing_has_changed(suite: Path) -> None:
    for fixture in (None, str(suite / "data")):
        seen = seen_by_a_loader(suite, fixture)
        assert seen.digest is not None
        assert look_again(seen.places, fixture) == seen.digest


def change_a_byte(suite: Path) -> None:
    """Of the same size, in the same moment: nothing but the bytes tells."""
    file = suite / "sub/b.yaml"
    before = file.stat()
    file.write_text(file.read_text().replace("tool: t", "tool: u"))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def swap_two_files(suite: Path) -> None:
    first, second = suite / "a.yaml", suite / "sub/b.yaml"
    texts = first.read_text(), second.read_text()
    second.write_text(texts[0])
    first.write_text(texts[1])


def make_a_folder_of_a_file(suite: Path) -> None:
    (suite / "notes").unlink()
    (suite / "notes").mkdir()
    (suite / "notes/d.yaml").write_text("nonsense")


def make_a_link_of_a_folder(suite: Path) -> None:
    (suite / "sub").rename(suite.parent / "elsewhere")
    (suite / "sub").symlink_to(suite.parent / "elsewhere")


def make_another_folder_the_fixture(suite: Path) -> None:
    (suite / "data").rename(suite / "moved")
    (suite / "sub").rename(suite / "data")
    (suite / "moved").rename(suite / "sub")


CHANGES: list[Callable[[Path], object]] = [
    change_a_byte,
    swap_two_files,
    make_a_folder_of_a_file,
    make_a_link_of_a_folder,
    make_another_folder_the_fixture,
    lambda suite: (suite / "new.yaml").write_text(TEST.format(name="new")),
    lambda suite: (suite / "sub/.hidden").write_text(""),
    lambda suite: (suite / "a.yaml").unlink(),
    lambda suite: (suite / "a.yaml").rename(suite / "A.yaml"),
    lambda suite: (suite / "a.yaml").write_text(""),
]


@pytest.mark.parametrize("change", CHANGES)
def test_whatever_a_loader_could_notice_changes_it(
    suite: Path, change: Callable[[Path], object]
) -> None:
    fixture = str(suite / "data")
    seen = seen_by_a_loader(suite, fixture)
    change(suite)
    assert look_again(seen.places, fixture) != seen.digest


def test_without_the_fixture_its_folder_is_a_part_of_the_suite(suite: Path) -> None:
    seen = seen_by_a_loader(suite, str(suite / "data"))
    assert look_again(seen.places, None) != seen.digest


def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(suite: Path) -> None:
    seen = seen_by_a_loader(suite)
    (suite / "a.yaml").unlink()
    os.mkfifo(suite / "a.yaml")
    assert look_again(seen.places, None) is None


def test_there_is_none_of_what_can_not_be_looked_at_again(
    suite: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (suite / "z.yaml").hardlink_to(suite / "a.yaml")  # read once, under its first name
    assert seen_by_a_loader(suite).digest is None
    (suite / "z.yaml").unlink()
    assert seen_by_a_loader(suite).digest is not None
    monkeypatch.setattr(fingerprints, "MOST_BYTES", 100)
    assert seen_by_a_loader(suite).digest is None


def test_there_is_none_of_too_many_places(suite: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fingerprints, "MOST_PLACES", 3)
    seen = seen_by_a_loader(suite)
    assert seen.digest is None
    assert len(seen.places) == 3
