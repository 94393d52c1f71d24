"""Writing the reports that were asked for: one path that is bad costs one report."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from mcptest.model.errors import UsageError
from mcptest.model.results import RunReport
from mcptest.report import badge, junit, markdown
from mcptest.report.baseline import (
    Baseline,
    baseline_of,
    compare,
    notes_of,
    read_baseline,
    write_baseline,
)
from mcptest.report.results_json import run_json
from mcptest.transport.files import replace_file

RENDERERS: Mapping[str, Callable[[RunReport], bytes]] = {
    "json_file": run_json,
    "junit": junit.render,
    "markdown": lambda report: markdown.render(report).encode(),
    "badge": badge.render,
}


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which files were asked for, by the name of their option."""

    files: Mapping[str, Path] = field(default_factory=dict)
    baseline: Path | None = None
    save_baseline: Path | None = None
    partial: bool = False
    """Only a part of the tests was run: what is missing is not stale."""


def stored_baseline(wanted: Wanted) -> Baseline | None:
    """The baseline to compare with. UsageError when it can't be read: nothing was run yet."""
    if wanted.baseline is None:
        return None
    try:
        data = wanted.baseline.read_bytes()
    except OSError as error:
        raise UsageError(f"can't read the baseline {wanted.baseline}: {error.strerror}") from None
    return read_baseline(data, str(wanted.baseline))


def with_regressions(report: RunReport, stored: Baseline | None, wanted: Wanted) -> RunReport:
    if stored is None:
        return report
    found = compare(report, stored, partial=wanted.partial)
    return msgspec.structs.replace(
        report, regressions=tuple(found.regressions), notes=(*report.notes, *notes_of(found))
    )


def write_reports(report: RunReport, stored: Baseline | None, wanted: Wanted) -> list[str]:
    """Write every file; gives a sentence for each that could not be written."""
    failures: list[str] = []
    for name, path in wanted.files.items():
        _write(path, RENDERERS[name](report), failures)
    if wanted.save_baseline is not None:
        previous = stored if wanted.partial or report.interrupted else None
        if previous is None and (wanted.partial or report.interrupted):
            previous = _earlier(wanted.save_baseline)
        _write(wanted.save_baseline, write_baseline(baseline_of(report, previous)), failures)
    return failures


def _earlier(path: Path) -> Baseline | None:
    """What is there already: tests that were not run now are not forgotten."""
    try:
        return read_baseline(path.read_bytes(), str(path)) if path.is_file() else None
    except (OSError, UsageError):
        return None


def _write(path: Path, content: bytes, failures: list[str]) -> None:
    try:
        replace_file(path, content)
    except (UsageError, OSError) as error:
        failures.append(f"report not written: {error}")
