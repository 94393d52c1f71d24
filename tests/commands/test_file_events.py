"""Changes below watched places, however they are made: told by the kernel, and looked for."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mcptest.commands.watch import file_events
from mcptest.commands.watch.file_events import (
    Changes,
    Inotify,
    NotifiedChanges,
    PolledChanges,
    Watched,
    changes_below,
    fixture_place,
    source_place,
    suite_place,
)
from mcptest.transport.files import replace_file

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux's")
WAYS = [
    pytest.param(NotifiedChanges, marks=on_linux, id="told"),
    pytest.param(PolledChanges, id="looked"),
]
Way = Callable[..., Changes]


@contextlib.contextmanager
def watching(way: Way, *places: Watched) -> Iterator[Changes]:
    changes = PolledChanges(places, 1.0) if way is PolledChanges else way(places)
    with contextlib.closing(changes):
        yield changes


def names(changes: Changes, folder: Path) -> list[str]:
    return sorted(os.path.relpath(path, folder) for path in changes.read())


def write(path: Path, text: str = "new content") -> None:
    path.write_text(text)


def rename_over(path: Path) -> None:
    beside = path.with_name(f".{path.name}.swp")
    beside.write_text("renamed over it")
    beside.replace(path)


def delete_and_create(path: Path) -> None:
    path.unlink()
    path.write_text("created again")


def like_vim(path: Path) -> None:
    path.with_name("4913").write_text("")
    path.with_name("4913").unlink()
    path.rename(path.with_name(path.name + "~"))
    path.write_text("as vim does it")
    path.with_name(path.name + "~").unlink()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("save", [write, rename_over, delete_and_create, like_vim])
@pytest.mark.parametrize("named", ["folder", "file"])
def test_every_way_to_save_a_file_is_one_change_of_it(
    way: Way, save: Callable[[Path], None], named: str, tmp_path: Path
) -> None:
    file = tmp_path / "sub" / "a.yaml"
    file.parent.mkdir()
    file.write_text("old")
    with watching(way, suite_place(str(tmp_path if named == "folder" else file))) as changes:
        assert names(changes, tmp_path) == []
        for _ in range(2):  # the file that took its place is watched as well
            save(file)
            assert names(changes, tmp_path) == ["sub/a.yaml"]
            assert names(changes, tmp_path) == []
            os.utime(file, ns=(1, 1))  # what is looked for is seen even within one tick
            changes.read()


@pytest.mark.parametrize("way", WAYS)
def test_what_does_not_matter_is_no_change(way: Way, tmp_path: Path) -> None:
    (tmp_path / "fixtures").mkdir()
    (tmp_path / ".git").mkdir()
    with watching(way, suite_place(str(tmp_path))) as changes:
        for name in ("notes.txt", ".a.yaml.swp", "fixtures/b.yaml", ".git/c.yaml", "#d.yaml#"):
            (tmp_path / name).write_text("x")
        (tmp_path / "empty").mkdir()
        assert names(changes, tmp_path) == []
        (tmp_path / "log.jsonl").write_text("x")  # a trajectory may be about it
        assert names(changes, tmp_path) == ["log.jsonl"]


@pytest.mark.parametrize("way", WAYS)
def test_what_is_made_from_sources_is_no_source(way: Way, tmp_path: Path) -> None:
    (tmp_path / "venv").mkdir()
    (tmp_path / "venv" / "pyvenv.cfg").write_text("")
    with watching(way, source_place(str(tmp_path))) as changes:
        (tmp_path / "__pycache__").mkdir()
        (tmp_path / "__pycache__" / "server.pyc").write_text("x")
        (tmp_path / "venv" / "module.py").write_text("x")
        assert names(changes, tmp_path) == []
        (tmp_path / "server.js").write_text("x")
        assert names(changes, tmp_path) == ["server.js"]


@pytest.mark.parametrize("way", WAYS)
def test_a_file_that_is_put_whole_is_one_change_and_not_one_of_a_file_without_a_name(
    way: Way, tmp_path: Path
) -> None:
    with watching(way, source_place(str(tmp_path))) as changes:
        replace_file(tmp_path / "server.js", b"x")
        assert names(changes, tmp_path) == ["server.js"]


@pytest.mark.parametrize("way", WAYS)
def test_all_of_a_fixture_matters(way: Way, tmp_path: Path) -> None:
    with watching(way, fixture_place(str(tmp_path))) as changes:
        (tmp_path / ".hidden").write_text("x")
        assert names(changes, tmp_path) == [".hidden"]
        (tmp_path / ".hidden").unlink()
        assert names(changes, tmp_path) == [".hidden"]


@pytest.mark.parametrize("way", WAYS)
def test_a_folder_that_comes_with_files_in_it_is_seen_and_watched(way: Way, tmp_path: Path) -> None:
    made = tmp_path / "elsewhere" / "deep"
    made.mkdir(parents=True)
    (made / "a.yaml").write_text("x")
    suites = tmp_path / "suites"
    suites.mkdir()
    with watching(way, suite_place(str(suites))) as changes:
        made.parent.rename(suites / "new")
        assert "new/deep/a.yaml" in names(changes, suites)
        (suites / "new" / "deep" / "b.yaml").write_text("x")
        assert names(changes, suites) == ["new/deep/b.yaml"]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("above", [False, True])
def test_a_place_that_disappears_is_seen_when_it_is_back(
    way: Way, above: bool, tmp_path: Path
) -> None:
    suites = tmp_path / "project" / "suites"
    suites.mkdir(parents=True)
    (suites / "a.yaml").write_text("x")
    with watching(way, suite_place(str(suites))) as changes:
        shutil.rmtree(suites.parent if above else suites)
        assert names(changes, tmp_path)
        suites.mkdir(parents=True)
        changes.read()
        (suites / "a.yaml").write_text("back")
        assert names(changes, suites) == ["a.yaml"]


@on_linux
def test_a_folder_is_told_of_by_its_real_name_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    places = [suite_place(str(tmp_path / "link")), source_place(str(tmp_path / "real"))]
    with watching(NotifiedChanges, *places) as changes:
        (tmp_path / "link" / "a.yaml").write_text("x")
        assert changes.read() == {str((tmp_path / "real" / "a.yaml").resolve())}


@on_linux
def test_events_that_were_lost_mean_that_anything_may_have_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with watching(NotifiedChanges, suite_place(str(tmp_path))) as changes:
        lost = (-1, file_events._Q_OVERFLOW, "")
        monkeypatch.setattr(Inotify, "read", lambda self: [lost])
        assert changes.read() == {str(tmp_path.resolve())}


def test_without_events_files_are_looked_at_and_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(places: object) -> Changes:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(file_events, "NotifiedChanges", refuse)
    changes = changes_below([suite_place(str(tmp_path))])
    assert isinstance(changes, PolledChanges)
    assert changes.interval == file_events.INTERVAL
    assert "No space left" in changes.notes[0]


def test_looking_takes_a_bounded_share_of_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks = iter([0.0, 3.0])
    monkeypatch.setattr(time, "monotonic", lambda: next(ticks))
    assert PolledChanges([suite_place(str(tmp_path))], 0.5).interval == 60.0
