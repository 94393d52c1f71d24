"""Regular expressions in time linear in the text: RE2, the flavour that mcp-assert has too."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from mcptest.core.safe_text import show

_MEMORY = 8 * 1024 * 1024
_LONGEST = 10_000


class RegexError(ValueError):
    """The pattern can't be used; the text says why."""


def pattern_problem(pattern: str) -> str | None:
    """Why RE2 does not take the pattern, or None: for the moment when a suite is loaded."""
    try:
        _compiled(pattern)
    except RegexError as error:
        return str(error)
    return None


def found_in(pattern: str, text: str | bytes) -> bool:
    """Whether the pattern matches anywhere. Raises RegexError for a pattern that can't be used."""
    return _compiled(pattern).search(as_bytes(text)) is not None


def matches_whole(pattern: str, text: str | bytes) -> bool:
    """Whether the pattern matches all of the text. Raises RegexError."""
    return _compiled(pattern).fullmatch(as_bytes(text)) is not None


def groups_of(pattern: str) -> dict[str, int]:
    """The named groups of a pattern, with their numbers. Raises RegexError."""
    return {name.decode(): number for name, number in _compiled(pattern).groupindex.items()}


def with_groups_replaced(pattern: str, text: bytes, instead: Mapping[int, bytes]) -> bytes:
    """The text in which, for each match, the groups of these numbers are replaced; 0 is the match.

    A group within one that was replaced is gone with it. Raises RegexError.
    """
    pieces: list[bytes] = []
    end = 0
    for match in _compiled(pattern).finditer(text):
        # from left to right, the outer of two before the inner
        spans = [(*match.span(number), number) for number in instead]
        for begin, until, number in sorted(spans, key=lambda one: (one[0], -one[1])):
            if begin >= end and until > begin:
                pieces += [text[end:begin], instead[number]]
                end = until
    return b"".join([*pieces, text[end:]])


def as_bytes(text: str | bytes) -> bytes:
    """The bytes that are searched. Whoever searches one text often encodes it once."""
    return text if isinstance(text, bytes) else text.encode("utf-8", "replace")


@functools.lru_cache(maxsize=256)
def _compiled(pattern: str) -> Any:
    if len(pattern) > _LONGEST:
        raise RegexError(f"error parsing regexp: longer than {_LONGEST} characters")
    import re2  # type: ignore[import-untyped]  # it ships no types

    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MEMORY
    try:
        # Bytes, because for text the binding computes an offset for every character.
        return re2.compile(as_bytes(pattern), options)
    except re2.error as error:
        reason = error.args[0] if error.args else ""
        told = show(reason if isinstance(reason, bytes | str) else str(error), 200)
        raise RegexError(f"error parsing regexp: {told}") from None
