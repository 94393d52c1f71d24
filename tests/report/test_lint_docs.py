"""docs/commands/lint.md: its table is fresh, and its sample is what the command prints."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mcptest.commands.app import run
from mcptest.rules.lint.linter import all_lint_rules
from tests.docs.lint_docs import BEGIN, END, main, with_fresh_table

PAGE = Path(__file__).parents[2] / "docs" / "commands" / "lint.md"
SAMPLE = Path(__file__).parents[1] / "data" / "lint_sample.json"


def test_the_table_of_codes_is_fresh() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert with_fresh_table(text) == text, (
        "run: python -m tests.docs.lint_docs docs/commands/lint.md"
    )
    assert all(f"| {rule.code} |" in text for rule in all_lint_rules())


def test_the_check_notices_a_stale_table(tmp_path: Path) -> None:
    page = tmp_path / "lint.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n", encoding="utf-8")
    assert main([str(page), "--check"]) == 1
    assert main([str(page)]) == 0
    assert main([str(page), "--check"]) == 0
    text = page.read_text(encoding="utf-8")
    assert text.startswith("before\n")
    assert text.endswith("\nafter\n")
    assert main([]) == 2
    with pytest.raises(ValueError, match="no place"):
        with_fresh_table("nothing")


def test_the_sample_in_the_docs_is_what_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fence = re.search(r"```text\n\$ mcptest (.*?)\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert fence is not None
    (tmp_path / "tools.json").write_bytes(SAMPLE.read_bytes())
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    assert run(fence.group(1).split()) == 1
    assert capsys.readouterr().out == fence.group(2)
