"""`mcptest report`: stored runs and captures, looked at again; shards become one verdict."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mcptest.cli.options import FORMS, add_common_options, add_file_options
from mcptest.model.errors import ExitCode, UsageError
from mcptest.model.show import show

if TYPE_CHECKING:
    from mcptest.model.results import RunReport
    from mcptest.report.stored import Stored

EPILOG = """\
FILE is what --json-file wrote: of run, ci, compliance run, compliance invariants or conformance.
Several files are shards of one run: they are merged, and there is one verdict. Nothing is run
and no server is contacted.

A capture is shown as a sequence diagram, and the session rules are judged on it, so that each
finding is pinned to its message. Beside stored runs these findings only explain; when captures
are all there is, they are the verdict (as in mcptest compliance invariants).

examples:
  mcptest report run.json --html report.html
  mcptest report shard-*.json --shards 4 --html report.html --junit results.xml
  mcptest report run.json --capture captures/ --html report.html
  mcptest report --capture session.jsonl --html session.html

exit codes: that of the runs: 0 passed, 1 something failed or a report could not be written,
            2 a file can't be read, 3 a peer was unreachable, 4 nothing was run, 130 interrupted
"""
_FORMS = ("junit", "markdown", "json_file", "badge")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
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
    group.add_argument("--html", type=Path, metavar="FILE", help="one page that needs nothing else")
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
    stored = [_read(file) for file in arguments.files]
    pictures = pictured(_captures(arguments.capture))
    judged = pictures.judged()
    if not stored and judged is not None:
        stored = [judged]
    code = code_of_all(stored)
    whole = _as_one_run(stored)
    _print(arguments, whole, len(arguments.files))
    unwritten = _write(arguments, whole, lambda: pictures.page(stored, code))
    return code or unwritten


def _read(file: str) -> Stored:
    from mcptest.report.stored import read_stored

    try:
        return read_stored(Path(file).read_bytes(), file)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"can't read {show(file, 300)}: {reason}") from None


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
    """Everything as results of tests, for the reports that know nothing else."""
    from mcptest.report.stored import merged

    return merged([_as_run(one) for one in stored])


def _as_run(stored: Stored) -> RunReport:
    from mcptest.cli.compliance_publish import as_run
    from mcptest.model.compliance import ComplianceReport
    from mcptest.model.conformance import ConformanceReport
    from mcptest.model.results import RunReport
    from mcptest.report.conformance_run import conformance_as_run
    from mcptest.report.sessions_run import sessions_as_run

    report = stored.report
    if isinstance(report, RunReport):
        return report
    if isinstance(report, ConformanceReport):
        return conformance_as_run(report)
    strict = stored.exit_code is ExitCode.FAILED
    if not isinstance(report, ComplianceReport):
        return sessions_as_run(report, strict=strict)
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


def _write(arguments: argparse.Namespace, whole: RunReport, page: Callable[[], bytes]) -> int:
    from mcptest.report.placed import write_all
    from mcptest.report.write import rendered

    def form(name: str) -> Callable[[], bytes]:
        return lambda: rendered(name, whole)

    wanted: Mapping[Path | None, Callable[[], bytes]] = {
        arguments.html: page,
        **{getattr(arguments, name): form(name) for name in (*_FORMS, *FORMS)},
    }
    return write_all(wanted, sys.stderr)
