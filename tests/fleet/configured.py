"""Client configurations for the tests of a fleet, and servers that behave in a certain way."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

DEMO = {"command": sys.executable, "args": ["-m", "mcptest.servers.demo"]}
GONE = {"command": "/nonexistent/server"}


def script(folder: Path, name: str, text: str, *arguments: str) -> dict[str, Any]:
    """An entry for a server that is this Python program."""
    path = folder / f"{name}.py"
    path.write_text(text)
    return {"command": sys.executable, "args": [str(path), *arguments]}


def stuck_once(folder: Path, name: str = "stuck") -> tuple[dict[str, Any], Path]:
    """The demo, which says nothing when it is started first. Then its pid is in the file."""
    mark = folder / f"{name}.pid"
    text = f"""\
import os, pathlib, signal, sys
mark = pathlib.Path({str(mark)!r})
if not mark.exists():
    fresh = mark.with_suffix(".new")
    fresh.write_text(str(os.getpid()))
    fresh.rename(mark)
    signal.pause()
os.execv(sys.executable, [sys.executable, "-m", "mcptest.servers.demo"])
"""
    return script(folder, name, text), mark


def write_config(folder: Path, servers: dict[str, Any], name: str = "mcp.json") -> Path:
    path = folder / name
    path.write_text(json.dumps({"mcpServers": servers}))
    return path


def parent_of(pid: int) -> int:
    """Linux."""
    stat = Path(f"/proc/{pid}/stat").read_text()
    return int(stat.rpartition(")")[2].split()[1])
