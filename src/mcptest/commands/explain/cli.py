"""`mcptest explain ID`: one rule, or one code of the linter or of an audit, in full."""

from __future__ import annotations

import argparse
import sys

from mcptest.commands.knowledge import explained
from mcptest.commands.options import HIDDEN, OptionGroup
from mcptest.core.errors import ExitCode
from mcptest.report.terminal import Style, say, say_json


def configure(parser: argparse.ArgumentParser) -> None:
    add = OptionGroup(parser)
    add("rule ID", "rule such as INV-003, or code of lint or audit such as E101")
    add("--json", "print JSON only")
    add.known("--no-color")
    add("--debug", HIDDEN)


def run(arguments: argparse.Namespace) -> int:
    data, lines = explained(arguments.rule, Style.of(sys.stdout, no_color=arguments.no_color))
    if arguments.json:
        say_json(sys.stdout, data)
        return ExitCode.OK
    for line in lines:
        say(sys.stdout, line + "\n")
    return ExitCode.OK
