"""Temporary folders: removed however they were left, and by whoever ends the process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mcptest.transport.temporary import live_folders, new_folder, remove_folder, temporary_folder

LEAVING = """
import os, sys, threading, time
from mcptest.transport.temporary import new_folder, remove_all_folders

made = threading.Semaphore(0)

def busy():
    while True:
        folder = new_folder()
        made.release()
        for number in range(50):
            try:
                open(f"{folder}/{number}", "w").close()
            except OSError:
                break

for _ in range(6):
    threading.Thread(target=busy, daemon=True).start()
for _ in range(int(sys.argv[1])):
    made.acquire()
remove_all_folders()
os._exit(0)
"""


def test_whoever_leaves_at_once_leaves_no_folder_while_threads_make_more(tmp_path: Path) -> None:
    for folders in (1, 7, 20):
        env = {**os.environ, "TMPDIR": str(tmp_path)}
        argv = [sys.executable, "-c", LEAVING, str(folders)]
        assert subprocess.run(argv, env=env, timeout=240).returncode == 0
        assert list(tmp_path.iterdir()) == []


def test_a_folder_is_known_for_as_long_as_it_is_there() -> None:
    with temporary_folder() as folder:
        assert str(folder) in live_folders
        assert folder.stat().st_mode & 0o777 == 0o700
    assert str(folder) not in live_folders
    assert not folder.exists()


def test_a_temporary_folder_is_where_the_environment_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = tmp_path / "link"
    (tmp_path / "real").mkdir()
    link.symlink_to(tmp_path / "real")
    monkeypatch.setenv("TMPDIR", str(link))
    folder = Path(new_folder("mine-"))
    assert folder.parent == tmp_path / "real"
    assert folder.name.startswith("mine-")
    assert remove_folder(folder)


def test_a_folder_that_was_locked_is_removed_all_the_same(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "a" / "b").mkdir(parents=True)
    (home / "a" / "b" / "f").write_text("x")
    for place in (home / "a" / "b", home / "a", home):
        place.chmod(0)
    assert remove_folder(home)


def test_a_folder_deeper_than_a_path_can_be_long_is_removed(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    before = Path.cwd()
    try:
        os.chdir(home)
        for _ in range(2_500):
            os.mkdir("deep")  # noqa: PTH102 - relative, on purpose
            os.chdir("deep")
    finally:
        os.chdir(before)
    assert remove_folder(home)


def test_what_a_link_in_a_copy_points_to_is_never_removed(tmp_path: Path) -> None:
    home, outside = tmp_path / "home", tmp_path / "outside"
    (home / "a").mkdir(parents=True)
    outside.mkdir()
    (outside / "precious").write_text("x")
    (home / "a" / "link").symlink_to(outside)
    (home / "a").chmod(0)
    assert remove_folder(home)
    assert (outside / "precious").read_text() == "x"
