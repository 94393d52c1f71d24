"""Where the references of a JSON Schema lead within its own document. Nothing is ever fetched."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


class References:
    """The references of one document; what they lead to is looked up when it is asked for."""

    __slots__ = ("_anchors", "_bases", "_dynamic", "_resources", "_root")

    def __init__(self, root: Any) -> None:
        self._root = root
        self._bases: dict[int, str] | None = None
        """The address that references within a schema are relative to."""
        self._resources: dict[str, Any] = {}
        self._anchors: dict[str, Any] = {}
        self._dynamic: dict[str, list[Any]] = {}

    def targets(self, schema: dict[str, Any], keyword: str) -> Iterator[Any]:
        """What a reference may lead to; nothing when that is in no part of the document."""
        reference = schema[keyword]
        if keyword == "$ref" and reference == "#" and self._is_single():
            yield self._root
        elif keyword == "$ref" and reference.startswith("#/") and self._is_single():
            yield from _pointed_at(self._root, reference[2:])
        else:
            self._index()
            address, fragment = _joined(self._base_of(schema), reference)
            if keyword == "$recursiveRef":
                yield from self._resources.values()
            elif keyword == "$dynamicRef" and fragment in self._dynamic:
                yield from self._dynamic[fragment]
            elif fragment.startswith("/"):
                yield from _pointed_at(self._resources.get(address), fragment[1:])
            elif fragment:
                yield from _some(self._anchors.get(f"{address}#{fragment}"))
            else:
                yield from _some(self._resources.get(address))

    def _is_single(self) -> bool:
        """Whether the document has no parts with an address of their own."""
        self._index()
        return len(self._resources) == 1

    def _base_of(self, schema: dict[str, Any]) -> str:
        assert self._bases is not None  # the caller has made the index
        return self._bases.get(id(schema), "")

    def _index(self) -> None:
        if self._bases is not None:
            return
        self._bases = {}
        self._resources[""] = self._root
        left: list[tuple[Any, str]] = [(self._root, "")]
        while left:
            one, base = left.pop()
            if type(one) is dict:
                base = self._note(one, base)
                left.extend((part, base) for part in one.values())
            elif type(one) is list:
                left.extend((part, base) for part in one)

    def _note(self, schema: dict[str, Any], base: str) -> str:
        assert self._bases is not None
        name = schema.get("$id", schema.get("id"))
        if isinstance(name, str) and not name.startswith("#"):
            base = _joined(base, name)[0]
            self._resources.setdefault(base, schema)
            if schema is self._root:
                del self._resources[""]
        elif isinstance(name, str):
            self._anchors.setdefault(f"{base}{name}", schema)
        self._bases[id(schema)] = base
        for keyword in ("$anchor", "$dynamicAnchor"):
            anchor = schema.get(keyword)
            if isinstance(anchor, str):
                self._anchors.setdefault(f"{base}#{anchor}", schema)
                if keyword == "$dynamicAnchor":
                    self._dynamic.setdefault(anchor, []).append(schema)
        return base


def _joined(base: str, reference: str) -> tuple[str, str]:
    """The address and the fragment that a reference means."""
    from urllib.parse import urldefrag, urljoin  # few schemas have an address

    try:
        address, fragment = urldefrag(urljoin(base, reference))
    except ValueError:
        return reference, ""  # no address at all: it leads nowhere
    return address, fragment


def _some(found: Any) -> Iterator[Any]:
    if found is not None:
        yield found


def _pointed_at(found: Any, pointer: str) -> Iterator[Any]:
    if "%" in pointer:
        from urllib.parse import unquote

        pointer = unquote(pointer)
    for part in pointer.split("/"):
        key = part.replace("~1", "/").replace("~0", "~")
        if type(found) is dict:
            found = found.get(key)
        elif type(found) is list and key.isdigit() and len(key) < 10 and int(key) < len(found):
            found = found[int(key)]
        else:
            return
    yield from _some(found)
