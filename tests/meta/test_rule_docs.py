"""docs/rules is generated, and fresh."""

from __future__ import annotations

from pathlib import Path

from tests.docs.rule_docs import main, stale_pages, write_pages

DOCS = Path(__file__).parents[2] / "docs" / "rules"


def test_the_pages_of_the_rules_are_fresh() -> None:
    assert stale_pages(DOCS) == [], "run: python -m tests.docs.rule_docs docs/rules"


def test_the_check_notices_missing_changed_and_leftover_pages(tmp_path: Path) -> None:
    write_pages(tmp_path)
    assert main([str(tmp_path), "--check"]) == 0
    (tmp_path / "INV-001.md").write_text("changed")
    (tmp_path / "INV-002.md").unlink()
    (tmp_path / "OLD-001.md").write_text("left over")
    assert stale_pages(tmp_path) == ["INV-001.md", "INV-002.md", "OLD-001.md"]
    assert main([str(tmp_path), "--check"]) == 1
    assert main([str(tmp_path)]) == 0
    assert stale_pages(tmp_path) == []
