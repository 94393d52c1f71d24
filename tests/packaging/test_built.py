"""What a release holds: all in the sdist, the package alone in the wheel, always the same."""

from __future__ import annotations

import hashlib
import re
import subprocess
import tarfile
import zipfile
from collections.abc import Iterator
from importlib.metadata import requires
from pathlib import Path

import pytest
from packaging.metadata import Metadata
from packaging.requirements import Requirement

import mcptest
from tests.packaging.installing import ROOT, built, project, required_distributions

DATA = {".yml", ".yaml", ".md", ".js", ".mjs", ".css", ".html", ".typed", ".json", ".svg", ".txt"}


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built("sdist", tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module")
def unpacked(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    (top,) = folder.iterdir()
    return top


def tracked() -> set[str]:
    """Files of the repository, also those that are about to be added."""
    words = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        done = subprocess.run(words, cwd=ROOT, capture_output=True, timeout=240, check=True)
    except (OSError, subprocess.CalledProcessError):
        return set()
    names = (name.decode() for name in done.stdout.split(b"\0") if name)
    return {name for name in names if (ROOT / name).is_file()}


def metadata_of(wheel: Path) -> bytes:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (one for one in archive.namelist() if one.endswith(".dist-info/METADATA"))
        return archive.read(name)


def digests(wheel: Path) -> dict[str, str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: hashlib.sha256(archive.read(name)).hexdigest() for name in archive.namelist()}


def package_files() -> Iterator[str]:
    for path in (ROOT / "src" / "mcptest").rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            yield path.relative_to(ROOT / "src").as_posix()


def test_the_sdist_holds_all_that_is_tracked_and_nothing_else(unpacked: Path) -> None:
    wanted = tracked()
    if not wanted:
        pytest.skip("this is no clone of the repository")
    held = {p.relative_to(unpacked).as_posix() for p in unpacked.rglob("*") if p.is_file()}
    assert held ^ wanted == {"PKG-INFO"}


def test_the_wheel_holds_the_package_with_its_data_and_nothing_else(wheel: Path) -> None:
    held = {name for name in digests(wheel) if ".dist-info/" not in name}
    assert held == set(package_files())
    assert {Path(name).suffix for name in held} - {".py"} <= DATA
    assert "mcptest/py.typed" in held


def test_the_wheel_of_the_sdist_is_the_wheel_of_the_tree_to_the_byte(
    unpacked: Path, wheel: Path, tmp_path: Path
) -> None:
    assert digests(built("wheel", tmp_path, unpacked)) == digests(wheel)
    (again,) = tmp_path.glob("*.whl")
    assert again.read_bytes() == wheel.read_bytes()


def test_the_metadata_is_valid_and_complete(wheel: Path) -> None:
    metadata = Metadata.from_email(metadata_of(wheel), validate=True)
    assert str(metadata.version) == mcptest.__version__
    assert str(metadata.requires_python) == ">=3.11"
    assert metadata.license_expression == "Apache-2.0"
    assert metadata.description_content_type == "text/markdown"
    assert metadata.summary
    assert "Typing :: Typed" in (metadata.classifiers or [])
    assert metadata.description == (ROOT / "README.md").read_text()


def test_what_is_required_is_little_and_each_has_its_reason() -> None:
    names = required_distributions()
    reasons = (ROOT / "docs" / "decisions" / "0001-dependencies.md").read_text()
    assert len(names) <= 5
    assert [name for name in names if name not in reasons] == []
    extras = project()["optional-dependencies"]
    assert isinstance(extras, dict)
    optional = {Requirement(one).name for many in extras.values() for one in many}
    assert {name for name in optional if name not in reasons} == set()


def test_nothing_that_is_required_requires_more() -> None:
    """So that four packages are four packages."""
    more = {
        name: [one for one in requires(name) or () if Requirement(one).marker is None]
        for name in required_distributions()
    }
    assert [name for name, others in more.items() if others] == []


def test_every_extra_is_told_of_where_installing_is() -> None:
    page = (ROOT / "docs" / "install.md").read_text()
    extras = project()["optional-dependencies"]
    assert isinstance(extras, dict)
    for_users = set(extras) - {"dev", "docs", "peers"}
    assert {name for name in for_users if f"mcptest[{name}]" not in page} == set()


def test_the_classifiers_name_the_pythons_that_are_promised() -> None:
    page = (ROOT / "docs" / "install.md").read_text()
    classifiers = project()["classifiers"]
    assert isinstance(classifiers, list)
    versions = re.findall(r"Python :: (3\.\d+)", "\n".join(classifiers))
    assert versions
    assert [version for version in versions if version not in page] == []
