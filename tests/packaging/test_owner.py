"""Who publishes mcptest is not known yet: one variable fills the placeholder for it."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from tests.e2e.driving import BOUND
from tests.packaging.installing import ROOT

PUBLISHED = ("README.md", "SECURITY.md", "pyproject.toml", "mkdocs.yml", "docs", "examples")
"""What people read who are not contributors."""


def texts(folder: Path) -> dict[str, str]:
    found = [path for name in PUBLISHED for path in (folder / name, *(folder / name).rglob("*"))]
    return {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
        for path in found
        if path.suffix in {".md", ".toml", ".yml"} and "contributing" not in path.parts
    }


def test_the_placeholder_is_spelled_in_one_way() -> None:
    for name, text in texts(ROOT).items():
        said = re.sub(r"`OWNER` is the account", "", text)
        assert re.findall(r"\bOWNER\b(?!/mcptest)", said) == [], name


def test_one_variable_fills_it_everywhere(tmp_path: Path) -> None:
    for name in ("Makefile", "README.md", "SECURITY.md", "pyproject.toml", "mkdocs.yml"):
        shutil.copy(ROOT / name, tmp_path)
    for name in ("ci.md", "install.md"):
        (tmp_path / "docs").mkdir(exist_ok=True)
        shutil.copy(ROOT / "docs" / name, tmp_path / "docs")
    shutil.copytree(ROOT / "examples" / "ci", tmp_path / "examples" / "ci")
    assert sum("OWNER/mcptest" in text for text in texts(tmp_path).values()) > 5
    for words in (["git", "init", "-q"], ["git", "add", "."], ["make", "owner", "OWNER=acme"]):
        subprocess.run(words, cwd=tmp_path, check=True, capture_output=True, timeout=BOUND)
    filled = texts(tmp_path)
    assert [name for name, text in filled.items() if "OWNER/" in text] == []
    assert "uses: acme/mcptest@v0" in filled["examples/ci/github.yml"]
