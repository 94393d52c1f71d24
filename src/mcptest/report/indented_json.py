"""JSON for files and people: indented, and written whatever a server called its things."""

from __future__ import annotations

from typing import Any

import msgspec


def indented_json(value: Any) -> bytes:
    """Ends with a newline. Half a surrogate pair, which UTF-8 has no bytes for, is escaped."""
    try:
        text = msgspec.json.encode(value)
    except UnicodeEncodeError:
        import json

        text = json.dumps(value).encode("ascii")
    return msgspec.json.format(text, indent=2) + b"\n"
