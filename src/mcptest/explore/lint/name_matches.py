"""Which names of parameters mean the same, found by buckets: never every name with every other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

_SHORTEST_PART = 3
_LONGEST_NAME = 48
"""Parts are looked for in this much of a name: there are squarely many."""


class NameMatches:
    """Found once for every distinct name; case does not count."""

    def __init__(self, names: Iterable[str]) -> None:
        self._all = dict.fromkeys(name.lower() for name in names)
        self._by_key: dict[str, list[str]] = {}
        for name in self._all:
            for key in _keys(name):
                self._by_key.setdefault(key, []).append(name)
        self._lengths = sorted({len(name) for name in self._all if len(name) >= _SHORTEST_PART})
        self._related: dict[str, list[str]] = {}
        for name in self._all:
            for part in self._parts(name):
                self._related.setdefault(name, []).append(part)
                self._related.setdefault(part, []).append(name)

    def _parts(self, name: str) -> list[str]:
        """Other names that stand within this one."""
        cut = name[:_LONGEST_NAME]
        found = set()
        for length in self._lengths:
            if length > len(cut):
                break
            found.update([cut[start : start + length] for start in range(len(cut) - length + 1)])
        found.discard(name)
        return sorted(found & self._all.keys())

    def same(self, name: str) -> Iterator[str]:
        """Names that are this one, written differently; itself first of all."""
        for key in _keys(name):
            yield from self._by_key.get(key, ())

    def related(self, name: str) -> Iterator[str]:
        """Names within this one, or around it."""
        yield from self._related.get(name, ())


def _keys(name: str) -> Iterator[str]:
    yield name.replace("_", "").replace("-", "")
    words = [word for word in name.replace("-", "_").split("_") if len(word) > 2]
    if len(words) > 1:
        yield " ".join(sorted(words))
