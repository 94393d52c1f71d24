"""`mcptest property`: generated messages, arguments and conversations, judged by the rules."""

from __future__ import annotations

import argparse
from pathlib import Path

from mcptest.commands.options import add_common_options, add_server_options
from mcptest.commands.reporting import add_report_options
from mcptest.probe.properties import need_hypothesis


def configure(parser: argparse.ArgumentParser) -> None:
    add_server_options(parser, timeout="5s")
    add = parser.add_argument_group("what is tested").add_argument
    add("--property", action="append", default=[], metavar="NAME", help="only this; may repeat")
    add("--allow-tool", action="append", default=[], metavar="NAME", help="call this tool, too")
    add("--replay", metavar="EXAMPLE", help="only this counterexample: its name, or a file")
    add("--list", action="store_true", help="list the properties, and test nothing")
    add = parser.add_argument_group("how it runs").add_argument
    add("--examples", type=int, default=100, metavar="N", help="for each property (100)")
    add("--seed", type=int, metavar="N", help="the same seed gives the same examples (random)")
    add(
        "--jobs",
        default="auto",
        metavar="N",
        help="properties at a time (auto: as many as pay off)",
    )
    add("--max-time", default="2m", metavar="T", help="for all of it together (2m)")
    add("--fail-fast", action="store_true", help="one counterexample to each property is enough")
    add("--database", type=Path, metavar="DIR", help="where they are kept (.mcptest/examples)")
    add("--no-database", action="store_true", help="keep none, and replay none")
    add = parser.add_argument_group("what is good enough").add_argument
    add("--strict", action="store_true", help="a broken SHOULD fails as well")
    add = parser.add_argument_group("files that are written").add_argument
    add("--output", type=Path, metavar="DIR", help="write each as capture, suite and pytest file")
    add("--overwrite", action="store_true", help="replace written files that exist")
    add_report_options(parser)
    add_common_options(parser)
    parser.set_defaults(command_name="property")


def run(arguments: argparse.Namespace) -> int:
    need_hypothesis()
    from mcptest.commands.property.run import run_property

    return run_property(arguments)
