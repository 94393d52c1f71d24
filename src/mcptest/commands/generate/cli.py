"""`mcptest generate`: a starter test for each tool, prompt and resource, without calling any."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path

from mcptest.commands.command_line import repeat_line, server_options
from mcptest.commands.options import add_common_options, add_server_options
from mcptest.commands.server_options import (
    Explored,
    add_fixture_option,
    close_and_say_notes,
    exploring,
)
from mcptest.core.errors import ExitCode
from mcptest.probe.starter_suites import place_starters, starters_of_offer, written_server
from mcptest.report.starter_files import placed_lines
from mcptest.schema.plausible import unchecked_schemas
from mcptest.session.answers import NO_ANSWERS
from mcptest.transport.interrupt import Stop, stopping_on_signals


def configure(parser: argparse.ArgumentParser) -> None:
    add_fixture_option(add_server_options(parser).add_argument)
    add = parser.add_argument_group("what is tested").add_argument
    add("--include-writes", action="store_true", help="no skip: true for tools that may write")
    add = parser.add_argument_group("files that are written").add_argument
    add("--output", type=Path, required=True, metavar="DIR", help="where the files are written")
    add("--overwrite", action="store_true", help="replace files that exist")
    add("--capture", type=Path, metavar="DIR", help="keep everything that went over the wire")
    add_common_options(parser)


def run(arguments: argparse.Namespace) -> int:
    # As a suite does that declares nothing: it would not be shown the others either.
    with stopping_on_signals() as stop, exploring(arguments, stop, NO_ANSWERS) as explored:
        return max(_generate(arguments, explored, stop), close_and_say_notes(explored))


def _generate(arguments: argparse.Namespace, explored: Explored, stop: Stop) -> int:
    offer = explored.subject.offer()
    ground = explored.ground(as_variable=True)
    starters = [*starters_of_offer(offer, include_writes=arguments.include_writes, ground=ground)]
    if stop.is_set():
        sys.stderr.write("mcptest: interrupted: nothing was written\n")
        return ExitCode.INTERRUPTED
    server = written_server(explored.target, spec_version=arguments.spec_version)
    placed = place_starters(arguments.output, starters, server, overwrite=arguments.overwrite)
    told = placed_lines(placed, str(arguments.output), server.needs)
    sys.stdout.writelines(f"{line}\n" for line in told)
    mask = explored.subject.masker.text
    for method, reason in offer.problems.items():
        sys.stderr.write(f"mcptest: {method} could not be read: {mask(reason)}\n")
    unchecked = list(unchecked_schemas(offer.tools))
    sys.stderr.writelines(f"mcptest: {mask(one)}\n" for one in unchecked)
    if not placed:
        sys.stderr.write("mcptest: the server offers nothing that a test could be written for\n")
        return ExitCode.FAILED if offer.problems else ExitCode.NOTHING_MATCHED
    if not arguments.quiet:
        named = () if server.block else server_options(arguments)
        sys.stdout.writelines(f"{line}\n" for line in next_steps(arguments, named))
    lost = offer.problems or unchecked or any(one.how == "left out" for one in placed)
    return ExitCode.FAILED if lost else ExitCode.OK


def next_steps(arguments: argparse.Namespace, server: Iterable[str] = ()) -> list[str]:
    """`server`: the options that name it, where the files must not."""
    words = ["mcptest", "run", str(arguments.output), *server]
    words += ["--fixture", arguments.fixture] if arguments.fixture else []
    return [
        "",
        "Next steps:",
        "  1. Put real values in place of the made-up ones, and say what you expect.",
        f"  2. {repeat_line(words, arguments)}",
    ]
