"""JUnit XML, as Jenkins (also where it checks the schema) and GitLab read it.

The schema knows a `file` of a suite but none of a test, so each suite file is a testsuite, and
the line stands in the test's output.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import PurePath

from mcptest.core.results import RunReport, Status, TestResult
from mcptest.core.safe_text import show
from mcptest.report.evidence import FULL, detail_lines, first_line, proof_lines
from mcptest.report.reliability import reliability

NAME = 500
_DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>'
_SPECIAL = re.compile("[^\\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]|[&<>\"'\x7f-\x9f]")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&apos;", "\n": "&#10;"}


def render(report: RunReport) -> bytes:
    lines = [_DECLARATION, *_lines(report)]
    return ("\n".join(lines) + "\n").encode("utf-8")


def escape(text: str) -> str:
    """Any text at all as the content of an element or an attribute of XML 1.0."""
    return _SPECIAL.sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    character = match.group()
    if character in _ENTITIES:
        return _ENTITIES[character]
    visible = show(character, 12)
    return visible if visible != character else f"\\u{ord(character):04x}"


def _lines(report: RunReport) -> Iterator[str]:
    counts = f'tests="{len(report.results)}" failures="{report.failed}" errors="0"'
    yield f'<testsuites name="mcptest" {counts} time="{_seconds(report.duration_ms)}">'
    by_file: dict[str, list[TestResult]] = {}
    for result in report.results:
        by_file.setdefault(result.file, []).append(result)
    taken: Counter[tuple[str, str]] = Counter()
    for file, results in by_file.items():
        yield from _suite(file, results, report, taken)
    yield "</testsuites>"


def _suite(
    file: str, results: Sequence[TestResult], report: RunReport, taken: Counter[tuple[str, str]]
) -> Iterator[str]:
    statuses = Counter(result.status for result in results)
    attributes = {
        "name": show(file, NAME) or "mcptest",
        "tests": str(len(results)),
        "failures": str(statuses[Status.FAIL]),
        "errors": "0",
        "skipped": str(statuses[Status.SKIP]),
        "time": _seconds(sum(max(0, result.duration_ms) for result in results)),
    }
    if report.started:
        attributes["timestamp"] = show(report.started, 50)
    if file:
        attributes["file"] = show(file, NAME)
    yield f"  <testsuite{_attributes(attributes)}>"
    yield from _properties(results, report)
    for result in results:
        yield from _case(result, _unique(result, report, taken))
    yield "  </testsuite>"


def _properties(results: Sequence[TestResult], report: RunReport) -> Iterator[str]:
    properties = {"interrupted": "true"} if report.interrupted else {}
    if report.trials > 1:
        measured = reliability(report, results)
        total = len(measured.tests)
        properties["pass_at_k"] = f"{measured.capable}/{total}"
        properties["pass_up_k"] = f"{measured.reliable}/{total}"
    if properties:
        named = (f'      <property name="{k}" value="{v}"/>' for k, v in properties.items())
        yield from ("    <properties>", *named, "    </properties>")


def _unique(
    result: TestResult, report: RunReport, taken: Counter[tuple[str, str]]
) -> dict[str, str]:
    """Readers take the class name and the name together as the test, and keep one of each."""
    name = show(result.name, NAME) or "(no name)"
    if report.trials > 1:
        name += f" (trial {result.trial})"
    classname = result.language or PurePath(result.file).stem.replace(".", "_") or "mcptest"
    classname = show(classname, NAME)
    unique = name
    while taken[classname, unique]:
        taken[classname, name] += 1
        unique = f"{name} #{taken[classname, name]}"
    taken[classname, unique] += 1
    return {"name": unique, "classname": classname}


def _case(result: TestResult, naming: dict[str, str]) -> Iterator[str]:
    head = f"    <testcase{_attributes({**naming, 'time': _seconds(result.duration_ms)})}"
    body = [*_outcome(result)]
    # Proof of a failure, and what is worth knowing of any test.
    lines = [f"note: {first_line(result.note, NAME)}"] if result.note else []
    if result.status is Status.FAIL:
        lines += [f"{label}: {text}" for label, text in proof_lines(result, FULL)]
    body += [f"      <system-out>{_text(lines)}</system-out>"] if lines else []
    if not body:
        yield f"{head}/>"
        return
    yield from (f"{head}>", *body, "    </testcase>")


def _outcome(result: TestResult) -> Iterator[str]:
    if result.status is Status.SKIP:
        yield f"      <skipped{_attributes({'message': first_line(result.detail, NAME)})}/>"
    elif result.status is Status.FAIL:
        lines = detail_lines(result, FULL, all_failures=True)
        message = detail_lines(result, FULL)[0]
        attributes = {"message": message, "type": show(result.kind, 50) or "check"}
        yield f"      <failure{_attributes(attributes)}>{_text(lines)}</failure>"


def _text(lines: Sequence[str]) -> str:
    return "\n".join(map(escape, lines))


def _attributes(attributes: dict[str, str]) -> str:
    return "".join(f' {name}="{escape(value)}"' for name, value in attributes.items())


def _seconds(milliseconds: int) -> str:
    """A plain decimal number: some readers know no exponents."""
    whole, rest = divmod(max(0, milliseconds), 1_000)
    return f"{whole}.{rest:03d}"
