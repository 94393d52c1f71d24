"""The folder of golden files: whole files, no links, one writer, nothing left behind."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from mcptest.core.errors import UsageError
from mcptest.core.limits import Deadline
from mcptest.probe.snapshots import SnapshotFileError, SnapshotFolder

NOW = 0.0


class Opened(SnapshotFolder):
    def __enter__(self) -> Opened:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def opened(beside: Path, *, update: bool = False, patience: float = NOW) -> Opened:
    folder = Opened(str(beside), update=update)
    folder.open(Deadline.after(patience))
    return folder


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Path]:
    """A suite's folder with one golden file."""
    with opened(tmp_path, update=True) as folder:
        folder.write("a.snap", "good\n")
    yield tmp_path
    assert (tmp_path / ".snapshots/a.snap").read_text() == "good\n"
    assert not list(tmp_path.rglob(".writing-*"))


def test_what_was_written_is_read(tmp_path: Path) -> None:
    with opened(tmp_path, update=True) as folder:
        folder.write("a.snap", "ä\n")
        folder.write("many.snaps/b.snap", "b\n")
    with opened(tmp_path) as folder:
        assert folder.read("a.snap") == "ä\n"
        assert folder.read("many.snaps/b.snap") == "b\n"
        assert folder.read("many.snaps/c.snap") is None
        assert folder.read("none.snaps/c.snap") is None
        assert sorted(folder.names()) == ["a.snap", "many.snaps/b.snap"]


def test_looking_creates_nothing(tmp_path: Path) -> None:
    with opened(tmp_path) as folder:
        assert folder.read("a.snap") is None
        assert list(folder.names()) == []
    assert list(tmp_path.iterdir()) == []


def test_an_update_that_writes_nothing_leaves_nothing(tmp_path: Path) -> None:
    opened(tmp_path, update=True).close()
    assert list(tmp_path.iterdir()) == []


def test_line_ends_that_a_checkout_changed_are_changed_back(kept: Path) -> None:
    (kept / ".snapshots/b.snap").write_bytes(b"one\r\ntwo\r\n")
    with opened(kept) as folder:
        assert folder.read("b.snap") == "one\ntwo\n"


# -- a disk that is full -------------------------------------------------------------------------


@pytest.mark.parametrize("call", ["write", "fsync", "replace"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EDQUOT])
def test_a_full_disk_costs_one_file_and_never_an_old_one(
    call: str, code: int, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise OSError(code, os.strerror(code))

    with opened(kept, update=True) as folder, monkeypatch.context() as patch:
        if call == "write":
            patch.setattr("builtins.open", lambda *_, **__: FullFile())
        else:
            patch.setattr(os, call, fails)
        for name in ("a.snap", "new.snap"):
            with pytest.raises(SnapshotFileError, match=r"can't write .*\.snap: "):
                folder.write(name, "new\n")
        patch.undo()
        assert sorted(folder.names()) == ["a.snap"]


class FullFile:
    """A file on a disk on which nothing more fits, as /dev/full is one."""

    def __enter__(self) -> FullFile:
        self._file = Path("/dev/full").open("wb", buffering=0)
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def write(self, data: bytes) -> None:
        self._file.write(data)

    def flush(self) -> None:
        self._file.flush()


def test_what_a_killed_run_had_begun_is_removed_by_the_next_update(kept: Path) -> None:
    (kept / ".snapshots/many.snaps").mkdir()
    for name in (".writing-00", "many.snaps/.writing-01"):
        (kept / ".snapshots" / name).write_text("half")
    with opened(kept) as folder:
        assert list(folder.names()) == ["a.snap"]
    opened(kept, update=True).close()
    assert not list(kept.rglob(".writing-*"))


# -- two runs at once ----------------------------------------------------------------------------


def test_those_that_look_do_not_wait_for_each_other(kept: Path) -> None:
    with opened(kept), opened(kept) as second:
        assert second.read("a.snap") == "good\n"


@pytest.mark.parametrize("update", [True, False])
def test_nobody_comes_in_while_someone_writes(update: bool, kept: Path) -> None:
    with (
        opened(kept, update=True),
        pytest.raises(UsageError, match=r"another mcptest is using .*snapshots"),
    ):
        opened(kept, update=update)


def test_whoever_waits_comes_in_when_the_other_has_left(kept: Path) -> None:
    first = opened(kept, update=True)
    seen: list[str | None] = []

    def wait() -> None:
        with opened(kept, patience=20.0) as second:
            seen.append(second.read("a.snap"))

    waiting = threading.Thread(target=wait)
    waiting.start()
    first.write("a.snap", "good\n")
    assert not seen
    first.close()
    waiting.join(20.0)
    assert seen == ["good\n"]


# -- what is in the way --------------------------------------------------------------------------


def test_a_link_in_place_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / ".snapshots").symlink_to("elsewhere")
    for update in (True, False):
        with pytest.raises(UsageError, match="it is not a folder"):
            opened(tmp_path, update=update)
    assert not list((tmp_path / "elsewhere").iterdir())


@pytest.mark.parametrize("name", ["link.snap", "link.snaps/a.snap", "pipe.snap", "folder.snap"])
def test_nothing_but_a_file_is_read_or_written(name: str, kept: Path) -> None:
    (kept / "elsewhere").mkdir()
    (kept / "elsewhere/a.snap").write_text("mine")
    golden = kept / ".snapshots"
    (golden / "link.snap").symlink_to("../elsewhere/a.snap")
    (golden / "link.snaps").symlink_to("../elsewhere")
    os.mkfifo(golden / "pipe.snap")
    (golden / "folder.snap").mkdir()
    with opened(kept, update=True) as folder:
        with pytest.raises(SnapshotFileError):
            folder.read(name)
        with pytest.raises(SnapshotFileError):
            folder.write(name, "text")
    assert (kept / "elsewhere/a.snap").read_text() == "mine"
    assert len(list((kept / "elsewhere").iterdir())) == 1
