"""`mcptest matrix`: one suite over several servers."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator

from msgspec.structs import replace

from mcptest.cli import run as suite_run
from mcptest.cli import suite_options
from mcptest.cli.options import add_common_options
from mcptest.model.errors import UsageError
from mcptest.model.results import RunReport
from mcptest.model.show import show
from mcptest.report import matrix
from mcptest.report.terminal import Style
from mcptest.run.choosing import ServerChoice, chosen_target
from mcptest.run.interrupt import stopping_on_signals

_SPECIFICATION = re.compile(r"\s*([^:\s\"']+)\s*:\s*(.*?)\s*", re.DOTALL)
_WHOLLY_QUOTED = re.compile(r"\"([^\"]*)\"|'([^']*)'", re.DOTALL)


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--languages",
        action="append",
        default=[],
        metavar="NAME:SERVER,…",
        help="the servers, one column each; may repeat",
    )
    suite_options.add_suite_options(parser)
    suite_options.add_run_options(parser)
    suite_options.add_report_options(parser)
    parser.add_argument(
        "--strict-reports", action="store_true", help="a report that can't be written fails"
    )
    add_common_options(parser)
    parser.set_defaults(server=None)


def run(arguments: argparse.Namespace) -> int:
    if arguments.server_command:
        raise UsageError("a matrix has several servers", hint="name them with --languages")
    languages = servers_of(arguments)
    arguments.server = ""  # the suite need not name any
    loaded, tests = suite_run.chosen_tests(arguments)
    if loaded.lanes:
        sys.stderr.write("mcptest: note: a matrix runs tests; the lanes of the suite are not run\n")
    if arguments.list:
        return suite_run.show_list(tests, as_data=arguments.json)
    stored = suite_run.baseline_of(arguments)
    arguments.server = None
    settings = suite_run.settings_of(arguments, loaded)
    options = replace(suite_run.run_options(arguments), languages=languages)

    def as_text(report: RunReport, style: Style, width: int) -> str:
        names = [name for name, _ in languages]
        return matrix.render(report, names, style, verbose=arguments.verbose, width=width)

    with stopping_on_signals() as stop:
        report = suite_run.carry_out(arguments, tests, settings, options, stop)
        report, unwritten = suite_run.publish(
            arguments,
            report,
            stored,
            as_text=as_text,
            fails=lambda done: suite_run.has_failed(done) or bool(loaded.problems),
        )
    return suite_run.exit_code(
        loaded,
        report,
        interrupted=stop.is_set(),
        failed=suite_run.has_failed(report),
        unwritten=unwritten and arguments.strict_reports,
    )


def servers_of(arguments: argparse.Namespace) -> tuple[tuple[str, ServerChoice], ...]:
    """The columns, in the order in which they were named. UsageError says what is wrong."""
    found: dict[str, ServerChoice] = {}
    for text in arguments.languages:
        for name, server in parse_languages(text):
            if name in found:
                raise UsageError(f"--languages names {show(name, 60)} twice")
            choice = suite_run.choice_of(arguments, server)
            chosen_target(choice)
            found[name] = choice
    if not found:
        raise UsageError("--languages is required", hint="--languages node:CMD,python:CMD")
    return tuple(found.items())


def parse_languages(text: str) -> Iterator[tuple[str, str]]:
    """`a:cmd,b:cmd` as pairs."""
    for entry in _split_at_commas(text):
        match = _SPECIFICATION.fullmatch(entry)
        if match is None or not match[2]:
            raise UsageError(
                f"invalid language spec {show(entry, 80)!r} (expected NAME:SERVER)",
                hint="a comma that belongs to a command stands in quotes",
            )
        quoted = _WHOLLY_QUOTED.fullmatch(match[2])
        yield match[1], (quoted[1] or quoted[2] or "") if quoted else match[2]


def _split_at_commas(text: str) -> Iterator[str]:
    """At those outside of quotes, as a shell would see them."""
    entry, quote = "", ""
    letters = iter(text)
    for letter in letters:
        if letter == "\\" and quote != "'":
            entry += letter + next(letters, "")
            continue
        if letter == "," and not quote:
            yield entry
            entry = ""
            continue
        if letter in "\"'" and quote in ("", letter):
            quote = "" if quote else letter
        entry += letter
    if quote:
        raise UsageError(f"--languages: a quote is not closed in {show(text, 120)!r}")
    yield entry
