"""What every `python -m …_pages FOLDER [--check]` does with its words."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path


def write_or_check(
    arguments: list[str],
    module: str,
    write: Callable[[Path], None],
    stale: Callable[[Path], list[str]],
) -> int:
    """Write the pages of a folder, or say with `--check` which of them are not fresh."""
    folders = [Path(one) for one in arguments if one != "--check"]
    if len(folders) != 1:
        sys.stderr.write(f"usage: python -m {module} FOLDER [--check]\n")
        return 2
    if "--check" not in arguments:
        write(folders[0])
        return 0
    found = stale(folders[0])
    for name in found:
        sys.stderr.write(f"{folders[0] / name} is not fresh\n")
    return 1 if found else 0
