"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path

import pytest

from mcptest.core.errors import UsageError
from mcptest.transport.files import claim_folder, is_special, replace_file
from mcptest.transport.recorder import Recorder


def test_a_file_is_written_whole_for_its_owner_only_with_its_folders(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "file"
    replace_file(path, b"content")
    assert path.read_bytes() == b"content"
    assert path.stat().st_mode & 0o077 == 0
    assert [each.name for each in path.parent.iterdir()] == ["file"]


def test_an_older_file_is_replaced_and_never_written_into(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    other_name = tmp_path / "other"
    other_name.hardlink_to(path)
    replace_file(path, b"new")
    assert path.read_bytes() == b"new"
    assert other_name.read_bytes() == b"old"


def test_a_link_keeps_pointing_where_it_does(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"old")
    link = tmp_path / "link"
    link.symlink_to("real")
    replace_file(link, b"new")
    assert link.is_symlink()
    assert (tmp_path / "real").read_bytes() == b"new"


def test_a_pipe_is_written_as_it_is(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    replace_file(pipe, b"through")
    reader.join(240)
    assert got == [b"through"]
    assert is_special(pipe)


@pytest.mark.parametrize("place", ["folder", "file/below", "name/" + "x" * 300])
def test_a_place_that_can_not_be_written_is_named(tmp_path: Path, place: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(UsageError, match="can't write") as caught:
        replace_file(tmp_path / place, b"content")
    assert str(tmp_path / place) in caught.value.message
    left = {each.name for each in tmp_path.rglob("*")}
    assert left <= {"folder", "file", "name"}


def test_a_full_device_is_named_and_the_older_file_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UsageError, match="No space left on device"):
        replace_file(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_a_device_that_refuses_is_an_error_for_people() -> None:
    with pytest.raises(UsageError, match="No space left"):
        replace_file(Path("/dev/full"), b"content")


def test_links_that_lead_in_a_circle_are_told_and_left_alone(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to("link")
    for write in (partial(replace_file, link, b"new"), partial(Recorder, link)):
        with pytest.raises(UsageError, match=r"can't write .*link: Too many levels"):
            write()
    assert [each.name for each in tmp_path.iterdir()] == ["link"]
    assert link.is_symlink()


CLAIMING = """
import sys
from pathlib import Path
from mcptest.transport.files import claim_folder
claim_folder(Path(sys.argv[1]))
print("claimed", flush=True)
sys.stdin.read()
"""


def test_a_folder_for_captures_belongs_to_one_process_until_it_ends(tmp_path: Path) -> None:
    folder = tmp_path / "wire"
    with subprocess.Popen(
        [sys.executable, "-c", CLAIMING, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"claimed\n"
        with pytest.raises(UsageError, match="another mcptest writes its captures to") as caught:
            claim_folder(folder)
        assert "--save-capture" in caught.value.hint
        other.kill()
        other.wait()
    claim_folder(folder)
    claim_folder(folder)
    assert list(folder.iterdir()) == []


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems want a name")
def test_a_file_that_is_being_written_has_no_name_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that whoever is killed meanwhile leaves nothing beside the report."""
    beside: list[Path] = []
    monkeypatch.setattr(os, "fsync", lambda _: beside.extend(tmp_path.iterdir()))
    replace_file(tmp_path / "report.json", b"new")
    assert beside == []
    assert [path.name for path in tmp_path.iterdir()] == ["report.json"]
