"""The revisions that the demo speaks, by their place in time.

A copy in plain strings of what `mcptest.core.revision` says, because importing that one costs
more than all the rest of the demo's start-up. A test holds the two together.
"""

from __future__ import annotations

V2024_11_05 = "2024-11-05"
V2025_03_26 = "2025-03-26"
V2025_06_18 = "2025-06-18"
V2025_11_25 = "2025-11-25"
V2026_07_28 = "2026-07-28"

HANDSHAKE = (V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25)
STATELESS = (V2026_07_28,)
ALL = HANDSHAKE + STATELESS

_PLACE = {version: place for place, version in enumerate(ALL)}


def since(version: str, first: str) -> bool:
    """Is `version` the revision `first`, or a later one?"""
    return _PLACE[version] >= _PLACE[first]
