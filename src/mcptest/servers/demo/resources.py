"""The resources on offer, their template, and reading them."""

from __future__ import annotations

from mcptest.servers.demo import versions
from mcptest.servers.demo.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    RESOURCE_NOT_FOUND,
    Declared,
    Refusal,
    read_data,
)

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from mcptest.servers.demo.jsonrpc import Obj
    from mcptest.servers.demo.world import World

PNG_BASE64 = (
    "iVBORw0KGgoAAAANSUhEUgAAAAgAAAAIAQMAAAD+wSzIAAAAA1BMVEXQICCEGQyAAAAAC0lEQVR42mNgQAUAABAA"
    "AaoZ+IIAAAAASUVORK5CYII="
)
NOTES = 150
FACTS = 12
DEMO = read_data("demo.json", PNG=PNG_BASE64, NOTES=str(NOTES))
"""Who the demo is, its tools and prompts by their names, and its resources and templates."""


def headed(item: Any, version: str, **named: str) -> Obj:
    """How every item of a list begins: its name, its title from 2025-06-18 on, and what it is."""
    title = {"title": item.title} if versions.since(version, versions.V2025_06_18) else {}
    return {**named, **title, "description": item.description}


class Resource(Declared):
    """One fixed resource, as `resources/list` shows it."""

    uri: str
    name: str
    title: str
    description: str
    kind: str
    size: int | None = None
    annotations: Obj | None = None
    contents: Obj | Callable[[World], Obj] | None = None
    """What it holds: `text` or `blob`, or what gives them. None: it can't be read."""
    volatile: bool = False
    """Whether what was read is old at once."""

    def describe(self, version: str) -> Obj:
        shown = headed(self, version, uri=self.uri, name=self.name)
        shown["mimeType"] = self.kind
        if self.size is not None:
            shown["size"] = self.size
        if self.annotations is not None:
            shown["annotations"] = self.annotations
        return shown


class Template(Declared):
    """A URI with one variable, and what it gives for a value: a text, or None where there is none.

    `values` are those that are suggested for the variable.
    """

    before: str
    after: str
    name: str
    title: str
    description: str
    text_of: Callable[[str], str | None] = "This is the resource with the id {}.".format
    values: Callable[[], tuple[str, ...]] = tuple
    variable: str = "id"
    kind: str = "text/plain"

    @property
    def uri(self) -> str:
        return f"{self.before}{{{self.variable}}}{self.after}"

    def text_at(self, uri: str) -> str | None:
        """The text of this URI, where it is one of this template."""
        if not (uri.startswith(self.before) and uri.endswith(self.after)):
            return None
        value = uri[len(self.before) : len(uri) - len(self.after)]
        return self.text_of(value) if value and "/" not in value else None

    def describe(self, version: str) -> Obj:
        shown = headed(self, version, uriTemplate=self.uri, name=self.name)
        return {**shown, "mimeType": self.kind}


def _fact(number: int) -> str:
    return f"{number} squared is {number * number}."


GREETING, LOGO, COUNTER = (Resource(**one) for one in DEMO["resources"])
COUNTER.contents = lambda world: {"text": str(world.counter)}
GREETING_URI = GREETING.uri
RESOURCES: tuple[Resource, ...] = (
    *(GREETING, LOGO, COUNTER),
    *(
        Resource(
            f"demo://facts/{number}",
            f"fact-{number}",
            f"Fact {number}",
            f"A fact about the number {number}.",
            "text/plain",
            len(_fact(number)),
            contents={"text": _fact(number)},
        )
        for number in range(1, FACTS + 1)
    ),
)


def _note(digits: str) -> str | None:
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 3:
        return None
    number = int(digits)
    known = 1 <= number <= NOTES and str(number) == digits
    return f"This is note {number}." if known else None


_NUMBERS = tuple(str(number) for number in range(1, NOTES + 1))
TEMPLATES: tuple[Template, ...] = tuple(
    Template(**one, text_of=_note, values=lambda: _NUMBERS) for one in DEMO["templates"]
)


def exists(uri: str, world: World) -> bool:
    return uri in world.content.resource_at or _from_template(uri, world) is not None


def is_volatile(uri: object, world: World) -> bool:
    resource = world.content.resource_at.get(uri) if isinstance(uri, str) else None
    return resource is not None and resource.volatile


def _from_template(uri: str, world: World) -> Obj | None:
    """The contents of a resource that a template gives."""
    for template in world.content.templates:
        text = template.text_at(uri)
        if text is not None:
            return {"uri": uri, "mimeType": template.kind, "text": text}
    return None


def require_resource(uri: str, world: World, version: str) -> None:
    """Refuse a URI that is none, or that names nothing here."""
    scheme, colon, rest = uri.partition(":")
    is_a_uri = (
        bool(colon and rest and scheme.isascii() and scheme[:1].isalpha())
        and all(letter.isalnum() or letter in "+-." for letter in scheme)
        and all(letter > " " and letter not in '<>"{}|\\^`\x7f' for letter in rest)
    )
    if not is_a_uri:
        raise Refusal(INVALID_PARAMS, "Invalid params: uri is not a valid URI", {"uri": uri[:500]})
    if not exists(uri, world):
        # 2026-07-28 gave the old code up: there a missing resource is a wrong parameter.
        stateless = versions.since(version, versions.V2026_07_28)
        code = INVALID_PARAMS if stateless else RESOURCE_NOT_FOUND
        raise Refusal(code, "Resource not found", {"uri": uri[:500]})


def read_resource(uri: str, world: World) -> Obj:
    """The contents of a resource that exists."""
    resource = world.content.resource_at.get(uri)
    if resource is None:
        return _from_template(uri, world) or {}
    if resource.contents is None:
        raise Refusal(INTERNAL_ERROR, "The resource can't be read right now", {"uri": uri})
    held = resource.contents(world) if callable(resource.contents) else resource.contents
    return {"uri": uri, "mimeType": resource.kind, **held}
