"""Python on a page runs as it stands, block by block; what is named `test_` is called."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from mcptest import testing
from tests.docs.fences import ROOT, fences_of, pages

# Pages whose blocks have a test of their own: they are files, or run under pytest.
ELSEWHERE = {"docs/strategies.md", "docs/pytest.md"}
CALLED = (
    "\nfor _name, _value in list(globals().items()):\n    if _name.startswith('test_'): _value()\n"
)


def blocks() -> list[tuple[str, str]]:
    found = []
    for page in pages():
        name = page.relative_to(ROOT).as_posix()
        if name in ELSEWHERE:
            continue
        texts = [
            "\n".join(fence.lines)
            for fence in fences_of(page.read_text(encoding="utf-8"))
            if fence.language == "python" and not fence.file and not fence.not_run
        ]
        if texts:
            found.append((name, texts))
    return found


@pytest.mark.parametrize(
    ("name", "texts"), blocks(), ids=lambda value: value if isinstance(value, str) else ""
)
def test_the_python_of_a_page_runs(name: str, texts: list[str], tmp_path: Path) -> None:
    # One process for each page: an example may register rules, or leave threads behind.
    (tmp_path / "compliance").symlink_to(ROOT / "src" / "mcptest" / "compliance")
    script = tmp_path / "examples.py"
    calls = "".join(f"exec(compile({text + CALLED!r}, {name!r}, 'exec'), {{}})\n" for text in texts)
    script.write_text(calls)
    done = subprocess.run(
        [sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_the_pages_with_python_are_known() -> None:
    assert {"docs/api.md", "docs/howto/find-bugs.md"} <= {name for name, _ in blocks()}


def test_the_page_of_the_api_names_everything_that_is_public() -> None:
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    assert [name for name in testing.__all__ if name not in page] == []
