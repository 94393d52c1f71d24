"""Data inside the page: JSON that a browser's HTML parser can only take for text.

A block of data ends at `</script`, and a comment or another script may begin in it, so no `<`, `>`
or `&` is ever written: JSON has escapes for them, and the reader gets back what was put in.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from mcptest.core.errors import UsageError
from mcptest.core.limits import MEBIBYTE
from mcptest.report.codec import as_escape

CHUNK_BYTES = 128 * 1024
CHUNK_ITEMS = 400
PAGE_LIMIT = 384 * MEBIBYTE
"""More than this no browser opens with pleasure."""

_MARKUP = ((b"<", b"\\u003c"), (b">", b"\\u003e"), (b"&", b"\\u0026"))
# Legal in JSON and in HTML, and a trap for whoever looks at the source.
_UNSEEN = re.compile(
    "[\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f]"
)


def as_embedded_json(value: Any) -> bytes:
    """JSON that may stand in a script element of any page."""
    try:
        raw = msgspec.json.encode(value)
    except UnicodeEncodeError:  # half a surrogate pair: UTF-8 can't hold it, an escape can
        raw = json.dumps(msgspec.to_builtins(value), separators=(",", ":")).encode("ascii")
    for character, escape in _MARKUP:
        if character in raw:
            raw = raw.replace(character, escape)
    if not raw.isascii():
        raw = _UNSEEN.sub(as_escape, raw.decode("utf-8")).encode("utf-8")
    return raw.replace(b"\x7f", b"\\u007f") if b"\x7f" in raw else raw


class Chunks(msgspec.Struct):
    """Many values in blocks of bounded size, so that the page reads only those that are looked at.

    A value is found by its number: `starts` says which number each block begins with.
    """

    name: str
    starts: list[int] = []
    blocks: list[bytes] = []
    written: int = 0
    _count: int = 0
    _waiting: list[bytes] = []
    _size: int = 0

    def add(self, value: Any) -> int:
        raw = as_embedded_json(value)
        if self._waiting and self._size + len(raw) > CHUNK_BYTES:
            self._close_block()
        if not self._waiting:
            self.starts.append(self._count)
        self._waiting.append(raw)
        self._size += len(raw)
        self._count += 1
        self.written += len(raw)
        if self.written > PAGE_LIMIT:
            raise page_too_large()
        if len(self._waiting) >= CHUNK_ITEMS:
            self._close_block()
        return self._count - 1

    def _close_block(self) -> None:
        if self._waiting:
            self.blocks.append(b"[" + b",".join(self._waiting) + b"]")
            self._waiting, self._size = [], 0

    def elements(self) -> Iterator[bytes]:
        """The blocks as elements of the page, which may be long: each is let go."""
        self._close_block()
        for number in range(len(self.blocks)):
            block, self.blocks[number] = self.blocks[number], b""
            yield data_element(f"{self.name}-{number}", block)


def page_too_large() -> UsageError:
    return UsageError(
        f"the report would be larger than {PAGE_LIMIT // MEBIBYTE} MiB",
        hint="name fewer captures with --capture",
    )


def data_element(name: str, content: bytes) -> bytes:
    return b'<script type="application/json" id="%b">%b</script>\n' % (name.encode(), content)
