"""The plugin is loaded wherever mcptest is installed: it must cost nothing where it is not used."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from importlib.metadata import entry_points
from pathlib import Path

ROOT = Path(__file__).parents[2]
IDLE = """
import sys

def test_nothing_of_ours_was_imported():
    ours = {name for name in sys.modules if name.split(".")[0] == "mcptest"}
    assert ours == {"mcptest", "mcptest.pytest_plugin"}

def test_nothing_heavy_was_imported():
    assert not {"msgspec", "yaml", "jsonschema_rs", "asyncio"} & set(sys.modules)

def test_our_own_asserts_are_not_rewritten():
    from mcptest.core import errors
    assert type(errors.__spec__.loader).__name__ == "SourceFileLoader"
"""


def test_a_run_without_suites_and_fixtures_imports_one_module(tmp_path: Path) -> None:
    (tmp_path / "test_idle.py").write_text(IDLE)
    (tmp_path / "values.yaml").write_text("a: 1")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "mcptest", "."],
        cwd=tmp_path,
        env={"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PATH": ""},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout
    assert "3 passed" in done.stdout


def test_pytest_finds_the_plugin_by_its_entry_point() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = project["entry-points"]["pytest11"]
    assert declared == {"mcptest": "mcptest.pytest_plugin"}
    (found,) = entry_points(group="pytest11", name="mcptest")
    assert found.load().__name__ == "mcptest.pytest_plugin"
