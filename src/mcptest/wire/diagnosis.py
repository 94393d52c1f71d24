"""What bytes are that are no message: the usual ways in which a server frames or encodes wrongly.

For the words of an error only. Nothing is repaired, and nothing is decided by it.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from mcptest.model.message import ABSENT
from mcptest.wire.envelope import decode, is_meant_as_message

_LSP = re.compile(rb"(?im)^\s*content-(?:length|type)\s*:")
_EVENT = re.compile(rb"^(?:event|data|id|retry):\s?\S")
_PYTHON = re.compile(rb"^\s*[{\[].*'jsonrpc'\s*:")
_MARKUP = re.compile(rb"(?i)^\s*<(?:!doctype|html|\?xml)")
_MEMBER = re.compile(rb'\s*"jsonrpc"\s*:')
_OPENS = re.compile(rb"[{\[]")
_GZIP = b"\x1f\x8b"
_TRIED = 20
_LOOKED_AT = 16 * 1024
_ONE_PER_LINE = "MCP over stdio sends each message on one line of its own"


def diagnose(pieces: Sequence[bytes], unfinished: bytes = b"") -> str:
    """A clause on what came in place of messages; empty where it is nothing that is known.

    `pieces` are lines or bodies that are no messages, in order; `unfinished` is a line whose
    newline has not come.
    """
    looked_at = [piece[:_LOOKED_AT] for piece in (*pieces[:_TRIED], unfinished) if piece]
    for piece in looked_at:
        for sign, words in _SIGNS:
            if sign(piece):
                return words
    hinting = [piece for piece in looked_at if b"jsonrpc" in piece]
    for piece in hinting:  # the costly ones, where there may be a message
        for sign, words in _SIGNS_OF_A_MESSAGE:
            if sign(piece):
                return words
    if not hinting:
        return ""
    if _runs_over_lines(looked_at):
        return f"it is JSON over several lines; {_ONE_PER_LINE}"
    if unfinished and _is_one_message(unfinished):
        return "it is a message without a newline behind it"
    return ""


def _is_one_message(text: bytes) -> bool:
    message = decode(text)
    return bool(message.value) and is_meant_as_message(message)


def _runs_over_lines(pieces: Sequence[bytes]) -> bool:
    """Whether an object is opened on one line, and has its members on lines of their own."""
    opened = False
    for piece in pieces:
        if opened and _MEMBER.match(piece):
            return True
        opened = opened or piece.strip() == b"{"
    return False


def _first_value(text: bytes) -> tuple[Any, str]:
    """The JSON value that the text begins with, and the rest; ABSENT when it begins with none."""
    plain = text.decode("utf-8", "replace").strip()
    try:
        first, end = json.JSONDecoder().raw_decode(plain)
    except (ValueError, RecursionError):
        return ABSENT, plain
    return first, plain[end:]


def _is_utf_16(piece: bytes) -> bool:
    return piece.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or (
        b"\0" in piece and is_meant_as_message(decode(piece))
    )


def _has_several(piece: bytes) -> bool:
    """Two messages without a newline between them."""
    first, rest = _first_value(piece)
    return isinstance(first, dict) and _is_one_message(rest.strip(" ,\r\t").encode())


def _ends_in_carriage_returns(piece: bytes) -> bool:
    first, _, rest = piece.partition(b"\r")
    return _is_one_message(first) and (bool(rest.strip()) or piece.endswith(b"\r"))


def _follows_other_text(piece: bytes) -> bool:
    """A message behind a prefix, as a logger puts one there."""
    opening = _OPENS.search(piece)
    for _ in range(_TRIED):
        if opening is None:
            return False
        if opening.start() and _is_one_message(piece[opening.start() :]):
            return True
        opening = _OPENS.search(piece, opening.end())
    return False


_SIGNS: tuple[tuple[Callable[[bytes], object], str], ...] = (
    (lambda piece: piece.startswith(_GZIP), "it is compressed with gzip, and nothing says so"),
    (_is_utf_16, "it is UTF-16; MCP messages are UTF-8"),
    (_LSP.search, f"it is framed by headers, as LSP messages are; {_ONE_PER_LINE}"),
    (_EVENT.match, f"it is a server-sent event; {_ONE_PER_LINE}"),
    (_MARKUP.match, "it is a web page"),
    (_PYTHON.match, "it is the text form of a Python object, not JSON"),
)
_SIGNS_OF_A_MESSAGE: tuple[tuple[Callable[[bytes], object], str], ...] = (
    (_ends_in_carriage_returns, "its lines end with a carriage return alone, not with a newline"),
    (_has_several, f"several messages stand on one line; {_ONE_PER_LINE}"),
    (_follows_other_text, f"a message stands behind other text; {_ONE_PER_LINE}"),
)
