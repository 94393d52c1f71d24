"""The private copy of a fixture: what is in it, and that it goes away."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from mcptest.core.errors import UsageError
from mcptest.transport.temporary import FixtureError, checked_fixture, isolate_fixture, live_folders


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    return folder.resolve()


def test_a_copy_has_the_same_name_content_and_permissions(source: Path, temporary: Path) -> None:
    (source / "sub" / "deep").mkdir(parents=True)
    (source / "sub" / "f").write_bytes(b"\0\xff")
    (source / "run").write_text("x")
    (source / "run").chmod(0o750)
    (source / "sub").chmod(0o555)
    copy = isolate_fixture(source)
    assert copy.path.name == "data"
    assert (copy.path / "sub" / "f").read_bytes() == b"\0\xff"
    assert (copy.path / "sub" / "deep").is_dir()
    assert stat.S_IMODE((copy.path / "run").stat().st_mode) == 0o750
    assert stat.S_IMODE((copy.path / "sub").stat().st_mode) == 0o555
    assert copy.left_out == ()
    assert copy.remove()
    assert list(temporary.iterdir()) == []
    (source / "sub").chmod(0o755)


def test_a_link_into_the_fixture_means_the_copy(source: Path) -> None:
    (source / "sub").mkdir()
    (source / "f").write_text("original")
    (source / "relative").symlink_to("f")
    (source / "sub" / "up").symlink_to("../f")
    (source / "absolute").symlink_to(source / "f")
    (source / "around").symlink_to(f"../../{source.parent.name}/{source.name}/f")
    (source / "dangling").symlink_to("not/there")
    copy = isolate_fixture(source)
    (copy.path / "f").write_text("copy")
    for name in ("relative", "sub/up", "absolute", "around"):
        assert (copy.path / name).read_text() == "copy", name
    assert (copy.path / "dangling").is_symlink()
    assert copy.left_out == ()
    copy.remove()


def test_a_link_that_leads_elsewhere_is_left_out_by_whatever_way(
    source: Path, tmp_path: Path
) -> None:
    (tmp_path / "outside").write_text("x")
    (source / "plain").symlink_to(tmp_path / "outside")
    (source / "up").symlink_to("../outside")
    (source / "first").symlink_to("second")
    (source / "second").symlink_to("../outside")
    (source / "root").symlink_to("/")
    copy = isolate_fixture(source)
    assert sorted(copy.left_out) == ["first", "plain", "root", "second", "up"]
    assert list(copy.path.iterdir()) == []
    copy.remove()


def test_a_loop_of_links_is_no_trouble(source: Path) -> None:
    (source / "self").symlink_to("self")
    (source / "a").symlink_to("b")
    (source / "b").symlink_to("a")
    copy = isolate_fixture(source)
    assert copy.path.is_dir()
    copy.remove()


def test_special_files_are_left_out_and_named(source: Path) -> None:
    (source / "sub").mkdir()
    os.mkfifo(source / "sub" / "pipe")
    copy = isolate_fixture(source)
    assert copy.left_out == ("sub/pipe",)
    copy.remove()


def test_a_fixture_that_holds_the_temporary_folder_is_refused(
    tmp_path: Path, temporary: Path
) -> None:
    with pytest.raises(FixtureError, match="is inside it"):
        isolate_fixture(tmp_path.resolve())
    assert list(temporary.iterdir()) == []


def test_a_copy_that_fails_half_way_leaves_nothing(
    source: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (source / "f").write_text("x")

    def full(*args: object, **options: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("mcptest.transport.temporary._copy_file", full)
    with pytest.raises(FixtureError, match="No space left"):
        isolate_fixture(source)
    assert list(temporary.iterdir()) == []
    assert not live_folders


def test_only_a_folder_can_be_a_fixture(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert checked_fixture(None) is None
    for name, reason in (("file", "is not a folder"), ("none", "does not exist")):
        with pytest.raises(UsageError, match=reason):
            checked_fixture(str(tmp_path / name))
    (tmp_path / "link").symlink_to(tmp_path)
    assert checked_fixture(str(tmp_path / "link")) == str(tmp_path.resolve())
