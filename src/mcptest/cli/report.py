"""`mcptest report`: stored runs and captures, looked at again; shards become one verdict."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from mcptest.cli.options import FORMS, add_common_options, add_file_options
from mcptest.cli.report_forms import add_html_option
from mcptest.cli.unwritten import say_unwritten
from mcptest.model.errors import ExitCode, UsageError
from mcptest.model.limits import MEBIBYTE
from mcptest.model.show import show
from mcptest.transport.input_file import read_input

if TYPE_CHECKING:
    from mcptest.model.results import RunReport
    from mcptest.report.stored import Stored

LARGEST_REPORT = 256 * MEBIBYTE
_FORMS = ("junit", "markdown", "json_file", "badge")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="*", metavar="FILE", help="stored runs")
    parser.add_argument(
        "--capture",
        action="append",
        default=[],
        type=Path,
        metavar="PATH",
        help="a capture, or a folder of them; may repeat",
    )
    parser.add_argument(
        "--shards", type=int, metavar="N", help="there must be N files: a lost shard is no success"
    )
    group = parser.add_argument_group("reports")
    add_html_option(group.add_argument)
    for name in _FORMS:
        group.add_argument(f"--{name.replace('_', '-')}", type=Path, metavar="FILE")
    add_file_options(group.add_argument)
    group.add_argument("--json", action="store_true", help="the merged run as JSON on stdout")
    add_common_options(parser)


def run(arguments: argparse.Namespace) -> int:
    from mcptest.report.html.making import pictured
    from mcptest.report.stored import code_of_all

    if not arguments.files and not arguments.capture:
        raise UsageError("no stored run is named", hint="mcptest report FILE… --html report.html")
    if arguments.shards is not None and arguments.shards != len(arguments.files):
        raise UsageError(
            f"--shards {arguments.shards}, but the number of files is {len(arguments.files)}",
            hint="a shard that is missing would be taken for one that passed",
        )
    stored = [one for file in arguments.files for one in _read(file)]
    stored += _missing(stored)
    pictures = pictured(_captures(arguments.capture))
    judged = pictures.judged()
    if not stored and judged is not None:
        stored = [judged]
    code = code_of_all(stored)
    whole = _as_one_run(stored)
    _print(arguments, whole, len(arguments.files))
    unwritten = _write(arguments, whole, lambda: pictures.page(stored, code))
    say_unwritten(unwritten)
    return code or (ExitCode.FAILED if unwritten else ExitCode.OK)  # the files are all it is for


def _read(file: str) -> list[Stored]:
    from mcptest.report.stored_any import read_any

    data = read_input(file, "the report", largest=LARGEST_REPORT)
    try:
        return read_any(data, file)
    except ValueError as error:
        raise UsageError(f"can't read the report {show(file, 400)}: {error}") from None


def _missing(stored: Sequence[Stored]) -> list[Stored]:
    """The shards that got lost, as results that failed."""
    from mcptest.model.results import RunReport
    from mcptest.report.shards import missing_shards
    from mcptest.report.stored import Stored, exit_code_of_run

    lost = missing_shards([(x.file, x.report) for x in stored if isinstance(x.report, RunReport)])
    if lost is None:
        return []
    for sentence in (*(one.detail for one in lost.results), *lost.notes):
        sys.stderr.write(f"mcptest: {sentence}\n")
    return [Stored("shards", lost, exit_code_of_run(lost))]


def _captures(paths: Sequence[Path]) -> list[str]:
    """Files as they are named; of a folder every capture in it."""
    found: list[str] = []
    for path in paths:
        if not path.is_dir():
            found.append(str(path))
            continue
        inside = sorted(str(one) for one in path.rglob("*.jsonl") if one.is_file())
        if not inside:
            raise UsageError(f"no capture (*.jsonl) is in the folder {show(str(path), 300)}")
        found += inside
    return list(dict.fromkeys(found))


def _as_one_run(stored: Sequence[Stored]) -> RunReport:
    """Everything as results of tests, for the reports that know nothing else.

    Servers that were held against the same rules are told apart.
    """
    from mcptest.report.stored import merged

    subjects = {show(getattr(one.report, "server", ""), 60) for one in stored} - {""}
    several = len(subjects) > 1
    return merged([_with_its_server(one) if several else _as_run(one) for one in stored])


def _with_its_server(stored: Stored) -> RunReport:
    from msgspec.structs import replace

    run, server = _as_run(stored), show(getattr(stored.report, "server", ""), 60)
    named = (replace(one, language=one.language or server) for one in run.results)
    return replace(run, results=tuple(named)) if server else run


def _as_run(stored: Stored) -> RunReport:
    from mcptest.cli.compliance_publish import as_run
    from mcptest.model.compliance import ComplianceReport
    from mcptest.model.conformance import ConformanceReport
    from mcptest.model.results import RunReport
    from mcptest.report.conformance_run import conformance_as_run
    from mcptest.report.sessions_run import sessions_as_run
    from mcptest.report.stored_explored import explored_as_run
    from mcptest.report.verdicts_json import Report

    report = stored.report
    if isinstance(report, RunReport):
        return report
    if isinstance(report, ConformanceReport):
        return conformance_as_run(report)
    strict = stored.exit_code is ExitCode.FAILED
    if isinstance(report, Report):
        return sessions_as_run(report, strict=strict)
    if not isinstance(report, ComplianceReport):
        return explored_as_run(report)
    # A report that failed without a broken MUST or gate was judged with --strict.
    mild = as_run(report, "", strict=False)
    return as_run(report, "", strict=True) if strict and not mild.failed else mild


def _print(arguments: argparse.Namespace, whole: RunReport, files: int) -> None:
    from mcptest.report.results_json import run_json
    from mcptest.report.results_text import render, summary
    from mcptest.report.terminal import Style, columns, say_json

    if arguments.json:
        say_json(sys.stdout, run_json(whole))
        return
    style = Style.of(sys.stdout, no_color=arguments.no_color)
    if arguments.quiet or not whole.results:
        sys.stdout.write(f"{summary(whole, style)}\n")
    else:
        sys.stdout.write(render(whole, style, verbose=arguments.verbose, width=columns()))
    if files > 1:
        sys.stdout.write(f"merged from {files} files\n")


def _write(arguments: argparse.Namespace, whole: RunReport, page: Callable[[], bytes]) -> list[str]:
    from mcptest.report.write import rendered, write_all

    forms = [
        (getattr(arguments, name), partial(rendered, name, whole)) for name in (*_FORMS, *FORMS)
    ]
    return write_all([(arguments.html, page), *forms])
