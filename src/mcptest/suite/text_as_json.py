"""The text under test read as JSON: all of it, or else the first line that is JSON by itself."""

from __future__ import annotations

from typing import Any

import msgspec

from mcptest.model.limits import DEFAULT_LIMITS
from mcptest.model.message import ABSENT, Flaw
from mcptest.suite.go_format import trim_space
from mcptest.wire.jsontext import is_deeper, read_json

_HARMLESS = {Flaw.LONE_SURROGATE, Flaw.INVALID_UTF8}
_BEGINNINGS = frozenset('{["-0123456789tfn')
_decode = msgspec.json.Decoder().decode
_JSON_SPACE = " \t\n\r"


def whole_text(text: str) -> tuple[Any, str]:
    """The value and no reason, or ABSENT and why the text is not JSON."""
    value, problems = read_json(text.encode("utf-8", "surrogatepass"))
    faults = [problem for problem in problems if problem.flaw not in _HARMLESS]
    if not faults and value is not ABSENT:
        return value, ""
    return ABSENT, _why_not(text, faults[0].reason if faults else "not JSON")


def text_or_first_line(text: str) -> tuple[Any, str]:
    """As `whole_text`; when the whole is not JSON, the first line that is JSON by itself."""
    value, reason = whole_text(text)
    if value is not ABSENT:
        return value, reason
    for line in text.split("\n"):
        trimmed = trim_space(line)
        if trimmed and trimmed[0] in _BEGINNINGS:
            value = _line_value(trimmed)
            if value is not ABSENT:
                return value, ""
    return ABSENT, reason


def _line_value(line: str) -> Any:
    """The value, or ABSENT. Most lines are no JSON, and nobody asks why, so this is quick."""
    raw = line.encode("utf-8", "replace")
    if is_deeper(raw, DEFAULT_LIMITS.depth):
        return ABSENT
    try:
        return _decode(raw)
    except (ValueError, RecursionError):
        # A lone surrogate is all that the quick reader refuses without need.
        return whole_text(line)[0] if "\\u" in line else ABSENT


def _why_not(text: str, reason: str) -> str:
    """The words that Go has for the commonest mistakes; ours for the rest."""
    import json

    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        if not text[error.pos :].strip(_JSON_SPACE):
            return "unexpected end of JSON input"
        character = text[error.pos]
        if error.msg == "Extra data":
            return f"invalid character {character!r} after top-level value"
        if error.msg == "Expecting value":
            return f"invalid character {character!r} looking for beginning of value"
    except (ValueError, RecursionError):
        pass  # the reason that the reader gave is better
    return reason
