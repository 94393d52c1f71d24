"""SARIF 2.1.0, as code scanning services read it. Only problems: a service shows each as an alert.

No text of a peer stands where Markdown is expected, and none can become a link.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from mcptest import __version__
from mcptest.core.safe_text import show
from mcptest.report.codec import as_json
from mcptest.report.evidence import first_line
from mcptest.report.problems import (
    Problems,
    ReportedProblem,
    ReportedRule,
    path_of,
    uri_of,
    web_address,
)

SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
RESULTS_KEPT = 25_000
"""More than that GitHub does not take of a run."""
_TEXT = 4_000
_NOTES = 50
_DESCRIPTION = 1_024
"""The longest description of a rule that GitHub takes."""
_TIME = re.compile(r"(\d{4}-[01]\d-[0-3]\dT[0-2]\d:[0-5]\d:[0-5]\d(?:\.\d{1,9})?)(?:Z|\+00:00)")
_VERSION = re.compile(r"mcptest (\d[\w.+-]{0,40})", re.ASCII)


def render(problems: Problems) -> bytes:
    return as_json({"$schema": SCHEMA, "version": "2.1.0", "runs": [_run(problems)]})


def _run(problems: Problems) -> dict[str, Any]:
    kept = problems.found[:RESULTS_KEPT]
    rules = {problem.rule.id: problem.rule for problem in reversed(kept)}
    used = dict.fromkeys(problem.rule.id for problem in kept)
    version = _VERSION.fullmatch(problems.run.tool)
    return {
        "tool": {
            "driver": {
                "name": "mcptest",
                "version": version[1] if version is not None else __version__,
                "rules": [_rule(rules[name]) for name in used],
            }
        },
        "automationDetails": {"id": f"mcptest/{problems.command}/"},
        "invocations": [_invocation(problems, len(kept))],
        "columnKind": "unicodeCodePoints",
        "results": list(_results(kept, list(used))),
    }


def _rule(rule: ReportedRule) -> dict[str, Any]:
    described: dict[str, Any] = {
        "id": rule.id,
        "shortDescription": {"text": _plain(first_line(rule.title, 300) or rule.id)},
        "fullDescription": {"text": _plain(rule.text or rule.title or rule.id, _DESCRIPTION)},
        "defaultConfiguration": {"level": rule.level},
        # GitHub wants one of every rule, and shows it beside the alert.
        "help": {"text": _plain(rule.help or rule.text or rule.title or rule.id)},
    }
    if web_address(rule.url):
        described["helpUri"] = rule.url
    if rule.tags:
        described["properties"] = {"tags": list(rule.tags)}
    return described


def _invocation(problems: Problems, kept: int) -> dict[str, Any]:
    notes = [show(note, 500) for note in problems.run.notes[:_NOTES]]
    if len(problems.found) > kept:
        notes.append(f"{len(problems.found) - kept} more problems are not listed")
    invocation: dict[str, Any] = {"executionSuccessful": not problems.run.interrupted}
    started = _TIME.fullmatch(problems.run.started)
    if started is not None:
        invocation["startTimeUtc"] = f"{started[1]}Z"
    if notes:
        invocation["toolExecutionNotifications"] = [
            {"level": "note", "message": {"text": _plain(note)}} for note in notes
        ]
    return invocation


def _results(kept: tuple[ReportedProblem, ...], used: list[str]) -> Iterator[dict[str, Any]]:
    places = {name: index for index, name in enumerate(used)}
    taken: Counter[str] = Counter()
    for problem in kept:
        location: dict[str, Any] = {
            "physicalLocation": {
                "artifactLocation": {"uri": uri_of(problem)},
                "region": {"startLine": max(1, problem.line)},  # services want one, also of a page
            }
        }
        if problem.subject:
            location["logicalLocations"] = [{"fullyQualifiedName": problem.subject}]
        result: dict[str, Any] = {
            "ruleId": problem.rule.id,
            "ruleIndex": places[problem.rule.id],
            "level": problem.level,
            "message": {"text": _plain(problem.message)},
            "locations": [location],
            "partialFingerprints": {"mcptest/v1": fingerprint(problem, taken)},
        }
        if problem.excused:
            suppression = {"kind": "external", "justification": _plain(problem.excused)}
            result["suppressions"] = [suppression]
        if problem.facts:
            result["properties"] = dict(problem.facts)
        yield result


def fingerprint(problem: ReportedProblem, taken: Counter[str]) -> str:
    """The same for the same problem in another run, wherever its line is then."""
    named = "\0".join((problem.rule.id, problem.file[:2_000], problem.subject))
    taken[named] += 1
    named += f"\0{taken[named]}" if taken[named] > 1 else ""
    return hashlib.sha256(named.encode("utf-8", "backslashreplace")).hexdigest()[:32]


def _plain(text: str, longest: int = _TEXT) -> str:
    """In a plain message of SARIF `[text](target)` is a link: with a space in it, it is none."""
    return text.replace("](", "] (")[:longest] or "(no text)"


# -- The code quality report of GitLab -----------------------------------------------------------

_SEVERITIES = {"error": "major", "warning": "minor", "note": "info"}
_QUALITY_DESCRIPTION = 1_000


def render_code_quality(problems: Problems) -> bytes:
    """What is excused is left out: the format has no way to say so."""
    taken: Counter[str] = Counter()
    return as_json([_finding(one, taken) for one in problems.found if not one.excused])


def _finding(problem: ReportedProblem, taken: Counter[str]) -> dict[str, Any]:
    return {
        "description": first_line(problem.message, _QUALITY_DESCRIPTION) or problem.rule.id,
        "check_name": problem.rule.id,
        "fingerprint": fingerprint(problem, taken),
        "severity": "critical" if problem.grave else _SEVERITIES[problem.level],
        "location": {"path": path_of(problem), "lines": {"begin": max(1, problem.line)}},
    }
