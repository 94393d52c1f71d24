"""The demo's file tools stay below their root, whatever path they are given."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mcptest.servers.demo.exchange import ToolFailure
from mcptest.servers.demo.world import (
    MAX_FILE_BYTES,
    MAX_LISTED,
    MAX_MEMORY_BYTES,
    Folder,
    MemoryFolder,
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    (root / "inner").mkdir(parents=True)
    (root / "a.txt").write_text("inside", encoding="utf-8")
    (tmp_path / "secret.txt").write_text("outside", encoding="utf-8")
    (root / "link").symlink_to(tmp_path / "secret.txt")
    (root / "inside-link").symlink_to("a.txt")
    (root / "out").symlink_to(tmp_path)
    os.mkfifo(root / "pipe")
    return root


ESCAPES = [
    "../secret.txt",
    "inner/../../secret.txt",
    "/etc/passwd",
    "//etc/passwd",
    "",
    ".",
    "..",
    "./a.txt",
    "inner//x",
    "link",
    "inside-link",
    "out/secret.txt",
    "out",
    "a.txt/x",
    "a\0b",
    "x" * 300,
    "/".join(["inner"] * 40),
]


@pytest.mark.parametrize("path", ESCAPES)
def test_a_path_that_leads_out_or_nowhere_is_refused(root: Path, path: str) -> None:
    folder = Folder(str(root))
    with pytest.raises(ToolFailure):
        folder.read(path)
    with pytest.raises(ToolFailure):
        folder.write(path, "changed")
    assert (root.parent / "secret.txt").read_text(encoding="utf-8") == "outside"
    assert (root / "a.txt").read_text(encoding="utf-8") == "inside"


@pytest.mark.parametrize("path", ["pipe", "inner"])
def test_what_is_no_file_is_refused_without_waiting(root: Path, path: str) -> None:
    folder = Folder(str(root))
    with pytest.raises(ToolFailure):
        folder.read(path)
    with pytest.raises(ToolFailure):
        folder.write(path, "x")


def test_a_shorter_text_replaces_a_longer_one(root: Path) -> None:
    folder = Folder(str(root))
    assert folder.write("inner/n.txt", "long text") == 9
    assert folder.write("inner/n.txt", "ü") == 2
    assert folder.read("inner/n.txt") == "ü"


def test_too_large_and_binary_files_are_refused(root: Path) -> None:
    (root / "large").write_bytes(b"x" * (MAX_FILE_BYTES + 1))
    (root / "binary").write_bytes(b"\xff\xfe")
    folder = Folder(str(root))
    for path in ("large", "binary"):
        with pytest.raises(ToolFailure):
            folder.read(path)
    with pytest.raises(ToolFailure):
        folder.write("b.txt", "x" * (MAX_FILE_BYTES + 1))
    assert not (root / "b.txt").exists()


def test_names_are_listed_in_order_and_links_are_not_entered(root: Path) -> None:
    (root / "inner" / "deep").mkdir()
    (root / "inner" / "deep" / "z").touch()
    folder = Folder(str(root))
    assert folder.names("") == ["a.txt", "inner/deep/z", "inside-link", "link", "out", "pipe"]
    assert folder.names("inner") == ["inner/deep/z"]
    with pytest.raises(ToolFailure):
        folder.names("out")


def test_the_list_has_an_end(root: Path) -> None:
    for number in range(MAX_LISTED + 5):
        (root / "inner" / f"{number}").touch()
    assert len(Folder(str(root)).names("")) == MAX_LISTED


def test_a_name_that_is_not_utf8_is_still_listed_as_utf8(root: Path) -> None:
    (root / "inner" / os.fsdecode(b"\xff.txt")).touch()
    assert Folder(str(root)).names("inner") == ["inner/\ufffd.txt"]


def open_descriptors() -> list[int]:
    return [fd for fd in range(100) if is_open(fd)]


def is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


def test_no_descriptor_is_left_open(root: Path) -> None:
    folder = Folder(str(root))
    before = open_descriptors()
    for path in [*ESCAPES, "a.txt", "pipe", "inner"]:
        for use in (folder.read, folder.names, lambda path: folder.write(path, "x")):
            try:
                use(path)
            except ToolFailure:
                continue
    assert open_descriptors() == before


def test_without_a_root_files_are_kept_in_memory_and_never_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    folder = MemoryFolder()
    assert folder.write("b.txt", "é") == 2
    assert (folder.names(""), folder.read("b.txt")) == (["b.txt", "welcome.txt"], "é")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("path", [*ESCAPES, "inner"])
def test_memory_refuses_the_paths_that_a_folder_on_disk_refuses(path: str) -> None:
    folder = MemoryFolder()
    folder.write("a.txt", "inside")
    for use in (folder.read, lambda path: folder.names(path or "..")):
        with pytest.raises(ToolFailure):
            use(path)
    if path not in {"link", "inside-link", "out", "inner"}:  # files and folders on disk alone
        with pytest.raises(ToolFailure):
            folder.write(path, "changed")
    assert folder.read("a.txt") == "inside"


def test_memory_is_bounded_in_files_and_bytes() -> None:
    folder = MemoryFolder()
    with pytest.raises(ToolFailure, match="at most"):
        folder.write("a", "x" * (MAX_FILE_BYTES + 1))
    for number in range(MAX_MEMORY_BYTES // MAX_FILE_BYTES - 1):
        folder.write(f"large-{number}", "x" * MAX_FILE_BYTES)
    with pytest.raises(ToolFailure, match="No space left"):
        folder.write("one more", "x" * MAX_FILE_BYTES)
    folder = MemoryFolder()
    for number in range(MAX_LISTED - len(folder.names(""))):
        folder.write(f"small-{number}", "")
    with pytest.raises(ToolFailure, match="No space left"):
        folder.write("one more", "")
    folder.write("small-0", "may still change")
