"""The generated parts of docs/compliance are fresh, and the check notices when they are not."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.docs.compliance_docs import PARTS, main, refreshed, stale_pages

DOCS = Path(__file__).parents[2] / "docs" / "compliance"


def test_the_pages_are_fresh() -> None:
    hint = "run: python -m tests.docs.compliance_docs docs/compliance"
    assert stale_pages(DOCS) == [], hint


def test_a_changed_page_is_noticed_and_written_anew(tmp_path: Path) -> None:
    for page in PARTS:
        shutil.copy(DOCS / page, tmp_path)
    path = tmp_path / "upgrade.md"
    text = path.read_text()
    path.write_text(text.replace("RES-102, ", "").replace(", RES-102)", ")") + "\nOur own words.\n")
    assert main([str(tmp_path), "--check"]) == 1
    assert main([str(tmp_path)]) == 0
    assert main([str(tmp_path), "--check"]) == 0
    assert path.read_text() == text + "\nOur own words.\n"


def test_a_part_that_was_lost_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"upgrade\.md lacks the part matrix"):
        refreshed("upgrade.md", "# nothing")


def test_a_folder_is_needed() -> None:
    assert main([]) == 2
