"""Stored runs and captures as one run: merged, judged, printed and written."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from mcptest.commands.command_line import options_again
from mcptest.commands.options import is_for_a_program
from mcptest.commands.reporting import say_unwritten, tell_written, write_files
from mcptest.core.errors import ExitCode, UsageError
from mcptest.core.limits import MEBIBYTE
from mcptest.core.results import RunReport, TestResult
from mcptest.core.safe_text import show
from mcptest.report.html.building import pictured
from mcptest.report.run_results import render, summary
from mcptest.report.stored import Stored, code_of_all, merged, missing_shards, read_parts
from mcptest.report.terminal import Style, columns, say_json
from mcptest.report.write import rendered
from mcptest.transport.files import read_input

LARGEST_REPORT = 256 * MEBIBYTE


def run_report(arguments: argparse.Namespace) -> int:
    if not arguments.files and not arguments.capture:
        raise UsageError(
            "no report is named", hint="for example: mcptest report run.json --html report.html"
        )
    if arguments.shards is not None and arguments.shards != len(arguments.files):
        raise UsageError(
            f"--shards {arguments.shards}, but the number of files is {len(arguments.files)}",
            hint="name the report of every shard",
        )
    stored = [one for file in arguments.files for one in _read(file)]
    stored += _missing(stored)
    pictures = pictured(_captures(arguments.capture))
    judged = pictures.judged()
    if not stored and judged is not None:
        stored = [judged]
    code = code_of_all(stored)
    whole = _as_one_run(stored)
    _print(arguments, whole, code)
    unwritten = write_files(arguments, whole, lambda: pictures.page(stored, code))
    tell_written(arguments)
    say_unwritten(unwritten)
    return code or (ExitCode.FAILED if unwritten else ExitCode.OK)  # the files are all it is for


def _read(file: str) -> list[Stored]:
    data = read_input(file, "the report", largest=LARGEST_REPORT)
    try:
        return read_parts(data, file)
    except ValueError as error:
        raise UsageError(f"cannot read the report {show(file, 400)}: {error}") from None


def _missing(stored: Sequence[Stored]) -> list[Stored]:
    """The shards that got lost, as results that failed."""
    lost = missing_shards([(x.file, x.report) for x in stored if isinstance(x.report, RunReport)])
    if lost is None:
        return []
    for sentence in (*(one.detail for one in lost.results), *lost.notes):
        sys.stderr.write(f"mcptest: {sentence}\n")
    return [Stored("shards", lost)]


def _captures(paths: Sequence[Path]) -> list[str]:
    """Files as they are named; of a folder every capture in it."""
    found: list[str] = []
    for path in paths:
        if not path.is_dir():
            found.append(str(path))
            continue
        inside = sorted(str(one) for one in path.rglob("*.jsonl") if one.is_file())
        if not inside:
            raise UsageError(f"no capture (*.jsonl) in the folder {show(str(path), 300)}")
        found += inside
    return list(dict.fromkeys(found))


def _as_one_run(stored: Sequence[Stored]) -> RunReport:
    """Everything as results of tests, for the reports that know nothing else.

    Servers that were held against the same rules are told apart.
    """
    subjects = [show(getattr(one.report, "server", ""), 60) for one in stored]
    several = len({*subjects} - {""}) > 1
    runs = [one.report.as_run() for one in stored]
    for number, server in enumerate(subjects):
        if several and server:
            results = runs[number].results
            named = (replace(one, language=one.language or server) for one in results)
            runs[number] = replace(runs[number], results=tuple(named))
    return merged(runs)


def _print(arguments: argparse.Namespace, whole: RunReport, code: ExitCode) -> None:
    if is_for_a_program(arguments):
        wanted = "json" if arguments.json else arguments.format
        if wanted == "agent":
            whole = replace(whole, results=tuple(map(_without_command, whole.results)))
        words = ["mcptest", "report", *arguments.files, *options_again(arguments, "capture")]
        again = partial(shlex.join, words)
        say_json(sys.stdout, rendered(wanted, whole, code=code, repeat=again))
        return
    how = {"verbose": arguments.verbose, "width": columns()}
    style = Style.of(sys.stdout, no_color=arguments.no_color, **how)
    if arguments.quiet or not whole.results:
        sys.stdout.write(f"{summary(whole, style)}\n")
    else:
        sys.stdout.write(render(whole, style))
    if len(arguments.files) > 1:
        sys.stdout.write(f"merged from {len(arguments.files)} files\n")


def _without_command(result: TestResult) -> TestResult:
    """Anybody may have written the file: no command in it is handed to whoever might run it."""
    if result.proof is None:
        return result
    return replace(result, proof=replace(result.proof, repeat=""))
