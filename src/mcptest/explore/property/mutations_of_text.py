"""Mutations of the text: bytes that are no JSON, or JSON that readers read differently.

No byte sequence holds a line break: over stdio each is exactly one line.
"""

from __future__ import annotations

import json
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from mcptest.explore.property.crafted import encode
from mcptest.explore.property.mutation import ALIVE, Mutation
from mcptest.model.limits import DEFAULT_LIMITS
from mcptest.model.revision import Revision

_NO_JSON: Final = ("JSONRPC-002", "STDIO-102", ALIVE)
_AMBIGUOUS: Final = (ALIVE,)
_STDIO: Final = frozenset({"stdio"})
_LARGEST: Final = 1 << 20

_BAD_UTF8: Final = (
    b"\xff",
    b"\xc0\xaf",
    b"\xed\xa0\x80",
    b"\x80",
    b"\xf4\x90\x80\x80",
    b"\xe2\x82",
)
"""Never a byte, overlong, a surrogate, a lone continuation, beyond the last code point, cut off."""
_SCRAPS: Final = (
    b"x",
    b"{",
    b"}",
    b"[",
    b"{}}",
    b"{'jsonrpc': '2.0'}",
    b'{"jsonrpc": "2.0",}',
    b"{jsonrpc: 2}",
    b"// {}",
    b"None",
    b"Content-Length: 2",
    b"\x00",
    b"\x1b[31m",
)


def _not_json(draw: DrawFn, value: dict[str, Any], revision: Revision) -> bytes:
    return draw(st.sampled_from(_SCRAPS))


def _blank(draw: DrawFn, value: dict[str, Any], revision: Revision) -> bytes:
    return draw(st.sampled_from((b" ", b"", b"\t", b"   ")))


def _truncated(draw: DrawFn, value: dict[str, Any], revision: Revision) -> bytes:
    whole = encode(value)
    return whole[: draw(st.integers(1, len(whole) - 1))]


def _more_behind(draw: DrawFn, value: dict[str, Any], revision: Revision) -> bytes:
    return encode(value) + draw(st.sampled_from((b"}", b"x", b",", b" 1", b"\x00")))


def _two_in_one(draw: DrawFn, value: dict[str, Any], revision: Revision) -> bytes:
    other = {**value, "id": "second"}
    return encode(value) + draw(st.sampled_from((b"", b" "))) + encode(other)


def _invalid_utf8(draw: DrawFn, value: dict[str, Any], revision: Revision) -> bytes:
    value["method"] = f"{value['method']}/?"
    return encode(value).replace(b"/?", draw(st.sampled_from(_BAD_UTF8)))


def _byte_order_mark(draw: DrawFn, value: dict[str, Any], revision: Revision) -> bytes:
    return b"\xef\xbb\xbf" + encode(value)


def _utf16(draw: DrawFn, value: dict[str, Any], revision: Revision) -> bytes:
    return encode(value).decode().encode(draw(st.sampled_from(("utf-16-le", "utf-16-be"))))


def _control_character(draw: DrawFn, value: dict[str, Any], revision: Revision) -> bytes:
    control = bytes([draw(st.sampled_from((0x01, 0x00, 0x09, 0x08, 0x1F)))])
    return encode(value).replace(b'"method":"', b'"method":"' + control)


def _not_finite(draw: DrawFn, value: dict[str, Any], revision: Revision) -> bytes:
    return _with_number(value, draw(st.sampled_from((b"NaN", b"Infinity", b"-Infinity"))))


def _huge_number(draw: DrawFn, value: dict[str, Any], revision: Revision) -> bytes:
    return _with_number(value, draw(st.sampled_from((b"1e400", b"-1e999", b"9" * 5_000))))


def _bad_number(draw: DrawFn, value: dict[str, Any], revision: Revision) -> bytes:
    return _with_number(value, draw(st.sampled_from((b"01", b"+1", b".5", b"1.", b"0x1", b"1_0"))))


def _with_number(value: dict[str, Any], literal: bytes) -> bytes:
    value["params"] = {**value["params"], "mcptest": "?"}
    return encode(value).replace(b'"?"', literal)


def _duplicate_key(draw: DrawFn, value: dict[str, Any], revision: Revision) -> bytes:
    twice = draw(st.sampled_from(("method", "id", "jsonrpc", "params")))
    again = json.dumps({twice: value[twice]})[1:]
    return encode(value)[:-1] + b"," + again.encode()


def _lone_surrogate(draw: DrawFn, value: dict[str, Any], revision: Revision) -> bytes:
    half = draw(st.sampled_from((b"\\ud800", b"\\udfff", b"\\udc00\\ud800")))
    value["params"] = {**value["params"], "mcptest": "?"}
    return encode(value).replace(b'"?"', b'"' + half + b'"')


def _too_deep(draw: DrawFn, value: dict[str, Any], revision: Revision) -> bytes:
    levels = draw(st.sampled_from((DEFAULT_LIMITS.depth, 2_000, 20_000)))
    opening, closing = draw(st.sampled_from(((b"[", b"]"), (b'{"a":', b"}"))))
    inner = b"" if opening == b"[" else b"0"
    return _with_number(value, opening * levels + inner + closing * levels)


def _unclosed(draw: DrawFn, value: dict[str, Any], revision: Revision) -> bytes:
    return draw(st.sampled_from((b"[", b'{"a":'))) * draw(st.sampled_from((1, 600, 100_000)))


def _huge(draw: DrawFn, value: dict[str, Any], revision: Revision) -> bytes:
    length = draw(st.sampled_from((_LARGEST // 16, _LARGEST)))
    value["method"] = "mcptest/" + "x" * length
    return encode(value)


TEXT_MUTATIONS: Final = (
    Mutation("not-json", "the text is no JSON", _not_json, _NO_JSON),
    Mutation(
        "blank", "there is nothing but white space", _blank, ("STDIO-103", ALIVE), transports=_STDIO
    ),
    Mutation("truncated", "the text breaks off", _truncated, _NO_JSON),
    Mutation("unclosed", "nothing that is opened is closed", _unclosed, _NO_JSON),
    Mutation("more-behind", "more text follows the message", _more_behind, _NO_JSON),
    Mutation("two-in-one", "two messages stand on one line", _two_in_one, _NO_JSON),
    Mutation("invalid-utf8", "a byte of the method is not UTF-8", _invalid_utf8, _NO_JSON),
    Mutation("byte-order-mark", "it starts with a byte order mark", _byte_order_mark, _AMBIGUOUS),
    Mutation("utf-16", "the text is UTF-16", _utf16, _NO_JSON),
    Mutation(
        "control-character", "a control character stands in a string", _control_character, _NO_JSON
    ),
    Mutation("not-finite", "a number is not finite", _not_finite, _NO_JSON),
    Mutation("bad-number", "a number is written as JSON has none", _bad_number, _NO_JSON),
    Mutation("huge-number", "a number is too large for a double", _huge_number, _AMBIGUOUS),
    Mutation("duplicate-key", "a member occurs twice", _duplicate_key, _AMBIGUOUS),
    Mutation("lone-surrogate", "half a surrogate pair is escaped", _lone_surrogate, _AMBIGUOUS),
    Mutation("too-deep", "it nests deeper than 512 levels", _too_deep, _AMBIGUOUS),
    Mutation("huge", "the name of its method is huge", _huge, _AMBIGUOUS),
)
