"""What is wrong, as readers of findings want it: a rule, a place, a message. SARIF is made of it.

A failing test is one problem, whatever the number of its trials.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal, TypeAlias
from urllib.parse import quote

import msgspec

from mcptest.core.errors import UsageError
from mcptest.core.results import Proof, RunReport, TestResult
from mcptest.core.safe_text import show
from mcptest.report.evidence import FULL, Bounds, detail_lines
from mcptest.report.reliability import failed_tests, hidden_regressions

Level: TypeAlias = Literal["error", "warning", "note"]
NAME = 300
_COMMAND = 4_000
_BOUNDS: Bounds = msgspec.structs.replace(FULL, lines=20, failures=20)
_OF_A_LANE = re.compile(r"(?:compliance|invariants)(?: \S{1,20})? ([A-Z][A-Z-]{1,20}-\d{1,5})")
_CHECK = re.compile(r"[\w.-]{1,60}", re.ASCII)
_KINDS: Mapping[str, str] = {
    "call": "the server answers the call",
    "setup": "the setup steps succeed",
    "start": "the server starts",
    "timeout": "the response arrives in time",
    "crash": "the server stays alive",
    "protocol": "the server follows the protocol",
    "fixture": "the fixture is usable",
}
_CHECKS: Mapping[str, str] = {
    "audit": "tools, prompts and resources work",
    "fuzz": "the tool handles invalid input",
    "rule": "the server follows the rule",
}
_GRAVE = frozenset({"crash", "protocol", "start", "timeout"})


class ReportedRule(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is asked for. `title` says what should be, as a sentence without its full stop."""

    id: str
    title: str
    text: str = ""
    help: str = ""
    """What to do about it."""
    url: str = ""
    level: Level = "error"
    tags: tuple[str, ...] = ()


class ReportedProblem(msgspec.Struct, frozen=True, omit_defaults=True):
    """One violation of one rule. All texts are safe to show, except `file`."""

    rule: ReportedRule
    message: str
    level: Level = "error"
    subject: str = ""
    """What it is about: a test, a tool, a server in a revision."""
    file: str = ""
    line: int = 0
    page: str = ""
    """Where the rule is written down, for a problem that is in no file."""
    excused: str = ""
    """Why it does not count; empty if it does."""
    grave: bool = False
    facts: Mapping[str, str] = {}
    """More about it: the request, the response, the command that repeats it."""


class Problems(msgspec.Struct, frozen=True):
    """Everything that one command found, with the run that it was found in."""

    command: str
    run: RunReport
    found: tuple[ReportedProblem, ...]


def facts_of(**facts: str) -> dict[str, str]:
    """Those that are not empty, safe to show."""
    return {
        name: show(text, _COMMAND if name == "repeat" else FULL.wire)
        for name, text in facts.items()
        if text
    }


def problems_in_run(report: RunReport) -> Iterator[ReportedProblem]:
    for test in failed_tests(report):
        often = f" (in {test.failed} of {test.trials} trials)" if test.trials > 1 else ""
        yield _problem(test.first, show(test.title, NAME), often)
    for regression in hidden_regressions(report):
        rule = ReportedRule("test/regression", "tests that passed before still pass")
        said = f"was {show(regression.was, 20)}, now {show(regression.now, 20)}"
        yield ReportedProblem(rule, said, subject=show(regression.name, NAME))


def _problem(result: TestResult, title: str, often: str) -> ReportedProblem:
    rule, proof = _rule_of(result), result.proof or Proof()
    lines = detail_lines(result, _BOUNDS, all_failures=True)
    return ReportedProblem(
        rule,
        f"{title}{often}: " + "\n".join(lines),
        subject=title,
        file=result.file,
        line=max(0, result.line),
        page=rule.url,
        grave=result.kind in _GRAVE,
        facts=facts_of(
            repeat=proof.repeat,
            request=proof.request,
            response=proof.response,
            capture=proof.capture,
        ),
    )


def _rule_of(result: TestResult) -> ReportedRule:
    lane = _OF_A_LANE.fullmatch(result.name)
    if lane is not None:
        known = _registered(lane[1])
        if known is not None:
            return known
    if result.kind in _KINDS:
        return ReportedRule(f"test/{result.kind}", _KINDS[result.kind])
    check = result.failures[0].check if result.failures else ""
    if _CHECK.fullmatch(check):
        title = _CHECKS.get(check) or f"the response meets the expectation {check}"
        return ReportedRule(f"check/{check}", title)
    return ReportedRule("test/failure", "the test passes")


def _registered(name: str) -> ReportedRule | None:
    """From the registry of rules; None for one that only this run's own corpus has."""
    # Only reports of broken rules need every rule: a plain run does not import them.
    from mcptest.report.rules import find_any_rule
    from mcptest.rules.composition import CompositionRule

    try:
        rule = find_any_rule(name)
    except UsageError:
        return None
    if isinstance(rule, CompositionRule):
        return ReportedRule(rule.id, rule.title, rule.explanation)
    return ReportedRule(
        rule.id, rule.title, rule.explanation, url=rule.url(), tags=(show(rule.category, 60),)
    )


# -- Where a problem is, in the two ways in which readers want it --------------------------------

LONGEST = 1_000
_WEB_ADDRESS = re.compile(
    r"https?://[A-Za-z0-9.-]+(?::\d{1,5})?"
    r"(?:/(?:[\w.~!$&'()*+,;=:@/-]|%[0-9A-Fa-f]{2})*)?"
    r"(?:\?(?:[\w.~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2})*)?"
    r"(?:#(?:[\w.~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2})*)?",
    re.ASCII,
)


def web_address(text: str) -> str:
    """The text if it is one that anybody may follow, else nothing."""
    return text if len(text) <= LONGEST and _WEB_ADDRESS.fullmatch(text) else ""


def uri_of(problem: ReportedProblem) -> str:
    """The suite's file, or else the rule's page, or else a name that stands for the subject."""
    if not problem.file:
        return web_address(problem.page) or _named(problem)
    if not problem.file.startswith("/"):
        return _quoted(_path(problem.file)) or _named(problem)
    here = f"{Path.cwd()}/"
    below = _path(problem.file.removeprefix(here)) if problem.file.startswith(here) else ""
    return _quoted(below) or "file://" + _quoted(problem.file)


def path_of(problem: ReportedProblem) -> str:
    """Relative to the project, without a `./`."""
    path = problem.file
    if path.startswith("/"):
        path = os.path.relpath(path[:LONGEST].replace("\0", ""))
    return show(_path(path), LONGEST) or _named(problem)


def _path(path: str) -> str:
    cut = path[:LONGEST]
    while cut.startswith("./"):
        cut = cut[2:].lstrip("/")
    return cut


def _named(problem: ReportedProblem) -> str:
    """Readers want a path for everything. This one is no file's, and is the same in every run."""
    return f"mcp/{_quoted(problem.subject[:200] or problem.rule.id)}"


def _quoted(path: str) -> str:
    """As a path in a URI: also a colon, which would end the scheme, and text without a UTF-8."""
    return quote(path[:LONGEST], safe="/", errors="backslashreplace")
