"""Making a peer's text safe to look at.

Whatever a peer says is data. Before a person's terminal or a CI log sees it, control codes,
bidirectional overrides and invisible characters become visible, and the text is cut to a length.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence

from mcptest.core.redaction import redaction

UNSAFE = (
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
# Workflow commands of CI systems: `::` at the start of a line, the others anywhere in it.
_COMMAND = r"(?i:^\s*(?=::|##)|#(?=#(?:\[|vso\[|teamcity\[)))"
_LOOKED_AT = 4096
"""Characters beyond the limit in which a secret may end that begins before it."""
_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


@functools.cache
def _unsafe() -> re.Pattern[str]:
    """Compiled when it is needed: most texts are plain, and this takes its time."""
    return re.compile(UNSAFE)


def escaped(match: re.Match[str]) -> str:
    """A character by its name or its number: `\\n`, `\\x1b`, `\\u202e`."""
    character = match.group()
    named = _NAMED.get(character)
    if named is not None:
        return named
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def beginning(text: str, limit: int) -> str:
    """So many characters of a text, as they are.

    Whoever writes masks. But half a secret would not be recognised, so this comes first.
    """
    return text if len(text) <= limit else redaction.text(text[: limit + _LOOKED_AT])[:limit]


def show_lines(text: str, limit: int = 600) -> str:
    """The lines of a text, each of which is safe to look at."""
    cut = beginning(text, limit)
    return "\n".join(show(line, limit) for line in cut.split("\n"))


def in_one_line(text: str, limit: int = 200) -> str:
    """The lines of a text as parts of one that is safe to look at."""
    cut = beginning(text, 4 * limit)
    parts = (line.strip() for line in cut.split("\n"))
    return show("; ".join(filter(None, parts)), limit)


def show(text: str | bytes, limit: int = 200) -> str:
    """One line that is safe in a terminal, a CI log or a message, cut to `limit` characters."""
    if isinstance(text, bytes):
        text = text[: limit * 4 + _LOOKED_AT].decode("utf-8", "backslashreplace")
    cut = beginning(text, limit + 1)
    safe = cut if cut.isascii() and cut.isprintable() else _unsafe().sub(escaped, cut)
    if "::" in safe or "##" in safe:
        safe = re.sub(_COMMAND, r"\g<0>\\", safe)
    return safe if len(safe) <= limit else safe[: max(0, limit - 1)] + "…"


def some_of(names: Sequence[str], most: int) -> str:
    """`a, b and 3 more`: the first names, and how many others there are."""
    listed, more = ", ".join(names[:most]), len(names) - most
    return f"{listed} and {more} more" if more > 0 else listed


_NO_CELL = frozenset({"Mn", "Me", "Cf"})


def cells(text: str) -> int:
    """The width on a terminal of a text that `show` has made safe."""
    return len(text) if text.isascii() else sum(map(cells_of, text))


def cells_of(character: str) -> int:
    import unicodedata  # where all is ASCII, nobody needs it

    if unicodedata.category(character) in _NO_CELL:
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
