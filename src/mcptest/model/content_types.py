"""The types of content blocks: each revision lists those that tools and prompts may answer with."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any, Final

from mcptest.model.message import json_type
from mcptest.model.revision import Revision

_KNOWN_SINCE: Final = {
    "text": Revision.V2024_11_05,
    "image": Revision.V2024_11_05,
    "resource": Revision.V2024_11_05,
    "audio": Revision.V2025_03_26,
    "resource_link": Revision.V2025_06_18,
}


@functools.cache
def content_types(revision: Revision | None) -> frozenset[str]:
    """The content types of a revision; an unknown one may have them all."""
    return frozenset(
        kind for kind, since in _KNOWN_SINCE.items() if revision is None or revision >= since
    )


def unknown_content(
    method: str, result: Mapping[str, Any], revision: Revision | None
) -> tuple[str, str] | None:
    """The first content block of a type that the revision does not have: its pointer, its type."""
    known = content_types(revision)
    for pointer, block in _blocks(method, result):
        kind = block.get("type") if type(block) is dict else None
        if type(block) is dict and not (type(kind) is str and kind in known):
            return pointer, kind if type(kind) is str else json_type(kind)
    return None


def _blocks(method: str, result: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    member = {"tools/call": "content", "prompts/get": "messages"}.get(method, "")
    items = result.get(member)
    for place, item in enumerate(items if type(items) is list else ()):
        if member == "content":
            yield f"/result/content/{place}", item
        elif type(item) is dict:
            yield f"/result/messages/{place}/content", item.get("content")
