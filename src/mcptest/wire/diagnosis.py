"""What bytes are that are no message: the usual ways in which a server frames or encodes wrongly.

For the words of an error only. Nothing is repaired, and nothing is decided by it.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from mcptest.core.message import ABSENT
from mcptest.wire.envelope import decode, is_meant_as_message

_LSP = re.compile(rb"(?im)^\s*content-(?:length|type)\s*:")
_EVENT = re.compile(rb"^(?:event|data|id|retry):\s?\S")
_PYTHON = re.compile(rb"^\s*[{\[].*'jsonrpc'\s*:")
_MARKUP = re.compile(rb"(?i)^\s*<(?:!doctype|html|\?xml)")
_MEMBER = re.compile(rb'\s*"jsonrpc"\s*:')
_OPENS = re.compile(rb"[{\[]")
_SPARE_COMMA = re.compile(rb",(?=\s*[}\]])")
_GZIP = b"\x1f\x8b"
_TRIED = 20
_LOOKED_AT = 16 * 1024
_RULE = "{rule}"
"""Where the rule that was broken is told, if it is one of the transport's."""
_ONE_PER_LINE = "; MCP over stdio sends each message on its own line"
_Signs: TypeAlias = Sequence[tuple[Callable[[bytes], object], str]]


def diagnose(pieces: Sequence[bytes], unfinished: bytes = b"", *, lines: bool = True) -> str:
    """A clause on what came in place of messages; empty where it is nothing that is known.

    `pieces` are lines or bodies that are no messages, in order; `unfinished` is a line whose
    newline has not come. Without `lines` they came over HTTP.
    """
    rule = _ONE_PER_LINE if lines else ""
    return _known_by_its_signs(pieces[:_TRIED], unfinished).replace(_RULE, rule)


def _known_by_its_signs(pieces: Sequence[bytes], unfinished: bytes) -> str:
    whole = [piece[:_LOOKED_AT] for piece in pieces if piece]
    looked_at = [*whole, unfinished[:_LOOKED_AT]] if unfinished else whole
    if known := _first_sign(looked_at, _SIGNS):
        return known
    hinting = [piece for piece in looked_at if b"jsonrpc" in piece]
    if not hinting:
        return ""
    if known := _first_sign(hinting, _SIGNS_OF_A_MESSAGE):  # the costly ones
        return known
    if _runs_over_lines(looked_at):
        return f"it is JSON over several lines{_RULE}"
    if unfinished and _is_one_message(unfinished):
        return "it is a message without a newline at its end"
    return "it ends before the message is complete" if any(map(_is_cut_off, whole)) else ""


def _first_sign(pieces: Sequence[bytes], signs: _Signs) -> str:
    for piece in pieces:
        for sign, words in signs:
            if sign(piece):
                return words
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
    """Every other byte of it is zero, or its mark says so."""
    if piece.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return True
    return piece.count(0) * 3 > len(piece) and is_meant_as_message(decode(piece))


def _is_cut_off(piece: bytes) -> bool:
    """A whole message could still come of it, if more followed."""
    if len(piece) == _LOOKED_AT or not piece.lstrip().startswith(b"{"):
        return False
    text = piece.decode("utf-8", "replace").rstrip()
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return error.pos >= len(text) or error.msg.startswith("Unterminated string")
    except RecursionError:
        return False
    return False


def _has_spare_comma(piece: bytes) -> bool:
    """A comma behind the last member, as other languages allow one."""
    return bool(_SPARE_COMMA.search(piece)) and _is_one_message(_SPARE_COMMA.sub(b"", piece))


def _has_several(piece: bytes) -> bool:
    """Two messages without a newline between them."""
    first, rest = _first_value(piece)
    return isinstance(first, dict) and _is_one_message(rest.strip(" ,\r\t").encode())


def _precedes_other_text(piece: bytes) -> bool:
    first, rest = _first_value(piece)
    return isinstance(first, dict) and "jsonrpc" in first and bool(rest.strip())


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


_SIGNS: _Signs = (
    (lambda piece: piece.startswith(_GZIP), "it is compressed with gzip, but no header says so"),
    (_is_utf_16, "it is UTF-16; MCP messages are UTF-8"),
    (_LSP.search, f"it is framed by headers, as LSP messages are{_RULE}"),
    (_EVENT.match, f"it is a server-sent event{_RULE}"),
    (_MARKUP.match, "it is a web page"),
    (_PYTHON.match, "it is the text form of a Python object, not JSON"),
)
_SIGNS_OF_A_MESSAGE: _Signs = (
    (_ends_in_carriage_returns, "its lines end with a carriage return alone, not with a newline"),
    (_has_spare_comma, "there is a comma after the last member, which JSON does not allow"),
    (lambda piece: b"\0" in piece, "there is a NUL byte in it, which JSON does not allow"),
    (_has_several, f"there are several messages on one line{_RULE}"),
    (_precedes_other_text, f"there is other text after a message{_RULE}"),
    (_follows_other_text, f"there is other text before a message{_RULE}"),
)
