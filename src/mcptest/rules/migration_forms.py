"""The forms of names that revisions began to ask for: keys of `_meta`, URIs, names of tools."""

from __future__ import annotations

import re
from typing import Final

_LABEL: Final = r"[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_META_KEY: Final = re.compile(
    rf"(?:{_LABEL}(?:\.{_LABEL})*/)?(?:[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)?"
)
_URI: Final = re.compile(
    r"[A-Za-z][A-Za-z0-9+.-]*:(?:[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=]|%[0-9A-Fa-f]{2})*"
)
_TOOL_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,128}")


def is_meta_key(key: str) -> bool:
    """An optional prefix of dotted labels with a slash, and a name."""
    return _META_KEY.fullmatch(key) is not None


def is_uri(text: str) -> bool:
    """A scheme, and only characters that RFC 3986 lets stand as they are."""
    return _URI.fullmatch(text) is not None


def is_plain_tool_name(name: str) -> bool:
    return _TOOL_NAME.fullmatch(name) is not None
