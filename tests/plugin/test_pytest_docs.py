"""docs/pytest.md is real: its files run, and pytest says what the page shows.

After a change on purpose: `python -m tests.plugin.test_pytest_docs` writes the output anew.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.plugin.folders import PLUGIN, Folder, folder_for

pytest_plugins = ["pytester"]

PAGE = Path(__file__).parents[2] / "docs" / "pytest.md"
ANYIO = ("-p", "anyio.pytest_plugin")
FILE = re.compile(r"^```\w+\n# file: (\S+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
CONSOLE = re.compile(r"(?<=^```console\n)\$ pytest (.*?)\n(.*?)(?=^```$)", re.DOTALL | re.MULTILINE)
OF_THIS_MACHINE = re.compile(r"^(?:platform |rootdir: |configfile: |plugins: ).*\n", re.MULTILINE)
SECONDS = re.compile(r" in [\d.]+s (?==+$)", re.MULTILINE)


def write_files(folder: Path) -> int:
    found = FILE.findall(PAGE.read_text())
    for name, text in found:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return len(found)


def as_shown(out: str) -> str:
    return SECONDS.sub(" in 0.31s ", OF_THIS_MACHINE.sub("", out)).rstrip("\n") + "\n"


@pytest.fixture
def folder(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Folder:
    folder = folder_for(pytester, monkeypatch)
    monkeypatch.setenv("COLUMNS", "80")
    for name in ("CI", "BUILD_NUMBER"):  # there pytest cuts nothing, however narrow it is
        monkeypatch.delenv(name, raising=False)
    assert write_files(folder.path) == 8
    return folder


def test_every_file_of_the_page_runs(folder: Folder) -> None:
    folder.run(*ANYIO, "-W", "error").assert_outcomes(failed=1, passed=15, skipped=1)


def test_pytest_says_what_the_page_shows(folder: Folder) -> None:
    ((words, shown),) = CONSOLE.findall(PAGE.read_text())
    assert as_shown(folder.run(*words.split()).stdout.str()) == shown


def run_aside(folder: Path, words: str) -> str:
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "COLUMNS": "80"}
    command = [sys.executable, "-m", "pytest", *PLUGIN, *words.split()]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    return f"$ pytest {words}\n{as_shown(done.stdout)}"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        write_files(Path(name))
        page = PAGE.read_text()
        PAGE.write_text(CONSOLE.sub(lambda shown: run_aside(Path(name), shown[1]), page))
