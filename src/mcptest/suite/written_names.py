"""File names for what a server names: safe on every system, never twice, and none is lost."""

from __future__ import annotations

import hashlib
import re

_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])", re.IGNORECASE)
_LONGEST = 60


class FileNames:
    """Gives out names for one folder."""

    def __init__(self) -> None:
        self._taken: dict[str, int] = {}

    def name_for(self, subject: str, prefix: str = "") -> str:
        """A new name that ends in .yaml. A name that had to be changed carries its own mark."""
        plain = _UNSAFE.sub("_", subject).strip("_-")[:_LONGEST] or "unnamed"
        changed = plain != subject or _RESERVED.fullmatch(plain) is not None
        stem = f"{prefix}{plain}" + (f"-{_mark(subject)}" if changed else "")
        if stem.lower() in self._taken:
            stem = f"{prefix}{plain}-{_mark(subject)}"
        free, number = stem, self._taken.get(stem.lower(), 1)
        while free.lower() in self._taken:
            number += 1
            free = f"{stem}-{number}"
        self._taken[stem.lower()] = self._taken[free.lower()] = number
        return f"{free}.yaml"


def _mark(subject: str) -> str:
    data = subject.encode("utf-8", "surrogatepass")
    return hashlib.sha256(data).hexdigest()[:8]
