"""The code quality report of GitLab: an array of findings, each with a fingerprint of its own."""

from __future__ import annotations

from collections import Counter
from typing import Any

from mcptest.report.evidence import first_line
from mcptest.report.problem_places import path_of
from mcptest.report.problems import Problem, Problems
from mcptest.report.results_json import as_json
from mcptest.report.sarif import fingerprint

_SEVERITIES = {"error": "major", "warning": "minor", "note": "info"}
_DESCRIPTION = 1_000


def render(problems: Problems) -> bytes:
    """What is excused is left out: the format has no way to say so."""
    taken: Counter[str] = Counter()
    return as_json([_finding(one, taken) for one in problems.found if not one.excused])


def _finding(problem: Problem, taken: Counter[str]) -> dict[str, Any]:
    return {
        "description": first_line(problem.message, _DESCRIPTION) or problem.rule,
        "check_name": problem.rule,
        "fingerprint": fingerprint(problem, taken),
        "severity": "critical" if problem.grave else _SEVERITIES[problem.level],
        "location": {"path": path_of(problem), "lines": {"begin": max(1, problem.line)}},
    }
