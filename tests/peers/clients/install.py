"""`python -m tests.peers.clients.install [NAME…]`: install client libraries as they are pinned.

Each Python library gets a virtual environment of its own below `.cache/clients`; those from npm are
the workspaces of one project there. What is installed already, from the same pins, is left alone.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

from tests.peers.clients.libraries import HERE, LIBRARIES, NPM, Library


def main(names: list[str]) -> int:
    chosen = [one for one in LIBRARIES if not names or one.name in names]
    for library in chosen:
        if library.language == "python":
            _install_python(library)
    if any(one.language == "node" for one in chosen):
        _install_npm()
    return 0


def _install_python(library: Library) -> None:
    home, state = library.home, _state(library.pins)
    if _is_done(home, state):
        return
    print(f"{library.name}: {library.package} {library.version}", flush=True)
    shutil.rmtree(home, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
    pip = [str(home / "bin" / "python"), "-m", "pip", "install", "--quiet", "--no-deps"]
    subprocess.run([*pip, "--requirement", str(library.pins)], check=True)
    (home / ".installed").write_text(state)


def _install_npm() -> None:
    source = HERE / "npm"
    state = _state(source / "package-lock.json")
    if _is_done(NPM, state):
        return
    shutil.rmtree(NPM, ignore_errors=True)
    shutil.copytree(source, NPM, ignore=shutil.ignore_patterns("node_modules"))
    words = ["npm", "ci", "--no-audit", "--no-fund", "--loglevel=error"]
    subprocess.run(words, cwd=NPM, check=True)
    (NPM / ".installed").write_text(state)


def _state(pins: Path) -> str:
    return sha256(pins.read_bytes()).hexdigest()


def _is_done(home: Path, state: str) -> bool:
    mark = home / ".installed"
    return mark.exists() and mark.read_text() == state


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
