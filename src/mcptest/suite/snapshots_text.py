"""An answer as the text of a golden file: for people to review, and the same only for the same.

An answer that is one plain text is kept as just that. Everything else is kept in parts, each
under a line that begins with `===`. What belongs to the protocol is left out: `_meta`, how long the
answer may be cached, and `resultType` of an answer that is complete.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from mcptest.model.message import ABSENT
from mcptest.model.show import show
from mcptest.suite.observed import Observed
from mcptest.suite.snapshots_masks import Masks, protected
from mcptest.suite.text_under_test import compact_json

_HEAD = "=== mcptest snapshot 1"
_OF_THE_PROTOCOL = frozenset({"_meta", "ttlMs", "cacheScope"})
_LISTS = ("content", "contents", "messages")
_BINARY = ("data", "blob")
_LONGEST_BINARY = 120
"""Longer base64 is kept as its digest: nobody can review it."""
_MARKED = re.compile(r"^\\*===", re.MULTILINE)
# Control characters but tab and line feed, what steers the direction of text, what is invisible.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)


def golden_text(observed: Observed, masks: Masks) -> str:
    """What the golden file of this answer must hold."""
    plain = _plain_text(observed)
    text = plain + "\n" if plain is not None else "".join(f"{one}\n" for one in _parts(observed))
    return masks.apply(protected(text, masks.names))


def _plain_text(observed: Observed) -> str | None:
    result = _substance(observed.result)
    if observed.error is not None or not isinstance(result, dict) or set(result) != {"content"}:
        return None
    match result["content"]:
        case [{"type": "text", "text": str(text), **others}] if not _substance(others):
            is_plain = not _UNSEEN.search(text) and not text.startswith(_HEAD)
            return text if is_plain else None
    return None


def _substance(value: Any) -> Any:
    """A result or a content without what is no part of the answer."""
    if not isinstance(value, Mapping):
        return value
    kept = {name: one for name, one in value.items() if name not in _OF_THE_PROTOCOL}
    if kept.get("resultType") == "complete":
        del kept["resultType"]
    if kept.get("isError") is False:
        del kept["isError"]
    return kept


def _parts(observed: Observed) -> Iterator[str]:
    yield _HEAD
    if observed.error is not None:
        yield from _error_parts(observed.error)
        return
    result = _substance(observed.result)
    if result is ABSENT or not isinstance(result, dict):
        yield from _part("result", _pretty(None if result is ABSENT else result))
        return
    rest = dict(result)
    if rest.pop("isError", False):
        yield "=== isError"
    for member in _LISTS:
        items = rest.get(member)
        if isinstance(items, list):
            del rest[member]
            for number, item in enumerate(items):
                yield from _item(f"{member}[{number}]", item)
    for name in sorted(rest):
        yield from _part(show(name, 200), _pretty(rest[name]))


def _error_parts(error: Any) -> Iterator[str]:
    if not isinstance(error, Mapping):
        yield from _part("error", _pretty(error))
        return
    message = error.get("message")
    title = f"error {compact_json(error.get('code'))}"
    yield from _part(title, message if isinstance(message, str) else _pretty(message))
    if "data" in error:
        yield from _part("error data", _pretty(error["data"]))


def _item(title: str, item: Any) -> Iterator[str]:
    """One content: its text as it is, whatever else it says in the line above."""
    item = _substance(item)
    if not isinstance(item, dict):
        yield from _part(title, _pretty(item))
        return
    inner = _substance(item.get("content"))
    if isinstance(inner, dict) and isinstance(inner.get("text"), str):
        others = {**item, "content": {k: v for k, v in inner.items() if k != "text"}}
        yield from _part(f"{title} {_facts(others)}", inner["text"])
    elif isinstance(item.get("text"), str):
        others = {name: one for name, one in item.items() if name != "text"}
        yield from _part(f"{title} {_facts(others)}", item["text"])
    else:
        yield from _part(title, _pretty(item))


def _facts(value: Any) -> str:
    return _seen(compact_json(_digested(value), sort_keys=True), always=False)[0]


def _part(title: str, body: str) -> Iterator[str]:
    body, changed = _seen(body)
    yield f"=== {title}{' (escaped)' if changed else ''}"
    yield _MARKED.sub(r"\\\g<0>", body)


def _seen(text: str, *, always: bool = True) -> tuple[str, bool]:
    """The text with all of it visible. Where something was not, backslashes are doubled.

    In JSON (not `always`) a backslash is never part of the text, so that it can stay.
    """
    if not _UNSEEN.search(text):
        return text, False
    if always:
        text = text.replace("\\", "\\\\")
    return _UNSEEN.sub(lambda found: show(found.group(), 12), text), True


def _pretty(value: Any) -> str:
    return json.dumps(_digested(value), ensure_ascii=False, indent=2, sort_keys=True)


def _digested(value: Any) -> Any:
    """The value with long binary data as its digest."""
    if isinstance(value, Mapping):
        return {name: _member(name, one) for name, one in value.items() if name != "_meta"}
    return [_digested(one) for one in value] if isinstance(value, list) else value


def _member(name: str, value: Any) -> Any:
    if name in _BINARY and isinstance(value, str) and len(value) > _LONGEST_BINARY:
        digest = hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()
        return f"sha256 {digest} of {len(value)} characters"
    return _digested(value)
