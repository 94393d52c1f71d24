"""The samples in docs/snapshot.md are what the command prints and writes, but for times.

`python -m tests.e2e.test_snapshot_docs` writes them anew.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
import tempfile
from pathlib import Path

from tests.e2e.driving import mcptest

PAGE = Path(__file__).parents[2] / "docs" / "snapshot.md"
BLOCK = re.compile(r"```(yaml|text|console)\n(?:# file: (\S+)|\$ mcptest ([^\n]*))\n(.*?)```", re.S)
_TIME = re.compile(r" *\b[0-9.]+(?:ms|s)\b")


def rendered(page: str, folder: Path) -> str:
    """The page with each command run, in its order, and each file as it is by then."""
    bin_ = str(Path(sys.executable).parent)
    env = {**os.environ, "PATH": f"{bin_}{os.pathsep}{os.environ['PATH']}", "NO_COLOR": "1"}

    def step(match: re.Match[str]) -> str:
        kind, file, words, text = match.groups()
        if kind == "console":
            done = mcptest(*shlex.split(words), cwd=folder, env=env)
            return f"```console\n$ mcptest {words}\n{done.out}```"
        path = folder / file
        if kind == "yaml":
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        return f"```{kind}\n# file: {file}\n{path.read_text()}```"

    return BLOCK.sub(step, page)


def test_the_samples_are_what_the_command_prints_and_writes(tmp_path: Path) -> None:
    page = PAGE.read_text()
    assert len(BLOCK.findall(page)) == 9
    assert _TIME.sub("", rendered(page, tmp_path)) == _TIME.sub("", page)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        PAGE.write_text(rendered(PAGE.read_text(), Path(name)))
