"""How many processors we may use. On the way to the first server, so it imports next to nothing."""

from __future__ import annotations

import os


def cores() -> int:
    """Those that this process was given, where the system tells (Linux); else all there are."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
