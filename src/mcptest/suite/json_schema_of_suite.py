"""The JSON Schema of suites for editors, made from the declarations that the loader reads by."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mcptest.suite.declarations import BLOCKS, LANES, SINGLE, SUITE
from mcptest.suite.fields import (
    Choice,
    Declaration,
    Duration,
    Elsewhere,
    Expectations,
    Field,
    Flag,
    JsonSchema,
    JsonTable,
    Kind,
    ListOf,
    Matcher,
    ObjectOf,
    Reserved,
    Text,
    Texts,
    TextTable,
    Whole,
)
from mcptest.suite.reading import EXTENSION

Schema = dict[str, Any]

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_SCALAR = ["string", "number", "boolean"]
"""A text may be written as any scalar."""
_NUMBER = r"([0-9]+\.?[0-9]*|\.[0-9]+)"
_LENGTH_OF_TIME = rf"^({_NUMBER}(ms|us|µs|ns|s|m|h))+$|^{_NUMBER}$"
_ONLY_LANES: Schema = {
    "anyOf": [{"required": [name]} for name in LANES],
    "not": {"anyOf": [{"required": [name]} for name in BLOCKS]},
}
"""A file that judges a server and tests nothing else."""


def suite_json_schema() -> Schema:
    """One schema for both forms of a suite file."""
    definitions: dict[str, Schema] = {}
    forms = {
        "if": {"anyOf": [{"required": ["tests"]}, {"required": ["defaults"]}, _ONLY_LANES]},
        "then": _reference(SUITE, definitions),
        "else": _reference(SINGLE, definitions),
    }
    return {
        "$schema": _DIALECT,
        "title": "mcptest: a suite",
        "type": "object",
        **forms,
        "$defs": dict(sorted(definitions.items())),
    }


def object_json_schema(declaration: Declaration, definitions: dict[str, Schema]) -> Schema:
    """Of one declared object; those within it are added to the definitions."""
    return _object(declaration, definitions)


def _reference(declaration: Declaration, definitions: dict[str, Schema]) -> Schema:
    name = declaration.name.replace(" ", "-")
    if name not in definitions:
        definitions[name] = {}
        definitions[name] = _object(declaration, definitions)
    return {"$ref": f"#/$defs/{name}"}


def _object(declaration: Declaration, definitions: dict[str, Schema]) -> Schema:
    properties = {one.name: _field(one, definitions) for one in declaration.fields}
    schema: Schema = {
        "description": declaration.doc,
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
    }
    required = [one.name for one in declaration.fields if one.required]
    if required:
        schema["required"] = required
    if declaration.has_extensions:
        schema["patternProperties"] = {f"^{EXTENSION}": True}
    schema.update(declaration.rules)
    if declaration.must_ask:
        schema["anyOf"] = [_asking(one) for one in declaration.fields]
    return schema


def _field(field: Field, definitions: dict[str, Schema]) -> Schema:
    schema = _KINDS[type(field.kind)](field.kind, definitions)
    if isinstance(field.kind, Reserved):
        return schema
    if field.empty_is_nothing:
        return {"description": field.doc, "anyOf": [schema, {"enum": [None, ""]}]}
    described = {"description": field.doc, **schema}
    if _may_be_nothing(field):
        return _or_nothing(described)
    return described


def _may_be_nothing(field: Field) -> bool:
    if isinstance(field.kind, ObjectOf | Elsewhere) and field.kind.nothing_is_empty:
        return True
    return field.nothing_allowed and not field.required


def _or_nothing(schema: Schema) -> Schema:
    kind = schema.get("type")
    if kind is not None:
        return {**schema, "type": [*([kind] if isinstance(kind, str) else kind), "null"]}
    description = schema.pop("description")
    return {"description": description, "anyOf": [schema, {"type": "null"}]}


def _asking(field: Field) -> Schema:
    """When a field of an expectation asks for something; mirrors `is_asking`."""
    kind = field.kind
    wanted: Schema = {"not": {"type": "null"}}
    if isinstance(kind, Flag):
        wanted = {"const": True}
    elif isinstance(kind, Texts):
        wanted = {"type": "array", "minItems": 1}
    elif isinstance(kind, TextTable | JsonTable):
        wanted = {"type": "object", "minProperties": 1}
    elif isinstance(kind, Whole) and kind.idle is not None:
        wanted = {"type": "integer", "not": {"const": kind.idle}}
    return {"required": [field.name], "properties": {field.name: wanted}}


def _text(kind: Text, _definitions: dict[str, Schema]) -> Schema:
    return {"type": _SCALAR} if kind.may_be_empty else {"type": _SCALAR, "minLength": 1}


def _flag(_kind: Flag, _definitions: dict[str, Schema]) -> Schema:
    return {"type": "boolean"}


def _whole(kind: Whole, _definitions: dict[str, Schema]) -> Schema:
    if kind.minimum is None:
        return {"type": "integer"}
    return {"type": "integer", "minimum": kind.minimum}


def _duration(_kind: Duration, _definitions: dict[str, Schema]) -> Schema:
    return {"type": ["string", "number"], "pattern": _LENGTH_OF_TIME, "exclusiveMinimum": 0}


def _choice(kind: Choice, _definitions: dict[str, Schema]) -> Schema:
    if not kind.any_case:
        return {"enum": list(kind.values)}
    spelled = "|".join(map(_in_any_case, kind.values))
    return {"anyOf": [{"enum": list(kind.values)}, {"type": "string", "pattern": f"^({spelled})$"}]}


def _in_any_case(word: str) -> str:
    return "".join(f"[{letter}{letter.upper()}]" for letter in word)


def _texts(kind: Texts, definitions: dict[str, Schema]) -> Schema:
    return {"type": "array", "items": _text(Text(kind.may_be_empty), definitions)}


def _text_table(_kind: TextTable, _definitions: dict[str, Schema]) -> Schema:
    return {"type": "object", "additionalProperties": {"type": [*_SCALAR, "null"]}}


def _json_table(_kind: JsonTable, _definitions: dict[str, Schema]) -> Schema:
    return {"type": "object"}


def _json_schema(_kind: JsonSchema, _definitions: dict[str, Schema]) -> Schema:
    return {"type": ["object", "boolean"]}


def _matcher(_kind: Matcher, _definitions: dict[str, Schema]) -> Schema:
    from mcptest.suite.matchers import MATCHERS

    return {
        "type": "object",
        "properties": {
            name: {"description": matcher.about, **matcher.argument.schema}
            for name, matcher in MATCHERS.items()
        },
        "additionalProperties": False,
        "minProperties": 1,
        "maxProperties": 1,
    }


def _reserved(_kind: Reserved, _definitions: dict[str, Schema]) -> Schema:
    return {"description": "Reserved for a later version.", "not": {}}


def _object_of(kind: ObjectOf, definitions: dict[str, Schema]) -> Schema:
    whole = _reference(kind.declaration, definitions)
    if not kind.short_for:
        return whole
    return {"anyOf": [whole, _text(Text(), definitions)]}


def _elsewhere(kind: Elsewhere, definitions: dict[str, Schema]) -> Schema:
    whole = _reference(kind.declaration, definitions)
    if not kind.list_of:
        return whole
    items = kind.declaration.by_name[kind.list_of].kind
    return {"anyOf": [whole, _KINDS[type(items)](items, definitions)]}


def _list_of(kind: ListOf, definitions: dict[str, Schema]) -> Schema:
    items = _reference(kind.declaration, definitions)
    return {"type": "array", "items": items, "minItems": 0 if kind.may_be_empty else 1}


def _expectations(kind: Expectations, definitions: dict[str, Schema]) -> Schema:
    rows = _list_of(ListOf(kind.row), definitions)
    forms = [_reference(kind.declaration, definitions), rows]
    if kind.may_be_empty:
        forms.append({"type": "object", "maxProperties": 0})
    return {"anyOf": forms}


_KINDS: dict[type[Kind], Callable[[Any, dict[str, Schema]], Schema]] = {
    Text: _text,
    Flag: _flag,
    Whole: _whole,
    Duration: _duration,
    Choice: _choice,
    Texts: _texts,
    TextTable: _text_table,
    JsonTable: _json_table,
    JsonSchema: _json_schema,
    Matcher: _matcher,
    ObjectOf: _object_of,
    ListOf: _list_of,
    Expectations: _expectations,
    Elsewhere: _elsewhere,
    Reserved: _reserved,
}
