"""Prompts, resources and templates: whether people and models can choose between them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from mcptest.rules.lint.finding import LintLimits, LintSeverity, LintSuggestion, Remark, lint_rule
from mcptest.rules.lint.surface import Item, Surface, text_of

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s<>\"{}|\\^`]+")
_MIME = re.compile(r"[A-Za-z0-9!#$&^_.+-]+/[A-Za-z0-9!#$&^_.+-]+(?:\s*;.*)?")
_EXPRESSION = re.compile(
    r"\{[+#./;?&]?[A-Za-z0-9_.%]+(?:\*|:\d{1,4})?(?:,[A-Za-z0-9_.%]+(?:\*|:\d{1,4})?)*\}"
)


@lint_rule("L231", "prompt without description", LintSeverity.WARNING, "prompt")
def undescribed_prompt(prompt: Item, limits: LintLimits) -> Iterator[Remark]:
    """A person picks the prompt from a list.

    Say what the prompt is for.
    """
    if not text_of(prompt.fields, "name"):
        yield Remark("is not an object with a name", "name")
    elif not prompt.description:
        yield Remark("has no description", "description")


@lint_rule("L232", "prompt argument without description", LintSeverity.WARNING, "prompt")
def undescribed_argument(prompt: Item, limits: LintLimits) -> Iterator[Remark]:
    """Clients show the description next to the field that a person fills in.

    Say what to enter.
    """
    arguments = prompt.fields.get("arguments")
    for number, one in enumerate(arguments if isinstance(arguments, list) else ()):
        name = text_of(one, "name") if isinstance(one, dict) else ""
        if not name:
            yield Remark(f"argument {number + 1} has no name", f"arguments[{number}].name")
        elif not text_of(one, "description"):
            added = LintSuggestion(f"/arguments/{number}/description", f"The {name} to use.")
            message = f'argument "{name}" has no description'
            yield Remark(message, f"arguments.{name}.description", added)


@lint_rule("L233", "duplicate name or URI", LintSeverity.ERROR, "surface")
def duplicates(surface: Surface, limits: LintLimits) -> Iterator[Remark]:
    """A client can reach only one of them.

    Give each prompt a unique name, and each resource and template a unique URI.
    """
    for kind, what, field in (
        ("prompt", "prompts have this name", "name"),
        ("resource", "resources have this URI", "uri"),
        ("template", "templates have this URI template", "uriTemplate"),
    ):
        for name, count in Counter(item.name for item in surface.by_kind[kind]).items():
            if count > 1:
                yield Remark(f"{count} {what}", field, item=name, kind=kind)


@lint_rule("L241", "resource without name or description", LintSeverity.NOTE, "resource")
def undescribed_resource(resource: Item, limits: LintLimits) -> Iterator[Remark]:
    """A URI alone does not say what the resource contains.

    Give it a name, and say what it contains.
    """
    yield from _unnamed(resource)


@lint_rule("L242", "resource without a usable MIME type", LintSeverity.NOTE, "resource")
def no_mime_type(resource: Item, limits: LintLimits) -> Iterator[Remark]:
    """Clients decide by the MIME type whether to show text, an image or nothing.

    Set mimeType, at least to text/plain.
    """
    kind = resource.fields.get("mimeType")
    if not isinstance(kind, str) or not _MIME.fullmatch(kind):
        how = "has no mimeType" if kind is None else "the mimeType is not a MIME type"
        yield Remark(how, "mimeType", LintSuggestion("/mimeType", "text/plain"))


@lint_rule("L243", "invalid resource URI", LintSeverity.ERROR, "resource")
def bad_uri(resource: Item, limits: LintLimits) -> Iterator[Remark]:
    """A client cannot read the resource.

    Use a URI with a scheme and without spaces, like file:///notes.txt.
    """
    if not _URI.fullmatch(text_of(resource.fields, "uri")):
        yield Remark("the uri is not a valid URI", "uri")


@lint_rule("L244", "invalid resource template", LintSeverity.ERROR, "template")
def bad_template(template: Item, limits: LintLimits) -> Iterator[Remark]:
    """A client cannot fill it in.

    Use a URI with at least one {variable}, as RFC 6570 defines it.
    """
    text = text_of(template.fields, "uriTemplate")
    rest = _EXPRESSION.sub("x", text)
    if "{" in rest or "}" in rest:
        yield Remark("the template has an invalid expression", "uriTemplate")
    elif rest == text:
        yield Remark("the template has no variable", "uriTemplate")


@lint_rule("L245", "resource template without name or description", LintSeverity.NOTE, "template")
def undescribed_template(template: Item, limits: LintLimits) -> Iterator[Remark]:
    """Its variables mean nothing on their own.

    Say where it leads, and what each variable stands for.
    """
    yield from _unnamed(template)


def _unnamed(item: Item) -> Iterator[Remark]:
    if not text_of(item.fields, "name"):
        yield Remark("has no name", "name")
    if not item.description:
        yield Remark("has no description", "description")
