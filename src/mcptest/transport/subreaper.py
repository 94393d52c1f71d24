"""Orphans of our servers become our children (Linux). On the way to the first server."""

from __future__ import annotations

import sys

_PR_SET_CHILD_SUBREAPER = 36


def become_subreaper() -> bool:
    """Make orphans of our servers our children. False where the system has no such thing."""
    if not sys.platform.startswith("linux"):
        return False
    import ctypes

    try:
        prctl = ctypes.CDLL(None).prctl
    except (OSError, AttributeError):  # a libc without it
        return False
    return bool(prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)
