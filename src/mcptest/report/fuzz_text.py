"""A fuzz run for a terminal: a line for each tool, each failure with its proof, what to do next."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from mcptest.model.audit import ONLY_AS_TASK
from mcptest.model.fuzz import FuzzedTool, FuzzFailure, FuzzReport, Verdict
from mcptest.model.message import ABSENT
from mcptest.model.show import show
from mcptest.report import columns
from mcptest.report.explored_text import closing_lines, heading, why_lines
from mcptest.report.terminal import Style

_NAME = 60
_LABELS = 5
WORDS = {
    Verdict.CRASH: "CRASH",
    Verdict.HANG: "HANG",
    Verdict.PROTOCOL: "PROTO",
    Verdict.LEAK: "LEAK",
}
MEANINGS = {
    Verdict.CRASH: ("crash", "crashes"),
    Verdict.HANG: ("hang", "hangs"),
    Verdict.PROTOCOL: ("no answer", "no answers"),
    Verdict.LEAK: ("leak", "leaks"),
}


def fuzz_lines(report: FuzzReport, style: Style, *, verbose: bool = False) -> Iterator[str]:
    """The whole report, line by line."""
    yield style.paint(heading(report), "bold")
    yield from why_lines(report, style)
    yield f"seed {report.seed}, {report.runs_per_tool} inputs for each tool"
    yield ""
    width = min(_NAME, max((columns.cells(show(t.name, 200)) for t in report.tools), default=0))
    for tool in report.tools:
        yield _row(tool, width, style)
        if tool.unchecked:
            yield f"      {style.cross} {show(tool.unchecked, 300)}"
        for note in tool.notes:
            yield f"      {style.warning} {show(note, 300)}"
        if verbose and tool.categories:
            shown = ", ".join(f"{count} {name}" for name, count in tool.categories.items())
            yield style.paint(f"      {shown}", "dim")
        for failure in tool.failures:
            yield from failure_lines(failure, style)
    yield ""
    if report.problem:
        yield f"{style.cross} tools/list could not be read: {show(report.problem, 300)}"
    yield from closing_lines(report, summary_in_words(report), next_steps(report), style)


def _row(tool: FuzzedTool, width: int, style: Style) -> str:
    name = columns.pad(columns.cut(show(tool.name, 200), width), width)
    if tool.skipped:
        return f"  {style.dash} {name}  skipped: {tool.skipped}"
    failed = tool.failures or tool.unchecked
    sign = style.cross if failed else style.tick if tool.runs else style.warning
    spent = columns.duration(tool.duration_ms)
    counts = ", ".join(_counts(tool.failures))
    return f"  {sign} {name}  {tool.passed}/{tool.runs} passed  {spent:>6}  {counts}".rstrip()


def _counts(failures: tuple[FuzzFailure, ...]) -> Iterator[str]:
    for verdict, (one, many) in MEANINGS.items():
        count = sum(each.count for each in failures if each.verdict is verdict)
        if count:
            yield f"{count} {one if count == 1 else many}"


def failure_lines(failure: FuzzFailure, style: Style) -> Iterator[str]:
    margin = " " * 6
    word = style.paint(WORDS[failure.verdict], "red")
    yield f"{margin}{word} {show(failure.label, 160)}: {show(failure.detail, 300)}"
    inner = margin + "  "
    facts = {
        "input": arguments_in_words(failure.minimal),
        "schema": schema_in_words(failure),
        "received": failure.received or "(nothing)",
        "also": _others(failure),
        "again": failure.repeat,
    }
    for label, text in facts.items():
        if text:
            yield style.paint(f"{inner}{label:<9}{show(text, 2_000)}", "dim")
    for line in failure.stderr[-3:]:
        yield style.paint(f"{inner}{'stderr':<9}{show(line, 300)}", "dim")
    if not failure.again:
        yield f"{inner}{style.warning} it did not happen again when it was sent alone"


def arguments_in_words(arguments: Any) -> str:
    if arguments is ABSENT:
        return "(no arguments)"
    return show(json.dumps(arguments, ensure_ascii=False), 200)


def schema_in_words(failure: FuzzFailure) -> str:
    if failure.valid is None:
        return ""
    if failure.valid:
        return "valid by the tool's own schema"
    return f"not valid: {show(failure.misfit, 160)}"


def _others(failure: FuzzFailure) -> str:
    if not failure.others:
        return ""
    shown = "; ".join(show(label, 80) for label in failure.others[:_LABELS])
    more = len(failure.others) - _LABELS
    return f"{shown}; and {more} more" if more > 0 else shown


def summary_in_words(report: FuzzReport) -> str:
    tested = report.tested
    if not tested:
        return f"nothing was fuzzed: {len(report.tools)} tools, all skipped"
    early = "interrupted; " if report.interrupted else ""
    tools = f"{len(tested)} tool{'s' * (len(tested) != 1)}"
    parts = [f"{report.passed}/{report.runs} inputs passed", *_counts(report.failures)]
    unchecked = sum(bool(tool.unchecked) for tool in tested)
    if unchecked:
        parts.append(f"{unchecked} with a schema that can't be checked")
    if report.skipped:
        parts.append(f"{len(report.skipped)} skipped")
    if report.unreached:
        parts.append(f"{report.unreached} not reached")
    if report.restarts:
        parts.append(f"{report.restarts} restart{'s' * (report.restarts != 1)}")
    return f"{early}{tools}, seed {report.seed}: {', '.join(parts)}"


def next_steps(report: FuzzReport) -> list[str]:
    steps = []
    found = {failure.verdict for failure in report.failures}
    if Verdict.CRASH in found:
        steps.append(
            "Crash: check the arguments before they are used, and answer a result with "
            "isError: true and a sentence that a model can act on."
        )
    if Verdict.HANG in found:
        steps.append("Hang: bound what the tool does; --timeout gives it longer.")
    if Verdict.PROTOCOL in found:
        steps.append("No answer: what the server wrote is no message of the protocol.")
    if Verdict.LEAK in found:
        steps.append("Leak: report what went wrong in words, without the insides of the server.")
    if found:
        steps.append("--output DIR saves each failure as a test that fails until it is mended.")
    unsafe = [tool for tool in report.skipped if tool.skipped != ONLY_AS_TASK]
    if unsafe:
        steps.append(
            f"Skipped: what may write ({len(unsafe)}). --include-writes fuzzes it too; with "
            "--docker IMAGE, or on a copy with --fixture DIR, that is safe."
        )
    return steps
