"""The samples in docs/exploring.md are what the commands print, but for times and places.

`python -m tests.e2e.test_exploring_docs` writes them anew.
"""

from __future__ import annotations

import re
import shlex
import sys
import tempfile
from pathlib import Path

from tests.e2e.driving import mcptest

PAGE = Path(__file__).parents[2] / "docs" / "exploring.md"
SAMPLE = re.compile(r"```console\n\$ mcptest ([^\n]*)\n(.*?)```", re.DOTALL)
FILE = re.compile(r"```yaml\n(?:FILE |# file: )(\S+)\n(.*?)```", re.DOTALL)
_LIVE = re.compile(r"```\w+\n\$ mcptest ([^\n]*--server [^\n]*)\n(.*?)```", re.DOTALL)
_TIME = re.compile(r" *\b[0-9.]+(?:ms|s)\b")


def shown(text: str) -> str:
    """Without what differs from run to run and from machine to machine."""
    text = text.replace(f'"{sys.executable}"', "python").replace(sys.executable, "python")
    return _TIME.sub("", text)


def rendered(page: str, folder: Path) -> str:
    """The page with each sample as it comes out now."""
    (folder / "server.py").symlink_to(Path(__file__).with_name("explored.py"))

    def run(match: re.Match[str]) -> str:
        words = shlex.split(match.group(1))
        words = [sys.executable if word == "python" else word for word in words]
        done = mcptest(*words, cwd=folder)
        said = done.out.replace(f"{sys.executable} server.py", "python server.py")
        return f"```console\n$ mcptest {match.group(1)}\n{said}```"

    def read(match: re.Match[str]) -> str:
        text = (folder / match.group(1)).read_text()
        text = text.replace(f'"{sys.executable}"', "python").replace(sys.executable, "python")
        return f"```yaml\n# file: {match.group(1)}\n{text}```"

    return FILE.sub(read, SAMPLE.sub(run, page))


def test_the_samples_are_what_the_commands_print(tmp_path: Path) -> None:
    page = PAGE.read_text()
    assert len(SAMPLE.findall(page)) == 6
    assert shown(rendered(page, tmp_path)) == shown(page)


def test_the_samples_of_fuzz_and_lint_are_what_the_commands_print() -> None:
    for name, count in (("fuzz.md", 1), ("lint.md", 1)):
        samples = _LIVE.findall((PAGE.parent / name).read_text())
        assert len(samples) == count
        for command, said in samples:
            words = shlex.split(command.replace("python -I", f"{sys.executable} -I"))
            done = mcptest(*words, cwd=PAGE.parents[1])
            assert _without_chance(done.out) == _without_chance(said)


def _without_chance(text: str) -> str:
    """Ids of messages, and a long input, which the page cuts, are left out."""
    text = re.sub(r"A{40,}…", "A…", text)
    return re.sub(r'"id": \d+', '"id"', shown(text))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        PAGE.write_text(rendered(PAGE.read_text(), Path(name)))
