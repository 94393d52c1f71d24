"""Writing the reports that were asked for: one path that is bad costs one report."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from mcptest.core.errors import McptestError, UsageError
from mcptest.core.redaction import redaction
from mcptest.core.results import RunReport
from mcptest.report.codec import as_json
from mcptest.transport.files import (
    is_special,
    open_special,
    read_bounded,
    read_input,
    replace_file,
    write_whole,
)

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
    """The content of one file."""
    if name == "json_file":
        return as_json(report)
    if name == "html":
        from mcptest.report.html.building import page_of_run

        return page_of_run(report)
    from mcptest.report import junit, markdown, problems, sarif, tap  # most runs want none of them

    forms: dict[str, Callable[[RunReport], bytes]] = {
        "badge": badge,
        "junit": junit.render,
        "tap": tap.render,
        "markdown": lambda run: markdown.render(run).encode(),
        "sarif": lambda run: sarif.render(problems.problems_of_run(run)),
        "code_quality": lambda run: sarif.render_code_quality(problems.problems_of_run(run)),
    }
    return forms[name](report)


def badge(report: RunReport) -> bytes:
    """As an endpoint of shields.io reads it: green only if all passed and the run was complete."""
    complete = report.passed == len(report.results) > 0 and not report.interrupted
    colour = "red" if report.failed else "brightgreen" if complete else "yellow"
    counts = f"{report.passed}/{len(report.results)}"
    return as_json({"schemaVersion": 1, "label": "mcptest", "message": counts, "color": colour})


def stored_baseline(wanted: Wanted) -> Baseline | None:
    """The baseline to compare with. UsageError when it can't be read: nothing was run yet."""
    if wanted.baseline is None:
        return None
    from mcptest.report.baseline import read_baseline

    data = read_input(wanted.baseline, "the baseline")
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
    from mcptest.report.baseline import baseline_of, read_baseline, write_baseline

    previous = None
    if amends is not None:
        with contextlib.suppress(OSError, UsageError):  # there is none yet
            previous = stored or read_baseline(read_bounded(amends, pipes=False), str(amends))
    return write_baseline(baseline_of(report, previous))
