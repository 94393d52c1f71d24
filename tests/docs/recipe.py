"""What `make TARGET` runs, without setting anything up: the recipe as the Makefile has it."""

from __future__ import annotations

import re
import subprocess
import sys

from tests.docs.fences import ROOT

DEMO_ONLY = frozenset({"demo"})
"""Targets that a page shows the output of."""


def recipe_of(target: str, makefile: str) -> list[str]:
    found = re.search(rf"^{re.escape(target)}:.*\n((?:\t.*\n)+)", makefile, re.MULTILINE)
    if found is None:
        raise LookupError(f"the Makefile has no target {target}")
    return [line.strip().replace("$(BIN)/", "") for line in found[1].splitlines()]


def main(target: str) -> int:
    if target not in DEMO_ONLY:
        raise SystemExit(f"make {target} is not run here: mark it")
    for line in recipe_of(target, (ROOT / "Makefile").read_text()):
        code = subprocess.run(["/bin/sh", "-c", line]).returncode
        if code:
            return code
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1]))
