"""Prompts, resources and templates: what people and models choose them by."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from mcptest.rules.lint.finding import LintLimits, LintSeverity, LintSuggestion, Remark, lint_rule
from mcptest.rules.lint.surface import Item, Surface, text_of

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s<>\"{}|\\^`]+")
_MIME = re.compile(r"[A-Za-z0-9!#$&^_.+-]+/[A-Za-z0-9!#$&^_.+-]+(?:\s*;.*)?")
_EXPRESSION = re.compile(
    r"\{[+#./;?&]?[A-Za-z0-9_.%]+(?:\*|:\d{1,4})?(?:,[A-Za-z0-9_.%]+(?:\*|:\d{1,4})?)*\}"
)


@lint_rule("L231", "prompt without description", LintSeverity.WARNING, "prompt")
def undescribed_prompt(prompt: Item, limits: LintLimits) -> Iterator[Remark]:
    """A person picks it from a list.

    Say what it is good for.
    """
    if not text_of(prompt.fields, "name"):
        yield Remark("is no object with a name", "name")
    elif not prompt.description:
        yield Remark("has no description", "description")


@lint_rule("L232", "prompt argument without description", LintSeverity.WARNING, "prompt")
def undescribed_argument(prompt: Item, limits: LintLimits) -> Iterator[Remark]:
    """Clients show it beside the field that a person fills in.

    Say what to enter.
    """
    arguments = prompt.fields.get("arguments")
    for number, one in enumerate(arguments if isinstance(arguments, list) else ()):
        name = text_of(one, "name") if isinstance(one, dict) else ""
        if not name:
            yield Remark(f"argument {number + 1} has no name", f"arguments[{number}].name")
        elif not text_of(one, "description"):
            added = LintSuggestion(f"/arguments/{number}/description", f"What {name} stands for.")
            message = f'argument "{name}" has no description'
            yield Remark(message, f"arguments.{name}.description", added)


@lint_rule("L233", "name or URI that is used twice", LintSeverity.ERROR, "surface")
def duplicates(surface: Surface, limits: LintLimits) -> Iterator[Remark]:
    """Only one of them can be had.

    Give each one of its own.
    """
    yield from _twice("prompt", surface.prompts, "prompts have this name", "name")
    yield from _twice("resource", surface.resources, "resources have this URI", "uri")
    yield from _twice("template", surface.templates, "templates are this one", "uriTemplate")


def _twice(kind: str, items: Sequence[Item], what: str, field: str) -> Iterator[Remark]:
    for name, count in Counter(item.name for item in items).items():
        if count > 1:
            yield Remark(f"{count} {what}", field, item=name, kind=kind)


@lint_rule("L241", "resource without name or description", LintSeverity.NOTE, "resource")
def undescribed_resource(resource: Item, limits: LintLimits) -> Iterator[Remark]:
    """A URI alone does not say what is in it.

    Give it a name and say what it holds.
    """
    yield from _unnamed(resource)


@lint_rule("L242", "resource without a usable MIME type", LintSeverity.NOTE, "resource")
def no_mime_type(resource: Item, limits: LintLimits) -> Iterator[Remark]:
    """Clients decide by it whether they show a text, an image or nothing.

    Set mimeType, text/plain at least.
    """
    kind = resource.fields.get("mimeType")
    if not isinstance(kind, str) or not _MIME.fullmatch(kind):
        how = "has no mimeType" if kind is None else "the mimeType is none"
        yield Remark(how, "mimeType", LintSuggestion("/mimeType", "text/plain"))


@lint_rule("L243", "resource URI that is none", LintSeverity.ERROR, "resource")
def bad_uri(resource: Item, limits: LintLimits) -> Iterator[Remark]:
    """It can't be asked for.

    A URI has a scheme, like file:///notes.txt, and no blanks.
    """
    if not _URI.fullmatch(text_of(resource.fields, "uri")):
        yield Remark("the uri is no URI", "uri")


@lint_rule("L244", "resource template that is none", LintSeverity.ERROR, "template")
def bad_template(template: Item, limits: LintLimits) -> Iterator[Remark]:
    """No client can fill it in.

    It is a URI with at least one {variable}, as RFC 6570 has it.
    """
    text = text_of(template.fields, "uriTemplate")
    rest = _EXPRESSION.sub("x", text)
    if "{" in rest or "}" in rest:
        yield Remark("the braces of the template do not fit together", "uriTemplate")
    elif rest == text:
        yield Remark("the template has no variable", "uriTemplate")


@lint_rule("L245", "resource template without name or description", LintSeverity.NOTE, "template")
def undescribed_template(template: Item, limits: LintLimits) -> Iterator[Remark]:
    """Its variables mean nothing by themselves.

    Say what it leads to, and what each variable stands for.
    """
    yield from _unnamed(template)


def _unnamed(item: Item) -> Iterator[Remark]:
    if not text_of(item.fields, "name"):
        yield Remark("has no name", "name")
    if not item.description:
        yield Remark("has no description", "description")
