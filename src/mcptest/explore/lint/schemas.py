"""Schemas of tools: valid in themselves, and saying what is meant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mcptest.explore.lint.declare import lint_rule
from mcptest.explore.lint.finding import Limits, Remark, Severity, Suggestion
from mcptest.explore.lint.surface import (
    Node,
    Parameter,
    Surface,
    Tool,
    nodes_of,
    object_of,
    required_of,
)
from mcptest.schema.json_schema import CompiledSchema, SchemaError, SchemaLimitError

_MANY_CHOICES = 50
_TYPE_ONLY = frozenset({"type", "title", "description", "default", "examples"})
_PLAIN: dict[str, Any] = {"string": str, "boolean": bool, "number": int | float}
"""Types that are checked without a validator: most parameters have nothing else."""
_NAMED = 5
_SAYS_THE_TYPE = frozenset({"type", "enum", "const", "anyOf", "oneOf", "allOf", "$ref"})


@lint_rule(
    "L205",
    "required parameter that does not exist",
    Severity.ERROR,
    "tool",
    why="No model can know what to pass: it has to be there, and nothing says what it is.",
    fix="Add it to properties, or take it out of required.",
)
def required_but_absent(tool: Tool, limits: Limits) -> Iterator[Remark]:
    listed = tool.schema.get("required")
    if listed is not None and not isinstance(listed, list):
        yield Remark("required is not an array", "inputSchema.required")
        return
    properties = object_of(tool.schema, "properties")
    absent = sorted(required_of(tool.schema) - properties.keys())
    if absent and not tool.schema.keys() & {"allOf", "anyOf", "oneOf", "$ref", "patternProperties"}:
        named = ", ".join(f'"{name}"' for name in absent[:_NAMED])
        yield Remark(f"requires {named}, which properties does not have", "inputSchema.required")


@lint_rule(
    "L206",
    "input schema that is not valid",
    Severity.ERROR,
    "tool",
    why="Clients refuse the tool, or the whole list.",
    fix="An input schema is a valid JSON Schema of type object that refers to nothing outside.",
)
def invalid_input_schema(tool: Tool, limits: Limits) -> Iterator[Remark]:
    yield from _invalid(tool, "inputSchema")


@lint_rule(
    "L223",
    "output schema that is not valid",
    Severity.ERROR,
    "tool",
    why="Clients check what comes back by it, and refuse every answer.",
    fix="An output schema is a valid JSON Schema of type object that refers to nothing outside.",
)
def invalid_output_schema(tool: Tool, limits: Limits) -> Iterator[Remark]:
    yield from _invalid(tool, "outputSchema")


def _invalid(tool: Tool, member: str) -> Iterator[Remark]:
    schema = tool.member(member)
    if schema is None:
        return
    if not isinstance(schema, dict):
        if member == "outputSchema":  # of the other one L203 speaks
            yield Remark(f"{member} is not an object", member)
        return
    if schema.get("type") != "object":
        typed = Suggestion(f"/{member}/type", "object")
        yield Remark(f'{member} is not of type "object"', f"{member}.type", typed)
    if reason := why_invalid(schema):
        yield Remark(f"{member} is not valid: {reason}", member)


@lint_rule(
    "L226",
    "schema that costs too much to check",
    Severity.ERROR,
    "tool",
    why="Clients that check arguments and answers by it hang, or refuse the tool.",
    fix="Refer to a definition once, and say what is repeated in one place.",
)
def costly_schema(tool: Tool, limits: Limits) -> Iterator[Remark]:
    for member in ("inputSchema", "outputSchema"):
        schema = tool.member(member)
        if isinstance(schema, dict):
            try:
                CompiledSchema(schema)
            except SchemaLimitError as error:
                yield Remark(f"{member} can't be checked: {error}", member)
            except SchemaError:
                pass  # L206 and L223 speak of schemas that are not valid


def why_invalid(schema: Any) -> str:
    try:
        CompiledSchema(schema)
    except SchemaLimitError:
        return ""  # it may be valid; L226 speaks of its cost
    except SchemaError as error:
        return str(error)
    return ""


@lint_rule(
    "L207",
    "default or example that does not fit",
    Severity.ERROR,
    "parameter",
    why="A model passes it as it stands, and the call is refused.",
    fix="Correct the value, or the bounds.",
)
def unfitting_values(parameter: Parameter, limits: Limits) -> Iterator[Remark]:
    for key, value in _given_values(parameter.schema):
        if reason := _misfit(parameter.schema, value):
            message = f'the {key} of "{parameter.name}" does not fit its own schema: {reason}'
            yield Remark(message, f"args.{parameter.name}.{key}")
            return


def _given_values(schema: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    # null stands for "none": generators write it for every optional member
    if schema.get("default") is not None:
        yield "default", schema["default"]
    examples = schema.get("examples")
    for example in examples[:20] if isinstance(examples, list) else ():
        yield "example", example


def _misfit(schema: Mapping[str, Any], value: Any) -> str:
    kind = schema.get("type")
    if isinstance(kind, str) and schema.keys() <= _TYPE_ONLY and kind in _PLAIN:
        fits = isinstance(value, _PLAIN[kind]) and isinstance(value, bool) <= (kind == "boolean")
        return "" if fits else f"it is not of type {kind}"
    if "$ref" in schema or "$ref" in str(schema):
        return ""  # what it refers to stands elsewhere
    try:
        found = CompiledSchema(dict(schema)).misfit(value)
    except SchemaError:
        return ""  # L206 says so
    return found.reason if found else ""


@lint_rule(
    "L218",
    "choices that are odd",
    Severity.WARNING,
    "parameter",
    why="Empty, repeated or endless choices, and choices of another type, mislead a model.",
    fix="List each choice once, all of the declared type, and not more than fifty.",
)
def odd_choices(parameter: Parameter, limits: Limits) -> Iterator[Remark]:
    choices = parameter.schema.get("enum")
    if not isinstance(choices, list):
        return
    field = f"args.{parameter.name}.enum"
    texts = [repr(one) for one in choices]
    if not choices:
        yield Remark(f'"{parameter.name}" has no choice at all', field)
    elif len(set(texts)) < len(texts):
        yield Remark(f'"{parameter.name}" lists a choice twice', field)
    elif len(choices) > _MANY_CHOICES:
        yield Remark(f'"{parameter.name}" has {len(choices)} choices', field)
    elif parameter.type == "string" and not all(isinstance(one, str) for one in choices):
        yield Remark(f'"{parameter.name}" is a string, and not all of its choices are', field)


@lint_rule(
    "L220",
    "one description for several parameters",
    Severity.WARNING,
    "tool",
    why="A model can't tell them apart.",
    fix="Say of each what it alone stands for.",
)
def shared_descriptions(tool: Tool, limits: Limits) -> Iterator[Remark]:
    by_text: dict[str, list[str]] = {}
    for parameter in tool.parameters:
        if parameter.description:
            by_text.setdefault(parameter.description.lower(), []).append(parameter.name)
    for names in by_text.values():
        if len(names) > 1:
            listed = ", ".join(f'"{name}"' for name in names[:_NAMED])
            yield Remark(f"{listed} have the same description", f"args.{names[0]}.description")


@lint_rule(
    "L221",
    "inner member without type or description",
    Severity.WARNING,
    "tool",
    why="Members of inner objects are passed by a model too, and mostly forgotten in the docs. A "
    "note where only descriptions are missing.",
    fix="Give each a type and a description.",
)
def undescribed_inner(tool: Tool, limits: Limits) -> Iterator[Remark]:
    bare: dict[str, None] = {}
    untyped = False
    if tool.is_flat:
        return
    for node in nodes_of(tool.schema):
        if node.is_property and node.depth > 1 and _is_bare(node):
            bare[node.path] = None
            untyped = untyped or not _SAYS_THE_TYPE & node.schema.keys()
    if bare:
        named = ", ".join(list(bare)[:_NAMED])
        more = f" and {len(bare) - _NAMED} more" if len(bare) > _NAMED else ""
        yield Remark(
            f"no type or description: {named}{more}",
            f"args.{next(iter(bare))}",
            severity=None if untyped else Severity.NOTE,
        )


def _is_bare(node: Node) -> bool:
    schema = node.schema
    described = "description" in schema or "$ref" in schema
    return not described or not _SAYS_THE_TYPE & schema.keys()


@lint_rule(
    "L224",
    "parameter of two types",
    Severity.WARNING,
    "surface",
    why="What is a number in one tool and a text in the next is passed wrongly to one of them.",
    fix="Use one type for one name.",
)
def two_types(surface: Surface, limits: Limits) -> Iterator[Remark]:
    seen: dict[str, tuple[str, str]] = {}
    told: set[tuple[str, str]] = set()
    for tool in surface.tools:
        for parameter in tool.parameters:
            kind = "number" if parameter.type == "integer" else parameter.type
            if not kind:
                continue
            first, other = seen.setdefault(parameter.name, (kind, tool.name))
            if kind != first and (parameter.name, kind) not in told:
                told.add((parameter.name, kind))
                message = f'"{parameter.name}" is of type {kind} here and {first} in "{other}"'
                yield Remark(message, f"args.{parameter.name}.type", item=tool.name)


@lint_rule(
    "L225",
    "alternatives at the top of the input schema",
    Severity.WARNING,
    "tool",
    why="Several model APIs refuse anyOf, oneOf, allOf and $ref there, and so the tool.",
    fix="Describe the parameters as plain properties, or make one tool for each alternative.",
)
def composed_at_the_top(tool: Tool, limits: Limits) -> Iterator[Remark]:
    found = [key for key in ("anyOf", "oneOf", "allOf", "$ref", "not") if key in tool.schema]
    if found:
        yield Remark(f"the input schema has {', '.join(found)} at its top", "inputSchema")
