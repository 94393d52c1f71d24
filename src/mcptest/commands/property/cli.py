"""`mcptest property`: generated messages, arguments and conversations, judged by the rules."""

from __future__ import annotations

import argparse

from mcptest.commands.options import (
    OptionGroup,
    add_common_options,
    add_report_options,
    add_server_options,
)
from mcptest.probe.properties import need_hypothesis


def configure(parser: argparse.ArgumentParser) -> None:
    add_server_options(parser, timeout="5s")
    add = OptionGroup(parser, "selection")
    add("--property NAME", "test only this property (repeatable)")
    add.known("--tool", "--allow-tool")
    add("--replay EXAMPLE", "replay one counterexample, by name or file")
    add("--list", "list the properties, and test nothing")
    add = OptionGroup(parser, "execution")
    add("--examples N", "examples for each property (default: 100)", type=int, default=100)
    add("--seed N", "seed for reproducible examples (default: random)", type=int)
    add("--jobs N", "properties in parallel (default: auto)", default="auto")
    add("--max-time T", "stop after T and report what was seen (default: 2m)", default="2m")
    add("--fail-fast", "stop a property at its first counterexample")
    add("--database DIR", "folder of counterexamples (default: .mcptest/examples)")
    add("--no-database", "save and replay no counterexamples")
    OptionGroup(parser, "pass/fail criteria").known("--strict")
    add = OptionGroup(parser, "output files")
    add("--output DIR", "write each counterexample as capture, suite and pytest file")
    add.known("--overwrite")
    add_report_options(parser)
    add_common_options(parser)


def run(arguments: argparse.Namespace) -> int:
    need_hypothesis()
    from mcptest.commands.property.run import run_property

    return run_property(arguments)
