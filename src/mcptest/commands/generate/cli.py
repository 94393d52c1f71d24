"""`mcptest generate`: a starter test for each tool, prompt and resource, without calling any."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable

from mcptest.commands.command_line import repeat_line, server_options
from mcptest.commands.options import OptionGroup, add_common_options, add_server_options
from mcptest.commands.server_options import Explored, close_and_say_notes, exploring
from mcptest.core.errors import ExitCode
from mcptest.probe.starter_suites import place_starters, starters_of_offer, written_server
from mcptest.report.starter_files import placed_lines
from mcptest.schema.tool_inputs import unchecked_schemas
from mcptest.session.answers import NO_ANSWERS
from mcptest.session.pages import check_tool_names


def configure(parser: argparse.ArgumentParser) -> None:
    add_server_options(parser)
    add = OptionGroup(parser, "selection")
    add("--allow-tool NAME", "leave out skip: true for this tool (repeatable)")
    about = "leave out skip: true for tools not marked readOnlyHint"
    add("--allow-writes", about, was="--include-writes")
    OptionGroup(parser, "execution").known("--fixture")
    add = OptionGroup(parser, "output files")
    add("--output DIR", "write the tests to this folder", required=True)
    add.known("--overwrite", "--save-capture")
    add_common_options(parser)


def run(arguments: argparse.Namespace) -> int:
    # A suite declares no capabilities, so it sees the same items.
    with exploring(arguments, NO_ANSWERS) as explored:
        return max(_generate(arguments, explored), close_and_say_notes(explored))


def _generate(arguments: argparse.Namespace, explored: Explored) -> int:
    offer = explored.subject.offer()
    ground = explored.ground(as_variable=True)
    if "tools/list" not in offer.problems:
        check_tool_names(arguments.allow_tool, offer.tools)
    starters = [
        *starters_of_offer(
            offer,
            include_writes=arguments.allow_writes,
            allow_tools=arguments.allow_tool,
            ground=ground,
        )
    ]
    if explored.stop.is_set():
        sys.stderr.write("mcptest: interrupted; no file was written\n")
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
        sys.stderr.write("mcptest: the server has no tools, prompts or resources to test\n")
        return ExitCode.FAILED if offer.problems else ExitCode.NOTHING_MATCHED
    if not arguments.quiet:
        named = () if server.block else server_options(arguments)
        sys.stdout.writelines(f"{line}\n" for line in next_steps(arguments, named))
    lost = offer.problems or unchecked or any(one.how == "left out" for one in placed)
    return ExitCode.FAILED if lost else ExitCode.OK


def next_steps(arguments: argparse.Namespace, server: Iterable[str] = ()) -> list[str]:
    """`server`: the options that name it, if the files must not contain them."""
    words = ["mcptest", "run", str(arguments.output), *server]
    words += ["--fixture", arguments.fixture] if arguments.fixture else []
    return [
        "",
        "Next steps:",
        "  1. Replace the made-up values, and write what you expect.",
        f"  2. {repeat_line(words, arguments)}",
    ]
