"""Printing and writing what `compliance run` found: one path that is bad costs one report."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from msgspec.structs import replace

from mcptest.commands.live_display import live_progress
from mcptest.commands.options import FORMS
from mcptest.commands.reporting import Forms, code_with_reports, say_form, say_lines, say_unwritten
from mcptest.probe.compliance.judging import Tell
from mcptest.report.codec import as_json
from mcptest.report.compliance.compliance_report import ComplianceReport
from mcptest.report.compliance.text import JudgingProgress
from mcptest.report.html.building import page_of
from mcptest.report.problems import problems_of
from mcptest.report.terminal import say_json
from mcptest.report.write import write_all


@contextmanager
def progress_of_judging(arguments: argparse.Namespace) -> Iterator[Tell]:
    """Who is told while a server is judged; nothing is left of it before a report or an error."""
    with live_progress(arguments, 0) as progress:
        yield JudgingProgress(progress)


def publish(
    arguments: argparse.Namespace,
    report: ComplianceReport,
    lost: Sequence[str] = (),
    *,
    captures_lent: bool = False,
) -> int:
    """Print and write everything that was asked for; gives the exit code.

    `lost` says what else could not be written. `captures_lent`: they are gone at the end, and only
    the page shows what is in them.
    """
    uncaptured = tuple(replace(one, captures=()) for one in report.judgements)
    shown = replace(report, judgements=uncaptured) if captures_lent else report
    files = _renderers(arguments, shown) | {"html": partial(_as_html, report)}
    unwritten = [*lost, *write_all((getattr(arguments, name), files[name]) for name in files)]
    code = code_with_reports(arguments, report.exit_code, unwritten)
    printed = report if arguments.format == "html" else shown
    _print(arguments, replace(printed, notes=(*printed.notes, *unwritten), exit_code=code))
    say_unwritten(unwritten)
    return code


def _print(arguments: argparse.Namespace, report: ComplianceReport) -> None:
    wanted = "json" if arguments.json else arguments.format
    if wanted == "text":
        say_lines(arguments, report)
    elif wanted in ("agent", "tap"):
        say_form(arguments, _forms(arguments, report), report.exit_code)
    else:
        name = {"json": "json_file", "md": "markdown"}.get(wanted, wanted)
        say_json(sys.stdout, _renderers(arguments, report)[name]())
    sys.stdout.flush()


def _renderers(
    arguments: argparse.Namespace, report: ComplianceReport
) -> dict[str, Callable[[], bytes]]:
    """By the name of the option that asks for the file."""
    forms = _forms(arguments, report)
    return {
        "json_file": lambda: as_json(report),
        "markdown": lambda: report.as_markdown().encode("utf-8", "backslashreplace"),
        "html": partial(_as_html, report),
        **{name: partial(forms.form, name) for name in ("junit", *FORMS)},
    }


def _forms(arguments: argparse.Namespace, report: ComplianceReport) -> Forms:
    file, strict = str(arguments.from_suite or ""), arguments.strict
    run = partial(report.as_run, file, strict=strict)
    return Forms(
        run=run,
        excusing=partial(report.run_and_excuses, file, strict=strict),
        problems=lambda: problems_of(report.kind, run(), report.found_problems(run(), file)),
        headline=report.headline(),
    )


def _as_html(report: ComplianceReport) -> bytes:
    captures = (path for one in report.judgements for path in one.captures)
    return page_of(
        report, captures, code=report.exit_code, name="mcptest compliance run", by_rules=False
    )
