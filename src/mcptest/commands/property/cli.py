"""`mcptest property`: generated messages, arguments and conversations, judged by the rules."""

from __future__ import annotations

import argparse

from mcptest.commands.options import (
    add_allow_tool,
    add_common_options,
    add_jobs,
    add_max_time,
    add_output,
    add_seed,
    add_server_options,
    add_strict,
    add_tool,
    as_path,
)
from mcptest.commands.reporting import add_report_options
from mcptest.probe.properties import need_hypothesis


def configure(parser: argparse.ArgumentParser) -> None:
    add_server_options(parser, timeout="5s")
    add = parser.add_argument_group("selection").add_argument
    add(
        "--property",
        action="append",
        default=[],
        metavar="NAME",
        help="test only this property (repeatable)",
    )
    add_tool(add)
    add_allow_tool(add)
    add("--replay", metavar="EXAMPLE", help="replay one counterexample, by name or file")
    add("--list", action="store_true", help="list the properties, and test nothing")
    add = parser.add_argument_group("execution").add_argument
    add(
        "--examples",
        type=int,
        default=100,
        metavar="N",
        help="examples for each property (default: 100)",
    )
    add_seed(add, "examples")
    add_jobs(add, "properties")
    add_max_time(add, "2m")
    add("--fail-fast", action="store_true", help="stop a property at its first counterexample")
    add(
        "--database",
        type=as_path,
        metavar="DIR",
        help="folder of counterexamples (default: .mcptest/examples)",
    )
    add("--no-database", action="store_true", help="save and replay no counterexamples")
    add = parser.add_argument_group("pass/fail criteria").add_argument
    add_strict(add)
    add = parser.add_argument_group("output files").add_argument
    add_output(add, "write each counterexample as capture, suite and pytest file")
    add_report_options(parser)
    add_common_options(parser)
    parser.set_defaults(command_name="property")


def run(arguments: argparse.Namespace) -> int:
    need_hypothesis()
    from mcptest.commands.property.run import run_property

    return run_property(arguments)
