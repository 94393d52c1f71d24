"""Writing the reports that were asked for: one path that is bad costs one report."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from mcptest.model.errors import UsageError
from mcptest.model.results import RunReport
from mcptest.transport.files import replace_file

if TYPE_CHECKING:
    from mcptest.report.baseline import Baseline

FORMS = ("json_file", "junit", "markdown", "badge", "html", "sarif", "code_quality", "tap")
"""What `rendered` can write, by the names of the options."""


class Wanted(msgspec.Struct, frozen=True):
    """Which files were asked for, by the name of their option."""

    files: Mapping[str, Path] = {}
    baseline: Path | None = None
    save_baseline: Path | None = None
    partial: bool = False
    """Only a part of the tests was run: what is missing is not stale."""


def rendered(name: str, report: RunReport) -> bytes:
    """The content of one file. Most runs want none, so each form is imported when it is wanted."""
    if name == "junit":
        from mcptest.report import junit

        return junit.render(report)
    if name == "markdown":
        from mcptest.report import markdown

        return markdown.render(report).encode()
    if name == "badge":
        from mcptest.report import badge

        return badge.render(report)
    if name == "html":
        from mcptest.report.html.making import page_of_run
        from mcptest.report.stored import exit_code_of_run

        return page_of_run(report, exit_code_of_run(report))
    if name == "tap":
        from mcptest.report import tap

        return tap.render(report)
    if name in ("sarif", "code_quality"):
        return _as_problems(name, report)
    from mcptest.report.results_json import run_json

    return run_json(report)


def _as_problems(name: str, report: RunReport) -> bytes:
    from mcptest.report import code_quality, sarif
    from mcptest.report.problems import problems_of_run

    render = sarif.render if name == "sarif" else code_quality.render
    return render(problems_of_run(report))


def stored_baseline(wanted: Wanted) -> Baseline | None:
    """The baseline to compare with. UsageError when it can't be read: nothing was run yet."""
    if wanted.baseline is None:
        return None
    try:
        data = wanted.baseline.read_bytes()
    except OSError as error:
        raise UsageError(f"can't read the baseline {wanted.baseline}: {error.strerror}") from None
    from mcptest.report.baseline import read_baseline

    return read_baseline(data, str(wanted.baseline))


def with_regressions(report: RunReport, stored: Baseline | None, wanted: Wanted) -> RunReport:
    if stored is None:
        return report
    from mcptest.report.baseline import compare, notes_of

    found = compare(report, stored, partial=wanted.partial)
    return msgspec.structs.replace(
        report, regressions=tuple(found.regressions), notes=(*report.notes, *notes_of(found))
    )


def write_reports(report: RunReport, stored: Baseline | None, wanted: Wanted) -> list[str]:
    """Write every file; gives a sentence for each that could not be written."""
    failures: list[str] = []
    for name, path in wanted.files.items():
        _write(path, rendered(name, report), failures)
    if wanted.save_baseline is not None:
        from mcptest.report.baseline import baseline_of, write_baseline

        previous = stored if wanted.partial or report.interrupted else None
        if previous is None and (wanted.partial or report.interrupted):
            previous = _earlier(wanted.save_baseline)
        _write(wanted.save_baseline, write_baseline(baseline_of(report, previous)), failures)
    return failures


def _earlier(path: Path) -> Baseline | None:
    """What is there already: tests that were not run now are not forgotten."""
    from mcptest.report.baseline import read_baseline

    try:
        return read_baseline(path.read_bytes(), str(path)) if path.is_file() else None
    except (OSError, UsageError):
        return None


def _write(path: Path, content: bytes, failures: list[str]) -> None:
    try:
        replace_file(path, content)
    except (UsageError, OSError) as error:
        failures.append(f"report not written: {error}")
