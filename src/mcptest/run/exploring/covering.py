"""Holding a suite against what a live server offers.

What counts is what a test asserts on. A call in a setup step prepares a test, and a test that is
skipped notices nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

from mcptest import __version__
from mcptest.model.coverage import KINDS, CoverageReport, CoveredItem, CoveredKind, Unknown
from mcptest.model.show import show
from mcptest.run.exploring.subject import Offer
from mcptest.suite.model import (
    CompletionBlock,
    LoggingBlock,
    NotificationsBlock,
    PromptsBlock,
    ResourcesBlock,
    SamplingBlock,
    Test,
    ToolBlock,
)

_EXPRESSION = re.compile(r"\{[^{}]*\}")
_KINDS_OF_TOOL_BLOCKS = (ToolBlock, SamplingBlock, LoggingBlock, NotificationsBlock)
_LONGEST_URI = 4_000
_UNKNOWN_KEPT = 100


def coverage_of(
    offer: Offer,
    tests: Iterable[Test],
    *,
    server: str,
    is_skipped: Callable[[Test], bool],
    kinds: Collection[CoveredKind] = KINDS,
    threshold: float | None = None,
) -> CoverageReport:
    """Count for each item the tests that assert on it."""
    offered = {kind: dict.fromkeys(_names(offer, kind)) for kind in KINDS}
    templates = [(name, _EXPRESSION.split(name)) for name in offered["template"]]
    running: Counter[tuple[CoveredKind, str]] = Counter()
    skipped: Counter[tuple[CoveredKind, str]] = Counter()
    unknown: dict[tuple[CoveredKind, str], Unknown] = {}
    count = 0
    for test in tests:
        count += 1
        counted = skipped if is_skipped(test) else running
        for kind, name in set(_subjects(test, offered["resource"], templates)):
            if name in offered[kind]:
                counted[kind, name] += 1
            elif kind in kinds and len(unknown) < _UNKNOWN_KEPT:
                unknown.setdefault((kind, name), Unknown(kind, name, str(test.place)))
    items = tuple(
        CoveredItem(kind, name, running[kind, name], skipped[kind, name])
        for kind in KINDS
        if kind in kinds
        for name in offered[kind]
    )
    return CoverageReport(
        server=server,
        items=items,
        unknown=tuple(unknown.values()),
        tests=count,
        threshold=threshold,
        problems=tuple(f"{name}: {show(why, 200)}" for name, why in offer.problems.items()),
        tool=f"mcptest {__version__}",
    )


def _names(offer: Offer, kind: CoveredKind) -> Iterator[str]:
    lists: dict[CoveredKind, tuple[tuple[Any, ...], str]] = {
        "tool": (offer.tools, "name"),
        "prompt": (offer.prompts, "name"),
        "resource": (offer.resources, "uri"),
        "template": (offer.templates, "uriTemplate"),
    }
    items, member = lists[kind]
    for item in items:
        name = item.get(member) if isinstance(item, dict) else None
        if isinstance(name, str):
            yield name


def _subjects(
    test: Test, resources: Collection[str], templates: list[tuple[str, list[str]]]
) -> Iterator[tuple[CoveredKind, str]]:
    """What one test asserts on."""
    block = test.block
    if isinstance(block, _KINDS_OF_TOOL_BLOCKS):
        if block.tool:
            yield "tool", block.tool
    elif isinstance(block, PromptsBlock):
        if block.get is not None:
            yield "prompt", block.get
    elif isinstance(block, ResourcesBlock):
        for uri in {block.read, block.subscribe} - {None}:
            yield _resource_of(str(uri), resources, templates)
    elif isinstance(block, CompletionBlock):
        name = block.ref.get("name", "")
        if block.ref.get("type") == "ref/prompt":
            yield "prompt", name
        else:
            known = any(name == template for template, _ in templates)
            yield ("template", name) if known else _resource_of(name, resources, templates)


def _resource_of(
    uri: str, resources: Collection[str], templates: list[tuple[str, list[str]]]
) -> tuple[CoveredKind, str]:
    if uri not in resources and len(uri) <= _LONGEST_URI:
        for template, parts in templates:
            if _fits(uri, parts):
                return "template", template
    return "resource", uri


def _fits(uri: str, parts: list[str]) -> bool:
    """Whether the URI is the parts with something between each. Linear, whatever a server wrote."""
    first, *middle, last = parts if len(parts) > 1 else (*parts, "")
    if len(parts) == 1:
        return uri == first
    if not uri.startswith(first):
        return False
    place = len(first)
    for part in middle:
        found = uri.find(part, place + 1)
        if found < 0:
            return False
        place = found + len(part)
    return uri.endswith(last) and len(uri) - len(last) > place
