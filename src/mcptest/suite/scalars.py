"""What a scalar means: by the rules of the YAML library that mcp-assert is built on.

They are YAML 1.2 with some of 1.1: `yes` and `on` are texts unless a truth value is asked for,
`017` is octal, `1_000` a thousand, `1:30` a text. Numbers become what JSON can hold.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

from mcptest.model.show import show
from mcptest.suite.yaml_nodes import TAGS, Scalar

_TRUE = frozenset({"true", "True", "TRUE"})
_FALSE = frozenset({"false", "False", "FALSE"})
_YES = _TRUE | {"y", "Y", "yes", "Yes", "YES", "on", "On", "ON"}
_NO = _FALSE | {"n", "N", "no", "No", "NO", "off", "Off", "OFF"}
_NOTHING = frozenset({"", "~", "null", "Null", "NULL"})
# Compiled when they are needed: for most suites that is never, and it takes its time.
_NOT_JSON = r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"
_BASED = r"[-+]?0(?:[xX][0-9a-fA-F]+|[oO]?[0-7]+|[bB][01]+)"
_DECIMAL = r"[-+]?(?:0|[1-9][0-9]*)"
_FLOAT = r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
_LOOSE = r"(?<![0-9])_|_(?![0-9])"
"""An underscore that is not between digits; only a number that starts with a point minds."""
_DIGITS = frozenset("0123456789")
_LONGEST_NUMBER = 1_000
_LARGEST_WHOLE = 1e21
"""From here on a float keeps its exponent on the wire, below it is written as a whole number."""


class ScalarError(ValueError):
    """Why a scalar can't be the value that it looks like."""


def is_nothing(scalar: Scalar) -> bool:
    """`null`, `~`, or nothing after the colon."""
    return scalar.tag == TAGS + "null" or (scalar.plain and scalar.text in _NOTHING)


def json_value(scalar: Scalar) -> Any:
    """The value in a place where anything may stand."""
    if scalar.plain:
        return _plain(scalar.text)
    if scalar.tag is None or scalar.tag == "!":
        return scalar.text
    return _tagged(scalar)


def truth_value(scalar: Scalar) -> bool | None:
    """The value where a truth value is asked for; None when it is none."""
    if scalar.plain or scalar.tag == TAGS + "bool":
        if scalar.text in _YES:
            return True
        if scalar.text in _NO:
            return False
    return None


def text_value(scalar: Scalar) -> str:
    """The value where a text is asked for: any scalar, as it is written."""
    if scalar.tag is None or scalar.tag in {"!", TAGS + "str"}:
        return scalar.text
    _tagged(scalar)
    return _binary(scalar.text) if scalar.tag == TAGS + "binary" else scalar.text


def _plain(text: str) -> Any:
    if text in _NOTHING:
        return None
    first = text[0]
    if first in "tTfF":
        return True if text in _TRUE else False if text in _FALSE else text
    if first in "+-.0123456789":
        if "." in text and re.fullmatch(_NOT_JSON, text):
            raise ScalarError(f"{text} has no form in JSON; quote it if it is a text")
        number = _number(text)
        return text if number is None else number
    return text


def _number(text: str) -> int | float | None:
    if text[0] == "." and re.search(_LOOSE, text):
        return None
    digits = text.replace("_", "")
    if len(digits) > _LONGEST_NUMBER:
        if re.fullmatch(_FLOAT, digits):
            raise ScalarError(f"a number of {len(digits)} characters; quote it if it is a text")
        return None
    if _is_a_plain_count(digits) or re.fullmatch(_DECIMAL, digits):
        return int(digits)
    if re.fullmatch(_BASED, digits):
        return _based(digits)
    if re.fullmatch(_FLOAT, digits):
        return _float(digits)
    return None


def _is_a_plain_count(digits: str) -> bool:
    return _DIGITS.issuperset(digits) and (digits[0] != "0" or digits == "0")


def _based(digits: str) -> int:
    unsigned = digits.lstrip("+-").lower()
    value = int(unsigned, 0) if unsigned[1] in "xob" else int(unsigned, 8)
    return -value if digits[0] == "-" else value


def _float(digits: str) -> int | float:
    value = float(digits)
    if math.isinf(value):
        raise ScalarError(f"{show(digits, 40)} is too large; quote it if it is a text")
    if value.is_integer() and abs(value) < _LARGEST_WHOLE and not _negative_zero(value):
        return int(value)
    return value


def _negative_zero(value: float) -> bool:
    return value == 0 and math.copysign(1, value) < 0


def _tagged(scalar: Scalar) -> Any:
    tag = str(scalar.tag).removeprefix(TAGS)
    if not str(scalar.tag).startswith(TAGS) or tag not in _BY_TAG:
        raise ScalarError(f"unknown tag {show(_shown(scalar), 60)}")
    value = _BY_TAG[tag](scalar.text)
    if value is _MISMATCH:
        raise ScalarError(f"{show(scalar.text, 40)!r} is not what {_shown(scalar)} says")
    return value


def _shown(scalar: Scalar) -> str:
    tag = str(scalar.tag)
    return "!!" + tag.removeprefix(TAGS) if tag.startswith(TAGS) else tag


def _binary(text: str) -> str:
    import base64

    try:
        raw = base64.b64decode("".join(text.split()), validate=True)
    except ValueError:
        raise ScalarError("!!binary holds no base64") from None
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        raise ScalarError("!!binary holds bytes that are no UTF-8 text") from None


_MISMATCH = object()


def _whole(text: str) -> Any:
    value = _plain(text)
    return value if type(value) is int else _MISMATCH


def _any_number(text: str) -> Any:
    value = _plain(text)
    return value if type(value) in {int, float} else _MISMATCH


def _truth(text: str) -> Any:
    return True if text in _YES else False if text in _NO else _MISMATCH


def _null(text: str) -> Any:
    return None if text in _NOTHING else _MISMATCH


_BY_TAG: dict[str, Callable[[str], Any]] = {
    "str": str,
    "int": _whole,
    "float": _any_number,
    "bool": _truth,
    "null": _null,
    "binary": _binary,
    "timestamp": str,
}
