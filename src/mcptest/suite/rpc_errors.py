"""A JSON-RPC error in words: those that mcp-assert has, and the code that it leaves out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcptest.model.message import json_type

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
