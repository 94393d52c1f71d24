"""Servers whose schemas, lists and names are hostile: `python -I -S hostile_offers.py CASE`.

They differ from those of `hostile` in what they list, and in little else.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))  # noqa: PTH100, PTH120 - quick to start

from tests.safety.hostile import Obj, note_pid, ordinary, serve, text, tool

CASES: dict[str, Callable[[Obj], Obj | None]] = {}


def offers(name: str, make: Callable[[], Iterable[Obj]]) -> None:
    """A server that lists these tools. They are made when they are asked for."""

    def behaviour(request: Obj) -> Obj | None:
        return {"tools": list(make())} if request["method"] == "tools/list" else {}

    CASES[name] = behaviour


def takes(name: str, make: Callable[[], Obj]) -> None:
    """One tool with this input schema."""
    offers(name, lambda: [tool(inputSchema={"type": "object", **make()})])


def gives(name: str, make: Callable[[], Obj], value: Callable[[], Any]) -> None:
    """One tool with this output schema, which says this."""

    def behaviour(request: Obj) -> Obj | None:
        if request["method"] == "tools/list":
            return {"tools": [tool(outputSchema={"type": "object", **make()})]}
        if request["method"] == "tools/call":
            return text("hello", structuredContent=value())
        return {}

    CASES[name] = behaviour


def required(**properties: Any) -> Obj:
    return {"properties": properties, "required": list(properties)}


# -- schemas that cost -------------------------------------------------------------------------


def dynamic() -> Obj:
    """Each definition refers to the next one twice, by dynamic anchors."""
    steps = {
        f"d{n}": {
            "$dynamicAnchor": f"d{n}",
            "allOf": [{"$dynamicRef": f"#d{n + 1}"}, {"$dynamicRef": f"#d{n + 1}"}],
        }
        for n in range(28)
    }
    last = {"$dynamicAnchor": "d28", "type": "string"}
    return {**required(text={"$dynamicRef": "#d0"}), "$defs": {**steps, "d28": last}}


def choices(levels: int) -> Obj:
    """oneOf in oneOf, each choice written out."""
    if not levels:
        return {"type": "string", "minLength": 3}
    return {"oneOf": [choices(levels - 1), choices(levels - 1), choices(levels - 1)]}


def unevaluated(levels: int) -> Obj:
    """To know what is left over, everything below is looked at again on each level."""
    made: Obj = {"properties": {"z": {"type": "string"}}}
    for level in range(levels):
        made = {
            "anyOf": [made, {"properties": {f"p{level}": {"type": "string"}}}],
            "unevaluatedProperties": {"type": "string"},
        }
    return made


def nested_properties(depth: int) -> Obj:
    made: Obj = {"type": "string"}
    for _ in range(depth):
        made = {"type": "object", "properties": {"a": made}, "required": ["a"]}
    return made


takes(
    "pattern-properties-bomb",
    lambda: {
        "patternProperties": {"^(([a-z])+.)+[A-Z]([a-z])+$": {"type": "string"}},
        "propertyNames": {"pattern": "^(x+x+)+y$"},
        "minProperties": 3,
        "additionalProperties": False,
    },
)
takes("dynamic-bomb", dynamic)
takes("huge-const", lambda: required(one={"const": [f"part {n}" for n in range(220_000)]}))
takes(
    "choices-of-objects",
    lambda: required(one={"enum": [{"a": n, "b": [n, {"c": n}]} for n in range(12_000)]}),
)
takes("choices-in-choices", lambda: required(one=choices(8)))
takes(
    "contains-many",
    lambda: required(
        rows={
            "type": "array",
            "contains": {"type": "object", "required": ["a"], "properties": {"a": {"minimum": 9}}},
            "minContains": 40_000,
            "maxContains": 40_001,
            "uniqueItems": True,
        }
    ),
)
takes("unevaluated-bomb", lambda: unevaluated(24))
gives("output-unevaluated-bomb", lambda: unevaluated(24), lambda: {"q": "x", "z": "y"})
takes(
    "definitions-in-a-circle",
    lambda: {
        **required(x={"$ref": "#/$defs/a"}),
        "$defs": {
            "a": {"allOf": [{"$ref": "#/$defs/b"}]},
            "b": {"allOf": [{"$ref": "#/$defs/c"}]},
            "c": {"allOf": [{"$ref": "#/$defs/a"}]},
        },
    },
)
takes(
    "endless-value",
    lambda: {
        **required(x={"$ref": "#/$defs/node"}),
        "$defs": {"node": {"type": "object", **required(next={"$ref": "#/$defs/node"})}},
    },
)
takes(
    "long-property-names",
    lambda: required(**{chr(97 + n) * 400_000: {"type": "string"} for n in range(12)}),
)
takes("deep-properties", lambda: required(a=nested_properties(230)))
takes(
    "large-minimums",
    lambda: required(
        text={"type": "string", "minLength": 1_000_000_000},
        rows={"type": "array", "minItems": 1_000_000_000, "items": {"type": "integer"}},
        members={"type": "object", "minProperties": 1_000_000_000},
        number={"type": "number", "exclusiveMinimum": 1.7e308, "multipleOf": 5e-324},
        spelled={"type": "string", "pattern": "^(ab){65000}[^\\W\\d_]{60000}$"},
    ),
)
takes(
    "nothing-fits",
    lambda: required(
        a=False, b={"not": {}}, c={"enum": []}, d={"type": "string", "minLength": 5, "maxLength": 2}
    ),
)
takes(
    "foreign-patterns",
    lambda: required(
        a={"type": "string", "pattern": "(?<name>x)\\k<name>(?<!a)\\p{Lu}+$"},
        b={"type": "string", "pattern": "((("},
        c={"type": "string", "pattern": "|".join(f"word{n}" for n in range(30_000))},
        d={"type": "string", "pattern": "(?=(a*)*b)(?=(a*)*c)^(?:a?){40}a{40}$"},
    ),
)
takes(
    "schema-of-wrong-types",
    lambda: {
        "properties": [1, 2],
        "required": "text",
        "type": {"a": 1},
        "enum": {"b": 2},
        "allOf": 7,
        "$ref": 7,
        "$defs": [],
        "minProperties": "x",
        "patternProperties": "(",
    },
)

HALF = "\ud800"
offers(
    "half-characters",
    lambda: [
        tool(
            title=HALF,
            description=f"Says {HALF} to whoever calls it.",
            inputSchema={
                "type": "object",
                **required(**{f"a{HALF}": {"type": "string", "default": HALF, "title": HALF}}),
                "$defs": {HALF: {"enum": [HALF, 1], "pattern": HALF, "const": {HALF: [HALF]}}},
            },
            annotations={"readOnlyHint": True, "title": HALF},
        )
    ],
)


# -- lists -------------------------------------------------------------------------------------


def listed(name: str) -> Callable[[Callable[[Obj], Obj]], Callable[[Obj], Obj]]:
    """A server that answers tools/list as the function says."""

    def added(page: Callable[[Obj], Obj]) -> Callable[[Obj], Obj]:
        CASES[name] = lambda request: (
            page(request.get("params") or {}) if request["method"] == "tools/list" else {}
        )
        return page

    return added


@listed("cursors-in-a-circle")
def circle(params: Obj) -> Obj:
    """The fifth page leads back to the third."""
    number = int(params.get("cursor", "0"))
    return {
        "tools": [tool("echo" if not number else f"t{number}")],
        "nextCursor": str(3 if number == 5 else number + 1),
    }


@listed("large-cursor")
def large_cursor(params: Obj) -> Obj:
    if "cursor" in params:
        return {"tools": [tool("last")]}
    return {"tools": [tool()], "nextCursor": "c" * 5_000_000}


@listed("empty-pages")
def empty_pages(params: Obj) -> Obj:
    number = int(params.get("cursor", "0"))
    return {"tools": [] if number else [tool()], "nextCursor": str(number + 1)}


@listed("empty-cursor")
def empty_cursor(params: Obj) -> Obj:
    """An empty text is a cursor, too."""
    if params.get("cursor") == "":
        return {"tools": [tool("last")]}
    return {"tools": [tool()], "nextCursor": ""}


FILE_NAMES = (
    *("", ".", "..", "/etc/passwd", "CON", "a\0b", "~", "-rf", "a/../../b", "%2e%2e%2f"),
    *("x" * 10_000, "\ud800", "é" * 200, "e\u0301" * 100, "suite", "suite.yaml", "ECHO"),
)
MARKUP = (
    "</pre><img src=x onerror=alert(1)> | a | b |\n\n# heading\n```\n[x](javascript:alert(1))"
    "\u202e\u2066 ::error file=a::b\n##[error]c\n%0A::set-output\x9b31m ${{ secrets.X }} {{7*7}}"
    " ${HOME} <!-- ]]> --> \u2028\u2029\x85\x0b\x0c\x7f"
)
offers("names-for-files", lambda: map(tool, ("echo", *FILE_NAMES)))
offers(
    "words-for-markup",
    lambda: [
        tool(
            title="</title><script>alert(1)</script>",
            description=MARKUP,
            annotations={"readOnlyHint": True, "title": "\x1b]52;c;aGk=\x07"},
        )
    ],
)


# -- how it introduces itself ------------------------------------------------------------------


def introduces(name: str, **members: Any) -> None:
    def behaviour(request: Obj) -> Obj | None:
        if request["method"] == "initialize":
            return {**(ordinary(request) or {}), **members}
        return {}

    CASES[name] = behaviour


def declares(request: Obj) -> Obj | None:
    """50,000 capabilities that no revision has."""
    if request["method"] == "initialize":
        more = {f"capability {n}": {"listChanged": True} for n in range(50_000)}
        return {**(ordinary(request) or {}), "capabilities": {"tools": {}, **more}}
    return {}


def with_keys(count: int) -> Callable[[Obj], Obj | None]:
    """So many keys in the `_meta` of each result."""
    return lambda request: {
        **(ordinary(request) or {}),
        "_meta": {f"example.com/{n}": n for n in range(count)},
    }


CASES["many-capabilities"] = declares
CASES["wide-meta"] = with_keys(110_000)
CASES["wider-meta"] = with_keys(200_000)
introduces("version-of-nobody", protocolVersion="9999-99-99\x1b[2J\n::error::x")
introduces("half-a-name", serverInfo={"name": HALF, "version": HALF}, instructions=HALF)


if __name__ == "__main__":
    note_pid()
    serve(CASES[sys.argv[1]])
