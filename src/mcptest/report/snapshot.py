"""Snapshots as JSON: the array that `run --json` prints, with the outcome and the golden file."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from mcptest.core.results import Count, Status, TestResult
from mcptest.core.safe_text import show
from mcptest.report import terminal
from mcptest.report.codec import as_json
from mcptest.report.evidence import BRIEF, FULL, first_line, proof_lines, safe_lines
from mcptest.report.run_results import note_lines
from mcptest.report.terminal import Style, counted
from mcptest.suite.golden import KeptSnapshot, SnapshotOutcome, SnapshotReport


class SnapshotResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One test with its golden file."""

    name: str
    status: Status
    outcome: SnapshotOutcome
    golden: str = ""
    detail: str = ""
    note: str = ""
    file: str = ""
    line: Count = 0
    duration_ms: Count
    trial: Count


def snapshot_json(report: SnapshotReport) -> bytes:
    same = ("name", "status", "detail", "note", "file", "line", "duration_ms", "trial")
    return as_json(
        [
            SnapshotResult(
                outcome=kept.outcome,
                golden=kept.golden,
                **{name: getattr(result, name) for name in same},
            )
            for result, kept in zip(report.run.results, report.kept, strict=True)
        ]
    )


# -- Snapshots for a person ----------------------------------------------------------------------

_NAME = 300
_WORD = 9
_NAME_COLUMN = 50
_PROOF = 10
_DIFF_SHOWN = 40
_OF_DIFFS = ("changed", "new")
_COLOURS = {
    SnapshotOutcome.MATCHED: "green",
    SnapshotOutcome.CHANGED: "red",
    SnapshotOutcome.NEW: "yellow",
    SnapshotOutcome.MISSING: "yellow",
    SnapshotOutcome.CREATED: "green",
    SnapshotOutcome.UPDATED: "cyan",
    SnapshotOutcome.UNCHANGED: "green",
    SnapshotOutcome.FAILED: "red",
    SnapshotOutcome.SKIPPED: "dim",
}


def snapshot_text(report: SnapshotReport, style: Style) -> str:
    lines = []
    for result, kept in zip(report.run.results, report.kept, strict=True):
        lines += [_line(result, kept, style), *_below(result, kept, style)]
    lines += [""] if report.kept else []
    lines += note_lines(report.run, style)
    if report.run.interrupted:
        told = "interrupted: only finished tests are shown"
        lines.append(style.paint(told, "yellow"))
    lines.append(snapshot_summary(report, style))
    # How to accept what is new or changed, where there is something to accept.
    outcomes = (SnapshotOutcome.CHANGED, SnapshotOutcome.NEW)
    words = [one.value for one in outcomes if report.count(one)]
    if words:
        lines.append(f"to accept {' and '.join(words)} snapshots, run this again with --update")
    return "".join(f"{line}\n" for line in lines)


def _line(result: TestResult, kept: KeptSnapshot, style: Style) -> str:
    word = style.paint(f"{kept.outcome.value.upper():<{_WORD}}", _COLOURS[kept.outcome])
    name = show(result.name, _NAME)
    if kept.outcome is SnapshotOutcome.MISSING:
        return f"{word}  {name}"
    took = style.paint(f"{terminal.duration(result.duration_ms):>8}", "dim")
    return f"{word}  {terminal.pad(name, _NAME_COLUMN)}{took}"


def _below(result: TestResult, kept: KeptSnapshot, style: Style) -> Iterator[str]:
    margin = " " * (_WORD + 2)
    if result.status is Status.FAIL:
        bounds = FULL if style.verbose else BRIEF
        length = bounds.lines if result.kind not in _OF_DIFFS else _DIFF_SHOWN
        length = max(length, FULL.lines * 3) if style.verbose else length
        for line in safe_lines(result.detail, length, bounds.characters):
            yield margin + _painted(line, result.kind, style)
        pairs = list(proof_lines(result, bounds))
        if result.kind in _OF_DIFFS:  # the diff is the proof; the wire is for the curious
            pairs = [pair for pair in pairs if style.verbose or pair[0] in {"where", "repeat"}]
            pairs.insert(1, ("golden", show(kept.golden, 500)))
        for label, text in pairs:
            yield margin + style.paint(f"{label + ':':<{_PROOF}}", "dim") + text
    elif result.status is Status.SKIP and result.detail:
        yield margin + style.paint(first_line(result.detail, _NAME), "dim")
    elif kept.golden and kept.outcome in (SnapshotOutcome.CREATED, SnapshotOutcome.UPDATED):
        yield margin + style.paint(show(kept.golden, 500), "dim")
    if result.note:
        yield margin + style.paint(f"note: {first_line(result.note, _NAME)}", "yellow")


def _painted(line: str, kind: str, style: Style) -> str:
    if kind not in _OF_DIFFS:
        return style.paint(line, "red")
    colour = {"-": "red", "+": "green", "@": "cyan"}.get(line[:1])
    return style.paint(line, colour) if colour else line


def snapshot_summary(report: SnapshotReport, style: Style) -> str:
    """`3 snapshots: 1 matched, 1 changed, 1 new in 1.2s`"""
    counts = [
        style.paint(f"{count} {outcome.value}", _COLOURS[outcome])
        for outcome in SnapshotOutcome
        if (count := report.count(outcome))
    ]
    took = terminal.duration(report.run.duration_ms)
    return f"{counted(len(report.kept), 'snapshot')}: {', '.join(counts)} in {took}"


def first_answers_in_words(first: SnapshotReport, settled: SnapshotReport) -> Iterator[str]:
    """What `init` says of the golden files that it wrote, and of what it saw change."""
    created = first.count(SnapshotOutcome.CREATED)
    if created:
        yield f"saved {counted(created, 'response')} as golden files"
    for result, kept in zip(first.run.results, first.kept, strict=True):
        if kept.outcome is SnapshotOutcome.FAILED:
            yield f"  no golden file for {show(result.name, 200)}: {first_line(result.detail)}"
    for kept in settled.kept:
        if kept.outcome is SnapshotOutcome.UPDATED:
            yield f"  {show(kept.golden, 500)}: values that differ between calls are <volatile>"
