"""TAP version 13, the newest that the usual harnesses read, with the proof in YAML blocks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import groupby
from operator import itemgetter

import msgspec

from mcptest.core.results import RunReport, Status, TestResult
from mcptest.core.safe_text import show
from mcptest.report.evidence import BRIEF, detail_lines, first_line, proof_lines

NAME = 300
_NOT_IN_YAML = re.compile("[\ufffe\uffff]")
_SPECIAL = re.compile(r"\\|#(?=\s*(skip|todo))?", re.IGNORECASE)


def render(report: RunReport, excused: Mapping[str, str] = {}) -> bytes:
    """`excused`: failures that are expected, by the name of their result, with the reason."""
    text = "".join(f"{line}\n" for line in _lines(report, excused))
    return text.encode("utf-8", "backslashreplace")


def _lines(report: RunReport, excused: Mapping[str, str]) -> Iterator[str]:
    yield "TAP version 13"
    yield f"1..{len(report.results)}" if report.results else "1..0 # SKIP no test was run"
    for number, result in enumerate(report.results, 1):
        yield from _test(number, result, report, excused)
    yield from (f"# note: {show(note, 500)}" for note in report.notes[:50])
    for one in report.regressions[:50]:
        yield f"# regression: {show(one.name, NAME)}: was {show(one.was)}, now {show(one.now)}"
    if report.interrupted:
        yield "Bail out! interrupted"


def _test(
    number: int, result: TestResult, report: RunReport, excused: Mapping[str, str]
) -> Iterator[str]:
    failed = result.status is Status.FAIL
    name = show(result.name, NAME).strip() or "(no name)"
    name += f" [{show(result.language, 60)}]" if result.language else ""
    name += f" (trial {result.trial})" if report.trials > 1 else ""
    line = f"{'not ok' if failed else 'ok'} {number} - {_described(name)}"
    if failed and result.name in excused:
        line += f" # TODO {_described(first_line(excused[result.name]))}"
    elif result.status is Status.SKIP:
        line += f" # SKIP {_described(first_line(result.detail))}".rstrip()
    yield line
    if failed:
        message = "\n".join(detail_lines(result, BRIEF, all_failures=True))
        yield from ("  ---", f"  message: {_scalar(message)}", "  severity: fail")
        yield f"  kind: {_scalar(show(result.kind, 50) or 'check')}"
        yield f"  duration_ms: {max(0, result.duration_ms)}"
        for label, pairs in groupby(proof_lines(result, BRIEF), key=itemgetter(0)):
            text = "\n".join(line for _, line in pairs)
            yield f"  {label}: {_scalar(text)}"
        yield "  ..."


def _described(text: str) -> str:
    """A `#` would begin a directive. Not every harness knows the escape, and to one of these a test
    that fails would be skipped: so no directive's word follows a `#` either."""
    return _SPECIAL.sub(lambda found: f"\\{found[0]}:" if found[1] else f"\\{found[0]}", text)


def _scalar(text: str) -> str:
    """A string of JSON is one of YAML, except for the two characters that YAML knows no way for."""
    quoted = msgspec.json.encode(text.encode("utf-8", "backslashreplace").decode()).decode()
    return _NOT_IN_YAML.sub(lambda match: f"\\u{ord(match.group()):04x}", quoted)
