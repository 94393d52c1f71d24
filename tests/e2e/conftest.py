"""What tests of whole commands share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.suite_runs import Site


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """A project with suites, and a temporary folder of its own."""
    folder, temporary = tmp_path / "project", tmp_path / "tmp"
    folder.mkdir()
    temporary.mkdir()
    return Site(folder, temporary, tmp_path / "pids")
