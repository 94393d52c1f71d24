"""A wheel of the working tree, installed where nothing else is: no pip, no development tools.

What mcptest needs at run time is linked in from the environment of the tests, one distribution at a
time, so that a test sees whether it needs anything more than it says.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
import venv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path

from tests.e2e.driving import BOUND, Done

ROOT = Path(__file__).parents[2]
EPOCH = "1700000000"


def project() -> Mapping[str, object]:
    """What pyproject.toml says of the project."""
    found: Mapping[str, object] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return found


def built(kind: str, into: Path, source: Path = ROOT) -> Path:
    """A `wheel` or an `sdist` of a source tree."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(into)],
        cwd=source,
        env={**os.environ, "SOURCE_DATE_EPOCH": EPOCH},
        capture_output=True,
        timeout=BOUND,
        check=True,
    )
    (made,) = into.glob("*.whl" if kind == "wheel" else "*.tar.gz")
    return made


@dataclass(frozen=True)
class Installed:
    """An environment with mcptest in it, and a home that was never used."""

    folder: Path

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    @property
    def environment(self) -> dict[str, str]:
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        path = f"{self.folder / 'bin'}:/usr/bin:/bin"
        return {"PATH": path, "HOME": str(home), "LANG": "C.UTF-8"}

    def mcptest(self, *argv: str, cwd: Path) -> Done:
        """The console script, as pipx and uvx call it."""
        return self.run(self.folder / "bin" / "mcptest", *argv, cwd=cwd)

    def run(self, program: Path, *argv: str, cwd: Path) -> Done:
        done = subprocess.run(
            [program, *argv],
            cwd=cwd,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=BOUND,
        )
        return Done(done.returncode, done.stdout.decode(), done.stderr.decode())


def installed(wheel: Path, folder: Path) -> Installed:
    """The wheel and its required dependencies, in a fresh environment."""
    venv.create(folder, with_pip=False, symlinks=True)
    python = folder / "bin" / "python"
    words = ["install", "--quiet", "--no-index", "--no-deps", "--no-compile", str(wheel)]
    subprocess.run(
        [sys.executable, "-m", "pip", "--python", str(python), *words], timeout=BOUND, check=True
    )
    (packages,) = (folder / "lib").glob("python*/site-packages")
    link_distributions(required_distributions(), packages)
    return Installed(folder)


def required_distributions() -> list[str]:
    """Names of what mcptest requires, without those of its extras."""
    wanted = project()["dependencies"]
    assert isinstance(wanted, list)
    return [re.split(r"[<>=!~ ;\[]", one, maxsplit=1)[0] for one in wanted]


def link_distributions(names: Iterable[str], packages: Path) -> None:
    """Each top-level file and folder of the distributions; none of them requires another one."""
    for name in names:
        found = distribution(name)
        tops = {Path(file).parts[0] for file in found.files or ()} - {"..", "__pycache__"}
        for top in tops:
            (packages / top).symlink_to(Path(str(found.locate_file(top))))
