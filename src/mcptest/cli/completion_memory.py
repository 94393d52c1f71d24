"""What can be completed, kept in the user's cache: to ask all parsers takes ten times as long.

It is made again whenever a file of ours has changed. A cache that can't be read or written costs
time, never an answer.
"""

from __future__ import annotations

import contextlib
import json
import os
from typing import Any

import mcptest


def known_shape() -> dict[str, Any]:
    path, stamp = _path(), _stamp()
    kept = _read(path)
    if kept.get("stamp") == stamp and isinstance(kept.get("shape"), dict):
        return dict(kept["shape"])
    from mcptest.cli.completion_shape import shape_of_all

    shape = shape_of_all()
    if path:
        _write(path, json.dumps({"stamp": stamp, "shape": shape}))
    return shape


def _path() -> str:
    cache = os.environ.get("XDG_CACHE_HOME", "")
    if not cache.startswith("/"):
        home = os.environ.get("HOME", "")
        if not home.startswith("/"):
            return ""
        cache = f"{home}/.cache"
    return f"{cache}/mcptest/completion.json"


def _stamp() -> list[Any]:
    """Of this very installation: its version, its place, and when it last changed."""
    folder = os.path.dirname(os.path.abspath(mcptest.__file__))  # noqa: PTH100, PTH120 - pathlib is slow
    changed = 0
    for room in ("cli", "rules", "compliance"):
        with os.scandir(f"{folder}/{room}") as entries:
            changed = max(changed, *(one.stat().st_mtime_ns for one in entries if one.is_file()))
    return [mcptest.__version__, folder, changed]


def _read(path: str) -> dict[str, Any]:
    if not path:
        return {}
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - pathlib is slow
            kept = json.load(file)
    except (OSError, ValueError, RecursionError):  # none yet, or not ours
        return {}
    return kept if isinstance(kept, dict) else {}


def _write(path: str, text: str) -> None:
    """Whole or not at all: two shells may ask at once."""
    with contextlib.suppress(OSError):
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)  # noqa: PTH103, PTH120 - as above
        beside = f"{path}.{os.getpid()}"
        with open(beside, "w", encoding="utf-8") as file:  # noqa: PTH123 - as above
            file.write(text)
        os.replace(beside, path)  # noqa: PTH105 - as above
