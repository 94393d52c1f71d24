"""Install the published servers into .cache/published: `python -m tests.published.install [NAME]`.

From npm what `npm/package-lock.json` pins, for each Python server an environment of its own with
what `python/NAME.txt` pins: their SDKs do not go together.
"""

from __future__ import annotations

import subprocess
import sys
import venv
from collections.abc import Sequence

from tests.published.table import CACHE, HERE


def main(names: Sequence[str]) -> int:
    if not names or "npm" in names:
        _install_from_npm()
    for pinned in sorted((HERE / "python").glob("*.txt")):
        if not names or pinned.stem in names:
            _install_from_pypi(pinned.stem)
    return 0


def _install_from_npm() -> None:
    folder = CACHE / "npm"
    folder.mkdir(parents=True, exist_ok=True)
    lock = (HERE / "npm" / "package-lock.json").read_bytes()
    done = folder / "node_modules" / ".installed"
    if done.exists() and done.read_bytes() == lock:
        return
    (folder / "package-lock.json").write_bytes(lock)
    (folder / "package.json").write_bytes((HERE / "npm" / "package.json").read_bytes())
    # Scripts of packages would fetch browsers and binaries from elsewhere.
    options = ("--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
    # `ci` wants the binaries of every platform in the lock; those of others are none of ours.
    subprocess.run(["npm", "install", "--no-save", *options], cwd=folder, check=True)
    done.write_bytes(lock)


def _install_from_pypi(name: str) -> None:
    folder = CACHE / "python" / name
    pinned = (HERE / "python" / f"{name}.txt").read_bytes()
    done = folder / ".installed"
    if done.exists() and done.read_bytes() == pinned:
        return
    print(name, flush=True)
    venv.create(folder, with_pip=True, clear=True)
    options = ("--quiet", "--disable-pip-version-check", "--no-deps")
    file = str(HERE / "python" / f"{name}.txt")
    pip = (str(folder / "bin" / "python"), "-m", "pip", "install", *options, "-r", file)
    subprocess.run(pip, check=True)
    done.write_bytes(pinned)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
