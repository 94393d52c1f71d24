"""Every object of the format, also those of the lanes: for the reference page, not for loading."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from mcptest.suite import compliance_block, fields, lane_blocks, sent_message
from mcptest.suite import model as m
from mcptest.suite.fields import DECLARED, Declaration, Field, Kind
from mcptest.suite.matching import MATCHERS
from mcptest.suite.model import BLOCKS, LANES, SINGLE, SUITE
from mcptest.suite.reading import EXTENSION

ALL: Final = (
    m.SINGLE,
    m.SUITE,
    m.DEFAULTS,
    m.TEST,
    *map(
        DECLARED.__getitem__,
        (
            m.ServerSpec,
            m.ClientCapabilities,
            m.SamplingMock,
            m.SetupStep,
            m.ToolBlock,
            m.ResourcesBlock,
            m.PromptsBlock,
            m.CompletionBlock,
            m.SamplingBlock,
            m.LoggingBlock,
            m.NotificationsBlock,
            m.TrajectoryCheck,
            m.TraceEntry,
            m.ListRequest,
            m.PromptRequest,
            m.CompletionReference,
            m.CompletionArgument,
            m.Expect,
            m.TargetCheck,
            m.LoggingExpect,
            m.NotificationExpect,
        ),
    ),
    compliance_block.BLOCK,
    compliance_block.SPEC_VERSION_CHECK,
    compliance_block.GRADE_DELTA,
    compliance_block.TEST,
    sent_message.CHECK,
    sent_message.HTTP,
    lane_blocks.INVARIANTS,
    lane_blocks.PROPERTIES,
)
"""In the order in which the reference page shows them."""


# -- The JSON Schema of suites for editors, made from the declarations that the loader reads by --

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


def _reference(declaration: Declaration, definitions: dict[str, Schema]) -> Schema:
    name = declaration.name.replace(" ", "-")
    if name not in definitions:
        definitions[name] = {}
        definitions[name] = object_json_schema(declaration, definitions)
    return {"$ref": f"#/$defs/{name}"}


def object_json_schema(declaration: Declaration, definitions: dict[str, Schema]) -> Schema:
    """Of one declared object; those within it are added to the definitions."""
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
    if isinstance(field.kind, fields.Reserved):
        return schema
    if field.empty_is_nothing:
        return {"description": field.doc, "anyOf": [schema, {"enum": [None, ""]}]}
    empty = (
        isinstance(field.kind, fields.ObjectOf | fields.Elsewhere) and field.kind.nothing_is_empty
    )
    if not empty and (field.required or not field.nothing_allowed):
        return {"description": field.doc, **schema}
    if (kind := schema.get("type")) is None:
        return {"description": field.doc, "anyOf": [schema, {"type": "null"}]}
    types = [*([kind] if isinstance(kind, str) else kind), "null"]
    return {"description": field.doc, **schema, "type": types}


def _asking(field: Field) -> Schema:
    """When a field of an expectation asks for something; mirrors `is_asking`."""
    kind = field.kind
    wanted: Schema = {"not": {"type": "null"}}
    if isinstance(kind, fields.Flag):
        wanted = {"const": True}
    elif isinstance(kind, fields.Texts):
        wanted = {"type": "array", "minItems": 1}
    elif isinstance(kind, fields.TextTable | fields.JsonTable):
        wanted = {"type": "object", "minProperties": 1}
    elif isinstance(kind, fields.Whole) and kind.idle is not None:
        wanted = {"type": "integer", "not": {"const": kind.idle}}
    return {"required": [field.name], "properties": {field.name: wanted}}


def _text(may_be_empty: bool) -> Schema:
    return {"type": _SCALAR} if may_be_empty else {"type": _SCALAR, "minLength": 1}


def _choice(kind: fields.Choice) -> Schema:
    if not kind.any_case:
        return {"enum": list(kind.values)}
    in_any_case = (
        "".join(f"[{letter}{letter.upper()}]" for letter in word) for word in kind.values
    )
    spelled = {"type": "string", "pattern": f"^({'|'.join(in_any_case)})$"}
    return {"anyOf": [{"enum": list(kind.values)}, spelled]}


def _matcher() -> Schema:
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


def _object_of(kind: fields.ObjectOf, definitions: dict[str, Schema]) -> Schema:
    whole = _reference(kind.declaration, definitions)
    return {"anyOf": [whole, _text(may_be_empty=False)]} if kind.short_for else whole


def _elsewhere(kind: fields.Elsewhere, definitions: dict[str, Schema]) -> Schema:
    whole = _reference(kind.declaration, definitions)
    if not kind.list_of:
        return whole
    items = kind.declaration.by_name[kind.list_of].kind
    return {"anyOf": [whole, _KINDS[type(items)](items, definitions)]}


def _list_of(
    declaration: Declaration, definitions: dict[str, Schema], *, may_be_empty: bool = False
) -> Schema:
    items = _reference(declaration, definitions)
    return {"type": "array", "items": items, "minItems": 0 if may_be_empty else 1}


def _expectations(kind: fields.Expectations, definitions: dict[str, Schema]) -> Schema:
    forms = [_reference(kind.declaration, definitions), _list_of(kind.row, definitions)]
    if kind.may_be_empty:
        forms.append({"type": "object", "maxProperties": 0})
    return {"anyOf": forms}


_KINDS: dict[type[Kind], Callable[[Any, dict[str, Schema]], Schema]] = {
    fields.Text: lambda kind, _: _text(kind.may_be_empty),
    fields.Flag: lambda _, __: {"type": "boolean"},
    fields.Whole: lambda kind, _: {
        "type": "integer",
        **({} if kind.minimum is None else {"minimum": kind.minimum}),
    },
    fields.Duration: lambda _, __: {
        "type": ["string", "number"],
        "pattern": _LENGTH_OF_TIME,
        "exclusiveMinimum": 0,
    },
    fields.Choice: lambda kind, _: _choice(kind),
    fields.Texts: lambda kind, _: {"type": "array", "items": _text(kind.may_be_empty)},
    fields.TextTable: lambda _, __: {
        "type": "object",
        "additionalProperties": {"type": [*_SCALAR, "null"]},
    },
    fields.JsonTable: lambda _, __: {"type": "object"},
    fields.JsonSchema: lambda _, __: {"type": ["object", "boolean"]},
    fields.MatcherField: lambda _, __: _matcher(),
    fields.ObjectOf: _object_of,
    fields.ListOf: lambda kind, definitions: _list_of(
        kind.declaration, definitions, may_be_empty=kind.may_be_empty
    ),
    fields.Expectations: _expectations,
    fields.Elsewhere: _elsewhere,
    fields.Reserved: lambda _, __: {
        "description": "Reserved for a later version.",
        "not": {},
    },
}
