"""Schemas of tools: whether they are valid, clear and small."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mcptest.core.safe_text import some_of
from mcptest.rules.lint.finding import (
    ALL_TOOLS,
    SERVER,
    LintLimits,
    LintSeverity,
    LintSuggestion,
    Remark,
    lint_rule,
)
from mcptest.rules.lint.surface import Item, Parameter, Surface, nodes_of, object_of, required_of
from mcptest.schema.validation import (
    CompiledSchema,
    SchemaError,
    SchemaLimitError,
    expected_but_got,
)

_MANY_CHOICES = 50
_TYPE_ONLY = frozenset({"type", "title", "description", "default", "examples"})
_PLAIN: dict[str, Any] = {"string": str, "boolean": bool, "number": int | float}
"""Types that are checked without a validator: most parameters have nothing else."""
_NAMED = 5
_SAYS_THE_TYPE = frozenset({"type", "enum", "const", "anyOf", "oneOf", "allOf", "$ref"})


@lint_rule("L205", "required parameter that is not in properties", LintSeverity.ERROR, "tool")
def required_but_absent(tool: Item, limits: LintLimits) -> Iterator[Remark]:
    """A model must pass it, but nothing says what it is.

    Add it to properties, or remove it from required.
    """
    listed = tool.schema.get("required")
    if listed is not None and not isinstance(listed, list):
        yield Remark("required is not an array", "inputSchema.required")
        return
    properties = object_of(tool.schema, "properties")
    absent = sorted(required_of(tool.schema) - properties.keys())
    if absent and not tool.schema.keys() & {"allOf", "anyOf", "oneOf", "$ref", "patternProperties"}:
        named = ", ".join(f'"{name}"' for name in absent[:_NAMED])
        yield Remark(f"requires {named}, missing from properties", "inputSchema.required")


@lint_rule("L206", "invalid input schema", LintSeverity.ERROR, "tool")
def invalid_input_schema(tool: Item, limits: LintLimits) -> Iterator[Remark]:
    """Clients reject the tool, or the whole list.

    Write a valid JSON Schema of type object without references to other documents.
    """
    yield from _invalid(tool, "inputSchema")


@lint_rule("L223", "invalid output schema", LintSeverity.ERROR, "tool")
def invalid_output_schema(tool: Item, limits: LintLimits) -> Iterator[Remark]:
    """Clients check results against it, and reject every result.

    Write a valid JSON Schema of type object without references to other documents.
    """
    yield from _invalid(tool, "outputSchema")


def _invalid(tool: Item, member: str) -> Iterator[Remark]:
    schema = tool.fields.get(member)
    if schema is None:
        return
    if not isinstance(schema, dict):
        if member == "outputSchema":  # L203 reports the other one
            yield Remark(f"{member} is not an object", member)
        return
    if schema.get("type") != "object":
        typed = LintSuggestion(f"/{member}/type", "object")
        yield Remark(f'{member} is not of type "object"', f"{member}.type", typed)
    if reason := why_invalid(schema):
        yield Remark(f"{member} is invalid: {reason}", member)


@lint_rule("L226", "schema that costs too much to check", LintSeverity.ERROR, "tool")
def costly_schema(tool: Item, limits: LintLimits) -> Iterator[Remark]:
    """Clients that check arguments or results against it hang, or reject the tool.

    Define repeated parts once in $defs, and refer to each definition only once.
    """
    for member in ("inputSchema", "outputSchema"):
        schema = tool.fields.get(member)
        if isinstance(schema, dict):
            try:
                CompiledSchema(schema)
            except SchemaLimitError as error:
                yield Remark(f"{member} can't be checked: {error}", member)
            except SchemaError:
                pass  # L206 and L223 report invalid schemas


def why_invalid(schema: Any) -> str:
    try:
        CompiledSchema(schema)
    except SchemaLimitError:
        return ""  # it may be valid; L226 reports its cost
    except SchemaError as error:
        return str(error)
    return ""


@lint_rule("L207", "default or example that breaks its own schema", LintSeverity.ERROR, "parameter")
def unfitting_values(parameter: Parameter, limits: LintLimits) -> Iterator[Remark]:
    """A model passes the value as it is, and the server rejects the call.

    Correct the value or the schema.
    """
    examples, default = parameter.schema.get("examples"), parameter.schema.get("default")
    # null stands for "none": generators write it for every optional member
    given = [("default", default)] if default is not None else []
    given += [("example", one) for one in examples[:20]] if isinstance(examples, list) else []
    for key, value in given:
        if reason := _misfit(parameter.schema, value):
            message = f'the {key} of "{parameter.name}" breaks its own schema: {reason}'
            yield Remark(message, f"args.{parameter.name}.{key}")
            return


def _misfit(schema: Mapping[str, Any], value: Any) -> str:
    kind = schema.get("type")
    if isinstance(kind, str) and schema.keys() <= _TYPE_ONLY and kind in _PLAIN:
        fits = isinstance(value, _PLAIN[kind]) and isinstance(value, bool) <= (kind == "boolean")
        return "" if fits else expected_but_got(kind, value)
    if "$ref" in schema or "$ref" in str(schema):
        return ""  # what it refers to stands elsewhere
    try:
        found = CompiledSchema(dict(schema)).misfit(value)
    except SchemaError:
        return ""  # L206 reports it
    return str(found) if found else ""


@lint_rule("L218", "invalid enum", LintSeverity.WARNING, "parameter")
def odd_choices(parameter: Parameter, limits: LintLimits) -> Iterator[Remark]:
    """An empty, repetitive or very long enum misleads a model, and so do choices of another type.

    List each choice once, with the declared type, and at most 50 choices.
    """
    choices = parameter.schema.get("enum")
    if not isinstance(choices, list):
        return
    field = f"args.{parameter.name}.enum"
    texts = [repr(one) for one in choices]
    if not choices:
        yield Remark(f'the enum of "{parameter.name}" is empty', field)
    elif len(set(texts)) < len(texts):
        yield Remark(f'the enum of "{parameter.name}" lists a choice twice', field)
    elif len(choices) > _MANY_CHOICES:
        message = f'the enum of "{parameter.name}" has {len(choices)} choices'
        yield Remark(f"{message} (maximum {_MANY_CHOICES})", field)
    elif parameter.type == "string" and not all(isinstance(one, str) for one in choices):
        yield Remark(f'"{parameter.name}" is a string, but its enum has other types', field)


@lint_rule("L220", "same description on several parameters", LintSeverity.WARNING, "tool")
def shared_descriptions(tool: Item, limits: LintLimits) -> Iterator[Remark]:
    """A model cannot tell the parameters apart.

    Describe for each parameter what it alone stands for.
    """
    by_text: dict[str, list[str]] = {}
    for parameter in tool.parameters:
        if parameter.description:
            by_text.setdefault(parameter.description.lower(), []).append(parameter.name)
    for names in by_text.values():
        if len(names) > 1:
            listed = ", ".join(f'"{name}"' for name in names[:_NAMED])
            yield Remark(f"{listed} have the same description", f"args.{names[0]}.description")


@lint_rule("L221", "nested property without type or description", LintSeverity.WARNING, "tool")
def undescribed_inner(tool: Item, limits: LintLimits) -> Iterator[Remark]:
    """A model fills in nested objects too, but their properties often lack documentation. It is a
    note if only descriptions are missing.

    Give each nested property a type and a description.
    """
    bare: dict[str, None] = {}
    untyped = False
    if tool.is_flat:
        return
    for node in nodes_of(tool.schema):
        typed = bool(_SAYS_THE_TYPE & node.schema.keys())
        described = "description" in node.schema or "$ref" in node.schema
        if node.is_property and node.depth > 1 and not (typed and described):
            bare[node.path] = None
            untyped = untyped or not typed
    if bare:
        message = f"no type or description: {some_of(list(bare), _NAMED)}"
        harm = None if untyped else LintSeverity.NOTE
        yield Remark(message, f"args.{next(iter(bare))}", severity=harm)


@lint_rule("L224", "parameter with two types", LintSeverity.WARNING, "surface")
def two_types(surface: Surface, limits: LintLimits) -> Iterator[Remark]:
    """If a name is a number in one tool and a string in another, a model passes the wrong type to
    one of them.

    Use the same type for the same name in all tools.
    """
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
                message = f'"{parameter.name}" has type {kind} here and {first} in "{other}"'
                yield Remark(message, f"args.{parameter.name}.type", item=tool.name)


@lint_rule("L225", "alternatives at the top of the input schema", LintSeverity.WARNING, "tool")
def composed_at_the_top(tool: Item, limits: LintLimits) -> Iterator[Remark]:
    """Several model APIs reject anyOf, oneOf, allOf and $ref at the top level, and so the tool.

    Describe the parameters as plain properties, or make one tool per alternative.
    """
    found = [key for key in ("anyOf", "oneOf", "allOf", "$ref", "not") if key in tool.schema]
    if found:
        yield Remark(f"the input schema has {', '.join(found)} at the top level", "inputSchema")


# -- What tools cost a model ---------------------------------------------------------------------


@lint_rule("W106", "tools use too much context", LintSeverity.WARNING, "surface")
def whole_budget(surface: Surface, limits: LintLimits) -> Iterator[Remark]:
    """Every request carries all tool definitions in its context.

    Shorten descriptions, remove tools, or split the server. --max-tokens sets the limit.
    """
    tokens = surface.size // 4
    if tokens > limits.max_tokens:
        message = f"the tools take about {tokens} tokens (maximum {limits.max_tokens})"
        yield Remark(message, "schema_size", item=ALL_TOOLS, kind="server")


@lint_rule("W112", "too many tools", LintSeverity.WARNING, "surface")
def too_many_tools(surface: Surface, limits: LintLimits) -> Iterator[Remark]:
    """The more tools a server offers, the more often a model picks the wrong one.

    Merge or remove tools, or split the server. --max-tools sets the limit.
    """
    count = len(surface.tools)
    if count > limits.max_tools:
        message = f"offers {count} tools (maximum {limits.max_tools})"
        yield Remark(message, "tool_count", item=SERVER, kind="server")


@lint_rule("W114", "deeply nested input schema", LintSeverity.WARNING, "tool")
def deep_schema(tool: Item, limits: LintLimits) -> Iterator[Remark]:
    """Models lose track of their position in deeply nested objects.

    Turn properties of nested objects into parameters. --max-depth sets the limit.
    """
    if tool.is_flat and limits.max_depth:
        return
    depth = max((node.depth for node in nodes_of(tool.schema)), default=0)
    if depth > limits.max_depth:
        message = f"the input schema is {depth} levels deep (maximum {limits.max_depth})"
        yield Remark(message, "schema")


@lint_rule("W115", "tool uses too much context", LintSeverity.WARNING, "tool")
def tool_budget(tool: Item, limits: LintLimits) -> Iterator[Remark]:
    """Every request carries the definition in its context, even if the tool is not called.

    Shorten the description or the schema. --max-tool-tokens sets the limit.
    """
    if tool.tokens > limits.max_tool_tokens:
        message = f"takes about {tool.tokens} tokens (maximum {limits.max_tool_tokens})"
        yield Remark(message, "token_cost")


@lint_rule("L219", "too many parameters", LintSeverity.WARNING, "tool")
def too_many_parameters(tool: Item, limits: LintLimits) -> Iterator[Remark]:
    """The more parameters a tool has, the more of them a model gets wrong.

    Split the tool, or group related parameters. --max-parameters sets the limit.
    """
    count = len(tool.parameters)
    if count > limits.max_parameters:
        yield Remark(f"has {count} parameters (maximum {limits.max_parameters})", "schema")
