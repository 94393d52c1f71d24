"""The resources on offer, their template, and reading them."""

from __future__ import annotations

from mcptest.peer.demo import versions
from mcptest.peer.demo.pictures import PNG_BASE64, PNG_BYTES
from mcptest.peer.demo.protocol import INTERNAL_ERROR, INVALID_PARAMS, RESOURCE_NOT_FOUND, Refusal

TYPE_CHECKING = False  # see protocol
if TYPE_CHECKING:
    from mcptest.peer.demo.protocol import Obj
    from mcptest.peer.demo.world import World

GREETING_URI = "demo://greeting"
LOGO_URI = "demo://logo"
COUNTER_URI = "demo://counter"
NOTE_TEMPLATE = "demo://notes/{id}"
NOTES = 150
FACTS = 12

_NOTE_PREFIX = "demo://notes/"
_GREETING = "Hello from the mcptest demo server."


class Resource:
    """One fixed resource, as `resources/list` shows it."""

    def __init__(
        self,
        uri: str,
        name: str,
        title: str,
        description: str,
        kind: str,
        size: int | None = None,
        annotations: Obj | None = None,
        contents: Obj | None = None,
    ) -> None:
        self.uri = uri
        self.name = name
        self.title = title
        self.description = description
        self.kind = kind
        self.size = size
        self.annotations = annotations
        self.contents = contents
        """What an additional resource holds: `text` or `blob`. None: it can't be read."""

    def describe(self, version: str) -> Obj:
        shown: Obj = {"uri": self.uri, "name": self.name}
        if versions.since(version, versions.V2025_06_18):
            shown["title"] = self.title
        shown |= {"description": self.description, "mimeType": self.kind}
        if self.size is not None:
            shown["size"] = self.size
        if self.annotations is not None:
            shown["annotations"] = self.annotations
        return shown


class Template:
    """One additional template: a URI with one variable, and what it gives."""

    def __init__(self, before: str, after: str, name: str, title: str, description: str) -> None:
        self.before = before
        self.after = after
        self.name = name
        self.title = title
        self.description = description

    @property
    def uri(self) -> str:
        return f"{self.before}{{id}}{self.after}"

    def value_in(self, uri: str) -> str | None:
        """What stands in place of the variable, where the URI is of this template."""
        rest = uri.removeprefix(self.before)
        value = rest.removesuffix(self.after)
        fits = rest != uri and value != rest and value and "/" not in value
        return value if fits else None

    def describe(self, version: str) -> Obj:
        shown: Obj = {"uriTemplate": self.uri, "name": self.name}
        if versions.since(version, versions.V2025_06_18):
            shown["title"] = self.title
        return {**shown, "description": self.description, "mimeType": "text/plain"}


def _fact(number: int) -> str:
    return f"{number} squared is {number * number}."


RESOURCES: tuple[Resource, ...] = (
    Resource(
        GREETING_URI,
        "greeting",
        "Greeting",
        "A friendly line of text.",
        "text/plain",
        len(_GREETING),
        {"audience": ["user"], "priority": 0.5},
    ),
    Resource(LOGO_URI, "logo", "Logo", "A small red square as a picture.", "image/png", PNG_BYTES),
    Resource(
        COUNTER_URI,
        "counter",
        "Counter",
        "How often the tool bump was called. It can be subscribed to.",
        "text/plain",
    ),
    *(
        Resource(
            f"demo://facts/{number}",
            f"fact-{number}",
            f"Fact {number}",
            f"A fact about the number {number}.",
            "text/plain",
            len(_fact(number)),
        )
        for number in range(1, FACTS + 1)
    ),
)
_BY_URI = {resource.uri: resource for resource in RESOURCES}


def describe_resource(uri: str, version: str) -> Obj:
    return _BY_URI[uri].describe(version)


def describe_template(version: str) -> Obj:
    shown: Obj = {"uriTemplate": NOTE_TEMPLATE, "name": "note"}
    if versions.since(version, versions.V2025_06_18):
        shown["title"] = "Note"
    description = f"The note with this number, from 1 to {NOTES}."
    return {**shown, "description": description, "mimeType": "text/plain"}


def exists(uri: str, world: World) -> bool:
    known = uri in _BY_URI or _note_number(uri) is not None
    return known or _more(uri, world) is not None or _from_template(uri, world) is not None


def _more(uri: str, world: World) -> Resource | None:
    return next((one for one in world.more.resources if one.uri == uri), None)


def _from_template(uri: str, world: World) -> str | None:
    """The text of a resource that an additional template gives."""
    values = (template.value_in(uri) for template in world.more.templates)
    value = next((value for value in values if value is not None), None)
    return None if value is None else f"This is the resource with the id {value}."


def require_resource(uri: str, world: World, version: str) -> None:
    """Refuse a URI that is none, or that names nothing here."""
    if not _is_a_uri(uri):
        raise Refusal(INVALID_PARAMS, "Invalid params: uri is not a valid URI", {"uri": uri[:500]})
    if not exists(uri, world):
        # 2026-07-28 gave the old code up: there a missing resource is a wrong parameter.
        stateless = versions.since(version, versions.V2026_07_28)
        code = INVALID_PARAMS if stateless else RESOURCE_NOT_FOUND
        raise Refusal(code, "Resource not found", {"uri": uri[:500]})


def read_resource(uri: str, world: World) -> Obj:
    """The contents of a resource that exists."""
    if uri == LOGO_URI:
        return {"uri": uri, "mimeType": "image/png", "blob": PNG_BASE64}
    more = _more(uri, world)
    if more is not None:
        if more.contents is None:
            raise Refusal(INTERNAL_ERROR, "The resource can't be read right now", {"uri": uri})
        return {"uri": uri, "mimeType": more.kind, **more.contents}
    return {"uri": uri, "mimeType": "text/plain", "text": _text_of(uri, world)}


def _text_of(uri: str, world: World) -> str:
    if uri == GREETING_URI:
        return _GREETING
    if uri == COUNTER_URI:
        return str(world.counter)
    made = _from_template(uri, world)
    if made is not None:
        return made
    number = _note_number(uri)
    if number is not None:
        return f"This is note {number}."
    return _fact(int(uri.rpartition("/")[2]))


def _note_number(uri: str) -> int | None:
    digits = uri.removeprefix(_NOTE_PREFIX)
    if digits == uri or not (digits.isascii() and digits.isdigit()) or len(digits) > 3:
        return None
    number = int(digits)
    return number if 1 <= number <= NOTES and str(number) == digits else None


def _is_a_uri(uri: str) -> bool:
    scheme, colon, rest = uri.partition(":")
    return (
        bool(colon and rest and scheme.isascii() and scheme[:1].isalpha())
        and all(letter.isalnum() or letter in "+-." for letter in scheme)
        and all(letter > " " and letter not in '<>"{}|\\^`\x7f' for letter in rest)
    )
