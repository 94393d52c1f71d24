"""Names that are close to one that nobody knows: for "did you mean …?"."""

from __future__ import annotations

from collections.abc import Iterable


def close_matches(wanted: str, known: Iterable[str], n: int = 3, cutoff: float = 0.6) -> list[str]:
    """The nearest first, at most `n`. `cutoff` is from 0, anything, to 1, the very same."""
    import difflib  # only those who misspell pay for it

    return difflib.get_close_matches(wanted, list(known), n, cutoff)
