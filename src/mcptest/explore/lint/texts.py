"""Every text of a definition that a model may read: values, and names of members."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

_MOST_VALUES = 5_000
_SEARCHED = 100_000
_TYPES = frozenset({"string", "object", "array", "integer", "number", "boolean", "null"})


class Text(msgspec.Struct, frozen=True):
    """A text, and where it stands."""

    kind: str
    item: str
    field: str
    text: str


def texts_of(kind: str, item: str, definition: Any) -> Iterator[Text]:
    """Bounded, whatever the definition is."""
    waiting: list[tuple[str, Any]] = [("", definition)]
    seen = 0
    while waiting and seen < _MOST_VALUES:
        path, value = waiting.pop()
        seen += 1
        if isinstance(value, str):
            if value not in _TYPES:
                yield Text(kind, item, path or "definition", value[:_SEARCHED])
        elif isinstance(value, dict):
            for key, one in reversed(value.items()):
                below = f"{path}.{key}" if path else key
                if not (len(key) < 40 and key.isascii() and key.isprintable()):
                    yield Text(kind, item, below, key[:_SEARCHED])
                if isinstance(one, str | dict | list):
                    waiting.append((below, one))
        elif isinstance(value, list):
            waiting += [(f"{path}[{at}]", one) for at, one in reversed(list(enumerate(value)))]
