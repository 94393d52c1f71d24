"""Single parameters: whether a model can tell what to pass."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from mcptest.core.redaction import is_secret_name
from mcptest.rules.lint.finding import LintLimits, LintSeverity, LintSuggestion, Remark, lint_rule
from mcptest.rules.lint.surface import WORDS, Item, Parameter, plain, words_of

_SAYS_THE_TYPE = frozenset(
    {"type", "enum", "const", "anyOf", "oneOf", "allOf", "$ref", "$dynamicRef", "if", "not"}
)
_GUIDING = frozenset({"enum", "pattern", "examples", "default"})
_QUOTED = re.compile(r"""(['"`])([A-Za-z0-9_.-]{1,40})\1""")
_CHOOSING = re.compile(
    r"\b(?:one of|either|allowed|valid values|possible values|must be|options)\b"
)
_LISTED = re.compile(
    r"\b(?:one of|allowed values|valid values|possible values|options)[:\s]+"
    r"((?:[A-Za-z0-9_.-]{1,40}\s*(?:,|\||/|\bor\b)\s*(?:or\s+)?){1,20}[A-Za-z0-9_.-]{1,40})"
)
_RANGE = re.compile(
    r"\b(?:between|from)\s+(-?\d{1,12})\s+(?:and|to)\s+(-?\d{1,12})\b"
    r"|\b(-?\d{1,12})\s*(?:-|\u2013|\.\.)\s*(\d{1,12})\b"
)
_MOST = re.compile(r"\b(?:max(?:imum)?|at most|up to|no more than)\D{0,15}?(\d{1,12})\b")
_BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "enum")
_SENSITIVE = re.compile("|".join(WORDS.sensitive))
_ALSO_SENSITIVE = re.compile("|".join(WORDS.also_sensitive))
_USER_FACING = re.compile("|".join(WORDS.user_facing))
_PROSE = 2_000
"""Longer texts are searched up to here."""


@lint_rule("E102", "parameter without type", LintSeverity.ERROR, "parameter")
def no_type(parameter: Parameter, limits: LintLimits) -> Iterator[Remark]:
    """Without a type, a model may send a string instead of a number, or the other way round.

    Declare the type of the parameter.
    """
    if not _SAYS_THE_TYPE & parameter.schema.keys():
        added = LintSuggestion(f"{parameter.pointer}/type", "string")
        message = f'parameter "{parameter.name}" has no type'
        yield Remark(message, f"args.{parameter.name}.type", added)


@lint_rule("E103", "required parameter without description", LintSeverity.WARNING, "tool")
def required_undescribed(tool: Item, limits: LintLimits) -> Iterator[Remark]:
    """A model must pass the parameter and can only guess its value. It is a note if the name or the
    description of the tool says what it is.

    Say what it stands for and in which format, with an example.
    """
    for parameter in tool.parameters:
        if parameter.required and not parameter.description:
            # Docstrings of Python tools describe parameters in the description of the tool.
            said = _says_itself(parameter) or _is_named(parameter.name, tool.description)
            remark = _undescribed(parameter, "required")
            yield replace(remark, severity=LintSeverity.NOTE) if said else remark


def _is_named(name: str, text: str) -> bool:
    """Whether it is a word of the text. To compile an expression of a long name takes seconds."""
    return name in text and bool(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text))


def _says_itself(parameter: Parameter) -> bool:
    """`repo_path`, `user_id`, `url`; of names that say nothing W104 speaks."""
    if parameter.name.lower() in WORDS.generic_names or parameter.schema.keys() & {"enum", "const"}:
        return True
    *before, last = words_of(parameter.name) or [""]
    return last in WORDS.telling_names or (bool(before) and last in WORDS.telling_endings)


@lint_rule("W102", "optional parameter without description", LintSeverity.NOTE, "parameter")
def optional_undescribed(parameter: Parameter, limits: LintLimits) -> Iterator[Remark]:
    """A model does not use a parameter that it does not understand.

    Say what the parameter changes, and what its default is.
    """
    if not parameter.required and not parameter.description:
        yield _undescribed(parameter, "optional")


def _undescribed(parameter: Parameter, how: str) -> Remark:
    message = f'{how} parameter "{parameter.name}" has no description'
    field = f"args.{parameter.name}.description"
    return Remark(message, field, described_parameter(parameter))


@lint_rule("W103", "required string without guidance", LintSeverity.NOTE, "parameter")
def unguided_text(parameter: Parameter, limits: LintLimits) -> Iterator[Remark]:
    """Any string is valid, so a model may invent one.

    Add an enum, a pattern, examples or a default.
    """
    if parameter.required and parameter.type == "string" and not _GUIDING & parameter.schema.keys():
        message = f'required string "{parameter.name}" has no enum, pattern, examples or default'
        yield Remark(message, f"args.{parameter.name}", with_examples(parameter))


@lint_rule("W104", "generic parameter name without description", LintSeverity.WARNING, "parameter")
def generic_name(parameter: Parameter, limits: LintLimits) -> Iterator[Remark]:
    """Names like data or value say nothing on their own.

    Name the parameter after what it holds, or describe it.
    """
    if parameter.name.lower() in WORDS.generic_names and not parameter.description:
        message = f'parameter "{parameter.name}" has a generic name and no description'
        yield Remark(message, f"args.{parameter.name}", described_parameter(parameter))


@lint_rule("W109", "user-facing parameter without examples", LintSeverity.NOTE, "parameter")
def no_examples(parameter: Parameter, limits: LintLimits) -> Iterator[Remark]:
    """For names, queries, dates and addresses, one example says more than a sentence.

    Add examples, an enum or a default.
    """
    name = parameter.name.lower()
    guided = {"examples", "enum", "default"} & parameter.schema.keys()
    if not guided and _USER_FACING.search(name):
        message = f'user-facing parameter "{parameter.name}" has no examples'
        yield Remark(message, f"args.{parameter.name}.examples", with_examples(parameter))


@lint_rule("E112", "secret as parameter", LintSeverity.WARNING, "parameter")
def secret_parameter(parameter: Parameter, limits: LintLimits) -> Iterator[Remark]:
    """What a model passes ends up in its context, in logs and in transcripts.

    Take the secret from the environment or the server's authorization, or mark the parameter
    writeOnly.
    """
    name = parameter.name.lower()
    if parameter.schema.get("writeOnly") is not True and _SENSITIVE.search(name):
        about = not is_secret_name(parameter.name)  # the type of a secret is none
        yield replace(_secret(parameter), severity=LintSeverity.NOTE if about else None)


@lint_rule("L211", "token or personal secret as parameter", LintSeverity.WARNING, "parameter")
def token_parameter(parameter: Parameter, limits: LintLimits) -> Iterator[Remark]:
    """Like E112, for names that are not always secrets: access tokens, codes, card numbers.

    Take the secret from the environment or the server's authorization, or mark the parameter
    writeOnly.
    """
    if parameter.schema.get("writeOnly") is True:
        return
    if _SENSITIVE.search(parameter.name.lower()):
        return  # E112 reports it
    name = plain(parameter.name)
    if name in WORDS.sensitive_words or _ALSO_SENSITIVE.search(name):
        yield _secret(parameter)


def _secret(parameter: Parameter) -> Remark:
    message = f'parameter "{parameter.name}" asks a model for a secret'
    marked = LintSuggestion(f"{parameter.pointer}/writeOnly", value=True)
    return Remark(message, f"args.{parameter.name}", marked)


@lint_rule("L208", "object or array with undeclared contents", LintSeverity.WARNING, "parameter")
def unknown_members(parameter: Parameter, limits: LintLimits) -> Iterator[Remark]:
    """A model must guess the properties of a free-form object and the items of a bare array. It is
    a note if a description says what they are.

    Declare properties or additionalProperties for objects, and items for arrays.
    """
    schema, name = parameter.schema, parameter.name
    shaped = schema.keys() & {"$ref", "anyOf", "oneOf", "allOf", "enum", "const"}
    if shaped:
        return
    described = LintSeverity.NOTE if parameter.description else None
    if parameter.type == "object" and not schema.get("properties"):
        said = schema.get("additionalProperties")
        if said is True or (said is None and not schema.get("patternProperties")):
            message = f'parameter "{name}" is an object without declared properties'
            yield Remark(message, f"args.{name}.properties", severity=described)
    if parameter.type == "array" and not schema.keys() & {"items", "prefixItems", "contains"}:
        added = LintSuggestion(f"{parameter.pointer}/items", {"type": "string"})
        message = f'parameter "{name}" is an array without declared items'
        yield Remark(message, f"args.{name}.items", added, severity=described)


@lint_rule("L209", "choices only in the description", LintSeverity.WARNING, "parameter")
def choices_in_prose(parameter: Parameter, limits: LintLimits) -> Iterator[Remark]:
    """Clients cannot check or offer choices that only the description lists.

    Declare the choices as an enum.
    """
    formed = parameter.schema.keys() & {"enum", "const", "pattern", "format"}
    if parameter.type != "string" or formed:
        return
    found = _choices(parameter.description[:_PROSE])
    if len(found) >= 2:
        added = LintSuggestion(f"{parameter.pointer}/enum", found)
        message = f'only the description lists the choices of "{parameter.name}"'
        message = f"{message}: {', '.join(found[:5])}"
        yield Remark(message, f"args.{parameter.name}.enum", added)


def _choices(text: str) -> list[str]:
    if "e.g" in text or "for example" in text.lower():
        return []
    if _CHOOSING.search(text.lower()):
        quoted = list(dict.fromkeys(match[1] for match in _QUOTED.findall(text)))
        if len(quoted) >= 2:
            return quoted
    listed = _LISTED.search(text)
    words = re.split(r"\s*(?:,|\||/|\bor\b)\s*", listed.group(1)) if listed else []
    return list(dict.fromkeys(word.strip(".") for word in words if word.strip(".")))


@lint_rule("L210", "bounds only in the description", LintSeverity.WARNING, "parameter")
def bounds_in_prose(parameter: Parameter, limits: LintLimits) -> Iterator[Remark]:
    """Clients cannot check bounds that only the description gives, and models ignore them.

    Set minimum and maximum.
    """
    if parameter.type not in ("integer", "number") or parameter.schema.keys() & set(_BOUNDS):
        return
    text = parameter.description[:_PROSE].lower()
    added = None
    if found := _RANGE.search(text):
        low, high = (int(one) for one in found.groups() if one is not None)
        bounded = {**parameter.schema, "minimum": low, "maximum": high}
        added = LintSuggestion(parameter.pointer, bounded)
    elif found := _MOST.search(text):
        added = LintSuggestion(f"{parameter.pointer}/maximum", int(found.group(1)))
    if added is not None:
        message = f'only the description gives the bounds of "{parameter.name}"'
        yield Remark(message, f"args.{parameter.name}.maximum", added)


@lint_rule("L217", "parameter description that repeats the name", LintSeverity.NOTE, "parameter")
def repeated_name(parameter: Parameter, limits: LintLimits) -> Iterator[Remark]:
    """It looks like documentation, but a model learns nothing from it.

    Say what the parameter stands for and in which format.
    """
    text = parameter.description
    if not text or len(text) > 3 * len(parameter.name) + 60:
        return  # it says more
    said = set(words_of(text)) - WORDS.filler
    if said <= set(words_of(parameter.name)) | {parameter.type}:
        message = f'the description of "{parameter.name}" only repeats its name'
        yield Remark(message, f"args.{parameter.name}.description", described_parameter(parameter))


# -- Texts and values for what is missing: a start to edit, made from names alone ----------------


def described_parameter(parameter: Parameter) -> LintSuggestion:
    words = words_of(parameter.name)
    known = next((word for word in reversed(words) if word in WORDS.meanings), "")
    others = " ".join(word for word in words if word != known) or "the item"
    text = f"{WORDS.meanings[known]} {others}" if known else f"The {' '.join(words)} to use"
    example = example_for(parameter)
    shown = f", for example {example}" if isinstance(example, str) and example else ""
    return LintSuggestion(f"{parameter.pointer}/description", f"{text}{shown}.")


def with_examples(parameter: Parameter) -> LintSuggestion:
    return LintSuggestion(f"{parameter.pointer}/examples", [example_for(parameter)])


def example_for(parameter: Parameter) -> Any:
    """By its name; else the plainest value that its schema takes."""
    kind = parameter.type
    if kind == "array":
        return [_text_for(parameter)]
    if kind in ("", "string"):
        return _text_for(parameter)
    return {"integer": 1, "number": 1.5, "boolean": True}.get(kind, {})


def _text_for(parameter: Parameter) -> str:
    words = words_of(parameter.name)
    known = next((word for word in reversed(words) if word in WORDS.examples), "")
    return str(WORDS.examples.get(known) or "-".join([*words, "1"]))
