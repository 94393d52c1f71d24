"""Starter tests for what a server offers: from its lists alone, or from how an audit found it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from mcptest.explore.audit import (
    Ground,
    expanded,
    input_for,
    prompt_arguments,
    template_variables,
)
from mcptest.model.audit import ONLY_AS_TASK, AuditItem, AuditReport, Health
from mcptest.peer.tool_safety import runs_only_as_task, why_not
from mcptest.run.exploring.auditing import REFUSES_MADE_UP
from mcptest.run.exploring.subject import Offer
from mcptest.suite.written import Starter

_MADE_UP = "put in real values"


def starters_of_offer(
    offer: Offer, *, include_writes: bool, ground: Ground | None = None
) -> Iterator[Starter]:
    """A test for each item, none of which was called. What may write is marked to be skipped."""
    for tool in offer.tools:
        if isinstance(tool, dict) and isinstance(tool.get("name"), str):
            yield _of_tool(tool, include_writes=include_writes, ground=ground)
    for prompt in offer.prompts:
        if isinstance(prompt, dict) and isinstance(prompt.get("name"), str):
            yield _of_prompt(prompt)
    for resource in offer.resources:
        if isinstance(resource, dict) and isinstance(resource.get("uri"), str):
            yield Starter("resource", resource["uri"], comments=_about(resource))
    for template in offer.templates:
        if isinstance(template, dict) and isinstance(template.get("uriTemplate"), str):
            yield _of_template(template)


def _of_tool(tool: Mapping[str, Any], *, include_writes: bool, ground: Ground | None) -> Starter:
    made = input_for(tool, ground)
    reason = why_not(tool)
    skip = ONLY_AS_TASK if runs_only_as_task(tool) else ""
    skip = skip or ("" if include_writes else reason)
    comments = _about(tool) + tuple(filter(None, (made.doubt, made.unchecked)))
    return Starter(
        "tool",
        tool["name"],
        made.arguments,
        skip=skip,
        comments=comments,
        on_fixture=ground is not None,
    )


def _of_prompt(prompt: Mapping[str, Any]) -> Starter:
    names = prompt_arguments(prompt)
    comments = (*_about(prompt), *((f"arguments are made up: {_MADE_UP}",) if names else ()))
    return Starter("prompt", prompt["name"], {name: name for name in names}, comments=comments)


def _of_template(template: Mapping[str, Any]) -> Starter:
    pattern = template["uriTemplate"]
    names = template_variables(pattern)
    uri = expanded(pattern, {name: name for name in names})
    skip = f"its values are made up: {_MADE_UP}" if names else ""
    return Starter("resource", uri, skip=skip, comments=(f"template: {pattern}", *_about(template)))


def _about(item: Mapping[str, Any]) -> tuple[str, ...]:
    words = item.get("description")
    return (words,) if isinstance(words, str) and words.strip() else ()


def starters_of_audit(
    report: AuditReport, *, ground: Ground | None = None, fixture: str = ""
) -> Iterator[Starter]:
    """A test for each item that expects what was seen, so that it passes at once.

    What crashed is expected to answer: such a test fails until it does. `fixture` is the folder
    that stood for the fixture, which a suite calls by its variable.
    """
    for item in report.items:
        if item.name == "(no name)":
            continue
        starter = _of_item(item)
        if ground is not None and fixture:
            args = _named_again(starter.args, fixture, ground.folder)
            yield replace(starter, args=args, on_fixture=True)
        else:
            yield starter


def _of_item(item: AuditItem) -> Starter:
    comments = [item.description] if item.description.strip() else []
    skip = item.detail if item.health is Health.SKIPPED else ""
    expect: dict[str, Any] = {"not_error": True}
    refused = item.health is Health.REFUSED or (
        item.health is Health.HEALTHY and item.detail.startswith(REFUSES_MADE_UP)
    )
    if item.asks_back and not item.health.is_broken:
        skip = "it asks the client for something: add client_capabilities to the server"
    elif item.health.is_broken or item.findings:
        comments.append(f"found by the audit: {item.detail or item.findings[0]}")
    elif item.is_error:
        expect = {"is_error": True}
        comments.append(f"the input is made up, and is answered with an error: {item.detail}")
        comments.append("put in real values and expect not_error: true")
    elif refused:
        skip = f"the input is made up, and is refused: {item.detail}"
    elif item.health is Health.HEALTHY and item.has_text:
        expect["not_empty"] = True
    if item.kind == "tool":
        return Starter("tool", item.name, item.input, expect, skip, tuple(comments))
    if item.kind == "prompt":
        return Starter("prompt", item.name, item.input, expect, skip, tuple(comments))
    uri = str(item.input.get("uri", item.name))
    return Starter("resource", uri, {}, expect, skip, tuple(comments))


def _named_again(value: Any, path: str, variable: str) -> Any:
    """The value with the fixture's place under the name that suites have for it."""
    if isinstance(value, str):
        return value.replace(path, variable)
    if isinstance(value, Mapping):
        return {key: _named_again(one, path, variable) for key, one in value.items()}
    return (
        [_named_again(one, path, variable) for one in value] if isinstance(value, list) else value
    )
