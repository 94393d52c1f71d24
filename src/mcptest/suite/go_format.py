"""Values as Go's `fmt` prints them: the failure texts that people know from mcp-assert use it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

from mcptest.core.message import json_type

_SHOWN = 200
_DEEPEST = 100
_ESCAPES = {
    "\a": r"\a",
    "\b": r"\b",
    "\f": r"\f",
    "\n": r"\n",
    "\r": r"\r",
    "\t": r"\t",
    "\v": r"\v",
    "\\": r"\\",
    '"': r"\"",
}
# What `unicode.IsSpace` says. Python's own `strip` also takes U+001C..U+001F.
WHITE_SPACE = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
_PLAIN = re.compile(r"[ !#-\[\]-~]*")


def quote(text: str) -> str:
    """`%q` of a string."""
    if _PLAIN.fullmatch(text):
        return f'"{text}"'
    return '"' + "".join(map(_quoted_character, text)) + '"'


def _quoted_character(character: str) -> str:
    named = _ESCAPES.get(character)
    if named is not None:
        return named
    if character.isprintable():
        return character
    code = ord(character)
    if code < 0x20 or code == 0x7F:
        return f"\\x{code:02x}"
    if 0xD800 <= code < 0xE000:
        return r"\ufffd"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def quote_all(texts: Iterable[str]) -> str:
    """`%q` of a list of strings: no commas."""
    return "[" + " ".join(map(quote, texts)) + "]"


def first_runes(text: str, limit: int = _SHOWN) -> str:
    """`%.200s`."""
    return text[:limit]


def trim_space(text: str) -> str:
    """`strings.TrimSpace`."""
    return text.strip(WHITE_SPACE)


def value_text(value: Any, *, numbers_as_doubles: bool = False) -> str:
    """`%v` of a JSON value.

    mcp-assert reads every JSON number as a double and so prints 1000000 as `1e+06`; that is
    only done where asked for. Whole numbers are otherwise printed in full.
    """
    return _value_text(value, numbers_as_doubles, 0)


def _value_text(value: Any, as_doubles: bool, depth: int) -> str:
    if isinstance(value, str):
        return value
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        if as_doubles:
            return _number_as_double(value)
        # Python refuses to print integers of more than 4,300 digits.
        bits = value.bit_length()
        return str(value) if bits < 10_000 else f"a number of {bits} bits"
    if isinstance(value, float):
        return double_text(value)
    if depth >= _DEEPEST:
        return "…"
    parts: list[str] = []
    if isinstance(value, Mapping):
        for key in sorted(value):
            parts.append(f"{key}:{_value_text(value[key], as_doubles, depth + 1)}")  # noqa: PERF401  # a comprehension would be one more frame for each level
        return "map[" + " ".join(parts) + "]"
    for item in value:
        parts.append(_value_text(item, as_doubles, depth + 1))  # noqa: PERF401  # as above
    return "[" + " ".join(parts) + "]"


def _number_as_double(value: int) -> str:
    try:
        return double_text(float(value))
    except OverflowError:
        return "+Inf" if value > 0 else "-Inf"


def double_text(value: float) -> str:
    """`%v` of a float64: the shortest digits that read back, an exponent below -4 and from 6 on."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if value == 0:
        return "-0" if math.copysign(1, value) < 0 else "0"
    sign, digits, exponent = _decimal(value)
    if -4 <= exponent < 6:
        return sign + _positional(digits, exponent)
    fraction = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{fraction}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"


def _decimal(value: float) -> tuple[str, str, int]:
    """Sign, significant digits without trailing zeros, and the power of ten of the first one."""
    mantissa, _, power = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    leading = len(whole + fraction) - len(digits)
    exponent = len(whole) - 1 - leading + int(power or 0)
    return ("-" if value < 0 else ""), digits.rstrip("0"), exponent


def _positional(digits: str, exponent: int) -> str:
    if exponent < 0:
        return "0." + "0" * (-exponent - 1) + digits
    whole = digits[: exponent + 1].ljust(exponent + 1, "0")
    fraction = digits[exponent + 1 :]
    return f"{whole}.{fraction}" if fraction else whole


def compact_json(value: Any, *, sort_keys: bool = False) -> str:
    """JSON without white space, members as they came, every character as itself."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=sort_keys)


# -- A JSON-RPC error in words -------------------------------------------------------------------

_MEANINGS = {
    -32700: "parse error",
    -32600: "invalid request",
    -32601: "method not found",
    -32602: "invalid params",
    -32603: "internal error",
    -32002: "resource not found",
    -32800: "request interrupted",
    -32042: "URL elicitation required",
}


def error_code(error: Any) -> int | None:
    """The code of an error, when it has one that is a whole number."""
    code = error.get("code") if isinstance(error, Mapping) else None
    return code if isinstance(code, int) and not isinstance(code, bool) else None


def error_text(error: Any) -> str:
    """`internal error: kaput (JSON-RPC error -32603)`."""
    if not isinstance(error, Mapping):
        return f"an error that is not an object but {json_type(error)}"
    code, message = error_code(error), error.get("message")
    meaning = "" if code is None else _MEANINGS.get(code, "")
    said = message if isinstance(message, str) and message != meaning else ""
    words = ": ".join(part for part in (meaning, said) if part)
    named = "without a code" if code is None else str(code)
    return f"{words} (JSON-RPC error {named})" if words else f"JSON-RPC error {named}"
