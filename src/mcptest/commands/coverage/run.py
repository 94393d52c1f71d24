"""What `mcptest coverage` does: hold a suite against what a live server offers.

What counts is what a test asserts on. A call in a setup step prepares a test, and a test that is
skipped notices nothing.
"""

from __future__ import annotations

import argparse
import os
import re
from collections import Counter
from collections.abc import Collection, Iterator

from mcptest import __version__
from mcptest.commands.options import check_share, suite_paths
from mcptest.commands.reporting import conclude
from mcptest.commands.server_options import close_and_say_notes, exploring
from mcptest.core.errors import UsageError
from mcptest.core.safe_text import show
from mcptest.report.coverage import (
    CoverageKinds,
    CoverageReport,
    CoveredItem,
    KindCoverage,
    Unknown,
)
from mcptest.report.head import ITEM_KINDS, ItemKind
from mcptest.session.pages import ITEM_NAMES, Offer
from mcptest.suite.load import load_suites
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


def run_coverage(arguments: argparse.Namespace) -> int:
    kinds = _kinds(arguments.of)
    check_share(arguments.fail_under)
    paths = suite_paths([*arguments.paths, *arguments.suite])
    # A fixture of the suite's own is not needed to read what its tests assert on.
    loaded = load_suites(paths, fixture=arguments.fixture or os.devnull, server_given=True)
    with exploring(arguments) as explored:
        subject = explored.subject
        offer, named = subject.offer(), subject.client.server.info.get("name")
        server = str(named or subject.masker.text(subject.target.label))
        report = coverage_of(
            offer, loaded.suite.tests, server=server, kinds=kinds, threshold=arguments.fail_under
        )
        captured = close_and_say_notes(explored)
    nothing = "the server has nothing to cover"
    return max(captured, conclude(arguments, report, nothing=nothing))


def _kinds(words: str) -> tuple[ItemKind, ...]:
    kinds = {f"{kind}s": kind for kind in ITEM_KINDS}
    wanted = [word.strip() for word in words.split(",") if word.strip()]
    unknown = [word for word in wanted if word not in kinds]
    if unknown or not wanted:
        named = unknown[0] if unknown else ""
        raise UsageError(f"--of takes {', '.join(kinds)}, not {named!r}")
    return tuple(kinds[word] for word in wanted)


_EXPRESSION = re.compile(r"\{[^{}]*\}")
_KINDS_OF_TOOL_BLOCKS = (ToolBlock, SamplingBlock, LoggingBlock, NotificationsBlock)
_LONGEST_URI = 4_000
_UNKNOWN_KEPT = 100


def coverage_of(
    offer: Offer,
    tests: Collection[Test],
    *,
    server: str,
    kinds: Collection[ItemKind] = ITEM_KINDS,
    threshold: float | None = None,
) -> CoverageReport:
    """Count for each item the tests that assert on it."""
    members = zip(ITEM_KINDS, ITEM_NAMES.values(), strict=True)
    offered = {kind: dict.fromkeys(offer.names(f"{kind}s", member)) for kind, member in members}
    templates = [(name, _EXPRESSION.split(name)) for name in offered["template"]]
    running: Counter[tuple[ItemKind, str]] = Counter()
    skipped: Counter[tuple[ItemKind, str]] = Counter()
    unknown: dict[tuple[ItemKind, str], Unknown] = {}
    for test in tests:
        wanted = test.skip_unless_env
        is_skipped = test.skip or (bool(wanted) and not os.environ.get(wanted))
        counted = skipped if is_skipped else running
        for kind, name in set(_subjects(test, offered["resource"], templates)):
            if name in offered[kind]:
                counted[kind, name] += 1
            elif kind in kinds and len(unknown) < _UNKNOWN_KEPT:
                unknown.setdefault((kind, name), Unknown(kind, name, str(test.place)))
    found = {}
    for kind in kinds:
        counts = ((one, running[kind, one], skipped[kind, one]) for one in offered[kind])
        found[f"{kind}s"] = KindCoverage(items=tuple(CoveredItem(*one) for one in counts))
    return CoverageReport(
        server=server,
        kinds=CoverageKinds(**found),
        unknown=tuple(unknown.values()),
        tests=len(tests),
        threshold=threshold,
        problems=tuple(f"{name}: {show(why, 200)}" for name, why in offer.problems.items()),
        tool=f"mcptest {__version__}",
    )


def _subjects(
    test: Test, resources: Collection[str], templates: list[tuple[str, list[str]]]
) -> Iterator[tuple[ItemKind, str]]:
    """What one test asserts on."""
    block = test.block
    if isinstance(block, _KINDS_OF_TOOL_BLOCKS):
        if block.tool:
            yield "tool", block.tool
    elif isinstance(block, PromptsBlock):
        if block.get is not None:
            yield "prompt", block.get.name
    elif isinstance(block, ResourcesBlock):
        for uri in {block.read, block.subscribe} - {None}:
            yield _resource_of(str(uri), resources, templates)
    elif isinstance(block, CompletionBlock):
        name = block.ref.name
        if block.ref.type == "ref/prompt":
            yield "prompt", name
        else:
            known = any(name == template for template, _ in templates)
            yield ("template", name) if known else _resource_of(name, resources, templates)


def _resource_of(
    uri: str, resources: Collection[str], templates: list[tuple[str, list[str]]]
) -> tuple[ItemKind, str]:
    if uri not in resources and len(uri) <= _LONGEST_URI:
        for template, parts in templates:
            if _fits(uri, parts):
                return "template", template
    return "resource", uri


def _fits(uri: str, parts: list[str]) -> bool:
    """Whether the URI is the parts with something between each. Linear, whatever a server wrote."""
    if len(parts) == 1:
        return uri == parts[0]
    first, *middle, last = parts
    if not uri.startswith(first):
        return False
    place = len(first)
    for part in middle:
        found = uri.find(part, place + 1)
        if found < 0:
            return False
        place = found + len(part)
    return uri.endswith(last) and len(uri) - len(last) > place
