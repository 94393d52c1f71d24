"""What a server offers as the linter sees it: words, names that mean the same, texts, items."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import msgspec

# -- The words by which the linter knows what a name or a text is about --------------------------


class WordLists(msgspec.Struct, frozen=True):
    """The lists of `words.json`. Those that begin with `also` are what mcp-assert does not know:
    they are used by our own codes only."""

    vague: frozenset[str]
    """Descriptions that say nothing, as a whole."""
    generic_names: frozenset[str]
    user_facing: tuple[str, ...]
    """Parts of parameter names for which one example says more than a sentence."""
    telling_names: frozenset[str]
    """Names of parameters that say what to pass without a description."""
    telling_endings: frozenset[str]
    """The same behind a word that says of what: `user_id`."""
    mutating: frozenset[str]
    also_mutating: frozenset[str]
    destroying: frozenset[str]
    acknowledging: tuple[str, ...]
    """Words by which a description owns up to what the tool changes."""
    actions: tuple[str, ...]
    returning: tuple[str, ...]
    sensitive: tuple[str, ...]
    also_sensitive: tuple[str, ...]
    """Without separators: what mcp-assert lets through."""
    sensitive_words: frozenset[str]
    """As the whole name only: a page token is none of our business."""
    shared_by_nature: frozenset[str]
    """Parameters that many tools have in common without one feeding the other."""
    shared_endings: tuple[str, ...]
    filler: frozenset[str]
    """Words of a description that say nothing of the parameter."""
    meanings: dict[str, str]
    """What a parameter with that word in its name stands for."""
    examples: dict[str, str]


_FILE = Path(__file__).with_name("words.json")
WORDS: Final = msgspec.json.decode(_FILE.read_bytes(), type=WordLists)
_BOUNDARY = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[^A-Za-z0-9]+")


def words_of(name: str) -> list[str]:
    """`getUserById`, `get-user_by.id` as words in small letters."""
    return [word.lower() for word in _BOUNDARY.split(name[:500]) if word]


def plain(name: str) -> str:
    """A name without what people write differently: case and separators."""
    return "".join(words_of(name))


def is_shared_by_nature(name: str) -> bool:
    small = name.lower()
    return small in WORDS.shared_by_nature or small.endswith(WORDS.shared_endings)


# -- Which names of parameters mean the same, by buckets: never every name with every other -------

_SHORTEST_PART = 3
_LONGEST_NAME = 48
"""Parts are looked for in this much of a name: there are squarely many."""


class NameMatches:
    """Found once for every distinct name; case does not count."""

    def __init__(self, names: Iterable[str]) -> None:
        self._all = dict.fromkeys(name.lower() for name in names)
        self._by_key: dict[str, list[str]] = {}
        for name in self._all:
            for key in _keys(name):
                self._by_key.setdefault(key, []).append(name)
        self._lengths = sorted({len(name) for name in self._all if len(name) >= _SHORTEST_PART})
        self._related: dict[str, list[str]] = {}
        for name in self._all:
            for part in self._parts(name):
                self._related.setdefault(name, []).append(part)
                self._related.setdefault(part, []).append(name)

    def _parts(self, name: str) -> list[str]:
        """Other names that stand within this one."""
        cut = name[:_LONGEST_NAME]
        found = set()
        for length in self._lengths:
            if length > len(cut):
                break
            found.update([cut[start : start + length] for start in range(len(cut) - length + 1)])
        found.discard(name)
        return sorted(found & self._all.keys())

    def same(self, name: str) -> Iterator[str]:
        """Names that are this one, written differently; itself first of all."""
        for key in _keys(name):
            yield from self._by_key.get(key, ())

    def related(self, name: str) -> Iterator[str]:
        """Names within this one, or around it."""
        yield from self._related.get(name, ())


def _keys(name: str) -> Iterator[str]:
    yield name.replace("_", "").replace("-", "")
    words = [word for word in name.replace("-", "_").split("_") if len(word) > 2]
    if len(words) > 1:
        yield " ".join(sorted(words))


# -- Every text of a definition that a model may read --------------------------------------------

_MOST_VALUES = 5_000
_SEARCHED = 100_000
_TYPES = frozenset({"string", "object", "array", "integer", "number", "boolean", "null"})


class SurfaceText(msgspec.Struct, frozen=True):
    kind: str
    item: str
    field: str
    text: str


def texts_of(kind: str, item: str, definition: Any) -> Iterator[SurfaceText]:
    """Bounded, whatever the definition is."""
    waiting: list[tuple[str, Any]] = [("", definition)]
    seen = 0
    while waiting and seen < _MOST_VALUES:
        path, value = waiting.pop()
        seen += 1
        if isinstance(value, str):
            if value not in _TYPES:
                yield SurfaceText(kind, item, path or "definition", value[:_SEARCHED])
        elif isinstance(value, dict):
            for key, one in reversed(value.items()):
                below = f"{path}.{key}" if path else key
                if not (len(key) < 40 and key.isascii() and key.isprintable()):
                    yield SurfaceText(kind, item, below, key[:_SEARCHED])
                if isinstance(one, str | dict | list):
                    waiting.append((below, one))
        elif isinstance(value, list):
            waiting += [(f"{path}[{at}]", one) for at, one in reversed(list(enumerate(value)))]


# -- What a server offers, as the linter sees it -------------------------------------------------

_NOTHING: Mapping[str, Any] = {}
_DEEPEST = 64
_MOST_NODES = 5_000
_COMPOSED = ("anyOf", "oneOf", "allOf")
_NESTING = frozenset({"properties", "items", "$ref", *_COMPOSED})


class Parameter(msgspec.Struct, frozen=True):
    """One property of an input schema, at its top level."""

    name: str
    schema: Mapping[str, Any]
    required: bool
    description: str = ""
    type: str = ""
    """Its one type; nothing when it has none or several."""

    @property
    def pointer(self) -> str:
        return f"/inputSchema/properties/{escaped(self.name)}"


class Item(msgspec.Struct, frozen=True, dict=True):
    """A tool, a prompt, a resource or a template. What its definition says is read once."""

    name: str
    raw: Any

    @property
    def fields(self) -> Mapping[str, Any]:
        """The definition; empty where it is no object."""
        return self.raw if isinstance(self.raw, dict) else _NOTHING

    @cached_property
    def description(self) -> str:
        return text_of(self.fields, "description")

    @cached_property
    def schema(self) -> Mapping[str, Any]:
        return object_of(self.fields, "inputSchema")

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        return tuple(_parameters(self.schema))

    @cached_property
    def size(self) -> int:
        """Bytes of its definition as compact JSON."""
        return size_of(self.raw)

    @property
    def tokens(self) -> int:
        return self.size // 4

    @cached_property
    def words(self) -> list[str]:
        """The words of its name, in small letters."""
        return words_of(self.name)

    @cached_property
    def is_flat(self) -> bool:
        """Whether no parameter has members of its own."""
        return not any(_NESTING & one.schema.keys() for one in self.parameters)

    def hint(self, key: str) -> Any:
        return object_of(self.fields, "annotations").get(key)


class Surface(msgspec.Struct, frozen=True, dict=True):
    """Everything together. What several rules need is made once."""

    tools: tuple[Item, ...] = ()
    prompts: tuple[Item, ...] = ()
    resources: tuple[Item, ...] = ()
    templates: tuple[Item, ...] = ()

    @property
    def size(self) -> int:
        return sum(tool.size for tool in self.tools)

    @property
    def by_kind(self) -> dict[str, tuple[Item, ...]]:
        items = {"prompt": self.prompts, "resource": self.resources, "template": self.templates}
        return {"tool": self.tools, **items}

    @cached_property
    def texts(self) -> tuple[SurfaceText, ...]:
        """Every text that a model may read."""
        every = ((kind, one) for kind, those in self.by_kind.items() for one in those)
        return tuple(
            text
            for kind, one in every
            for text in texts_of(kind, one.name, one.raw if kind == "tool" else one.fields)
        )

    @cached_property
    def name_matches(self) -> NameMatches:
        """Of parameters whose names mean something."""
        names = {one.name for tool in self.tools for one in tool.parameters}
        return NameMatches(sorted(name for name in names if not is_shared_by_nature(name)))


def surface_of(
    tools: Sequence[Any] = (),
    prompts: Sequence[Any] = (),
    resources: Sequence[Any] = (),
    templates: Sequence[Any] = (),
) -> Surface:
    """Views of lists as they came."""
    return Surface(
        tuple(_items("tool", "name", tools)),
        tuple(_items("prompt", "name", prompts)),
        tuple(_items("resource", "uri", resources)),
        tuple(_items("template", "uriTemplate", templates)),
    )


def _items(kind: str, key: str, listed: Sequence[Any]) -> Iterator[Item]:
    for number, raw in enumerate(listed, 1):
        name = text_of(raw, key) if isinstance(raw, dict) else ""
        yield Item(name or f"({kind} {number})", raw)


def _parameters(schema: Mapping[str, Any]) -> Iterator[Parameter]:
    required = required_of(schema)
    for name, value in object_of(schema, "properties").items():
        # `true` is a schema too: one that says nothing
        fields = value if isinstance(value, dict) else _NOTHING
        description, kind = text_of(fields, "description"), text_of(fields, "type")
        yield Parameter(name, fields, name in required, description, kind)


def text_of(fields: Mapping[str, Any], key: str) -> str:
    value = fields.get(key)
    return value.strip() if isinstance(value, str) else ""


def object_of(fields: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = fields.get(key)
    return value if isinstance(value, dict) else _NOTHING


def required_of(schema: Mapping[str, Any]) -> frozenset[str]:
    listed = schema.get("required")
    names = listed if isinstance(listed, list) else ()
    return frozenset(name for name in names if isinstance(name, str))


def escaped(name: str) -> str:
    """One part of a JSON pointer."""
    return name.replace("~", "~0").replace("/", "~1")


def size_of(value: Any) -> int:
    try:
        return len(msgspec.json.encode(value))
    except UnicodeEncodeError:  # half a surrogate pair
        return len(json.dumps(value))


class Node(msgspec.Struct, frozen=True):
    path: str
    schema: Mapping[str, Any]
    depth: int
    """1 for the properties of the schema itself."""
    is_property: bool


def nodes_of(schema: Mapping[str, Any]) -> Iterator[Node]:
    """Every schema below this one, references followed once on each way; bounded in any case."""
    waiting = [(Node("", schema, 0, is_property=False), frozenset[str]())]
    seen = 0
    while waiting and seen < _MOST_NODES:
        node, followed = waiting.pop()
        seen += 1
        if node.depth:
            yield node
        if node.depth < _DEEPEST:
            waiting += reversed(list(_below(node, schema, followed)))


def _below(
    node: Node, root: Mapping[str, Any], followed: frozenset[str]
) -> Iterator[tuple[Node, frozenset[str]]]:
    schema, path, depth = node.schema, node.path, node.depth
    for name, value in object_of(schema, "properties").items():
        if isinstance(value, dict):
            below = f"{path}.{name}" if path else name
            yield Node(below, value, depth + 1, is_property=True), followed
    items = schema.get("items")
    if isinstance(items, dict):
        yield Node(f"{path}[]", items, depth, is_property=False), followed
    for key in _COMPOSED:
        options = schema.get(key)
        for option in options if isinstance(options, list) else ():
            if isinstance(option, dict):
                yield Node(path, option, depth, is_property=False), followed
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference not in followed:
        target = local_target(root, reference)
        if target is not None:
            yield Node(path, target, depth, is_property=False), followed | {reference}


def local_target(root: Mapping[str, Any], reference: str) -> Mapping[str, Any] | None:
    """What `#/$defs/X` stands for; None for anything that leads elsewhere."""
    if not reference.startswith("#/"):
        return None
    value: Any = root
    for part in reference[2:].split("/"):
        plain = part.replace("~1", "/").replace("~0", "~")
        value = value.get(plain) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else None
