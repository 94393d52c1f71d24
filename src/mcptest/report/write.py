"""Writing the reports that were asked for: one path that is bad costs one report."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from mcptest.model.errors import McptestError, UsageError
from mcptest.model.redaction import redaction
from mcptest.model.results import RunReport
from mcptest.transport.files import is_special, open_special, replace_file, write_whole
from mcptest.transport.input_file import read_bounded, read_input

if TYPE_CHECKING:
    from pathlib import Path

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
    data = read_input(wanted.baseline, "the baseline")
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
    files: list[tuple[Path, Callable[[], bytes]]] = [
        (path, partial(rendered, name, report)) for name, path in wanted.files.items()
    ]
    baseline = wanted.save_baseline
    if baseline is not None:
        some = wanted.partial or report.interrupted
        files.append((baseline, lambda: _as_baseline(report, stored, baseline if some else None)))
    return write_all(files)


def write_all(wanted: Iterable[tuple[Path | None, Callable[[], bytes]]]) -> list[str]:
    """Write the reports that have a path; gives a sentence for each that could not be written."""
    failures: list[str] = []
    for path, render in wanted:
        if path is None:
            continue
        try:
            replace_file(path, render())
        except (McptestError, OSError) as error:
            failures.append(f"report not written: {error}")
    return failures


def append_to_step_summary(text: str) -> list[str]:
    """Add to the summary of this step of GitHub Actions, where there is one; says what went wrong.

    Other steps of the job write to it too.
    """
    path = os.environ.get("GITHUB_STEP_SUMMARY", "")
    if not path:
        return []
    try:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        descriptor = open_special(path) if is_special(path) else os.open(path, flags, 0o666)
        content = redaction.document(text.encode("utf-8", "backslashreplace"))
        try:
            write_whole(descriptor, content + b"\n")
        finally:
            os.close(descriptor)
    except UsageError as error:
        return [f"report not written: the step summary: {error.message}"]
    except OSError as error:
        return [f"report not written: the step summary {path}: {error.strerror}"]
    return []


def _as_baseline(report: RunReport, stored: Baseline | None, amends: Path | None) -> bytes:
    """Where it `amends` a file, tests that were not run now are not forgotten."""
    from mcptest.report.baseline import baseline_of, write_baseline

    previous = None if amends is None else stored or _earlier(amends)
    return write_baseline(baseline_of(report, previous))


def _earlier(path: Path) -> Baseline | None:
    """What is there already."""
    from mcptest.report.baseline import read_baseline

    try:
        return read_baseline(read_bounded(path, pipes=False), str(path))
    except (OSError, UsageError):
        return None
