"""The linter on what published servers list: few findings, and each of them worth acting on.

`tests/data/published_tools.jsonl.gz` holds the answers to tools/list of servers from npm and PyPI,
one server on each line, with the version of its package.
"""

from __future__ import annotations

import functools
import gzip
import json
from collections import Counter
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from mcptest.rules.lint.finding import (
    MCP_ASSERT_PROFILE,
    PROFILES,
    LintFinding,
    LintLimits,
    LintSeverity,
)
from mcptest.rules.lint.linter import chosen_rules, lint
from mcptest.rules.lint.surface import surface_of

LISTS = Path(__file__).parents[1] / "data" / "published_tools.jsonl.gz"


@functools.cache
def servers() -> tuple[dict[str, Any], ...]:
    return tuple(map(json.loads, gzip.decompress(LISTS.read_bytes()).splitlines()))


@functools.cache
def findings(profile: str) -> dict[str, list[LintFinding]]:
    """By package."""
    rules = chosen_rules(profile=profile)
    return {
        one["package"]: lint(surface_of(one["tools"]), rules, LintLimits()) for one in servers()
    }


def serious(found: list[LintFinding]) -> list[LintFinding]:
    return [one for one in found if one.severity is not LintSeverity.NOTE]


def tools_of(package: str) -> list[str]:
    return [tool["name"] for one in servers() if one["package"] == package for tool in one["tools"]]


def per_tool(package: str, profile: str) -> list[int]:
    counts = Counter(one.item for one in serious(findings(profile)[package]))
    return [counts[name] for name in tools_of(package)]


PACKAGES = [one["package"] for one in servers()]


def test_there_are_at_least_thirty_servers_with_five_hundred_tools() -> None:
    assert len(PACKAGES) == len(set(PACKAGES)) >= 30
    assert sum(len(one["tools"]) for one in servers()) >= 500


def test_a_published_tool_has_at_most_one_finding_in_the_median() -> None:
    counts = [count for package in PACKAGES for count in per_tool(package, PROFILES[0])]
    assert median(counts) <= 1
    assert sum(counts) / len(counts) < 1


def test_no_published_server_has_more_than_two_findings_for_each_tool_in_the_median() -> None:
    medians = {package: median(per_tool(package, PROFILES[0])) for package in PACKAGES}
    assert max(medians.values()) <= 2, medians


def test_no_finding_that_every_fifth_published_tool_has_is_more_than_a_note() -> None:
    total = sum(len(one["tools"]) for one in servers())
    having = Counter(
        code
        for found in findings(PROFILES[0]).values()
        for code, _ in {(one.code, one.item) for one in serious(found)}
    )
    assert {code: count for code, count in having.items() if count * 5 > total} == {}


def test_no_published_tool_is_said_to_be_unusable() -> None:
    """All of these servers are in use: an error would have to be shown to be true, by hand."""
    errors = [
        (package, one.item, one.code)
        for package, found in findings(PROFILES[0]).items()
        for one in found
        if one.severity is LintSeverity.ERROR
    ]
    assert errors == []


@pytest.mark.parametrize("code", ["W103", "E105", "W116", "W109", "W110"])
def test_what_maintainers_dismiss_is_a_note_but_in_the_profile_of_mcp_assert(code: str) -> None:
    found = [one for each in findings(PROFILES[0]).values() for one in each if one.code == code]
    theirs = [
        one for each in findings(MCP_ASSERT_PROFILE).values() for one in each if one.code == code
    ]
    assert found
    assert {one.severity for one in found} == {LintSeverity.NOTE}
    assert [(one.item, one.message) for one in theirs] == [(one.item, one.message) for one in found]
    assert {one.severity.value for one in theirs} == {"error" if code[0] == "E" else "warning"}


def test_the_profile_of_mcp_assert_has_its_codes_only_and_no_notes() -> None:
    found = [one for each in findings(MCP_ASSERT_PROFILE).values() for one in each]
    assert {one.code[0] for one in found} == {"E", "W"}
    assert LintSeverity.NOTE not in {one.severity for one in found}
