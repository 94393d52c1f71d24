"""Writing the reports that were asked for: one path that is bad costs one report."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from mcptest.core.errors import ExitCode, McptestError, UsageError
from mcptest.core.redaction import redaction
from mcptest.core.results import RunReport
from mcptest.report.codec import as_json
from mcptest.transport.files import is_special, open_special, replace_file, write_whole

if TYPE_CHECKING:
    from mcptest.report.head import AnyReport

_JSON = ("json", "json_file", "coverage_json")
FORMS = (*_JSON[1:], "junit", "markdown", "badge", "html", "sarif", "code_quality", "tap")
"""The files that `rendered` can make, by the names of the options."""


def rendered(
    name: str,
    report: AnyReport,
    *,
    code: int = ExitCode.OK,
    notes: Sequence[str] = (),
    repeat: Callable[[], str] = str,
) -> bytes:
    """A report in one form, by the name of the option that asks for it.

    `notes`: what has come to be known since, such as the files that could not be written. An agent
    reads the exit `code` as well, and the command to `repeat` a failure that names none.
    """
    if name in _JSON:
        return as_json(report)
    from mcptest.report import agent, junit, sarif, tap  # most runs want none of them
    from mcptest.report.head import Report, RunView

    view = report if isinstance(report, Report) else RunView(report)
    if name in ("markdown", "md"):
        return view.as_markdown().encode("utf-8", "backslashreplace")
    if name in ("sarif", "code_quality"):
        render = sarif.render if name == "sarif" else sarif.render_code_quality
        return render(view.as_problems())
    if name == "html":
        from mcptest.report.html.building import page_of_run

        return page_of_run(view.as_run())
    if name in ("badge", "junit"):
        return (badge if name == "badge" else junit.render)(view.as_run())
    run, excused = view.run_and_excuses()
    run = msgspec.structs.replace(run, notes=(*run.notes, *notes))
    if name == "tap":
        return tap.render(run, excused)
    return agent.render(run, code, excused=excused, headline=view.headline(), repeat=repeat())


def badge(report: RunReport) -> bytes:
    """As an endpoint of shields.io reads it: green only if all passed and the run was complete."""
    complete = report.passed == len(report.results) > 0 and not report.interrupted
    colour = "red" if report.failed else "brightgreen" if complete else "yellow"
    counts = f"{report.passed}/{len(report.results)}"
    return as_json({"schemaVersion": 1, "label": "mcptest", "message": counts, "color": colour})


def write_all(
    wanted: Iterable[tuple[Path | None, Callable[[], bytes]]], written: list[Path] | None = None
) -> list[str]:
    """Write the reports that have a path; gives a sentence for each that could not be written.

    The others are added to `written`.
    """
    failures: list[str] = []
    for path, render in wanted:
        if path is None:
            continue
        try:
            replace_file(path, render())
            if written is not None and not is_special(path):
                written.append(path)
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
